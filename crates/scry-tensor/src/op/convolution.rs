//! Convolutions and pooling of images, `[batch, channels, height, width]`.

use scry_gpu::{Binding, UntypedBuffer};
use scry_kernels::{Conv2d, Kernels, Pool, Pool2d};

use super::rule::{Bound, Rule, count, typed};
use crate::dtype::DType;
use crate::error::{Call, Error, Result};
use crate::shape::Shape;

/// A convolution of images with weights `[out_channels, in_channels / groups, height, width]`, and
/// a bias `[out_channels]`, if there is a third operand.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Convolve {
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
}

impl Convolve {
    fn sizes(&self, x: &Shape, weights: &Shape) -> Conv2d {
        Conv2d {
            batch: x[0],
            in_channels: x[1],
            out_channels: weights[0],
            size: [x[2], x[3]],
            kernel: [weights[2], weights[3]],
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
            groups: self.groups,
        }
    }

    /// Returns what is wrong with the shapes, and what to do.
    fn problem(&self, x: &Shape, weights: &Shape, bias: Option<&Shape>) -> Option<(String, &str)> {
        if x.rank() != 4 || weights.rank() != 4 {
            let problem = format!("{x} and {weights} are not the shapes of images and weights");
            return Some((
                problem,
                "use [batch, in_channels, height, width], and weights [out_channels, \
                in_channels / groups, height, width]",
            ));
        }
        let Self { groups, .. } = self;
        if [self.stride, self.dilation].concat().contains(&0) || *groups == 0 {
            let problem = "a stride, a dilation or the number of groups is 0".to_owned();
            return Some((problem, "use numbers of at least 1"));
        }
        if !weights[0].is_multiple_of(*groups) || x[1] != weights[1].saturating_mul(*groups) {
            let problem = format!(
                "the channels do not fit: {} of {x}, weights {weights}, {groups} groups",
                x[1]
            );
            return Some((
                problem,
                "in_channels (axis 1 of the images) must be axis 1 of the weights times \
                groups, and groups must divide out_channels (axis 0 of the weights)",
            ));
        }
        if x[1..].contains(&0) {
            let problem = format!("images of {x} have no elements");
            return Some((problem, "only the number of images may be 0"));
        }
        if weights[2..].contains(&0) || self.sizes(x, weights).output_size().contains(&0) {
            let problem = format!("weights of {weights} do not fit into the padded images of {x}");
            return Some((problem, "add padding, or use smaller weights"));
        }
        let bias = bias.filter(|bias| ***bias != [weights[0]])?;
        let problem = format!("a bias of {bias} is not one element for {} channels", weights[0]);
        Some((problem, "pass a bias of the size of axis 0 of the weights"))
    }
}

impl Rule for Convolve {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let (x, weights) = (operands[0], operands[1]);
        if let Some((problem, help)) = self.problem(x, weights, operands.get(2).copied()) {
            return Err(call.shape_error(&[x, weights], problem, help));
        }
        let [height, width] = self.sizes(x, weights).output_size();
        Ok([x[0], weights[0], height, width].into())
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let out = result.view_as(operands[0].2.of_buffer())?;
        let buffers: Vec<UntypedBuffer> = operands.iter().map(typed).collect::<Result<_, _>>()?;
        let bias = buffers.get(2).map(|it| it as &dyn Binding);
        let sizes = self.sizes(&operands[0].1.shape, &operands[1].1.shape);
        library.conv2d(&buffers[0], &buffers[1], bias, &out, &sizes)
    }

    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        2 * count(result) * operands[1][1..].iter().map(|size| *size as u64).product::<u64>()
    }
}

/// What pooling computes of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PoolKind {
    Max,
    Average { count_include_pad: bool },
}

/// Maxima or averages of windows of images.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pooling {
    pub(crate) kind: PoolKind,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
}

impl Pooling {
    fn sizes(&self, x: &Shape) -> Pool2d {
        Pool2d {
            planes: x[..x.rank() - 2].iter().product(),
            size: [x[x.rank() - 2], x[x.rank() - 1]],
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
        }
    }

    fn error(&self, call: Call, x: &Shape) -> Option<Error> {
        let error = |problem: String, help: &str| Some(call.shape_error(&[x], problem, help));
        if x.rank() < 2 {
            return error(
                format!("{x} is not the shape of images"),
                "insert axes with `unsqueeze`",
            );
        }
        if [self.kernel, self.stride].concat().contains(&0) {
            return error("a size or a stride of the windows is 0".into(), "use at least 1");
        }
        if x[x.rank() - 2..].contains(&0) {
            return error(format!("images of {x} have no elements"), "pool larger images");
        }
        let (kernel, padding) = (self.kernel, self.padding);
        if padding[0] >= kernel[0] || padding[1] >= kernel[1] {
            let problem =
                format!("a padding of {padding:?} is not less than windows of {kernel:?}");
            return error(problem, "use less padding");
        }
        let does_not_fit = self.sizes(x).output_size().contains(&0);
        let problem = || format!("windows of {kernel:?} do not fit into the padded images of {x}");
        if does_not_fit { error(problem(), "use smaller windows") } else { None }
    }
}

impl Rule for Pooling {
    fn name(&self) -> &'static str {
        "pool2d"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let x = operands[0];
        if let Some(error) = self.error(call, x) {
            return Err(error);
        }
        Ok([&x[..x.rank() - 2], &self.sizes(x).output_size()].concat().into())
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let (x, out) = (typed(&operands[0])?, result.view_as(operands[0].2.of_buffer())?);
        let kind = match self.kind {
            PoolKind::Max => Pool::Max,
            PoolKind::Average { count_include_pad } => Pool::Average { count_include_pad },
        };
        library.pool2d(kind, &x, &out, &self.sizes(&operands[0].1.shape))
    }

    fn flops(&self, _: &[&Shape], result: &Shape) -> u64 {
        let [height, width] = self.kernel.map(|size| size as u64);
        count(result).saturating_mul(height.saturating_mul(width))
    }
}
