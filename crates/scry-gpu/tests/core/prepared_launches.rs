//! Tests of prepared launches: lifetimes, hazards, devices and failures.

use scry_gpu::testing::{Counts, null_info, observed as observed_as, reporting};
use scry_gpu::{Device, GpuError, Launch, PreparedLaunch};
use scry_test_support::{STEP, null};

use super::observed;

/// Returns a prepared launch whose kernel and buffers have no other handle.
fn prepared_alone(gpu: &Device) -> PreparedLaunch {
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[1u32; 64]).unwrap(), gpu.upload(&[0u32; 64]).unwrap());
    kernel.prepare(&[&a, &b], 64).unwrap()
}

#[test]
fn prepared_launch_is_owned_and_shareable() {
    fn require_owned_and_shareable<T: Send + Sync + Clone + 'static>(_: &T) {}
    let gpu = null();
    let launch = prepared_alone(&gpu);
    require_owned_and_shareable(&launch);
    drop(gpu);
    let copy = launch.clone();
    std::thread::spawn(move || copy.run()).join().unwrap().unwrap();
    launch.run().unwrap();
    assert_eq!(launch.kernel().entry_point(), "step");
}

#[test]
fn prepared_launch_keeps_its_memory() {
    let gpu = null();
    let before = gpu.memory_usage().bytes;
    let launch = prepared_alone(&gpu);
    gpu.wait().unwrap();
    let with_launch = gpu.memory_usage().bytes;
    assert!(with_launch >= before + 2 * 256, "{before}, {with_launch}");
    drop(launch);
    assert!(gpu.memory_usage().bytes <= with_launch - 2 * 256);
}

#[test]
fn repeated_prepared_launches_have_barriers() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let buffers = [gpu.upload(&[0u32; 64]).unwrap(), gpu.upload(&[0u32; 64]).unwrap()];
    let a_to_b = kernel.prepare(&[&buffers[0], &buffers[1]], 64).unwrap();
    let b_to_a = kernel.prepare(&[&buffers[1], &buffers[0]], 64).unwrap();
    gpu.wait().unwrap();
    let _ = log.take();
    let mut batch = gpu.batch();
    for _ in 0..500 {
        batch.run_prepared(&a_to_b).unwrap().run_prepared(&b_to_a).unwrap();
    }
    batch.submit().unwrap();
    assert_eq!(log.take(), Counts { dispatches: 1000, barriers: 1000, ..Default::default() });
    // Launches that share only their input need no barriers between them.
    let outputs: Vec<_> = (0..10).map(|_| gpu.upload(&[0u32; 64]).unwrap()).collect();
    a_to_b.run().unwrap();
    let _ = log.take();
    let mut batch = gpu.batch();
    for output in &outputs {
        let launch = kernel.prepare(&[&buffers[0], output], 64).unwrap();
        batch.run_prepared(&launch).unwrap();
    }
    batch.submit().unwrap();
    assert!(log.take().barriers <= 1);
}

#[test]
fn preparing_checks_the_arguments() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let a = gpu.upload(&[1u32; 64]).unwrap();
    let short = gpu.alloc::<u8>(2).unwrap();
    let _ = log.take();
    for bindings in [&[&a as &dyn scry_gpu::Binding][..], &[&a, &a], &[&a, &short]] {
        let error = kernel.prepare(bindings, 64).unwrap_err();
        let launched = gpu.run(&kernel, bindings, 64).unwrap_err();
        assert!(matches!(error, GpuError::Argument(_)), "{error}");
        assert_eq!(error.to_string(), launched.to_string());
    }
    let error = kernel.bind().set("scr", &a).prepare(4).unwrap_err();
    assert!(error.to_string().contains("has no argument of this name"), "{error}");
    assert_eq!(log.take(), Counts::default());
}

#[test]
fn other_devices_are_rejected() {
    let (gpu, other) = (null(), null());
    let launch = prepared_alone(&gpu);
    let mut batch = other.batch();
    let x = other.alloc::<u32>(1).unwrap();
    let error = batch.fill(&x, 1).unwrap().run_prepared(&launch).err().unwrap();
    let GpuError::WrongDevice(_) = &error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains("Batch::run_prepared"), "{text}");
    assert!(text.contains("the prepared launch of kernel `step`"), "{text}");
    assert_eq!(format!("{batch:?}").matches("commands: 1").count(), 1, "{batch:?}");
    let foreign = gpu.compile(STEP).unwrap().prepare(&[&x, &x], 1).unwrap_err();
    let text = foreign.to_string();
    assert!(text.contains("Kernel::prepare"), "{text}");
}

#[test]
fn empty_prepared_launch_adds_nothing() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.alloc::<u32>(0).unwrap(), gpu.alloc::<u32>(0).unwrap());
    let launch = kernel.prepare(&[&a, &b], 0).unwrap();
    let _ = log.take();
    launch.run().unwrap();
    gpu.batch().run_prepared(&launch).unwrap().submit().unwrap();
    assert_eq!(log.take(), Counts::default());
}

#[test]
fn failure_names_the_repetition() {
    let (gpu, _log) = reporting(null_info(), &[70]);
    let launch = prepared_alone(&gpu);
    let mut batch = gpu.batch();
    for _ in 0..100 {
        batch.run_prepared(&launch).unwrap();
    }
    let error = batch.submit_async().unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("launch 71 of 100"), "{error}");
    launch.run().unwrap();
    gpu.wait().unwrap();
}

#[test]
fn prepares_linearised_and_indirect_launches() {
    let mut info = null_info();
    info.limits.max_native_workgroups = [8, 8, 8];
    let (gpu, log) = observed_as(info);
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[1u32; 6400]).unwrap(), gpu.upload(&[0u32; 6400]).unwrap());
    let counts = gpu.upload(&[2u32, 1, 1]).unwrap();
    let large = kernel.prepare(&[&a, &b], 6400).unwrap();
    let indirect = kernel.prepare(&[&a, &b], Launch::indirect(&counts)).unwrap();
    drop((a, b, counts));
    gpu.wait().unwrap();
    let _ = log.take();
    let mut batch = gpu.batch();
    for _ in 0..2 {
        batch.run_prepared(&large).unwrap().run_prepared(&indirect).unwrap();
    }
    let recording = batch.record().unwrap();
    for _ in 0..3 {
        recording.replay().unwrap().wait().unwrap();
    }
    // An indirect launch dispatches the kernel that prepares its grid, too.
    let dispatches = 1 + 2;
    assert_eq!(log.take().dispatches, 3 * 2 * dispatches);
    large.run().unwrap();
    indirect.run().unwrap();
    gpu.wait().unwrap();
    assert_eq!(log.take().dispatches, dispatches);
}
