//! What becomes of the sums of a product before they are written.

use crate::kernels::name::Name;
use crate::typed::Val;

/// A function of each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Activation {
    /// None.
    #[default]
    None,
    /// `max(x, 0)`; 0 for what is not a number.
    Relu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
    Gelu,
    /// `x / (1 + exp(-x))`.
    Silu,
}

impl Activation {
    /// The field of names of kernels.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
        }
    }
}

/// What becomes of the sums of a product:
/// `activation(alpha * sum + beta * what was there + bias of the column)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epilogue {
    /// Factor of the sums.
    pub alpha: f32,
    /// Factor of what was there, which is not read if this is 0.
    pub beta: f32,
    /// Whether there is a number for each column.
    pub bias: bool,
    /// What is applied last.
    pub activation: Activation,
}

impl Epilogue {
    /// The sums as they are.
    pub const NONE: Self =
        Self { alpha: 1.0, beta: 0.0, bias: false, activation: Activation::None };

    /// Whether what was there is read.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.beta != 0.0
    }

    /// Appends to the name of a kernel what is in its text; `alpha` and `beta` are parameters. The
    /// bias of a transposed product lies along its rows.
    pub(crate) fn named(&self, name: Name, flipped: bool) -> Name {
        let bias = self.bias.then_some(if flipped { 'm' } else { 'n' });
        name.epilogue(self.reads(), bias, self.activation)
    }
}

impl Default for Epilogue {
    fn default() -> Self {
        Self::NONE
    }
}

/// The factors of an epilogue as values of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factors<'k> {
    /// Of the sum.
    pub alpha: Val<'k, f32>,
    /// Of what was there.
    pub beta: Val<'k, f32>,
}

impl<'k> Factors<'k> {
    /// A result from its sum, what was there where that is read, and the bias of its column where
    /// there is one.
    pub(crate) fn finish(
        &self,
        activation: Activation,
        sum: Val<'k, f32>,
        was: Option<Val<'k, f32>>,
        bias: Option<Val<'k, f32>>,
    ) -> Val<'k, f32> {
        let scaled = match bias {
            Some(bias) => sum.mul_add(self.alpha, bias),
            None => sum * self.alpha,
        };
        let result = was.map_or(scaled, |was| was.mul_add(self.beta, scaled));
        apply(activation, result)
    }
}

fn apply(activation: Activation, x: Val<'_, f32>) -> Val<'_, f32> {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Gelu => gated(x, (x * x).mul_add(0.044_715, 1.0) * x * 1.595_769),
        Activation::Silu => gated(x, x),
    }
}

/// `x / (1 + exp(-by))`.
fn gated<'k>(x: Val<'k, f32>, by: Val<'k, f32>) -> Val<'k, f32> {
    x * ((by * -std::f32::consts::LOG2_E).exp2() + 1.0).recip()
}
