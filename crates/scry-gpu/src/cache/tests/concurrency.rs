//! Tests of concurrent writers, and of killed writers.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::thread;
use std::time::Duration;

use super::*;

/// Number of kernels that the processes of a test share.
const SHARED: u64 = 8;

fn shared_key(index: u64) -> KernelKey {
    key(&format!("@compute fn main() {{ x = {index}; }}"))
}

/// Stores new versions of the shared kernels until it is killed.
pub(super) fn write_until_killed(base: &Path) {
    let cache = open(base);
    let mut random = Random(u64::from(std::process::id()));
    println!();
    println!("ready");
    std::io::stdout().flush().unwrap();
    loop {
        let index = random.below(SHARED);
        let version = random.below(1 << 32);
        cache.store(&shared_key(index), PLAIN, &payload(index, version));
    }
}

#[test]
fn fault_38_killed_writers_leave_whole_entries() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    for index in 0..SHARED {
        cache.store(&shared_key(index), PLAIN, &payload(index, 0));
    }
    let mut random = Random(38);
    let mut replaced = false;
    for _ in 0..if is_soak() { 10_000 } else { 25 } {
        let mut command = child("write until killed", folder.path(), "");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.ends_with("ready")), "the writer did not start");
        thread::sleep(Duration::from_micros(random.below(5000)));
        child.kill().unwrap();
        child.wait().unwrap();
        for index in 0..SHARED {
            // Earlier writes survive a kill, so there must be an entry.
            let found = cache.load(&shared_key(index), PLAIN).expect("the entry was lost");
            replaced |= checked_version(&found, index) != 0;
        }
    }
    assert!(replaced, "no writer reached its first store");
}

/// Stores and loads shared kernels, and one kernel per thread, on several threads.
pub(super) fn read_and_write(base: &Path) {
    let cache = open(base);
    let process = u64::from(std::process::id());
    let iterations = if is_soak() { 2000 } else { 40 };
    thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || store_and_load(cache, process * 16 + thread, iterations));
        }
    });
}

fn store_and_load(cache: &DiskCache, writer: u64, iterations: u64) {
    let mut random = Random(writer);
    let own = SHARED + writer;
    for iteration in 0..iterations {
        let index = random.below(SHARED);
        let version = writer << 12 | iteration;
        cache.store(&shared_key(index), PLAIN, &payload(index, version));
        let found = cache.load(&shared_key(index), PLAIN).expect("no process removes entries");
        checked_version(&found, index);
        cache.store(&shared_key(own), PLAIN, &payload(own, version));
        let found = cache.load(&shared_key(own), PLAIN).expect("no process removes entries");
        assert_eq!(checked_version(&found, own), version);
    }
}

#[test]
fn fault_39_concurrent_processes_read_whole_entries() {
    let folder = temporary_folder();
    let base = folder.path();
    let count = if is_soak() { 16 } else { 3 };
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| run_child(&mut child("read and write", base, "")));
        }
    });
    let cache = open(base);
    for index in 0..SHARED {
        if let Some(found) = cache.load(&shared_key(index), PLAIN) {
            checked_version(&found, index);
        }
    }
    let entries = crate::cache::list(&crate::cache::location::root_in(base));
    let expected = count * 4 + 1..=count * 4 + SHARED as usize;
    assert!(expected.contains(&entries.len()), "{} entries", entries.len());
    let temporary = entries.iter().find(|file| file.kind != crate::cache::Kind::Entry);
    assert!(temporary.is_none(), "not removed: {temporary:?}");
}

#[test]
fn fault_39_concurrent_threads_read_whole_entries() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    thread::scope(|scope| {
        for writer in 0..16 {
            let cache = &cache;
            scope.spawn(move || store_and_load(cache, writer, if is_soak() { 2000 } else { 20 }));
        }
    });
}
