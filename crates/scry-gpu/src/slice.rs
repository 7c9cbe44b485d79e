//! A part of a buffer.

use crate::binding::{Binding, Sealed, View};
use crate::buffer::Buffer;
use crate::element::{self, Element};
use crate::encode;
use crate::error::{GpuError, RangeError, Result};
use crate::list::CommandList;
use crate::transfer::{self, Pages};

/// Some consecutive elements of a [`Buffer`]: a binding, and a source or destination of copies.
///
/// As a binding, its first byte must be at a multiple of
/// [`DeviceInfo::binding_alignment`](crate::DeviceInfo::binding_alignment); reading, writing and
/// copying have no such rule.
pub struct Slice<'a, T> {
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
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
        Self { buffer, start, len }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in bytes.
    #[must_use]
    pub fn byte_size(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Replaces the elements. Returns once `data` is captured; later work sees it.
    ///
    /// # Errors
    /// [`GpuError::Range`] if `data` has another length.
    pub fn write(&self, data: &[T]) -> Result<()> {
        self.write_for("Slice::write", data)
    }

    /// [`Slice::write`] on behalf of the public function that errors name.
    pub(crate) fn write_for(&self, operation: &'static str, data: &[T]) -> Result<()> {
        self.same_length(operation, data.len())?;
        let context = &self.buffer.context;
        context.check_alive()?;
        match self.view().bytes() {
            Some(dst) => transfer::upload(context, dst, element::bytes_of(data)),
            None => Ok(()),
        }
    }

    /// Reads the elements, after all work submitted so far that writes them.
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
    /// # Errors
    /// See [`Buffer::download_into`].
    pub fn download_into(&self, out: &mut [T]) -> Result<()> {
        self.download_into_for("Slice::download_into", out)
    }

    /// [`Slice::download_into`] on behalf of the public function that errors name.
    pub(crate) fn download_into_for(&self, operation: &'static str, out: &mut [T]) -> Result<()> {
        self.read(operation, out, Pages::Present)
    }

    fn read(&self, operation: &'static str, out: &mut [T], pages: Pages) -> Result<()> {
        self.same_length(operation, out.len())?;
        let context = &self.buffer.context;
        context.check_alive()?;
        match self.view().bytes() {
            Some(src) => transfer::download(context, src, element::bytes_of_mut(out), pages),
            None => Ok(()),
        }
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// See [`Buffer::fill`].
    pub fn fill(&self, value: T) -> Result<()> {
        let mut list = CommandList::default();
        encode::fill(&self.buffer.context, &mut list, self.view(), element::bytes_of(&[value]))?;
        self.buffer.context.submit_unless_empty(list)
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
    /// [`GpuError::Range`] if the lengths differ or the slices overlap; [`GpuError::WrongDevice`].
    pub fn copy_to<'d>(&self, dst: impl Into<Slice<'d, T>>) -> Result<()> {
        encode::copy_now(&self.buffer.context, "Slice::copy_to", self.view(), dst.into().view())
    }

    /// Refuses data of another length, on behalf of the public function that the error names.
    pub(crate) fn same_length(&self, operation: &'static str, given: usize) -> Result<()> {
        if given == self.len {
            return Ok(());
        }
        let name = encode::quoted(self.buffer.label());
        Err(GpuError::Range(RangeError {
            operation,
            problem: format!("{given} elements were given for {} elements of {name}", self.len),
            help: "give as many as there are, or take a slice of the buffer".to_owned(),
        }))
    }
}

impl<T: Element> Sealed for Slice<'_, T> {
    fn view(&self) -> View<'_> {
        View::new(self.buffer, self.start, self.len)
    }
}

impl<T: Element> Binding for Slice<'_, T> {}
