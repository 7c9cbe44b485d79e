//! Products of matrices, computed by the kernel library.

use crate::dtype::FLOATS;
use crate::error::{Call, ErrorKind, Result};
use crate::op::{Library, Op, View};
use crate::tensor::{Tensor, apply};

/// Products of matrices.
impl Tensor {
    /// Returns the product of two matrices, or of stacks of them whose other axes are broadcast, as
    /// NumPy's `matmul`: `[…, m, k] × […, k, n]` is `[…, m, n]`. A vector on the left is a row, one
    /// on the right a column, and its axis is absent from the result. Transposed matrices (`t`) are
    /// read in place. 16-bit floats accumulate in `f32`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu)?;
    /// assert_eq!(x.matmul(x.t()?)?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// let v = Tensor::new([1.0f32, 1.0], &gpu)?;
    /// assert_eq!(x.matmul(&v)?.to_vec::<f32>()?, [3.0, 7.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the shapes do not multiply, or for a tensor of rank 0;
    /// [`ErrorKind::DType`] if the types differ or are not floats; [`ErrorKind::Device`];
    /// [`ErrorKind::Gpu`] if the device supports no variant of the kernel library.
    #[track_caller]
    pub fn matmul(&self, other: impl AsRef<Self>) -> Result<Self> {
        let call = Call::new("Tensor::matmul");
        let other = other.as_ref();
        Self::scoped(&[self, other], self.check_product(call, other))?;
        let row = self.rank() == 1;
        let column = other.rank() == 1;
        let a = if row { self.view(call, View::Unsqueeze(0))? } else { self.clone() };
        let b = if column { other.view(call, View::Unsqueeze(1))? } else { other.clone() };
        let mut product = apply(call, Op::Library(Library::Matmul), &[&a, &b])?;
        if column {
            product = product.view(call, View::Squeeze(product.rank() - 1))?;
        }
        if row {
            let axis = product.rank() - if column { 1 } else { 2 };
            product = product.view(call, View::Squeeze(axis))?;
        }
        Ok(product)
    }

    fn check_product(&self, call: Call, other: &Self) -> Result<()> {
        if let Some(scalar) = [self, other].iter().find(|it| it.rank() == 0) {
            let problem = format!("{} is not the shape of a matrix or a vector", scalar.shape());
            let help = "multiply by a scalar with `mul`";
            return Err(call.shape_error(&[self.shape(), other.shape()], problem, help));
        }
        call.check_dtype(self.dtype(), FLOATS)?;
        if self.dtype() == other.dtype() {
            return Ok(());
        }
        let (a, b) = (self.dtype(), other.dtype());
        let problem = format!("the element types differ: {a} and {b}");
        let help = format!("convert one of the tensors: `.cast(DType::{a:?})`");
        Err(call.error(ErrorKind::DType, problem, help))
    }
}

impl AsRef<Self> for Tensor {
    fn as_ref(&self) -> &Self {
        self
    }
}
