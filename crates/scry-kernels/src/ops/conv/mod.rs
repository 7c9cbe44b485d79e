//! Convolutions.

mod host;
mod tiling;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result};

use self::tiling::Tiling;
use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// The sizes of a two-dimensional convolution, see [`Kernels::conv2d`]. Pairs are of height and
/// width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv2d {
    /// Images.
    pub batch: usize,
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the output.
    pub out_channels: usize,
    /// Height and width of the input.
    pub size: [usize; 2],
    /// Height and width of the kernels.
    pub kernel: [usize; 2],
    /// Rows and columns from one position of the kernel to the next.
    pub stride: [usize; 2],
    /// Rows and columns of zeros on each side of the input.
    pub padding: [usize; 2],
    /// Rows and columns of the input from one element of the kernel to the next.
    pub dilation: [usize; 2],
    /// Groups of channels: output channels depend only on the input channels of their group.
    pub groups: usize,
}

impl Conv2d {
    /// Returns a convolution of one image with stride 1, without padding, dilation and groups.
    ///
    /// ```
    /// use scry_kernels::Conv2d;
    ///
    /// let conv = Conv2d { padding: [1, 1], ..Conv2d::new([3, 8], [1080, 1920], [3, 3]) };
    /// assert_eq!(conv.output_size(), [1080, 1920]);
    /// ```
    #[must_use]
    pub const fn new(channels: [usize; 2], size: [usize; 2], kernel: [usize; 2]) -> Self {
        Self {
            batch: 1,
            in_channels: channels[0],
            out_channels: channels[1],
            size,
            kernel,
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            groups: 1,
        }
    }

    /// Returns height and width of the output: the positions at which the kernel is inside of the
    /// padded input. 0 if there is none, and for invalid sizes.
    #[must_use]
    pub const fn output_size(&self) -> [usize; 2] {
        [self.output_len(0), self.output_len(1)]
    }

    const fn output_len(&self, axis: usize) -> usize {
        let padded = self.size[axis].saturating_add(self.padding[axis].saturating_mul(2));
        let span = self.dilation[axis].saturating_mul(self.kernel[axis].saturating_sub(1));
        match (padded.checked_sub(span), self.stride[axis]) {
            (Some(rest @ 1..), stride @ 1..) => (rest - 1) / stride + 1,
            _ => 0,
        }
    }
}

/// The sizes of a one-dimensional convolution, see [`Kernels::conv1d`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv1d {
    /// Signals.
    pub batch: usize,
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the output.
    pub out_channels: usize,
    /// Length of the input.
    pub length: usize,
    /// Length of the kernels.
    pub kernel: usize,
    /// Elements from one position of the kernel to the next.
    pub stride: usize,
    /// Zeros on each side of the input.
    pub padding: usize,
    /// Elements of the input from one element of the kernel to the next.
    pub dilation: usize,
    /// Groups of channels: output channels depend only on the input channels of their group.
    pub groups: usize,
}

impl Conv1d {
    /// Returns a convolution of one signal with stride 1, without padding, dilation and groups.
    ///
    /// ```
    /// use scry_kernels::Conv1d;
    ///
    /// let conv = Conv1d { stride: 2, ..Conv1d::new([1, 1], 101, 5) };
    /// assert_eq!(conv.output_length(), 49);
    /// ```
    #[must_use]
    pub const fn new(channels: [usize; 2], length: usize, kernel: usize) -> Self {
        Self {
            batch: 1,
            in_channels: channels[0],
            out_channels: channels[1],
            length,
            kernel,
            stride: 1,
            padding: 0,
            dilation: 1,
            groups: 1,
        }
    }

    /// Returns the length of the output, as [`Conv2d::output_size`].
    #[must_use]
    pub const fn output_length(&self) -> usize {
        self.as_2d().output_size()[1]
    }

    /// Returns the convolution of images of one row.
    const fn as_2d(&self) -> Conv2d {
        Conv2d {
            batch: self.batch,
            in_channels: self.in_channels,
            out_channels: self.out_channels,
            size: [1, self.length],
            kernel: [1, self.kernel],
            stride: [1, self.stride],
            padding: [0, self.padding],
            dilation: [1, self.dilation],
            groups: self.groups,
        }
    }
}

/// A convolution with its element type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Convolution {
    function: &'static str,
    conv: Conv2d,
    has_bias: bool,
    dtype: DType,
}

/// Convolutions.
impl Kernels {
    /// Prepares a two-dimensional convolution, as neural networks define it (cross-correlation: the
    /// kernel is not flipped). All arrays are row-major without gaps, of `f32`, `f16` or `bf16`:
    /// `x` is batch × in_channels × height × width, `weights` out_channels × (in_channels / groups)
    /// × kernel height × kernel width, `bias`, if there is one, out_channels, and `y`
    /// batch × out_channels × [output height × output width](Conv2d::output_size). Sums are `f32`,
    /// rounded once at the end. Buffers may be longer.
    ///
    /// Weights are multiplied with the zeros of the padding too: infinite ones become NaN there.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Conv2d, Kernels};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 × 3
    /// let weights = gpu.upload(&[1.0f32, 0.0, 0.0, 10.0])?; // 2 × 2
    /// let y = gpu.alloc::<f32>(2)?;
    /// let conv = Conv2d::new([1, 1], [2, 3], [2, 2]);
    /// Kernels::new(&gpu)?.conv2d(&x, &weights, None, &y, &conv)?.run()?;
    /// assert_eq!(y.download()?, [51.0, 62.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) if a stride, a dilation, a size of the
    /// kernel or the number of groups is 0, if the groups do not divide the channels, if the kernel
    /// exceeds the padded input, and for buffers that are too short, of another type, or that
    /// overlap with `y`; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device
    /// lacks the element type, or if there are more than 2^32 - 1 elements.
    pub fn conv2d(
        &self,
        x: &dyn Binding,
        weights: &dyn Binding,
        bias: Option<&dyn Binding>,
        y: &dyn Binding,
        conv: &Conv2d,
    ) -> Result<Op> {
        self.convolution("Kernels::conv2d", [x, weights, y], bias, conv)
    }

    /// Prepares a one-dimensional convolution: [`Kernels::conv2d`] of images with one row. `x` is
    /// batch × in_channels × length, `weights` out_channels × (in_channels / groups) × kernel, and
    /// `y` batch × out_channels × [output length](Conv1d::output_length).
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Conv1d, Kernels};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 4.0, 9.0, 16.0])?;
    /// let weights = gpu.upload(&[-1.0f32, 1.0])?;
    /// let y = gpu.alloc::<f32>(3)?;
    /// let conv = Conv1d::new([1, 1], 4, 2);
    /// Kernels::new(&gpu)?.conv1d(&x, &weights, None, &y, &conv)?.run()?;
    /// assert_eq!(y.download()?, [3.0, 5.0, 7.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::conv2d`].
    pub fn conv1d(
        &self,
        x: &dyn Binding,
        weights: &dyn Binding,
        bias: Option<&dyn Binding>,
        y: &dyn Binding,
        conv: &Conv1d,
    ) -> Result<Op> {
        self.convolution("Kernels::conv1d", [x, weights, y], bias, &conv.as_2d())
    }

    fn convolution(
        &self,
        function: &'static str,
        [x, weights, y]: [&dyn Binding; 3],
        bias: Option<&dyn Binding>,
        conv: &Conv2d,
    ) -> Result<Op> {
        let call = Call { function: function.into(), sizes: sizes(function, conv) };
        let dtype = call.dtype("x", x, &FLOATS)?;
        check(&call, conv)?;
        let it = Convolution { function, conv: *conv, has_bias: bias.is_some(), dtype };
        let buffers: Vec<_> = [x, weights].into_iter().chain(bias).chain([y]).collect();
        self.op(it, &buffers)
    }
}

fn sizes(function: &str, conv: &Conv2d) -> Vec<(&'static str, u64)> {
    let channels = [
        ("batch", conv.batch),
        ("in_channels", conv.in_channels),
        ("out_channels", conv.out_channels),
    ];
    let axes = match function {
        "Kernels::conv1d" => vec![("length", conv.size[1]), ("kernel", conv.kernel[1])],
        _ => vec![
            ("height", conv.size[0]),
            ("width", conv.size[1]),
            ("kernel height", conv.kernel[0]),
            ("kernel width", conv.kernel[1]),
        ],
    };
    channels.into_iter().chain(axes).map(|(name, size)| (name, size as u64)).collect()
}

/// Checks the sizes of a convolution.
fn check(call: &Call, conv: &Conv2d) -> Result<()> {
    let positive = [
        ("stride", conv.stride),
        ("dilation", conv.dilation),
        ("kernel", conv.kernel),
        ("groups", [conv.groups, 1]),
    ];
    for (name, values) in positive {
        if values.contains(&0) {
            let help = "pass at least 1";
            return Err(call.argument_error(format!("`{name}`"), "is 0", help));
        }
    }
    let Conv2d { groups, in_channels, out_channels, .. } = *conv;
    if !in_channels.is_multiple_of(groups) || !out_channels.is_multiple_of(groups) {
        return Err(call.argument_error(
            "`groups`",
            format!(
                "is {groups}, but there are {in_channels} input and {out_channels} output \
                     channels"
            ),
            "pass a divisor of both",
        ));
    }
    if conv.output_size().contains(&0) {
        return Err(call.argument_error(
            "`kernel`",
            "exceeds the padded input",
            "pass a smaller kernel or dilation, or more padding",
        ));
    }
    check_padding(call, conv.size, conv.padding)?;
    let product = |what: &str, factors: &[usize]| {
        let factors: Vec<_> = factors.iter().map(|size| *size as u64).collect();
        call.product(what, &factors)
    };
    let [out_height, out_width] = conv.output_size();
    product("`x`", &[conv.batch, in_channels, conv.size[0], conv.size[1]])?;
    product("`weights`", &[out_channels, in_channels, conv.kernel[0], conv.kernel[1]])?;
    product("`y`", &[conv.batch, out_channels, out_height, out_width])?;
    Ok(())
}

/// Checks that rows and columns of the padded input have 32-bit numbers.
pub(super) fn check_padding(call: &Call, size: [usize; 2], padding: [usize; 2]) -> Result<()> {
    let padded = |(size, padding): (usize, usize)| padding.saturating_mul(2).saturating_add(size);
    if size.into_iter().zip(padding).map(padded).all(|size| size <= u32::MAX as usize) {
        return Ok(());
    }
    Err(call.argument_error(
        "the padded input",
        "has more than 2^32 - 1 rows or columns",
        "pass less padding",
    ))
}

impl Operation for Convolution {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        sizes(self.function, &self.conv)
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let [x, weights, y] = self.lens();
        let bias = self.conv.out_channels as u64;
        let bias = self.has_bias.then(|| arguments::read("bias", self.dtype, bias));
        let inputs =
            [arguments::read("x", self.dtype, x), arguments::read("weights", self.dtype, weights)];
        inputs.into_iter().chain(bias).chain([arguments::write("y", self.dtype, y)]).collect()
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                crate::host::variant(host::prepare),
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: Convolution::obstacle,
                    suits: |_, _| true,
                    prepare: |it, preparation| {
                        let launch = match Tiling::of(&it.conv) {
                            Some(tiling) => tiles(it, &tiling, preparation),
                            None => direct(it, preparation),
                        };
                        Ok(vec![launch?])
                    },
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.lens()[2] == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}

impl Convolution {
    /// Returns why WGSL cannot compute it; `None` if it can.
    fn obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels).or_else(|| elements::too_long(&self.lens()))
    }

    /// Returns the elements of `x`, of the weights, and of `y`.
    fn lens(&self) -> [u64; 3] {
        let conv = &self.conv;
        let product = |factors: &[usize]| factors.iter().map(|size| *size as u64).product();
        let [out_height, out_width] = conv.output_size();
        let group = conv.in_channels / conv.groups;
        [
            product(&[conv.batch, conv.in_channels, conv.size[0], conv.size[1]]),
            product(&[conv.out_channels, group, conv.kernel[0], conv.kernel[1]]),
            product(&[conv.batch, conv.out_channels, out_height, out_width]),
        ]
    }

    /// Returns the bindings, and the function `bias`.
    fn declarations(&self) -> String {
        let (bias, y) = match self.has_bias {
            true => (
                "@group(0) @binding(2) var<storage, read> biases: array<Stored>;\n\
                 fn bias(channel: u32) -> f32 { return widen(biases[channel]); }\n",
                3,
            ),
            false => ("fn bias(channel: u32) -> f32 { return 0.0; }\n", 2),
        };
        format!(
            "@group(0) @binding(0) var<storage, read> x: array<Stored>;\n\
             @group(0) @binding(1) var<storage, read> weights: array<Stored>;\n\
             {bias}\
             @group(0) @binding({y}) var<storage, read_write> y: array<Stored>;\n\n"
        )
    }

    fn launch(
        &self,
        preparation: &Preparation<'_>,
        sources: [&str; 2],
        immediates: Immediates,
        workgroups: [u32; 3],
    ) -> Result<PreparedLaunch> {
        let buffers: Vec<_> = preparation.buffers.iter().collect();
        // Without input channels, `x` and the weights have no elements.
        let buffers = preparation.without_empty(&buffers)?;
        preparation.wgsl(&WgslLaunch {
            source: &[elements::prelude(self.dtype), &self.declarations(), sources[0], sources[1]],
            buffers: &buffers.iter().collect::<Vec<_>>(),
            immediates,
            workgroups,
        })
    }
}

/// Appends width and height.
fn pair(immediates: Immediates, [height, width]: [usize; 2]) -> Immediates {
    immediates.u32(width as u32).u32(height as u32)
}

/// Prepares the convolution by tiles in workgroup memory.
fn tiles(
    it: &Convolution,
    tiling: &Tiling,
    preparation: &Preparation<'_>,
) -> Result<PreparedLaunch> {
    let conv = &it.conv;
    let blocks = tiling.blocks(conv);
    let immediates = Immediates::default()
        .u32((conv.in_channels / conv.groups) as u32)
        .u32((conv.out_channels / conv.groups) as u32)
        .u32(conv.groups as u32)
        .u32(blocks as u32);
    let pairs = [conv.size, conv.output_size(), conv.padding];
    let immediates = pairs.into_iter().fold(immediates, pair);
    let sources = [&*tiling.declarations(), include_str!("../../shaders/conv_tiles.wgsl")];
    it.launch(preparation, sources, immediates, tiling.workgroups(conv))
}

/// Prepares the convolution by one invocation per result.
fn direct(it: &Convolution, preparation: &Preparation<'_>) -> Result<PreparedLaunch> {
    let count = it.lens()[2];
    let sources = ["", include_str!("../../shaders/conv_direct.wgsl")];
    it.launch(preparation, sources, direct_sizes(it), [count.div_ceil(256) as u32, 1, 1])
}

/// Returns the immediates of kernels with one invocation per result.
fn direct_sizes(it: &Convolution) -> Immediates {
    let conv = &it.conv;
    let count = it.lens()[2];
    let immediates = Immediates::default()
        .u32((conv.in_channels / conv.groups) as u32)
        .u32((conv.out_channels / conv.groups) as u32)
        .u32(conv.groups as u32)
        .u32(count as u32);
    let pairs =
        [conv.size, conv.output_size(), conv.padding, conv.kernel, conv.stride, conv.dilation];
    pairs.into_iter().fold(immediates, pair)
}
