//! Tests of device-to-device copies: which are done by a kernel and which by the driver.

use scry_gpu::testing::{self, Counts, Observed};
use scry_gpu::{Device, DeviceInfo};
use scry_test_support::STEP;

const MIB: usize = 1 << 20;

/// Returns a null device that does large copies with a kernel, and its log of commands.
fn device_copying_with_kernel(info: DeviceInfo) -> (Device, Observed) {
    let (gpu, log) = testing::observed(info);
    testing::copy_with_kernel(&gpu, true);
    (gpu, log)
}

fn counts(dispatches: usize, copies: usize) -> Counts {
    Counts { dispatches, copies, ..Default::default() }
}

#[test]
fn large_copies_launch_a_kernel() {
    let (gpu, log) = device_copying_with_kernel(testing::null_info());
    for (size, expected) in [
        (MIB - 1, counts(0, 1)),
        (MIB, counts(1, 0)),
        (MIB + 4, counts(1, 1)),
        (MIB + 15, counts(1, 1)),
        (2 * MIB + 16, counts(1, 0)),
    ] {
        let (a, b) = (gpu.alloc::<u8>(size).unwrap(), gpu.alloc::<u8>(size).unwrap());
        a.fill(1).unwrap();
        b.fill(1).unwrap();
        let _ = log.take();
        gpu.copy_buffer(&a, &b).unwrap();
        let counts = Counts { barriers: 0, ..log.take() };
        assert_eq!(counts, expected, "{size}");
    }
}

#[test]
fn unbindable_ranges_use_driver_copies() {
    let (gpu, log) = testing::observed(testing::null_info());
    let (a, b) = (gpu.upload(&vec![1u8; 2 * MIB]).unwrap(), gpu.alloc::<u8>(2 * MIB).unwrap());
    let counts_of_copy = |from: usize, to: usize| {
        let _ = log.take();
        let from = a.slice(from..from + MIB).unwrap();
        from.copy_to(b.slice(to..to + MIB).unwrap()).unwrap();
        let Counts { dispatches, copies, .. } = log.take();
        (dispatches, copies)
    };
    assert_eq!(counts_of_copy(0, 0), (0, 1));
    testing::copy_with_kernel(&gpu, true);
    assert_eq!(counts_of_copy(0, 0), (1, 0));
    assert_eq!(counts_of_copy(16, 32), (1, 0));
    assert_eq!(counts_of_copy(8, 32), (0, 1));
    assert_eq!(counts_of_copy(16, 4), (0, 1));
}

#[test]
fn oversized_copies_split_without_barriers() {
    let mut info = testing::null_info();
    info.limits.max_storage_binding_size = MIB as u64 + 8;
    info.limits.max_native_workgroups = [16; 3];
    let (gpu, log) = device_copying_with_kernel(info);
    let (a, b) = (gpu.upload(&vec![1u8; 3 * MIB + 20]).unwrap(), gpu.alloc(3 * MIB + 20).unwrap());
    gpu.wait().unwrap();
    let _ = log.take();
    a.copy_to(&b).unwrap();
    // Both barriers are for the upload: one for the kernel launches, one for the driver's copy.
    assert_eq!(log.take(), Counts { barriers: 2, ..counts(4, 1) });
}

#[test]
fn copy_destination_needs_no_zeroing() {
    let mut info = testing::null_info();
    info.limits.max_storage_binding_size = MIB as u64;
    let (gpu, log) = device_copying_with_kernel(info);
    let a = gpu.upload(&vec![1u32; MIB + 1]).unwrap();
    let b = gpu.alloc(MIB + 1).unwrap();
    let part = gpu.alloc(MIB + 1).unwrap();
    let _ = log.take();
    a.copy_to(&b).unwrap();
    assert_eq!(log.take().fills, 0);
    let all_but_one = ..MIB;
    a.slice(all_but_one).unwrap().copy_to(part.slice(all_but_one).unwrap()).unwrap();
    assert_eq!(log.take().fills, 1);
}

#[test]
fn kernels_wait_for_copies() {
    let (gpu, log) = device_copying_with_kernel(testing::null_info());
    let kernel = gpu.compile(STEP).unwrap();
    let len = MIB / 4;
    let [a, b, c] = [0, 1, 2].map(|_| gpu.upload(&vec![0u32; len]).unwrap());
    gpu.wait().unwrap();
    let mut batch = gpu.batch();
    batch.copy(&a, &b).unwrap();
    batch.run(&kernel, &[&b, &c], len).unwrap();
    batch.copy(&c, &a).unwrap();
    let _ = log.take();
    batch.submit().unwrap();
    // One barrier before each of the three; the first is for the uploads.
    assert_eq!(log.take(), Counts { barriers: 3, ..counts(3, 0) });
}

#[test]
fn copy_launches_are_not_timed() {
    let (gpu, _log) = device_copying_with_kernel(testing::null_info());
    let kernel = gpu.compile(STEP).unwrap();
    let len = MIB / 4;
    let (a, b) = (gpu.upload(&vec![0u32; len]).unwrap(), gpu.alloc(len).unwrap());
    let mut batch = gpu.batch();
    batch.copy(&a, &b).unwrap().run(&kernel, &[&a, &b], len).unwrap().copy(&b, &a).unwrap();
    assert_eq!(batch.submit_timed().unwrap().len(), 1);
}

#[test]
fn small_workgroup_limit_uses_driver_copies() {
    let mut info = testing::null_info();
    info.limits.max_workgroup_invocations = 128;
    let (gpu, log) = device_copying_with_kernel(info);
    let (a, b) = (gpu.upload(&vec![1u8; MIB]).unwrap(), gpu.alloc(MIB).unwrap());
    let _ = log.take();
    a.copy_to(&b).unwrap();
    let Counts { dispatches, copies, .. } = log.take();
    assert_eq!((dispatches, copies), (0, 1));
}
