//! bytemuck's `Pod` types as elements (feature `bytemuck`).

use super::{Element, ElementLayout};

/// An element of any type that is [`bytemuck::Pod`], for types that cannot derive
/// [`Element`](crate::Element), such as those of other crates. Needs the feature `bytemuck`.
///
/// Its fields are unknown: only its size is checked against the kernel's type. Derive `Element` for
/// a type of your own.
///
/// ```
/// use scry_gpu::{Buffer, Device, PodElement};
///
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Vertex {
///     position: [f32; 3],
///     color: u32,
/// }
///
/// let gpu = Device::open("cpu")?;
/// let mut vertices = [Vertex { position: [1.0, 2.0, 3.0], color: 0xff }; 4];
/// let buffer: Buffer<PodElement<Vertex>> = gpu.upload(PodElement::slice(&vertices))?;
/// gpu.dispatch("
///     struct Vertex { position: vec3<f32>, color: u32 }
///     @group(0) @binding(0) var<storage, read_write> vertices: array<Vertex>;
///     @compute @workgroup_size(1)
///     fn tint(@builtin(global_invocation_id) id: vec3u) { vertices[id.x].color = id.x; }
/// ", &[&buffer], 4)?;
/// buffer.download_into(PodElement::slice_mut(&mut vertices))?;
/// assert_eq!(vertices[3].color, 3);
/// assert_eq!(buffer.get(2)?.0.position, [1.0, 2.0, 3.0]);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
///
/// Zero-sized types do not compile:
///
/// ```compile_fail,E0080
/// # use scry_gpu::{Device, PodElement};
/// Device::open("cpu").and_then(|gpu| gpu.upload(&[PodElement(())]));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct PodElement<T>(pub T);

// SAFETY: `bytemuck::Pod` promises no padding or otherwise uninitialised bytes, that every pattern
// is valid, no interior mutability and no pointers; zero-sized types do not compile.
unsafe impl<T: bytemuck::Pod + Send + Sync> Element for PodElement<T> {
    const LAYOUT: ElementLayout = {
        assert!(size_of::<T>() > 0, "a type of no bytes cannot be the element of a buffer");
        ElementLayout::Opaque
    };
}

// SAFETY: the wrapper is transparent, and has no field but the value.
unsafe impl<T> bytemuck::TransparentWrapper<T> for PodElement<T> {}

impl<T: bytemuck::Pod> PodElement<T> {
    /// Returns values as elements, to upload or to write; nothing is copied.
    ///
    /// ```
    /// use scry_gpu::{Device, PodElement};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(gpu.upload(PodElement::slice(&[1u8, 2, 3]))?.len(), 3);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn slice(values: &[T]) -> &[Self] {
        bytemuck::TransparentWrapper::wrap_slice(values)
    }

    /// Returns values as elements, to download into; nothing is copied.
    ///
    /// ```
    /// use scry_gpu::{Device, PodElement};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let mut values = [0u8; 2];
    /// let buffer = gpu.upload(PodElement::slice(&[1u8, 2]))?;
    /// buffer.download_into(PodElement::slice_mut(&mut values))?;
    /// assert_eq!(values, [1, 2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn slice_mut(values: &mut [T]) -> &mut [Self] {
        bytemuck::TransparentWrapper::wrap_slice_mut(values)
    }
}
