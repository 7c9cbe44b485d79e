//! Comparison of buffer contents, scalar by scalar.

use half::f16;
use scry_ir::{Scalar, ScalarKind, TypeLayout};

use super::memory::read_le;

/// Describes the first scalar that differs, if any; padding is ignored. Zeros of both signs are
/// equal, and so are all NaNs, and floats that differ by at most this many units in the last place.
pub fn difference(layout: &TypeLayout, expected: &[u8], found: &[u8], ulps: u64) -> Option<String> {
    let visit_scalar = |at: usize, scalar: Scalar| {
        let range = at..at + usize::from(scalar.width);
        let (expected, found) = (expected.get(range.clone())?, found.get(range)?);
        let differs = !is_same(scalar, expected, found, ulps);
        differs.then(|| format!(": the CPU has {expected:02x?}, CUDA has {found:02x?}"))
    };
    if expected == found {
        return None;
    }
    visit(layout, 0, expected.len(), &visit_scalar)
}

/// A function that is called with the byte offset and type of each scalar; returns a message to
/// stop.
pub type ScalarVisitor<'a> = dyn Fn(usize, Scalar) -> Option<String> + 'a;

/// Visits the scalars of a buffer of `len` bytes, up to the first for which there is a message.
/// Returns that message, preceded by the path to the scalar.
pub fn visit(
    layout: &TypeLayout,
    at: usize,
    len: usize,
    visit_scalar: &ScalarVisitor<'_>,
) -> Option<String> {
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => visit_scalar(at, *scalar),
        TypeLayout::Vector { len, scalar } => vector(*scalar, *len, at, visit_scalar),
        TypeLayout::Matrix { columns, rows, scalar, stride } => (0..usize::from(*columns))
            .find_map(|column| {
                let found = vector(*scalar, *rows, at + column * *stride as usize, visit_scalar)?;
                Some(format!("[{column}]{found}"))
            }),
        TypeLayout::Array { element, len: count, stride } => {
            let stride = *stride as usize;
            let room = len.saturating_sub(at) / stride;
            (0..count.map_or(room, |count| count as usize)).find_map(|nth| {
                Some(format!("[{nth}]{}", visit(element, at + nth * stride, len, visit_scalar)?))
            })
        }
        TypeLayout::Struct { members, .. } => members.iter().find_map(|member| {
            let found = visit(&member.layout, at + member.offset as usize, len, visit_scalar)?;
            Some(format!(".{}{found}", member.name))
        }),
    }
}

fn vector(scalar: Scalar, len: u8, at: usize, visit_scalar: &ScalarVisitor<'_>) -> Option<String> {
    let width = usize::from(scalar.width);
    (0..usize::from(len))
        .find_map(|n| Some(format!("[{n}]{}", visit_scalar(at + n * width, scalar)?)))
}

fn is_same(scalar: Scalar, expected: &[u8], found: &[u8], ulps: u64) -> bool {
    if expected == found {
        return true;
    }
    if scalar.kind != ScalarKind::Float {
        return false;
    }
    let number = |bytes: &[u8]| match *bytes {
        [a, b] => f16::from_le_bytes([a, b]).to_f64(),
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
        _ => f64::from_le_bytes(bytes.try_into().expect("floats have 2, 4 or 8 bytes")),
    };
    let (a, b) = (number(expected), number(found));
    // The bits of floats of one sign are in the order of their numbers.
    let is_near = a.signum() == b.signum() && read_le(expected).abs_diff(read_le(found)) <= ulps;
    a == b || a.is_nan() && b.is_nan() || is_near
}
