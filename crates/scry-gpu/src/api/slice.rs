//! A part of a buffer.

use std::marker::PhantomData;

use crate::api::binding::{Binding, Sealed, View};
use crate::api::buffer::Buffer;
use crate::api::dtype::ElementType;
use crate::api::element::{self, Element};
use crate::api::error::{BufferAccessError, GpuError, InFunction, Result};
use crate::core::device_bytes::{self, DeviceBytes};
use crate::core::encode;
use crate::core::same_device::quoted;
use crate::core::transfer::Pages;

/// Some consecutive elements of a [`Buffer`]: a binding, and a source or destination of copies.
///
/// As a binding, its byte offset must be a multiple of
/// [`DeviceInfo::binding_alignment`](crate::DeviceInfo::binding_alignment); reading, writing and
/// copying have no such rule.
///
/// A slice borrows its buffer; [`Slice::to_owned_slice`] shares the memory instead.
///
/// ```
/// use scry_gpu::Device;
///
/// let gpu = Device::open("cpu")?;
/// let buffer = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
/// let middle = buffer.slice(1..3)?;
/// middle.fill(0.0)?;
/// assert_eq!(buffer.download()?, [1.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
#[must_use = "a slice does nothing by itself"]
pub struct Slice<'a, T> {
    bytes: &'a DeviceBytes,
    /// First byte, from the start of `bytes`.
    start: u64,
    len: usize,
    element: PhantomData<T>,
}

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<'_, T> {}

/// All elements of a buffer: calls that read or write elements accept slices and buffers alike.
impl<'a, T: Element> From<&'a Buffer<T>> for Slice<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self::new(buffer, 0, buffer.len())
    }
}

impl<'a, T: Element> From<&Slice<'a, T>> for Slice<'a, T> {
    fn from(slice: &Slice<'a, T>) -> Self {
        *slice
    }
}

impl<'a, T: Element> Slice<'a, T> {
    pub(crate) fn new(buffer: &'a Buffer<T>, start: usize, len: usize) -> Self {
        let start = (start * size_of::<T>()) as u64;
        Self { bytes: &buffer.bytes, start, len, element: PhantomData }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_size(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Replaces the elements. Returns once `data` is copied; later work sees it.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(4)?;
    /// x.slice(2..)?.write(&[8, 9])?;
    /// assert_eq!(x.download()?, [0, 0, 8, 9]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if `data` has a different length.
    pub fn write(&self, data: &[T]) -> Result<()> {
        self.write_for("Slice::write", data)
    }

    /// Implements [`Slice::write`]; errors name `operation`.
    pub(crate) fn write_for(&self, operation: &'static str, data: &[T]) -> Result<()> {
        self.check_length(operation, data.len())?;
        device_bytes::write(self.view(), element::bytes_of(data)).in_function(operation)
    }

    /// Reads the elements, after all work submitted so far that writes them.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4])?;
    /// assert_eq!(x.slice(..2)?.download()?, [1, 2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Buffer::download`].
    pub fn download(&self) -> Result<Vec<T>> {
        let mut out = element::zeroed(self.len);
        self.read("Slice::download", &mut out, Pages::Fresh)?;
        Ok(out)
    }

    /// Reads the elements into a slice of the same length.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4])?;
    /// let mut out = [0; 2];
    /// x.slice(1..3)?.download_into(&mut out)?;
    /// assert_eq!(out, [2, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Buffer::download_into`].
    pub fn download_into(&self, out: &mut [T]) -> Result<()> {
        self.download_into_for("Slice::download_into", out)
    }

    /// Implements [`Slice::download_into`]; errors name `operation`.
    pub(crate) fn download_into_for(&self, operation: &'static str, out: &mut [T]) -> Result<()> {
        self.read(operation, out, Pages::Present)
    }

    fn read(&self, operation: &'static str, out: &mut [T], pages: Pages) -> Result<()> {
        self.check_length(operation, out.len())?;
        device_bytes::read(self.view(), element::bytes_of_mut(out), pages).in_function(operation)
    }

    /// Sets every element to `value`.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32; 4])?;
    /// x.slice(1..3)?.fill(0)?;
    /// assert_eq!(x.download()?, [1, 0, 0, 1]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Buffer::fill`].
    pub fn fill(&self, value: T) -> Result<()> {
        device_bytes::fill(self.view(), element::bytes_of(&[value])).in_function("Slice::fill")
    }

    /// Copies the elements to a buffer or slice of the same length, on the same device.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let (a, b) = (device.upload(&[1u32, 2, 3, 4])?, device.alloc::<u32>(2)?);
    /// a.slice(1..3)?.copy_to(&b)?;
    /// b.copy_to(a.slice(2..)?)?;
    /// assert_eq!(a.download()?, [1, 2, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the lengths differ or the ranges overlap;
    /// [`GpuError::WrongDevice`].
    pub fn copy_to<'d>(&self, dst: impl Into<Slice<'d, T>>) -> Result<()> {
        const NAME: &str = "Slice::copy_to";
        let (src, dst) = (self.view(), dst.into());
        encode::copy_now(&self.bytes.context, NAME, src, dst.view()).in_function(NAME)
    }

    /// Returns the same bytes as elements of another type.
    ///
    /// ```
    /// use scry_gpu::{Device, f16};
    ///
    /// let gpu = Device::open("cpu")?;
    /// // A header of 4 bytes, then two f16.
    /// let file = gpu.upload(&[0u8, 0, 0, 2, 0x00, 0x3c, 0x00, 0x40])?;
    /// let halves = file.slice(4..)?.view_as::<f16>()?;
    /// assert_eq!(halves.download()?, [f16::from_f32(1.0), f16::from_f32(2.0)]);
    /// assert!(file.slice(3..7)?.view_as::<f16>().is_err());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the size is not a multiple of the element size, or if the
    /// start is not aligned for the elements.
    pub fn view_as<U: Element>(&self) -> Result<Slice<'a, U>> {
        let element = ElementType::of::<U>();
        self.bytes.check_view("Slice::view_as", (self.start, self.byte_size()), &element)?;
        let len = (self.byte_size() / element.size) as usize;
        Ok(Slice { bytes: self.bytes, start: self.start, len, element: PhantomData })
    }

    /// Returns the elements as a buffer that shares the memory and keeps it alive, for structures
    /// and other threads.
    ///
    /// ```
    /// use scry_gpu::{Buffer, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let tail: Buffer<u32> = gpu.upload(&[1u32, 2, 3])?.slice(1..)?.to_owned_slice();
    /// assert_eq!(tail.download()?, [2, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn to_owned_slice(&self) -> Buffer<T> {
        Buffer::from_bytes(self.bytes.part(self.start, self.byte_size()))
    }

    /// Checks the length of host data; the error names `operation`.
    pub(crate) fn check_length(&self, operation: &'static str, given: usize) -> Result<()> {
        if given == self.len {
            return Ok(());
        }
        let name = quoted(&self.bytes.label);
        Err(GpuError::BufferAccess(BufferAccessError {
            operation,
            problem: format!("{given} elements were passed for {} elements of {name}", self.len),
            help: format!("pass {} elements, or use a slice of the buffer", self.len),
        }))
    }
}

impl<'a, T: Element> Slice<'a, T> {
    /// Returns a view with the lifetime of the borrowed buffer.
    pub(crate) fn into_view(self) -> View<'a> {
        self.bytes.view(self.start, self.byte_size(), &ElementType::of::<T>())
    }
}

impl<T: Element> Sealed for Slice<'_, T> {
    fn view(&self) -> View<'_> {
        self.into_view()
    }
}

impl<T: Element> Binding for Slice<'_, T> {}

impl<T: Element> std::fmt::Debug for Slice<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slice")
            .field("label", &self.bytes.label)
            .field("start_byte", &self.start)
            .field("len", &self.len)
            .field("element", &std::any::type_name::<T>())
            .field("device", &self.bytes.context.info.name)
            .finish()
    }
}
