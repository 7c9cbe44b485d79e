//! Convolutions and pooling.

use super::reference::{Array, Case, Draw};
use super::{Apply, KernelSource, Operation};
use crate::dtype::{DType, FLOATS};
use crate::error::{Call, Result};
use crate::op::{Convolve, Join, Library, Op, Part, PoolKind, Pooling, View};
use crate::tensor::{Tensor, apply};

/// The options of [`Tensor::conv2d`]. Pairs are of height and width.
///
/// ```
/// let options = scry_tensor::Conv2d { padding: [1, 1], ..Default::default() };
/// assert_eq!(options.stride, [1, 1]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv2d {
    /// Stride: rows and columns between positions of the window. Default: 1.
    pub stride: [usize; 2],
    /// Zero padding on each side. Default: 0.
    pub padding: [usize; 2],
    /// Dilation: rows and columns between weights. Default: 1.
    pub dilation: [usize; 2],
    /// Groups of a grouped convolution; `in_channels` for a depthwise one. Default: 1.
    pub groups: usize,
}

impl Default for Conv2d {
    fn default() -> Self {
        Self { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1 }
    }
}

/// The options of [`Tensor::conv1d`].
///
/// ```
/// let options = scry_tensor::Conv1d { stride: 2, ..Default::default() };
/// assert_eq!(options.groups, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv1d {
    /// Stride: elements between positions of the window. Default: 1.
    pub stride: usize,
    /// Zero padding on each side. Default: 0.
    pub padding: usize,
    /// Dilation: elements between weights. Default: 1.
    pub dilation: usize,
    /// Groups of a grouped convolution; `in_channels` for a depthwise one. Default: 1.
    pub groups: usize,
}

impl Default for Conv1d {
    fn default() -> Self {
        Self { stride: 1, padding: 0, dilation: 1, groups: 1 }
    }
}

/// Convolutions and pooling.
impl Tensor {
    /// Returns the convolution of images `[batch, in_channels, height, width]` with weights
    /// `[out_channels, in_channels / groups, height, width]`. As in PyTorch it is a
    /// cross-correlation: weights are not flipped. A bias is a vector of `out_channels` elements.
    /// Accumulates in `f32`.
    ///
    /// ```
    /// use scry_tensor::{Conv2d, DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(9, DType::F32, &gpu)?.reshape([1, 1, 3, 3])?;
    /// let w = Tensor::ones([1, 1, 2, 2], DType::F32, &gpu)?;
    /// let y = x.conv2d(&w, None, &Conv2d::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [8.0, 12.0, 20.0, 24.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if the shapes, the groups and the options do
    /// not fit; [`ErrorKind::DType`](crate::ErrorKind::DType) if the types differ, or are not
    /// floats; [`ErrorKind::Device`](crate::ErrorKind::Device);
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn conv2d(&self, weight: &Self, bias: Option<&Self>, options: &Conv2d) -> Result<Self> {
        let Conv2d { stride, padding, dilation, groups } = *options;
        let convolve = Convolve { stride, padding, dilation, groups };
        self.convolved(Call::new("Tensor::conv2d"), weight, bias, convolve)
    }

    /// Returns the convolution of signals `[batch, in_channels, length]` with weights
    /// `[out_channels, in_channels / groups, length]`: [`conv2d`](Self::conv2d) of images of one
    /// row.
    ///
    /// ```
    /// use scry_tensor::{Conv1d, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[[1.0f32, 4.0, 9.0, 16.0]]], &gpu)?;
    /// let w = Tensor::new([[[-1.0f32, 1.0]]], &gpu)?;
    /// let y = x.conv1d(&w, None, &Conv1d::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`conv2d`](Self::conv2d).
    #[track_caller]
    pub fn conv1d(&self, weight: &Self, bias: Option<&Self>, options: &Conv1d) -> Result<Self> {
        let call = Call::new("Tensor::conv1d");
        if let Some(other) = [self, weight].into_iter().find(|it| it.rank() != 3) {
            let problem = format!("{} is not the shape of signals or weights", other.shape());
            let help = "use [batch, in_channels, length], and weights [out_channels, in_channels / \
                        groups, length]";
            return Err(call.shape_error(&[other.shape()], problem, help));
        }
        let Conv1d { stride, padding, dilation, groups } = *options;
        let convolve = Convolve {
            stride: [1, stride],
            padding: [0, padding],
            dilation: [1, dilation],
            groups,
        };
        let x = self.view(call, View::Unsqueeze(2))?;
        let y = x.convolved(call, &weight.view(call, View::Unsqueeze(2))?, bias, convolve)?;
        y.view(call, View::Squeeze(2))
    }

    /// Returns the two-dimensional convolution of an image with a kernel, both matrices, as SciPy's
    /// `convolve2d(x, kernel, mode="same")`: the kernel is flipped, the result has the shape of the
    /// image, and elements outside of the image are 0.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[0.0f32, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], &gpu)?;
    /// let kernel = Tensor::new([[1.0f32, 2.0, 3.0]], &gpu)?;
    /// assert_eq!(x.convolve2d(&kernel)?.i(1)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if they are not matrices, or the kernel is
    /// empty; otherwise as [`conv2d`](Self::conv2d).
    #[track_caller]
    pub fn convolve2d(&self, kernel: &Self) -> Result<Self> {
        let call = Call::new("Tensor::convolve2d");
        call.check_dtype(self.dtype(), FLOATS)?;
        let [height, width] = **kernel.shape() else {
            return Err(not_an_image(call, kernel));
        };
        if self.rank() != 2 {
            return Err(not_an_image(call, self));
        }
        let reversed = Part::Range { start: None, end: None, step: -1 };
        let weight = kernel.view(call, View::Index(vec![reversed; 2]))?;
        // The element in the middle of the flipped kernel is that of the result.
        let width_of = |size: usize| [size / 2, size.saturating_sub(1) / 2];
        let widths = vec![width_of(height), width_of(width)];
        let padded = apply(call, Op::Join(Join::Pad { widths, value: 0 }), &[self])?;
        let images = |x: &Self| x.view(call, View::Unsqueeze(0))?.view(call, View::Unsqueeze(0));
        let convolve = Convolve { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 };
        let y = images(&padded)?.convolved(call, &images(&weight)?, None, convolve)?;
        y.view(call, View::Squeeze(0))?.view(call, View::Squeeze(0))
    }

    fn convolved(
        &self,
        call: Call,
        weight: &Self,
        bias: Option<&Self>,
        convolve: Convolve,
    ) -> Result<Self> {
        call.check_dtype(self.dtype(), FLOATS)?;
        let operands: Vec<&Self> = [self, weight].into_iter().chain(bias).collect();
        operands.iter().try_for_each(|other| self.check_same_type(call, other))?;
        apply(call, Op::Library(Library::Convolve(convolve)), &operands)
    }

    /// Returns the largest element of each window of images `[…, height, width]`. The padding has
    /// no elements; NaN if an element is.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(16, DType::F32, &gpu)?.reshape([4, 4])?;
    /// let y = x.max_pool2d([2, 2], [2, 2], [0, 0])?;
    /// assert_eq!(y.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if windows are empty, do not fit the images,
    /// or are not larger than the padding; [`ErrorKind::DType`](crate::ErrorKind::DType) for other
    /// types than floats; [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn max_pool2d(
        &self,
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
    ) -> Result<Self> {
        let pooling = Pooling { kind: PoolKind::Max, kernel, stride, padding };
        self.pooled(Call::new("Tensor::max_pool2d"), pooling)
    }

    /// Returns the average of each window of images `[…, height, width]`, with the zeros of the
    /// padding, as PyTorch's default.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(4, DType::F32, &gpu)?.reshape([2, 2])?;
    /// assert_eq!(x.avg_pool2d([2, 2], [1, 1], [0, 0])?.to_vec::<f32>()?, [1.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`max_pool2d`](Self::max_pool2d).
    #[track_caller]
    pub fn avg_pool2d(
        &self,
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
    ) -> Result<Self> {
        let kind = PoolKind::Average { count_include_pad: true };
        let pooling = Pooling { kind, kernel, stride, padding };
        self.pooled(Call::new("Tensor::avg_pool2d"), pooling)
    }

    fn pooled(&self, call: Call, pooling: Pooling) -> Result<Self> {
        call.check_dtype(self.dtype(), FLOATS)?;
        apply(call, Op::Library(Library::Pooling(pooling)), &[self])
    }
}

fn not_an_image(call: Call, x: &Tensor) -> crate::Error {
    let problem = format!("{} is not the shape of a matrix", x.shape());
    call.shape_error(&[x.shape()], problem, "convolve stacks of images with `conv2d`")
}

/// Returns the table's row of a function of images.
const fn row(
    name: &'static str,
    summary: &'static str,
    kernel: &'static str,
    apply: fn(&mut Draw, DType) -> Case,
) -> Operation {
    let (types, tolerance, kernel) = (FLOATS, 1e-5, KernelSource::Library(kernel));
    Operation { name, summary, types, tolerance, kernel, apply: Apply::Case(apply) }
}

pub(super) const OPERATIONS: &[Operation] = &[
    row("conv2d", "2-D convolution, as PyTorch's", "conv2d", |draw, dtype| {
        conv_case(draw, dtype, true)
    }),
    row("conv1d", "1-D convolution, as PyTorch's", "conv1d", |draw, dtype| {
        conv_case(draw, dtype, false)
    }),
    row("convolve2d", "convolution of a matrix with a flipped kernel", "conv2d", |draw, dtype| {
        let sizes = [(); 4].map(|()| draw.from_to(1, 5));
        let (x, k) = (draw.numbers(dtype, &sizes[..2]), draw.numbers(dtype, &sizes[2..]));
        let [height, width, rows, columns] = sizes;
        let wanted = x.like(&[height, width], |at| {
            // Of the full convolution, the part in the middle.
            let full = [at[0] + (rows - 1) / 2, at[1] + (columns - 1) / 2];
            let mut sum = 0.0;
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |it| (row, it))) {
                let place = full[0].checked_sub(row).zip(full[1].checked_sub(column));
                if let Some((y, z)) = place.filter(|(y, z)| *y < height && *z < width) {
                    sum += x.at(&[y, z]) * k.at(&[row, column]);
                }
            }
            sum
        });
        Case::new(vec![x, k], wanted, |it| it[0].convolve2d(&it[1]))
    }),
    row("max_pool2d", "2-D max pooling", "pool2d", |draw, dtype| pool_case(draw, dtype, true)),
    row("avg_pool2d", "2-D average pooling", "pool2d", |draw, dtype| pool_case(draw, dtype, false)),
];

fn conv_case(draw: &mut Draw, dtype: DType, is_2d: bool) -> Case {
    let groups = draw.from_to(1, 2);
    let [batch, own, outputs] = [(); 3].map(|()| draw.from_to(1, 2));
    let (channels, outputs) = (own * groups, outputs * groups);
    let kernel = if is_2d { [(); 2].map(|()| draw.from_to(1, 3)) } else { [1, draw.from_to(1, 3)] };
    let [stride, dilation] = [(); 2].map(|()| [(); 2].map(|()| draw.from_to(1, 2)));
    let padding = if is_2d { [(); 2].map(|()| draw.below(3)) } else { [0, draw.below(3)] };
    let span = [0, 1].map(|n| dilation[n] * (kernel[n] - 1) + 1);
    let mut size = [0, 1].map(|n| span[n] + draw.below(5));
    if !is_2d {
        size[0] = 1;
    }
    let x = draw.numbers(dtype, &[batch, channels, size[0], size[1]]);
    let w = draw.numbers(dtype, &[outputs, own, kernel[0], kernel[1]]);
    let bias = draw.numbers(dtype, &[outputs]);
    let output = [0, 1].map(|n| (size[n] + 2 * padding[n] - span[n]) / stride[n] + 1);
    let wanted = x.like(&[batch, outputs, output[0], output[1]], |at| {
        let first = at[1] / (outputs / groups) * own;
        let mut sum = bias.values[at[1]];
        let _ = w.like(&[own, kernel[0], kernel[1]], |k| {
            let place = [0, 1]
                .map(|n| (at[n + 2] * stride[n] + k[n + 1] * dilation[n]).checked_sub(padding[n]));
            if let [Some(row), Some(column)] = place
                && row < size[0]
                && column < size[1]
            {
                let x = x.at(&[at[0], first + k[0], row, column]);
                sum += x * w.at(&[at[1], k[0], k[1], k[2]]);
            }
            0.0
        });
        sum
    });
    if is_2d {
        let options = Conv2d { stride, padding, dilation, groups };
        return Case::new(vec![x, w, bias], wanted, move |it| {
            it[0].conv2d(&it[1], Some(&it[2]), &options)
        });
    }
    let options = Conv1d { stride: stride[1], padding: padding[1], dilation: dilation[1], groups };
    let operands = vec![x.without(2), w.without(2), bias];
    Case::new(operands, wanted.without(2), move |it| it[0].conv1d(&it[1], Some(&it[2]), &options))
}

fn pool_case(draw: &mut Draw, dtype: DType, is_max: bool) -> Case {
    let [kernel, stride] = [(); 2].map(|()| [(); 2].map(|()| draw.from_to(1, 3)));
    let padding = kernel.map(|size| draw.below(size));
    let size = kernel.map(|size| size + draw.below(4));
    let shape = [&draw.shape(0, 2), &size[..]].concat();
    let x = draw.numbers(dtype, &shape);
    let output = [0, 1].map(|n| (size[n] + 2 * padding[n] - kernel[n]) / stride[n] + 1);
    let planes = shape.len() - 2;
    let wanted = x.like(&[&shape[..planes], &output].concat(), |at| {
        let mut window = Vec::new();
        let _ = Array::build(dtype, &kernel, |k| {
            let place = [0, 1].map(|n| (at[planes + n] * stride[n] + k[n]).checked_sub(padding[n]));
            if let [Some(row), Some(column)] = place
                && row < size[0]
                && column < size[1]
            {
                window.push(x.at(&[&at[..planes], &[row, column]].concat()));
            }
            0.0
        });
        match is_max {
            true => window.into_iter().fold(f64::NEG_INFINITY, f64::max),
            false => window.iter().sum::<f64>() / (kernel[0] * kernel[1]) as f64,
        }
    });
    Case::new(vec![x], wanted, move |it| match is_max {
        true => it[0].max_pool2d(kernel, stride, padding),
        false => it[0].avg_pool2d(kernel, stride, padding),
    })
}
