//! Fault 7: many small objects created and dropped, and the resources of the process after that.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use scry_gpu::Device;

use super::child::in_child;
use super::devices::{check_works, selectors};

/// The system resources of the process.
#[derive(Debug)]
struct Holding {
    resident: u64,
    files: usize,
    threads: usize,
}

fn holding() -> Holding {
    let count = |path| fs::read_dir(path).map_or(0, Iterator::count);
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    Holding {
        resident: pages * 4096,
        files: count("/proc/self/fd"),
        threads: count("/proc/self/task"),
    }
}

/// Numbers of objects to create: some to warm up every cache, then many.
fn rounds(short: usize, long: usize) -> [usize; 2] {
    match std::env::var_os("SCRY_SOAK") {
        Some(_) => [short, long],
        None => [short, short],
    }
}

/// Creates objects in two rounds; the second one must not increase the process's resources.
fn does_not_grow(what: &str, rounds: [usize; 2], per_thing: u64, mut make: impl FnMut(usize)) {
    (0..rounds[0]).for_each(&mut make);
    let before = holding();
    (0..rounds[1]).for_each(&mut make);
    let after = holding();
    println!("{what}: {before:?}, after {} more {after:?}", rounds[1]);
    assert!(after.files <= before.files, "{what}: {before:?} {after:?}");
    assert!(after.threads <= before.threads, "{what}: {before:?} {after:?}");
    let allowed = (4 << 20) + per_thing * rounds[1] as u64;
    assert!(after.resident < before.resident + allowed, "{what}: {before:?} {after:?}");
}

#[test]
fn fault_07_many_small_buffers_come_and_go() {
    let name = "leaks::fault_07_many_small_buffers_come_and_go";
    in_child(name, Duration::from_secs(300), || {
        for selector in selectors() {
            let gpu = Device::open(&selector).unwrap();
            does_not_grow(&selector, rounds(2000, 100_000), 0, |i| {
                let buffer = gpu.alloc::<u32>(1 + i % 7).unwrap();
                if i % 16 == 0 {
                    buffer.fill(i as u32).unwrap();
                    assert_eq!(buffer.download().unwrap()[0], i as u32);
                }
            });
            let held: Vec<_> = (0..2000).map(|i| gpu.upload(&[i]).unwrap()).collect();
            assert_eq!(held[1234].download().unwrap(), [1234]);
            drop(held);
            check_works(&gpu);
        }
    });
}

#[test]
fn fault_07_many_devices_come_and_go() {
    let name = "leaks::fault_07_many_devices_come_and_go";
    in_child(name, Duration::from_secs(500), || {
        for selector in selectors() {
            // Memory that the driver keeps for each device cannot be freed here.
            let drivers = if selector == "null" { 0 } else { 8 << 10 };
            does_not_grow(&selector, rounds(40, 10_000), drivers, |i| {
                let gpu = Device::open(&selector).unwrap();
                if i % 4 == 0 {
                    check_works(&gpu);
                }
            });
        }
    });
}

#[test]
fn fault_07_many_kernels_come_and_go() {
    let name = "leaks::fault_07_many_kernels_come_and_go";
    in_child(name, Duration::from_secs(300), || {
        // More than the cache holds, so that old ones are evicted.
        let gpu = super::devices::null();
        let mut made = 0;
        does_not_grow("kernels", rounds(600, 20_000), 0, |_| {
            made += 1;
            let source = format!("@compute @workgroup_size(1) fn nothing() {{ let x = {made}; }}");
            gpu.compile(&source).unwrap();
        });
    });
}
