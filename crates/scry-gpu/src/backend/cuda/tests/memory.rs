//! Tests of allocations and transfers.

use super::*;
use crate::api::error::GpuError;
use crate::backend::cuda::memory::Heap;
use crate::core::driver::MemoryKind;

#[test]
fn odd_copy_moves_exactly_its_bytes() {
    let Some(driver) = driver() else { return };
    let up = driver.upload(&[0x0403_0201, 0x0807_0605]);
    let memory = driver.device_memory(12);
    let fill = Command::Fill { dst: range(memory, 12), pattern: 0 };
    let three_bytes = |memory, offset| BufferRange { memory, offset, size: 3 };
    let copy = Command::Copy { src: three_bytes(up, 3), dst: three_bytes(memory, 5) };
    driver.run_steps(&[run(fill), full_barrier(), run(copy)]);
    assert_eq!(driver.words(range(memory, 12)), [0, 0x0605_0400, 0]);
}

#[test]
fn partial_fill_keeps_the_rest() {
    let Some(driver) = driver() else { return };
    let memory = driver.device_memory(32);
    let fill = |offset, size, pattern| {
        let dst = BufferRange { memory, offset, size };
        run(Command::Fill { dst, pattern })
    };
    driver.run_steps(&[fill(0, 32, 1), full_barrier(), fill(8, 12, 7)]);
    assert_eq!(driver.words(range(memory, 32)), [1, 1, 7, 7, 7, 1, 1, 1]);
}

#[test]
fn oversized_allocation_error_names_limit() {
    let Some(driver) = driver() else { return };
    let limit = driver.info().limits.max_buffer_size;
    for size in [limit + 1, 1 << 60, u64::MAX] {
        let error = driver.allocate(MemoryKind::Device, size, "huge").unwrap_err();
        assert!(matches!(error, GpuError::TooLarge(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("max_buffer_size") && text.contains("`huge`"), "{text}");
    }
}

#[test]
fn out_of_memory_error_has_sizes() {
    let Some(driver) = driver() else { return };
    // The context itself uses some of the memory.
    let all = driver.info().limits.max_buffer_size;
    let error = driver.allocate(MemoryKind::Device, all, "everything").unwrap_err();
    assert!(matches!(&error, GpuError::OutOfMemory(error) if error.requested() == Some(all)));
    let text = error.to_string();
    assert!(text.contains("`everything`") && text.contains("bytes are free"), "{text}");
    let memory = driver.device_memory(64);
    driver.run_steps(&[run(Command::Fill { dst: range(memory, 64), pattern: 3 })]);
    assert_eq!(driver.words(range(memory, 64)), [3; 16]);
}

#[test]
fn rejects_invalid_ranges_and_kinds() {
    let Some(driver) = driver() else { return };
    let up = driver.upload(&[1, 2]);
    let device = driver.device_memory(8);
    for (memory, offset, len) in [(up, 5, 4), (up, u64::MAX, 1), (up, 9, 0), (device, 0, 4)] {
        let error = driver.write(memory, offset, &vec![0; len]).unwrap_err();
        assert!(matches!(error, GpuError::Driver(_)), "{error}");
    }
    assert!(driver.read(up, 0, &mut [0; 4]).is_err(), "upload memory cannot be read");
}

#[test]
fn freed_memory_is_reused() {
    let _access = Access::shared();
    let Some(gpu) = gpu() else { return };
    let heap = Heap::new(&gpu).unwrap();
    let size = 256 << 20;
    // More than the device's memory in total, one allocation at a time.
    for _ in 0..2 * gpu.info.memory / size {
        drop(heap.allocate(MemoryKind::Device, size, "").unwrap());
    }
    assert_eq!(heap.allocated(), 0);
    let first = heap.allocate(MemoryKind::Upload, 1000, "").unwrap();
    let second = heap.allocate(MemoryKind::Upload, 1000, "").unwrap();
    assert!(first.address.abs_diff(second.address) >= 1000);
    let address = first.address;
    drop(first);
    let third = heap.allocate(MemoryKind::Readback, 700, "").unwrap();
    assert_eq!(third.address, address, "pinned memory is reused");
}

#[test]
fn previous_context_is_restored() {
    let _access = Access::shared();
    let Some(gpu) = gpu() else { return };
    let current = || {
        let mut context = crate::backend::cuda::ffi::types::Context::NULL;
        // SAFETY: the driver writes a handle.
        let code = unsafe { (gpu.api.ctx_get_current)(&raw mut context) };
        assert_eq!(code.ok(), Ok(()));
        context
    };
    let before = current();
    {
        let _outer = gpu.current().unwrap();
        let _inner = gpu.current().unwrap();
        assert_eq!(current(), gpu.context);
    }
    assert_eq!(current(), before);
}
