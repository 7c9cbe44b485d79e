//! Tests of faults 2, 4 and 6: exhausted memory, tiny and oversized buffers.

use scry_gpu::testing::{Fault, FaultPlan, null_info, observed, open_with_faults};
use scry_gpu::{Buffer, Device, DeviceKind, GpuError, Result};
use scry_test_support::{STEP, devices};

use super::devices::{check_works, devices_and_null, selectors};

const MIB: usize = 1 << 20;

/// Allocates up to `max_buffers` buffers; returns them, and whether memory was exhausted.
fn allocate_until_full(gpu: &Device, bytes: usize, max_buffers: usize) -> (Vec<Buffer<u8>>, bool) {
    let mut buffers = Vec::new();
    while buffers.len() < max_buffers {
        match gpu.alloc::<u8>(bytes) {
            Ok(buffer) => buffers.push(buffer),
            Err(GpuError::OutOfMemory(_)) => return (buffers, true),
            Err(other) => panic!("{gpu:?}: {other}"),
        }
    }
    (buffers, false)
}

fn free_half(buffers: Vec<Buffer<u8>>) -> Vec<Buffer<u8>> {
    buffers.into_iter().step_by(2).collect()
}

#[test]
fn fault_02_kernel_runs_after_exhausted_memory() {
    let mut info = null_info();
    info.memory = 64 << 20;
    let (gpu, _) = observed(info);
    let (buffers, full) = allocate_until_full(&gpu, MIB, 1000);
    assert!(full && buffers.len() == 64, "{} buffers of 1 MiB", buffers.len());
    let error = gpu.upload(&[1u8; MIB]).unwrap_err().to_string();
    assert!(error.contains("out of memory: 1048576 bytes"), "{error}");
    let buffers = free_half(buffers);
    check_works(&gpu);
    assert!(buffers.iter().all(|buffer| buffer.len() == MIB));
}

#[test]
fn fault_02_half_freed_memory_is_reusable() {
    for gpu in devices() {
        // A software device uses host memory: only part of it is allocated.
        let dedicated = gpu.info().kind == DeviceKind::Discrete;
        let soak = std::env::var_os("SCRY_SOAK").is_some();
        let max_buffers = if dedicated && soak { 10_000 } else { 24 };
        let (buffers, full) = allocate_until_full(&gpu, 64 * MIB, max_buffers);
        assert!(full || buffers.len() == max_buffers, "{gpu:?}");
        let buffers = free_half(buffers);
        check_works(&gpu);
        drop(buffers);
        gpu.wait().unwrap();
    }
}

/// Overwrites both buffers in one batch: `target` by a kernel and then with 7, `old` with 8.
fn overwrite_both(gpu: &Device, target: &Buffer<u32>, old: &Buffer<u32>) -> Result<()> {
    let kernel = gpu.compile(STEP)?;
    let mut batch = gpu.batch();
    batch.run(&kernel, &[old, target], 64)?;
    batch.write(target, &[7; 64])?;
    batch.write(old, &[8; 64])?;
    let download = batch.download(old)?;
    batch.submit()?;
    assert_eq!(download.get()?, [8; 64]);
    Ok(())
}

#[test]
fn fault_04_out_of_memory_drops_whole_batch() {
    for selector in selectors() {
        let mut failed = 0;
        for call in 0.. {
            let plan = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
            let gpu = open_with_faults(&selector, &plan).unwrap();
            let (target, old) = two_buffers(&gpu).unwrap();
            plan.fail_after(call);
            let result = overwrite_both(&gpu, &target, &old);
            if !plan.has_failed() {
                break;
            }
            let values = [target.download().unwrap(), old.download().unwrap()];
            match result {
                Err(GpuError::OutOfMemory(_)) if values == [[1; 64], [2; 64]] => failed += 1,
                // The batch was submitted before the call that failed, or that call was retried.
                _ if values == [[7; 64], [8; 64]] => {}
                other => panic!("{selector}, {call}: {other:?}, and the buffers hold {values:?}"),
            }
        }
        assert!(failed >= 3, "{selector}: only {failed} calls failed");
    }
}

/// Returns buffers that contain 1 and 2.
fn two_buffers(gpu: &Device) -> Result<(Buffer<u32>, Buffer<u32>)> {
    let buffers = (gpu.upload(&[1; 64])?, gpu.upload(&[2; 64])?);
    gpu.wait()?;
    Ok(buffers)
}

#[test]
fn fault_04_failed_step_leaves_batch_unchanged() {
    for selector in selectors() {
        let plan = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
        let gpu = open_with_faults(&selector, &plan).unwrap();
        let (a, b) = two_buffers(&gpu).unwrap();
        plan.fail_after(0);
        let mut batch = gpu.batch();
        let result = batch.write(&a, &[7; 64]).map(|_| ());
        assert!(matches!(result, Err(GpuError::OutOfMemory(_))));
        batch.write(&b, &[8; 64]).unwrap();
        batch.submit().unwrap();
        assert_eq!(a.download().unwrap(), [1; 64], "{selector}");
        assert_eq!(b.download().unwrap(), [8; 64], "{selector}");
    }
}

#[test]
fn fault_06_tiny_and_oversized_buffers() {
    for gpu in devices_and_null() {
        for len in 0..20u8 {
            let data: Vec<u8> = (1..=len).collect();
            let buffer = gpu.upload(&data).unwrap();
            assert_eq!(buffer.download().unwrap(), data, "{gpu:?}");
            let copy = gpu.alloc(len.into()).unwrap();
            assert_eq!(copy.download().unwrap(), vec![0u8; len.into()], "{gpu:?}");
            buffer.copy_to(&copy).unwrap();
            assert_eq!(copy.download().unwrap(), data, "{gpu:?}");
            copy.fill(9).unwrap();
            assert_eq!(copy.download().unwrap(), vec![9; len.into()], "{gpu:?}");
        }
        for len in [1usize << 45, usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1] {
            let error = gpu.alloc::<f64>(len).unwrap_err();
            let limit = "max_buffer_size";
            let is_expected =
                matches!(&error, GpuError::TooLarge(error) if error.limit_name() == limit);
            assert!(is_expected, "{gpu:?}, {len} elements: {error}");
        }
        check_works(&gpu);
    }
}
