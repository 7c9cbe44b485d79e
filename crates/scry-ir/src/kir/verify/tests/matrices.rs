//! Cooperative matrices.

use super::support::{BUFFER, accepted, of, said};
use crate::kir::{
    AddressSpace, BinaryOp, Builder, Inst, MatrixElement, MatrixPlace, MatrixRole, MatrixSize,
    MatrixType, Place, Type, Value,
};

fn matrix(role: MatrixRole, element: MatrixElement) -> MatrixType {
    MatrixType { role, size: MatrixSize::M8, element }
}

/// The place of a matrix in an array of 64 elements or more.
fn place(space: AddressSpace, v: &[Value; 10]) -> MatrixPlace {
    let (array, index) = (Place::new(space, None, 0, 0), of(v, Type::U32));
    MatrixPlace { array, len: Some(index), index, stride: index, row_major: true }
}

/// Loads both factors, and returns their product with a matrix of zeros.
fn product(b: &mut Builder, v: &[Value; 10]) -> Value {
    use MatrixRole::{A, B, C};
    let at = place(AddressSpace::Binding(0), v);
    let left = b.matrix_load(matrix(A, MatrixElement::F16), at);
    let right = b.matrix_load(matrix(B, MatrixElement::F16), at);
    let sum = b.matrix_fill(matrix(C, MatrixElement::F32), of(v, Type::F32));
    b.multiply_add(left, right, sum)
}

#[track_caller]
fn refuses(message: &str, fill: impl FnOnce(&mut Builder, &[Value; 10])) {
    let error = said(fill).expect_err("the kernel is invalid");
    assert!(error.contains(message), "{error}");
}

#[test]
fn products_are_accepted() {
    accepted(|b, v| {
        let product = product(b, v);
        b.matrix_store(place(BUFFER, v), product);
        let sum = b.var(b.ty(product));
        b.set(sum, product);
        b.get(sum);
        let locals = b.local_array(b.ty(product), 3);
        let (nth, bytes) = (of(v, Type::U32), b.ty(product).size());
        b.store(Place::new(locals, Some(nth), bytes, 0), vec![product]);
        b.load(b.ty(product), Place::new(locals, Some(nth), bytes, bytes), 1);
    });
}

#[test]
fn mismatched_matrices_are_refused() {
    refuses("no `multiply_add` takes c8x8_f32, b8x8_f16, c8x8_f32 and gives c8x8_f32", |b, v| {
        let product = product(b, v);
        let right = b.matrix_fill(matrix(MatrixRole::B, MatrixElement::F16), of(v, Type::F16));
        b.multiply_add(product, right, product);
    });
    refuses("no `matrix_fill` takes f16 and gives c8x8_f32", |b, v| {
        b.matrix_fill(matrix(MatrixRole::C, MatrixElement::F32), of(v, Type::F16));
    });
    refuses("no `Div` takes c8x8_f32, c8x8_f32 and gives c8x8_f32", |b, v| {
        let product = product(b, v);
        b.binary(BinaryOp::Div, product, product);
    });
    refuses("no `select` takes c8x8_f32, c8x8_f32 and gives c8x8_f32", |b, v| {
        let product = product(b, v);
        b.value(b.ty(product), Inst::Select(of(v, Type::Bool), product, product));
    });
}

#[test]
fn places_of_matrices_are_checked() {
    refuses("binding0 is read only", |b, v| {
        let product = product(b, v);
        b.matrix_store(place(AddressSpace::Binding(0), v), product);
    });
    refuses("local0 is not shared", |b, v| {
        b.matrix_load(matrix(MatrixRole::A, MatrixElement::F32), place(AddressSpace::Local(0), v));
    });
    refuses("the stride of the matrix takes u32, and gets f32", |b, v| {
        let at = MatrixPlace { stride: of(v, Type::F32), ..place(BUFFER, v) };
        b.matrix_load(matrix(MatrixRole::A, MatrixElement::F32), at);
    });
    refuses("binding1 has no run of 1 matrices", |b, v| {
        let product = product(b, v);
        b.store(Place::new(BUFFER, None, 0, 0), vec![product]);
    });
    refuses("an array of c8x8_f32 in workgroup memory", |b, v| {
        let product = product(b, v);
        b.workgroup_array(b.ty(product), 2);
    });
}
