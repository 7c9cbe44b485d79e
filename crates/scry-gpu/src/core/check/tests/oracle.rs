//! Tests of the comparison of types, against a slow oracle that lists every scalar of both.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::api::element::{ElementLayout, Field};
use crate::core::check::types::{Host, buffer as compare};

/// Collects the offset of each scalar of a WGSL type, up to byte `limit`.
fn wgsl_scalars(layout: &TypeLayout, at: u64, limit: u64, out: &mut BTreeMap<u64, Scalar>) {
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => {
            out.insert(at, *scalar);
        }
        TypeLayout::Vector { len, scalar } => {
            for i in 0..u64::from(*len) {
                out.insert(at + i * u64::from(scalar.width), *scalar);
            }
        }
        TypeLayout::Matrix { columns, rows, scalar, stride } => {
            let column = TypeLayout::Vector { len: *rows, scalar: *scalar };
            for i in 0..u64::from(*columns) {
                wgsl_scalars(&column, at + i * u64::from(*stride), limit, out);
            }
        }
        TypeLayout::Array { element, len, stride } => {
            let stride = u64::from(*stride);
            let count = len.map_or(limit.saturating_sub(at).div_ceil(stride), u64::from);
            for i in 0..count {
                wgsl_scalars(element, at + i * stride, limit, out);
            }
        }
        TypeLayout::Struct { members, .. } => {
            for member in members {
                wgsl_scalars(&member.layout, at + u64::from(member.offset), limit, out);
            }
        }
    }
}

/// Collects for each byte of a Rust type its scalar and the index of the byte in it.
fn rust_bytes(layout: &ElementLayout, out: &mut Vec<(Scalar, u8)>) {
    match layout {
        ElementLayout::Scalar(scalar) => out.extend((0..scalar.width).map(|i| (*scalar, i))),
        ElementLayout::Array { element, len } => (0..*len).for_each(|_| rust_bytes(element, out)),
        ElementLayout::Struct { fields, .. } => {
            fields.iter().for_each(|field| rust_bytes(field.layout, out));
        }
        ElementLayout::Opaque => unreachable!("not generated"),
    }
}

/// Returns whether each scalar of the WGSL type has the same scalar at its offset in the buffer.
fn agrees(rust: &ElementLayout, wgsl: &TypeLayout) -> bool {
    let mut bytes = Vec::new();
    rust_bytes(rust, &mut bytes);
    let at = |byte: u64| bytes[usize::try_from(byte).unwrap() % bytes.len()];
    let stride = wgsl.runtime_array().map_or(1, |(_, stride)| stride);
    let limit = wgsl.fixed_size() + 2 * stride * bytes.len() as u64;
    let mut scalars = BTreeMap::new();
    wgsl_scalars(wgsl, 0, limit, &mut scalars);
    scalars.iter().all(|(start, scalar)| {
        let same = (0..scalar.width).all(|i| at(start + u64::from(i)) == (*scalar, i));
        let packed = || (0..4).all(|i| at(start + i).0.width < 4);
        same || (*scalar == Scalar::U32 && packed())
    })
}

fn alignment(layout: &TypeLayout) -> u32 {
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => scalar.width.into(),
        TypeLayout::Vector { len, scalar } | TypeLayout::Matrix { rows: len, scalar, .. } => {
            u32::from(scalar.width) * if *len == 2 { 2 } else { 4 }
        }
        TypeLayout::Array { element, .. } => alignment(element),
        TypeLayout::Struct { members, .. } => {
            members.iter().map(|member| alignment(&member.layout)).max().unwrap()
        }
    }
}

fn stride(element: &TypeLayout) -> u32 {
    u32::try_from(element.fixed_size()).unwrap().next_multiple_of(alignment(element))
}

fn lay_out(members: Vec<TypeLayout>) -> TypeLayout {
    let (mut end, mut align, mut placed) = (0, 1, Vec::new());
    for (index, layout) in members.into_iter().enumerate() {
        let offset = u32::next_multiple_of(end, alignment(&layout));
        end = offset + u32::try_from(layout.fixed_size()).unwrap();
        align = align.max(alignment(&layout));
        placed.push(Member { name: format!("m{index}"), offset, layout });
    }
    TypeLayout::Struct { name: "S".into(), members: placed, size: end.next_multiple_of(align) }
}

fn wgsl_scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![4 => Just(Scalar::F32), 2 => Just(Scalar::U32), 1 => Just(Scalar::I32)]
}

/// A type of fixed size.
fn wgsl_type() -> impl Strategy<Value = TypeLayout> {
    let leaf = prop_oneof![
        wgsl_scalar().prop_map(TypeLayout::Scalar),
        (2u8..5, wgsl_scalar()).prop_map(|(len, scalar)| TypeLayout::Vector { len, scalar }),
        (2u8..5, 2u8..5).prop_map(|(columns, rows)| mat(columns, rows)),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            (inner.clone(), 1u32..4).prop_map(|(element, len)| {
                let stride = stride(&element);
                fixed(element, len, stride)
            }),
            prop::collection::vec(inner, 1..4).prop_map(lay_out),
        ]
    })
}

fn runtime_array(element: TypeLayout) -> TypeLayout {
    let stride = stride(&element);
    array(element, stride)
}

fn wgsl_binding() -> impl Strategy<Value = TypeLayout> {
    prop_oneof![
        wgsl_type(),
        wgsl_type().prop_map(runtime_array),
        (prop::collection::vec(wgsl_type(), 1..3), wgsl_type()).prop_map(|(mut members, last)| {
            members.push(runtime_array(last));
            lay_out(members)
        }),
    ]
}

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn rust_struct(parts: Vec<ElementLayout>) -> ElementLayout {
    let mut size = 0;
    let mut fields = Vec::new();
    for (index, layout) in parts.into_iter().enumerate() {
        // Different from the names of WGSL members: only scalars are compared here.
        let name = ["f0", "f1", "f2", "f3"].get(index).unwrap_or(&"more");
        let bytes = layout.size().unwrap();
        fields.push(Field { name, offset: size, size: bytes, layout: leaked(layout) });
        size += bytes;
    }
    ElementLayout::Struct { name: "R", size, fields: leaked(fields) }
}

fn rust_array(element: ElementLayout, len: usize) -> ElementLayout {
    ElementLayout::Array { element: leaked(element), len }
}

fn rust_type() -> impl Strategy<Value = ElementLayout> {
    let leaf = prop_oneof![
        6 => wgsl_scalar().prop_map(ElementLayout::Scalar),
        1 => Just(<u16 as Element>::LAYOUT),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            2 => (inner.clone(), 1usize..5).prop_map(|(element, len)| rust_array(element, len)),
            1 => prop::collection::vec(inner, 1..4).prop_map(rust_struct),
        ]
    })
}

/// Returns the Rust type with the layout of the WGSL type and explicit padding, up to `size` bytes.
fn mirror(wgsl: &TypeLayout, size: usize) -> ElementLayout {
    let padded = |parts: Vec<(usize, ElementLayout)>| {
        let (mut end, mut out) = (0, Vec::new());
        for (offset, part) in parts {
            if offset > end {
                out.push(rust_array(<u8 as Element>::LAYOUT, offset - end));
            }
            end = offset + part.size().unwrap();
            out.push(part);
        }
        if size > end {
            out.push(rust_array(<u8 as Element>::LAYOUT, size - end));
        }
        if out.len() == 1 { out.remove(0) } else { rust_struct(out) }
    };
    match wgsl {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => {
            padded(vec![(0, ElementLayout::Scalar(*scalar))])
        }
        TypeLayout::Vector { len, scalar } => {
            padded(vec![(0, rust_array(ElementLayout::Scalar(*scalar), (*len).into()))])
        }
        TypeLayout::Matrix { columns, rows, scalar, stride } => {
            let column = TypeLayout::Vector { len: *rows, scalar: *scalar };
            rust_array(mirror(&column, *stride as usize), (*columns).into())
        }
        TypeLayout::Array { element, len, stride } => {
            let element = mirror(element, *stride as usize);
            padded(vec![(0, rust_array(element, len.unwrap_or(1) as usize))])
        }
        TypeLayout::Struct { members, .. } => {
            let part = |member: &Member| {
                let size = usize::try_from(member.layout.fixed_size()).unwrap();
                (member.offset as usize, mirror(&member.layout, size))
            };
            padded(members.iter().map(part).collect())
        }
    }
}

fn accepted(rust: &ElementLayout, wgsl: &TypeLayout) -> bool {
    let size = rust.size().unwrap() as u64;
    compare(&Host { layout: rust, size, type_name: "" }, wgsl).is_ok()
}

/// Replaces the `n`-th scalar of a type, padding excluded, by one that matches no generated WGSL
/// type.
fn replace_scalar(layout: &ElementLayout, n: &mut usize) -> ElementLayout {
    match *layout {
        ElementLayout::Scalar(scalar) if scalar.width == 1 => ElementLayout::Scalar(scalar),
        ElementLayout::Scalar(scalar) => {
            let hit = *n == 0;
            *n = n.wrapping_sub(1);
            let kind = if hit { scry_ir::ScalarKind::Bfloat } else { scalar.kind };
            ElementLayout::Scalar(Scalar { kind, ..scalar })
        }
        ElementLayout::Array { element, len } => {
            rust_struct((0..len).map(|_| replace_scalar(element, n)).collect())
        }
        ElementLayout::Struct { fields, .. } => {
            rust_struct(fields.iter().map(|field| replace_scalar(field.layout, n)).collect())
        }
        ElementLayout::Opaque => ElementLayout::Opaque,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn accepted_types_agree_by_scalar(rust in rust_type(), wgsl in wgsl_binding()) {
        if accepted(&rust, &wgsl) {
            prop_assert!(agrees(&rust, &wgsl), "{rust:?} was accepted for {wgsl:?}");
        }
    }

    #[test]
    fn agreeing_unpadded_types_are_accepted(
        rust in rust_type(),
        element in wgsl_type(),
    ) {
        let wgsl = runtime_array(element);
        let size = rust.size().unwrap() as u64;
        let (_, stride) = wgsl.runtime_array().unwrap();
        let mut scalars = BTreeMap::new();
        wgsl_scalars(&wgsl, 0, stride, &mut scalars);
        let dense = scalars.values().map(|it| u64::from(it.width)).sum::<u64>() == stride;
        if dense && size.is_multiple_of(stride) {
            prop_assert_eq!(accepted(&rust, &wgsl), agrees(&rust, &wgsl), "{:?} {:?}", rust, wgsl);
        }
    }

    #[test]
    fn explicit_padding_is_accepted(element in wgsl_type(), times in 1usize..4) {
        let size = stride(&element) as usize;
        let rust = mirror(&element, size);
        prop_assert!(accepted(&rust, &runtime_array(element.clone())), "{rust:?} {element:?}");
        prop_assert!(accepted(&rust, &element), "{rust:?} {element:?}");
        let many = rust_array(rust, times);
        prop_assert!(accepted(&many, &runtime_array(element.clone())), "{many:?} {element:?}");
    }

    #[test]
    fn one_wrong_scalar_is_found(element in wgsl_type(), choice in any::<prop::sample::Index>()) {
        let mut scalars = BTreeMap::new();
        wgsl_scalars(&element, 0, 0, &mut scalars);
        let rust = mirror(&element, stride(&element) as usize);
        // The scalars of the WGSL type are the only ones of four bytes: padding consists of bytes.
        let changed = replace_scalar(&rust, &mut choice.index(scalars.len()));
        let array = runtime_array(element.clone());
        prop_assert!(!accepted(&changed, &array), "{changed:?} {element:?}");
        prop_assert!(!accepted(&changed, &element), "{changed:?} {element:?}");
    }
}
