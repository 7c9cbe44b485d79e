//! Host values of any element type, random views with the same view on the host, and comparisons.

use half::{bf16, f16};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use scry_gpu::Device;
use scry_tensor::{DType, Element, Ellipsis, Index, Tensor, Value};
use scry_test_support::devices;

/// Element types that are accessed one by one.
pub const ELEMENTS: [DType; 6] =
    [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::Bool];

/// Opens the CPU device, a new one with each call.
pub fn cpu() -> Device {
    Device::open("cpu").expect("the CPU device is always available")
}

/// Returns the value, or panics with the text of the error.
#[track_caller]
pub fn ok<T>(result: scry_tensor::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a test with random inputs on every device.
pub fn check<S: Strategy>(cases: u32, inputs: S, test: impl Fn(&Device, S::Value))
where
    S::Value: Clone,
{
    for gpu in devices() {
        eprintln!("on {} ({})", gpu.name(), gpu.backend_kind());
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let run = runner.run(&inputs, |input| {
            test(&gpu, input);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("on {}: {error}", gpu.name()));
    }
}

/// Values of an element type with their shape, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub values: Vec<Value>,
}

/// Rounds a value to an element type; integers wrap.
pub fn round(dtype: DType, value: Value) -> Value {
    match (dtype, value) {
        (DType::F32, Value::Float(x)) => Value::Float((x as f32).into()),
        (DType::F16, Value::Float(x)) => Value::Float(f16::from_f64(x).into()),
        (DType::BF16, Value::Float(x)) => Value::Float(bf16::from_f64(x).into()),
        (DType::I32, Value::Integer(x)) => Value::Integer((x as i32).into()),
        (DType::U32, Value::Integer(x)) => Value::Integer((x as u32).into()),
        (_, value) => value,
    }
}

/// Returns a value made of random bits: special values, small ones, and any bits.
pub fn value(dtype: DType, bits: u64) -> Value {
    const SPECIAL: [f64; 8] =
        [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 65504.0];
    let small = (bits >> 8) as i16;
    let value = match (dtype, bits % 4) {
        (DType::Bool, _) => Value::Bool(bits.is_multiple_of(3)),
        (DType::I32 | DType::U32, 0) => Value::Integer((bits >> 16) as i64),
        (DType::I32 | DType::U32, 1) => {
            Value::Integer([0, 1, i32::MIN.into(), -1][(bits >> 8) as usize % 4])
        }
        (DType::I32 | DType::U32, _) => Value::Integer((small % 16).into()),
        (_, 0) => Value::Float(SPECIAL[(bits >> 8) as usize % 8]),
        (_, 1) => Value::Float(f64::from(small) * 1e-7),
        (_, _) => Value::Float(f64::from(small) / 4096.0),
    };
    round(dtype, value)
}

impl Host {
    /// Copies the values to a device.
    pub fn upload(&self, gpu: &Device) -> Tensor {
        let shape = self.shape.clone();
        let floats =
            || self.values.iter().map(|it| if let Value::Float(x) = it { *x } else { 0.0 });
        let integers =
            || self.values.iter().map(|it| if let Value::Integer(x) = it { *x } else { 0 });
        let bools = || self.values.iter().map(|it| *it == Value::Bool(true));
        fn send<T: Element>(
            values: impl Iterator<Item = T>,
            shape: Vec<usize>,
            gpu: &Device,
        ) -> Tensor {
            ok(Tensor::from_slice(&values.collect::<Vec<T>>(), shape, gpu))
        }
        match self.dtype {
            DType::F32 => send(floats().map(|x| x as f32), shape, gpu),
            DType::F16 => send(floats().map(f16::from_f64), shape, gpu),
            DType::BF16 => send(floats().map(bf16::from_f64), shape, gpu),
            DType::I32 => send(integers().map(|x| x as i32), shape, gpu),
            DType::U32 => send(integers().map(|x| x as u32), shape, gpu),
            _ => send(bools(), shape, gpu),
        }
    }

    /// Reads a tensor.
    #[track_caller]
    pub fn download(x: &Tensor) -> Self {
        let values = match x.dtype() {
            DType::F32 => {
                ok(x.to_vec::<f32>()).into_iter().map(|x| Value::Float(x.into())).collect()
            }
            DType::F16 => {
                ok(x.to_vec::<f16>()).into_iter().map(|x| Value::Float(x.into())).collect()
            }
            DType::BF16 => {
                ok(x.to_vec::<bf16>()).into_iter().map(|x| Value::Float(x.into())).collect()
            }
            DType::I32 => {
                ok(x.to_vec::<i32>()).into_iter().map(|x| Value::Integer(x.into())).collect()
            }
            DType::U32 => {
                ok(x.to_vec::<u32>()).into_iter().map(|x| Value::Integer(x.into())).collect()
            }
            _ => ok(x.to_vec::<bool>()).into_iter().map(Value::Bool).collect(),
        };
        Self { dtype: x.dtype(), shape: x.shape().to_vec(), values }
    }

    /// Returns the value at coordinates.
    pub fn at(&self, coordinates: &[usize]) -> Value {
        let position =
            coordinates.iter().zip(&self.shape).fold(0, |sum, (at, size)| sum * size + at);
        self.values[position]
    }

    /// Builds values from a function of coordinates.
    pub fn build(dtype: DType, shape: &[usize], mut of: impl FnMut(&[usize]) -> Value) -> Self {
        let count: usize = shape.iter().product();
        let coordinates = |mut position: usize| {
            let mut at = vec![0; shape.len()];
            for axis in (0..shape.len()).rev() {
                at[axis] = position % shape[axis];
                position /= shape[axis];
            }
            at
        };
        let values = (0..count).map(|position| of(&coordinates(position))).collect();
        Self { dtype, shape: shape.to_vec(), values }
    }

    /// Returns the values broadcast to a shape.
    pub fn expand(&self, shape: &[usize]) -> Self {
        let first = shape.len() - self.shape.len();
        Self::build(self.dtype, shape, |at| {
            let own = at[first..].iter().zip(&self.shape);
            self.at(&own.map(|(at, size)| if *size == 1 { 0 } else { *at }).collect::<Vec<_>>())
        })
    }
}

/// Compares results; floats may differ by `tolerance` and a unit in the last place.
#[track_caller]
pub fn assert_close(found: &Host, wanted: &Host, tolerance: f64, context: &str) {
    assert_eq!((found.dtype, &found.shape), (wanted.dtype, &wanted.shape), "{context}");
    let epsilon = match found.dtype {
        DType::F16 => 1.0 / 1024.0,
        DType::BF16 => 1.0 / 128.0,
        _ => 0.0,
    };
    for (position, (found, wanted)) in found.values.iter().zip(&wanted.values).enumerate() {
        let is_close = match (found, wanted) {
            (Value::Float(a), Value::Float(b)) => {
                let bound = tolerance * b.abs().max(1.0)
                    + if tolerance > 0.0 { epsilon * b.abs() } else { 0.0 };
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= bound
            }
            _ => found == wanted,
        };
        assert!(is_close, "{context}: element {position} is {found:?}, not {wanted:?}");
    }
}

/// A view, as a list of steps.
#[derive(Debug, Clone)]
pub enum Step {
    Permute(u64),
    Slice { axis: usize, start: i64, end: i64, step: i64 },
    At(usize, usize),
    NewAxis(usize),
}

/// Random values of a type with a shape of up to four axes, and steps of views.
pub fn source(dtype: DType) -> impl Strategy<Value = (Host, Vec<Step>)> {
    let shape = prop::collection::vec(0..6usize, 0..5);
    (shape, any::<u64>(), prop::collection::vec(any_step(), 0..4)).prop_map(
        move |(shape, seed, steps)| {
            let mut state = seed | 1;
            let host = Host::build(dtype, &shape, |_| Value::Bool(false));
            let values = host.values.iter().map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                value(dtype, state)
            });
            let values = values.collect();
            (Host { values, ..host }, steps)
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let slice = (0..4usize, -7..7i64, -7..7i64, prop::sample::select(vec![-3, -2, -1, 1, 2, 3]));
    prop_oneof![
        any::<u64>().prop_map(Step::Permute),
        slice.prop_map(|(axis, start, end, step)| Step::Slice { axis, start, end, step }),
        (0..4usize, 0..6usize).prop_map(|(axis, at)| Step::At(axis, at)),
        (0..4usize).prop_map(Step::NewAxis),
    ]
}

/// Applies steps to a tensor and to values on the host; steps that do not fit are left out.
pub fn view(mut x: Tensor, mut host: Host, steps: &[Step]) -> (Tensor, Host) {
    for step in steps {
        let rank = host.shape.len();
        (x, host) = match *step {
            Step::Permute(seed) if rank > 0 => permute(&x, &host, seed),
            Step::Slice { axis, start, end, step } if rank > 0 => {
                slice(&x, &host, axis % rank, (start, end, step))
            }
            Step::At(axis, at) if rank > 0 && host.shape[axis % rank] > 0 => {
                let axis = axis % rank;
                select(&x, &host, axis, at % host.shape[axis])
            }
            Step::NewAxis(axis) => new_axis(&x, &host, axis % (rank + 1)),
            _ => (x, host),
        };
    }
    (x, host)
}

fn permute(x: &Tensor, host: &Host, seed: u64) -> (Tensor, Host) {
    let rank = host.shape.len();
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.rotate_left(seed as usize % rank);
    axes.swap(0, (seed >> 8) as usize % rank);
    let shape: Vec<usize> = axes.iter().map(|axis| host.shape[*axis]).collect();
    let permuted = Host::build(host.dtype, &shape, |at| {
        let mut own = vec![0; rank];
        for (axis, at) in axes.iter().zip(at) {
            own[*axis] = *at;
        }
        host.at(&own)
    });
    let axes: Vec<i64> = axes.iter().map(|axis| *axis as i64).collect();
    (ok(x.permute(axes)), permuted)
}

/// Returns the coordinates of a slice, one by one, as Python has them.
fn coordinates(size: i64, (start, end, step): (i64, i64, i64)) -> Vec<usize> {
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let bound = |at: i64| if at < 0 { at + size } else { at }.clamp(low, high);
    let (mut at, end) = (bound(start), bound(end));
    let mut found = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        found.push(at as usize);
        at += step;
    }
    found
}

/// Returns the index of one axis.
fn index(axis: usize, rank: usize, part: Index) -> (Index, Index, Index, Index, Index) {
    let full = |n| if n < axis { Index::from(..) } else { Index::from(Ellipsis) };
    let mut parts = vec![full(0); axis];
    parts.push(part);
    parts.resize(rank, Index::from(..));
    parts.resize(5, Index::from(scry_tensor::NewAxis));
    let mut parts = parts.into_iter();
    let mut next = || parts.next().expect("five parts");
    (next(), next(), next(), next(), next())
}

fn indexed(x: &Tensor, axis: usize, part: Index) -> Tensor {
    let rank = x.rank();
    if rank > 5 {
        return ok(x.i((Ellipsis, part)));
    }
    let mut y = ok(x.i(index(axis, rank, part)));
    for _ in rank..5 {
        y = ok(y.squeeze(-1));
    }
    y
}

fn slice(x: &Tensor, host: &Host, axis: usize, range: (i64, i64, i64)) -> (Tensor, Host) {
    let axis = if x.rank() > 5 { x.rank() - 1 } else { axis };
    let chosen = coordinates(host.shape[axis] as i64, range);
    let mut shape = host.shape.clone();
    shape[axis] = chosen.len();
    let sliced = Host::build(host.dtype, &shape, |at| {
        let mut own = at.to_vec();
        own[axis] = chosen[at[axis]];
        host.at(&own)
    });
    let part = scry_tensor::step(range.0..range.1, range.2).into();
    (indexed(x, axis, part), sliced)
}

fn select(x: &Tensor, host: &Host, axis: usize, at: usize) -> (Tensor, Host) {
    let axis = if x.rank() > 5 { x.rank() - 1 } else { axis };
    let at = at % host.shape[axis].max(1);
    if host.shape[axis] == 0 {
        return (x.clone(), host.clone());
    }
    let mut shape = host.shape.clone();
    shape.remove(axis);
    let selected = Host::build(host.dtype, &shape, |coordinates| {
        let mut own = coordinates.to_vec();
        own.insert(axis, at);
        host.at(&own)
    });
    (indexed(x, axis, (at as i64).into()), selected)
}

fn new_axis(x: &Tensor, host: &Host, axis: usize) -> (Tensor, Host) {
    let mut shape = host.shape.clone();
    shape.insert(axis, 1);
    (ok(x.unsqueeze(axis as i64)), Host { shape, ..host.clone() })
}
