//! Async forms of functions that create tensors of numbers on the host.
//!
//! Arguments are checked, and numbers are captured, when a function is called; they are copied to
//! the device when its future is polled.

use scry_gpu::Device;

use super::Tensor;
use super::create::{Nested, Upload, between, blocks, nested, range, upload};
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Call, Result};
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::waiting::Waiting;

/// Creating tensors without blocking a thread.
impl Tensor {
    /// Async form of [`new`](Self::new).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new_async([[1.0f32, 2.0], [3.0, 4.0]], &gpu).await?;
    /// assert_eq!(*x.shape(), [2, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::new`].
    #[track_caller]
    pub fn new_async<T: Nested>(
        data: T,
        device: &Device,
    ) -> impl Future<Output = Result<Self>> + use<T> {
        uploading(nested(Call::new("Tensor::new_async"), data), device)
    }

    /// Async form of [`from_slice`](Self::from_slice).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::from_slice_async(&[1, 2, 3, 4], [2, 2], &gpu).await?;
    /// assert_eq!(x.to_vec_async::<i32>().await?, [1, 2, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    #[track_caller]
    pub fn from_slice_async<T: Element, S: Into<Shape>>(
        data: &[T],
        shape: S,
        device: &Device,
    ) -> impl Future<Output = Result<Self>> + use<T, S> {
        uploading(upload(Call::new("Tensor::from_slice_async"), data, shape.into()), device)
    }

    /// Async form of [`from_blocks`](Self::from_blocks).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::from_blocks_async(&[0; 34], DType::Q8_0, [1, 32], &gpu).await?;
    /// assert_eq!(x.cast(DType::F32)?.to_vec_async::<f32>().await?, [0.0; 32]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_blocks`].
    #[track_caller]
    pub fn from_blocks_async<S: Into<Shape>>(
        bytes: &[u8],
        dtype: DType,
        shape: S,
        device: &Device,
    ) -> impl Future<Output = Result<Self>> + use<S> {
        let blocks = blocks(Call::new("Tensor::from_blocks_async"), bytes, dtype, shape.into());
        let owned = blocks.map(|it| Upload { bytes: it.bytes.into_owned().into(), ..it });
        uploading(owned, device)
    }

    /// Async form of [`arange`](Self::arange).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange_async(4, DType::I32, &gpu).await?;
    /// assert_eq!(x.to_vec_async::<i32>().await?, [0, 1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::arange_step`].
    #[track_caller]
    pub fn arange_async<N: Into<Scalar>>(
        end: N,
        dtype: DType,
        device: &Device,
    ) -> impl Future<Output = Result<Self>> + use<N> {
        let call = Call::new("Tensor::arange_async");
        uploading(range(call, Scalar::Int(0), end.into(), Scalar::Int(1), dtype), device)
    }

    /// Async form of [`arange_step`](Self::arange_step).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange_step_async(3, -3, -2, DType::I32, &gpu).await?;
    /// assert_eq!(x.to_vec_async::<i32>().await?, [3, 1, -1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::arange_step`].
    #[track_caller]
    pub fn arange_step_async<A: Into<Scalar>, B: Into<Scalar>, C: Into<Scalar>>(
        start: A,
        end: B,
        step: C,
        dtype: DType,
        device: &Device,
    ) -> impl Future<Output = Result<Self>> + use<A, B, C> {
        let call = Call::new("Tensor::arange_step_async");
        uploading(range(call, start.into(), end.into(), step.into(), dtype), device)
    }

    /// Async form of [`linspace`](Self::linspace).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::linspace_async(0.0, 1.0, 3, DType::F32, &gpu).await?;
    /// assert_eq!(x.to_vec_async::<f32>().await?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::linspace`].
    #[track_caller]
    pub fn linspace_async(
        start: f64,
        end: f64,
        steps: usize,
        dtype: DType,
        device: &Device,
    ) -> impl Future<Output = Result<Self>> + use<> {
        uploading(between(Call::new("Tensor::linspace_async"), start, end, steps, dtype), device)
    }
}

/// Returns the future of an upload.
pub(super) fn uploading(
    upload: Result<Upload<'static>>,
    device: &Device,
) -> impl Future<Output = Result<Tensor>> + use<> {
    let device = device.clone();
    async move { upload?.to(&device, Waiting::Awaiting).await }
}
