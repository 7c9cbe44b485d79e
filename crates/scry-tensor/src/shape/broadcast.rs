//! NumPy's rule for operands of different shapes.

use super::Shape;
use crate::error::{Call, Result};

/// Returns the shape that operands have together: aligned at the last axis, an axis of size 1 is
/// repeated to the size of the others.
pub(crate) fn broadcast(call: Call, shapes: &[&[usize]]) -> Result<Shape> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut sizes = vec![1; rank];
    for shape in shapes {
        let first = rank - shape.len();
        for (axis, size) in shape.iter().enumerate() {
            let common = &mut sizes[first + axis];
            if *common == 1 {
                *common = *size;
            } else if *size != 1 && size != common {
                return Err(mismatch(call, shapes, rank - first - axis));
            }
        }
    }
    Ok(sizes.into())
}

/// Returns the error for sizes that differ at an axis, counted from the last one, which is 1.
fn mismatch(call: Call, shapes: &[&[usize]], from_end: usize) -> crate::Error {
    let sizes = |shape: &&&[usize]| {
        let axis = shape.len().checked_sub(from_end)?;
        Some(format!("{} at axis {axis} of {shape:?}", shape[axis]))
    };
    let sizes: Vec<String> = shapes.iter().filter_map(|shape| sizes(&shape)).collect();
    call.shape_error(
        shapes,
        format!("the shapes do not broadcast: {}", sizes.join(", ")),
        "sizes are aligned at the last axis, and must be equal or 1: insert axes of size 1 with \
         `unsqueeze`, or transpose",
    )
}
