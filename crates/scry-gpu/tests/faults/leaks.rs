//! Tests of fault 7: creating and dropping many objects does not accumulate resources.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use scry_gpu::Device;
use scry_test_support::null;

use super::child::in_child;
use super::devices::{check_works, selectors};

/// System resources that this process uses.
#[derive(Debug)]
struct Resources {
    resident_bytes: u64,
    open_files: usize,
    threads: usize,
}

fn current_resources() -> Resources {
    let count = |path| fs::read_dir(path).map_or(0, Iterator::count);
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    Resources {
        resident_bytes: pages * 4096,
        open_files: count("/proc/self/fd"),
        threads: count("/proc/self/task"),
    }
}

/// Returns the numbers of objects to create in two rounds: the first fills every cache; the second
/// creates `soak` objects if `SCRY_SOAK` is set, else as many as the first.
fn rounds(short: usize, soak: usize) -> [usize; 2] {
    match std::env::var_os("SCRY_SOAK") {
        Some(_) => [short, soak],
        None => [short, short],
    }
}

/// Creates objects in two rounds. Checks that the process uses no more files and threads after the
/// second one, and at most 4 MiB more memory, plus `bytes_per_object` for each object.
fn assert_no_growth(
    what: &str,
    rounds: [usize; 2],
    bytes_per_object: u64,
    mut make: impl FnMut(usize),
) {
    (0..rounds[0]).for_each(&mut make);
    let before = current_resources();
    (0..rounds[1]).for_each(&mut make);
    let after = current_resources();
    println!("{what}: {before:?}, after {} more {after:?}", rounds[1]);
    assert!(after.open_files <= before.open_files, "{what}: {before:?} {after:?}");
    assert!(after.threads <= before.threads, "{what}: {before:?} {after:?}");
    let allowed = (4 << 20) + bytes_per_object * rounds[1] as u64;
    assert!(after.resident_bytes < before.resident_bytes + allowed, "{what}: {before:?} {after:?}");
}

#[test]
fn fault_07_small_buffers_do_not_accumulate() {
    let name = "leaks::fault_07_small_buffers_do_not_accumulate";
    in_child(name, Duration::from_secs(300), || {
        for selector in selectors() {
            let gpu = Device::open(&selector).unwrap();
            assert_no_growth(&selector, rounds(2000, 100_000), 0, |i| {
                let buffer = gpu.alloc::<u32>(1 + i % 7).unwrap();
                if i % 16 == 0 {
                    buffer.fill(i as u32).unwrap();
                    assert_eq!(buffer.download().unwrap()[0], i as u32);
                }
            });
            let buffers: Vec<_> = (0..2000).map(|i| gpu.upload(&[i]).unwrap()).collect();
            assert_eq!(buffers[1234].download().unwrap(), [1234]);
            drop(buffers);
            check_works(&gpu);
        }
    });
}

#[test]
fn fault_07_devices_do_not_accumulate() {
    let name = "leaks::fault_07_devices_do_not_accumulate";
    in_child(name, Duration::from_secs(500), || {
        for selector in selectors() {
            // Vulkan and CUDA drivers keep some memory for each device that was opened.
            let driver_bytes = if selector == "null" { 0 } else { 8 << 10 };
            assert_no_growth(&selector, rounds(40, 10_000), driver_bytes, |i| {
                let gpu = Device::open(&selector).unwrap();
                if i % 4 == 0 {
                    check_works(&gpu);
                }
            });
        }
    });
}

#[test]
fn fault_07_kernels_do_not_accumulate() {
    let name = "leaks::fault_07_kernels_do_not_accumulate";
    in_child(name, Duration::from_secs(300), || {
        // More kernels than the memory cache can contain, so that old ones are evicted.
        let gpu = null();
        let mut number = 0;
        assert_no_growth("kernels", rounds(600, 20_000), 0, |_| {
            number += 1;
            let source =
                format!("@compute @workgroup_size(1) fn nothing() {{ let x = {number}; }}");
            gpu.compile(&source).unwrap();
        });
    });
}
