//! Tests of the error texts of rejected calls, on the null device.

use scry_gpu::{Binding, Device, Features, GpuError, TensorMap, bf16, f16, testing};
use scry_kernels::{Kernels, Plan, PtxKernel, Target};
use scry_ptx::PtxEntry;
use scry_ptx::kernels::{BufferSlot, KernelInterface, LaunchShape};
use scry_test_support::succeed;

use crate::custom_kernels::{Saxpy, TileCopy, prepare};
use crate::harness::{having_variant, null_h200_kernels, null_kernels};

const COPY: TileCopy = TileCopy { rows: 9, columns: 33, ld: 36, cluster: 1 };

fn tile_copy_plan(copy: &TileCopy) -> Plan {
    Plan::single(Box::new(copy.clone()))
}

/// Returns the error text of a plan of ten elements that is prepared with these buffers.
fn prepare_error(kernels: &Kernels, buffers: &[&dyn Binding]) -> String {
    let plan = Plan::single(Box::new(Saxpy { a: 1.0, n: 10 }));
    prepare(kernels, &plan, buffers).expect_err("it is rejected").to_string()
}

#[test]
fn rejects_buffers_that_do_not_fit() {
    let kernels = null_h200_kernels();
    let gpu = kernels.device();
    let ten = succeed(gpu.alloc::<f32>(10)).with_label("ten");
    let nine = succeed(gpu.alloc::<f32>(9)).with_label("nine");
    let words = succeed(gpu.alloc::<u32>(10)).with_label("words");
    assert_eq!(
        prepare_error(&kernels, &[&ten, &nine]),
        "Kernels::prepare of `own`: buffer `x` (labelled `nine`) has 9 elements, but the plan \
         needs at least 10; help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        prepare_error(&kernels, &[&ten]),
        "Kernels::prepare of `own`: the list of buffers has length 1, but needs 2; help: pass \
         `y` (f32, written), `x` (f32) in this order"
    );
    let text = prepare_error(&kernels, &[&ten, &words]);
    assert_eq!(
        text,
        "Kernels::prepare of `own`: buffer `x` (labelled `words`) has elements of u32, but f32 is \
         needed; help: pass a buffer of f32"
    );
    let text = prepare_error(&kernels, &[&ten, &ten]);
    assert_eq!(
        text,
        "Kernels::prepare of `own`: buffer `y` (labelled `ten`) is written, but shares bytes 0..40 \
         of its memory with buffer `x`; help: pass buffers or slices that do not overlap"
    );
}

#[test]
fn disjoint_slices_are_accepted() {
    let (kernels, log) = null_kernels([9, 0]);
    let both = succeed(kernels.device().upload(&[1.0f32; 22]));
    let (y, x) = (succeed(both.slice(..12)), succeed(both.slice(12..)));
    let plan = Plan::single(Box::new(Saxpy { a: 1.0, n: 10 }));
    let _ = log.take();
    succeed(succeed(prepare(&kernels, &plan, &[&y, &x])).run());
    assert_eq!(log.take().dispatches, 1);
}

#[test]
fn rejects_other_devices_buffers_and_batches() {
    let (one, other) = (null_h200_kernels(), null_h200_kernels());
    let ours = succeed(one.device().alloc::<f32>(10));
    let theirs = succeed(other.device().alloc::<f32>(10));
    let text = prepare_error(&one, &[&ours, &theirs]);
    assert!(text.starts_with("Kernels::prepare of `own`: buffer `x` belongs to "), "{text}");
    assert!(text.contains("clone the Device instead"), "{text}");
    let plan = Plan::single(Box::new(Saxpy { a: 1.0, n: 10 }));
    let x = succeed(one.device().alloc::<f32>(10));
    let op = succeed(prepare(&one, &plan, &[&ours, &x]));
    let error = op.add_to(&mut other.device().batch()).unwrap_err();
    assert!(matches!(error, GpuError::WrongDevice(_)), "{error}");
    let text = error.to_string();
    let expected = "Op::add_to: the operation prepared by Kernels::prepare of `own` \
                    belongs to ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn missing_capability_error_names_kernel() {
    for (capability, present) in [([8, 6], "8.6"), ([10, 0], "10.0")] {
        let (kernels, log) = null_kernels(capability);
        let buffer = || succeed(kernels.device().alloc::<f32>(9 * 36));
        let error = prepare(&kernels, &tile_copy_plan(&COPY), &[&buffer(), &buffer()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "Kernels::prepare of `own`: kernel `test_tile_copy_1` needs compute capability \
                 9.0, no other (sm_90a), but null device has compute capability {present}; help: \
                 run it on such a GPU (Device::list shows those present), or make the plan with \
                 Kernels::gpu_spec"
            )
        );
        assert_eq!(log.take().dispatches, 0);
        let saxpy = Plan::single(Box::new(Saxpy { a: 1.0, n: 10 }));
        succeed(succeed(prepare(&kernels, &saxpy, &[&buffer(), &buffer()])).run());
    }
    let (old, _) = null_kernels([7, 5]);
    let buffer = || succeed(old.device().alloc::<f32>(10));
    let text = prepare_error(&old, &[&buffer(), &buffer()]);
    assert!(text.contains("needs compute capability 8.0 or newer (sm_80)"), "{text}");
    let [a, b, out] = [(); 3].map(|()| succeed(old.device().alloc::<bf16>(9)));
    let text = having_variant(&old, "ptx").matmul(&a, &b, &out, 3, 3, 1).unwrap_err().to_string();
    assert!(text.starts_with("Kernels::matmul (m=3, n=3, k=1) needs support for its"), "{text}");
    assert!(text.contains("none: it needs compute capability 8.0 or newer (sm_80)"), "{text}");
}

#[test]
fn oversized_scratch_error_names_use() {
    let mut info = testing::null_info();
    (info.compute_capability, info.multiprocessors) = (Some([9, 0]), Some(132));
    info.limits.max_workgroup_memory = 227 << 10;
    info.limits.max_buffer_size = 2_010_000;
    let kernels = succeed(Kernels::new(&testing::observed(info).0));
    let buffer = || succeed(kernels.device().alloc::<f16>(1001 * 1001));
    // Rows of 1001 elements are repacked to a stride that is a multiple of 128 bytes.
    let (a, b, out) = (buffer(), buffer(), buffer());
    let error = kernels.matmul(&a, &b, &out, 1001, 1001, 1001).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::matmul: scratch memory of the kernel library is 2050048 bytes, but null device \
         is limited to 2010000 bytes (max_buffer_size); help: split the operation over several \
         calls"
    );
}

#[test]
fn oversized_grid_error_names_function() {
    let mut info = testing::null_info();
    (info.compute_capability, info.multiprocessors) = (Some([9, 0]), Some(132));
    info.limits.max_workgroup_memory = 227 << 10;
    info.limits.max_native_workgroups = [4, 4, 4];
    let kernels = succeed(Kernels::new(&testing::observed(info).0));
    let buffer = || succeed(kernels.device().alloc::<f32>(5000 * 1024));
    let (x, y) = (buffer(), buffer());
    let error = kernels.softmax(&x, &y, 5000, 1024).unwrap_err().to_string();
    let prefix = "Kernels::softmax: the grid for rows=5000, columns=1024 is ";
    assert!(error.starts_with(prefix), "{error}");
    assert!(
        error.ends_with("(max_native_workgroups); help: split the operation over several calls"),
        "{error}"
    );
}

#[test]
fn rejects_steps_with_missing_buffers() {
    let kernels = null_h200_kernels();
    let buffer = || succeed(kernels.device().alloc::<f32>(10));
    let error_of = |place| {
        let mut plan = Plan::single(Box::new(Saxpy { a: 1.0, n: 10 }));
        plan.steps[0].buffers[1] = place;
        prepare(&kernels, &plan, &[&buffer(), &buffer()]).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        error_of(BufferSlot::Argument(2)),
        "Kernels::prepare of `own`: `plan` has a step that uses Argument(2), which the plan does \
         not have; help: arguments and scratch buffers are counted from 0"
    );
    assert!(error_of(BufferSlot::Scratch(0)).contains("Scratch(0)"));
}

/// [`Saxpy`] under another name.
#[derive(Debug)]
struct Renamed(Saxpy, String);

impl PtxKernel for Renamed {
    fn name(&self) -> String {
        self.1.clone()
    }

    fn default_target(&self) -> Target {
        self.0.default_target()
    }

    fn write(&self, target: Target) -> PtxEntry {
        PtxEntry { name: self.name(), ..self.0.write(target) }
    }

    fn launch(&self) -> LaunchShape {
        self.0.launch()
    }

    fn interface(&self) -> KernelInterface {
        self.0.interface()
    }
}

#[test]
fn user_kernels_never_alias_library_kernels() {
    let kernels = null_h200_kernels();
    let buffer = || succeed(kernels.device().alloc::<f32>(64));
    let [x, weight, y] = [buffer(), buffer(), buffer()];
    let other = null_h200_kernels();
    let input = succeed(other.device().alloc::<f32>(64));
    let out = succeed(other.device().alloc::<f32>(64));
    let softmax = succeed(other.softmax(&input, &out, 2, 32));
    let renamed = |n| Renamed(Saxpy { a: 1.0, n }, softmax.kernel_names()[0].to_owned());
    // The user's kernel is compiled first. Its parameters differ from those of the library's
    // softmax.
    let own = Plan::single(Box::new(renamed(10)));
    let own = succeed(prepare(&kernels, &own, &[&x, &weight]));
    assert_eq!(own.kernel_names(), softmax.kernel_names());
    succeed(succeed(kernels.softmax(&x, &y, 2, 32)).run());
    succeed(own.run());
    succeed(succeed(kernels.softmax(&y, &x, 2, 32)).run());
}

#[test]
fn plans_need_device_that_runs_ptx() {
    let gpu = succeed(Device::open("cpu"));
    let buffer = || succeed(gpu.alloc::<f32>(10));
    let text = prepare_error(&succeed(Kernels::new(&gpu)), &[&buffer(), &buffer()]);
    let start = "Kernels::prepare of `own`: kernel `test_saxpy` is written in PTX, which this \
                 backend does not run: cpu:0 ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("help: open a CUDA device"), "{text}");
}

#[test]
fn rejects_excessive_shared_memory() {
    let mut info = testing::null_info();
    (info.compute_capability, info.multiprocessors) = (Some([9, 0]), Some(1));
    let kernels = succeed(Kernels::new(&testing::observed(info).0));
    let buffer = || succeed(kernels.device().alloc::<f32>(9 * 36));
    let error = prepare(&kernels, &tile_copy_plan(&COPY), &[&buffer(), &buffer()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::prepare of `own`: kernel `test_tile_copy_1`, dynamic shared memory is 65536 \
         bytes, but null device is limited to 32768 bytes (max_workgroup_memory); help: declare \
         less with NativeInterface::dynamic_shared"
    );
}

/// The error texts of each entry point, one per line.
mod golden {
    use scry_gpu::Buffer;
    use scry_kernels::{
        Attention, BlockFormat, Gemm, Layout, MatrixLayout, Op, Precision, PtxType,
    };
    use scry_test_support::{golden, root};

    use super::*;

    /// The golden file with the expected texts.
    const FILE: &str = "corpus/out/kernels/rejections.txt";

    fn record(lines: &mut Vec<String>, what: &str, outcome: scry_gpu::Result<Op>) {
        let error = outcome.expect_err("it is rejected");
        lines.push(format!("{what}:\n    {error}\n"));
    }

    /// Returns the errors of calls of each entry point, with buffers of 12 elements.
    fn all_errors(kernels: &Kernels) -> Vec<String> {
        let gpu = kernels.device();
        let named = |name: &str| succeed(gpu.alloc::<f32>(12)).with_label(name);
        let (x, y, w) = (named("x"), named("y"), named("w"));
        let bf16s = succeed(gpu.alloc::<bf16>(12)).with_label("bf16s");
        let empty: Buffer<f32> = succeed(gpu.alloc(0)).with_label("empty");
        let bias = succeed(gpu.alloc::<f32>(3)).with_label("bias");
        let ints = succeed(gpu.alloc::<i32>(12)).with_label("ints");
        let mut lines = Vec::new();
        products(kernels, [&x, &y, &w], &bf16s, &mut lines);
        attention(kernels, [&x, &y, &w], &mut lines);
        quantized(kernels, [&x, &y], &mut lines);
        let mut rows = |what, outcome| record(&mut lines, what, outcome);
        rows("softmax of too many rows", kernels.softmax(&x, &y, 4, 4));
        let ptx = having_variant(kernels, "ptx");
        rows("softmax of empty rows, with PTX", ptx.softmax(&x, &y, 4, 0));
        rows("softmax of long rows", kernels.softmax(&x, &y, 1, 1 << 40));
        rows("softmax of sizes beyond 64 bits", kernels.softmax(&x, &y, 1 << 40, 1 << 40));
        rows("softmax in place", kernels.softmax(&x, &x, 3, 4));
        rows("log_softmax into an empty buffer", kernels.log_softmax(&x, &empty, 3, 4));
        let norm = kernels.layer_norm(&x, Some(&bias), None, &y, 3, 4, 1e-5);
        rows("layer_norm with a short weight", norm);
        let norm = kernels.layer_norm(&x, None, Some(&w), &y, 3, 4, 1e-5);
        rows("layer_norm with a bias alone", norm);
        let norm = kernels.rms_norm(&x, Some(&y), &y, 3, 4, 1e-5);
        rows("rms_norm with its weight as result", norm);
        rows("rms_norm of too many rows", kernels.rms_norm(&x, Some(&w), &y, 4, 4, 1e-5));
        rows("rms_norm of integers", kernels.rms_norm(&ints, None, &y, 3, 4, 1e-5));
        let norm = kernels.rms_norm(&x, Some(&bf16s), &y, 3, 4, 1e-5);
        rows("rms_norm with a weight of another type", norm);
        rows("rms_norm in place", kernels.rms_norm(&x, Some(&w), &x, 3, 4, 1e-5));
        let tail = succeed(x.slice(1..)).to_owned_slice();
        let norm = kernels.rms_norm(&tail, Some(&w), &y, 2, 4, 1e-5);
        rows("rms_norm of an unaligned slice", norm);
        variants(kernels, [&x, &y, &w], &mut lines);
        lines
    }

    /// Errors of variants that do not exist, or that the device does not support.
    fn variants(kernels: &Kernels, [x, y, w]: [&Buffer<f32>; 3], lines: &mut Vec<String>) {
        let unknown = having_variant(kernels, "fast").softmax(x, y, 3, 4);
        record(lines, "an unknown variant", unknown);
        let mut info = testing::null_info();
        (info.compute_capability, info.multiprocessors) = (Some([7, 5]), Some(1));
        info.features = Features::empty();
        let old = succeed(Kernels::new(&testing::observed(info).0));
        let [a, b] = [(); 2].map(|()| succeed(old.device().alloc::<f16>(12)));
        let ptx = having_variant(&old, "ptx").softmax(&a, &b, 3, 4);
        record(lines, "PTX on an old GPU", ptx);
        record(lines, "f16 on a device without any variant", old.softmax(&a, &b, 3, 4));
        let (blocks, weights) =
            (succeed(old.device().alloc::<u8>(34)), succeed(old.device().alloc::<f32>(32)));
        let odd = having_variant(&old, "wgsl").quantize(BlockFormat::Q8_0, &weights, &blocks, 32);
        record(lines, "quantize to part of a word without 16-bit integers", odd);
        let gemm = Gemm { precision: Precision::Tf32, ..Gemm::new(2, 2, 2, PtxType::F32) };
        let product = having_variant(kernels, "cublas").gemm(&gemm, &[x, y, w]);
        record(lines, "gemm with TF32 by cuBLAS", product);
    }

    fn attention(kernels: &Kernels, [x, y, w]: [&Buffer<f32>; 3], lines: &mut Vec<String>) {
        let mut attention = |what, shape: Attention, buffers: &[&dyn Binding]| {
            record(lines, what, kernels.attention(&shape, buffers));
        };
        let fits = Attention::new([1, 1], 3, 3, 4, PtxType::F32);
        attention("attention in place", fits, &[x, y, w, x]);
        attention("attention of too few buffers", fits, &[x, y, w]);
        attention("attention of short keys", Attention { keys: 4, ..fits }, &[x, y, w, w]);
        let other = Attention { element: PtxType::F16, ..fits };
        attention("attention of another type", other, &[x, y, w, w]);
        let wide = Attention { head_dim: 257, ..fits };
        attention("attention of long rows", wide, &[x, y, w, w]);
        let ungrouped = Attention { heads: 3, kv_heads: 2, ..fits };
        attention("attention of an invalid number of kv_heads", ungrouped, &[x, y, w, w]);
        let tail = succeed(x.slice(1..)).to_owned_slice();
        let one = Attention::new([1, 1], 1, 1, 4, PtxType::F32);
        attention("attention of an unaligned slice", one, &[&tail, y, w, x]);
        let naive = having_variant(kernels, "ptx-naive");
        let mut naive = |what, shape: Attention, buffers: &[&dyn Binding]| {
            record(lines, what, naive.attention(&shape, buffers));
        };
        naive("naive attention in place", fits, &[x, y, w, x]);
        naive("naive attention of short keys", Attention { keys: 4, ..fits }, &[x, y, w, w]);
        naive("naive attention of too few buffers", fits, &[x, y, w]);
        naive("naive attention of an unaligned slice", one, &[&tail, y, w, x]);
    }

    fn quantized(kernels: &Kernels, [x, y]: [&Buffer<f32>; 2], lines: &mut Vec<String>) {
        let (format, mut weights) = (BlockFormat::Q4K, |what, it| record(lines, what, it));
        let blocks = succeed(kernels.device().alloc::<u8>(144)).with_label("blocks");
        weights("quantize of a partial block", kernels.quantize(format, x, &blocks, 12));
        weights("quantize of a short buffer", kernels.quantize(format, x, &blocks, 256));
        weights("dequantize into a short buffer", kernels.dequantize(format, &blocks, y, 256));
        let more = kernels.quantized_matmul(format, &blocks, x, y, [2, 256], 1);
        weights("quantized_matmul of too few weights", more);
        let odd = kernels.quantized_matmul(format, &blocks, x, y, [1, 255], 1);
        weights("quantized_matmul of rows with partial blocks", odd);
        let short = kernels.quantized_matmul(format, &blocks, x, y, [1, 256], 9);
        weights("quantized_matmul of short activations", short);
    }

    fn products(
        kernels: &Kernels,
        [x, y, w]: [&Buffer<f32>; 3],
        bf16s: &Buffer<bf16>,
        lines: &mut Vec<String>,
    ) {
        let mut product = |what, outcome| record(lines, what, outcome);
        product("matmul of a short operand", kernels.matmul(x, y, w, 3, 4, 5));
        product("matmul of an operand of another type", kernels.matmul(x, bf16s, w, 3, 3, 3));
        product("matmul into an operand", kernels.matmul(x, y, x, 3, 3, 3));
        let tail = succeed(x.slice(1..)).to_owned_slice();
        product("matmul of an unaligned slice", kernels.matmul(&tail, y, w, 3, 3, 3));
        let cublas = having_variant(kernels, "cublas");
        product("matmul by cuBLAS of a short operand", cublas.matmul(x, y, w, 3, 4, 5));
        product("matmul by cuBLAS into an operand", cublas.matmul(x, y, x, 3, 3, 3));
        product("matmul by cuBLAS of an unaligned slice", cublas.matmul(&tail, y, w, 3, 3, 3));
        let huge = kernels.matmul(x, y, w, 1 << 40, 1 << 40, 1 << 40);
        product("matmul of sizes beyond the maximum", huge);
        let bf16_gemm = Gemm::new(3, 3, 3, PtxType::Bf16);
        product("gemm of another type", kernels.gemm(&bf16_gemm, &[x, y, w]));
        let mut overlapping = Gemm::new(3, 3, 3, PtxType::Bf16);
        overlapping.out = MatrixLayout { order: Layout::RowMajor, ld: 2, stride: 9 };
        product("gemm of rows that overlap", kernels.gemm(&overlapping, &[bf16s, bf16s, bf16s]));
        let mut biased = Gemm::new(3, 3, 3, PtxType::Bf16);
        biased.epilogue.bias = true;
        product("gemm without its bias", kernels.gemm(&biased, &[bf16s, bf16s, bf16s]));
    }

    #[test]
    fn error_texts_match_golden_file() {
        let actual = all_errors(&null_h200_kernels()).concat();
        // Words about the library's own kernels, which users did not write.
        let internal = ["@group", "kernel `", "entry point"];
        assert!(internal.iter().all(|word| !actual.contains(word)), "{actual}");
        golden::compare_file(&root().join(FILE), &actual);
    }
}

/// Tests of grids with partial clusters, and of tensor maps beyond their buffers.
mod partial_clusters {
    use scry_ptx::kernels::Parameter;

    use super::*;

    /// A [`TileCopy`] whose grid, cluster size and rows of the destination need not fit together.
    #[derive(Debug)]
    struct PartialCluster {
        grid: [u32; 3],
        cluster: u32,
        rows: u64,
    }

    impl PtxKernel for PartialCluster {
        fn name(&self) -> String {
            TileCopy { cluster: self.cluster, ..COPY }.name()
        }

        fn default_target(&self) -> Target {
            COPY.default_target()
        }

        fn write(&self, target: Target) -> PtxEntry {
            TileCopy { cluster: self.cluster, ..COPY }.write(target)
        }

        fn launch(&self) -> LaunchShape {
            LaunchShape { grid: self.grid, ..COPY.launch() }
        }

        fn interface(&self) -> KernelInterface {
            let mut interface = COPY.interface();
            let Parameter::TensorMap(_, map) = &mut interface.parameters[2] else { unreachable!() };
            map.dims[1] = self.rows;
            interface
        }
    }

    /// Returns the error text of a plan of this kernel.
    fn plan_error(kernel: PartialCluster) -> String {
        let kernels = null_h200_kernels();
        let buffer = || succeed(kernels.device().alloc::<f32>(9 * 36));
        let buffers = [buffer(), buffer()];
        let plan = Plan::single(Box::new(kernel));
        let op = prepare(&kernels, &plan, &[&buffers[0], &buffers[1]]);
        let outcome = op.and_then(|op| op.run());
        outcome.expect_err("it is rejected").to_string()
    }

    #[test]
    fn rejects_grids_with_partial_clusters() {
        assert_eq!(
            plan_error(PartialCluster { grid: [3, 1, 1], cluster: 2, rows: 9 }),
            "Kernels::prepare of `own`: the grid of kernel `test_tile_copy_2` has 3 x 1 x 1 \
             blocks, not a multiple of the cluster, 2 x 1 x 1 blocks; help: launch a positive \
             multiple of the cluster on each axis"
        );
        let none = plan_error(PartialCluster { grid: [2, 0, 1], cluster: 1, rows: 9 });
        assert!(none.contains("2 x 0 x 1 blocks"), "{none}");
        let many = plan_error(PartialCluster { grid: [2, 70000, 1], cluster: 1, rows: 9 });
        assert!(many.contains("2 × 70000 × 1 workgroups"), "{many}");
    }

    #[test]
    fn rejects_tensor_maps_beyond_buffer() {
        assert_eq!(
            plan_error(PartialCluster { grid: [2, 2, 1], cluster: 1, rows: 10 }),
            "kernel `test_tile_copy_1`, tensor map at parameter 2, of binding 1: it ends at byte \
             1440, in 16-byte chunks, of a buffer of 1296 that is written; help: describe a \
             tensor within the buffer and the limits of TensorMap"
        );
    }
}

/// Tests of PTX kernels with declared parameters.
mod parameter_lists {
    use scry_gpu::{Launch, NativeInterface, NativeParameter};

    use super::*;

    fn compile(
        parameters: Vec<NativeParameter>,
        bindings: usize,
    ) -> scry_gpu::Result<scry_gpu::Kernel> {
        let interface = NativeInterface::new(bindings, [1; 3]).with_parameters(parameters);
        // SAFETY: the null device executes no kernels.
        unsafe { null_h200_kernels().device().compile_ptx("anything", "k", &interface) }
    }

    #[test]
    fn rejects_impossible_parameter_lists() {
        let text = |parameters, bindings| compile(parameters, bindings).unwrap_err().to_string();
        assert_eq!(
            text(vec![NativeParameter::Pointer(1)], 1),
            "kernel `k`, parameters: Pointer(1) is out of range: the bindings are numbered from 0 \
             and there are 1; help: declare the binding, or correct the index"
        );
        assert_eq!(
            text(vec![NativeParameter::TensorMap(0); 33], 1),
            "kernel `k`, parameters: 4224 bytes, above the limit of 4096 per launch; help: put \
             some of them into a buffer"
        );
        succeed(compile(vec![NativeParameter::TensorMap(0); 32], 1));
    }

    #[test]
    fn launch_passes_exactly_its_parameters() {
        let kernels = null_h200_kernels();
        let gpu = kernels.device();
        let list = [NativeParameter::U32, NativeParameter::TensorMap(0), NativeParameter::U64];
        let interface = NativeInterface::new(1, [1; 3]).with_parameters(list);
        // SAFETY: the null device executes no kernels.
        let kernel = succeed(unsafe { gpu.compile_ptx("anything", "k", &interface) });
        let data = succeed(gpu.upload(&[0u8; 64]));
        let run = |values: &[&[u8]]| {
            let launch = Launch::workgroups([1; 3]).immediate_bytes(values.concat());
            gpu.run(&kernel, &[&data], launch)
        };
        let map = TensorMap {
            element: scry_gpu::TensorElement::U8,
            offset: 0,
            dims: vec![16, 4],
            strides: vec![16],
            tile: vec![16, 1],
            swizzle: scry_gpu::TensorSwizzle::None,
        };
        succeed(run(&[&[0; 4], &map.to_bytes(), &[0; 8]]));
        let short = run(&[&[0; 4], &map.to_bytes(), &[0; 4]]).unwrap_err().to_string();
        assert!(short.contains("136 bytes were given, but the kernel declares 140"), "{short}");
        let none = run(&[&[0; 140]]).unwrap_err().to_string();
        assert!(none.contains("parameter 1, of binding 0: it has no valid shape"), "{none}");
    }
}
