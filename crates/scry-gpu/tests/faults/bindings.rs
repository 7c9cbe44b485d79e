//! Tests of faults 16 to 19: buffers that do not match a kernel, or belong to another device.

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{Binding, Device, GpuError, Result};
use scry_test_support::{STEP, null};

use super::devices::{check_works, devices_and_null, selectors};

/// A kernel with a uniform of fixed size in addition to runtime-sized arrays.
const SCALE: &str = "
    struct Params { factor: vec4<f32>, offsets: vec4<f32> }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(1) @binding(2) var<storage, read> input: array<vec4<f32>>;
    @group(1) @binding(5) var<storage, read_write> output: array<u32>;

    @compute @workgroup_size(64)
    fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&output) {
            output[id.x] = u32(params.factor.x * input[id.x].x + params.offsets.z);
        }
    }
";

/// Returns the text of an argument error.
fn argument_error(result: Result<()>) -> String {
    match result {
        Err(error @ GpuError::Argument(_)) => error.to_string(),
        other => panic!("{other:?} is not an argument error"),
    }
}

/// Checks that all devices reject the launch with the same text, which contains `words`.
fn assert_rejected_alike(launch: impl Fn(&Device) -> Result<()>, words: &[&str]) {
    let messages: Vec<String> =
        devices_and_null().iter().map(|gpu| argument_error(launch(gpu))).collect();
    for message in &messages {
        assert_eq!(message, &messages[0]);
        for word in words {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
    }
}

#[test]
fn fault_16_wrong_number_of_bindings() {
    for count in [0, 1, 2, 4, 9] {
        let launch = |gpu: &Device| {
            let buffer = gpu.alloc::<f32>(64).unwrap();
            let bindings: Vec<&dyn Binding> = vec![&buffer; count];
            gpu.dispatch(SCALE, &bindings, 64)
        };
        assert_rejected_alike(launch, &["scale", "the kernel uses 3", "params", "input", "output"]);
    }
}

#[test]
fn fault_16_wrong_order_type_and_access() {
    let (floats, words) = ([0.0f32; 64], [0u32; 64]);
    let swapped = |gpu: &Device| {
        let (params, input) = (gpu.upload(&floats[..8])?, gpu.upload(&floats)?);
        let output = gpu.upload(&words)?;
        gpu.dispatch(SCALE, &[&params, &output, &input], 16)
    };
    assert_rejected_alike(swapped, &["input", "u32", "f32"]);
    let wrong_type = |gpu: &Device| {
        let input = gpu.upload(&[0i32; 64])?;
        gpu.dispatch(STEP, &[&input, &gpu.alloc::<u32>(64)?], 64)
    };
    assert_rejected_alike(wrong_type, &["input", "i32", "u32"]);
    let wrong_size =
        |gpu: &Device| gpu.dispatch(STEP, &[&gpu.alloc::<u32>(64)?, &gpu.alloc::<f64>(64)?], 64);
    assert_rejected_alike(wrong_size, &["output", "f64", "u32"]);
}

#[test]
fn fault_17_short_and_misaligned_bindings() {
    let short = |gpu: &Device| {
        let (input, output) = (gpu.alloc::<f32>(64)?, gpu.alloc::<u32>(16)?);
        gpu.dispatch(SCALE, &[&gpu.alloc::<f32>(7)?, &input, &output], 16)
    };
    assert_rejected_alike(short, &["params", "28", "32"]);
    let partial_element = |gpu: &Device| {
        let (input, output) = (gpu.alloc::<f32>(3)?, gpu.alloc::<u32>(16)?);
        gpu.dispatch(SCALE, &[&gpu.alloc::<f32>(8)?, &input, &output], 16)
    };
    assert_rejected_alike(partial_element, &["input", "12", "16"]);
    for gpu in devices_and_null() {
        let (input, output) = (gpu.alloc::<u32>(64).unwrap(), gpu.alloc::<u32>(64).unwrap());
        let part = input.slice(1..33).unwrap();
        let message = argument_error(gpu.dispatch(STEP, &[&part, &output], 32));
        let alignment = gpu.info().binding_alignment.to_string();
        assert!(message.contains(&alignment), "{gpu:?}: {message}");
        assert!(input.slice(60..65).is_err() && input.slice(usize::MAX..).is_err());
        assert!(input.slice(64..usize::MAX).is_err());
    }
}

#[test]
fn fault_18_overlapping_bindings() {
    let twice = |gpu: &Device| {
        let buffer = gpu.alloc::<u32>(64)?.with_label("x");
        gpu.dispatch(STEP, &[&buffer, &buffer], 64)
    };
    assert_rejected_alike(twice, &["x", "output", "input"]);
    for gpu in devices_and_null() {
        let aligned = (gpu.info().binding_alignment / 4).max(1) as usize;
        let buffer = gpu.upload(&vec![5u32; 4 * aligned]).unwrap();
        let part = |from: usize, to: usize| buffer.slice(from * aligned..to * aligned).unwrap();
        argument_error(gpu.dispatch(STEP, &[&part(0, 3), &part(2, 4)], 1));
        gpu.dispatch(STEP, &[&part(0, 2), &part(2, 4)], 0).unwrap();
        gpu.dispatch(STEP, &[&part(0, 2), &part(2, 4)], 2 * aligned).unwrap();
        let read_twice = "
            @group(0) @binding(0) var<storage, read> a: array<u32>;
            @group(0) @binding(1) var<storage, read> b: array<u32>;
            @group(0) @binding(2) var<storage, read_write> c: array<u32>;
            @compute @workgroup_size(1) fn sum() { c[0] = a[0] + b[0]; }";
        let sum = gpu.alloc::<u32>(1).unwrap();
        gpu.dispatch(read_twice, &[&part(0, 2), &part(0, 2), &sum], 1).unwrap();
        if super::devices::executes_kernels(&gpu) {
            assert_eq!(sum.download().unwrap(), [10]);
        }
    }
}

#[test]
fn fault_19_buffers_and_kernels_of_other_devices() {
    let all = devices_and_null();
    let mut others: Vec<Device> = vec![null()];
    others.extend(selectors().iter().map(|it| Device::open(it).unwrap()));
    for gpu in &all {
        for other in &others {
            let ours = gpu.upload(&[1u32; 64]).unwrap();
            let theirs = other.upload(&[1u32; 64]).unwrap();
            let kernel = other.compile(STEP).unwrap();
            let assert_wrong_device = |result: Result<()>| {
                assert!(matches!(result, Err(GpuError::WrongDevice(_))), "{result:?}");
            };
            assert_wrong_device(gpu.dispatch(STEP, &[&theirs, &ours], 64));
            assert_wrong_device(gpu.run(&kernel, &[&ours, &gpu.alloc::<u32>(64).unwrap()], 64));
            assert_wrong_device(theirs.copy_to(&ours));
            assert_wrong_device(gpu.copy_buffer(&theirs, &theirs));
            let mut batch = gpu.batch();
            assert_wrong_device(batch.copy(&ours, &theirs).map(|_| ()));
            assert_wrong_device(batch.fill(&theirs, 1).map(|_| ()));
            assert_wrong_device(batch.write(&theirs, &[1; 64]).map(|_| ()));
            assert_wrong_device(batch.download(&theirs).map(|_| ()));
            assert_eq!(theirs.download().unwrap(), [1; 64]);
        }
        check_works(gpu);
    }
}

#[test]
fn fault_19_buffers_of_a_lost_device() {
    for selector in selectors() {
        let lost = lost_device(&selector);
        let alive = Device::open(&selector).unwrap();
        let ours = alive.upload(&[1u32; 4]).unwrap();
        let (gpu, theirs) = lost;
        assert!(matches!(theirs.copy_to(&ours), Err(GpuError::WrongDevice(_))));
        for result in [theirs.download().map(|_| ()), theirs.write(&[1; 4]), gpu.wait()] {
            assert!(matches!(result, Err(GpuError::DeviceLost(_))), "{result:?}");
        }
        drop((gpu, theirs));
        check_works(&alive);
    }
}

/// Returns a device that is lost, and one of its buffers.
fn lost_device(selector: &str) -> (Device, scry_gpu::Buffer<u32>) {
    let plan = FaultPlan::new(Fault::DeviceLost, u64::MAX);
    let gpu = open_with_faults(selector, &plan).unwrap();
    let buffer = gpu.upload(&[1u32; 4]).unwrap();
    plan.fail_after(0);
    assert!(matches!(gpu.wait(), Err(GpuError::DeviceLost(_))));
    (gpu, buffer)
}

#[test]
fn fault_19_batch_keeps_dropped_buffers() {
    for gpu in devices_and_null() {
        let output = gpu.alloc::<u32>(64).unwrap();
        let mut batch = gpu.batch();
        {
            let input = gpu.upload(&[1u32; 64]).unwrap();
            let kernel = gpu.compile(STEP).unwrap();
            batch.run(&kernel, &[&input, &output], 64).unwrap();
        }
        // These would reuse the memory if it had been freed too early.
        let others: Vec<_> = (0..8).map(|i| gpu.upload(&[100 + i; 64]).unwrap()).collect();
        batch.submit().unwrap();
        let expected = u32::from(super::devices::executes_kernels(&gpu)) * 2;
        assert_eq!(output.download().unwrap(), [expected; 64], "{gpu:?}");
        drop(others);
    }
}
