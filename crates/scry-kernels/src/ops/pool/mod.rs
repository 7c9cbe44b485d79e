//! Pooling: maxima and averages of windows.

mod host;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result};

use super::conv::check_padding;
use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::plain;
use crate::wgsl::{Immediates, WgslLaunch};

/// What pooling computes of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// The largest element. The padding has none. NaN if an element is.
    Max,
    /// The average of the elements.
    Average {
        /// Whether the zeros of the padding are elements too.
        count_include_pad: bool,
    },
}

/// The sizes of two-dimensional pooling, see [`Kernels::pool2d`]. Pairs are of height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool2d {
    /// Images and their channels: planes that are pooled one by one.
    pub planes: usize,
    /// Height and width of the input.
    pub size: [usize; 2],
    /// Height and width of a window.
    pub kernel: [usize; 2],
    /// Rows and columns from one window to the next.
    pub stride: [usize; 2],
    /// Rows and columns on each side of the input, less than those of a window.
    pub padding: [usize; 2],
}

impl Pool2d {
    /// Returns pooling of adjacent windows without padding.
    ///
    /// ```
    /// use scry_kernels::Pool2d;
    ///
    /// assert_eq!(Pool2d::new(3, [1080, 1921], [2, 2]).output_size(), [540, 960]);
    /// ```
    #[must_use]
    pub const fn new(planes: usize, size: [usize; 2], kernel: [usize; 2]) -> Self {
        Self { planes, size, kernel, stride: kernel, padding: [0, 0] }
    }

    /// Returns height and width of the output: the windows inside of the padded input. 0 if there
    /// is none, and for invalid sizes.
    #[must_use]
    pub const fn output_size(&self) -> [usize; 2] {
        [self.output_len(0), self.output_len(1)]
    }

    const fn output_len(&self, axis: usize) -> usize {
        let padded = self.size[axis].saturating_add(self.padding[axis].saturating_mul(2));
        match (padded.checked_sub(self.kernel[axis]), self.stride[axis]) {
            (Some(rest), stride @ 1..) => rest / stride + 1,
            _ => 0,
        }
    }
}

/// Pooling with its element type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pooling {
    pool: Pool,
    sizes: Pool2d,
    dtype: DType,
}

const FUNCTION: &str = "Kernels::pool2d";

/// Pooling.
impl Kernels {
    /// Prepares two-dimensional pooling: each element of `y` is the maximum or the average of a
    /// window of `x`. `x` is planes × height × width and `y`
    /// planes × [output height × output width](Pool2d::output_size), row-major without gaps, of
    /// `f32`, `f16` or `bf16`, computed in `f32`. Buffers may be longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, Pool, Pool2d};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 5.0, 2.0, 0.0, 3.0, 4.0, 8.0, 9.0])?; // 2 × 4
    /// let y = gpu.alloc::<f32>(2)?;
    /// let kernels = Kernels::new(&gpu)?;
    /// kernels.pool2d(Pool::Max, &x, &y, &Pool2d::new(1, [2, 4], [2, 2]))?.run()?;
    /// assert_eq!(y.download()?, [5.0, 9.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) if a stride or a size of the windows is
    /// 0, if windows exceed the padded input, if the padding is not less than a window, and for
    /// buffers that are too short, of another type, or that overlap;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device lacks the element
    /// type, or if there are more than 2^32 - 1 elements.
    pub fn pool2d(
        &self,
        pool: Pool,
        x: &dyn Binding,
        y: &dyn Binding,
        sizes: &Pool2d,
    ) -> Result<Op> {
        let call = Call { function: FUNCTION.into(), sizes: named_sizes(sizes) };
        let dtype = call.dtype("x", x, &FLOATS)?;
        check(&call, sizes)?;
        self.op(Pooling { pool, sizes: *sizes, dtype }, &[x, y])
    }
}

fn named_sizes(sizes: &Pool2d) -> Vec<(&'static str, u64)> {
    vec![
        ("planes", sizes.planes as u64),
        ("height", sizes.size[0] as u64),
        ("width", sizes.size[1] as u64),
        ("kernel height", sizes.kernel[0] as u64),
        ("kernel width", sizes.kernel[1] as u64),
    ]
}

fn check(call: &Call, sizes: &Pool2d) -> Result<()> {
    for (name, values) in [("stride", sizes.stride), ("kernel", sizes.kernel)] {
        if values.contains(&0) {
            return Err(call.argument_error(format!("`{name}`"), "is 0", "pass at least 1"));
        }
    }
    if sizes.padding.iter().zip(&sizes.kernel).any(|(padding, kernel)| padding >= kernel) {
        return Err(call.argument_error(
            "`padding`",
            format!(
                "is {:?}, but windows of {:?} would be in it as a whole",
                sizes.padding, sizes.kernel
            ),
            "pass less than the kernel",
        ));
    }
    if sizes.output_size().contains(&0) {
        return Err(call.argument_error(
            "`kernel`",
            "exceeds the padded input",
            "pass a smaller kernel, or more padding",
        ));
    }
    check_padding(call, sizes.size, sizes.padding)?;
    let product = |what: &str, [height, width]: [usize; 2]| {
        call.product(what, &[sizes.planes as u64, height as u64, width as u64])
    };
    product("`x`", sizes.size)?;
    product("`y`", sizes.output_size())?;
    Ok(())
}

impl Operation for Pooling {
    fn function(&self) -> &'static str {
        FUNCTION
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        named_sizes(&self.sizes)
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let [x, y] = self.lens();
        vec![arguments::read("x", self.dtype, x), arguments::write("y", self.dtype, y)]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: crate::host::INFO,
                obstacle: |_, kernels| crate::host::obstacle(kernels),
                // Windows of no elements are left to WGSL.
                suits: |it, _| !it.sizes.size.contains(&0),
                prepare: host::prepare,
            },
            Variant {
                info: plain::INFO,
                obstacle: Pooling::obstacle,
                suits: |_, kernels| plain::is_software(kernels),
                prepare: plain_launch,
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: Pooling::obstacle,
                suits: |_, _| true,
                prepare: wgsl,
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.lens()[1] == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}

impl Pooling {
    /// Returns why WGSL cannot compute it; `None` if it can.
    fn obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels).or_else(|| elements::too_long(&self.lens()))
    }

    /// Returns the elements of `x` and `y`.
    fn lens(&self) -> [u64; 2] {
        [self.sizes.size, self.sizes.output_size()]
            .map(|[height, width]| (self.sizes.planes * height * width) as u64)
    }
}

/// Returns the constants that precede a kernel.
fn constants(it: &Pooling) -> String {
    let Pool2d { kernel, stride, .. } = it.sizes;
    let (is_maximum, counts_padding) = match it.pool {
        Pool::Max => (true, false),
        Pool::Average { count_include_pad } => (false, count_include_pad),
    };
    format!(
        "const MAXIMUM = {is_maximum};\nconst COUNTS_PADDING = {counts_padding};\n\
         const KERNEL = vec2<u32>({}u, {}u);\nconst STRIDE = vec2<u32>({}u, {}u);\n",
        kernel[1], kernel[0], stride[1], stride[0],
    )
}

/// Returns the immediates of a kernel.
fn immediates(it: &Pooling) -> Immediates {
    let Pool2d { planes, size, padding, .. } = it.sizes;
    let immediates = Immediates::default().u32(planes as u32).u32(0);
    let pairs = [size, it.sizes.output_size(), padding];
    pairs
        .into_iter()
        .fold(immediates, |all, [height, width]| all.u32(width as u32).u32(height as u32))
}

fn plain_launch(it: &Pooling, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let [height, width] = it.sizes.output_size();
    let has_padding = format!("const HAS_PADDING = {};\n", it.sizes.padding != [0; 2]);
    let kernel = include_str!("../../shaders/plain/pool.wgsl");
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[elements::prelude(it.dtype), &constants(it), &has_padding, kernel],
        buffers: &[&preparation.buffers[0], &preparation.buffers[1]],
        immediates: immediates(it),
        workgroups: [width.div_ceil(16) as u32, height.div_ceil(16) as u32, it.sizes.planes as u32],
    })?;
    Ok(vec![launch])
}

fn wgsl(it: &Pooling, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let [out_height, out_width] = it.sizes.output_size();
    let x = out_width.next_power_of_two().min(64);
    let y = out_height.next_power_of_two().min(256 / x);
    let z = 256 / x / y;
    let lanes = format!("const LANES = vec3<u32>({x}u, {y}u, {z}u);\n");
    let kernel = include_str!("../../shaders/pool.wgsl");
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[elements::prelude(it.dtype), &constants(it), &lanes, kernel],
        buffers: &[&preparation.buffers[0], &preparation.buffers[1]],
        immediates: immediates(it),
        workgroups: [
            out_width.div_ceil(x) as u32,
            out_height.div_ceil(y) as u32,
            it.sizes.planes.div_ceil(z) as u32,
        ],
    })?;
    Ok(vec![launch])
}
