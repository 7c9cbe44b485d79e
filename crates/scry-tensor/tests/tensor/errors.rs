//! The texts of errors. `SCRY_BLESS=1` rewrites them.

use std::path::Path;

use scry_gpu::Device;
use scry_gpu::testing::{self, Fault, FaultPlan};
use scry_tensor::{
    Attention, Conv2d, DType, Ellipsis, Graph, Metric, Plan, Tensor, TensorBatch, step,
};
use scry_test_support::{golden, succeed};

use crate::support::ok;

/// Returns the text of an error without the position of the call.
fn text<T>(result: scry_tensor::Result<T>) -> String {
    let Err(error) = result else { panic!("the call must fail") };
    let location = error.location();
    let (file, line, column) = (location.file(), location.line(), location.column());
    let scope = if error.scope().is_empty() { "" } else { ", in " };
    let scope = scope.to_owned() + error.scope();
    assert!(file.ends_with("errors.rs"), "the error names the caller: {error}");
    assert!(error.gpu().is_some() || !error.help().is_empty(), "{error}");
    let place = format!(" ({file}:{line}:{column}{scope})");
    assert!(error.to_string().contains(&place), "{error}");
    error.to_string().replace(&place, if error.scope().is_empty() { "" } else { &scope })
}

fn texts(gpu: &Device) -> Vec<String> {
    let x = &ok(Tensor::zeros([2, 3], DType::F32, gpu));
    let y = &ok(Tensor::zeros([4], DType::F32, gpu));
    let integers = &ok(Tensor::zeros([2, 3], DType::I32, gpu));
    let bools = &ok(Tensor::zeros([3], DType::Bool, gpu));
    let blocks = &ok(Tensor::from_blocks(&[0; 34], DType::Q8_0, [1, 32], gpu));
    let bytes = &succeed(gpu.alloc_untyped(None, 34));
    let other = crate::support::cpu();
    let far = &ok(Tensor::zeros([3], DType::F32, &other));
    vec![
        text(x.add(y)),
        text(x - y),
        text(x + integers),
        text(integers * 0.5),
        text(integers.add(1i64 << 40)),
        text(integers.div(2)),
        text(x.logical_and(true)),
        text(x.floor_divide(x)),
        text(x.mul(far)),
        text(blocks.exp()),
        text(blocks.add(x)),
        text(blocks.t()),
        text(blocks.cast(DType::I32)),
        text(x.cast(DType::Q4K)),
        text(x.where_(1.0, 2.0)),
        text(bools.where_(x, integers)),
        text(x.reshape([4, -1])),
        text(x.reshape([7])),
        text(x.reshape([-1, -1])),
        text(x.permute([0, 0])),
        text(x.permute([0, 2])),
        text(x.expand([2, 4])),
        text(y.t()),
        text(x.squeeze(0)),
        text(x.unsqueeze(4)),
        text(x.i((0, 0, 0))),
        text(x.i(2)),
        text(x.i((Ellipsis, Ellipsis))),
        text(x.i(step(.., 0))),
        text(x.i((integers, &ok(integers.i((.., ..2)))))),
        text(x.i((integers, integers, integers))),
        text(x.i(y)),
        text(x.i(bools)),
        text(x.i(&ok(ok(Tensor::zeros((), DType::F32, gpu)).isnan()))),
        text(x.index_select(0, integers)),
        text(x.sum(2)),
        text(x.sum([0, -2])),
        text(integers.mean(..)),
        text(ok(x.i(0..0)).max(0)),
        text(y.tril(0)),
        text(x.to_vec::<i32>()),
        text(blocks.to_vec::<f32>()),
        text(x.item::<f32>()),
        text(Tensor::from_slice(&[1, 2, 3], [2, 2], gpu)),
        text(Tensor::from_slice(&[1i64 << 33], [1], gpu)),
        text(Tensor::from_blocks(&[0; 33], DType::Q8_0, [32], gpu)),
        text(Tensor::from_blocks(&[0; 34], DType::Q8_0, [33], gpu)),
        text(Tensor::from_blocks(&[0; 34], DType::F32, [32], gpu)),
        text(Tensor::from_block_buffer(bytes, DType::Q8_0, [2, 32], gpu)),
        text(Tensor::from_block_buffer(bytes, DType::F16, [17], gpu)),
        text(Tensor::arange_step(0, 1, 0, DType::I32, gpu)),
        text(Tensor::arange_step(0.5, 1, 1, DType::I32, gpu)),
        text(Tensor::arange(300, DType::Bool, gpu)),
        text(Tensor::full([2], -1, DType::U32, gpu)),
        text(Tensor::full([1; 17], -1, DType::I32, gpu)),
        text(Tensor::eye(1 << 17, DType::F32, gpu)),
        text(x.matmul(x)),
        text(x.matmul(integers)),
        text(integers.matmul(integers)),
        text(x.matmul(ok(Tensor::zeros((), DType::F32, gpu)))),
    ]
}

/// Errors of operations of the kernel library, and of those that arrange elements.
fn operation_texts(gpu: &Device) -> Vec<String> {
    let x = &ok(Tensor::zeros([2, 3], DType::F32, gpu));
    let y = &ok(Tensor::zeros([4], DType::F32, gpu));
    let z = &ok(Tensor::zeros([1, 4, 6, 6], DType::F32, gpu));
    let integers = &ok(Tensor::zeros([2, 3], DType::I32, gpu));
    let at = &ok(Tensor::zeros([2], DType::U32, gpu));
    let blocks = &ok(Tensor::from_blocks(&[0; 34], DType::Q8_0, [1, 32], gpu));
    let none = &ok(Tensor::zeros([0, 3], DType::F32, gpu));
    let conv = Conv2d::default();
    let words = succeed(gpu.upload(&[1u32, 2, 3]));
    let (bytes, halves) = (succeed(gpu.alloc::<u8>(4)), succeed(gpu.alloc::<half::f16>(3)));
    let attend = |q: &Tensor, k: &Tensor, bias| {
        text(q.attention(k, k, &Attention { bias, ..Default::default() }))
    };
    vec![
        text(x.softmax(2)),
        text(integers.softmax(0)),
        text(x.layer_norm(Some(y), None, 1e-5)),
        text(ok(y.sum(0)).layer_norm(None, None, 1e-5)),
        text(z.group_norm(3, None, None, 1e-5)),
        text(x.batch_norm(y, y, None, None, 1e-5)),
        text(x.var(0, 1).and_then(|it| it.add(integers))),
        text(none.argmax(0)),
        text(z.argmax([0, 1])),
        text(x.topk(4, -1)),
        text(x.cumsum(5)),
        text(x.conv2d(z, None, &conv)),
        text(z.conv2d(z, None, &Conv2d { groups: 2, ..conv })),
        text(z.conv2d(z, None, &Conv2d { stride: [0, 1], ..conv })),
        text(z.conv2d(&ok(Tensor::zeros([1, 4, 7, 7], DType::F32, gpu)), None, &conv)),
        text(z.conv2d(z, Some(y), &conv)),
        text(x.conv1d(x, None, &Default::default())),
        text(y.convolve2d(x)),
        text(y.max_pool2d([1, 1], [1, 1], [0, 0])),
        text(z.max_pool2d([2, 2], [1, 0], [0, 0])),
        text(z.avg_pool2d([2, 2], [2, 2], [2, 0])),
        text(z.avg_pool2d([7, 7], [2, 2], [0, 0])),
        attend(x, x, None),
        attend(z, &ok(z.i((.., ..3))), None),
        attend(z, z, Some(y)),
        text(x.rope(&ok(Tensor::zeros([], DType::U32, gpu)), 1e4)),
        text(z.rope(at, 1e4)),
        text(x.linear(y, None)),
        text(x.linear(blocks, None)),
        text(x.dot(y)),
        text(x.einsum("ij->ij", x)),
        text(x.einsum("ii,ij->j", x)),
        text(x.einsum("ij,jk->il", x)),
        text(x.einsum("ijk,jk->i", x)),
        text(x.einsum("ij,jk->ik", x)),
        text(integers.einsum("ij,jk->ik", integers)),
        text(x.pairwise_distances(y, Metric::Cosine)),
        text(x.gather(0, at)),
        text(x.index_add(0, at, y)),
        text(x.scatter_add(0, integers, y)),
        text(x.scatter_add(0, integers, integers)),
        text(Tensor::concat(&[], 0)),
        text(Tensor::concat(&[x, y], 0)),
        text(Tensor::concat(&[x, integers], 0)),
        text(Tensor::stack(&[x, y], 0)),
        text(x.split(&[1, 1], 1)),
        text(x.pad(&[[1, 1]], 0)),
        text(integers.pad(&[[1, 1], [0, 0]], 0.5)),
        text(x.clip(0, "9e99".parse::<f64>().expect("a number"))),
        text(x.dropout(1.5, 1)),
        text(x.rand_like(x)),
        text(x.rand_like(&ok(Tensor::zeros([3], DType::U32, gpu)))),
        text(Tensor::rand([2], 1, DType::I32, gpu)),
        text(Tensor::from_buffer(&bytes, [2], gpu)),
        text(Tensor::from_buffer(&words.untyped(), [4], gpu)),
        text(Tensor::from_buffer(&halves, [2], gpu)),
        text(Tensor::from_buffer(&words, [2], &crate::support::cpu())),
        text(x.cross_entropy(&ok(Tensor::zeros([3], DType::U32, gpu)))),
        text(x.mse_loss(y)),
    ]
}

/// Errors of graphs and plans.
/// Vectors and images of other shapes.
fn shape_texts(gpu: &Device) -> Vec<String> {
    let zeros = |shape: &[usize]| ok(Tensor::zeros(shape, DType::F32, gpu));
    let (x, y) = (zeros(&[2, 3]), zeros(&[4]));
    let at = ok(Tensor::zeros([1, 2], DType::U32, gpu));
    vec![
        text(x.layer_norm(None, Some(&zeros(&[1, 3])), 0.1)),
        text(x.linear(&x, Some(&zeros(&[2, 1])))),
        text(x.split(&[], 0)),
        text(y.scatter_add(0, &at, &zeros(&[1, 2]))),
        text(zeros(&[1, 0, 4, 4]).conv2d(&zeros(&[2, 0, 3, 3]), None, &Conv2d::default())),
        text(zeros(&[1, 0, 4]).max_pool2d([2, 2], [1, 1], [1, 1])),
    ]
}

fn graph_texts(gpu: &Device) -> Vec<String> {
    let g = ok(Graph::new(gpu));
    let batch = g.dim("batch", 2..=8);
    let x = &ok(g.input("x", (&batch, 3)));
    let y = &ok(g.input("y", [4]));
    let other = ok(Graph::new(gpu));
    let z = &ok(other.input("z", [3]));
    let plan = ok(g.compile(&[ok(x.exp())]));
    let integers = &ok(Tensor::zeros([2, 3], DType::I32, gpu));
    let data = |rows: usize| ok(Tensor::zeros([rows, 3], DType::F32, gpu));
    let empty = std::ops::RangeInclusive::new(2, 1);
    let scope = g.scope("encoder.layer.3");
    let scoped = vec![text(x.add(y)), text(x.matmul(y)), text(x.logical_not())];
    drop(scope);
    let rest = vec![
        text(x.add(data(8))),
        text(x.reshape([24])),
        text(x.add(z)),
        text(x.to_vec::<f32>()),
        text(g.input("x", [1])),
        text(g.input("w", [-1])),
        text(g.input("w", (g.dim("batch", 1..=2),))),
        text(g.input("w", (g.dim("none", empty),))),
        text(g.input_with_dtype("w", [32], DType::Q8_0)),
        text(g.compile(&[])),
        text(g.compile(std::slice::from_ref(z))),
        text(plan.run(&[])),
        text(plan.run(&[("x", &data(2)), ("y", &data(2))])),
        text(plan.run(&[("x", &data(2)), ("x", &data(2))])),
        text(plan.run(&[("x", &data(9))])),
        text(plan.run(&[("x", &ok(data(2).t()))])),
        text(plan.run(&[("x", y)])),
        text(plan.run(&[("x", integers)])),
        text(plan.run_checked(&[("x", &ok(data(2).add(f32::NAN)))])),
        text(ok(g.compile(&[ok(x.log())])).run_checked(&[("x", &ok(data(2).sub(1.0)))])),
    ];
    [scoped, rest, state_texts(&g), batch_texts(gpu)].concat()
}

/// Errors of states and of custom kernels.
fn state_texts(g: &Graph) -> Vec<String> {
    let gpu = g.device();
    let state = ok(g.state("kv", [4, 600]));
    let indices = &ok(Tensor::zeros([2], DType::U32, gpu));
    let three = &ok(Tensor::zeros([3], DType::F32, gpu));
    let one = &ok(Tensor::zeros((), DType::F32, gpu));
    let kernel = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn swap(@builtin(global_invocation_id) id: vec3u) {
            x[id.x] = y[id.x];
            y[id.x] = 1.0;
        }";
    let output = [([3].into(), DType::F32)];
    vec![
        text(g.state("kv", [1])),
        text(state.write(0, three)),
        text(state.write(4, one)),
        text(state.write((0, indices), one)),
        text(state.write((.., step(.., 2)), one)),
        text(state.write(0, &ok(one.cast(DType::F16)))),
        text(state.write_rows(indices, three)),
        text(g.kernel(kernel, &[three], &[])),
        text(g.kernel(kernel, &[], &output)),
        text(g.kernel(kernel, &[three], &output)),
    ]
}

/// Errors of batches.
fn batch_texts(gpu: &Device) -> Vec<String> {
    let mut batch = ok(TensorBatch::new(gpu));
    let x = ok(batch.upload(&[1.0f32], [1]));
    let y = ok(batch.exp(x));
    let z = ok(batch.exp(y));
    let early = text(batch.read::<f32>(z));
    ok(batch.execute());
    let mut other = ok(TensorBatch::new(gpu));
    vec![early, text(batch.read::<f32>(y)), text(other.exp(x))]
}

/// Errors of plans whose memory cannot be allocated: maps, products, custom kernels and states.
fn memory_texts(gpu: &Device, faults: &FaultPlan) -> Vec<String> {
    let wgsl = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @group(0) @binding(2) var<storage, read_write> z: array<u32>;
        @compute @workgroup_size(64) fn parts(@builtin(global_invocation_id) id: vec3u) {
            y[id.x] = x[id.x];
            z[id.x] = u32(x[id.x]);
        }";
    let g = ok(Graph::new(gpu));
    let x = &ok(g.input("x", [64, 32]));
    let w = &ok(Tensor::from_slice(&[0.5f32; 32 * 256], [32, 256], gpu));
    let w = &ok(g.param("w", w));
    let scope = g.scope("encoder.layer.3");
    let hidden = ok(x.matmul(w));
    let scores = ok(ok(hidden.matmul(ok(hidden.t()))).softmax(-1));
    drop(scope);
    let attended = ok(scores.matmul(&hidden));
    let state = ok(g.state("total", [4096]));
    let outputs = [([64, 48].into(), DType::F32), ([64, 40].into(), DType::U32)];
    let parts = ok(g.kernel(wgsl, &[x], &outputs));
    let sum = |x: &Tensor| ok(ok(x.cast(DType::F32)).sum(..));
    let total = ok(ok(sum(&parts[0]).add(sum(&parts[1]))).add(ok(state.read().sum(..))));
    // The first call that fails may be repeated after memory of earlier results was released, or
    // be the allocation of a state.
    let compile = |output: &Tensor| {
        let mut errors = (0..4).filter_map(|calls| {
            faults.fail_after(calls);
            g.compile(std::slice::from_ref(output)).err()
        });
        let arenas = errors.find(|error| error.to_string().contains("arenas"));
        text::<Plan>(Err(arenas.expect("the allocation of an arena fails")))
    };
    vec![compile(&attended), compile(&total)]
}

#[test]
fn texts_of_memory_are_the_blessed_ones() {
    let faults = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
    let gpu = testing::open_with_faults("cpu", &faults).expect("the CPU device");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensor/errors/memory.txt");
    let texts = memory_texts(&gpu, &faults).join("\n").replace(gpu.name(), "DEVICE");
    golden::compare_file(&path, &(texts + "\n"));
}

#[test]
fn errors_name_the_line_of_the_call() {
    let gpu = crate::support::cpu();
    let x = &ok(Tensor::zeros([2, 3], DType::F32, &gpu));
    let y = &ok(Tensor::zeros([4], DType::F32, &gpu));
    let g = ok(Graph::new(&gpu));
    let node = &ok(g.input("x", [2, 3]));
    let plan = ok(g.compile(&[ok(node.exp())]));
    let calls = [
        (line!(), x.add(y).unwrap_err()),
        (line!(), (x - y).unwrap_err()),
        (line!(), x.i(2).unwrap_err()),
        (line!(), Tensor::from_slice(&[1, 2, 3], [2, 2], &gpu).unwrap_err()),
        (line!(), node.matmul(y).unwrap_err()),
        (line!(), g.input("x", [1]).unwrap_err()),
        (line!(), plan.run(&[("x", y)]).unwrap_err()),
    ];
    for (line, error) in calls {
        assert_eq!(error.location().line(), line, "{error}");
        assert!(error.to_string().contains(&format!("errors.rs:{line}:")), "{error}");
    }
}

#[test]
fn texts_of_graphs_are_the_blessed_ones() {
    let gpu = crate::support::cpu();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensor/errors/graphs.txt");
    let texts = graph_texts(&gpu).join("\n").replace(gpu.name(), "DEVICE");
    golden::compare_file(&path, &(texts + "\n"));
}

#[test]
fn texts_are_the_blessed_ones() {
    let gpu = crate::support::cpu();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensor/errors/errors.txt");
    // The name contains the processor and the number of its threads.
    let texts = texts(&gpu).join("\n").replace(gpu.name(), "DEVICE");
    golden::compare_file(&path, &(texts + "\n"));
}

#[test]
fn texts_of_operations_are_the_blessed_ones() {
    let gpu = crate::support::cpu();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensor/errors/operations.txt");
    let texts = [operation_texts(&gpu), shape_texts(&gpu)]
        .concat()
        .join("\n")
        .replace(gpu.name(), "DEVICE");
    golden::compare_file(&path, &(texts + "\n"));
}
