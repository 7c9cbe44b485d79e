//! Vulkan's validation layer, switched on by `SCRY_VALIDATE=1`: every message goes to the log, to
//! standard error and to the file that `SCRY_VALIDATE_LOG` names, and is counted.

use std::ffi::{CStr, c_char, c_void};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::vk;

/// The layer that checks every call.
pub(super) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// What the layer checks beyond its defaults.
pub(super) const EXTRA_CHECKS: &[i32] = &[vk::VALIDATE_SYNCHRONIZATION];

/// Messages that are wrong about Vulkan newer than the layer: the message id, and the reason.
const EXCUSED: &[(&str, &str)] = &[];

/// Warnings and errors of the layer since the process began, the excused ones left out.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Number of warnings and errors since the process began.
#[cfg(test)]
pub(super) fn message_count() -> u64 {
    MESSAGES.load(Ordering::Relaxed)
}

/// True if the environment asks for validation.
pub(super) fn wanted() -> bool {
    std::env::var_os("SCRY_VALIDATE").is_some_and(|value| value == "1")
}

/// A messenger that reports what the layer finds.
pub(super) fn reporter() -> vk::MessengerCreateInfo {
    messenger(report)
}

/// A messenger that collects what the loader and the drivers complain about. It must not outlive
/// `complaints`.
pub(super) fn collector(complaints: &Mutex<Vec<String>>) -> vk::MessengerCreateInfo {
    let user_data = std::ptr::from_ref(complaints).cast_mut().cast();
    vk::MessengerCreateInfo { user_data, ..messenger(collect) }
}

fn messenger(callback: vk::MessengerCallback) -> vk::MessengerCreateInfo {
    use vk::{MessageSeverityFlags as Severity, MessageTypeFlags as Type};
    vk::MessengerCreateInfo {
        severity: Severity::ERROR | Severity::WARNING,
        kind: Type::GENERAL | Type::VALIDATION | Type::PERFORMANCE,
        callback: Some(callback),
        ..vk::structure()
    }
}

/// A message as Vulkan hands it to a callback.
struct Message {
    id: String,
    text: String,
}

/// # Safety
/// `data` is null or what Vulkan hands to a messenger's callback.
unsafe fn message(data: *const vk::MessengerCallbackData) -> Message {
    // SAFETY: valid or null by the contract.
    match unsafe { data.as_ref() } {
        // SAFETY: the texts are Vulkan's.
        Some(data) => unsafe {
            Message { id: owned(data.message_id_name), text: owned(data.message) }
        },
        None => Message { id: String::new(), text: String::new() },
    }
}

/// # Safety
/// `text` is null, or ends in a zero byte.
unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// # Safety
/// For Vulkan to call, as the callback of a messenger.
unsafe extern "system" fn report(
    severity: vk::MessageSeverityFlags,
    _kind: vk::MessageTypeFlags,
    data: *const vk::MessengerCallbackData,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: Vulkan calls this with valid data.
    let Message { id, text } = unsafe { message(data) };
    if let Some((_, reason)) = EXCUSED.iter().find(|(excused, _)| *excused == id) {
        log::debug!("vulkan validation: {id}, excused because {reason}");
        return vk::FALSE;
    }
    MESSAGES.fetch_add(1, Ordering::Relaxed);
    let severity = match severity.contains(vk::MessageSeverityFlags::ERROR) {
        true => "ERROR",
        false => "WARNING",
    };
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
    _severity: vk::MessageSeverityFlags,
    _kind: vk::MessageTypeFlags,
    data: *const vk::MessengerCallbackData,
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
