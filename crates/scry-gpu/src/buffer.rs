//! Typed device memory.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::binding::{Binding, Sealed, View};
use crate::context::Context;
use crate::driver::MemoryKind;
use crate::element::Element;
use crate::error::{GpuError, RangeError, Result, TooLargeError};
use crate::memory::Memory;
use crate::slice::Slice;
use crate::{Device, encode};

/// `len` elements of type `T` in the memory of one device.
///
/// Reading and writing methods work on the whole; [`Buffer::slice`] gives the same methods on a
/// part. Dropping a buffer is always safe: work in flight keeps what it uses.
pub struct Buffer<T> {
    pub(crate) context: Arc<Context>,
    /// Absent if the buffer is empty.
    pub(crate) memory: Option<Arc<Memory>>,
    len: usize,
    label: String,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Uploads a slice to a new buffer; the same as [`Device::upload`].
    ///
    /// # Errors
    /// See [`Device::upload`].
    pub fn upload(device: &Device, data: &[T]) -> Result<Self> {
        device.upload(data)
    }

    pub(crate) fn allocate(context: &Arc<Context>, len: usize, label: &str) -> Result<Self> {
        context.check_alive()?;
        let size = byte_size::<T>(context, len)?;
        let memory = match size {
            0 => None,
            size => Some(context.allocate(MemoryKind::Device, size, label)?),
        };
        Ok(Self {
            context: context.clone(),
            memory,
            len,
            label: label.to_owned(),
            element: PhantomData,
        })
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

    /// The name that errors and tools show.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Gives the buffer a name for errors.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Replaces all elements. Returns once `data` is captured; later work sees it.
    ///
    /// # Errors
    /// [`GpuError::Range`] if `data` has another length than the buffer.
    pub fn write(&self, data: &[T]) -> Result<()> {
        Slice::from(self).write_for("Buffer::write", data)
    }

    /// As [`Buffer::write`], for a new buffer that the caller drops if this fails: as nobody else
    /// sees it before all of it is written, it needs no zeros.
    pub(crate) fn write_first(&self, data: &[T]) -> Result<()> {
        let whole = self.memory.as_ref();
        if let Some(memory) = whole.filter(|memory| memory.whole().size == self.byte_size()) {
            memory.set_defined();
        }
        self.write(data)
    }

    /// Replaces the elements from `offset` on.
    ///
    /// # Errors
    /// [`GpuError::Range`] if `data` reaches beyond the end.
    pub fn write_at(&self, offset: usize, data: &[T]) -> Result<()> {
        let end = offset.saturating_add(data.len());
        self.slice_for("Buffer::write_at", offset, end)?.write(data)
    }

    /// Reads all elements, after all work submitted so far that writes them.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`], [`GpuError::Timeout`] if a time limit is set and passes, or
    /// [`GpuError::Kernel`] if a launch that may have written the elements did not run to its end.
    pub fn download(&self) -> Result<Vec<T>> {
        Slice::from(self).download()
    }

    /// Reads all elements into a slice of the same length. Faster than [`Buffer::download`] where
    /// the slice's pages have been touched before.
    ///
    /// # Errors
    /// As [`Buffer::download`]; [`GpuError::Range`] if `out` has another length.
    pub fn download_into(&self, out: &mut [T]) -> Result<()> {
        Slice::from(self).download_into_for("Buffer::download_into", out)
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] and other failures of the device.
    pub fn fill(&self, value: T) -> Result<()> {
        Slice::from(self).fill(value)
    }

    /// Copies all elements to another buffer, or a slice of one, of the same length and device.
    ///
    /// # Errors
    /// [`GpuError::Range`] if the lengths differ; [`GpuError::WrongDevice`].
    pub fn copy_to<'d>(&self, dst: impl Into<Slice<'d, T>>) -> Result<()> {
        encode::copy_now(&self.context, "Buffer::copy_to", self.view(), dst.into().view())
    }

    /// A part of the buffer, as a binding or for reading and writing.
    ///
    /// # Errors
    /// [`GpuError::Range`] if the range reaches beyond the end or ends before it begins.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        self.slice_for("Buffer::slice", start, end)
    }

    fn slice_for(&self, operation: &'static str, start: usize, end: usize) -> Result<Slice<'_, T>> {
        if start > end || end > self.len {
            let len = self.len;
            let name = encode::quoted(&self.label);
            return Err(GpuError::Range(RangeError {
                operation,
                problem: format!("elements {start}..{end} of {name}, which has {len}"),
                help: format!("stay within 0..{len}, the end not before the start"),
            }));
        }
        Ok(Slice::new(self, start, end - start))
    }
}

/// Bytes of `len` elements, or why there cannot be so many.
fn byte_size<T: Element>(context: &Context, len: usize) -> Result<u64> {
    let limit = context.info.limits.max_buffer_size;
    let size = len as u128 * size_of::<T>() as u128;
    match u64::try_from(size) {
        Ok(size) if size <= limit => Ok(size),
        _ => Err(GpuError::TooLarge(TooLargeError {
            what: format!("a buffer of {len} elements of {} bytes", size_of::<T>()),
            requested: format!("{size} bytes"),
            device: context.info.name.clone(),
            limit: format!("{limit} bytes"),
            limit_name: "max_buffer_size",
            help: "split the data over several buffers".to_owned(),
        })),
    }
}

impl<T: Element> Sealed for Buffer<T> {
    fn view(&self) -> View<'_> {
        View::new(self, 0, self.len)
    }
}

impl<T: Element> Binding for Buffer<T> {}

impl<T: Element> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer")
            .field("label", &self.label)
            .field("len", &self.len)
            .field("element", &std::any::type_name::<T>())
            .field("device", &self.context.info.name)
            .finish()
    }
}
