//! Vulkan's validation layer, switched on by `SCRY_VALIDATE=1`: every message goes to the log, to
//! standard error and to the file that `SCRY_VALIDATE_LOG` names, and is counted.

use std::ffi::{CStr, c_void};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

/// The layer that checks every call.
pub(crate) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// What the layer checks beyond its defaults.
pub(crate) const EXTRA_CHECKS: &[vk::ValidationFeatureEnableEXT] =
    &[vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];

/// Messages that are wrong about Vulkan newer than the layer: the message id, and the reason.
const EXCUSED: &[(&str, &str)] = &[];

/// Warnings and errors of the layer since the process began, the excused ones left out.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Number of warnings and errors since the process began.
#[cfg(test)]
pub(crate) fn message_count() -> u64 {
    MESSAGES.load(Ordering::Relaxed)
}

/// True if the environment asks for validation.
pub(crate) fn wanted() -> bool {
    std::env::var_os("SCRY_VALIDATE").is_some_and(|value| value == "1")
}

/// A messenger that reports what the layer finds.
pub(crate) fn reporter() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    messenger(Some(report))
}

/// A messenger that collects what the loader and the drivers complain about. It must not outlive
/// `complaints`.
pub(crate) fn collector(
    complaints: &Mutex<Vec<String>>,
) -> vk::DebugUtilsMessengerCreateInfoEXT<'_> {
    messenger(Some(collect)).user_data(std::ptr::from_ref(complaints).cast_mut().cast())
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

/// A message as Vulkan hands it to a callback.
struct Message {
    id: String,
    text: String,
}

/// # Safety
/// `data` is null or what Vulkan hands to a messenger's callback.
unsafe fn message(data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>) -> Message {
    // SAFETY: valid or null by the contract, and Vulkan's strings end in a zero byte.
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

/// # Safety
/// For Vulkan to call, as the callback of a messenger.
unsafe extern "system" fn report(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: Vulkan calls this with valid data.
    let Message { id, text } = unsafe { message(data) };
    if let Some((_, reason)) = EXCUSED.iter().find(|(excused, _)| *excused == id) {
        log::debug!("vulkan validation: {id}, excused because {reason}");
        return vk::FALSE;
    }
    MESSAGES.fetch_add(1, Ordering::Relaxed);
    let is_error = severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
    let severity = if is_error { "ERROR" } else { "WARNING" };
    let line = format!("vulkan validation: {severity} {id}: {text}");
    log::error!("{line}");
    // Nothing may unwind into the driver: failures to write are let go.
    let _ = writeln!(std::io::stderr(), "{line}");
    if let Some(path) = std::env::var_os("SCRY_VALIDATE_LOG") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
    vk::FALSE
}

/// # Safety
/// For Vulkan to call, as the callback of the messenger that [`collector`] describes.
unsafe extern "system" fn collect(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: Vulkan calls this with valid data, and with the pointer that `collector` gave, whose
    // borrow outlives the messenger.
    let (message, complaints) =
        unsafe { (message(data), user.cast::<Mutex<Vec<String>>>().as_ref()) };
    if let Some(Ok(mut complaints)) = complaints.map(Mutex::lock) {
        complaints.push(message.text);
    }
    vk::FALSE
}
