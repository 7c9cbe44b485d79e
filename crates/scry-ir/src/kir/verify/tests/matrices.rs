//! Tests of the rules of cooperative matrices.

use super::support::{BUFFER, assert_valid, value_of, verify_built};
use crate::kir::{
    AddressSpace, BinaryOp, Builder, FragmentPlace, Inst, MatrixElement, MatrixPlace, MatrixSize,
    MatrixType, MatrixUse, Place, Type, Value,
};

fn matrix(role: MatrixUse, element: MatrixElement) -> MatrixType {
    MatrixType { role, size: MatrixSize::M8, element }
}

/// The memory of a matrix whose index, stride and length are the `u32` constant of `v`.
fn place(space: AddressSpace, v: &[Value; 10]) -> MatrixPlace {
    let (array, index) = (Place::new(space, None, 0, 0), value_of(v, Type::U32));
    MatrixPlace { array, len: Some(index), index, stride: index, row_major: true }
}

/// Loads both operands, and returns their product, added to a matrix of zeros.
fn product(b: &mut Builder, v: &[Value; 10]) -> Value {
    use MatrixUse::{A, B, C};
    let at = place(AddressSpace::Binding(0), v);
    let left = b.matrix_load(matrix(A, MatrixElement::F16), at);
    let right = b.matrix_load(matrix(B, MatrixElement::F16), at);
    let sum = b.matrix_fill(matrix(C, MatrixElement::F32), value_of(v, Type::F32));
    b.multiply_add(left, right, sum)
}

/// Asserts that the kernel that `fill` builds is invalid, with an error that contains `message`.
#[track_caller]
fn assert_error_contains(message: &str, fill: impl FnOnce(&mut Builder, &[Value; 10])) {
    let error = verify_built(fill).expect_err("the kernel is invalid");
    assert!(error.contains(message), "{error}");
}

#[test]
fn products_are_accepted() {
    assert_valid(|b, v| {
        let product = product(b, v);
        b.matrix_store(place(BUFFER, v), product);
        let sum = b.var(b.ty(product));
        b.set(sum, product);
        b.get(sum);
        let locals = b.local_array(b.ty(product), 3);
        let (nth, bytes) = (value_of(v, Type::U32), b.ty(product).size());
        b.store(Place::new(locals, Some(nth), bytes, 0), vec![product]);
        b.load(b.ty(product), Place::new(locals, Some(nth), bytes, bytes), 1);
    });
}

#[test]
fn mismatched_matrices_are_rejected() {
    assert_error_contains(
        "`multiply_add` is not defined for (c8x8_f32, b8x8_f16, c8x8_f32) -> c8x8_f32",
        |b, v| {
            let product = product(b, v);
            let right =
                b.matrix_fill(matrix(MatrixUse::B, MatrixElement::F16), value_of(v, Type::F16));
            b.multiply_add(product, right, product);
        },
    );
    assert_error_contains("`matrix_fill` is not defined for (f16) -> c8x8_f32", |b, v| {
        b.matrix_fill(matrix(MatrixUse::C, MatrixElement::F32), value_of(v, Type::F16));
    });
    assert_error_contains("`Div` is not defined for (c8x8_f32, c8x8_f32) -> c8x8_f32", |b, v| {
        let product = product(b, v);
        b.binary(BinaryOp::Div, product, product);
    });
    assert_error_contains(
        "`select` is not defined for (c8x8_f32, c8x8_f32) -> c8x8_f32",
        |b, v| {
            let product = product(b, v);
            b.value(b.ty(product), Inst::Select(value_of(v, Type::Bool), product, product));
        },
    );
}

#[test]
fn matrix_memory_is_checked() {
    assert_error_contains("binding0 is read only", |b, v| {
        let product = product(b, v);
        b.matrix_store(place(AddressSpace::Binding(0), v), product);
    });
    assert_error_contains("local0 is not shared", |b, v| {
        b.matrix_load(matrix(MatrixUse::A, MatrixElement::F32), place(AddressSpace::Local(0), v));
    });
    assert_error_contains("the stride of the matrix must be u32, but is f32", |b, v| {
        let at = MatrixPlace { stride: value_of(v, Type::F32), ..place(BUFFER, v) };
        b.matrix_load(matrix(MatrixUse::A, MatrixElement::F32), at);
    });
    assert_error_contains("outside of local arrays are accessed by `matrix_load`", |b, v| {
        let product = product(b, v);
        b.store(Place::new(BUFFER, None, 0, 0), vec![product]);
    });
    assert_error_contains("2 matrices are accessed, not 1", |b, v| {
        let product = product(b, v);
        let array = b.local_array(b.ty(product), 2);
        b.store(Place::new(array, None, 0, 0), vec![product; 2]);
    });
    assert_error_contains("an array of c8x8_f32 in workgroup memory", |b, v| {
        let product = product(b, v);
        b.workgroup_array(b.ty(product), 2);
    });
}

#[test]
fn fragments_are_checked() {
    let load = |element, place, stride| FragmentPlace {
        matrix: matrix(MatrixUse::A, element),
        place,
        stride,
        row_major: true,
    };
    assert_valid(|b, v| {
        let tile = Place::new(b.workgroup_array(Type::F16, 64), None, 0, 0);
        let from = load(MatrixElement::F16, tile, value_of(v, Type::U32));
        assert_eq!(b.load_fragment(from).len(), 2);
    });
    assert_error_contains("binding1 is not workgroup memory", |b, v| {
        let at = Place::new(BUFFER, None, 0, 0);
        b.load_fragment(load(MatrixElement::F16, at, value_of(v, Type::U32)));
    });
    assert_error_contains("an element of the fragment must be f16, but is f32", |b, v| {
        let tile = Place::new(b.workgroup_array(Type::F32, 64), None, 0, 0);
        b.load_fragment(load(MatrixElement::F32, tile, value_of(v, Type::U32)));
    });
    assert_error_contains("the stride of the matrix must be u32, but is f32", |b, v| {
        let tile = Place::new(b.workgroup_array(Type::F16, 64), None, 0, 0);
        b.load_fragment(load(MatrixElement::F16, tile, value_of(v, Type::F32)));
    });
    assert_error_contains(
        "the access ends at byte 130, past the 128 bytes of workgroup",
        |b, v| {
            let tile = Place::new(b.workgroup_array(Type::F16, 64), None, 0, 128);
            b.load_fragment(load(MatrixElement::F16, tile, value_of(v, Type::U32)));
        },
    );
}
