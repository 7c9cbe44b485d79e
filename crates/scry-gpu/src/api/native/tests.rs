//! Tests of the core's checks of native kernels, on a null device, which accepts every source.

use scry_ir::{Access, Scalar};

use super::{
    Language, NativeBinding, NativeBindings, NativeInterface, NativeParameter, NativeSpec,
};
use crate::api::device::Device;
use crate::api::error::{ErrorKind, GpuError};
use crate::api::kernel::Kernel;
use crate::api::launch::Launch;
use crate::backend::null::null_info;
use crate::testing;

fn saxpy() -> NativeInterface {
    let x = NativeBinding::read("x", Scalar::F32);
    let y = NativeBinding::read_write("y", Scalar::F32).with_length();
    NativeInterface::new([x, y], [64, 2, 1]).immediates(8).dynamic_shared(256)
}

fn compile(gpu: &Device, interface: &NativeInterface) -> Result<Kernel, GpuError> {
    // SAFETY: the null device runs nothing.
    unsafe { gpu.compile_ptx("anything", "saxpy", interface) }
}

fn null() -> Device {
    Device::open("null").unwrap()
}

#[test]
fn declared_interface_is_reflected() {
    let gpu = null();
    let kernel = compile(&gpu, &saxpy()).unwrap();
    let interface = kernel.interface();
    assert_eq!((kernel.entry_point(), kernel.workgroup_size()), ("saxpy", [64, 2, 1]));
    let bindings: Vec<_> = interface
        .bindings
        .iter()
        .map(|it| (it.binding, &*it.name, it.access, it.layout.to_string()))
        .collect();
    let expected = [
        (0, "x", Access::Read, "array<f32>".to_owned()),
        (1, "y", Access::ReadWrite, "array<f32>".to_owned()),
    ];
    assert_eq!(bindings, expected);
    assert_eq!(interface.workgroup_memory, 256);
    assert_eq!(interface.immediates.as_ref().map(|it| it.layout.fixed_size()), Some(8));
}

#[test]
fn launches_are_checked_against_the_declaration() {
    let gpu = null();
    let kernel = compile(&gpu, &saxpy()).unwrap();
    let (x, y) = (gpu.alloc::<f32>(8).unwrap(), gpu.alloc::<f32>(8).unwrap());
    let params = [0.5f32, 1.0];
    let good = Launch::invocations(8).immediates(&params);
    gpu.run(&kernel, &[&x, &y], good.clone()).unwrap();
    let words = gpu.alloc::<u32>(8).unwrap();
    let error = gpu.run(&kernel, &[&x, &words], good.clone()).unwrap_err();
    assert!(error.to_string().contains("the data is u32"), "{error}");
    let error = gpu.run(&kernel, &[&x, &x], good.clone()).unwrap_err();
    assert!(error.to_string().contains("the kernel writes `y`"), "{error}");
    let error = gpu.run(&kernel, &[&x], good).unwrap_err();
    assert!(error.to_string().contains("the kernel uses 2, but 1 was given"), "{error}");
    let error = gpu.run(&kernel, &[&x, &y], 8).unwrap_err();
    assert!(
        error.to_string().contains("immediates: the kernel needs 8 bytes, but none"),
        "{error}"
    );
    let long = Launch::invocations(8).immediates(&[0u32; 3]);
    let error = gpu.run(&kernel, &[&x, &y], long).unwrap_err();
    assert!(
        error.to_string().contains("12 bytes were given, but the kernel declares 8"),
        "{error}"
    );
    let short = Launch::invocations(8).immediates(&1u32);
    assert!(gpu.run(&kernel, &[&x, &y], short).is_err());
}

#[test]
fn undeclared_element_types_match_any() {
    let gpu = null();
    let kernel = compile(&gpu, &NativeInterface::new(2, [32, 1, 1])).unwrap();
    let (bytes, pairs) = (gpu.alloc::<u8>(7).unwrap(), gpu.alloc::<[f64; 2]>(3).unwrap());
    gpu.run(&kernel, &[&bytes, &pairs], 1).unwrap();
    // With only a number of bindings, all count as written.
    assert!(gpu.run(&kernel, &[&bytes, &bytes], 1).is_err());
}

#[test]
fn native_launches_are_not_linearised() {
    let mut info = null_info();
    info.limits.max_native_workgroups = [16, 4, 4];
    let (gpu, log) = testing::observed(info);
    let kernel = compile(&gpu, &NativeInterface::new(1, [1, 1, 1])).unwrap();
    let data = gpu.upload(&[1u32]).unwrap();
    gpu.run(&kernel, &[&data], 16).unwrap();
    let _ = log.take();
    let error = gpu.run(&kernel, &[&data], 17).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("17 × 1 × 1 workgroups") && text.contains("16 × 4 × 4"), "{text}");
    assert_eq!(error.kind(), ErrorKind::Usage);
    // The limits of WGSL's indices and of linearised grids do not apply.
    for launch in [Launch::workgroups([1, 65536, 65537]), Launch::invocations(1u64 << 40)] {
        let text = gpu.run(&kernel, &[&data], launch).unwrap_err().to_string();
        assert!(text.contains("16 × 4 × 4 of a kernel that is not WGSL"), "{text}");
    }
    assert_eq!(log.take().dispatches, 0);
}

#[test]
fn declarations_beyond_the_device_are_rejected() {
    let gpu = null();
    let one = |block| NativeInterface::new(1, block);
    let wide = compile(&gpu, &one([2048, 1, 1]));
    assert!(matches!(wide, Err(GpuError::TooLarge(_))), "{wide:?}");
    let none = compile(&gpu, &one([0, 1, 1]));
    assert!(matches!(none, Err(GpuError::Argument(_))), "{none:?}");
    let shared = compile(&gpu, &one([1; 3]).dynamic_shared(1 << 20));
    assert!(matches!(shared, Err(GpuError::TooLarge(_))), "{shared:?}");
    let odd = compile(&gpu, &one([1; 3]).immediates(6)).unwrap_err();
    assert!(odd.to_string().contains("not a multiple of 4"), "{odd}");
    let many = compile(&gpu, &NativeInterface::new(1000, [1; 3]));
    assert!(matches!(many, Err(GpuError::TooLarge(_))), "{many:?}");
}

#[test]
fn overflowing_declarations_are_rejected() {
    let gpu = null();
    let one = |block| NativeInterface::new(1, block);
    let words = |count: usize| vec![NativeParameter::U32; count];
    let declared = [
        one([u32::MAX; 3]),
        one([1, u32::MAX, 1]),
        one([1; 3]).dynamic_shared(u32::MAX),
        one([1; 3]).immediates(u32::MAX),
        one([1; 3]).immediates(u32::MAX - 3),
        one([1; 3]).with_parameters(words(1025)),
        one([1; 3]).with_parameters(words(1 << 20)),
        one([1; 3]).with_parameters(vec![NativeParameter::TensorMap(usize::MAX)]),
        one([1; 3]).with_parameters(vec![NativeParameter::Pointer(1)]),
        one([1; 3]).with_parameters([NativeParameter::U64]).immediates(4),
        NativeInterface::new(1 << 16, [1; 3]),
    ];
    for interface in declared {
        let error = compile(&gpu, &interface).unwrap_err();
        let is_expected = matches!(error, GpuError::TooLarge(_) | GpuError::Argument(_));
        assert!(is_expected, "{interface:?}: {error}");
    }
}

#[test]
fn pdl_reads_must_be_read_only() {
    let gpu = null();
    assert!(compile(&gpu, &saxpy().pdl([0])).is_ok());
    for at in [1, 2] {
        let error = compile(&gpu, &saxpy().pdl([0, at])).unwrap_err().to_string();
        assert!(error.contains("`reads` of NativeInterface::pdl"), "{error}");
        assert!(error.contains(&format!("binding {at} of 2 is not read-only")), "{error}");
    }
}

#[test]
fn invalid_sources_and_names_are_rejected() {
    let gpu = null();
    let interface = NativeInterface::new(1, [1; 3]);
    let compile = |source: &str, entry: &str| {
        // SAFETY: the null device runs nothing.
        unsafe { gpu.compile_ptx(source, entry, &interface) }.map(|_| ())
    };
    assert_eq!(compile("a", "k"), Ok(()));
    let error = compile("ab\0c", "k").unwrap_err();
    assert!(error.to_string().contains("byte 2 of the source is 0"), "{error}");
    for name in ["", "a b", "a\0", "a\n"] {
        assert!(compile("a", name).is_err(), "{name:?}");
    }
}

#[test]
fn wgsl_backends_suggest_cuda() {
    let Some(info) = Device::list().into_iter().find(|info| info.backend.name() == "cpu") else {
        eprintln!("skipped: this build has no CPU backend");
        return;
    };
    let gpu = Device::open(&format!("cpu:{}", info.index)).unwrap();
    // SAFETY: nothing is compiled.
    let error = unsafe { gpu.compile_cuda("x", "k", 1, [1; 3]) }.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("kernel `k` is written in CUDA C"), "{text}");
    assert!(text.contains("does not run: cpu") && text.contains("open a CUDA device"), "{text}");
    assert_eq!(error.kind(), ErrorKind::Kernel);
}

#[test]
fn derived_parameters_are_in_order() {
    let a = NativeBinding::read("a", Scalar::F32).with_length();
    let b = NativeBinding::read("b", Scalar::F32);
    let c = NativeBinding::read_write_bytes("c").with_length();
    let interface = NativeInterface::new([a, b, c], [1; 3]).immediates(4);
    let block = interface.encode_parameters(&[(0x10, 12), (0x20, 8), (0x30, 7)], &[1, 2, 3, 4]);
    let (words, rest) = block.as_chunks::<8>();
    assert_eq!(
        words.iter().map(|w| u64::from_ne_bytes(*w)).collect::<Vec<_>>(),
        [0x10, 0x20, 0x30, 3, 7]
    );
    assert_eq!(rest, [1, 2, 3, 4]);
}

#[test]
fn declared_parameters_have_c_layout() {
    let [pointer, map] = [NativeParameter::Pointer(0), NativeParameter::TensorMap(0)];
    let [word, long] = [NativeParameter::U32, NativeParameter::U64];
    let sizes = |list: &[NativeParameter]| {
        let interface = NativeInterface::new(1, [1; 3]).with_parameters(list);
        (interface.parameter_bytes(), interface.immediate_bytes())
    };
    assert_eq!(sizes(&[]), (0, 0));
    assert_eq!(sizes(&[word, pointer, word]), (20, 8));
    assert_eq!(sizes(&[word, long, word, word]), (24, 20));
    assert_eq!(sizes(&[pointer, map, word, map]), (64 + 128 + 64 + 128, 2 * 128 + 4));
}

#[test]
fn keys_contain_the_whole_declaration() {
    let original = NativeSpec { language: Language::Ptx, interface: saxpy() };
    let spec = |interface| NativeSpec { language: Language::Ptx, interface };
    let binding = |change: fn(&mut NativeBinding)| {
        let mut interface = saxpy();
        change(&mut interface.bindings.0[1]);
        spec(interface)
    };
    let others = [
        NativeSpec { language: Language::CudaC, ..original.clone() },
        spec(saxpy().immediates(12)),
        spec(saxpy().dynamic_shared(0)),
        spec(NativeInterface { block: [64, 1, 2], ..saxpy() }),
        spec(saxpy().pdl([])),
        spec(saxpy().pdl([0])),
        spec(NativeInterface { declared: Some(Vec::new()), ..saxpy() }),
        spec(NativeInterface { declared: Some(vec![NativeParameter::U64]), ..saxpy() }),
        spec(NativeInterface { declared: Some(vec![NativeParameter::TensorMap(1)]), ..saxpy() }),
        spec(NativeInterface { declared: Some(vec![NativeParameter::TensorMap(0)]), ..saxpy() }),
        spec(NativeInterface { bindings: NativeBindings::from(2), ..saxpy() }),
        binding(|it| it.name.push('z')),
        binding(|it| it.writes = false),
        binding(|it| it.length = false),
        binding(|it| it.min_len = 4),
        binding(|it| it.element = None),
        binding(|it| it.element = Some(Scalar::U32)),
    ];
    for other in &others {
        assert_ne!(other.to_bytes(), original.to_bytes(), "{other:?}");
    }
    let gpu = null();
    let kernel = compile(&gpu, &saxpy()).unwrap();
    let (a, b) = (compile(&gpu, &saxpy()).unwrap(), compile(&gpu, &saxpy().immediates(12)));
    assert_eq!(a.interface(), kernel.interface());
    assert_ne!(b.unwrap().interface(), kernel.interface());
}

mod products {
    use half::{bf16, f16};

    use super::*;
    use crate::api::native::Routine;

    #[test]
    fn buffers_may_exceed_their_matrices() {
        let (gpu, log) = testing::observed(null_info());
        let (a, b) = (gpu.upload(&[1.0f32; 6]).unwrap(), gpu.upload(&[1.0f32; 15]).unwrap());
        let c = gpu.upload(&[1.0f32; 11]).unwrap();
        let _ = log.take();
        gpu.cublas_matmul(&a, &b, &c, 2, 5u32, 3usize).unwrap();
        gpu.cublas_matmul_tf32(&a, &b, &c, 2, 5, 3).unwrap();
        assert_eq!(log.take().dispatches, 2);
        for (sizes, name) in
            [([3, 5, 3], "a"), ([2, 5, 4], "a"), ([2, 6, 3], "b"), ([2, 7, 2], "c")]
        {
            let [m, n, k] = sizes;
            let error = gpu.cublas_matmul(&a, &b, &c, m, n, k).unwrap_err();
            assert!(matches!(error, GpuError::BufferAccess(_)), "{error}");
            assert!(error.to_string().contains(&format!("`{name}` is ")), "{sizes:?}: {error}");
        }
        let negative = gpu.cublas_matmul(&a, &b, &c, -1, 5, 3).unwrap_err();
        assert!(matches!(negative, GpuError::Argument(_)), "{negative}");
        for (m, n, k) in [(2, 1i64 << 31, 3), (2, 5, i64::MAX)] {
            let error = gpu.cublas_matmul(&a, &b, &c, m, n, k).unwrap_err();
            assert!(matches!(error, GpuError::TooLarge(_)), "{error}");
        }
        let max = i32::MAX;
        let error = gpu.cublas_matmul(&a, &b, &c, max, max, max).unwrap_err();
        assert!(matches!(error, GpuError::BufferAccess(_)), "{error}");
        assert_eq!(log.take().dispatches, 0);
    }

    #[test]
    fn overlapping_results_are_rejected() {
        let gpu = null();
        let (a, b) = (gpu.alloc::<f16>(4).unwrap(), gpu.alloc::<f16>(4).unwrap());
        gpu.cublas_matmul(&a, &a, &b, 2, 2, 2).unwrap();
        let error = gpu.cublas_matmul(&a, &b, &a, 2, 2, 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Device::cublas_matmul: `c` is written, but shares bytes 0..8 of its memory with `a`; \
             help: pass buffers or slices that do not overlap"
        );
        let other = null();
        let c = other.alloc::<f16>(4).unwrap();
        let error = gpu.cublas_matmul(&a, &b, &c, 2, 2, 2).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("Device::cublas_matmul: the buffer (`c`) belongs to "), "{text}");
    }

    #[test]
    fn errors_name_function_and_parameters() {
        let gpu = null();
        let named = |name: &str| gpu.upload(&[1.0f32; 6]).unwrap().with_label(name);
        let (x, y, z) = (named("x"), named("y"), named("z"));
        let unaligned = z.slice(1..).unwrap().to_owned_slice();
        let texts = [
            gpu.cublas_matmul(&x, &y, &z, 2, 3, 4),
            gpu.cublas_matmul_tf32(&x, &y, &z, 2, -3, 3),
            gpu.cublas_matmul_tf32(&x, &y, &unaligned, 2, 2, 3),
            gpu.batch().cublas_matmul(&x, &y, &z, 4, 2, 1).map(|_| ()),
        ]
        .map(|rejected| rejected.unwrap_err().to_string());
        let order = "pass m, n and k in this order: rows of c, columns of c, reduction dimension";
        assert_eq!(
            texts,
            [
                format!(
                    "Device::cublas_matmul: `a` is m × k = 2 × 4 = 8 elements, but buffer `x` has \
                     6; help: {order}"
                ),
                "Device::cublas_matmul_tf32: `n` is negative: -3; help: pass m, n and k from 0 to \
                 2147483647"
                    .to_owned(),
                "Device::cublas_matmul_tf32: `c` begins at byte 4 of its memory, but matrices must \
                 begin at multiples of 16 bytes; help: copy the slice to a buffer of its own, or \
                 pad the data"
                    .to_owned(),
                format!(
                    "Batch::cublas_matmul: `c` is m × n = 4 × 2 = 8 elements, but buffer `z` has \
                     6; help: {order}"
                ),
            ]
        );
    }

    #[test]
    fn zero_sizes_are_handled() {
        let (gpu, log) = testing::observed(null_info());
        let (none, c) = (gpu.alloc::<bf16>(0).unwrap(), gpu.upload(&[bf16::ONE; 7]).unwrap());
        gpu.cublas_matmul(&none, &none, &c, 2, 3, 0).unwrap();
        let mut expected = [bf16::ZERO; 7];
        expected[6] = bf16::ONE;
        assert_eq!(c.download().unwrap(), expected);
        let _ = log.take();
        gpu.cublas_matmul(&none, &c, &none, 0, 1, 7).unwrap();
        gpu.cublas_matmul(&c, &none, &none, 1, 0, 7).unwrap();
        assert_eq!(log.take().dispatches, 0);
    }

    #[test]
    fn products_are_ordered_like_kernels() {
        let (gpu, log) = testing::observed(null_info());
        let buffers: Vec<_> = (0..4).map(|_| gpu.upload(&[0f32; 4]).unwrap()).collect();
        let [a, b, c, d] = &buffers[..] else { unreachable!() };
        gpu.wait().unwrap();
        let _ = log.take();
        let mut batch = gpu.batch();
        batch.cublas_matmul(a, b, c, 2, 2, 2).unwrap();
        batch.cublas_matmul(a, c, d, 2, 2, 2).unwrap();
        assert!(batch.cublas_matmul(a, c, d, 3, 3, 3).is_err());
        // The null device checks the order of a submission.
        batch.submit().unwrap();
        assert_eq!(log.take().dispatches, 2);
    }

    #[test]
    fn other_backends_suggest_cuda() {
        let Ok(gpu) = Device::open("cpu") else {
            eprintln!("skipped: this build has no CPU backend");
            return;
        };
        let a = gpu.alloc::<f32>(1).unwrap();
        let b = gpu.alloc::<f32>(1).unwrap();
        let error = gpu.cublas_matmul(&a, &a, &b, 1, 1, 1).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("Device::cublas_matmul: cuBLAS is not available: "), "{text}");
        assert!(text.contains("; help: open a CUDA device"), "{text}");
    }

    #[test]
    fn each_routine_has_its_name() {
        for routine in [Routine::F32, Routine::Tf32, Routine::F16, Routine::Bf16] {
            assert_eq!(Routine::from_name(routine.name()), Some(routine));
        }
        assert_eq!(Routine::from_name("cublas"), None);
    }
}
