//! Untyped device memory, referenced by buffers of every type.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::api::binding::View;
use crate::api::dtype::ElementType;
use crate::api::error::{BufferAccessError, GpuError, Result, TooLargeError};
use crate::core::async_transfer;
use crate::core::command::BufferRange;
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::encode;
use crate::core::handles::MemoryKind;
use crate::core::memory::Memory;
use crate::core::same_device::quoted;
use crate::core::transfer::{self, Pages};

/// A range of bytes of an allocation, and its label for errors. Clones share the memory; dropping
/// the last one frees it.
#[derive(Clone)]
pub(crate) struct DeviceBytes {
    pub context: Arc<Context>,
    /// `None` if the size is zero.
    memory: Option<Arc<Memory>>,
    /// First byte in the allocation.
    offset: u64,
    /// Number of bytes.
    pub size: u64,
    pub label: Arc<str>,
}

impl DeviceBytes {
    /// Returns whether anything else keeps the memory.
    pub(crate) fn is_shared(&self) -> bool {
        let is_shared = self.memory.as_ref().is_some_and(|memory| Arc::strong_count(memory) > 1);
        // Whoever reuses the memory sees what its last other owner did before it let go.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        is_shared
    }

    /// Stops reporting the failures of finished work to readers of the memory.
    pub(crate) fn forget_failures(&self) {
        if let Some(memory) = &self.memory {
            self.context.forget_failures(memory.id());
        }
    }

    /// Allocates `len` zeroed elements.
    pub(crate) fn allocate(
        context: &Arc<Context>,
        len: usize,
        element: &ElementType,
        label: &str,
    ) -> Result<Self> {
        context.check_alive()?;
        let size = byte_size(context, len, element)?;
        let memory = match size {
            0 => None,
            size => Some(context.allocate(MemoryKind::Device, size, label)?),
        };
        Ok(Self { context: context.clone(), memory, offset: 0, size, label: label.into() })
    }

    /// Copies the bytes of `len` elements to a new allocation. It is zeroed first only if it is
    /// padded to a multiple of 4 bytes: otherwise the copy overwrites all of it before another
    /// handle exists.
    pub(crate) fn upload(
        context: &Arc<Context>,
        len: usize,
        element: &ElementType,
        data: &[u8],
    ) -> Result<Self> {
        let bytes = Self::allocate(context, len, element, "")?;
        if let Some(memory) = bytes.memory.as_ref().filter(|it| it.whole().size == bytes.size) {
            memory.mark_initialised();
        }
        write(bytes.whole(element), data)?;
        Ok(bytes)
    }

    /// Async form of [`DeviceBytes::upload`].
    pub(crate) async fn upload_async(
        context: &Arc<Context>,
        len: usize,
        element: &ElementType,
        data: &[u8],
    ) -> Result<Self> {
        context.check_alive()?;
        let size = byte_size(context, len, element)?;
        let mut memory = None;
        if size > 0 {
            let allocated = async_transfer::allocate(context, MemoryKind::Device, size, "").await?;
            if allocated.whole().size == size {
                allocated.mark_initialised();
            }
            memory = Some(allocated);
        }
        let bytes = Self { context: context.clone(), memory, offset: 0, size, label: "".into() };
        write_async(bytes.whole(element), data).await?;
        Ok(bytes)
    }

    /// Returns the bytes of a view, sharing the memory.
    pub(crate) fn of_view(view: &View<'_>) -> Self {
        Self {
            context: view.context.clone(),
            memory: view.memory.cloned(),
            offset: view.offset,
            size: view.size,
            label: view.label.into(),
        }
    }

    /// Returns the `size` bytes from `start` on, sharing the memory.
    pub(crate) fn part(&self, start: u64, size: u64) -> Self {
        Self { offset: self.offset + start, size, ..self.clone() }
    }

    /// Copies the bytes to a new allocation on the device.
    pub(crate) fn duplicate(&self, operation: &'static str, element: &ElementType) -> Result<Self> {
        let len = self.size / element.size;
        let copy = Self::allocate(&self.context, len as usize, element, &self.label)?;
        encode::copy_now(&self.context, operation, self.whole(element), copy.whole(element))?;
        Ok(copy)
    }

    /// Returns a view of all bytes as elements.
    pub(crate) fn whole(&self, element: &ElementType) -> View<'_> {
        self.view(0, self.size, element)
    }

    /// Returns a view of the `size` bytes from `start` on as elements.
    pub(crate) fn view(&self, start: u64, size: u64, element: &ElementType) -> View<'_> {
        View {
            context: &self.context,
            memory: self.memory.as_ref(),
            label: &self.label,
            offset: self.offset + start,
            size,
            element: *element,
        }
    }

    /// Returns an error unless the `size` bytes from `start` on can be viewed as elements of this
    /// type: their offset must be aligned, and `size` a multiple of the element size.
    pub(crate) fn check_view(
        &self,
        operation: &'static str,
        (start, size): (u64, u64),
        element: &ElementType,
    ) -> Result<()> {
        let reject = |problem, help| {
            Err(GpuError::BufferAccess(BufferAccessError { operation, problem, help }))
        };
        let (name, buffer) = (element.rust_name(), quoted(&self.label));
        let (align, offset) = (element.align, self.offset + start);
        if !offset.is_multiple_of(align) {
            return reject(
                format!(
                    "{name} is aligned to {align} bytes, but the view of {buffer} starts at byte \
                     {offset}"
                ),
                format!("start the view at a multiple of {align} bytes, or copy the bytes"),
            );
        }
        let rest = size % element.size;
        if rest != 0 {
            let each = element.size;
            return reject(
                format!(
                    "{size} bytes of {buffer} are not a multiple of the {each} bytes of {name}"
                ),
                format!("view the first {} of them", size - rest),
            );
        }
        Ok(())
    }
}

/// Returns the size of `len` elements in bytes; an error if it exceeds the device's maximum buffer
/// size.
fn byte_size(context: &Context, len: usize, element: &ElementType) -> Result<u64> {
    let limit = context.info.limits.max_buffer_size;
    let size = len as u128 * u128::from(element.size);
    match u64::try_from(size) {
        Ok(size) if size <= limit => Ok(size),
        _ => Err(GpuError::TooLarge(TooLargeError {
            label: None,
            function: None,
            what: format!("a buffer of {len} elements of {} bytes", element.size),
            requested: format!("{size} bytes"),
            device: context.info.name.clone(),
            limit: format!("{limit} bytes"),
            limit_name: "max_buffer_size",
            help: "split the data over several buffers".to_owned(),
        })),
    }
}

/// Returns the start and end of a range of `len` elements; an error if it is out of bounds.
pub(crate) fn resolve(
    operation: &'static str,
    range: impl RangeBounds<usize>,
    len: usize,
    label: &str,
) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start <= end && end <= len {
        return Ok((start, end));
    }
    Err(GpuError::BufferAccess(BufferAccessError {
        operation,
        problem: format!("elements {start}..{end} of {}, which has {len}", quoted(label)),
        help: format!("use a range within 0..{len} that does not end before its start"),
    }))
}

/// Overwrites the bytes. Returns once `data`, of the same length, is captured.
pub(crate) fn write(dst: View<'_>, data: &[u8]) -> Result<()> {
    dst.context.check_alive()?;
    match dst.bytes() {
        Some(bytes) => transfer::upload(dst.context, bytes, data),
        None => Ok(()),
    }
}

/// Async form of [`write`].
pub(crate) async fn write_async(dst: View<'_>, data: &[u8]) -> Result<()> {
    dst.context.check_alive()?;
    match dst.bytes() {
        Some(bytes) => async_transfer::upload(dst.context, bytes, data).await,
        None => Ok(()),
    }
}

/// Async form of [`read`].
pub(crate) async fn read_async(src: View<'_>, out: &mut [u8]) -> Result<()> {
    src.context.check_alive()?;
    match src.bytes() {
        Some(bytes) => async_transfer::download(src.context, bytes, out).await,
        None => Ok(()),
    }
}

/// Reads the bytes into `out`, of the same length, after all work submitted so far.
pub(crate) fn read(src: View<'_>, out: &mut [u8], pages: Pages) -> Result<()> {
    src.context.check_alive()?;
    match src.bytes() {
        Some(bytes) => transfer::download(src.context, bytes, out, pages),
        None => Ok(()),
    }
}

/// Fills a range with the bytes of one element.
pub(crate) fn fill(dst: View<'_>, pattern: &[u8]) -> Result<()> {
    let mut list = CommandList::default();
    encode::fill(dst.context, &mut list, dst, pattern)?;
    dst.context.submit_unless_empty(list)
}

impl<'a> View<'a> {
    /// Returns the allocation and the range in it; `None` if it is empty.
    pub(crate) fn bytes(&self) -> Option<(&'a Arc<Memory>, BufferRange)> {
        let memory = self.memory.filter(|_| self.size > 0)?;
        Some((memory, BufferRange { memory: memory.id(), offset: self.offset, size: self.size }))
    }
}
