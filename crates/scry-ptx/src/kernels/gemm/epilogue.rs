//! The epilogue of a GEMM, applied to the accumulators before they are stored.

use crate::kernels::name::Name;
use crate::typed::Val;

/// An activation function, applied to each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// `max(x, 0)`; NaN of NaN.
    Relu,
    /// GELU, tanh approximation: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
    Gelu,
    /// GELU: `x / 2 * (1 + erf(x / sqrt(2)))`, with an absolute error of erf of at most 2e-7.
    GeluErf,
    /// SiLU (swish): `x / (1 + exp(-x))`.
    Silu,
}

impl Activation {
    /// Returns its field in kernel names.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::GeluErf => "gelu_erf",
            Self::Silu => "silu",
        }
    }
}

/// The epilogue of a GEMM: `activation(alpha * accumulator + beta * out + bias[column])`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epilogue {
    /// Scales the accumulator.
    pub alpha: f32,
    /// Scales the previous content of `out`, which is not read if this is 0.
    pub beta: f32,
    /// Whether a bias is added, one element per column.
    pub bias: bool,
    /// The activation, applied last.
    pub activation: Activation,
}

impl Epilogue {
    /// Stores the accumulators unchanged.
    pub const NONE: Self =
        Self { alpha: 1.0, beta: 0.0, bias: false, activation: Activation::None };

    /// Whether the previous content of `out` is read.
    #[must_use]
    pub fn reads_out(&self) -> bool {
        self.beta != 0.0
    }

    /// Appends the compile-time part of the epilogue to a kernel's name; `alpha` and `beta` are
    /// parameters. If the kernel computes the transposed product, the bias, which is one element
    /// per column of `out`, is one per row of that product.
    pub(crate) fn append_to(&self, name: Name, transposed: bool) -> Name {
        let bias = self.bias.then_some(if transposed { 'm' } else { 'n' });
        name.epilogue(self.reads_out(), bias, self.activation)
    }
}

impl Default for Epilogue {
    fn default() -> Self {
        Self::NONE
    }
}

/// `alpha` and `beta` as values of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EpilogueScalars<'k> {
    /// Scale of the accumulator.
    pub alpha: Val<'k, f32>,
    /// Scale of the previous content of `out`.
    pub beta: Val<'k, f32>,
}

impl<'k> EpilogueScalars<'k> {
    /// Computes a result from its accumulator, the previous content where that is read, and the
    /// bias where there is one.
    pub(crate) fn finish(
        &self,
        activation: Activation,
        sum: Val<'k, f32>,
        previous: Option<Val<'k, f32>>,
        bias: Option<Val<'k, f32>>,
    ) -> Val<'k, f32> {
        let scaled = match bias {
            Some(bias) => sum.mul_add(self.alpha, bias),
            None => sum * self.alpha,
        };
        let result = previous.map_or(scaled, |out| out.mul_add(self.beta, scaled));
        apply(activation, result)
    }
}

fn apply(activation: Activation, x: Val<'_, f32>) -> Val<'_, f32> {
    match activation {
        Activation::None => x,
        // Not `max`, which is 0 for NaN.
        Activation::Relu => x.lt(0.0).select(0.0, x),
        // 0.5 * (1 + tanh(u)) is 1 / (1 + exp(-2 * u)), and 1.595769 is 2 * sqrt(2 / pi).
        Activation::Gelu => x_times_sigmoid(x, (x * x).mul_add(0.044_715, 1.0) * x * 1.595_769),
        Activation::GeluErf => gelu_erf(x),
        Activation::Silu => silu(x),
    }
}

/// Returns `x / 2 * (1 + erf(x / sqrt(2)))`, which is `(x + |x| * erf(|x| / sqrt(2))) / 2`. The
/// error function is that of Abramowitz and Stegun, 7.1.26.
fn gelu_erf(x: Val<'_, f32>) -> Val<'_, f32> {
    let magnitude = x.max(-x);
    let at = magnitude * std::f32::consts::FRAC_1_SQRT_2;
    let t = at.mul_add(0.327_591_1, 1.0).recip();
    let polynomial = [-1.453_152, 1.421_413_8, -0.284_496_74, 0.254_829_6]
        .into_iter()
        .fold(t.builder().constant(1.061_405_4f32).copied(), |sum, coefficient: f32| {
            sum.mul_add(t, coefficient)
        });
    let rest = polynomial * t * (at * at * -std::f32::consts::LOG2_E).exp2();
    magnitude.mul_add(-rest + 1.0, x) * 0.5
}

/// Returns `x / (1 + exp(-x))`.
pub(in crate::kernels) fn silu(x: Val<'_, f32>) -> Val<'_, f32> {
    x_times_sigmoid(x, x)
}

/// Returns `x / (1 + exp(-argument))`.
fn x_times_sigmoid<'k>(x: Val<'k, f32>, argument: Val<'k, f32>) -> Val<'k, f32> {
    x * ((argument * -std::f32::consts::LOG2_E).exp2() + 1.0).recip()
}
