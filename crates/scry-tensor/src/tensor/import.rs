//! Tensors of the elements of buffers, without copies.

use scry_gpu::{Binding, Device, GpuError, UntypedBuffer};

use super::Tensor;
use crate::dtype::{DType, NUMBERS};
use crate::error::{Call, ErrorKind, Result};
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape, check_count};
use crate::stored::{Stored, check_device};

/// Tensors of buffers.
impl Tensor {
    /// Returns a tensor of the elements of a buffer in row-major order, without a copy: `f32`,
    /// `f16`, `bf16`, `i32` or `u32`. The buffer may be longer than the shape.
    ///
    /// The tensor shares the memory: what is written to the buffer later changes the tensor, in the
    /// order in which work is submitted. Do not write to a buffer whose tensor is a parameter of a
    /// plan: results that depend on parameters alone are computed once. A slice must begin where
    /// buffers may be bound ([`binding_alignment`](scry_gpu::DeviceInfo::binding_alignment)), or
    /// operations on the tensor fail.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let buffer = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// let x = Tensor::from_buffer(&buffer, [2, 2], &gpu)?;
    /// buffer.write(&[5.0, 6.0, 7.0, 8.0])?;
    /// assert_eq!(x.t()?.to_vec::<f32>()?, [5.0, 7.0, 6.0, 8.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for a buffer without an element type, or of another one;
    /// [`ErrorKind::Shape`] if the shape has more elements than the buffer, and for `f16` and
    /// `bf16` if the bytes of the buffer are not a multiple of 4; [`ErrorKind::Device`] for a
    /// buffer of another device; [`ErrorKind::TooLarge`]; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn from_buffer(
        buffer: &dyn Binding,
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Self> {
        imported(Call::new("Tensor::from_buffer"), &buffer.to_untyped(), shape.into(), device)
    }

    /// Returns a tensor of quantised weights, whose blocks are in a buffer, without a copy. Rows
    /// must be whole blocks. For weights that are written to the device in parts; the buffer may be
    /// longer than the shape. Memory is shared as by [`Tensor::from_buffer`].
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let buffer = gpu.alloc_untyped(None, 2 * 34)?; // blocks of 34 bytes
    /// for row in [0..34, 34..68] {
    ///     buffer.slice(row)?.write_bytes(&[0; 34])?;
    /// }
    /// let x = Tensor::from_block_buffer(&buffer, DType::Q8_0, [2, 32], &gpu)?;
    /// assert_eq!(x.cast(DType::F32)?.to_vec::<f32>()?, [0.0; 64]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if `dtype` is not quantised; [`ErrorKind::Shape`] if the last axis is
    /// not a multiple of the block length, or the buffer has fewer bytes than the shape needs;
    /// [`ErrorKind::Device`] for a buffer of another device; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn from_block_buffer(
        buffer: &dyn Binding,
        dtype: DType,
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Self> {
        let call = Call::new("Tensor::from_block_buffer");
        let (shape, buffer) = (shape.into(), buffer.to_untyped());
        let expected = block_bytes(call, &shape, dtype)? as u64;
        let bytes = buffer.byte_size();
        if bytes < expected {
            let problem = format!("the buffer has {bytes} bytes, but {shape} needs {expected}");
            return Err(call.shape_error(&[&shape], problem, block_help(dtype)));
        }
        on_device(call, &buffer, shape, dtype, device)
    }
}

/// Returns the help for a number of bytes that does not match the shape of quantised weights.
fn block_help(dtype: DType) -> String {
    match dtype.block_format() {
        Some(format) => {
            let (weights, bytes) = (format.block_len(), format.block_bytes());
            format!(
                "a block of {dtype} has {weights} weights in {bytes} bytes: check shape and type"
            )
        }
        None => "check the shape and the type".to_owned(),
    }
}

/// Returns the size in bytes of quantised weights of a shape.
pub(super) fn block_bytes(call: Call, shape: &Shape, dtype: DType) -> Result<usize> {
    let Some(format) = dtype.block_format() else {
        let problem = format!("{dtype} is not a type of quantised weights");
        return Err(call.error(ErrorKind::DType, problem, "use `Tensor::from_slice`"));
    };
    let count = check_count(call, shape, DType::Bool)? as usize;
    let block = format.block_len();
    if !shape.last().is_some_and(|last| last.is_multiple_of(block)) {
        let problem = format!("rows of {shape} are not whole blocks of {block} weights");
        return Err(call.shape_error(&[shape], problem, "pad the rows, or use another type"));
    }
    Ok(count / block * format.block_bytes())
}

/// Joins quantised weights in memory along their first axis, by copies of their blocks.
pub(crate) fn join_blocks(call: Call, tensors: &[&Tensor]) -> Result<Tensor> {
    let first = tensors[0].stored(call)?;
    let mut shape = first.shape().clone();
    let mut parts = Vec::with_capacity(tensors.len());
    let mut rows = 0;
    for tensor in tensors {
        let stored = tensor.stored(call)?;
        check_device(call, &first.runtime, &stored.runtime)?;
        let other = stored.shape();
        if stored.dtype != first.dtype || !stored.is_packed() {
            let problem = format!("cannot join {} and {} weights", first.dtype, stored.dtype);
            return Err(call.error(ErrorKind::DType, problem, "convert them to floats: `cast`"));
        }
        if other.rank() != shape.rank() || other.rank() < 2 || other[1..] != shape[1..] {
            let problem = format!("blocks of {shape} and {other} cannot be joined along axis 0");
            let help = "other sizes must be equal";
            return Err(call.shape_error(&[&shape, other], problem, help));
        }
        rows += other[0];
        parts.push((stored, block_bytes(call, other, stored.dtype)?));
    }
    let mut sizes = shape.to_vec();
    sizes[0] = rows;
    shape = sizes.into();
    let total = block_bytes(call, &shape, first.dtype)?;
    let copied = || -> scry_gpu::Result<UntypedBuffer> {
        let device = first.runtime.device();
        let all = first.runtime.allocate(total.next_multiple_of(4))?;
        let mut batch = device.batch();
        let mut start = 0;
        for (stored, bytes) in parts.iter().filter(|(_, bytes)| *bytes > 0) {
            let from = stored.buffer.view_as(None)?.slice(..*bytes)?;
            batch.copy(&from, &all.slice(start..start + bytes)?)?;
            start += bytes;
        }
        drop(batch.submit_async()?);
        Ok(all)
    };
    let buffer = copied().map_err(|error| call.gpu(error))?;
    let layout = Layout::contiguous(shape);
    Ok(Stored { runtime: first.runtime.clone(), buffer, layout, dtype: first.dtype }.into())
}

/// Creates a tensor of the elements of a buffer.
fn imported(call: Call, buffer: &UntypedBuffer, shape: Shape, device: &Device) -> Result<Tensor> {
    let dtype =
        buffer.dtype().and_then(|own| NUMBERS.iter().find(|it| it.of_buffer() == Some(own)));
    let Some(dtype) = dtype.copied() else {
        let own =
            buffer.dtype().map_or("no element type".to_owned(), |own| format!("{own} elements"));
        let names: Vec<&str> = NUMBERS.iter().map(|dtype| dtype.name()).collect();
        let help = format!("use a buffer of {}, or `view_as` one of them", names.join(", "));
        return Err(call.error(ErrorKind::DType, format!("the buffer has {own}"), help));
    };
    let count = check_count(call, &shape, dtype)? as usize;
    if count > buffer.len() {
        let problem = format!("the buffer has {} elements, but {shape} has {count}", buffer.len());
        return Err(call.shape_error(&[&shape], problem, "use a smaller shape"));
    }
    let bytes = buffer.byte_size();
    if !bytes.is_multiple_of(4) {
        let problem = format!("the buffer has {bytes} bytes, which are not a multiple of 4");
        let help = "allocate a buffer of an even number of elements; the shape may be smaller";
        return Err(call.shape_error(&[&shape], problem, help));
    }
    on_device(call, buffer, shape, dtype, device)
}

/// Creates a tensor of a buffer, which must be of the device and as long as the shape.
fn on_device(
    call: Call,
    buffer: &UntypedBuffer,
    shape: Shape,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let runtime = Runtime::of(device).map_err(|error| call.gpu(error))?;
    let untyped = buffer.view_as(None).map_err(|error| call.gpu(error))?;
    // Recorded work checks the device; it is never submitted.
    match device.batch().fill(&untyped, 0) {
        Ok(_) => {}
        Err(GpuError::WrongDevice(_)) => {
            let problem =
                format!("the buffer is not on {}, or of a device opened separately", device.name());
            let help = "pass the device that allocated the buffer";
            return Err(call.error(ErrorKind::Device, problem, help));
        }
        Err(error) => return Err(call.gpu(error)),
    }
    Ok(Stored { runtime, buffer: untyped, layout: Layout::contiguous(shape), dtype }.into())
}
