//! Comparison of buffer contents, scalar by scalar.

use half::f16;
use scry_ir::{Scalar, ScalarKind, TypeLayout};

use super::memory::word;

/// Returns the first scalar that differs, and its offset; padding is ignored. Zeros are equal, so
/// are all NaNs, and floats that differ by this many units in the last place.
pub fn difference(layout: &TypeLayout, expected: &[u8], found: &[u8], ulps: u64) -> Option<String> {
    let both = |at: usize, scalar: Scalar| {
        let range = at..at + usize::from(scalar.width);
        let (expected, found) = (expected.get(range.clone())?, found.get(range)?);
        let differs = !same(scalar, expected, found, ulps);
        differs.then(|| format!(": the CPU has {expected:02x?}, CUDA has {found:02x?}"))
    };
    if expected == found {
        return None;
    }
    visit(layout, 0, expected.len(), &both)
}

/// A function of each scalar, with its byte offset.
pub type Both<'a> = dyn Fn(usize, Scalar) -> Option<String> + 'a;

/// Visits the scalars of a buffer, up to the first for which there is a message.
pub fn visit(layout: &TypeLayout, at: usize, len: usize, both: &Both<'_>) -> Option<String> {
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => both(at, *scalar),
        TypeLayout::Vector { len, scalar } => vector(*scalar, *len, at, both),
        TypeLayout::Matrix { columns, rows, scalar, stride } => (0..usize::from(*columns))
            .find_map(|column| {
                let found = vector(*scalar, *rows, at + column * *stride as usize, both)?;
                Some(format!("[{column}]{found}"))
            }),
        TypeLayout::Array { element, len: count, stride } => {
            let stride = *stride as usize;
            let room = len.saturating_sub(at) / stride;
            (0..count.map_or(room, |count| count as usize)).find_map(|nth| {
                Some(format!("[{nth}]{}", visit(element, at + nth * stride, len, both)?))
            })
        }
        TypeLayout::Struct { members, .. } => members.iter().find_map(|member| {
            let found = visit(&member.layout, at + member.offset as usize, len, both)?;
            Some(format!(".{}{found}", member.name))
        }),
    }
}

fn vector(scalar: Scalar, len: u8, at: usize, both: &Both<'_>) -> Option<String> {
    let width = usize::from(scalar.width);
    (0..usize::from(len)).find_map(|n| Some(format!("[{n}]{}", both(at + n * width, scalar)?)))
}

fn same(scalar: Scalar, one: &[u8], other: &[u8], ulps: u64) -> bool {
    if one == other {
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
    let (a, b) = (number(one), number(other));
    // The bits of floats of one sign are in the order of their numbers.
    let near = a.signum() == b.signum() && word(one).abs_diff(word(other)) <= ulps;
    a == b || a.is_nan() && b.is_nan() || near
}
