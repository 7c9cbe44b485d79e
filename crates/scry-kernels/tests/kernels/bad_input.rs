//! An audit of every operation: buffers that are too short, of another type, or that overlap with a
//! written one, and sizes beyond any buffer are rejected, with errors that name the function.

use scry_gpu::{Binding, DType, Device, GpuError, Result, UntypedBuffer};
use scry_kernels::{
    Attention, BlockFormat, Conv1d, Conv2d, Gemm, Gemv, Kernels, Metric, Nearest, Op, Pool, Pool2d,
    PtxType, Reduction, Rope, ScanKind, operations,
};
use scry_test_support::succeed;

use DType::{F32, U8, U32};

/// A buffer of a call.
#[derive(Clone, Copy)]
struct Argument {
    name: &'static str,
    dtype: DType,
    len: usize,
    is_written: bool,
    /// Whether sizes are passed, so that the buffer can be too short; otherwise its length is one.
    is_sized: bool,
}

const fn read(name: &'static str, dtype: DType, len: usize) -> Argument {
    Argument { name, dtype, len, is_written: false, is_sized: true }
}

const fn written(name: &'static str, dtype: DType, len: usize) -> Argument {
    Argument { is_written: true, ..read(name, dtype, len) }
}

impl Argument {
    /// The same buffer, where the function uses all of it.
    const fn whole(self) -> Self {
        Self { is_sized: false, ..self }
    }
}

type Call = fn(&Kernels, &[&dyn Binding], &[usize]) -> Result<Op>;

/// A valid call of an operation: its buffers, and the sizes that are passed.
struct Case {
    name: &'static str,
    arguments: Vec<Argument>,
    sizes: Vec<usize>,
    call: Call,
}

fn case(
    name: &'static str,
    arguments: impl Into<Vec<Argument>>,
    sizes: impl Into<Vec<usize>>,
    call: Call,
) -> Case {
    Case { name, arguments: arguments.into(), sizes: sizes.into(), call }
}

/// Returns a call of each operation.
fn cases() -> Vec<Case> {
    [products(), rows(), reductions(), orders(), weights(), moves(), images(), points()]
        .into_iter()
        .flatten()
        .collect()
}

fn products() -> Vec<Case> {
    let product = |out: usize| [read("a", F32, 15), read("b", F32, 20), written("out", F32, out)];
    let vector = |x, y| [read("a", F32, 15), read("x", F32, x), written("y", F32, y)];
    let head = |name| read(name, F32, 24);
    let out = written("out", F32, 24);
    vec![
        case("matmul", product(12), [3, 4, 5], |k, b, s| {
            k.matmul(b[0], b[1], b[2], s[0], s[1], s[2])
        }),
        case("gemm", product(12), [3, 4, 5], |k, b, s| {
            let [m, n, depth] = [s[0], s[1], s[2]].map(|size| size as u64);
            k.gemm(&Gemm::new(m, n, depth, PtxType::F32), b)
        }),
        case("gemv", vector(5, 3), [3, 5], |k, b, s| k.gemv(b[0], b[1], b[2], s[0], s[1])),
        case("gemv_transposed", vector(3, 5), [3, 5], |k, b, s| {
            k.gemv_transposed(b[0], b[1], b[2], s[0], s[1])
        }),
        case(
            "gemv_batch",
            [read("a", F32, 30), read("x", F32, 10), written("y", F32, 6)],
            [3, 5, 2],
            |k, b, s| {
                let gemv = Gemv::new(s[0] as u64, s[1] as u64).batched(s[2] as u64);
                k.gemv_batch(&gemv, b[0], b[1], b[2])
            },
        ),
        case("attention", [head("q"), head("k"), head("v"), out], [2, 3, 4], |k, b, s| {
            let [heads, rows, dim] = [s[0], s[1], s[2]].map(|it| it.try_into().unwrap_or(u32::MAX));
            k.attention(&Attention::new([1, heads], rows, rows, dim, PtxType::F32), b)
        }),
    ]
}

fn rows() -> Vec<Case> {
    let matrix = [read("x", F32, 12), written("y", F32, 12)];
    let [weight, bias] = ["weight", "bias"].map(|name| read(name, F32, 4));
    vec![
        case("softmax", matrix, [3, 4], |k, b, s| k.softmax(b[0], b[1], s[0], s[1])),
        case("log_softmax", matrix, [3, 4], |k, b, s| k.log_softmax(b[0], b[1], s[0], s[1])),
        case("layer_norm", [matrix[0], weight, bias, matrix[1]], [3, 4], |k, b, s| {
            k.layer_norm(b[0], Some(b[1]), Some(b[2]), b[3], s[0], s[1], 1e-5)
        }),
        case("rms_norm", [matrix[0], weight, matrix[1]], [3, 4], |k, b, s| {
            k.rms_norm(b[0], Some(b[1]), b[2], s[0], s[1], 1e-5)
        }),
        case(
            "rope",
            [read("x", F32, 24), read("positions", U32, 3), written("y", F32, 24)],
            [3, 2, 4],
            |k, b, s| k.rope(b[0], b[1], b[2], s[0], &Rope::new(s[1], s[2])),
        ),
    ]
}

fn reductions() -> Vec<Case> {
    let x = read("x", F32, 12);
    let (all, out) = (x.whole(), written("out", F32, 1));
    vec![
        case("reduce", [all, out], [], |k, b, _| k.reduce(Reduction::Sum, b[0], b[1])),
        case("reduce_rows", [x, written("out", U32, 3)], [3, 4], |k, b, s| {
            k.reduce_rows(Reduction::ArgMin, b[0], b[1], s[0], s[1])
        }),
        case("reduce_columns", [x, written("out", F32, 4)], [3, 4], |k, b, s| {
            k.reduce_columns(Reduction::Max, b[0], b[1], s[0], s[1])
        }),
        case(
            "reduce_dot",
            [read("a", F32, 12).whole(), read("b", F32, 12).whole(), out],
            [],
            |k, b, _| k.reduce_dot(b[0], b[1], b[2]),
        ),
        case("scan", [all, written("y", F32, 12)], [], |k, b, _| {
            k.scan(ScanKind::Inclusive, b[0], b[1])
        }),
        case("scan_rows", [x, written("y", F32, 12)], [3, 4], |k, b, s| {
            k.scan_rows(ScanKind::Exclusive, b[0], b[1], s[0], s[1])
        }),
    ]
}

fn orders() -> Vec<Case> {
    let keys = written("keys", U32, 12).whole();
    let words = |name, len| read(name, U32, len).whole();
    vec![
        case("sort", [keys], [], |k, b, _| k.sort(b[0])),
        case("sort_pairs", [keys, written("values", U32, 12).whole()], [], |k, b, _| {
            k.sort_pairs(b[0], b[1])
        }),
        case("argsort", [words("keys", 12), written("indices", U32, 12)], [], |k, b, _| {
            k.argsort(b[0], b[1])
        }),
        case(
            "top_k",
            [read("x", F32, 12), written("values", F32, 6), written("indices", U32, 6)],
            [3, 4, 2],
            |k, b, s| k.top_k(b[0], b[1], b[2], s[0], s[1], s[2]),
        ),
        case("histogram", [words("x", 12), written("counts", U32, 5).whole()], [], |k, b, _| {
            k.histogram(b[0], b[1])
        }),
        case(
            "compact",
            [
                words("x", 12),
                read("flags", U32, 12),
                written("y", U32, 12),
                written("count", U32, 1),
            ],
            [],
            |k, b, _| k.compact(b[0], b[1], b[2], b[3]),
        ),
    ]
}

fn weights() -> Vec<Case> {
    const FORMAT: BlockFormat = BlockFormat::Q4_1;
    vec![
        case("quantize", [read("x", F32, 64), written("blocks", U8, 40)], [64], |k, b, s| {
            k.quantize(FORMAT, b[0], b[1], s[0] / 32 * 32)
        }),
        case("dequantize", [read("blocks", U8, 40), written("y", F32, 64)], [64], |k, b, s| {
            k.dequantize(FORMAT, b[0], b[1], s[0] / 32 * 32)
        }),
        case(
            "dequantize_rows",
            [read("blocks", U8, 60), read("indices", U32, 2), written("y", F32, 64)],
            [3, 32, 2],
            |k, b, s| k.dequantize_rows(FORMAT, b[0], b[1], b[2], [s[0], s[1] / 32 * 32], s[2]),
        ),
        case(
            "quantized_matmul",
            [read("weights", U8, 60), read("x", F32, 64), written("y", F32, 6)],
            [3, 32, 2],
            |k, b, s| k.quantized_matmul(FORMAT, b[0], b[1], b[2], [s[0], s[1] / 32 * 32], s[2]),
        ),
        case(
            "quantized_matmul_swiglu",
            [read("weights", U8, 60), read("x", F32, 128), written("y", F32, 6)],
            [3, 32, 2],
            |k, b, s| {
                let sizes = [s[0], s[1] / 32 * 32];
                k.quantized_matmul_swiglu(FORMAT, b[0], b[1], b[2], sizes, s[2])
            },
        ),
    ]
}

fn moves() -> Vec<Case> {
    let (x, y, indices) = (read("x", F32, 12), written("y", F32, 12), read("indices", U32, 2));
    let (few_x, few_y) = (read("x", F32, 8), written("y", F32, 8));
    vec![
        case("transpose", [x, y], [3, 4], |k, b, s| k.transpose(b[0], b[1], s[0], s[1])),
        case("transpose_batch", [x, y], [2, 3, 2], |k, b, s| {
            k.transpose_batch(b[0], b[1], s[0], s[1], s[2])
        }),
        case("permute", [x, y], [2, 3, 2], |k, b, s| k.permute(b[0], b[1], s, &[2, 0, 1])),
        case("gather_rows", [x, indices, few_y], [3, 4, 2], |k, b, s| {
            k.gather_rows(b[0], b[1], b[2], s[0], s[1], s[2])
        }),
        case("gather", [x, indices, written("y", F32, 2)], [12, 2], |k, b, s| {
            k.gather(b[0], b[1], b[2], s[0], s[1])
        }),
        case("scatter_rows", [few_x, indices, y], [3, 4, 2], |k, b, s| {
            k.scatter_rows(b[0], b[1], b[2], s[0], s[1], s[2])
        }),
        case("scatter_add_rows", [few_x, indices, y], [3, 4, 2], |k, b, s| {
            k.scatter_add_rows(b[0], b[1], b[2], s[0], s[1], s[2])
        }),
    ]
}

fn images() -> Vec<Case> {
    vec![
        case(
            "conv2d",
            [
                read("x", F32, 40),
                read("weights", F32, 24),
                read("bias", F32, 3),
                written("y", F32, 36),
            ],
            [2, 3, 4, 5, 2, 2],
            |k, b, s| {
                let conv = Conv2d::new([s[0], s[1]], [s[2], s[3]], [s[4], s[5]]);
                k.conv2d(b[0], b[1], Some(b[2]), b[3], &conv)
            },
        ),
        case(
            "conv1d",
            [read("x", F32, 14), read("weights", F32, 18), written("y", F32, 15)],
            [2, 3, 7, 3],
            |k, b, s| k.conv1d(b[0], b[1], None, b[2], &Conv1d::new([s[0], s[1]], s[2], s[3])),
        ),
        case("pool2d", [read("x", F32, 40), written("y", F32, 8)], [2, 4, 5, 2, 2], |k, b, s| {
            k.pool2d(Pool::Max, b[0], b[1], &Pool2d::new(s[0], [s[1], s[2]], [s[3], s[4]]))
        }),
    ]
}

fn points() -> Vec<Case> {
    let y = |dtype| written("y", dtype, 12).whole();
    vec![
        case(
            "pairwise_distances",
            [read("a", F32, 15), read("b", F32, 20), written("out", F32, 12)],
            [3, 4, 5],
            |k, b, s| k.pairwise_distances(Metric::L1, b[0], b[1], b[2], s[0], s[1], s[2]),
        ),
        case(
            "nearest",
            [
                read("points", F32, 20),
                read("queries", F32, 15),
                written("indices", U32, 6),
                written("distances", F32, 6),
            ],
            [4, 3, 5, 2],
            |k, b, s| {
                let metric = Metric::Cosine;
                let sizes = Nearest { metric, points: s[0], queries: s[1], dim: s[2], k: s[3] };
                k.nearest(b[0], b[1], b[2], b[3], &sizes)
            },
        ),
        case("random_bits", [y(U32)], [], |k, b, _| k.random_bits(b[0], 1)),
        case("random_uniform", [y(F32)], [], |k, b, _| k.random_uniform(b[0], 1)),
        case("random_normal", [y(F32)], [], |k, b, _| k.random_normal(b[0], 1)),
    ]
}

/// The library on the CPU device.
fn kernels() -> Kernels {
    succeed(Kernels::new(&succeed(Device::open("cpu"))))
}

/// Allocates the buffers of a call.
fn allocate(kernels: &Kernels, arguments: &[Argument]) -> Vec<UntypedBuffer> {
    let buffer = |it: &Argument| succeed(kernels.device().alloc_untyped(Some(it.dtype), it.len));
    arguments.iter().map(buffer).collect()
}

impl Case {
    fn prepare(&self, kernels: &Kernels, buffers: &[UntypedBuffer], sizes: &[usize]) -> Result<Op> {
        let buffers: Vec<&dyn Binding> = buffers.iter().map(|buffer| buffer as _).collect();
        (self.call)(kernels, &buffers, sizes)
    }

    /// Returns the error of a call with one changed buffer.
    fn error(&self, kernels: &Kernels, nth: usize, change: Argument) -> String {
        let mut arguments = self.arguments.clone();
        arguments[nth] = change;
        let buffers = allocate(kernels, &arguments);
        let what =
            format!("{} with {} {} of `{}`", self.name, change.len, change.dtype, change.name);
        match self.prepare(kernels, &buffers, &self.sizes) {
            Ok(_) => panic!("{what} is accepted"),
            Err(GpuError::Argument(error)) => error.to_string(),
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

#[test]
fn every_operation_is_audited() {
    let kernels = kernels();
    let cases = cases();
    let mut audited: Vec<_> = cases.iter().map(|case| case.name).collect();
    let mut names: Vec<_> = operations().iter().map(|it| it.name).collect();
    audited.sort_unstable();
    names.sort_unstable();
    assert_eq!(audited, names);
    for case in cases {
        let buffers = allocate(&kernels, &case.arguments);
        succeed(succeed(case.prepare(&kernels, &buffers, &case.sizes)).run());
    }
}

#[test]
fn short_buffers_are_refused() {
    let kernels = kernels();
    for case in cases() {
        let sized = case.arguments.iter().enumerate().filter(|(_, it)| it.is_sized);
        for (nth, argument) in sized {
            let len = argument.len - 1;
            let error = case.error(&kernels, nth, Argument { len, ..*argument });
            let start = format!("Kernels::{}: buffer `{}` has {len} ", case.name, argument.name);
            assert!(error.starts_with(&start), "{start}… {error}");
            assert!(error.contains("; help: "), "{error}");
        }
    }
}

#[test]
fn buffers_of_other_types_are_refused() {
    let kernels = kernels();
    for case in cases() {
        // Blocks of bytes may be of any type.
        let typed = case.arguments.iter().enumerate().filter(|(_, it)| it.dtype != U8);
        for (nth, argument) in typed {
            let error = case.error(&kernels, nth, Argument { dtype: DType::F64, ..*argument });
            let start = format!("Kernels::{}: buffer `{}` has ", case.name, argument.name);
            assert!(error.starts_with(&start), "{start}… {error}");
            assert!(error.contains("f64") && error.contains("; help: "), "{error}");
        }
    }
}

#[test]
fn results_over_operands_are_refused() {
    let kernels = kernels();
    for case in cases() {
        let written = case.arguments.iter().enumerate().filter(|(_, it)| it.is_written);
        for (nth, other) in written.flat_map(|(nth, _)| {
            let others = (0..case.arguments.len()).filter(move |other| *other != nth);
            others.map(move |other| (nth, other))
        }) {
            let mut buffers = allocate(&kernels, &case.arguments);
            // Both start at the same byte of one allocation.
            let memory = succeed(kernels.device().alloc_untyped(None, 1024));
            for at in [nth, other] {
                let Argument { dtype, len, .. } = case.arguments[at];
                let bytes = succeed(memory.slice(..len * dtype.size()));
                buffers[at] = succeed(bytes.view_as(dtype));
            }
            let [first, second] = [nth, other].map(|at| case.arguments[at].name);
            let error = case.prepare(&kernels, &buffers, &case.sizes).map(|_| ()).unwrap_err();
            let error = error.to_string();
            let names = [first, second].map(|name| format!("`{name}`"));
            assert!(error.starts_with(&format!("Kernels::{}: ", case.name)), "{error}");
            assert!(error.contains("shares bytes 0.."), "{}: {error}", case.name);
            assert!(names.iter().all(|name| error.contains(name)), "{names:?}: {error}");
        }
    }
}

#[test]
fn huge_sizes_are_refused() {
    const HUGE: [usize; 5] =
        [usize::MAX, usize::MAX / 2, 1 << 40, u32::MAX as usize, u32::MAX as usize + 1];
    let kernels = kernels();
    for case in cases().into_iter().filter(|case| !case.sizes.is_empty()) {
        let buffers = allocate(&kernels, &case.arguments);
        let one = (0..case.sizes.len()).map(|nth| (nth, nth + 1));
        for (range, huge) in
            one.chain([(0, case.sizes.len())]).flat_map(|range| HUGE.map(|huge| (range, huge)))
        {
            let mut sizes = case.sizes.clone();
            sizes[range.0..range.1].fill(huge);
            let what = format!("{} of {sizes:?}", case.name);
            let Err(error) = case.prepare(&kernels, &buffers, &sizes) else {
                panic!("{what} is accepted")
            };
            let error = error.to_string();
            assert!(error.starts_with(&format!("Kernels::{}", case.name)), "{what}: {error}");
            assert!(error.contains("; help: "), "{what}: {error}");
        }
    }
}
