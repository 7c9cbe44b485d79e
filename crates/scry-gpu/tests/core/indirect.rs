//! Tests of indirect launches on the null device: rejected arguments and barriers.

use scry_gpu::testing::{self, Counts};
use scry_gpu::{Buffer, GpuError, Launch, NativeInterface};
use scry_test_support::{STEP, null};

use super::observed;

fn indirect(counts: &Buffer<u32>) -> Launch {
    Launch::indirect(counts)
}

/// Returns the error text of a launch of [`STEP`] that must be rejected.
fn launch_error(launch: Launch, gpu: &scry_gpu::Device) -> String {
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let rejected = gpu.run(&kernel, &[&a, &b], launch);
    rejected.expect_err("this should have been rejected").to_string()
}

#[test]
fn rejects_invalid_counts() {
    let gpu = null();
    let two = gpu.upload(&[1u32, 2]).unwrap().with_label("two");
    let floats = gpu.upload(&[1f32, 2.0, 3.0]).unwrap().with_label("floats");
    let bytes = gpu.upload(&[0u8; 64]).unwrap().with_label("bytes");
    let none = gpu.alloc::<u32>(0).unwrap();
    let texts = [
        launch_error(Launch::indirect(&two), &gpu),
        launch_error(Launch::indirect(&floats), &gpu),
        launch_error(Launch::indirect(&bytes.slice(2..14).unwrap()), &gpu),
        launch_error(Launch::indirect(&none), &gpu),
    ];
    let expected = [
        "kernel `step`, counts of Launch::indirect (given buffer `two`): it has 8 bytes, and \
         three u32 have 12; help: give the workgroups along x, y and z",
        "kernel `step`, counts of Launch::indirect (given buffer `floats`): its element type is \
         f32, not u32; help: give three u32: the workgroups along x, y and z",
        "kernel `step`, counts of Launch::indirect (given buffer `bytes`): the slice begins at \
         byte 2 of its memory; help: begin it at a multiple of 4 bytes",
        "kernel `step`, counts of Launch::indirect: it has 0 bytes, and three u32 have 12; help: \
         give the workgroups along x, y and z",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn rejects_counts_of_another_device() {
    let (gpu, other) = (null(), null());
    let counts = other.upload(&[1u32, 1, 1]).unwrap();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let rejected = gpu.run(&kernel, &[&a, &b], indirect(&counts)).unwrap_err();
    assert!(matches!(rejected, GpuError::WrongDevice(_)), "{rejected}");
}

#[test]
fn rejects_kernels_writing_their_counts() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let a = gpu.upload(&[0u32; 64]).unwrap();
    let b = gpu.upload(&[0u32; 64]).unwrap().with_label("b");
    let _ = log.take();
    let run_with = |launch| gpu.run(&kernel, &[&a, &b.slice(..16).unwrap()], launch);
    let error = run_with(Launch::indirect(&b.slice(14..17).unwrap())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `step`, `output` at @group(0) @binding(1) (given buffer `b`): it shares bytes 56 \
         to 63 of its memory with the counts of Launch::indirect, and the kernel writes it; help: \
         give buffers or slices that do not overlap, or copy the counts first"
    );
    assert_eq!(log.take(), Counts::default());
    // Counts next to the slice that the kernel writes, and within the buffer that it reads.
    run_with(Launch::indirect(&b.slice(16..19).unwrap())).unwrap();
    run_with(Launch::indirect(&a.slice(1..4).unwrap())).unwrap();
}

#[test]
fn rejects_native_kernels() {
    let gpu = null();
    let interface = NativeInterface::new(0, [32, 1, 1]);
    // SAFETY: the null device executes nothing.
    let kernel = unsafe { gpu.compile_ptx(".version 8.0", "nothing", &interface) }.unwrap();
    let counts = gpu.upload(&[1u32, 1, 1]).unwrap();
    let rejected = gpu.run(&kernel, &[], indirect(&counts)).unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "kernel `nothing`, size of the launch: an indirect launch needs a WGSL kernel; help: \
         launch it with Launch::workgroups, and return from the workgroups that have no work"
    );
}

#[test]
fn indirect_launches_check_arguments() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let counts = gpu.upload(&[0u32; 3]).unwrap();
    let (a, none) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.alloc::<u32>(0).unwrap());
    let _ = log.take();
    let mut batch = gpu.batch();
    assert!(batch.run(&kernel, &[&a], indirect(&counts)).is_err());
    assert!(batch.run(&kernel, &[&a, &none], indirect(&counts)).is_err());
    assert!(batch.run(&kernel, &[&a, &a], indirect(&counts)).is_err());
    batch.submit().unwrap();
    assert_eq!(log.take(), Counts::default(), "a rejected step adds nothing to the batch");
}

#[test]
fn counts_order_launches_and_writes() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let [a, b, c] = [0; 3].map(|_: u32| gpu.upload(&[0u32; 8]).unwrap());
    let counts = gpu.upload(&[1u32, 1, 1]).unwrap();
    let next = gpu.upload(&[1u32, 1, 1]).unwrap();
    gpu.wait().unwrap();
    // The null device checks the order, and rejects commands without a required barrier.
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &counts], 3).unwrap();
    batch.run(&kernel, &[&b, &c], indirect(&counts)).unwrap();
    batch.copy(&next, &counts).unwrap();
    batch.run(&kernel, &[&c, &b], indirect(&counts)).unwrap();
    batch.run(&kernel, &[&a, &counts], 3).unwrap();
    let _ = log.take();
    batch.submit().unwrap();
    // Each of the two indirect launches has one more dispatch, which prepares it.
    let Counts { dispatches, copies, barriers, .. } = log.take();
    assert_eq!((dispatches, copies), (6, 1));
    // Before the two preparations, the two indirect launches, the copy, and the last launch.
    assert_eq!(barriers, 6);
}

#[test]
fn internal_launches_are_not_counted() {
    let gpu = null();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let counts = gpu.upload(&[1u32, 1, 1]).unwrap();
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], indirect(&counts)).unwrap();
    batch.run(&kernel, &[&a, &b], 8).unwrap();
    assert_eq!(batch.submit_timed().unwrap().len(), 2);
    assert_eq!(gpu.launch_count(), 2);
}

#[test]
fn reports_use_the_callers_launch_number() {
    // Each indirect launch is two launches of the device; the fourth is the caller's second.
    let (gpu, _log) = testing::reporting(testing::null_info(), &[3]);
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let counts = gpu.upload(&[1u32, 1, 1]).unwrap();
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], indirect(&counts)).unwrap();
    batch.run(&kernel, &[&b, &a], indirect(&counts)).unwrap();
    let error = batch.submit().unwrap_err().to_string();
    assert!(error.contains("launch 2 of 2 failed by plan"), "{error}");
}

#[test]
fn launch_keeps_its_counts_alive() {
    let gpu = null();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let launch = indirect(&gpu.upload(&[1u32, 1, 1]).unwrap());
    let again = launch.clone();
    gpu.run(&kernel, &[&a, &b], launch).unwrap();
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], again).unwrap();
    let recording = batch.record().unwrap();
    recording.replay().unwrap().wait().unwrap();
}
