//! Reading tensors, copying them between devices, and copying views.

use std::future::Future;

use scry_gpu::{Device, UntypedBuffer};

use super::Tensor;
use crate::element::{self, Element};
use crate::error::{Call, ErrorKind, Result};
use crate::runtime::Runtime;
use crate::shape::{Layout, check_count};
use crate::stored::Stored;

/// Reading and copying.
impl Tensor {
    /// Returns all elements in row-major order. Waits for the work that computes them.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4]], &gpu)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// let error = x.to_vec::<f32>().unwrap_err();
    /// assert!(error.to_string().contains("the elements are i32, not f32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the elements are of another type; [`ErrorKind::TooLarge`] for views
    /// of more than 2³² - 1 elements; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.read(Call::new("Tensor::to_vec"))
    }

    /// Returns all elements in row-major order, as [`to_vec`](Self::to_vec) does, without blocking
    /// a thread while the device computes them. The first copy of a strided view of an element type
    /// compiles a kernel when the function is called.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1.0f32, 2.0], &gpu)?;
    /// assert_eq!(x.exp()?.log()?.to_vec_async::<f32>().await?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[track_caller]
    pub fn to_vec_async<T: Element>(&self) -> impl Future<Output = Result<Vec<T>>> + use<T> {
        let call = Call::new("Tensor::to_vec_async");
        let part = self.stored(call).and_then(|stored| stored.part::<T>(call));
        async move {
            let bytes = match part? {
                None => Vec::new(),
                Some(part) => part.download_bytes_async().await.map_err(|error| call.gpu(error))?,
            };
            Ok(element::from_bytes(&bytes))
        }
    }

    /// Returns the only element. Waits for the work that computes it.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::new([1.5f32, 2.0], &gpu)?.sum(..)?.item::<f32>()?, 3.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there are several elements or none; otherwise as
    /// [`Tensor::to_vec`].
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        let call = Call::new("Tensor::item");
        let shape = self.shape();
        let several = || {
            let problem = format!("{shape} has {} elements, not 1", self.numel());
            let help = "select an element with `i`, or read all with `to_vec`";
            call.shape_error(&[shape], problem, help)
        };
        if self.numel() != 1 {
            return Err(several());
        }
        self.read(call)?.pop().ok_or_else(several)
    }

    /// Returns the same elements in row-major order without gaps: the tensor itself if it is
    /// [contiguous](Self::is_contiguous), else a copy. A graph's node is returned as it is.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4]], &gpu)?.t()?;
    /// assert!(!x.is_contiguous() && x.contiguous()?.is_contiguous());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for views of more than 2³² - 1 elements; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn contiguous(&self) -> Result<Self> {
        let call = Call::new("Tensor::contiguous");
        match self.node() {
            Some(_) => Ok(self.clone()),
            None if self.is_contiguous() => Ok(self.clone()),
            None => self.stored(call)?.contiguous(call).map(Self::from),
        }
    }

    /// Copies the tensor to another device, through the host; returns the tensor itself if it is
    /// on that device. Waits for the work that computes it.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let (first, second) = (Device::open("cpu")?, Device::open("cpu")?);
    /// let x = Tensor::new([1.0f32, 2.0], &first)?;
    /// assert_eq!(x.to(&second)?.add(1.0)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::contiguous`].
    #[track_caller]
    pub fn to(&self, device: &Device) -> Result<Self> {
        let call = Call::new("Tensor::to");
        let stored = self.stored(call)?;
        if self.device() == device {
            return Ok(self.clone());
        }
        // A repeated element stays one.
        let (source, layout) = match stored.layout.strides.iter().all(|stride| *stride == 0) {
            true if self.numel() > 0 && !self.dtype().is_quantized() => {
                let one =
                    Layout { shape: ().into(), strides: vec![], offset: stored.layout.offset };
                (stored.with_layout(one), Layout::repeated(self.shape().clone()))
            }
            _ => (stored.contiguous(call)?, Layout::contiguous(self.shape().clone())),
        };
        let mut bytes = source.bytes(call)?;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let runtime = Runtime::of(device).map_err(|error| call.gpu(error))?;
        let buffer = device.upload_bytes(None, &bytes).map_err(|error| call.gpu(error))?;
        Ok(Stored { runtime, buffer, layout, dtype: self.dtype() }.into())
    }

    /// Returns the elements for a call.
    pub(crate) fn read<T: Element>(&self, call: Call) -> Result<Vec<T>> {
        self.stored(call)?.read(call)
    }
}

impl Stored {
    /// Returns the elements in row-major order.
    pub(crate) fn read<T: Element>(&self, call: Call) -> Result<Vec<T>> {
        match self.part::<T>(call)? {
            None => Ok(Vec::new()),
            Some(part) => {
                let bytes = part.download_bytes().map_err(|error| call.gpu(error))?;
                Ok(element::from_bytes(&bytes))
            }
        }
    }

    /// Returns the bytes of the elements in row-major order, copied if necessary; `None` if there
    /// are none.
    fn part<T: Element>(&self, call: Call) -> Result<Option<UntypedBuffer>> {
        if T::DTYPE != self.dtype {
            let (own, asked) = (self.dtype, T::DTYPE);
            let help = match own.is_quantized() {
                true => "dequantise them first: `.cast(DType::F32)`".to_owned(),
                false => format!("read {own}, or convert them first: `.cast(DType::{asked:?})`"),
            };
            let problem = format!("the elements are {own}, not {asked}");
            return Err(call.error(ErrorKind::DType, problem, help));
        }
        self.contiguous(call)?.slice(call)
    }

    /// Downloads the bytes of contiguous elements.
    fn bytes(&self, call: Call) -> Result<Vec<u8>> {
        if self.dtype.is_quantized() {
            return self.buffer.download_bytes().map_err(|error| call.gpu(error));
        }
        let bytes = self.slice(call)?.map(|part| part.download_bytes());
        bytes.unwrap_or(Ok(Vec::new())).map_err(|error| call.gpu(error))
    }

    /// Returns the bytes of contiguous elements; `None` if there are none.
    fn slice(&self, call: Call) -> Result<Option<UntypedBuffer>> {
        let count = check_count(call, self.shape(), self.dtype)? as usize;
        if count == 0 {
            return Ok(None);
        }
        let size = self.dtype.size();
        let start = self.layout.offset as usize * size;
        let part = self.buffer.slice(start..start + count * size);
        part.map(Some).map_err(|error| call.gpu(error))
    }
}
