//! Random graphs: fused and planned, they compute the bits that operations one by one compute.

use scry_gpu::Device;
use scry_tensor::{DType, Dim, DimShape, Ellipsis, Fusion, Graph, Result, Tensor, step};

use super::memory::check_memory;
use crate::support::{Host, ok};

/// Pseudo-random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// An operation of earlier tensors, by position.
#[derive(Debug, Clone)]
pub enum Action {
    Unary(usize, usize),
    Scalar(usize, usize, f64),
    Binary(usize, usize, usize),
    Where(usize, usize),
    Cast(usize, DType),
    Permute(usize, Vec<i64>),
    Flatten(usize),
    Slice(usize, i64, i64, i64),
    Coordinate(usize, i64),
    Unsqueeze(usize, i64),
    Expand(usize, Vec<usize>),
    Reduce(usize, usize, i64),
    Matmul(usize, usize),
    Gather(usize, usize),
    Tril(usize, i64),
    Softmax(usize, i64),
    Cumsum(usize, i64),
    Concat(Vec<usize>, i64),
    Pad(usize, usize, usize),
    Roll(usize, i64),
    Flip(usize),
    Along(usize, usize),
    Dropout(usize, u64),
    IndexAdd(usize, usize),
}

/// An input: its shape, its element type, and the seed of its elements.
#[derive(Debug, Clone)]
pub struct Input {
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub seed: u64,
}

impl Input {
    pub fn elements(&self, gpu: &Device) -> Tensor {
        let floats = input(&self.shape, self.seed, gpu);
        match self.dtype {
            // Whether negative numbers wrap depends on the device.
            DType::U32 => ok(ok(floats.abs()).cast(DType::U32)),
            dtype => ok(floats.cast(dtype)),
        }
    }
}

/// A random program: the shapes and seeds of its inputs, and its operations.
#[derive(Debug, Clone)]
pub struct Program {
    pub inputs: Vec<Input>,
    pub actions: Vec<Action>,
    pub outputs: Vec<usize>,
}

type Function = fn(&Tensor) -> Result<Tensor>;

/// The types of inputs.
const TYPES: [DType; 6] =
    [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::Bool];

/// Functions of floats. Those that add products, such as `gelu`, are tested elsewhere: how a device
/// contracts the operations within one function may depend on its operand.
const UNARY: [Function; 12] = [
    Tensor::neg,
    Tensor::abs,
    Tensor::relu,
    Tensor::square,
    Tensor::sigmoid,
    Tensor::reciprocal,
    Tensor::tanh,
    Tensor::exp,
    Tensor::floor,
    Tensor::sign,
    Tensor::sqrt,
    Tensor::silu,
];

impl Action {
    /// Computes or records the operation.
    pub fn apply(&self, tensors: &[Tensor]) -> Result<Tensor> {
        let of = |n: &usize| &tensors[*n];
        match self {
            Self::Unary(function, x) => UNARY[*function](of(x)),
            Self::Scalar(function, x, value) => match function {
                0 => of(x).add(*value),
                1 => of(x).mul(*value),
                2 => *value - of(x),
                3 => of(x).maximum(*value),
                _ => of(x).sub(*value),
            },
            Self::Binary(function, a, b) => match function {
                0 => of(a).add(of(b)),
                1 => of(a).mul(of(b)),
                2 => of(a).sub(of(b)),
                3 => of(a).maximum(of(b)),
                _ => of(a).minimum(of(b)),
            },
            Self::Where(x, y) => of(x).gt(0.0)?.where_(of(x), of(y)),
            Self::Cast(x, dtype) => of(x).cast(*dtype),
            Self::Permute(x, axes) => of(x).permute(axes),
            Self::Flatten(x) => of(x).reshape([-1]),
            Self::Slice(x, start, end, by) => of(x).i((step(*start..*end, *by), Ellipsis)),
            Self::Coordinate(x, at) => of(x).i((Ellipsis, *at)),
            Self::Unsqueeze(x, axis) => of(x).unsqueeze(*axis),
            Self::Expand(x, shape) => of(x).expand(&shape[..]),
            Self::Reduce(function, x, axis) => match function {
                0 => of(x).sum(*axis),
                1 => of(x).max_keepdim(*axis),
                _ => of(x).mean_keepdim(*axis),
            },
            Self::Matmul(a, b) => of(a).matmul(of(b)),
            Self::Gather(x, at) => {
                let indices = of(at).abs()?.cast(DType::I32)?.reshape([-1])?;
                of(x).index_select(0, &indices)
            }
            Self::Tril(x, diagonal) => of(x).tril(*diagonal),
            Self::Softmax(x, axis) => of(x).softmax(*axis),
            Self::Cumsum(x, axis) => of(x).cumsum(*axis),
            Self::Concat(parts, axis) => {
                Tensor::concat(&parts.iter().map(of).collect::<Vec<_>>(), *axis)
            }
            Self::Pad(x, before, after) => of(x).pad(&vec![[*before, *after]; of(x).rank()], 0.5),
            Self::Roll(x, shift) => of(x).roll(*shift, 0),
            Self::Flip(x) => of(x).flip(..),
            Self::Along(x, at) => of(x).gather(0, &of(at).abs()?.cast(DType::U32)?),
            Self::Dropout(x, seed) => of(x).dropout(0.25, *seed),
            // Whole numbers, whose sums are the same in any order.
            Self::IndexAdd(x, at) => {
                let indices = of(at).abs()?.cast(DType::I32)?.reshape([-1])?;
                let whole = of(x).round()?;
                whole.index_add(0, &indices, &whole.index_select(0, &indices)?)
            }
        }
    }
}

/// Returns the elements of an input.
pub fn input(shape: &[usize], seed: u64, gpu: &Device) -> Tensor {
    let mut random = Random::new(seed);
    let count = shape.iter().product();
    let values: Vec<f32> =
        (0..count).map(|_| (random.below(4001) as f32 - 2000.0) / 512.0).collect();
    ok(Tensor::from_slice(&values, shape, gpu))
}

/// Draws a program. Its operations are computed one by one meanwhile, and those that fail are left
/// out, so that it fits its shapes.
pub fn program(seed: u64, gpu: &Device) -> (Program, Vec<Tensor>) {
    program_of(seed, gpu, [1, 2, 3, 4, 5, 8], 5000)
}

/// Draws a program of inputs with these sizes, and results of at most a number of elements.
pub fn program_of(
    seed: u64,
    gpu: &Device,
    sizes: [usize; 6],
    max_elements: usize,
) -> (Program, Vec<Tensor>) {
    let mut random = Random::new(seed);
    let mut program = Program { inputs: Vec::new(), actions: Vec::new(), outputs: Vec::new() };
    let mut tensors = Vec::new();
    for _ in 0..1 + random.below(3) {
        let rank = random.below(4);
        let mut shape: Vec<usize> = (0..rank).map(|_| sizes[random.below(6)]).collect();
        if random.below(40) == 0 {
            shape.push(0);
        }
        let seed = random.next();
        let dtype =
            if random.below(2) == 0 { TYPES[random.below(TYPES.len())] } else { DType::F32 };
        let input = Input { shape, dtype, seed };
        tensors.push(input.elements(gpu));
        program.inputs.push(input);
    }
    let wanted = 3 + random.below(14);
    for _ in 0..200 {
        if program.actions.len() >= wanted {
            break;
        }
        let action = action(&mut random, &tensors);
        if let Ok(result) = action.apply(&tensors)
            && result.numel() <= max_elements
        {
            tensors.push(result);
            program.actions.push(action);
        }
    }
    let last = tensors.len() - 1;
    program.outputs = (0..1 + random.below(3)).map(|_| random.below(tensors.len())).collect();
    program.outputs.push(last);
    (program, tensors)
}

fn action(random: &mut Random, tensors: &[Tensor]) -> Action {
    // Late tensors are chosen more often, so that there are chains.
    let mut any = || {
        let (a, b) = (random.below(tensors.len()), random.below(tensors.len()));
        a.max(b)
    };
    let (x, y) = (any(), any());
    let rank = tensors[x].rank() as i64;
    let shape = tensors[x].shape().to_vec();
    match random.below(29) {
        0..=3 => Action::Unary(random.below(UNARY.len()), x),
        4..=5 => {
            let value = [1.0, 0.5, -2.0, 0.0][random.below(4)];
            Action::Scalar(random.below(5), x, value)
        }
        6..=8 => Action::Binary(random.below(5), x, y),
        9 => Action::Where(x, y),
        10 => {
            let dtype = TYPES[random.below(TYPES.len())];
            // Conversions of numbers out of range are tested elsewhere.
            let is_float = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
            let is_bool = tensors[x].dtype() == DType::Bool || dtype == DType::Bool;
            Action::Cast(x, if is_float || is_bool { dtype } else { DType::F32 })
        }
        11 => {
            let mut axes: Vec<i64> = (0..rank).collect();
            axes.rotate_left(random.below(rank.max(1) as usize));
            Action::Permute(x, axes)
        }
        12 => Action::Flatten(x),
        13 => {
            let (start, end) = (random.below(4) as i64, random.below(9) as i64 - 1);
            Action::Slice(x, start, end, [1, 2, -1][random.below(3)])
        }
        14 => Action::Coordinate(x, random.below(3) as i64 - 1),
        15 => Action::Unsqueeze(x, random.below(rank as usize + 1) as i64),
        16 => Action::Expand(x, [&[2], &shape[..]].concat()),
        17 => Action::Reduce(random.below(3), x, random.below(rank.max(1) as usize) as i64),
        18 => match random.below(2) {
            0 => Action::Matmul(x, y),
            _ => Action::Gather(x, y),
        },
        19 => Action::Tril(x, random.below(3) as i64 - 1),
        20 => Action::Softmax(x, random.below(rank.max(1) as usize) as i64),
        21 => Action::Cumsum(x, random.below(rank.max(1) as usize) as i64),
        22 => {
            let parts = (0..2 + random.below(4)).map(|n| if n % 2 == 0 { x } else { y });
            Action::Concat(parts.collect(), random.below(rank.max(1) as usize) as i64)
        }
        23 => Action::Pad(x, random.below(3), random.below(3)),
        24 => Action::Roll(x, random.below(9) as i64 - 4),
        25 => Action::Flip(x),
        26 => Action::Along(x, y),
        27 => Action::Dropout(x, random.next()),
        _ => Action::IndexAdd(x, y),
    }
}

/// Compares results; the same bits, or two NaN.
pub fn assert_same(found: &Tensor, wanted: &Tensor, what: &str) {
    let (found, wanted) = (Host::download(found), Host::download(wanted));
    assert_eq!((found.dtype, &found.shape), (wanted.dtype, &wanted.shape), "{what}");
    for (n, pair) in found.values.iter().zip(&wanted.values).enumerate() {
        let (a, b) = pair;
        let bits = |value: &scry_tensor::Value| match value {
            scry_tensor::Value::Float(x) if x.is_nan() => f64::NAN.to_bits(),
            scry_tensor::Value::Float(x) => x.to_bits(),
            scry_tensor::Value::Integer(x) => *x as u64,
            scry_tensor::Value::Bool(x) => u64::from(*x),
        };
        assert_eq!(bits(a), bits(b), "{what}: element {n} is {a:?}, not {b:?}");
    }
}

/// Adds an input to a graph.
pub fn node(g: &Graph, n: usize, input: &Input, shape: DimShape) -> Result<Tensor> {
    g.input_with_dtype(&n.to_string(), shape, input.dtype)
}

/// Compares a plan of a random program for several sizes of an axis with its operations. Returns
/// the number of sizes; none if the program fits one size only.
fn compare_sizes(seed: u64, gpu: &Device) -> usize {
    let (program, _) = program(seed, gpu);
    let g = ok(Graph::new(gpu));
    g.set_fusion(Fusion::Exact);
    let mut nodes = Vec::new();
    for (n, input) in program.inputs.iter().enumerate() {
        let mut sizes: Vec<Dim> = input.shape.iter().map(|size| Dim::from(*size)).collect();
        if let (0, Some(first)) = (n, sizes.first_mut()) {
            *first = g.dim("n", 0..=9);
        }
        nodes.push(ok(node(&g, n, input, sizes.into())));
    }
    for action in &program.actions {
        let Ok(node) = action.apply(&nodes) else { return 0 };
        nodes.push(node);
    }
    let outputs: Vec<Tensor> = program.outputs.iter().map(|n| nodes[*n].clone()).collect();
    let Ok(plan) = g.compile(&outputs) else { return 0 };
    let names: Vec<String> = plan.input_names().map(str::to_owned).collect();
    if !names.contains(&"0".to_owned()) || program.inputs[0].shape.is_empty() {
        return 0;
    }
    let mut compared = 0;
    for size in [3, 1, 9, 0, 8, 2, 3] {
        let mut program = program.clone();
        program.inputs[0].shape[0] = size;
        let mut tensors: Vec<Tensor> = program.inputs.iter().map(|it| it.elements(gpu)).collect();
        for action in &program.actions {
            let Ok(result) = action.apply(&tensors) else { break };
            tensors.push(result);
        }
        if tensors.len() < nodes.len() {
            continue;
        }
        let of = |name: &String| &tensors[name.parse::<usize>().expect("a number")];
        let inputs: Vec<(&str, &Tensor)> = names.iter().map(|it| (it.as_str(), of(it))).collect();
        let what = format!("seed {seed}, n = {size}: {program:?}");
        let found = plan.run(&inputs).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (found, wanted) in found.iter().zip(&program.outputs) {
            assert_same(found, &tensors[*wanted], &what);
        }
        compared += 1;
    }
    check_memory(&plan, &format!("seed {seed}, the largest size: {program:?}"));
    compared
}

/// Compares a plan of a random program with its operations.
pub fn compare(seed: u64, gpu: &Device) {
    let (program, tensors) = program(seed, gpu);
    let what = format!("seed {seed}: {program:?}");
    let g = ok(Graph::new(gpu));
    let inputs = program.inputs.iter().enumerate();
    let mut nodes: Vec<Tensor> =
        inputs.map(|(n, it)| ok(node(&g, n, it, it.shape.clone().into()))).collect();
    for action in &program.actions {
        let node = action.apply(&nodes).unwrap_or_else(|error| panic!("{what}: {error}"));
        nodes.push(node);
    }
    let outputs: Vec<Tensor> = program.outputs.iter().map(|n| nodes[*n].clone()).collect();
    let compile = || g.compile(&outputs).unwrap_or_else(|error| panic!("{what}: {error}"));
    let full = compile();
    if std::env::var_os("SCRY_FUSE").is_none() {
        g.set_fusion(Fusion::Exact);
    }
    let plan = compile();
    // WebGPU's guaranteed limit is 8 storage buffers.
    for plan in [&plan, &full] {
        assert!(ok(plan.explain()).kernels.iter().all(|kernel| kernel.inputs <= 7), "{what}");
        check_memory(plan, &what);
    }
    let names: Vec<String> = plan.input_names().map(str::to_owned).collect();
    let inputs: Vec<(&str, &Tensor)> = names
        .iter()
        .map(|name| (name.as_str(), &tensors[name.parse::<usize>().expect("a number")]))
        .collect();
    // With sums of rows in their own order.
    full.check(&inputs).unwrap_or_else(|error| panic!("{what}: {error}"));
    if seed.is_multiple_of(4) {
        plan.check(&inputs).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    // The second run finds the memory as the first one left it, and records; the third one replays.
    for _ in 0..3 {
        let found = plan.run(&inputs).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (n, (found, wanted)) in found.iter().zip(&program.outputs).enumerate() {
            assert_same(found, &tensors[*wanted], &format!("{what}: output {n}"));
        }
    }
    let first = full.run(&inputs).unwrap_or_else(|error| panic!("{what}: {error}"));
    for _ in 0..2 {
        let again = full.run(&inputs).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (n, (again, first)) in again.iter().zip(&first).enumerate() {
            assert_same(again, first, &format!("{what}: output {n} of a later run"));
        }
    }
}

/// Returns the number of random graphs: those of `SCRY_FUZZ_SEEDS`, else 300.
fn seeds() -> std::ops::Range<u64> {
    let read = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = read("SCRY_FUZZ_FIRST").unwrap_or(0);
    first..first + read("SCRY_FUZZ_SEEDS").unwrap_or(300)
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_plans_compute_bits_of_operations() {
    let gpu = crate::support::cpu();
    (0..10_000).for_each(|seed| compare(seed, &gpu));
}

#[test]
fn plans_of_any_size_compute_bits_of_operations() {
    let gpu = crate::support::cpu();
    let compared: usize = (0..150).map(|seed| compare_sizes(30_000 + seed, &gpu)).sum();
    assert!(compared >= 200, "{compared}");
}

#[test]
fn plans_compute_bits_of_operations() {
    let gpu = crate::support::cpu();
    seeds().for_each(|seed| compare(seed, &gpu));
}
