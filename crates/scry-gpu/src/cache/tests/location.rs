//! Where the environment puts the cache.

use std::ffi::OsString;

use super::*;
use crate::cache::disk_cache;
use crate::cache::location::{Place, place};

fn with(variables: &[(&str, &str)]) -> Place {
    place(|name| {
        let (_, value) = variables.iter().find(|(key, _)| *key == name)?;
        Some(OsString::from(value))
    })
}

#[test]
fn an_explicit_folder_goes_first_and_off_means_off() {
    for off in ["", "off", "OFF"] {
        assert_eq!(with(&[("SCRY_CACHE_DIR", off), ("HOME", "/home/u")]), Place::Off);
    }
    let given = std::env::temp_dir().join("kernels");
    let text = given.to_str().unwrap();
    assert_eq!(with(&[("SCRY_CACHE_DIR", text), ("HOME", "/home/u")]), Place::In(given));
    let Place::In(path) = with(&[("SCRY_CACHE_DIR", "kernels")]) else {
        panic!("a relative folder is a folder");
    };
    assert!(path.is_absolute() && path.ends_with("kernels"));
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn the_folder_for_caches_is_the_platforms() {
    let home = ("HOME", "/home/u");
    assert_eq!(with(&[home]), Place::In("/home/u/.cache".into()));
    assert_eq!(with(&[home, ("XDG_CACHE_HOME", "/c")]), Place::In("/c".into()));
    // The specification has relative folders ignored.
    assert_eq!(with(&[home, ("XDG_CACHE_HOME", "c")]), Place::In("/home/u/.cache".into()));
    assert_eq!(with(&[home, ("XDG_CACHE_HOME", "")]), Place::In("/home/u/.cache".into()));
    assert_eq!(with(&[("HOME", "")]), Place::Nowhere);
    assert_eq!(with(&[]), Place::Nowhere);
}

/// What the public module says in a process with an environment of its own.
pub(super) fn list_and_print() {
    if let Some(cache) = DiskCache::open(&device_identity()) {
        cache.store(&key("@compute fn main() {}"), PLAIN, b"payload");
    }
    println!("\ndirectory {:?}", disk_cache::directory());
    for entry in disk_cache::entries() {
        assert!(entry.path.starts_with(disk_cache::directory().unwrap()));
        assert!(entry.bytes > 0);
        println!("entry {} {:?}", entry.device_folder, entry.entry_point);
    }
    println!("cleared {}", disk_cache::clear().unwrap());
    assert!(disk_cache::entries().is_empty());
}

#[test]
fn the_public_module_lists_and_clears_what_the_environment_names() {
    let folder = temporary_folder();
    let text = run_child(child("list", folder.path(), "").env("SCRY_CACHE_DIR", folder.path()));
    let name = device_identity().folder_name();
    assert!(text.contains(&format!("{:?}", folder.path().join("scry-gpu"))), "{text}");
    assert!(text.contains(&format!("entry {name} Some(\"main\")")), "{text}");
    assert!(text.contains("cleared 1"), "{text}");
}

#[test]
fn a_cache_that_is_off_has_no_folder_and_no_entries() {
    let folder = temporary_folder();
    let mut command = child("list", folder.path(), "");
    command.current_dir(folder.path());
    let text = run_child(command.env("SCRY_CACHE_DIR", "off"));
    assert!(text.contains("directory None") && text.contains("cleared 0"), "{text}");
    assert!(!text.contains("entry "), "{text}");
    assert!(names(folder.path()).is_empty());
}
