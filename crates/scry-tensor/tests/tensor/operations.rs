//! Every element-wise operation of the table, on random views, against its reference.

use half::{bf16, f16};
use proptest::prelude::*;
use scry_tensor::{DType, Device, Operation, Tensor, Value, operations};
use scry_test_support::on_each_device;

use crate::support::{ELEMENTS, Host, assert_close, check, ok, round, source, value, view};

/// Returns the expected result of an operation on values of one shape.
fn expected(operation: &Operation, a: &Host, b: &Host) -> Host {
    let results = a.values.iter().zip(&b.values).map(|(a, b)| {
        let result = operation.reference(*a, *b);
        result.unwrap_or_else(|| panic!("{} has no reference for {a:?}", operation.name))
    });
    let mut results: Vec<Value> = results.collect();
    let is_bool = matches!(results.first(), Some(Value::Bool(_)));
    let dtype = if is_bool { DType::Bool } else { a.dtype };
    results.iter_mut().for_each(|it| *it = round(dtype, *it));
    Host { dtype, shape: a.shape.clone(), values: results }
}

/// Returns the tolerance of an operation on these values. Vulkan's drivers reduce the angle of a
/// sine or cosine with an error that grows with it.
fn tolerance(operation: &Operation, x: &Host) -> f64 {
    let magnitude = |value: &Value| match value {
        Value::Float(x) if x.is_finite() => x.abs(),
        _ => 0.0,
    };
    match operation.name {
        "sin" | "cos" => {
            let largest = x.values.iter().map(magnitude).fold(0.0, f64::max);
            operation.tolerance + largest * 2f64.powi(-23)
        }
        _ => operation.tolerance,
    }
}

/// Returns the type of results: known without values, which an empty tensor has not.
fn with_output(found: &Host, wanted: Host) -> Host {
    if wanted.values.is_empty() { Host { dtype: found.dtype, ..wanted } } else { wanted }
}

/// Returns another tensor of a shape, with other elements, whose axes are stored in reverse order.
fn reversed(gpu: &Device, shape: &[usize], elements: &Host) -> (Tensor, Host) {
    let backwards: Vec<usize> = shape.iter().rev().copied().collect();
    let zero = value(elements.dtype, 0);
    let mut values = elements.values.iter().cycle();
    let stored = Host::build(elements.dtype, &backwards, |_| *values.next().unwrap_or(&zero));
    let axes: Vec<i64> = (0..shape.len() as i64).rev().collect();
    let host = Host::build(elements.dtype, shape, |at| {
        stored.at(&at.iter().rev().copied().collect::<Vec<_>>())
    });
    (ok(stored.upload(gpu).permute(axes)), host)
}

#[test]
fn operations_agree_with_their_references() {
    for operation in operations().filter(|it| it.is_elementwise()) {
        for dtype in operation.types {
            check(12, (source(*dtype), source(*dtype)), |gpu, ((host, steps), (other, _))| {
                let (x, host) = view(host.upload(gpu), host, &steps);
                let (y, other) = reversed(gpu, &host.shape, &other);
                let found =
                    Host::download(&ok(operation.call(&x, &y).expect("it is element-wise")));
                let wanted = with_output(&found, expected(&operation, &host, &other));
                let context = format!("{} of {dtype} on {}", operation.name, gpu.name());
                assert_close(&found, &wanted, tolerance(&operation, &host), &context);
            });
        }
    }
}

#[test]
fn shapes_broadcast_both_ways() {
    let sizes = prop::collection::vec((1..4usize, any::<bool>(), any::<bool>()), 0..5);
    check(60, (sizes, 0..3usize, 0..3usize), |gpu, (sizes, skip_a, skip_b)| {
        let full: Vec<usize> = sizes.iter().map(|(size, ..)| *size).collect();
        let a: Vec<usize> = sizes.iter().map(|(n, one, _)| if *one { 1 } else { *n }).collect();
        let b: Vec<usize> =
            sizes.iter().map(|(n, one, two)| if *two && !*one { 1 } else { *n }).collect();
        let number = |shape: &[usize], start: i64| {
            let count: usize = shape.iter().product();
            let values = (0..count as i64).map(|n| Value::Integer(n * start)).collect();
            Host { dtype: DType::I32, shape: shape.to_vec(), values }
        };
        let a = number(&a[skip_a.min(if skip_b == 0 { a.len() } else { 0 })..], 1);
        let b = number(&b, 1000);
        let shape = {
            let rank = a.shape.len().max(b.shape.len());
            let size = |shape: &[usize], n: usize| {
                (n + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
            };
            (0..rank).map(|n| size(&a.shape, n).max(size(&b.shape, n))).collect::<Vec<_>>()
        };
        assert!(shape.len() == full.len());
        let sum = ok(a.upload(gpu).add(b.upload(gpu)));
        let (a, b) = (a.expand(&shape), b.expand(&shape));
        let add = operations().find(|it| it.name == "add").unwrap();
        assert_close(&Host::download(&sum), &expected(&add, &a, &b), 0.0, "add");
    });
}

#[test]
fn casts_agree_with_rust() {
    for from in ELEMENTS {
        for to in ELEMENTS {
            check(20, source(from), |gpu, (host, steps)| {
                let (x, host) = view(host.upload(gpu), host, &steps);
                let found = Host::download(&ok(x.cast(to)));
                let values = host.values.iter().map(|value| round(to, converted(*value, to)));
                let wanted = Host { dtype: to, shape: host.shape, values: values.collect() };
                assert_close(&found, &wanted, 0.0, &format!("{from} to {to}"));
            });
        }
    }
}

/// Converts as Rust's `as` does; floats that saturate reach the largest `f32` in range.
fn converted(value: Value, to: DType) -> Value {
    match (value, to) {
        (Value::Float(x), DType::Bool) => Value::Bool(x != 0.0),
        (Value::Integer(x), DType::Bool) => Value::Bool(x != 0),
        (Value::Bool(x), DType::Bool) => Value::Bool(x),
        (Value::Float(x), DType::I32) => {
            Value::Integer(if x >= 2_147_483_648.0 { 2_147_483_520 } else { x as i32 }.into())
        }
        (Value::Float(x), DType::U32) => {
            Value::Integer(if x >= 4_294_967_296.0 { 4_294_967_040 } else { x as u32 }.into())
        }
        (Value::Integer(x), DType::I32 | DType::U32) => Value::Integer(x),
        (Value::Bool(x), DType::I32 | DType::U32) => Value::Integer(x.into()),
        (Value::Float(x), _) => Value::Float(x),
        // Computed in `f32`, then rounded to 16 bits.
        (Value::Integer(x), _) => Value::Float((x as f32).into()),
        (Value::Bool(x), _) => Value::Float(f64::from(u8::from(x))),
    }
}

#[test]
fn every_f16_and_bf16_survives() {
    on_each_device(|gpu| {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let x = ok(Tensor::from_slice(&halves, [1 << 16], gpu));
        let wide = ok(ok(x.cast(DType::F32)).to_vec::<f32>());
        let back = ok(ok(ok(x.cast(DType::F32)).cast(DType::F16)).to_vec::<f16>());
        for ((half, wide), back) in halves.iter().zip(wide).zip(back) {
            assert!(half.is_nan() && wide.is_nan() || half.to_f32().to_bits() == wide.to_bits());
            assert!(half.is_nan() && back.is_nan() || half.to_bits() == back.to_bits(), "{half}");
        }
        let halves: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
        let x = ok(Tensor::from_slice(&halves, [1 << 16], gpu));
        let back = ok(ok(ok(x.cast(DType::F32)).cast(DType::BF16)).to_vec::<bf16>());
        for (half, back) in halves.iter().zip(back) {
            assert!(half.is_nan() && back.is_nan() || half.to_bits() == back.to_bits(), "{half}");
        }
    });
}

#[test]
fn floats_round_to_even() {
    check(30, prop::collection::vec(any::<u32>(), 64), |gpu, bits| {
        let floats: Vec<f32> = bits.iter().map(|bits| f32::from_bits(*bits)).collect();
        // Near the range of `f16`, where most random floats are not.
        let near = bits.iter().map(|bits| (*bits as i32 as f32) * 2f32.powi(-(*bits as i32 & 63)));
        let floats: Vec<f32> = floats.into_iter().chain(near).collect();
        let x = ok(Tensor::from_slice(&floats, [128], gpu));
        let halves = ok(ok(x.cast(DType::F16)).to_vec::<f16>());
        let brains = ok(ok(x.cast(DType::BF16)).to_vec::<bf16>());
        for ((float, half), brain) in floats.iter().zip(halves).zip(brains) {
            let (a, b) = (f16::from_f32(*float), bf16::from_f32(*float));
            assert!(float.is_nan() && half.is_nan() || half.to_bits() == a.to_bits(), "{float:e}");
            assert!(
                float.is_nan() && brain.is_nan() || brain.to_bits() == b.to_bits(),
                "{float:e}"
            );
        }
    });
}

#[test]
fn where_chooses_and_broadcasts() {
    for dtype in ELEMENTS {
        check(12, (source(dtype), any::<u64>()), |gpu, ((host, steps), seed)| {
            let (x, host) = view(host.upload(gpu), host, &steps);
            let condition = Host::build(DType::Bool, &host.shape, |at| {
                Value::Bool((seed >> (at.iter().sum::<usize>() % 64)) & 1 == 1)
            });
            let zero = ok(Tensor::zeros((), dtype, gpu));
            let found = Host::download(&ok(condition.upload(gpu).where_(&x, &zero)));
            let zero = Host::download(&zero).values[0];
            let chosen = condition.values.iter().zip(&host.values);
            let values = chosen.map(|(it, x)| if *it == Value::Bool(true) { *x } else { zero });
            let wanted = Host { values: values.collect(), ..host.clone() };
            assert_close(&found, &wanted, 0.0, "where_");
        });
    }
}

#[test]
fn operators_accept_scalars_on_both_sides() {
    on_each_device(|gpu| {
        let x = ok(Tensor::new([1.0f32, 4.0], gpu));
        let y = ok(1.0 / &ok(&ok(&x * 2.0) + 2));
        assert_eq!(ok(y.to_vec::<f32>()), [0.25, 0.1]);
        assert_eq!(ok(ok(-&ok(10i64 - &x)).to_vec::<f32>()), [-9.0, -6.0]);
        let half = ok(x.cast(DType::F16));
        assert_eq!(ok(&half + 0.5).dtype(), DType::F16);
        assert_eq!(ok(ok(!&ok(x.gt(2.0))).to_vec::<bool>()), [true, false]);
    });
}
