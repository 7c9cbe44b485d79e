//! The tensor: a handle of elements on a device.

mod create;
mod display;
mod index;
mod map;
#[cfg(feature = "ndarray")]
mod ndarray;
mod read;
mod views;

use std::fmt;
use std::sync::Arc;

use scry_gpu::{Device, UntypedBuffer};

use crate::dtype::DType;
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape};

pub use create::Nested;
pub(crate) use create::{check_count, filled};
pub use index::{Ellipsis, Index, IntoIndices, NewAxis, Step, StepRange, step};
pub(crate) use map::{Computation, rank_error};

/// Elements of one type on a device, with a shape. The rank and the element type are run-time
/// values.
///
/// A tensor is immutable, cheap to clone, and usable from any thread. Operations are queued and
/// return at once; [`to_vec`](Self::to_vec), [`item`](Self::item), printing, and
/// [`to`](Self::to) another device wait for the results that they read. Views, such as
/// [`permute`](Self::permute), share the elements of the tensor that they are made of.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    runtime: Arc<Runtime>,
    /// The elements, padded to words of 4 bytes, or the blocks of quantised weights.
    buffer: UntypedBuffer,
    layout: Layout,
    dtype: DType,
}

impl Tensor {
    pub(crate) fn from_parts(
        runtime: Arc<Runtime>,
        buffer: UntypedBuffer,
        layout: Layout,
        dtype: DType,
    ) -> Self {
        Self(Arc::new(Inner { runtime, buffer, layout, dtype }))
    }

    /// Returns a tensor of the same elements with another layout.
    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        let Inner { runtime, buffer, dtype, .. } = &*self.0;
        Self::from_parts(runtime.clone(), buffer.clone(), layout, *dtype)
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.0.runtime
    }

    pub(crate) fn buffer(&self) -> &UntypedBuffer {
        &self.0.buffer
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Returns the sizes along the axes.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &gpu)?;
    /// assert_eq!((x.shape()[0], x.shape().len()), (2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.0.layout.shape
    }

    /// Returns the number of axes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Returns the number of elements, of which those of views may share memory.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::zeros([4, 5], DType::Bool, &gpu)?.numel(), 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn numel(&self) -> usize {
        self.shape().count().unwrap_or(usize::MAX)
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.0.runtime.device()
    }

    /// Returns whether the elements are stored in row-major order, without gaps.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(6, DType::I32, &gpu)?.reshape([2, 3])?;
    /// assert!(x.is_contiguous() && !x.t()?.is_contiguous());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("shape", &format_args!("{}", self.shape()))
            .field("dtype", &self.dtype().name())
            .field("device", &self.device().name())
            .finish_non_exhaustive()
    }
}
