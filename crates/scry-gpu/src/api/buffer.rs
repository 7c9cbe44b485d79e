//! Typed device memory.

use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::api::binding::{Binding, Sealed, View};
use crate::api::dtype::ElementType;
use crate::api::element::{self, Element};
use crate::api::error::{BufferAccessError, GpuError, InFunction, Result};
use crate::api::slice::Slice;
use crate::api::untyped_buffer::UntypedBuffer;
use crate::core::context::Context;
use crate::core::device_bytes::{DeviceBytes, resolve};
use crate::core::encode;
use crate::core::same_device::quoted;

/// `len` elements of type `T` in the memory of one device.
///
/// Methods read and write the whole buffer; [`Buffer::slice`] has the same methods for a part.
/// Dropping a buffer is always safe: work in flight keeps its memory alive.
///
/// A buffer is a handle: [`Clone`] is cheap and copies no elements, as with `Arc`. Clones,
/// [`Buffer::owned_slice`] and [`Buffer::view_as`] share the memory, which is freed with the last
/// handle. [`Buffer::duplicate`] copies the elements.
///
/// ```
/// use scry_gpu::Device;
///
/// let gpu = Device::open("cpu")?;
/// let buffer = gpu.upload(&[1.0f32, 2.0, 3.0])?;
/// let shared = buffer.clone();
/// let copy = buffer.duplicate()?;
/// buffer.write_at(1, &[9.0])?;
/// assert_eq!(shared.download()?, [1.0, 9.0, 3.0]);
/// assert_eq!(copy.download()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
pub struct Buffer<T> {
    pub(crate) bytes: DeviceBytes,
    element: PhantomData<T>,
}

impl<T> Clone for Buffer<T> {
    /// Returns another handle to the same memory; no element is copied.
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), element: PhantomData }
    }
}

impl<T: Element> Buffer<T> {
    pub(crate) fn allocate(context: &Arc<Context>, len: usize, label: &str) -> Result<Self> {
        let bytes = DeviceBytes::allocate(context, len, &ElementType::of::<T>(), label)?;
        Ok(Self::from_bytes(bytes))
    }

    pub(crate) fn from_slice(context: &Arc<Context>, data: &[T]) -> Result<Self> {
        let (element, bytes) = (ElementType::of::<T>(), element::bytes_of(data));
        Ok(Self::from_bytes(DeviceBytes::upload(context, data.len(), &element, bytes)?))
    }

    pub(crate) async fn from_slice_async(context: &Arc<Context>, data: &[T]) -> Result<Self> {
        let (element, bytes) = (ElementType::of::<T>(), element::bytes_of(data));
        Ok(Self::from_bytes(DeviceBytes::upload_async(context, data.len(), &element, bytes).await?))
    }

    /// Returns a buffer of bytes that are elements of type `T`.
    pub(crate) fn from_bytes(bytes: DeviceBytes) -> Self {
        Self { bytes, element: PhantomData }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.size as usize / size_of::<T>()
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.size == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_size(&self) -> u64 {
        self.bytes.size
    }

    /// Returns the name that errors and tools show.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.bytes.label
    }

    /// Names the buffer in errors; earlier clones keep their name.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(4)?.with_label("weights");
    /// let error = x.slice(3..9).unwrap_err();
    /// assert!(error.to_string().contains("elements 3..9 of buffer `weights`, which has 4"));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.bytes.label = label.into().into();
        self
    }

    /// Replaces all elements. Returns once `data` is copied; later work sees it.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(3)?;
    /// x.write(&[1, 2, 3])?;
    /// assert_eq!(x.download()?, [1, 2, 3]);
    /// assert!(x.write(&[1]).is_err());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if `data` has a different length than the buffer.
    pub fn write(&self, data: &[T]) -> Result<()> {
        Slice::from(self).write_for("Buffer::write", data)
    }

    /// Replaces the elements from `offset` on.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(4)?;
    /// x.write_at(1, &[5, 6])?;
    /// assert_eq!(x.download()?, [0, 5, 6, 0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if `data` exceeds the end of the buffer.
    pub fn write_at(&self, offset: usize, data: &[T]) -> Result<()> {
        let range = offset..offset.saturating_add(data.len());
        const NAME: &str = "Buffer::write_at";
        self.slice_for(NAME, range)?.write_for(NAME, data)
    }

    /// Reads all elements, after all work submitted so far that writes them.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.5f32, 2.5])?;
    /// x.fill(3.0)?;
    /// assert_eq!(x.download()?, [3.0, 3.0]); // waits for the fill
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`], [`GpuError::OutOfMemory`], [`GpuError::Interrupted`],
    /// [`GpuError::Timeout`] if a time limit is set and passes, or [`GpuError::Kernel`] if a launch
    /// that may have written the elements did not complete.
    #[doc(alias("cudaMemcpy", "dtoh", "map_async"))]
    pub fn download(&self) -> Result<Vec<T>> {
        Slice::from(self).download().in_function("Buffer::download")
    }

    /// Reads all elements into a slice of the same length. Faster than [`Buffer::download`] if
    /// the slice's pages were accessed before.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3])?;
    /// let mut out = [0; 3];
    /// x.download_into(&mut out)?;
    /// assert_eq!(out, [1, 2, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::download`]; [`GpuError::BufferAccess`] if `out` has a different length.
    pub fn download_into(&self, out: &mut [T]) -> Result<()> {
        Slice::from(self).download_into_for("Buffer::download_into", out)
    }

    /// Reads one element, after all work submitted so far that writes it. Each call waits for the
    /// device: read several at once with [`Buffer::download`] or [`Slice::download`].
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let sums = gpu.upload(&[10u64, 20, 30])?;
    /// assert_eq!(sums.get(2)?, 30);
    /// assert!(sums.get(3).is_err());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::download`]; [`GpuError::BufferAccess`] if there is no element of that index.
    pub fn get(&self, index: usize) -> Result<T> {
        if index >= self.len() {
            let (name, len) = (quoted(self.label()), self.len());
            return Err(GpuError::BufferAccess(BufferAccessError {
                operation: "Buffer::get",
                problem: format!("element {index} of {name}, which has {len}"),
                help: match len {
                    0 => "read a buffer that has elements".to_owned(),
                    len => format!("give an index from 0 to {}", len - 1),
                },
            }));
        }
        let mut element = element::zeroed(1);
        Slice::new(self, index, 1).download_into_for("Buffer::get", &mut element)?;
        Ok(element[0])
    }

    /// Sets every element to `value`.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<[f32; 2]>(3)?;
    /// x.fill([1.0, 2.0])?;
    /// assert_eq!(x.download()?, [[1.0, 2.0]; 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] and other failures of the device.
    pub fn fill(&self, value: T) -> Result<()> {
        Slice::from(self).fill(value).in_function("Buffer::fill")
    }

    /// Copies all elements to another buffer, or a slice of one, of the same length and device.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (a, b) = (gpu.upload(&[1u32, 2])?, gpu.alloc::<u32>(4)?);
    /// a.copy_to(b.slice(2..)?)?;
    /// assert_eq!(b.download()?, [0, 0, 1, 2]);
    /// assert!(a.copy_to(&b).is_err()); // another length
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the lengths differ or the ranges overlap;
    /// [`GpuError::WrongDevice`].
    #[doc(alias("cudaMemcpy", "dtod"))]
    pub fn copy_to<'d>(&self, dst: impl Into<Slice<'d, T>>) -> Result<()> {
        const NAME: &str = "Buffer::copy_to";
        let (src, dst) = (self.view(), dst.into());
        encode::copy_now(&self.bytes.context, NAME, src, dst.view()).in_function(NAME)
    }

    /// Copies all elements to a new buffer, on the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let weights = gpu.upload(&[0.5f32; 8])?;
    /// let backup = weights.duplicate()?;
    /// weights.fill(0.0)?;
    /// assert_eq!(backup.download()?, [0.5; 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] and other failures of the device.
    pub fn duplicate(&self) -> Result<Self> {
        const NAME: &str = "Buffer::duplicate";
        let copy = self.bytes.duplicate(NAME, &ElementType::of::<T>()).in_function(NAME)?;
        Ok(Self::from_bytes(copy))
    }

    /// Returns a part of the buffer, as a binding or for reading and writing.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4])?;
    /// assert_eq!(x.slice(1..3)?.download()?, [2, 3]);
    /// assert_eq!(x.slice(..)?.len(), 4);
    /// assert!(x.slice(2..5).is_err());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the range exceeds the buffer or ends before it starts.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        self.slice_for("Buffer::slice", range)
    }

    /// Returns a part of the buffer as a buffer that shares the memory and keeps it alive: an owned
    /// [`Buffer::slice`], for structures and other threads. As a binding it has the alignment rule
    /// of a [`Slice`].
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let all = gpu.upload(&[0u32, 1, 2, 3])?;
    /// let tail = all.owned_slice(2..)?;
    /// drop(all);
    /// assert_eq!(tail.download()?, [2, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::slice`].
    pub fn owned_slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(self.slice_for("Buffer::owned_slice", range)?.to_owned_slice())
    }

    /// Returns the same bytes as elements of another type, in a buffer that shares the memory.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let floats = gpu.upload(&[1.0f32, -2.0])?;
    /// let bits = floats.view_as::<u32>()?;
    /// assert_eq!(bits.download()?, [0x3f80_0000, 0xc000_0000]);
    /// bits.write_at(0, &[0])?;
    /// assert_eq!(floats.get(0)?, 0.0);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the size is not a multiple of the element size, or if the
    /// start is not aligned for the elements, as is possible for a [`Buffer::owned_slice`].
    pub fn view_as<U: Element>(&self) -> Result<Buffer<U>> {
        let whole = (0, self.bytes.size);
        self.bytes.check_view("Buffer::view_as", whole, &ElementType::of::<U>())?;
        Ok(Buffer::from_bytes(self.bytes.clone()))
    }

    /// Returns the same elements with their type as a value, in a buffer that shares the memory.
    ///
    /// ```
    /// use scry_gpu::{DType, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let untyped = gpu.upload(&[1.0f32, 2.0])?.untyped();
    /// assert_eq!((untyped.dtype(), untyped.len()), (Some(DType::F32), 2));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn untyped(&self) -> UntypedBuffer {
        UntypedBuffer::from_bytes(self.bytes.clone(), ElementType::of::<T>())
    }

    fn slice_for(
        &self,
        operation: &'static str,
        range: impl RangeBounds<usize>,
    ) -> Result<Slice<'_, T>> {
        let (start, end) = resolve(operation, range, self.len(), self.label())?;
        Ok(Slice::new(self, start, end - start))
    }
}

impl<T: Element> Sealed for Buffer<T> {
    fn view(&self) -> View<'_> {
        self.bytes.whole(&ElementType::of::<T>())
    }
}

impl<T: Element> Binding for Buffer<T> {}

impl<T: Element> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer")
            .field("label", &self.label())
            .field("len", &self.len())
            .field("element", &std::any::type_name::<T>())
            .field("device", &self.bytes.context.info.name)
            .finish()
    }
}
