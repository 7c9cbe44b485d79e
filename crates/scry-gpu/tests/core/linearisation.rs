//! Tests of grid linearisation: launches of more workgroups than a device supports along an axis.

use scry_gpu::testing;
use scry_gpu::{GpuError, Launch};
use scry_test_support::STEP;

#[test]
fn large_launches_are_linearised() {
    let mut info = testing::null_info();
    info.limits.max_native_workgroups = [4, 4, 4];
    let (gpu, log) = testing::observed(info);
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.alloc::<u32>(64).unwrap(), gpu.alloc::<u32>(64).unwrap());
    let _ = log.take();
    gpu.run(&kernel, &[&a, &b], Launch::workgroups([64, 1, 1])).unwrap();
    assert_eq!(log.take().dispatches, 1);
    let too_many = gpu.run(&kernel, &[&a, &b], Launch::workgroups([65, 1, 1]));
    assert!(matches!(too_many, Err(GpuError::TooLarge(_))), "{too_many:?}");
    assert_eq!(log.take().dispatches, 0);
}

#[test]
fn huge_launch_is_one_dispatch() {
    let (gpu, log) = testing::observed(testing::null_info());
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.alloc::<u32>(64).unwrap(), gpu.alloc::<u32>(64).unwrap());
    let _ = log.take();
    gpu.run(&kernel, &[&a, &b], (1u64 << 31) + 1).unwrap();
    assert_eq!(log.take().dispatches, 1);
    for count in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
        let rejected = gpu.run(&kernel, &[&a, &b], count);
        assert!(matches!(rejected, Err(GpuError::TooLarge(_))), "{count}: {rejected:?}");
    }
    assert!(gpu.run(&kernel, &[&a, &b], -1).is_err());
    assert_eq!(log.take().dispatches, 0);
}
