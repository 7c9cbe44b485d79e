//! `scry cache`: the compiled kernels on disk.

use std::collections::BTreeMap;
use std::time::SystemTime;

use scry_gpu::disk_cache::{self, CacheEntry};
use serde_json::{Value, json};

use super::{size_text, table};
use crate::args::Cache;
use crate::report::{Failure, Report};

/// Lists or clears.
pub fn run(action: Cache) -> Result<Report, Failure> {
    let Some(folder) = disk_cache::directory() else {
        return Ok(Report::new(
            "the cache is off, or there is no home folder to keep it in\n".to_owned(),
            json!({ "folder": null, "entries": [], "removed": 0 }),
        ));
    };
    let folder = folder.display().to_string();
    match action {
        Cache::Ls => Ok(list(&folder, &disk_cache::entries())),
        Cache::Clear => {
            let removed =
                disk_cache::clear().map_err(|error| Failure::Work(format!("{folder}: {error}")))?;
            Ok(Report::new(
                format!("removed {removed} compiled kernels from {folder}\n"),
                json!({ "folder": folder, "removed": removed }),
            ))
        }
    }
}

fn list(folder: &str, entries: &[CacheEntry]) -> Report {
    let mut devices: BTreeMap<&str, Vec<&CacheEntry>> = BTreeMap::new();
    for entry in entries {
        devices.entry(&entry.device_folder).or_default().push(entry);
    }
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut text = format!("{folder}: {} compiled kernels, {}\n", entries.len(), size_text(total));
    for (device, entries) in devices {
        text.push_str(&format!("{device}\n"));
        let rows: Vec<Vec<String>> = entries.into_iter().map(row).collect();
        text.push_str(&table(&rows, "    "));
    }
    let entries: Vec<Value> = entries.iter().map(to_json).collect();
    Report::new(text, json!({ "folder": folder, "entries": entries }))
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
        size_text(entry.bytes),
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
