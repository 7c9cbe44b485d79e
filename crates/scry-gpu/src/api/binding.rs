//! Bindings of a kernel: whole buffers and slices of them.

use std::sync::Arc;

use crate::api::dtype::{DType, ElementType};
use crate::core::context::Context;
use crate::core::memory::Memory;

/// A buffer, or a slice of one, as an argument of a kernel.
///
/// Arguments are passed in the order of the kernel's bindings: by group, then by binding number.
/// Bindings can be held across an await by tasks that move between threads.
pub trait Binding: Sealed + Send + Sync {
    /// Returns the number of elements.
    ///
    /// ```
    /// use scry_gpu::{Binding, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<f32>(5)?;
    /// assert_eq!(Binding::len(&x.slice(1..)?), 4);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    fn len(&self) -> usize {
        let view = self.view();
        (view.size / view.element.size) as usize
    }

    /// Returns whether there are no elements.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.view().size == 0
    }

    /// Returns the type of the elements; `None` for raw bytes, and for elements that are not
    /// scalars.
    ///
    /// ```
    /// use scry_gpu::{Binding, DType, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Binding::dtype(&gpu.alloc::<f32>(5)?), Some(DType::F32));
    /// assert_eq!(Binding::dtype(&gpu.alloc::<[f32; 4]>(5)?), None);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    fn dtype(&self) -> Option<DType> {
        DType::of_layout(&self.view().element.layout)
    }

    /// Returns the label of the buffer, empty if it has none.
    #[must_use]
    fn label(&self) -> &str {
        self.view().label
    }
}

/// Seals [`Binding`]; its methods are private to the crate.
pub trait Sealed {
    /// Returns the bytes and their layout.
    #[doc(hidden)]
    fn view(&self) -> View<'_>;
}

/// Bytes of a buffer with their layout as a value, instead of an element type.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct View<'a> {
    pub(crate) context: &'a Arc<Context>,
    /// `None` if the buffer is empty.
    pub(crate) memory: Option<&'a Arc<Memory>>,
    pub(crate) label: &'a str,
    /// First byte.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) size: u64,
    pub(crate) element: ElementType,
}
