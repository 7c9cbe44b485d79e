//! Device memory with an element type that is only known at run time.

use std::ops::RangeBounds;

use crate::api::binding::{Binding, Sealed, View};
use crate::api::buffer::Buffer;
use crate::api::dtype::{DType, ElementType};
use crate::api::element::Element;
use crate::api::error::{BufferAccessError, GpuError, InFunction, Result};
use crate::core::device_bytes::{self, DeviceBytes, resolve};
use crate::core::encode;
use crate::core::same_device::quoted;
use crate::core::transfer::Pages;

/// Elements in device memory, of a type that is only known at run time, for tensors, file formats
/// and tools.
///
/// A handle like [`Buffer`]: clones, slices and views share the memory. As a kernel argument it is
/// checked like a [`Buffer`] of the same elements. A buffer that was created without a type
/// (`None`) holds bytes of unknown type: only their number is checked, and they fit every binding.
///
/// ```
/// use scry_gpu::{DType, Device};
///
/// let gpu = Device::open("cpu")?;
/// // As read from a file: the name of a type, and bytes.
/// let (name, bytes) = ("f32", [1.0f32, 2.0].map(f32::to_le_bytes).concat());
/// let dtype: DType = name.parse()?;
/// let data = gpu.upload_bytes(dtype, &bytes)?;
/// let doubled = gpu.alloc_untyped(dtype, data.len())?;
/// let shader = format!("
///     @group(0) @binding(0) var<storage, read> x: array<{dtype}>;
///     @group(0) @binding(1) var<storage, read_write> y: array<{dtype}>;
///     @compute @workgroup_size(64)
///     fn double(@builtin(global_invocation_id) id: vec3u) {{
///         if id.x < arrayLength(&x) {{ y[id.x] = x[id.x] + x[id.x]; }}
///     }}");
/// gpu.dispatch(&shader, &[&data, &doubled], data.len())?;
/// assert_eq!(doubled.typed::<f32>()?.download()?, [2.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UntypedBuffer {
    pub(super) bytes: DeviceBytes,
    element: ElementType,
}

/// Bindings of any type.
impl dyn Binding + '_ {
    /// Returns a handle of the same bytes that owns them, whatever type of buffer or slice this is:
    /// for libraries that keep their arguments.
    ///
    /// ```
    /// use scry_gpu::{Binding, Device, UntypedBuffer};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3])?;
    /// let tail: UntypedBuffer = (&x.slice(1..)? as &dyn Binding).to_untyped();
    /// drop(x);
    /// assert_eq!(tail.typed::<u32>()?.download()?, [2, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn to_untyped(&self) -> UntypedBuffer {
        let view = self.view();
        UntypedBuffer::from_bytes(DeviceBytes::of_view(&view), view.element)
    }
}

impl UntypedBuffer {
    pub(crate) fn from_bytes(bytes: DeviceBytes, element: ElementType) -> Self {
        Self { bytes, element }
    }

    /// Returns the number of elements, or of bytes if the type is unknown.
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// assert_eq!(gpu.upload(&[1u16, 2, 3])?.untyped().len(), 3);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        (self.bytes.size / self.element.size) as usize
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// assert!(gpu.alloc_untyped(scry_gpu::DType::F32, 0)?.is_empty());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.size == 0
    }

    /// Returns the type of the elements; `None` for bytes of unknown type, and for elements that
    /// are not scalars.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// assert_eq!(gpu.alloc::<f32>(4)?.untyped().dtype(), Some(DType::F32));
    /// assert_eq!(gpu.alloc::<[f32; 4]>(1)?.untyped().dtype(), None);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        DType::of_layout(&self.element.layout)
    }

    /// Returns the size in bytes.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// assert_eq!(gpu.alloc_untyped(DType::F64, 2)?.byte_size(), 16);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn byte_size(&self) -> u64 {
        self.bytes.size
    }

    /// Returns whether anything beside this handle keeps the memory: another handle or a slice of
    /// it, a recording, a batch, or work that may be unfinished. If not, the memory can be reused
    /// for other contents.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc_untyped(DType::F32, 4)?;
    /// let part = x.slice(..2)?;
    /// assert!(x.is_shared());
    /// drop(part);
    /// assert!(!x.is_shared());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.bytes.is_shared()
    }

    /// Stops reporting launches that wrote the memory and failed, in reads of it: for pools that
    /// use the memory of a buffer that is not [shared](Self::is_shared) for other contents. Waits
    /// of the thread that submitted such a launch still report it.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc_untyped(DType::F32, 4)?;
    /// if !x.is_shared() {
    ///     x.forget_failures(); // of what it was used for until now
    ///     x.fill_zero()?;
    /// }
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    pub fn forget_failures(&self) {
        self.bytes.forget_failures();
    }

    /// Returns the name that errors and tools show.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// let bias = gpu.alloc_untyped(DType::F32, 8)?.with_label("bias");
    /// assert_eq!(bias.label(), "bias");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn label(&self) -> &str {
        &self.bytes.label
    }

    /// Names the buffer in errors; earlier clones keep their name.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// let bias = gpu.alloc_untyped(DType::F32, 8)?.with_label("bias");
    /// assert!(bias.typed::<u32>().unwrap_err().to_string().contains("`bias`"));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.bytes.label = label.into().into();
        self
    }

    /// Replaces all bytes. Returns once `data` is copied; later work sees it.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// let buffer = gpu.alloc_untyped(DType::U16, 2)?;
    /// buffer.write_bytes(&[1, 0, 2, 0])?;
    /// assert_eq!(buffer.typed::<u16>()?.download()?, [1, 2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if `data` and the buffer differ in size.
    pub fn write_bytes(&self, data: &[u8]) -> Result<()> {
        const NAME: &str = "UntypedBuffer::write_bytes";
        self.check_size(NAME, data.len())?;
        device_bytes::write(self.view(), data).in_function(NAME)
    }

    /// Reads all bytes, after all work submitted so far that writes them.
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// let buffer = gpu.upload(&[0x0102u16, 0x0304])?.untyped();
    /// assert_eq!(buffer.download_bytes()?, [2, 1, 4, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::download`].
    pub fn download_bytes(&self) -> Result<Vec<u8>> {
        let bytes = Buffer::<u8>::from_bytes(self.bytes.clone()).download();
        bytes.in_function("UntypedBuffer::download_bytes")
    }

    /// Reads all bytes into a slice of the same size.
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// let mut out = [0; 4];
    /// gpu.upload(&[1.0f32])?.untyped().download_bytes_into(&mut out)?;
    /// assert_eq!(f32::from_le_bytes(out), 1.0);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::download`]; [`GpuError::BufferAccess`] if `out` has a different size.
    pub fn download_bytes_into(&self, out: &mut [u8]) -> Result<()> {
        const NAME: &str = "UntypedBuffer::download_bytes_into";
        self.check_size(NAME, out.len())?;
        device_bytes::read(self.view(), out, Pages::Present).in_function(NAME)
    }

    /// Sets every byte to zero.
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// let sums = gpu.upload(&[1.5f64, 2.5])?;
    /// sums.untyped().fill_zero()?;
    /// assert_eq!(sums.download()?, [0.0, 0.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] and other failures of the device.
    pub fn fill_zero(&self) -> Result<()> {
        device_bytes::fill(self.view(), &[0]).in_function("UntypedBuffer::fill_zero")
    }

    /// Copies all elements to another buffer of the same type, length and device.
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// let src = gpu.upload(&[1i8, -2])?.untyped();
    /// let dst = gpu.alloc_untyped(src.dtype(), src.len())?;
    /// src.copy_to(&dst)?;
    /// assert_eq!(dst.typed::<i8>()?.download()?, [1, -2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if types or lengths differ, or if the two ranges of memory
    /// overlap; [`GpuError::WrongDevice`].
    pub fn copy_to(&self, dst: &Self) -> Result<()> {
        const NAME: &str = "UntypedBuffer::copy_to";
        check_same_elements(NAME, (self.label(), &self.element), (dst.label(), &dst.element))?;
        encode::copy_now(&self.bytes.context, NAME, self.view(), dst.view()).in_function(NAME)
    }

    /// Copies all elements to a new buffer, on the device.
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// let weights = gpu.upload(&[1.0f32; 4])?.untyped();
    /// let backup = weights.duplicate()?;
    /// weights.fill_zero()?;
    /// assert_eq!(backup.typed::<f32>()?.download()?, [1.0; 4]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] and other failures of the device.
    pub fn duplicate(&self) -> Result<Self> {
        const NAME: &str = "UntypedBuffer::duplicate";
        let bytes = self.bytes.duplicate(NAME, &self.element).in_function(NAME)?;
        Ok(Self { bytes, element: self.element })
    }

    /// Returns a part of the buffer, in elements, as a buffer that shares the memory and keeps it
    /// alive. As a binding it has the alignment rule of a [`Slice`](crate::Slice).
    ///
    /// ```
    /// # let gpu = scry_gpu::Device::open("cpu")?;
    /// let all = gpu.upload(&[1u32, 2, 3, 4])?.untyped();
    /// let middle = all.slice(1..3)?;
    /// assert_eq!(middle.typed::<u32>()?.download()?, [2, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the range exceeds the buffer or ends before it starts.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let (start, end) = resolve("UntypedBuffer::slice", range, self.len(), self.label())?;
        let [start, size] = [start, end - start].map(|len| len as u64 * self.element.size);
        Ok(Self { bytes: self.bytes.part(start, size), element: self.element })
    }

    /// Returns the same bytes as elements of another type, or as bytes without a type (`None`), in
    /// a buffer that shares the memory.
    ///
    /// ```
    /// use scry_gpu::{DType, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// // A file in memory: 8 bytes of header, then f32.
    /// let file = gpu.alloc_untyped(None, 8 + 4 * 100)?;
    /// let weights = file.slice(8..)?.view_as(DType::F32)?;
    /// assert_eq!(weights.len(), 100);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the size is not a multiple of the element size, or if the
    /// start is not a multiple of it.
    pub fn view_as(&self, dtype: impl Into<Option<DType>>) -> Result<Self> {
        let element = dtype.into().into();
        self.bytes.check_view("UntypedBuffer::view_as", (0, self.bytes.size), &element)?;
        Ok(Self { bytes: self.bytes.clone(), element })
    }

    /// Returns the same elements as a typed buffer that shares the memory. Bytes of unknown type
    /// can be typed as any element.
    ///
    /// ```
    /// # use scry_gpu::{DType, Device};
    /// # let gpu = Device::open("cpu")?;
    /// let buffer = gpu.alloc_untyped(DType::F32, 4)?;
    /// buffer.typed::<f32>()?.fill(0.5)?;
    /// assert!(buffer.typed::<u32>().is_err());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if `T` is not the type of the elements; for bytes of unknown type
    /// as [`UntypedBuffer::view_as`].
    pub fn typed<T: Element>(&self) -> Result<Buffer<T>> {
        const NAME: &str = "UntypedBuffer::typed";
        let wanted = ElementType::of::<T>();
        if self.element.is_same(&None.into()) {
            self.bytes.check_view(NAME, (0, self.bytes.size), &wanted)?;
        } else if !self.element.is_same(&wanted) {
            let (holds, wanted) = (self.element.rust_name(), wanted.rust_name());
            return Err(GpuError::BufferAccess(BufferAccessError {
                operation: NAME,
                problem: format!("{} holds {holds}, not {wanted}", quoted(self.label())),
                help: format!(
                    "use typed::<{holds}>(), or reinterpret the bytes: view_as(None), then typed"
                ),
            }));
        }
        Ok(Buffer::from_bytes(self.bytes.clone()))
    }

    pub(crate) fn element_type(&self) -> ElementType {
        self.element
    }

    /// Checks the number of bytes of host data; the error names `operation`.
    pub(crate) fn check_size(&self, operation: &'static str, given: usize) -> Result<()> {
        if given as u64 == self.bytes.size {
            return Ok(());
        }
        let (name, size) = (quoted(self.label()), self.bytes.size);
        Err(GpuError::BufferAccess(BufferAccessError {
            operation,
            problem: format!("{given} bytes were given for the {size} bytes of {name}"),
            help: format!("give {size} bytes, or take a slice of the buffer"),
        }))
    }
}

/// Checks that a copy is between elements of one type; the error names `operation`.
pub(crate) fn check_same_elements(
    operation: &'static str,
    (from, from_type): (&str, &ElementType),
    (to, to_type): (&str, &ElementType),
) -> Result<()> {
    if from_type.is_same(to_type) {
        return Ok(());
    }
    let (from, to) = (quoted(from), quoted(to));
    Err(GpuError::BufferAccess(BufferAccessError {
        operation,
        problem: format!(
            "{from} holds {}, but {to} holds {}",
            from_type.rust_name(),
            to_type.rust_name()
        ),
        help: "view one as the other's type (UntypedBuffer::view_as)".to_owned(),
    }))
}

impl<T: Element> From<Buffer<T>> for UntypedBuffer {
    fn from(buffer: Buffer<T>) -> Self {
        buffer.untyped()
    }
}

impl Sealed for UntypedBuffer {
    fn view(&self) -> View<'_> {
        self.bytes.whole(&self.element)
    }
}

impl Binding for UntypedBuffer {}

impl std::fmt::Debug for UntypedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UntypedBuffer")
            .field("label", &self.label())
            .field("len", &self.len())
            .field("element", &self.element.rust_name())
            .field("device", &self.bytes.context.info.name)
            .finish()
    }
}
