//! Buffers with element types that are only known at run time.

use super::Device;
use crate::api::dtype::DType;
use crate::api::error::{BufferAccessError, GpuError, InFunction, Result};
use crate::api::untyped_buffer::UntypedBuffer;
use crate::core::device_bytes::DeviceBytes;

/// Buffers with element types that are only known at run time.
impl Device {
    /// Allocates a buffer of `len` elements, all bytes zero. Without a type (`None`) the elements
    /// are bytes.
    ///
    /// ```
    /// use scry_gpu::{DType, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(gpu.alloc_untyped(DType::F16, 3)?.byte_size(), 6);
    /// assert_eq!(gpu.alloc_untyped(None, 3)?.byte_size(), 3);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::alloc`].
    pub fn alloc_untyped(
        &self,
        dtype: impl Into<Option<DType>>,
        len: usize,
    ) -> Result<UntypedBuffer> {
        let element = dtype.into().into();
        let bytes = DeviceBytes::allocate(&self.context, len, &element, "")
            .in_function("Device::alloc_untyped")?;
        Ok(UntypedBuffer::from_bytes(bytes, element))
    }

    /// Copies bytes to a new buffer of elements of type `dtype`, in the byte order of the host;
    /// without a type (`None`) the elements are bytes. Returns once `data` is copied.
    ///
    /// ```
    /// use scry_gpu::{DType, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let buffer = gpu.upload_bytes(DType::U16, &[1, 0, 2, 0])?;
    /// assert_eq!(buffer.len(), 2);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the size is not a multiple of the element size; otherwise as
    /// [`Device::upload`].
    pub fn upload_bytes(
        &self,
        dtype: impl Into<Option<DType>>,
        data: &[u8],
    ) -> Result<UntypedBuffer> {
        let dtype = dtype.into();
        let each = dtype.map_or(1, DType::size);
        if let Some(dtype) = dtype.filter(|_| !data.len().is_multiple_of(each)) {
            let (given, rest) = (data.len(), data.len() % each);
            return Err(GpuError::BufferAccess(BufferAccessError {
                operation: "Device::upload_bytes",
                problem: format!("{given} bytes are not a multiple of the {each} bytes of {dtype}"),
                help: format!("give {} or {} bytes", given - rest, given - rest + each),
            }));
        }
        let element = dtype.into();
        let bytes = DeviceBytes::upload(&self.context, data.len() / each, &element, data)
            .in_function("Device::upload_bytes")?;
        Ok(UntypedBuffer::from_bytes(bytes, element))
    }
}
