//! Reductions over any axes of any view.

use proptest::prelude::*;
use scry_tensor::{DType, Tensor, Value};
use scry_test_support::on_each_device;

use crate::support::{Host, assert_close, check, ok, round, source, view};

/// Reduces values on the host: floats in `f64`, which is exact for the values of `numbers`.
fn reduced(
    host: &Host,
    axes: &[bool],
    first: Value,
    combine: impl Fn(Value, Value) -> Value,
) -> Host {
    let keep = |at: &[usize]| -> Vec<usize> {
        at.iter().zip(axes).filter(|(_, is_reduced)| !**is_reduced).map(|(at, _)| *at).collect()
    };
    let shape = keep(&host.shape);
    Host::build(host.dtype, &shape, |at| {
        let parts = Host::build(host.dtype, &host.shape, |own| {
            if keep(own) == at { host.at(own) } else { Value::Bool(false) }
        });
        let chosen = parts.values.into_iter().filter(|it| *it != Value::Bool(false));
        round(host.dtype, chosen.fold(first, &combine))
    })
}

fn float(value: Value) -> f64 {
    if let Value::Float(x) = value { x } else { 0.0 }
}

fn integer(value: Value) -> i64 {
    if let Value::Integer(x) = value { x } else { 0 }
}

fn sum(a: Value, b: Value) -> Value {
    match a {
        Value::Float(a) => Value::Float(a + float(b)),
        _ => Value::Integer(integer(a).wrapping_add(integer(b))),
    }
}

fn largest(a: Value, b: Value) -> Value {
    match a {
        Value::Float(a) if a.is_nan() || float(b).is_nan() => Value::Float(f64::NAN),
        Value::Float(a) => Value::Float(a.max(float(b))),
        _ => Value::Integer(integer(a).max(integer(b))),
    }
}

fn smallest(a: Value, b: Value) -> Value {
    match a {
        Value::Float(a) if a.is_nan() || float(b).is_nan() => Value::Float(f64::NAN),
        Value::Float(a) => Value::Float(a.min(float(b))),
        _ => Value::Integer(integer(a).min(integer(b))),
    }
}

fn product(a: Value, b: Value) -> Value {
    Value::Integer((integer(a) as u32).wrapping_mul(integer(b) as u32).into())
}

#[test]
fn reductions_of_views_agree() {
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32] {
        check(30, (source(dtype), any::<u8>()), |gpu, ((host, steps), mask)| {
            let (x, host) = view(host.upload(gpu), host, &steps);
            let is_reduced: Vec<bool> = (0..x.rank()).map(|n| mask >> n & 1 == 1).collect();
            let axes: Vec<i64> = (0..x.rank() as i64).filter(|n| is_reduced[*n as usize]).collect();
            let is_float = dtype.is_float();
            let zero = if is_float { Value::Float(0.0) } else { Value::Integer(0) };
            let found = Host::download(&ok(x.sum(axes.clone())));
            let context = format!("sum of {dtype} over {axes:?} on {}", gpu.name());
            // Sums of numbers up to 65504 in `f32`.
            assert_close(&found, &reduced(&host, &is_reduced, zero, sum), 0.05, &context);
            let kept = ok(x.sum_keepdim(axes.clone()));
            let ones = (0..x.rank()).map(|n| if is_reduced[n] { 1 } else { host.shape[n] });
            assert_eq!(kept.shape().to_vec(), ones.collect::<Vec<_>>());
            let one = if is_float { Value::Float(1.0) } else { Value::Integer(1) };
            if !is_float {
                let found = Host::download(&ok(x.prod(axes.clone())));
                assert_close(&found, &reduced(&host, &is_reduced, one, product), 0.0, &context);
            } else if !host.shape.contains(&0) {
                let count = host.shape.iter().zip(&is_reduced).filter(|(_, it)| **it);
                let count: usize = count.map(|(size, _)| size).product();
                let mut wanted = reduced(&host, &is_reduced, zero, sum);
                for value in &mut wanted.values {
                    *value = round(dtype, Value::Float(float(*value) / count as f64));
                }
                let found = Host::download(&ok(x.mean(axes.clone())));
                assert_close(&found, &wanted, 0.05, &context);
            }
            if !host.shape.contains(&0) {
                let most =
                    if is_float { Value::Float(f64::INFINITY) } else { Value::Integer(i64::MAX) };
                let found = Host::download(&ok(x.min(axes.clone())));
                assert_close(&found, &reduced(&host, &is_reduced, most, smallest), 0.0, &context);
                let least = if is_float {
                    Value::Float(f64::NEG_INFINITY)
                } else {
                    Value::Integer(i64::MIN)
                };
                let found = Host::download(&ok(x.max(axes)));
                assert_close(&found, &reduced(&host, &is_reduced, least, largest), 0.0, &context);
            }
        });
    }
}

#[test]
fn sums_accumulate_in_f32() {
    on_each_device(|gpu| {
        let ones = ok(Tensor::ones([4096], DType::BF16, gpu));
        assert_eq!(ok(ok(ok(ones.sum(..)).cast(DType::F32)).item::<f32>()), 4096.0);
        let large = ok(Tensor::full([4096], 1000, DType::F16, gpu));
        assert_eq!(ok(ok(ok(large.mean(0)).cast(DType::F32)).item::<f32>()), 1000.0);
    });
}

#[test]
fn results_of_nothing_are_those_of_numpy() {
    on_each_device(|gpu| {
        let x = ok(Tensor::zeros([2, 0, 3], DType::F32, gpu));
        assert_eq!(ok(ok(x.sum(1)).to_vec::<f32>()), [0.0; 6]);
        assert_eq!(ok(ok(x.prod(1)).to_vec::<f32>()), [1.0; 6]);
        assert!(ok(ok(x.mean(..)).item::<f32>()).is_nan());
        assert_eq!(*ok(x.max(0)).shape(), [0, 3]);
        assert!(x.max(1).is_err());
        let y = ok(Tensor::new([1.0f32, 2.0], gpu));
        assert_eq!(ok(ok(y.sum([0i32; 0])).to_vec::<f32>()), [1.0, 2.0]);
        let nothing = ok(Tensor::zeros([0], DType::Bool, gpu));
        assert!(!ok(ok(nothing.any(..)).item::<bool>()) && ok(ok(nothing.all(..)).item::<bool>()));
    });
}
