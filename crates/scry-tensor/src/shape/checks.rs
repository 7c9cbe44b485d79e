//! Checks of the shapes that calls ask for.

use super::{MAX_RANK, Shape};
use crate::dtype::DType;
use crate::error::{Call, Error, ErrorKind, Result};

/// Checks the rank and the number of elements of a new tensor, and returns the latter.
pub(crate) fn check_count(call: Call, shape: &Shape, dtype: DType) -> Result<u32> {
    if shape.contains(&0) {
        check_view(call, shape)?;
    } else if shape.rank() > MAX_RANK {
        return Err(rank_error(call, shape));
    }
    let count = shape.count().and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| {
        let count = shape.iter().fold(1u128, |count, size| count.saturating_mul(*size as u128));
        call.error(
            ErrorKind::TooLarge,
            format!("{shape} has {count} elements of {dtype}, more than {}", u32::MAX),
            "compute parts of it, one after the other: indices have 32 bits",
        )
    })
}

/// Checks the shape of a view, whose elements may share memory: positions have 64 bits.
pub(crate) fn check_view(call: Call, shape: &Shape) -> Result<()> {
    if shape.rank() > MAX_RANK {
        return Err(rank_error(call, shape));
    }
    // Strides of an empty view are products of its other sizes.
    let product = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size.max(&1)));
    if product.is_some_and(|product| i64::try_from(product).is_ok()) {
        return Ok(());
    }
    Err(call.error(
        ErrorKind::TooLarge,
        format!("the product of the sizes {shape} is more than {}", i64::MAX),
        "use smaller sizes",
    ))
}

/// Returns the error for a shape with too many axes.
pub(crate) fn rank_error(call: Call, shape: &Shape) -> Error {
    call.shape_error(
        &[shape],
        format!("{} axes exceed the limit of {MAX_RANK}", shape.rank()),
        "merge axes with `reshape`",
    )
}
