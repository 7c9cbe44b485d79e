//! Creating tensors.

use std::borrow::Cow;

use half::{bf16, f16};
use scry_gpu::Device;
use scry_gpu::kir::BinaryOp;

use super::Tensor;
use super::import::block_bytes;
use crate::dtype::{DType, ELEMENTS, FLOATS, NUMBERS};
use crate::element::{self, Element};
use crate::error::{Call, ErrorKind, Result};
use crate::expr::{Expression, Map};
use crate::runtime::Runtime;
use crate::scalar::{self, Scalar};
use crate::shape::{Layout, Shape, check_count, check_view};
use crate::stored::{Computation, Stored};
use crate::waiting::{Waiting, now};

/// Nested arrays of elements, for [`Tensor::new`].
///
/// ```
/// use scry_tensor::{Device, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([[[1i32, 2], [3, 4], [5, 6]]], &gpu)?;
/// assert_eq!(*x.shape(), [1, 3, 2]);
/// // A number is a tensor without axes.
/// assert_eq!(Tensor::new(2.5f32, &gpu)?.rank(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Nested {
    /// The type of the elements.
    type Element: Element;

    /// Returns the sizes, the outermost first.
    #[doc(hidden)]
    fn sizes() -> Vec<usize>;

    /// Appends the elements.
    #[doc(hidden)]
    fn append_to(&self, elements: &mut Vec<Self::Element>);
}

macro_rules! nested {
    ($($ty:ty),*) => {
        $(impl Nested for $ty {
            type Element = Self;

            fn sizes() -> Vec<usize> {
                Vec::new()
            }

            fn append_to(&self, elements: &mut Vec<Self>) {
                elements.push(*self);
            }
        })*
    };
}

nested!(f32, f16, bf16, i32, u32, bool, i64);

impl<T: Nested, const N: usize> Nested for [T; N] {
    type Element = T::Element;

    fn sizes() -> Vec<usize> {
        let mut sizes = T::sizes();
        sizes.insert(0, N);
        sizes
    }

    fn append_to(&self, elements: &mut Vec<T::Element>) {
        self.iter().for_each(|part| part.append_to(elements));
    }
}

/// Creating tensors.
impl Tensor {
    /// Copies a number, or nested arrays of numbers, to a device.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &gpu)?;
    /// assert_eq!((x.dtype(), x.shape().to_string()), (DType::I32, "[2, 3]".to_owned()));
    /// assert_eq!(Tensor::new(2.5f32, &gpu)?.rank(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    #[track_caller]
    pub fn new<T: Nested>(data: T, device: &Device) -> Result<Self> {
        nested(Call::new("Tensor::new"), data)?.now(device)
    }

    /// Copies elements in row-major order to a device. `i64` becomes `i32`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2], &gpu)?;
    /// assert_eq!(x.t()?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    ///
    /// let error = Tensor::from_slice(&[1i64 << 40], [1], &gpu).unwrap_err();
    /// assert!(error.to_string().contains("1099511627776 at position 0 is out of range for i32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the number of elements is not that of the shape;
    /// [`ErrorKind::Value`] for an `i64` beyond `i32`; [`ErrorKind::TooLarge`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn from_slice<T: Element>(
        data: &[T],
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Self> {
        upload(Call::new("Tensor::from_slice"), data, shape.into())?.now(device)
    }

    /// Copies quantised weights in GGUF's blocks to a device. Rows must be whole blocks.
    /// [`cast`](Tensor::cast) dequantises them.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let block = [0u8; 34]; // a scale of 0, and 32 weights of 8 bits
    /// let x = Tensor::from_blocks(&block, DType::Q8_0, [1, 32], &gpu)?;
    /// assert_eq!(x.cast(DType::F32)?.to_vec::<f32>()?, [0.0; 32]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if `dtype` is not quantised; [`ErrorKind::Shape`] if the last axis is
    /// not a multiple of the block length, or the number of bytes does not fit the shape.
    #[track_caller]
    pub fn from_blocks(
        bytes: &[u8],
        dtype: DType,
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Self> {
        blocks(Call::new("Tensor::from_blocks"), bytes, dtype, shape.into())?.now(device)
    }

    /// Returns a tensor whose elements are all equal. They share one element in memory.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::full([2, 2], 0.5, DType::F16, &gpu)?;
    /// assert_eq!(x.sum(..)?.cast(DType::F32)?.item::<f32>()?, 2.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] or [`ErrorKind::Value`] if the value does not fit the type.
    #[track_caller]
    pub fn full(
        shape: impl Into<Shape>,
        value: impl Into<Scalar>,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        filled(Call::new("Tensor::full"), shape.into(), value.into(), dtype, device)
    }

    /// Returns a tensor of zeros, or of `false`. They share one element in memory.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::zeros([3], DType::Bool, &gpu)?.to_vec::<bool>()?, [false; 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::full`].
    #[track_caller]
    pub fn zeros(shape: impl Into<Shape>, dtype: DType, device: &Device) -> Result<Self> {
        filled(Call::new("Tensor::zeros"), shape.into(), number(dtype, 0), dtype, device)
    }

    /// Returns a tensor of ones, or of `true`. They share one element in memory.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::ones([2], DType::U32, &gpu)?.to_vec::<u32>()?, [1; 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::full`].
    #[track_caller]
    pub fn ones(shape: impl Into<Shape>, dtype: DType, device: &Device) -> Result<Self> {
        filled(Call::new("Tensor::ones"), shape.into(), number(dtype, 1), dtype, device)
    }

    /// Returns the numbers from 0 up to, but not including, `end`, as NumPy's `arange(end)`.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::arange(4, DType::I32, &gpu)?.to_vec::<i32>()?, [0, 1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::arange_step`].
    #[track_caller]
    pub fn arange(end: impl Into<Scalar>, dtype: DType, device: &Device) -> Result<Self> {
        let call = Call::new("Tensor::arange");
        range(call, Scalar::Int(0), end.into(), Scalar::Int(1), dtype)?.now(device)
    }

    /// Returns the numbers `start + i * step` below `end`, or above it if `step` is negative.
    /// Floats are computed in `f64` and rounded once.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange_step(3, -3, -2, DType::I32, &gpu)?;
    /// assert_eq!(x.to_vec::<i32>()?, [3, 1, -1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the step is 0 or not finite, or a number does not fit the type;
    /// [`ErrorKind::DType`] if a float is given for integers.
    #[track_caller]
    pub fn arange_step(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        let call = Call::new("Tensor::arange_step");
        range(call, start.into(), end.into(), step.into(), dtype)?.now(device)
    }

    /// Returns `steps` floats at equal distances from `start` to `end`, both included. Computed in
    /// `f64` and rounded once.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::linspace(0.0, 1.0, 5, DType::F32, &gpu)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the type is not a float.
    #[track_caller]
    pub fn linspace(
        start: f64,
        end: f64,
        steps: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        between(Call::new("Tensor::linspace"), start, end, steps, dtype)?.now(device)
    }

    /// Returns the identity matrix with `n` rows.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::eye(2, DType::I32, &gpu)?.to_vec::<i32>()?, [1, 0, 0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for quantised types; [`ErrorKind::TooLarge`]; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn eye(n: usize, dtype: DType, device: &Device) -> Result<Self> {
        let call = Call::new("Tensor::eye");
        call.check_new_dtype(dtype, ELEMENTS)?;
        let runtime = Runtime::of(device).map_err(|error| call.gpu(error))?;
        let shape = [n, n].into();
        let (map, operands) = (identity(dtype), Vec::new());
        Computation { map: &map, shape, operands, gathered: None, arguments: &[] }
            .run(call, &runtime)
            .map(Self::from)
    }
}

/// Returns the map of an identity matrix.
fn identity(dtype: DType) -> Map {
    let mut e = Expression::default();
    let (row, column) = (e.coordinate(0), e.coordinate(1));
    let is_diagonal = e.binary(BinaryOp::Eq, row, column);
    e.finish(is_diagonal, dtype)
}

/// Returns a small number, or its bool.
fn number(dtype: DType, value: i64) -> Scalar {
    if dtype == DType::Bool { Scalar::Bool(value != 0) } else { Scalar::Int(value) }
}

/// Elements of a new tensor, as they are stored.
pub(super) struct Upload<'b> {
    pub(super) call: Call,
    pub(super) bytes: Cow<'b, [u8]>,
    pub(super) layout: Layout,
    pub(super) dtype: DType,
}

impl Upload<'_> {
    /// Copies the elements to a device.
    pub(super) async fn to(self, device: &Device, waiting: Waiting) -> Result<Tensor> {
        let Self { call, bytes, layout, dtype } = self;
        let runtime = Runtime::of(device).map_err(|error| call.gpu(error))?;
        let buffer = match waiting {
            Waiting::Blocking => device.upload_bytes(None, &bytes),
            Waiting::Awaiting => {
                device.upload_async(&bytes).await.and_then(|it| it.untyped().view_as(None))
            }
        };
        let buffer = buffer.map_err(|error| call.gpu(error))?;
        Ok(Stored { runtime, buffer, layout, dtype }.into())
    }

    /// Copies the elements to a device, and waits for room in the queue.
    pub(super) fn now(self, device: &Device) -> Result<Tensor> {
        now(self.to(device, Waiting::Blocking))
    }
}

/// Returns the elements of nested arrays.
pub(super) fn nested<T: Nested>(call: Call, data: T) -> Result<Upload<'static>> {
    let mut elements = Vec::new();
    data.append_to(&mut elements);
    upload(call, &elements, T::sizes().into())
}

/// Returns quantised weights.
pub(super) fn blocks(call: Call, bytes: &[u8], dtype: DType, shape: Shape) -> Result<Upload<'_>> {
    let expected = block_bytes(call, &shape, dtype)?;
    if bytes.len() != expected {
        let problem = format!("{} bytes are given, but {shape} needs {expected}", bytes.len());
        return Err(call.shape_error(&[&shape], problem, "check the shape and the type"));
    }
    Ok(Upload { call, bytes: bytes.into(), layout: Layout::contiguous(shape), dtype })
}

/// Returns elements to be copied to a device.
pub(super) fn upload<T: Element>(call: Call, data: &[T], shape: Shape) -> Result<Upload<'static>> {
    let count = check_count(call, &shape, T::DTYPE)? as usize;
    if data.len() != count {
        let problem = format!("{} elements are given, but {shape} has {count}", data.len());
        let help = "pass as many elements as the product of the sizes";
        return Err(call.shape_error(&[&shape], problem, help));
    }
    let bytes = element::to_bytes(data).map_err(|position| {
        let value = data[position].describe();
        call.error(
            ErrorKind::Value,
            format!("{value} at position {position} is out of range for {}", T::DTYPE),
            "tensors have no 64-bit integers: subtract an offset, or convert to f32 on the host",
        )
    })?;
    let (bytes, layout) = (bytes.into(), Layout::contiguous(shape));
    Ok(Upload { call, bytes, layout, dtype: T::DTYPE })
}

/// Creates a tensor of one element, repeated.
fn filled(
    call: Call,
    shape: Shape,
    value: Scalar,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    call.check_new_dtype(dtype, ELEMENTS)?;
    check_view(call, &shape)?;
    let bits = value.bits(call, dtype)?;
    let word = match (dtype, value) {
        (DType::F16, value) => scalar::to_f16(value.to_f64()).to_bits().into(),
        (DType::BF16, value) => scalar::to_bf16(value.to_f64()).to_bits().into(),
        _ => bits,
    };
    let runtime = Runtime::of(device).map_err(|error| call.gpu(error))?;
    Stored::repeated(call, &runtime, shape, dtype, word).map(Tensor::from)
}

/// Returns floats at equal distances, with both ends.
pub(super) fn between(
    call: Call,
    start: f64,
    end: f64,
    steps: usize,
    dtype: DType,
) -> Result<Upload<'static>> {
    call.check_new_dtype(dtype, FLOATS)?;
    check_count(call, &[steps].into(), dtype)?;
    let step = (end - start) / steps.saturating_sub(1).max(1) as f64;
    let number = |i| if i > 0 && i + 1 == steps { end } else { start + i as f64 * step };
    floats(call, (0..steps).map(number), dtype)
}

/// Returns numbers at equal distances.
pub(super) fn range(
    call: Call,
    start: Scalar,
    end: Scalar,
    step: Scalar,
    dtype: DType,
) -> Result<Upload<'static>> {
    call.check_new_dtype(dtype, NUMBERS)?;
    let numbers = [start, end, step].map(|scalar| match scalar {
        Scalar::Int(value) => Some(value as f64),
        Scalar::Float(value) => Some(value).filter(|_| dtype.is_float()),
        Scalar::Bool(_) => None,
    });
    let [Some(first), Some(last), Some(distance)] = numbers else {
        let problem = format!("{start}, {end} and {step} are not all numbers of type {dtype}");
        return Err(call.error(ErrorKind::DType, problem, "use integers, or a float type"));
    };
    let error = || {
        let problem = format!("cannot count from {start} to {end} in steps of {step}");
        call.error(ErrorKind::Value, problem, "use finite numbers, and a step other than 0")
    };
    if let (Scalar::Int(start), Scalar::Int(end), Scalar::Int(step)) = (start, end, step)
        && !dtype.is_float()
    {
        let (start, distance, step) =
            (start.into(), i128::from(end) - i128::from(start), step.into());
        return match step {
            0 => Err(error()),
            _ => integers(call, start, distance, step, dtype),
        };
    }
    let quotient = (last - first) / distance;
    if !quotient.is_finite() || !distance.is_finite() || distance == 0.0 {
        return Err(error());
    }
    let is_towards_end = last != first && (last > first) == (distance > 0.0);
    // The quotient of a small distance and a large step may be 0.
    let count = quotient.ceil().max(f64::from(u8::from(is_towards_end))) as usize;
    check_count(call, &[count].into(), dtype)?;
    floats(call, (0..count).map(|i| first + i as f64 * distance), dtype)
}

/// Returns the integers from `start` on, in steps, over a distance, if they are in
/// range.
fn integers(
    call: Call,
    start: i128,
    distance: i128,
    step: i128,
    dtype: DType,
) -> Result<Upload<'static>> {
    let count = (distance / step + i128::from(distance % step != 0)).max(0);
    let count = if (distance > 0) == (step > 0) { count } else { 0 };
    let shape = Shape::from([usize::try_from(count).unwrap_or(usize::MAX)]);
    check_count(call, &shape, dtype)?;
    let number = |i: i128| start + i * step;
    if count > 0 {
        // The largest and the smallest are at the ends. One beyond `i64` is out of range as well.
        for number in [number(0), number(count - 1)] {
            let number = number.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            Scalar::Int(number).bits(call, dtype)?;
        }
    }
    match dtype {
        DType::I32 => upload_all(call, (0..count).map(|i| number(i) as i32)),
        _ => upload_all(call, (0..count).map(|i| number(i) as u32)),
    }
}

/// Returns floats, each rounded once.
fn floats(call: Call, numbers: impl Iterator<Item = f64>, dtype: DType) -> Result<Upload<'static>> {
    let numbers = numbers.collect::<Vec<f64>>();
    // The largest and the smallest are at the ends.
    for number in numbers.first().into_iter().chain(numbers.last()) {
        Scalar::Float(*number).bits(call, dtype)?;
    }
    let numbers = numbers.into_iter();
    match dtype {
        DType::F16 => upload_all(call, numbers.map(scalar::to_f16)),
        DType::BF16 => upload_all(call, numbers.map(scalar::to_bf16)),
        _ => upload_all(call, numbers.map(|number| number as f32)),
    }
}

fn upload_all<T: Element>(
    call: Call,
    elements: impl Iterator<Item = T>,
) -> Result<Upload<'static>> {
    let elements: Vec<T> = elements.collect();
    upload(call, &elements, [elements.len()].into())
}
