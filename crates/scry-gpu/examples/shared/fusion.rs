//! Kernels of element-wise expressions, built at run time: one for the whole expression, or one for
//! each of its operations.

use scry_gpu::kir::{Access, BinaryOp, Builder, Kir, Type, Value};
use scry_gpu::{Binding, Buffer, Device, Kernel, Recording, Result};

use crate::expression::Expression;

/// Size of an element in bytes.
const STRIDE: u32 = 4;

/// Builds the kernel that computes an expression. Its bindings are the inputs, then the output.
pub fn build_kernel(name: &str, expression: &Expression, inputs: usize) -> Kir {
    let mut b = Builder::new(name, [256, 1, 1]);
    let inputs: Vec<u32> = (0..inputs)
        .map(|index| b.named_buffer(&format!("input{index}"), Type::F32, Access::Read))
        .collect();
    let output = b.named_buffer("output", Type::F32, Access::ReadWrite);
    let i = b.global_id(0);
    let length = b.array_length(output, 0, STRIDE);
    let inside = b.binary(BinaryOp::Lt, i, length);
    b.if_then(inside, |b| {
        let values: Vec<Value> = inputs
            .iter()
            .map(|input| {
                let element = b.element(*input, i);
                b.load(Type::F32, element, 1)[0]
            })
            .collect();
        let result = emit(b, expression, &values);
        let element = b.element(output, i);
        b.store(element, vec![result]);
    });
    b.finish()
}

/// Adds the instructions of an expression, and returns its value.
fn emit(b: &mut Builder, expression: &Expression, inputs: &[Value]) -> Value {
    match expression {
        Expression::Number(number) => b.f32(*number),
        Expression::Input(index) => inputs[*index],
        Expression::Unary(op, a) => {
            let a = emit(b, a, inputs);
            b.unary(*op, a)
        }
        Expression::Binary(op, left, right) => {
            let [left, right] = [left, right].map(|operand| emit(b, operand, inputs));
            b.binary(*op, left, right)
        }
    }
}

/// One operation with its operands in buffers.
pub struct Operation {
    expression: Expression,
    /// Indices of buffers: the inputs, then the results of the operations.
    operands: Vec<usize>,
}

/// Splits an expression over this number of inputs into operations, in the order of execution.
pub fn split_operations(expression: &Expression, inputs: usize) -> Vec<Operation> {
    let mut operations = Vec::new();
    let root = split(expression, inputs, &mut operations);
    if operations.is_empty() {
        // The expression is a number or an input: it is copied.
        operations.push(root.operation(|operand| operand));
    }
    operations
}

/// An operand of an operation: a literal, or the index of a buffer.
enum Operand {
    Number(f32),
    Buffer(usize),
}

impl Operand {
    /// Returns the operation that applies `apply` to the operand.
    fn operation(self, apply: impl FnOnce(Expression) -> Expression) -> Operation {
        let mut operands = Vec::new();
        let expression = apply(self.expression(&mut operands));
        Operation { expression, operands }
    }

    /// Returns the operand as an expression over `operands`, to which its buffer is added.
    fn expression(self, operands: &mut Vec<usize>) -> Expression {
        match self {
            Self::Number(number) => Expression::Number(number),
            Self::Buffer(buffer) => {
                // If both operands are the same buffer, it is bound once.
                let position = operands.iter().position(|other| *other == buffer);
                Expression::Input(position.unwrap_or_else(|| {
                    operands.push(buffer);
                    operands.len() - 1
                }))
            }
        }
    }
}

/// Appends the operations of an expression; returns the operand that has its value.
fn split(expression: &Expression, inputs: usize, operations: &mut Vec<Operation>) -> Operand {
    let operation = match expression {
        Expression::Number(number) => return Operand::Number(*number),
        Expression::Input(index) => return Operand::Buffer(*index),
        Expression::Unary(op, a) => {
            split(a, inputs, operations).operation(|a| Expression::Unary(*op, Box::new(a)))
        }
        Expression::Binary(op, left, right) => {
            let [left, right] = [left, right].map(|operand| split(operand, inputs, operations));
            let mut operands = Vec::new();
            let [left, right] =
                [left, right].map(|operand| Box::new(operand.expression(&mut operands)));
            Operation { expression: Expression::Binary(*op, left, right), operands }
        }
    };
    operations.push(operation);
    Operand::Buffer(inputs + operations.len() - 1)
}

/// Records one kernel for the whole expression. Returns the buffer of its results.
pub fn record_fused(
    gpu: &Device,
    expression: &Expression,
    inputs: &[Buffer<f32>],
    count: usize,
) -> Result<(Recording, Buffer<f32>)> {
    let kernel = gpu.compile_ir(&build_kernel("fused", expression, inputs.len()))?;
    let output = gpu.alloc::<f32>(count)?;
    let mut batch = gpu.batch();
    let bindings: Vec<&dyn Binding> =
        inputs.iter().chain([&output]).map(|buffer| buffer as _).collect();
    batch.run(&kernel, &bindings, count)?;
    Ok((batch.record()?, output))
}

/// Records one kernel per operation, each with a buffer for its results. Returns the last buffer.
pub fn record_unfused(
    gpu: &Device,
    operations: &[Operation],
    inputs: &[Buffer<f32>],
    count: usize,
) -> Result<(Recording, Buffer<f32>)> {
    let mut buffers = inputs.to_vec();
    let mut batch = gpu.batch();
    for Operation { expression, operands } in operations {
        let kernel: Kernel =
            gpu.compile_ir(&build_kernel("operation", expression, operands.len()))?;
        let output = gpu.alloc::<f32>(count)?;
        let operands = operands.iter().map(|operand| &buffers[*operand]);
        let bindings: Vec<&dyn Binding> =
            operands.chain([&output]).map(|buffer| buffer as _).collect();
        batch.run(&kernel, &bindings, count)?;
        buffers.push(output);
    }
    Ok((batch.record()?, buffers.swap_remove(inputs.len() + operations.len() - 1)))
}
