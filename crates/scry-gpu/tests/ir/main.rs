//! Tests of kernels built in Rust (`Device::compile_ir`) on every available device.

use std::time::Duration;

use scry_gpu::kir::{
    Access, AddressSpace, AtomicOp, Barrier, BinaryOp, Builder, Builtin, Kir, Label, Place, Type,
};
use scry_gpu::{CompileOptions, Device, ErrorKind, GpuError, Launch, ShaderErrorKind, TypeLayout};
use scry_test_support::devices;

/// Builds an atomic `data[i] += 1`, without a check that `i` is in bounds.
fn increment(name: &str) -> Kir {
    let mut b = Builder::new(name, [64, 1, 1]);
    let data = b.named_buffer("data", Type::U32, Access::ReadWrite);
    let i = b.global_id(0);
    let (place, one) = (b.element(data, i), b.u32(1));
    b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
    b.finish()
}

#[test]
fn accesses_are_clamped_on_every_device() {
    for gpu in devices() {
        let kernel = gpu.compile_ir(&increment("increment")).unwrap();
        assert_eq!((kernel.entry_point(), kernel.workgroup_size()), ("increment", [64, 1, 1]));
        let layout = &kernel.interface().bindings[0].layout;
        assert!(matches!(layout, TypeLayout::Array { len: None, stride: 4, .. }));
        let data = gpu.upload(&[5u32; 10]).unwrap();
        gpu.run(&kernel, &[&data], 64).unwrap();
        // The indices 9 to 63 are clamped to 9.
        let mut expected = [6; 10];
        expected[9] = 5 + 55;
        assert_eq!(data.download().unwrap(), expected, "{}", gpu.name());
    }
}

/// Builds `data[i] = (data[i] + data[(i + 1) % 4]) * scale`, with the data shared through workgroup
/// memory and an immediate `scale`.
fn sums_of_neighbours() -> Kir {
    let mut b = Builder::new("neighbours", [4, 1, 1]);
    let data = b.named_buffer("data", Type::F32, Access::ReadWrite);
    b.immediates(4);
    let tile = b.workgroup_array(Type::F32, 4);
    let local = b.builtin(Builtin::LocalId(0));
    let i = b.global_id(0);
    let x = {
        let place = b.element(data, i);
        b.load(Type::F32, place, 1)[0]
    };
    b.store(Place::new(tile, Some(local), 4, 0), vec![x]);
    b.barrier(Barrier::Workgroup);
    let (one, three) = (b.u32(1), b.u32(3));
    let next = b.binary(BinaryOp::Add, local, one);
    let next = b.binary(BinaryOp::And, next, three);
    let y = b.load(Type::F32, Place::new(tile, Some(next), 4, 0), 1)[0];
    let scale = b.load(Type::F32, Place::new(AddressSpace::Immediate, None, 0, 0), 1)[0];
    let sum = b.binary(BinaryOp::Add, x, y);
    let scaled = b.binary(BinaryOp::Mul, sum, scale);
    let place = b.element(data, i);
    b.store(place, vec![scaled]);
    b.finish()
}

#[test]
fn workgroups_share_memory_and_immediates() {
    for gpu in devices() {
        let kernel = gpu.compile_ir(&sums_of_neighbours()).unwrap();
        let data = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        gpu.run_with_immediates(&kernel, &[&data], 4, &10.0f32).unwrap();
        assert_eq!(data.download().unwrap(), [30.0, 50.0, 70.0, 50.0], "{}", gpu.name());
    }
}

#[test]
fn buffer_must_contain_fixed_offsets() {
    let mut b = Builder::new("tail", [1, 1, 1]);
    let data = b.named_buffer("data", Type::U32, Access::ReadWrite);
    let seven = b.u32(7);
    // Byte 28: the buffer needs at least 32 bytes.
    b.store(Place::new(AddressSpace::Binding(data), None, 0, 28), vec![seven]);
    for gpu in devices() {
        let kernel = gpu.compile_ir(&b.clone().finish()).unwrap();
        let small = gpu.alloc::<u32>(7).unwrap();
        let error = gpu.run(&kernel, &[&small], 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        let large_enough = gpu.alloc::<u32>(8).unwrap();
        gpu.run(&kernel, &[&large_enough], 1).unwrap();
        assert_eq!(large_enough.download().unwrap()[7], 7);
    }
}

#[test]
fn endless_loops_are_cancelled() {
    let mut b = Builder::new("endless", [1, 1, 1]);
    let data = b.named_buffer("data", Type::U32, Access::ReadWrite);
    let (zero, one) = (b.u32(0), b.u32(1));
    // `finite_loop` claims that the loop ends. The claim is wrong, and must not be relied on.
    b.finite_loop(|b, _| {
        let place = b.element(data, zero);
        b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
    });
    let kir = b.finish();
    for gpu in devices() {
        let own = Device::open(&format!("{}:{}", gpu.backend_kind(), gpu.info().index)).unwrap();
        own.set_time_limit(Some(Duration::from_millis(100)));
        let data = own.alloc::<u32>(1).unwrap();
        let kernel = own.compile_ir(&kir).unwrap();
        own.run(&kernel, &[&data], 1).unwrap();
        let error = own.wait().unwrap_err();
        let mut workarounds = own.info().workarounds.iter();
        let driver_ends_loops = workarounds.any(|bug| bug.name == "report-aborted-loops");
        let expected = match error {
            GpuError::Timeout(_) => true,
            GpuError::Kernel(_) => driver_ends_loops,
            _ => false,
        };
        assert!(expected, "{gpu:?}: {error}");
        assert!(data.download().unwrap()[0] > 0);
    }
}

/// Returns the kind and the text of a shader error.
fn shader_error(error: GpuError) -> (ShaderErrorKind, String) {
    let text = error.to_string();
    let GpuError::Shader(error) = error else { panic!("{error}") };
    (error.kind, text)
}

#[test]
fn invalid_kernel_error_names_label() {
    let mut b = Builder::new("wrong", [64, 1, 1]);
    b.break_to(Label(7));
    let wrong = b.finish();
    for gpu in devices() {
        let (kind, text) = shader_error(gpu.compile_ir(&wrong).unwrap_err());
        assert_eq!(kind, ShaderErrorKind::Validation);
        assert!(text.contains("break L7"), "{text}");
        let options = CompileOptions::new().label("generated");
        let (_, text) = shader_error(gpu.compile_ir_with(&wrong, &options).unwrap_err());
        assert!(text.contains("generated: "), "{text}");
        let future = gpu.compile_ir_async(&wrong);
        assert!(pollster::block_on(future).is_err());
    }
}

#[test]
fn rejects_inapplicable_options() {
    let kir = increment("main");
    let gpu = Device::open("cpu").unwrap();
    let compile_with = |options| gpu.compile_ir_with(&kir, &options);
    assert!(compile_with(CompileOptions::new().entry("main")).is_ok());
    let (kind, _) = shader_error(compile_with(CompileOptions::new().entry("other")).unwrap_err());
    assert_eq!(kind, ShaderErrorKind::EntryPoint);
    let (kind, _) = shader_error(compile_with(CompileOptions::new().set("N", 1)).unwrap_err());
    assert_eq!(kind, ShaderErrorKind::Override);
}

#[test]
fn rejects_oversized_workgroups() {
    let kir = Builder::new("large", [4096, 4, 1]).finish();
    for gpu in devices() {
        let error = gpu.compile_ir(&kir).unwrap_err();
        assert!(matches!(error, GpuError::TooLarge(_)), "{error}");
        assert!(error.to_string().starts_with("Device::compile_ir: "), "{error}");
    }
}

#[test]
fn linearised_grids_run() {
    for gpu in devices() {
        let kernel = gpu.compile_ir(&increment("linear")).unwrap();
        let data = gpu.alloc::<u32>(1).unwrap();
        gpu.run(&kernel, &[&data], Launch::workgroups([70_000, 1, 1])).unwrap();
        assert_eq!(data.download().unwrap(), [70_000 * 64], "{}", gpu.name());
    }
}
