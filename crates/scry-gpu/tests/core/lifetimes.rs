//! Tests of lifetimes: objects may be dropped in any order, also while they are in use.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use std::time::Duration;

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{GpuError, MemoryUsage};
use scry_test_support::{STEP, null};

#[test]
fn batch_outlives_its_objects() {
    let gpu = null();
    let mut batch = gpu.batch();
    let download;
    {
        let kernel = gpu.compile(STEP).unwrap();
        let (a, b) = (gpu.upload(&[1u32; 64]).unwrap(), gpu.alloc::<u32>(64).unwrap());
        batch.run(&kernel, &[&a, &b], 64).unwrap();
        download = batch.download(&a).unwrap();
    }
    drop(gpu);
    let ticket = batch.submit_async().unwrap();
    ticket.wait().unwrap();
    drop(ticket);
    assert_eq!(download.get().unwrap(), [1; 64]);
}

#[test]
fn dropped_memory_is_freed_after_work() {
    let gpu = null();
    gpu.upload(&[1u8; 100]).unwrap().download().unwrap();
    gpu.wait().unwrap();
    let before = gpu.memory_usage();
    for _ in 0..100 {
        let buffer = gpu.alloc::<u8>(1000).unwrap();
        buffer.fill(1).unwrap();
    }
    gpu.wait().unwrap();
    let after = gpu.memory_usage();
    assert_eq!((after.allocations, after.bytes), (before.allocations, before.bytes));
    assert!(after.peak_bytes >= before.bytes + 1000);
}

#[test]
fn unsubmitted_download_reports_an_error() {
    let gpu = null();
    let buffer = gpu.upload(&[1u32]).unwrap();
    let mut batch = gpu.batch();
    let download = batch.download(&buffer).unwrap();
    drop(batch);
    assert!(matches!(
        download.get(),
        Err(GpuError::BufferAccess(error)) if error.operation() == "Download::get"
    ));
}

#[test]
fn fault_28_silent_device_times_out() {
    let plan = FaultPlan::new(Fault::Hang, 0);
    let gpu = open_with_faults("null", &plan).unwrap();
    let buffer = gpu.upload(&[1u32; 4]).unwrap();
    let ticket = gpu.batch().submit_async().unwrap();
    assert!(ticket.is_ready().unwrap(), "an empty batch is done at once");
    let mut batch = gpu.batch();
    batch.fill(&buffer, 2).unwrap();
    let ticket = batch.submit_async().unwrap();
    assert!(!ticket.wait_timeout(Duration::from_millis(20)).unwrap());
    assert!(!ticket.is_ready().unwrap());
    // A wait without a limit is cancelled from another thread; the device stays usable.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| buffer.download());
        while !waiting.is_finished() {
            gpu.interrupt();
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(matches!(waiting.join().unwrap(), Err(GpuError::Interrupted(_))));
    });
    assert!(buffer.write(&[3; 4]).is_ok());
    // A time limit ends the wait and abandons the device.
    gpu.set_time_limit(Some(Duration::from_millis(60)));
    assert!(matches!(buffer.download(), Err(GpuError::Timeout(_))));
    assert!(matches!(buffer.download(), Err(GpuError::DeviceLost(_))));
    assert!(matches!(gpu.alloc::<u32>(4), Err(GpuError::DeviceLost(_))));
}

#[test]
fn new_device_uses_no_memory() {
    let usage = null().memory_usage();
    assert_eq!(usage, MemoryUsage { allocations: 0, bytes: 0, peak_bytes: 0 });
}
