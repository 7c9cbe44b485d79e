//! Vulkan's validation layer, enabled by `SCRY_VALIDATE=1`: every warning and error that is not
//! ignored is counted and written to the log, to standard error, and to the file that
//! `SCRY_VALIDATE_LOG` names.

use std::ffi::{CStr, c_void};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

/// The name of the validation layer.
pub(crate) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// Checks that are enabled beyond the layer's defaults.
pub(crate) const EXTRA_CHECKS: &[vk::ValidationFeatureEnableEXT] =
    &[vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];

/// Wrong messages, of a layer older than the Vulkan version, to be ignored: id and reason.
const IGNORED_MESSAGES: &[(&str, &str)] = &[];

/// Warnings and errors of the layer since the process started, except the ignored ones.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Returns the number of warnings and errors since the process started.
#[cfg(test)]
pub(crate) fn message_count() -> u64 {
    MESSAGES.load(Ordering::Relaxed)
}

/// Returns whether the environment requests validation.
pub(crate) fn is_requested() -> bool {
    std::env::var_os("SCRY_VALIDATE").is_some_and(|value| value == "1")
}

/// Returns a messenger that reports the layer's messages.
pub(crate) fn reporter() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    messenger(Some(report))
}

/// Returns a messenger that appends warnings and errors of the loader and the drivers to
/// `loader_messages`, which must outlive it.
pub(crate) fn collector(
    loader_messages: &Mutex<Vec<String>>,
) -> vk::DebugUtilsMessengerCreateInfoEXT<'_> {
    messenger(Some(collect)).user_data(std::ptr::from_ref(loader_messages).cast_mut().cast())
}

fn messenger(
    callback: vk::PFN_vkDebugUtilsMessengerCallbackEXT,
) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    use vk::{
        DebugUtilsMessageSeverityFlagsEXT as Severity, DebugUtilsMessageTypeFlagsEXT as Type,
    };
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(Severity::ERROR | Severity::WARNING)
        .message_type(Type::GENERAL | Type::VALIDATION | Type::PERFORMANCE)
        .pfn_user_callback(callback)
}

/// A message as Vulkan passes it to a callback.
struct Message {
    id: String,
    text: String,
}

/// Reads the id and the text of a message.
///
/// # Safety
/// `data` is null or the data that Vulkan passes to a messenger's callback.
unsafe fn read_message(data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>) -> Message {
    // SAFETY: valid or null by the contract, and Vulkan's strings are null-terminated.
    unsafe {
        let data = data.as_ref();
        Message {
            id: data
                .and_then(|d| d.message_id_name_as_c_str())
                .map(|s| s.to_string_lossy().into_owned())
                .unwrap_or_default(),
            text: data
                .and_then(|d| d.message_as_c_str())
                .map(|s| s.to_string_lossy().into_owned())
                .unwrap_or_default(),
        }
    }
}

/// Counts and writes a message of the validation layer.
///
/// # Safety
/// Only Vulkan may call this, as the callback of a messenger.
unsafe extern "system" fn report(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: Vulkan calls this with valid data.
    let Message { id, text } = unsafe { read_message(data) };
    if let Some((_, reason)) = IGNORED_MESSAGES.iter().find(|(ignored, _)| *ignored == id) {
        log::debug!("vulkan validation: {id}, ignored because {reason}");
        return vk::FALSE;
    }
    MESSAGES.fetch_add(1, Ordering::Relaxed);
    let is_error = severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
    let severity = if is_error { "ERROR" } else { "WARNING" };
    let line = format!("vulkan validation: {severity} {id}: {text}");
    log::error!("{line}");
    // Nothing may unwind into the driver: write errors are ignored.
    let _ = writeln!(std::io::stderr(), "{line}");
    if let Some(path) = std::env::var_os("SCRY_VALIDATE_LOG") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
    vk::FALSE
}

/// Collects a message of the loader or a driver.
///
/// # Safety
/// Only Vulkan may call this, as the callback of the messenger that [`collector`] describes.
unsafe extern "system" fn collect(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: Vulkan calls this with valid data and with the pointer that `collector` set, whose
    // borrow outlives the messenger.
    let (message, loader_messages) =
        unsafe { (read_message(data), user.cast::<Mutex<Vec<String>>>().as_ref()) };
    if let Some(Ok(mut loader_messages)) = loader_messages.map(Mutex::lock) {
        loader_messages.push(message.text);
    }
    vk::FALSE
}
