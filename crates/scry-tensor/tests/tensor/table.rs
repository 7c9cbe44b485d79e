//! Every operation of the table that is not element-wise, on random shapes, views and element
//! types, against its reference: eagerly and in a graph.

use scry_gpu::{BackendKind, Device};
use scry_tensor::{
    Array, Case, DType, Draw, Graph, KernelSource, Operation, Tensor, Value, operations,
};
use scry_test_support::{devices, golden, root};

use crate::support::{Host, ok};

/// How the elements of an operand are stored, and the view that reads them.
#[derive(Debug, Clone, Copy)]
enum Storage {
    Packed,
    /// Axes in reverse order.
    Permuted,
    /// With other elements around them, along an axis.
    Sliced(usize),
    /// The last coordinate of an axis first.
    Reversed(usize),
    /// One coordinate of an axis, repeated.
    Expanded(usize),
}

impl Storage {
    fn draw(draw: &mut Draw, array: &Array) -> Self {
        let rank = array.shape.len();
        if rank == 0 {
            return Self::Packed;
        }
        let axis = draw.below(rank);
        match draw.below(6) {
            0 | 1 => Self::Packed,
            2 => Self::Permuted,
            3 => Self::Sliced(axis),
            4 => Self::Reversed(axis),
            _ if is_repeated(array, axis) => Self::Expanded(axis),
            _ => Self::Packed,
        }
    }

    /// Returns the elements as they are stored.
    fn stored(self, array: &Array) -> Array {
        let mut shape = array.shape.clone();
        let place = |at: &[usize], axis: usize, own: usize| {
            let mut at = at.to_vec();
            at[axis] = own;
            array.at(&at)
        };
        let build = |shape: &[usize], of: &mut dyn FnMut(&[usize]) -> f64| {
            Array::build(array.dtype, shape, of)
        };
        match self {
            Self::Packed => array.clone(),
            Self::Permuted => {
                shape.reverse();
                build(&shape, &mut |at| array.at(&at.iter().rev().copied().collect::<Vec<_>>()))
            }
            Self::Sliced(axis) => {
                let size = shape[axis];
                shape[axis] = 2 * size + 1;
                build(&shape, &mut |at| match at[axis] % 2 {
                    1 => place(at, axis, at[axis] / 2),
                    _ => 1.0,
                })
            }
            Self::Reversed(axis) => {
                let size = shape[axis];
                build(&shape, &mut |at| place(at, axis, size - 1 - at[axis]))
            }
            Self::Expanded(axis) => {
                shape[axis] = 1;
                build(&shape, &mut |at| array.at(at))
            }
        }
    }

    /// Returns the view of the stored elements.
    fn view(self, x: &Tensor, shape: &[usize]) -> Tensor {
        let sliced = |axis: usize, start: i64, step: i64| {
            let moved = ok(x.transpose(axis as i64, 0));
            let part = ok(moved.i(scry_tensor::step(start.., step)));
            ok(part.transpose(axis as i64, 0))
        };
        match self {
            Self::Packed => x.clone(),
            Self::Permuted => ok(x.permute((0..shape.len() as i64).rev().collect::<Vec<_>>())),
            Self::Sliced(axis) => sliced(axis, 1, 2),
            Self::Reversed(axis) => ok(x.flip(axis as i64)),
            Self::Expanded(_) => ok(x.expand(shape)),
        }
    }
}

/// Returns whether all coordinates of an axis have the same elements, of which there are some.
fn is_repeated(array: &Array, axis: usize) -> bool {
    let first = Array::build(array.dtype, &array.shape, |at| {
        let mut at = at.to_vec();
        at[axis] = 0;
        array.at(&at)
    });
    array.shape[axis] > 0 && first.values == array.values
}

/// Returns the elements as values of the tests.
fn host(array: &Array) -> Host {
    let value = |x: &f64| match array.dtype {
        DType::Bool => Value::Bool(*x != 0.0),
        DType::I32 | DType::U32 => Value::Integer(*x as i64),
        _ => Value::Float(*x),
    };
    let values = array.values.iter().map(value).collect();
    Host { dtype: array.dtype, shape: array.shape.clone(), values }
}

#[track_caller]
fn assert_agrees(found: &Tensor, wanted: &Array, tolerance: f64, context: &str) {
    let found = Host::download(found);
    assert_eq!((found.dtype, &found.shape), (wanted.dtype, &wanted.shape), "{context}");
    // Several operations in a row round 16-bit floats several times.
    let tolerance = match found.dtype {
        DType::F16 if tolerance > 0.0 => 8.0 / 1024.0,
        DType::BF16 if tolerance > 0.0 => 8.0 / 128.0,
        _ => tolerance,
    };
    for (n, (found, wanted)) in found.values.iter().zip(&wanted.values).enumerate() {
        let found = match found {
            Value::Float(x) => *x,
            Value::Integer(x) => *x as f64,
            Value::Bool(x) => f64::from(u8::from(*x)),
        };
        let is_same = found == *wanted || found.is_nan() && wanted.is_nan();
        let is_close = (found - wanted).abs() <= tolerance * wanted.abs().max(1.0);
        assert!(is_same || is_close, "{context}: element {n} is {found}, not {wanted}");
    }
}

/// Compares a case eagerly and in a graph.
fn compare(operation: &Operation, case: &Case, draw: &mut Draw, gpu: &Device, context: &str) {
    let storages: Vec<Storage> =
        case.operands.iter().map(|array| Storage::draw(draw, array)).collect();
    let context = format!("{context}, {storages:?}");
    let stored: Vec<Tensor> = case
        .operands
        .iter()
        .zip(&storages)
        .map(|(array, storage)| host(&storage.stored(array)).upload(gpu))
        .collect();
    let views = |tensors: &[Tensor]| -> Vec<Tensor> {
        let views = tensors.iter().zip(&storages).zip(&case.operands);
        views.map(|((x, storage), array)| storage.view(x, &array.shape)).collect()
    };
    let call = |operands: &[Tensor]| {
        (case.call)(operands).unwrap_or_else(|error| panic!("{context}: {error}"))
    };
    assert_agrees(&call(&views(&stored)), &case.wanted, operation.tolerance, &context);
    let g = ok(Graph::new(gpu));
    let names: Vec<String> = (0..stored.len()).map(|n| format!("x{n}")).collect();
    let input =
        |(name, x): (&String, &Tensor)| ok(g.input_with_dtype(name, x.shape().to_vec(), x.dtype()));
    let inputs: Vec<Tensor> = names.iter().zip(&stored).map(input).collect();
    let output = call(&views(&inputs));
    let plan = g.compile(&[output]).unwrap_or_else(|error| panic!("{context}: {error}"));
    let used: Vec<String> = plan.input_names().map(str::to_owned).collect();
    let given = names.iter().zip(&stored).filter(|(name, _)| used.contains(name));
    let given: Vec<(&str, &Tensor)> = given.map(|(name, x)| (name.as_str(), x)).collect();
    // Twice: the second run finds the memory as the first one left it.
    for _ in 0..2 {
        let found = plan.run(&given).unwrap_or_else(|error| panic!("{context}: {error}"));
        let context = format!("{context}, in a graph");
        assert_agrees(&found[0], &case.wanted, operation.tolerance, &context);
    }
}

/// Compares cases of each operation: on the CPU a number for each element type, on other devices,
/// whose drivers compile slowly, as many in all.
fn compare_all(cases: u64) {
    let chosen = std::env::var("SCRY_TEST_OPERATION").ok();
    for gpu in devices() {
        let is_cpu = gpu.backend_kind() == BackendKind::Cpu;
        for operation in operations() {
            if chosen.as_ref().is_some_and(|name| *name != operation.name) {
                continue;
            }
            let types = operation.types.len() as u64;
            for n in 0..if is_cpu { cases * types } else { cases } {
                // Devices with few cases meet all types, over the table.
                let dtype = operation.types[((n + operation.name.len() as u64) % types) as usize];
                let mut draw = Draw(n);
                let Some(case) = operation.case(&mut draw, dtype) else { continue };
                let (name, device) = (operation.name, gpu.name());
                let context = format!("{name} of {dtype} on {device}, seed {n}");
                compare(&operation, &case, &mut draw, &gpu, &context);
            }
        }
    }
}

/// The file with the table of operations, and the lines around the table.
const README: &str = "crates/scry-tensor/README.md";
const TABLE_START: &str =
    "<!-- operations: SCRY_BLESS=1 cargo test -p scry-tensor --test tensor -->\n";
const TABLE_END: &str = "<!-- end of operations -->\n";

fn table_row(operation: &Operation) -> String {
    let on = |backend| {
        let kernels = operation.kernels_on(backend);
        let is_name = !matches!(operation.kernel, KernelSource::Generated | KernelSource::View);
        let quoted =
            kernels.iter().map(|it| if is_name { format!("`{it}`") } else { (*it).into() });
        quoted.collect::<Vec<_>>().join(", ")
    };
    let Operation { name, .. } = operation;
    let (summary, types) = (operation.summary(), operation.type_names());
    let [cuda, vulkan, cpu] = [BackendKind::Cuda, BackendKind::Vulkan, BackendKind::Cpu].map(on);
    format!("| `{name}` | {summary} | {types} | {cuda} | {vulkan} | {cpu} |\n")
}

#[test]
fn readme_lists_all_operations() {
    let path = root().join(README);
    let readme = std::fs::read_to_string(&path).expect("the README exists");
    let (before, rest) = readme.split_once(TABLE_START).expect("the table has a start");
    let (_, after) = rest.split_once(TABLE_END).expect("the table has an end");
    let rows: String = operations().map(|it| table_row(&it)).collect();
    let head = "| function | computes | element types | CUDA | Vulkan, wgpu | CPU |\n\
                | --- | --- | --- | --- | --- | --- |\n";
    let text = format!("{before}{TABLE_START}\n{head}{rows}\n{TABLE_END}{after}");
    golden::compare_file(&path, &text);
}

#[test]
fn names_of_kernels_are_those_of_the_library() {
    for operation in operations() {
        assert!(!operation.kernels_on(BackendKind::Vulkan).is_empty(), "{}", operation.name);
    }
}

#[test]
fn operations_agree_at_once_and_in_graphs() {
    compare_all(3);
}

#[test]
#[ignore = "takes minutes"]
fn operations_agree_in_many_cases() {
    compare_all(100);
}
