//! Tests of the kernel fusion example: an expression as one kernel and as several, against an
//! evaluation in plain Rust.

use scry_gpu::kir::{BinaryOp, UnaryOp};
use scry_test_support::{devices, random_f32};

use crate::expression::{Expression, parse};
use crate::fusion;

fn evaluate(expression: &Expression, inputs: &[f64]) -> f64 {
    match expression {
        Expression::Number(number) => f64::from(*number),
        Expression::Input(index) => inputs[*index],
        Expression::Unary(op, a) => {
            let a = evaluate(a, inputs);
            match op {
                UnaryOp::Neg => -a,
                UnaryOp::Abs => a.abs(),
                UnaryOp::Cos => a.cos(),
                UnaryOp::Exp => a.exp(),
                UnaryOp::Floor => a.floor(),
                UnaryOp::Log => a.ln(),
                UnaryOp::Sin => a.sin(),
                UnaryOp::Sqrt => a.sqrt(),
                UnaryOp::Tanh => a.tanh(),
                other => panic!("{other:?} is not in an expression"),
            }
        }
        Expression::Binary(op, left, right) => {
            let (a, b) = (evaluate(left, inputs), evaluate(right, inputs));
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::Min => a.min(b),
                BinaryOp::Max => a.max(b),
                other => panic!("{other:?} is not in an expression"),
            }
        }
    }
}

#[test]
fn fused_and_unfused_match_reference() {
    const COUNT: usize = 1000;
    // Expressions with the number of operations that each needs unfused.
    let cases = [
        ("sqrt(x * x + y * y) * exp(-z) + 0.5", 8),
        ("1 - 2 - x", 2),
        ("8 / 4 / x", 2),
        ("max(min(x, y), 0.25) - abs(y - tanh(x))", 6),
        ("sin(x) + cos(y) * log(x + 1) / (floor(4 * y) + 3)", 10),
        ("--x", 2),
        ("x", 1),
        ("2.5", 1),
    ];
    for gpu in devices() {
        for (text, operation_count) in cases {
            let (expression, names) = parse(text).unwrap();
            let data: Vec<Vec<f32>> = (1..=names.len() as u64)
                .map(|seed| random_f32(seed, COUNT).iter().map(|x| x + 1.5).collect())
                .collect();
            let inputs: Vec<_> = data.iter().map(|data| gpu.upload(data).unwrap()).collect();
            let operations = fusion::split_operations(&expression, inputs.len());
            assert_eq!(operations.len(), operation_count, "{text}");
            let both = [
                fusion::record_fused(&gpu, &expression, &inputs, COUNT).unwrap(),
                fusion::record_unfused(&gpu, &operations, &inputs, COUNT).unwrap(),
            ];
            for (recording, output) in both {
                recording.replay().unwrap().wait().unwrap();
                for (i, result) in output.download().unwrap().into_iter().enumerate() {
                    let values: Vec<f64> = data.iter().map(|data| f64::from(data[i])).collect();
                    let expected = evaluate(&expression, &values);
                    let error = (f64::from(result) - expected).abs();
                    assert!(
                        error < 1e-4,
                        "{text}, element {i}: {result}, not {expected} on {}",
                        gpu.name()
                    );
                }
            }
        }
    }
}

#[test]
fn parse_errors_explain_the_problem() {
    let cases = [
        ("", "expected a number, an input or a function after ``"),
        ("x +", "expected a number, an input or a function after `x +`"),
        ("(x", "expected `)` after `(x`"),
        ("x y", "expected an operator after `x`"),
        ("min(x)", "expected a second argument after `min(x`"),
        ("1.2.3", "`1.2.3` is not a number"),
        ("erf(x)", "there is no function `erf`"),
        ("x § y", "expected an operator after `x`"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err(), expected);
    }
    let text = parse(&"(".repeat(10_000)).unwrap_err();
    assert_eq!(text, "the expression has more than 200 operands, signs and parentheses");
    assert!(parse(&"x+".repeat(10_000)).unwrap_err().contains("more than 200"));
}
