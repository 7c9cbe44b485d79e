//! Reading tensors, copying them between devices, and copying views.

use std::future::Future;

use scry_gpu::{Device, UntypedBuffer};

use super::Tensor;
use super::create::Upload;
use crate::element::{self, Element};
use crate::error::{Call, ErrorKind, Result};
use crate::shape::{Layout, check_count};
use crate::stored::Stored;
use crate::waiting::{Waiting, now};

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
    #[doc(alias("numpy", "tolist", "cpu"))]
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let call = Call::new("Tensor::to_vec");
        self.stored(call)?.read(call)
    }

    /// Async form of [`to_vec`](Self::to_vec): reads the elements after all work that was submitted
    /// before the future is first polled.
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
        let stored = self.stored(call).cloned();
        async move { stored?.read_by(call, Waiting::Awaiting).await }
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
        now(self.only(Call::new("Tensor::item"), Waiting::Blocking))
    }

    /// Async form of [`item`](Self::item).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::new([1.5f32, 2.0], &gpu)?.sum(..)?.item_async::<f32>().await?, 3.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::item`].
    #[track_caller]
    pub fn item_async<T: Element>(&self) -> impl Future<Output = Result<T>> + use<T> {
        let (call, tensor) = (Call::new("Tensor::item_async"), self.clone());
        async move { tensor.only(call, Waiting::Awaiting).await }
    }

    /// Returns the only element.
    async fn only<T: Element>(&self, call: Call, waiting: Waiting) -> Result<T> {
        let several = || {
            let shape = self.shape();
            let problem = format!("{shape} has {} elements, not 1", self.numel());
            let help = "select an element with `i`, or read all with `to_vec`";
            call.shape_error(&[shape], problem, help)
        };
        if self.numel() != 1 {
            return Err(several());
        }
        self.stored(call)?.read_by(call, waiting).await?.pop().ok_or_else(several)
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
    #[doc(alias("to_device", "cuda"))]
    #[track_caller]
    pub fn to(&self, device: &Device) -> Result<Self> {
        now(self.on(Call::new("Tensor::to"), device, Waiting::Blocking))
    }

    /// Async form of [`to`](Self::to).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let (first, second) = (Device::open("cpu")?, Device::open("cpu")?);
    /// let x = Tensor::new([1.0f32, 2.0], &first)?.to_async(&second).await?;
    /// assert_eq!(x.add(1.0)?.to_vec_async::<f32>().await?, [2.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to`].
    #[track_caller]
    pub fn to_async(&self, device: &Device) -> impl Future<Output = Result<Self>> + use<> {
        let (call, tensor, device) = (Call::new("Tensor::to_async"), self.clone(), device.clone());
        async move { tensor.on(call, &device, Waiting::Awaiting).await }
    }

    async fn on(&self, call: Call, device: &Device, waiting: Waiting) -> Result<Self> {
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
            _ => {
                let packed = stored.contiguous_by(call, waiting).await?;
                (packed, Layout::contiguous(self.shape().clone()))
            }
        };
        let mut bytes = source.bytes(call, waiting).await?;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Upload { call, bytes: bytes.into(), layout, dtype: self.dtype() }.to(device, waiting).await
    }
}

impl Stored {
    /// Returns the elements in row-major order.
    pub(crate) fn read<T: Element>(&self, call: Call) -> Result<Vec<T>> {
        now(self.read_by(call, Waiting::Blocking))
    }

    /// Returns the elements in row-major order.
    pub(crate) async fn read_by<T: Element>(&self, call: Call, waiting: Waiting) -> Result<Vec<T>> {
        self.check_element::<T>(call)?;
        let packed = match self.contiguous_by(call, waiting).await {
            // A view that no launch copies, because each part is all over a large buffer.
            Err(error) if error.kind() == ErrorKind::TooLarge => {
                check_count(call, self.shape(), self.dtype)?;
                let bytes = waiting.download(call, &self.buffer).await?;
                return Ok(element::from_bytes(&self.gathered(&bytes)));
            }
            packed => packed?,
        };
        match packed.slice(call)? {
            None => Ok(Vec::new()),
            Some(part) => Ok(element::from_bytes(&waiting.download(call, &part).await?)),
        }
    }

    /// Returns the bytes of the elements in row-major order, of those of the whole buffer.
    fn gathered(&self, bytes: &[u8]) -> Vec<u8> {
        let size = self.dtype.size();
        let axes = self.shape().iter().zip(&self.layout.strides);
        let starts = axes.fold(vec![self.layout.offset], |starts, (count, stride)| {
            let along = |start: i64| (0..*count as i64).map(move |at| start + at * stride);
            starts.into_iter().flat_map(along).collect()
        });
        let element = |start: i64| &bytes[start as usize * size..][..size];
        starts.into_iter().flat_map(element).copied().collect()
    }

    /// Returns the same elements in row-major order without gaps, copied if necessary.
    async fn contiguous_by(&self, call: Call, waiting: Waiting) -> Result<Self> {
        if self.needs_no_copy() {
            return Ok(self.clone());
        }
        let source = self.clone();
        waiting.compile(call, self.runtime.device(), move || source.copied(call)).await
    }

    /// Checks that the elements are read as what they are.
    fn check_element<T: Element>(&self, call: Call) -> Result<()> {
        if T::DTYPE != self.dtype {
            let (own, asked) = (self.dtype, T::DTYPE);
            let help = match own.is_quantized() {
                true => "dequantise them first: `.cast(DType::F32)`".to_owned(),
                false => format!("read {own}, or convert them first: `.cast(DType::{asked:?})`"),
            };
            let problem = format!("the elements are {own}, not {asked}");
            return Err(call.error(ErrorKind::DType, problem, help));
        }
        Ok(())
    }

    /// Downloads the bytes of contiguous elements.
    async fn bytes(&self, call: Call, waiting: Waiting) -> Result<Vec<u8>> {
        if self.dtype.is_quantized() {
            return waiting.download(call, &self.buffer).await;
        }
        match self.slice(call)? {
            None => Ok(Vec::new()),
            Some(part) => waiting.download(call, &part).await,
        }
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
