//! Tests of Rust types that match, or do not match, WGSL types.

use half::{bf16, f16};
use scry_ir::ScalarKind;

use super::*;
use crate::core::check::describe;
use crate::core::check::types::{Host, Mismatch, buffer as compare};

fn fits<T: Element>(wgsl: &TypeLayout) -> bool {
    result::<T>(wgsl).is_ok()
}

fn result<T: Element>(wgsl: &TypeLayout) -> Result<(), Mismatch> {
    let host = Host {
        layout: &T::LAYOUT,
        size: size_of::<T>() as u64,
        type_name: std::any::type_name::<T>(),
    };
    compare(&host, wgsl)
}

fn rejection<T: Element>(wgsl: &TypeLayout) -> String {
    let Mismatch { problem, help } = result::<T>(wgsl).unwrap_err();
    format!("{problem}; {help}")
}

fn scalar(kind: ScalarKind, width: u8) -> TypeLayout {
    TypeLayout::Scalar(Scalar { kind, width })
}

#[test]
fn floats_match_types_of_floats() {
    for wgsl in [f32s(), array(vec(2), 8), array(vec(4), 16), array(mat(4, 4), 64), vec(3)] {
        assert!(fits::<f32>(&wgsl), "{wgsl}");
    }
    for wgsl in [f32s(), array(vec(2), 8), array(vec(4), 16), array(mat(4, 4), 64), mat(3, 4)] {
        assert!(fits::<[f32; 4]>(&wgsl), "{wgsl}");
    }
    assert!(fits::<[[f32; 4]; 3]>(&array(mat(3, 3), 48)));
    assert!(fits::<[f32; 4]>(&mat(3, 3)));
    assert!(fits::<[f32; 3]>(&f32s()));
    assert!(fits::<f32>(&array(fixed(TypeLayout::Scalar(Scalar::F32), 3, 4), 12)));
    assert!(fits::<[[f32; 4]; 4]>(&mat(4, 4)));
}

#[test]
fn other_scalars_do_not_match() {
    assert!(!fits::<f32>(&u32s()));
    assert!(!fits::<i32>(&u32s()));
    assert!(!fits::<u32>(&f32s()));
    assert!(!fits::<f64>(&f32s()));
    assert!(!fits::<u64>(&u32s()));
    assert!(!fits::<u8>(&f32s()));
    assert!(!fits::<bf16>(&array(scalar(ScalarKind::Float, 2), 2)));
    assert_eq!(
        rejection::<f64>(&f32s()),
        "the data is f64, but array<f32> is made of f32; give data of type f32, or change the \
         declaration"
    );
}

#[test]
fn scalars_match_their_own_type() {
    assert!(fits::<f64>(&array(scalar(ScalarKind::Float, 8), 8)));
    assert!(fits::<i64>(&array(scalar(ScalarKind::Sint, 8), 8)));
    assert!(fits::<u64>(&scalar(ScalarKind::Uint, 8)));
    assert!(fits::<f16>(&array(scalar(ScalarKind::Float, 2), 2)));
    assert!(fits::<u32>(&array(TypeLayout::Atomic(Scalar::U32), 4)));
    assert!(fits::<i32>(&TypeLayout::Atomic(Scalar::I32)));
}

#[test]
fn narrow_scalars_match_packed_words() {
    let words4 = array(TypeLayout::Vector { len: 4, scalar: Scalar::U32 }, 16);
    assert!(fits::<u8>(&u32s()) && fits::<i8>(&u32s()) && fits::<u16>(&u32s()));
    assert!(fits::<f16>(&u32s()) && fits::<bf16>(&words4) && fits::<[u8; 4]>(&words4));
    assert!(!fits::<[u8; 3]>(&u32s()));
    assert!(!fits::<u8>(&array(TypeLayout::Scalar(Scalar::I32), 4)));
    assert!(!fits::<u8>(&array(TypeLayout::Vector { len: 3, scalar: Scalar::U32 }, 16)));
}

#[test]
fn vec3_needs_elements_of_16_bytes() {
    let wgsl = array(vec(3), 16);
    assert!(fits::<[f32; 4]>(&wgsl));
    assert!(fits::<[[f32; 4]; 2]>(&wgsl));
    assert_eq!(
        rejection::<[f32; 3]>(&wgsl),
        "[f32; 3] is 12 bytes long in Rust, but the elements of array<vec3<f32>> are 16 bytes \
         apart (vec3<f32> is aligned to 16 bytes); use [f32; 4] and leave the last one unused, or \
         declare array<f32> and index it by 3 * i"
    );
    assert_eq!(
        rejection::<f32>(&wgsl),
        "array<vec3<f32>> leaves bytes 12 to 15 unused, where the data has f32: vec3<f32> is \
         aligned to 16 bytes; use larger elements, such as [f32; 4] for vec3<f32>, or change the \
         declaration"
    );
    assert!(!fits::<[[f32; 3]; 4]>(&wgsl));
    assert!(!fits::<[[f32; 3]; 3]>(&array(mat(3, 3), 48)));
}

#[test]
fn one_size_must_divide_the_other() {
    assert_eq!(
        rejection::<[f32; 3]>(&array(vec(4), 16)),
        "[f32; 3] is 12 bytes long in Rust, but the elements of array<vec4<f32>> are 16 bytes \
         apart; use elements of 16 bytes, or change the declaration"
    );
}

/// Two vectors with WGSL's layout.
fn vertex() -> TypeLayout {
    structure("Vertex", 32, &[("position", 0, vec(3)), ("color", 16, vec(3))])
}

#[test]
fn misplaced_field_is_named() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Vertex {
        position: [f32; 3],
        color: [f32; 3],
    }
    let message = "field `color` is at byte 12 in Rust, at byte 16 in WGSL: vec3<f32> is aligned \
                   to 16 bytes; add a padding field of 4 bytes before it";
    assert_eq!(rejection::<Vertex>(&array(vertex(), 32)), message);
    assert_eq!(rejection::<Vertex>(&vertex()), message);
    assert_eq!(rejection::<[Vertex; 4]>(&array(vertex(), 32)), message);
}

#[test]
fn misplaced_renamed_field_is_named() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Vertex([f32; 3], [f32; 3], [f32; 2]);
    assert_eq!(
        rejection::<Vertex>(&array(vertex(), 32)),
        "field `1` begins at byte 12, but WGSL leaves bytes 12 to 15 unused: vec3<f32> is aligned \
         to 16 bytes; add a padding field of 4 bytes before it"
    );
}

#[test]
fn padded_size_of_values_is_in_help() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Item {
        at: [f32; 2],
        more: [f32; 3],
    }
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Halves {
        values: [[f16; 3]; 2],
    }
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Floats {
        values: [[f32; 3]; 2],
    }
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Items {
        values: [Item; 2],
    }
    let values = |element: TypeLayout, stride| {
        structure("Values", 2 * stride, &[("values", 0, fixed(element, 2, stride))])
    };
    let half = Scalar { kind: ScalarKind::Float, width: 2 };
    assert_eq!(
        rejection::<Halves>(&values(TypeLayout::Vector { len: 3, scalar: half }, 8)),
        "field `values` has data where WGSL leaves bytes 6 to 7 unused: array<vec3<f16>, 2> is \
         aligned to 8 bytes; pad the values inside of it to 8 bytes"
    );
    let text = rejection::<Floats>(&values(vec(3), 16));
    assert!(text.ends_with("; pad the values inside of it to 16 bytes"), "{text}");
    let more = fixed(TypeLayout::Scalar(Scalar::F32), 3, 4);
    let item = structure("Item", 24, &[("at", 0, vec(2)), ("more", 8, more)]);
    let text = rejection::<Items>(&values(item, 24));
    assert!(text.ends_with("; pad the values inside of it to 24 bytes"), "{text}");
}

#[test]
fn explicit_padding_matches() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Vertex {
        position: [f32; 3],
        _pad: f32,
        color: [f32; 3],
        _more: [u8; 4],
    }
    assert!(fits::<Vertex>(&array(vertex(), 32)));
    assert!(fits::<Vertex>(&vertex()));
    assert!(fits::<[Vertex; 3]>(&array(vertex(), 32)));
}

#[test]
fn missing_trailing_padding_is_reported() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Point {
        at: [f32; 2],
        weight: f32,
    }
    let wgsl = structure(
        "Point",
        16,
        &[("at", 0, vec(2)), ("weight", 8, TypeLayout::Scalar(Scalar::F32))],
    );
    assert_eq!(
        rejection::<Point>(&array(wgsl.clone(), 16)),
        "Point is 12 bytes long in Rust, but the elements of array<Point> are 16 bytes apart; \
         add a padding field of 4 bytes at the end of the Rust struct"
    );
    assert_eq!(
        rejection::<Point>(&wgsl),
        "Point is 12 bytes long in Rust, but Point is 16 bytes long in WGSL; add a padding field \
         of 4 bytes at the end of the Rust struct"
    );
    assert_eq!(
        rejection::<Point>(&fixed(wgsl, 4, 16)),
        "Point is 12 bytes long in Rust, but the elements of array<Point, 4> are 16 bytes apart; \
         add a padding field of 4 bytes at the end of the Rust struct"
    );
}

#[test]
fn test_types_match_parsed_wgsl() {
    let source = "
        struct Vertex { position: vec3<f32>, color: vec3<f32> }
        struct Point { at: vec2<f32>, weight: f32 }
        @group(0) @binding(0) var<storage, read> vertices: array<Vertex>;
        @group(0) @binding(1) var<storage, read_write> matrices: array<mat3x3<f32>>;
        @group(0) @binding(2) var<uniform> point: Point;
        @compute @workgroup_size(1) fn main() {
            matrices[0][0] = vertices[0].color * point.weight;
        }";
    let program = scry_ir::Program::parse(source).unwrap();
    let layouts = program.interface().bindings.iter().map(|it| it.layout.clone());
    let point = [("at", 0, vec(2)), ("weight", 8, TypeLayout::Scalar(Scalar::F32))];
    let expected = [array(vertex(), 32), array(mat(3, 3), 48), structure("Point", 16, &point)];
    assert_eq!(layouts.collect::<Vec<_>>(), expected);
}

#[test]
fn field_of_wrong_type_is_named() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Particle {
        position: [f32; 3],
        id: i32,
    }
    let members = [("position", 0, vec(3)), ("mass", 12, TypeLayout::Scalar(Scalar::F32))];
    assert_eq!(
        rejection::<Particle>(&array(structure("Particle", 16, &members), 16)),
        "in Rust field `id` at byte 12 is made of i32, in WGSL `mass` at byte 12 is f32; declare \
         the same fields on both sides, in the same order"
    );
    // Without a Rust struct, errors still name the members.
    assert!(fits::<[f32; 4]>(&array(structure("Particle", 16, &members), 16)));
    assert!(fits::<f32>(&array(structure("Particle", 16, &members), 16)));
    assert_eq!(
        rejection::<u32>(&array(structure("Particle", 16, &members), 16)),
        "in Rust u32 has u32 at byte 0, in WGSL `position` at byte 0 is vec3<f32>; declare the \
         same fields on both sides, in the same order"
    );
}

/// Fields of one type differ only in their names.
#[test]
fn reordered_fields_are_rejected() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Swapped {
        b: f32,
        a: f32,
    }
    let f = || TypeLayout::Scalar(Scalar::F32);
    let wgsl = || structure("Pair", 8, &[("a", 0, f()), ("b", 4, f())]);
    let message = "field `b` is at byte 0 in Rust, at byte 4 in WGSL; put the fields in the same \
                   order on both sides, or give one another name";
    for wgsl in [wgsl(), array(wgsl(), 8), fixed(wgsl(), 3, 8)] {
        assert_eq!(rejection::<Swapped>(&wgsl), message);
        assert_eq!(rejection::<[Swapped; 2]>(&wgsl), message);
    }
    let outer = structure("Outer", 12, &[("b", 0, f()), ("pairs", 4, wgsl())]);
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Outer {
        b: f32,
        pairs: Swapped,
    }
    assert!(rejection::<Outer>(&outer).starts_with("field `b` is at byte 4 in Rust, at byte 8"));
    let list = structure("List", 8, &[("a", 0, f()), ("b", 4, f()), ("more", 8, array(f(), 4))]);
    assert!(rejection::<Swapped>(&list).starts_with("field `b` is at byte 0 in Rust, at byte 4"));
}

#[test]
fn unshared_names_are_not_compared() {
    let f = || TypeLayout::Scalar(Scalar::F32);
    let wgsl = structure("Pair", 8, &[("a", 0, f()), ("b", 4, f())]);
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Other {
        x: f32,
        b: f32,
    }
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Tuple(f32, f32);
    assert!(fits::<Other>(&wgsl) && fits::<Tuple>(&wgsl) && fits::<[f32; 2]>(&wgsl));
    // A wrapper whose field has the name of a member of the wrapped type.
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Wrapper {
        b: Other,
    }
    assert!(fits::<Wrapper>(&wgsl));
    // Names of inner structures are compared only with their own members.
    let inner = structure("Inner", 4, &[("x", 0, f())]);
    let outer = structure("Outer", 8, &[("inner", 0, inner), ("x", 4, f())]);
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Flat {
        inner_x: f32,
        x: f32,
    }
    assert!(fits::<Flat>(&outer));
    // A field whose name starts with an underscore may have any offset.
    let padded = structure("Padded", 8, &[("_pad", 0, f()), ("a", 4, f())]);
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Padded {
        first: f32,
        _pad: f32,
    }
    assert!(fits::<Padded>(&padded));
}

#[test]
fn inner_structures_are_checked_too() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Inner {
        a: u32,
        b: f32,
    }
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Outer {
        head: u32,
        inner: [Inner; 2],
    }
    let inner = |b: Scalar| {
        let members = [("a", 0, TypeLayout::Scalar(Scalar::U32)), ("b", 4, TypeLayout::Scalar(b))];
        structure("Inner", 8, &members)
    };
    let outer = |b| {
        let members =
            [("head", 0, TypeLayout::Scalar(Scalar::U32)), ("inner", 4, fixed(inner(b), 2, 8))];
        structure("Outer", 20, &members)
    };
    assert!(fits::<Outer>(&array(outer(Scalar::F32), 20)));
    assert_eq!(
        rejection::<Outer>(&array(outer(Scalar::U32), 20)),
        "in Rust field `b` at byte 8 is made of f32, in WGSL `b` at byte 8 is u32; declare the \
         same fields on both sides, in the same order"
    );
}

#[test]
fn header_of_runtime_array_is_checked() {
    let list = |kind| {
        let members =
            [("len", 0, TypeLayout::Scalar(Scalar::U32)), ("items", 4, array(scalar(kind, 4), 4))];
        structure("List", 4, &members)
    };
    assert!(fits::<u32>(&list(ScalarKind::Uint)));
    assert!(fits::<[u32; 4]>(&list(ScalarKind::Uint)));
    assert!(!fits::<u32>(&list(ScalarKind::Float)));
    assert!(!fits::<f32>(&list(ScalarKind::Float)));
}

#[test]
fn opaque_elements_are_checked_for_size() {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Opaque<const N: usize>([u32; N]);
    // SAFETY: an array of numbers.
    unsafe impl<const N: usize> Element for Opaque<N> {}
    assert!(fits::<Opaque<1>>(&f32s()) && fits::<Opaque<4>>(&array(vertex(), 32)));
    assert!(fits::<Opaque<9>>(&vertex()));
    assert_eq!(
        rejection::<Opaque<3>>(&array(vec(4), 16)),
        "Opaque<3> is 12 bytes long in Rust, but the elements of array<vec4<f32>> are 16 bytes \
         apart; use elements of 16 bytes, or change the declaration"
    );
}

/// The documentation of `Element` makes these statements about glam's types.
#[cfg(feature = "glam")]
#[test]
fn glam_types_match_as_documented() {
    use glam::{Mat2, Mat3, Mat4, Vec2, Vec3, Vec4};
    assert!(fits::<Vec2>(&array(vec(2), 8)) && fits::<Vec4>(&array(vec(4), 16)));
    assert!(fits::<Vec3>(&f32s()) && fits::<Mat3>(&f32s()));
    assert!(fits::<Mat2>(&array(mat(2, 2), 16)) && fits::<Mat4>(&array(mat(4, 4), 64)));
    assert_eq!(
        rejection::<Vec3>(&array(vec(3), 16)),
        "[f32; 3] is 12 bytes long in Rust, but the elements of array<vec3<f32>> are 16 bytes \
         apart (vec3<f32> is aligned to 16 bytes); use [f32; 4] and leave the last one unused, or \
         declare array<f32> and index it by 3 * i"
    );
    let bytes = "[[f32; 3]; 3] is 36 bytes long in Rust, but";
    assert!(rejection::<Mat3>(&array(mat(3, 3), 48)).starts_with(bytes));
}

/// Errors name a wrapper with the type in it, without paths.
#[cfg(feature = "bytemuck")]
#[test]
fn pod_elements_are_checked_for_size() {
    use crate::PodElement;
    assert!(fits::<PodElement<[u64; 2]>>(&array(vec(3), 16)));
    assert_eq!(
        rejection::<PodElement<[u8; 12]>>(&array(vec(3), 16)),
        "PodElement<[u8; 12]> is 12 bytes long in Rust, but the elements of array<vec3<f32>> are \
         16 bytes apart (vec3<f32> is aligned to 16 bytes); use elements of 16 bytes, or change \
         the declaration"
    );
    let opaque = crate::ElementLayout::Opaque;
    let wrapped = describe::rust_name(&opaque, "a::b::Outer<c::Inner<u8>, [d::E; 2]>");
    assert_eq!(wrapped, "Outer<Inner<u8>, [E; 2]>");
}
