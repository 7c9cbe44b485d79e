//! Tests of the size limit, and of the removal of abandoned files.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::*;
use crate::cache::{Kind, entries, location};

fn set_age(path: &Path, age: Duration) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

fn numbered(index: u64) -> KernelKey {
    key(&format!("@compute fn main() {{ x = {index}; }}"))
}

#[test]
fn least_recently_used_entries_are_evicted() {
    let folder = temporary_folder();
    let limit = 1 << 20;
    let cache = DiskCache::open_in(folder.path(), &device_identity(), limit).unwrap();
    let payload = vec![5; 32 << 10];
    for index in 0..100 {
        cache.store(&numbered(index), PLAIN, &payload);
        let age = Duration::from_secs(1000 - index);
        set_age(&path_of(&cache, &numbered(index), PLAIN), age);
        let files = entries::list(&location::root_in(folder.path()));
        let total: u64 = files.iter().map(|file| file.bytes).sum();
        assert!(total <= limit + limit / 4, "{total} bytes are kept");
    }
    assert_eq!(cache.load(&numbered(0), PLAIN), None);
    assert!(cache.load(&numbered(99), PLAIN).is_some());
    assert!(cache.load(&numbered(85), PLAIN).is_some());
}

#[test]
fn recently_used_entries_are_kept() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    let day = Duration::from_secs(24 * 3600);
    for index in 0..3 {
        cache.store(&numbered(index), PLAIN, &[1; 64]);
        let age = day * (10 - index as u32);
        set_age(&path_of(&cache, &numbered(index), PLAIN), age);
    }
    cache.load(&numbered(0), PLAIN).unwrap();
    // The limit is two entries of minimum size; the sweep evicts down to three quarters of it.
    entries::sweep(&location::root_in(folder.path()), 2 * (16 << 10));
    assert!(cache.load(&numbered(0), PLAIN).is_some());
    assert_eq!(cache.load(&numbered(1), PLAIN), None);
}

#[test]
fn fault_38_abandoned_files_are_removed() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    let entry = path_of(&cache, &numbered(0), PLAIN);
    let old = entry.with_extension("12ab-34cd-0.tmp");
    let young = entry.with_extension("12ab-34cd-1.tmp");
    let foreign = entry.with_file_name("notes.tmp");
    for path in [&old, &young, &foreign] {
        fs::write(path, "half an entry").unwrap();
    }
    set_age(&old, Duration::from_secs(3700));
    set_age(&foreign, Duration::from_secs(3700));
    cache.store(&numbered(0), PLAIN, b"payload");
    assert!(!old.exists());
    assert!(young.exists() && foreign.exists() && entry.exists());
}

#[test]
fn fault_44_future_times_are_harmless() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    cache.store(&numbered(0), PLAIN, b"payload");
    let path = path_of(&cache, &numbered(0), PLAIN);
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(1 << 30)).unwrap();
    assert!(cache.load(&numbered(0), PLAIN).is_some());
    entries::sweep(&location::root_in(folder.path()), 1 << 20);
    assert!(path.exists());
}

#[test]
fn clear_removes_only_listed_entries() {
    let folder = temporary_folder();
    let root = location::root_in(folder.path());
    assert_eq!(crate::cache::clear(&root).unwrap(), 0, "the cache does not exist yet");
    let cache = open(folder.path());
    let mut unnamed = numbered(1);
    unnamed.entry = None;
    cache.store(&numbered(0), PLAIN, b"payload");
    cache.store(&unnamed, LINEARISED, b"payload");
    let device = path_of(&cache, &unnamed, LINEARISED).parent().unwrap().to_owned();
    let others = [
        root.join("notes.txt"),
        device.join("notes.txt"),
        device.join("12.kernel"),
        root.join("10de-2335-zz"),
    ];
    for path in &others {
        fs::write(path, "mine").unwrap();
    }
    let listed = entries::list(&root);
    assert!(listed.iter().all(|file| file.kind == Kind::Entry));
    let mut entry_points: Vec<_> = listed.iter().map(|file| file.entry_point()).collect();
    entry_points.sort();
    assert_eq!(entry_points, [None, Some("main".to_owned())]);
    assert_eq!(crate::cache::clear(&root).unwrap(), 2);
    assert!(others.iter().all(|path| path.exists()));
    assert!(entries::list(&root).is_empty());
    for path in &others {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(crate::cache::clear(&root).unwrap(), 0);
    assert!(!device.exists(), "the empty folder was not removed");
}
