//! Tests of launches: rejected arguments, empty launches, counts; rejected calls have no effect.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use scry_gpu::{CompileOptions, Device, GpuError, Launch};
use scry_test_support::{STEP, null};

use super::observed;

#[test]
fn compiled_kernel_describes_its_entry_point() {
    let kernel = null().compile(STEP).unwrap();
    assert_eq!(kernel.entry_point(), "step");
    assert_eq!(kernel.binding_count(), 2);
    assert_eq!(kernel.workgroup_size(), [64, 1, 1]);
}

#[test]
fn rejected_command_leaves_batch_unchanged() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.upload(&[0u32; 8]).unwrap());
    gpu.wait().unwrap();
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], 8).unwrap();
    assert!(matches!(batch.run(&kernel, &[&a], 8).map(|_| ()), Err(GpuError::Argument(_))));
    assert!(matches!(batch.run(&kernel, &[&a, &a], 8).map(|_| ()), Err(GpuError::Argument(_))));
    assert!(batch.write(&a, &[1]).is_err());
    let _ = log.take();
    batch.submit().unwrap();
    assert_eq!(log.take().dispatches, 1);
}

#[test]
fn rejects_objects_of_another_device() {
    let (gpu, other) = (null(), null());
    let kernel = other.compile(STEP).unwrap();
    let (a, b) = (gpu.alloc::<u32>(8).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let error = gpu.run(&kernel, &[&a, &b], 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Device::run: kernel `step` belongs to null device, but was used with null device; help: \
         compile it with the Device that runs it"
    );
    let kernel = gpu.compile(STEP).unwrap();
    let foreign = other.alloc::<u32>(8).unwrap().with_label("theirs");
    let message = |what: &str| {
        format!(
            "{what} belongs to null device, but was used with null device; help: use it with the \
             Device that created it (opening one device twice creates two Devices; clone the \
             Device instead), or copy the data by download and upload"
        )
    };
    let binding = "buffer `theirs` (`output` at @group(0) @binding(1) of kernel `step`)";
    let error = gpu.run(&kernel, &[&a, &foreign], 8).unwrap_err();
    assert_eq!(error.to_string(), message(&format!("Device::run: {binding}")));
    let GpuError::WrongDevice(parts) = &error else { panic!("{error}") };
    assert_eq!((parts.operation(), parts.what()), ("Device::run", binding));
    let mut batch = gpu.batch();
    let error = batch.run(&kernel, &[&a, &foreign], 8).unwrap_err();
    assert_eq!(error.to_string(), message(&format!("Batch::run: {binding}")));
    let bound = kernel.bind().set("input", &a).set("output", &foreign);
    let error = bound.run(8).unwrap_err();
    assert_eq!(error.to_string(), message(&format!("BoundKernel::run: {binding}")));
    let error = batch.run_bound(&bound, 8).unwrap_err();
    assert_eq!(error.to_string(), message(&format!("Batch::run_bound: {binding}")));
    let counts = gpu.run(&kernel, &[&a, &b], Launch::indirect(&foreign)).unwrap_err();
    let what = "Device::run: buffer `theirs` (the counts of Launch::indirect)";
    assert_eq!(counts.to_string(), message(what));
}

#[test]
fn wrong_device_transfers_name_function() {
    let (gpu, other) = (null(), null());
    let (ours, theirs) = (gpu.alloc::<u32>(8).unwrap(), other.alloc::<u32>(8).unwrap());
    let mut batch = gpu.batch();
    let error_of = |rejected: Result<(), GpuError>| {
        let error = rejected.unwrap_err().to_string();
        error.split(" belongs to ").next().unwrap_or_default().to_owned()
    };
    let found = [
        error_of(batch.copy(&theirs, &ours).map(|_| ())),
        error_of(batch.copy(&ours, &theirs).map(|_| ())),
        error_of(batch.fill(&theirs, 1).map(|_| ())),
        error_of(batch.write(&theirs, &[1; 8]).map(|_| ())),
        error_of(batch.download(&theirs).map(|_| ())),
        error_of(ours.copy_to(&theirs)),
        error_of(gpu.copy_buffer(&theirs, &ours)),
    ];
    let expected = [
        "Batch::copy: the buffer (the source)",
        "Batch::copy: the buffer (the destination)",
        "Batch::fill: the buffer (the destination)",
        "Batch::write: the buffer (the destination)",
        "Batch::download: the buffer (the source)",
        "Buffer::copy_to: the buffer (the destination)",
        "Device::copy_buffer: the buffer (the source)",
    ];
    assert_eq!(found, expected);
}

#[test]
fn fault_20_empty_launch_is_checked() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.alloc::<u32>(8).unwrap(), gpu.alloc::<u32>(8).unwrap());
    let _ = log.take();
    gpu.run(&kernel, &[&a, &b], 0).unwrap();
    gpu.run(&kernel, &[&a, &b], Launch::workgroups([3, 0, 3])).unwrap();
    assert_eq!(log.take(), Default::default());
    assert!(gpu.run(&kernel, &[&a], 0).is_err());
    let empty = gpu.alloc::<u32>(0).unwrap();
    gpu.run(&kernel, &[&empty, &empty], empty.len()).unwrap();
    assert!(gpu.run(&kernel, &[&empty, &b], 1).is_err());
}

#[test]
fn overrides_make_different_kernels() {
    let gpu = null();
    let source = "
        override SIZE: u32 = 32;
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(SIZE) fn main() { x[0] = SIZE; }
    ";
    let size =
        |options: &CompileOptions| gpu.compile_with(source, options).unwrap().workgroup_size()[0];
    assert_eq!(size(&CompileOptions::new()), 32);
    assert_eq!(size(&CompileOptions::new().set("SIZE", 8.0)), 8);
    assert_eq!(size(&CompileOptions::new()), 32);
}

#[test]
fn shader_errors_show_their_line() {
    let error = null().compile("fn f() {\n  let x = ;\n}").unwrap_err();
    let GpuError::Shader(shader) = &error else { panic!("{error:?}") };
    assert_eq!(shader.location.map(|l| l.line), Some(2));
    assert!(error.to_string().contains("let x = ;"), "{error}");
}

#[test]
fn fault_15_threads_get_same_compile_error() {
    let gpu = null();
    let compile = |gpu: Device| gpu.compile("fn f() { let x = ; }").map(|_| ()).unwrap_err();
    let expected = compile(gpu.clone());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| compile(gpu.clone()))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}

#[test]
fn launches_are_counted_at_submission() {
    let gpu = null();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 8]).unwrap(), gpu.alloc::<u32>(8).unwrap());
    gpu.run(&kernel, &[&a, &b], 8).unwrap();
    gpu.run(&kernel, &[&a, &b], 0).unwrap();
    a.copy_to(&b).unwrap();
    assert_eq!(gpu.launch_count(), 1);
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], 8).unwrap().run(&kernel, &[&b, &a], 8).unwrap();
    let recording = batch.record().unwrap();
    assert_eq!(gpu.launch_count(), 1);
    for _ in 0..3 {
        recording.replay().unwrap().wait().unwrap();
    }
    assert_eq!(gpu.launch_count(), 7);
}

#[test]
fn null_device_reports_no_free_memory() {
    assert_eq!(null().free_memory(), Ok(None));
}
