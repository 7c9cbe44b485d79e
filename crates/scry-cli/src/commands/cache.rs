//! `scry cache`: the compiled kernels on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use scry_gpu::disk_cache::{self, CacheEntry};
use serde_json::{Value, json};

use super::{format_bytes, table};
use crate::args::Cache;
use crate::report::{Failure, Report};

/// The devices that use the cache, as a part of messages.
const CACHING_DEVICES: &str = "Vulkan and CUDA devices store the kernels that their drivers \
                               compile, the CPU device and Mesa's lavapipe do not";

/// Lists or deletes the kernels.
pub fn run(action: Cache) -> Result<Report, Failure> {
    let Some(folder) = disk_cache::directory() else {
        return Ok(no_folder_report(action));
    };
    match action {
        Cache::Ls => Ok(list_report(&folder, &disk_cache::entries())),
        Cache::Clear => {
            let folder = folder.display().to_string();
            let removed = disk_cache::clear()
                .map_err(|error| Failure::Runtime(format!("{folder}: {error}")))?;
            Ok(Report::new(
                format!("removed {removed} compiled kernels from {folder}\n"),
                json!({ "folder": folder, "removed": removed }),
            ))
        }
    }
}

/// Reports why there is no cache folder.
fn no_folder_report(action: Cache) -> Report {
    const VARIABLE: &str = "SCRY_CACHE_DIR";
    let (cause, reason) = match std::env::var_os(VARIABLE) {
        Some(value) if value.is_empty() => {
            ("disabled", format!("the cache is disabled: {VARIABLE} is set to an empty value"))
        }
        Some(value) if value.eq_ignore_ascii_case("off") => {
            ("disabled", format!("the cache is disabled: {VARIABLE}={}", value.display()))
        }
        // `disk_cache::directory` finds a folder for other values, unless they are relative and
        // cannot be made absolute.
        Some(value) => {
            let path = value.display();
            let reason = format!(
                "there is no cache: {VARIABLE}={path} is a relative path, and the current folder \
                 does not exist"
            );
            ("no-current-folder", reason)
        }
        None => ("no-home-folder", "there is no cache: the home folder is unknown".to_owned()),
    };
    let help = match cause {
        "disabled" => format!("unset {VARIABLE}, or set it to a folder"),
        "no-current-folder" => format!("set {VARIABLE} to an absolute path"),
        _ => format!("set {VARIABLE} to a folder"),
    };
    let json = match action {
        Cache::Ls => json!({ "folder": null, "entries": [], "empty_because": cause }),
        Cache::Clear => json!({ "folder": null, "removed": 0 }),
    };
    Report::new(format!("{reason}; help: {help}\n"), json)
}

fn list_report(folder: &Path, entries: &[CacheEntry]) -> Report {
    let cause = entries.is_empty().then(|| why_empty(folder));
    let path = folder.display();
    let mut devices: BTreeMap<&str, Vec<&CacheEntry>> = BTreeMap::new();
    for entry in entries {
        devices.entry(&entry.device_folder).or_default().push(entry);
    }
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut text = match &cause {
        Some((_, reason)) => format!("{path}: 0 compiled kernels: {reason}\n"),
        None => format!("{path}: {} compiled kernels, {}\n", entries.len(), format_bytes(total)),
    };
    for (device, entries) in devices {
        text.push_str(&format!("{device}\n"));
        let rows: Vec<Vec<String>> = entries.into_iter().map(row).collect();
        text.push_str(&table(&rows, "    "));
    }
    let entries: Vec<Value> = entries.iter().map(to_json).collect();
    let cause = cause.map(|(name, _)| name);
    let folder = path.to_string();
    Report::new(text, json!({ "folder": folder, "entries": entries, "empty_because": cause }))
}

/// Returns the reason why a folder is empty: a name for JSON, and a text.
fn why_empty(folder: &Path) -> (&'static str, String) {
    match fs::read_dir(folder) {
        Ok(_) => ("no-kernels", format!("no kernel is stored; {CACHING_DEVICES}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            ("no-folder", format!("the folder does not exist yet; {CACHING_DEVICES}"))
        }
        Err(error) => ("unreadable", format!("the folder cannot be read: {error}")),
    }
}

fn row(entry: &CacheEntry) -> Vec<String> {
    let age = SystemTime::now().duration_since(entry.modified).unwrap_or_default().as_secs();
    let age = match age {
        0..120 => format!("{age} s ago"),
        120..7200 => format!("{} min ago", age / 60),
        7200..172_800 => format!("{} h ago", age / 3600),
        _ => format!("{} days ago", age / 86_400),
    };
    let name = entry.path.file_name().map(|name| name.to_string_lossy().into_owned());
    vec![
        entry.entry_point.clone().unwrap_or_else(|| "(only entry point)".to_owned()),
        format_bytes(entry.bytes),
        age,
        name.unwrap_or_default(),
    ]
}

fn to_json(entry: &CacheEntry) -> Value {
    let modified = entry.modified.duration_since(SystemTime::UNIX_EPOCH).ok();
    json!({
        "path": entry.path.display().to_string(),
        "device": entry.device_folder,
        "bytes": entry.bytes,
        "modified_unix_seconds": modified.map(|since| since.as_secs()),
        "entry_point": entry.entry_point,
    })
}
