//! The device of buffers and kernels: constructors that accept it, and accessors.

use std::sync::Arc;

use super::Device;
use crate::api::buffer::Buffer;
use crate::api::element::Element;
use crate::api::error::{InFunction, Result};
use crate::api::kernel::Kernel;
use crate::api::untyped_buffer::UntypedBuffer;

/// Clones of a device are equal. Two devices that were opened separately differ, even if they are
/// the same hardware: neither accepts the other's buffers.
///
/// ```
/// use scry_gpu::Device;
///
/// let gpu = Device::open("cpu")?;
/// assert_eq!(gpu, gpu.clone());
/// assert_ne!(gpu, Device::open("cpu")?);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.context, &other.context)
    }
}

impl Eq for Device {}

impl Kernel {
    /// Returns the device that it was compiled for.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let kernel = gpu.compile("@compute @workgroup_size(1) fn nothing() {}")?;
    /// kernel.device().run(&kernel, &[], 1)?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> Device {
        Device { context: self.context.clone() }
    }
}

impl<T: Element> Buffer<T> {
    /// Uploads a slice to a new buffer; the same as [`Device::upload`].
    ///
    /// ```
    /// use scry_gpu::{Buffer, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Buffer::upload(&gpu, &[1u32, 2, 3])?;
    /// assert_eq!(x.len(), 3);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Device::upload`].
    pub fn upload(device: &Device, data: &[T]) -> Result<Self> {
        device.upload(data).in_function("Buffer::upload")
    }

    /// Uploads `len` elements, each computed from its index.
    ///
    /// ```
    /// use scry_gpu::{Buffer, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let squares = Buffer::from_fn(&gpu, 4, |i| (i * i) as u32)?;
    /// assert_eq!(squares.download()?, [0, 1, 4, 9]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Device::upload`].
    pub fn from_fn(device: &Device, len: usize, value: impl FnMut(usize) -> T) -> Result<Self> {
        let data: Vec<T> = (0..len).map(value).collect();
        device.upload(&data).in_function("Buffer::from_fn")
    }

    /// Returns the device that owns the memory.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let a = gpu.upload(&[1u32, 2])?;
    /// let b = a.device().alloc::<u32>(a.len())?; // on the same device
    /// a.copy_to(&b)?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> Device {
        Device { context: self.bytes.context.clone() }
    }
}

impl UntypedBuffer {
    /// Returns the device that owns the memory.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// let a = gpu.alloc_untyped(DType::I32, 8)?;
    /// let b = a.device().alloc_untyped(a.dtype(), a.len())?;
    /// a.copy_to(&b)?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> Device {
        Device { context: self.bytes.context.clone() }
    }
}
