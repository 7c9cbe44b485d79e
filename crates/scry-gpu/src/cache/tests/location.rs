//! Tests of the configured location of the cache.

use std::ffi::OsString;

use super::*;
use crate::cache::disk_cache;
use crate::cache::location::{Location, configured_location, process_location};

/// Returns the location for these environment variables.
fn location_with(variables: &[(&str, &str)]) -> Location {
    configured_location(|name| {
        let (_, value) = variables.iter().find(|(key, _)| *key == name)?;
        Some(OsString::from(value))
    })
}

#[test]
fn environment_overrides_the_cache_folder() {
    for off in ["", "off", "OFF"] {
        assert_eq!(location_with(&[("SCRY_CACHE_DIR", off), ("HOME", "/home/u")]), Location::Off);
    }
    let given = std::env::temp_dir().join("kernels");
    let text = given.to_str().unwrap();
    assert_eq!(
        location_with(&[("SCRY_CACHE_DIR", text), ("HOME", "/home/u")]),
        Location::In(given)
    );
    let Location::In(path) = location_with(&[("SCRY_CACHE_DIR", "kernels")]) else {
        panic!("a relative folder is a folder");
    };
    assert!(path.is_absolute() && path.ends_with("kernels"));
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn default_folder_is_the_platforms() {
    let home = ("HOME", "/home/u");
    assert_eq!(location_with(&[home]), Location::In("/home/u/.cache".into()));
    assert_eq!(location_with(&[home, ("XDG_CACHE_HOME", "/c")]), Location::In("/c".into()));
    // The specification requires relative folders to be ignored.
    assert_eq!(
        location_with(&[home, ("XDG_CACHE_HOME", "c")]),
        Location::In("/home/u/.cache".into())
    );
    assert_eq!(
        location_with(&[home, ("XDG_CACHE_HOME", "")]),
        Location::In("/home/u/.cache".into())
    );
    assert_eq!(location_with(&[("HOME", "")]), Location::NoHome);
    assert_eq!(location_with(&[]), Location::NoHome);
}

/// Prints the results of the public functions, in a process with its own environment.
pub(super) fn list_and_print() {
    if let Some(cache) = DiskCache::open(&device_identity()) {
        cache.store(&key("@compute fn main() {}"), PLAIN, b"payload");
    }
    println!("\nlocation {:?}", process_location());
    println!("directory {:?}", disk_cache::directory());
    for entry in disk_cache::entries() {
        assert!(entry.path.starts_with(disk_cache::directory().unwrap()));
        assert!(entry.bytes > 0);
        println!("entry {} {:?}", entry.device_folder, entry.entry_point);
    }
    println!("cleared {}", disk_cache::clear().unwrap());
    assert!(disk_cache::entries().is_empty());
}

#[test]
fn public_functions_respect_the_environment() {
    let folder = temporary_folder();
    let text = run_child(child("list", folder.path(), "").env("SCRY_CACHE_DIR", folder.path()));
    let name = device_identity().folder_name();
    assert!(text.contains(&format!("{:?}", folder.path().join("scry-gpu"))), "{text}");
    assert!(text.contains(&format!("entry {name} Some(\"main\")")), "{text}");
    assert!(text.contains("cleared 1"), "{text}");
}

#[test]
fn disabled_caches_have_no_entries() {
    let folder = temporary_folder();
    let mut command = child("list", folder.path(), "");
    command.current_dir(folder.path());
    let text = run_child(command.env("SCRY_CACHE_DIR", "off"));
    assert!(text.contains("directory None") && text.contains("cleared 0"), "{text}");
    assert!(!text.contains("entry "), "{text}");
    assert!(names(folder.path()).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn relative_folder_needs_current_folder() {
    let folder = temporary_folder();
    let mut command = child("list", folder.path(), "mkdir gone; cd gone; rmdir ../gone");
    command.current_dir(folder.path()).env("SCRY_CACHE_DIR", "kernels");
    let text = run_child(&mut command);
    assert!(text.contains("location NoCurrentFolder(\"kernels\")"), "{text}");
    assert!(text.contains("directory None") && text.contains("cleared 0"), "{text}");
    assert!(names(folder.path()).is_empty());
}
