//! Conversion from and to arrays of the crate `ndarray` (feature `ndarray`).

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};
use scry_gpu::Device;

use super::Tensor;
use super::create::upload;
use super::futures::uploading;
use crate::element::Element;
use crate::error::{Call, Result};
use crate::shape::Shape;
use crate::waiting::Waiting;

/// Arrays of the crate `ndarray`.
impl Tensor {
    /// Copies an array of any layout to a device.
    ///
    /// ```
    /// use ndarray::array;
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::from_ndarray(&array![[1.0f32, 2.0], [3.0, 4.0]].t(), &gpu)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    #[cfg_attr(docsrs, doc(cfg(feature = "ndarray")))]
    #[track_caller]
    pub fn from_ndarray<T, S, D>(array: &ArrayBase<S, D>, device: &Device) -> Result<Self>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        let call = Call::new("Tensor::from_ndarray");
        let elements: Vec<T> = array.iter().copied().collect();
        upload(call, &elements, array.shape().into())?.now(device)
    }

    /// Async form of [`from_ndarray`](Self::from_ndarray).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use ndarray::array;
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::from_ndarray_async(&array![1.0f32, 2.0], &gpu).await?;
    /// assert_eq!(x.to_vec_async::<f32>().await?, [1.0, 2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    #[cfg_attr(docsrs, doc(cfg(feature = "ndarray")))]
    #[track_caller]
    pub fn from_ndarray_async<T, S, D>(
        array: &ArrayBase<S, D>,
        device: &Device,
    ) -> impl Future<Output = Result<Self>> + use<T, S, D>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        let call = Call::new("Tensor::from_ndarray_async");
        let elements: Vec<T> = array.iter().copied().collect();
        uploading(upload(call, &elements, array.shape().into()), device)
    }

    /// Returns the elements as an array. Waits for the work that computes them.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4]], &gpu)?.to_ndarray::<i32>()?;
    /// assert_eq!(x[[1, 0]], 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[cfg_attr(docsrs, doc(cfg(feature = "ndarray")))]
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let call = Call::new("Tensor::to_ndarray");
        array(call, self.shape(), self.stored(call)?.read(call)?)
    }

    /// Async form of [`to_ndarray`](Self::to_ndarray).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4]], &gpu)?.to_ndarray_async::<i32>().await?;
    /// assert_eq!(x[[1, 0]], 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[cfg_attr(docsrs, doc(cfg(feature = "ndarray")))]
    #[track_caller]
    pub fn to_ndarray_async<T: Element>(&self) -> impl Future<Output = Result<ArrayD<T>>> + use<T> {
        let (call, tensor) = (Call::new("Tensor::to_ndarray_async"), self.clone());
        async move {
            let elements = tensor.stored(call)?.read_by(call, Waiting::Awaiting).await?;
            array(call, tensor.shape(), elements)
        }
    }
}

/// Returns elements as an array.
fn array<T>(call: Call, shape: &Shape, elements: Vec<T>) -> Result<ArrayD<T>> {
    ArrayD::from_shape_vec(IxDyn(shape), elements).map_err(|error| {
        let problem = format!("{shape} is no shape of an array: {error}");
        call.shape_error(&[shape], problem, "use `to_vec`")
    })
}
