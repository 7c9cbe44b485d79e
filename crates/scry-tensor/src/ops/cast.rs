//! Conversions of element types.

use crate::dtype::{DType, ELEMENTS, FLOATS};
use crate::error::{Call, ErrorKind, Result};
use crate::expr::Expression;
use crate::op::{Library, Op};
use crate::tensor::{Tensor, apply};

/// Conversions.
impl Tensor {
    /// Converts the elements to another type; returns the tensor itself if they have it.
    ///
    /// | from, to | result |
    /// | --- | --- |
    /// | to floats | rounded to the nearest, ties to even; integers to `f32` first |
    /// | floats to integers | rounded towards 0; NaN is 0; out of range, the last that `f32` has |
    /// | `i32` to `u32` and back | the same bits |
    /// | numbers to `bool` | whether the number is not 0 |
    /// | `bool` to numbers | 0 or 1 |
    /// | quantised weights to floats | dequantised |
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([2.75f32, -1.5, f32::NAN, 1e10], &gpu)?;
    /// assert_eq!(x.cast(DType::I32)?.to_vec::<i32>()?, [2, -1, 0, 2147483520]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) to quantised types, and from them to other
    /// types than floats; [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge);
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[doc(alias("astype", "to_dtype", "half", "float"))]
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        let call = Call::new("Tensor::cast");
        self.in_scope(|| {
            if dtype == self.dtype() {
                return Ok(self.clone());
            }
            if self.dtype().is_quantized() {
                return self.dequantized(call, dtype);
            }
            call.check_new_dtype(dtype, ELEMENTS)?;
            self.cast_for(call, dtype)
        })
    }

    /// Converts elements that are not quantised.
    pub(crate) fn cast_for(&self, call: Call, dtype: DType) -> Result<Self> {
        let mut e = Expression::default();
        let x = e.operand(self.dtype());
        let map = e.finish(x, dtype);
        apply(call, Op::map(map, Vec::new()), &[self])
    }

    /// Converts quantised weights to floats.
    fn dequantized(&self, call: Call, dtype: DType) -> Result<Self> {
        if !FLOATS.contains(&dtype) {
            let problem = format!("cannot convert {} to {dtype}", self.dtype());
            let help = "dequantise to a float type first: `.cast(DType::F32)`";
            return Err(call.error(ErrorKind::DType, problem, help));
        }
        if self.library_lacks(dtype) {
            return self.dequantized(call, DType::F32)?.cast_for(call, dtype);
        }
        apply(call, Op::Library(Library::Dequantise(dtype)), &[self])
    }
}
