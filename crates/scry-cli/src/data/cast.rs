//! Conversion of arrays to another element type.

use std::marker::PhantomData;

use super::array::{Array, Bytes, Shape};
use super::dtype::{Dtype, Value, Visitor};
use crate::report::Failure;

/// Converts an array like NumPy's `astype`, but fails if a value is out of the range of the type.
///
/// # Errors
/// [`Failure::Runtime`] if a value is out of range, or the allocation of the copy fails.
pub fn cast(array: &Array, to: Dtype) -> Result<Array, Failure> {
    let bytes = Bytes::zeroed(array.shape.bytes(to.size() as u64)?)?;
    let bytes = array.dtype.visit(CastFrom { array, to, bytes })?;
    Ok(Array { dtype: to, shape: array.shape.clone(), bytes })
}

/// Selects the source type of a cast.
struct CastFrom<'a> {
    array: &'a Array,
    to: Dtype,
    bytes: Bytes,
}

impl Visitor for CastFrom<'_> {
    type Output = Result<Bytes, Failure>;

    fn visit<T: Value>(self) -> Self::Output {
        let Self { array, to, bytes } = self;
        to.visit(CastTo { array, bytes, from: PhantomData::<T> })
    }
}

/// Selects the destination type of a cast from `S`, and converts the values.
struct CastTo<'a, S> {
    array: &'a Array,
    bytes: Bytes,
    from: PhantomData<S>,
}

impl<S: Value> Visitor for CastTo<'_, S> {
    type Output = Result<Bytes, Failure>;

    fn visit<T: Value>(mut self) -> Self::Output {
        let (mut out_of_range, mut first) = (0u64, None);
        let values = self.array.bytes.values::<S>();
        for (at, (out, value)) in self.bytes.values_mut::<T>().iter_mut().zip(values).enumerate() {
            match T::from_number(value.number()) {
                Some(converted) => *out = converted,
                None => {
                    out_of_range += 1;
                    first.get_or_insert((at, *value));
                }
            }
        }
        let Some((at, value)) = first else { return Ok(self.bytes) };
        let Array { dtype, shape, .. } = self.array;
        Err(Failure::Runtime(format!(
            "{out_of_range} of {} {dtype} values are out of range; the first is {} at {:?}",
            values.len(),
            value.text(),
            index_at(at as u64, shape)
        )))
    }
}

/// Returns the index of the value at a position in row-major order.
pub fn index_at(mut at: u64, shape: &Shape) -> Vec<u64> {
    let mut index = Vec::new();
    for dim in shape.0.iter().rev() {
        index.push(at % dim.max(&1));
        at /= dim.max(&1);
    }
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(values: &[f64], shape: &[u64]) -> Array {
        let mut bytes = Bytes::zeroed(8 * values.len()).unwrap();
        bytes.values_mut::<f64>().copy_from_slice(values);
        Array { dtype: Dtype::F64, shape: Shape(shape.to_vec()), bytes }
    }

    #[test]
    fn values_are_rounded_and_truncated() {
        let from = array(&[0.1, -2.7, 3.0], &[3]);
        assert_eq!(cast(&from, Dtype::F32).unwrap().bytes.values::<f32>(), [0.1, -2.7, 3.0]);
        assert_eq!(cast(&from, Dtype::I32).unwrap().bytes.values::<i32>(), [0, -2, 3]);
        assert_eq!(cast(&from, Dtype::Bool).unwrap().bytes.as_slice(), [1, 1, 1]);
    }

    #[test]
    fn out_of_range_values_are_located() {
        let from = array(&[1.0, 2.0, 3.0, 256.0, -1.0, f64::NAN], &[2, 3]);
        let Err(Failure::Runtime(text)) = cast(&from, Dtype::U8) else { panic!("they do not fit") };
        assert_eq!(text, "3 of 6 f64 values are out of range; the first is 256.0 at [1, 0]");
    }

    #[test]
    fn empty_arrays_stay_empty() {
        let empty = array(&[], &[0, 4]);
        assert_eq!(cast(&empty, Dtype::F16).unwrap().shape, Shape(vec![0, 4]));
    }
}
