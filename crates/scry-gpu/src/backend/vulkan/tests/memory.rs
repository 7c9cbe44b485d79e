//! Tests of allocations, writes, reads, fills and copies.

use super::*;
use crate::api::error::GpuError;

#[test]
fn copy_round_trip() {
    let Some(driver) = driver() else { return };
    let words: Vec<u32> = (0..1000).map(|i| i * 7919).collect();
    let up = driver.upload(&words);
    let memory = driver.device_memory(4000);
    driver.run_steps(&[copy(range(up, 4000), range(memory, 4000))]);
    assert_eq!(driver.words(range(memory, 4000)), words);
}

#[test]
fn copies_change_only_their_range() {
    let Some(driver) = driver() else { return };
    let up = driver.upload(&[0x0403_0201, 0x0807_0605]);
    let memory = driver.device_memory(12);
    let fill = Command::Fill { dst: range(memory, 12), pattern: 0 };
    let three_odd_bytes = |memory, offset| BufferRange { memory, offset, size: 3 };
    let odd = copy(three_odd_bytes(up, 3), three_odd_bytes(memory, 5));
    driver.run_steps(&[run(fill), full_barrier(), odd]);
    assert_eq!(
        driver.words(range(memory, 12)),
        [0, 0x0605_0400, 0],
        "three bytes are at 5, 6 and 7, and nothing else changed"
    );
}

#[test]
fn fills_change_only_their_range() {
    let Some(driver) = driver() else { return };
    let memory = driver.device_memory(32);
    let fill = |offset, size, pattern| {
        let dst = BufferRange { memory, offset, size };
        run(Command::Fill { dst, pattern })
    };
    driver.run_steps(&[fill(0, 32, 1), full_barrier(), fill(8, 12, 0xdead_beef)]);
    let x = 0xdead_beef;
    assert_eq!(driver.words(range(memory, 32)), [1, 1, x, x, x, 1, 1, 1]);
}

#[test]
fn oversized_allocations_name_the_limit() {
    let Some(driver) = driver() else { return };
    let limit = driver.info().limits.max_buffer_size;
    for size in [limit + 1, 1 << 40, u64::MAX] {
        let error = driver.allocate(MemoryKind::Device, size, "huge").unwrap_err();
        assert!(matches!(error, GpuError::TooLarge(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("max_buffer_size"), "{text}");
        assert!(text.contains("`huge`"), "{text}");
    }
    driver.device_memory(64);
}

#[test]
fn out_of_memory_lists_largest_allocations() {
    let Some(driver) = driver() else { return };
    let largest = driver.allocate(MemoryKind::Device, 3 << 20, "the largest");
    let text = driver.heap.out_of_memory(123_456, "wanted").to_string();
    for part in ["123456 bytes", "`wanted`", "`the largest` (3145728 bytes)"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    driver.free(largest.unwrap());
}

#[test]
fn reused_allocations_have_their_new_label() {
    let Some(driver) = driver() else { return };
    let size = 64 << 20;
    // Software devices do not cache buffers, unless the limit is raised.
    driver.heap.set_cache_limit(2 * size);
    let first = driver.allocate(MemoryKind::Device, size, "first").unwrap();
    driver.free(first);
    let second = driver.allocate(MemoryKind::Device, size, "second").unwrap();
    let text = driver.heap.out_of_memory(1, "wanted").to_string();
    assert!(text.contains("`second` (67108864 bytes)") && !text.contains("`first`"), "{text}");
    driver.free(second);
}

#[test]
fn invalid_host_accesses_are_rejected() {
    let Some(driver) = driver() else { return };
    let up = driver.upload(&[1, 2]);
    let device = driver.device_memory(8);
    for (memory, offset, len) in [(up, 5, 4), (up, u64::MAX, 1), (up, 9, 0), (device, 0, 4)] {
        let error = Driver::write(&driver, memory, offset, &vec![0; len]).unwrap_err();
        assert!(matches!(error, GpuError::Driver(_)), "{error}");
    }
    let read = Driver::read(&driver, up, 0, &mut [0; 4]);
    assert!(read.is_err(), "upload memory cannot be read");
}

#[test]
fn invalid_steps_are_rejected() {
    let Some(driver) = driver() else { return };
    let up = driver.upload(&[5, 6]);
    let stale = driver.device_memory(8);
    driver.free(stale);
    let all = range(up, 8);
    let overlapping = BufferRange { offset: 2, size: 4, ..all };
    let invalid = [
        copy(all, range(stale, 8)),
        copy(all, range(up, 16)),
        copy(range(up, 4), overlapping),
        copy(all, range(up, 4)),
        run(Command::Fill { dst: range(up, 6), pattern: 0 }),
    ];
    for step in invalid {
        let error = driver.submit(Work::Once(&[step]), false).unwrap_err();
        assert!(matches!(error, GpuError::Driver(_)), "{error}");
    }
    assert_eq!(driver.words(all), [5, 6]);
}

#[test]
fn frees_return_all_memory() {
    let Some(driver) = driver() else { return };
    let size = 8 << 20;
    let total = 4 * driver.info().memory;
    // Four times the memory in total, or 4000 MiB if that is less, in small allocations.
    for _ in 0..(total / size).min(500) {
        let memory = driver.device_memory(size);
        driver.free(memory);
    }
    assert_eq!(driver.heap.allocated(), 0);
}

#[test]
fn live_allocations_never_overlap() {
    let Some(driver) = driver() else { return };
    let size = |i: u64| 16 + i % 13 * 4096 + i % 3 * 4;
    let fill = |memory, i| {
        let dst = range(memory, size(i));
        run(Command::Fill { dst, pattern: i as u32 })
    };
    let mut live: Vec<(u64, MemoryId)> = Vec::new();
    for i in 0..200 {
        let memory = driver.device_memory(size(i));
        driver.run_steps(&[fill(memory, i)]);
        live.push((i, memory));
        if i % 3 == 2 {
            let (_, freed) = live.swap_remove(i as usize % live.len());
            driver.free(freed);
        }
    }
    for (i, memory) in live {
        let words = driver.words(range(memory, size(i)));
        assert!(words.iter().all(|word| *word == i as u32), "allocation {i} was overwritten");
        driver.free(memory);
    }
    assert_eq!(driver.heap.allocated(), 0);
}
