//! The layers.

use scry_ptx::kernels::gemm::{Activation, Precision};

/// A linear layer whose output features are split over the ranks of a group: each rank has some
/// rows of the weights, the whole input, and computes its part of the output.
///
/// `out = activation(x × weightᵀ + bias)`, with the weights stored as PyTorch's `nn.Linear` stores
/// them: `out_features` × `in_features`. See
/// [`Kernels::column_parallel_linear`](crate::Kernels::column_parallel_linear).
///
/// ```
/// use scry_kernels::{Activation, ColumnParallelLinear};
///
/// let up = ColumnParallelLinear::new(64, 512, 2048).with_bias().with_activation(Activation::Gelu);
/// assert!(up.bias && !up.gather_output);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnParallelLinear {
    /// Rows of the input and of the output: tokens or samples.
    pub rows: usize,
    /// Columns of the input.
    pub in_features: usize,
    /// Columns of the output, of all ranks together.
    pub out_features: usize,
    /// Whether a bias is added; each rank has the part for its features.
    pub bias: bool,
    /// The activation, applied last.
    pub activation: Activation,
    /// The precision of `f32` operands.
    pub precision: Precision,
    /// Whether each rank receives the whole output instead of its features.
    pub gather_output: bool,
}

impl ColumnParallelLinear {
    /// Describes a layer without bias and activation, whose output stays split.
    #[must_use]
    pub const fn new(rows: usize, in_features: usize, out_features: usize) -> Self {
        Self {
            rows,
            in_features,
            out_features,
            bias: false,
            activation: Activation::None,
            precision: Precision::Full,
            gather_output: false,
        }
    }

    /// Returns the layer with a bias.
    #[must_use]
    pub const fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }

    /// Returns the layer with an activation.
    #[must_use]
    pub const fn with_activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Returns the layer with another precision of `f32` operands.
    #[must_use]
    pub const fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Returns the layer whose whole output each rank receives.
    #[must_use]
    pub const fn with_gathered_output(mut self) -> Self {
        self.gather_output = true;
        self
    }
}

/// A linear layer whose input features are split over the ranks of a group: each rank has some
/// columns of the weights and the same columns of the input, such as the output of a
/// [`ColumnParallelLinear`]. The products of all ranks are added up.
///
/// `out = x × weightᵀ + bias`, with weights of `out_features` × `in_features`. See
/// [`Kernels::row_parallel_linear`](crate::Kernels::row_parallel_linear).
///
/// ```
/// use scry_kernels::RowParallelLinear;
///
/// let down = RowParallelLinear::new(64, 2048, 512).with_bias();
/// assert!(down.bias && !down.scatter_output);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowParallelLinear {
    /// Rows of the input and of the output: tokens or samples.
    pub rows: usize,
    /// Columns of the input, of all ranks together.
    pub in_features: usize,
    /// Columns of the output.
    pub out_features: usize,
    /// Whether a bias is added. It is added once: each rank has all of it, and that of rank 0 is
    /// used.
    pub bias: bool,
    /// The precision of `f32` operands.
    pub precision: Precision,
    /// Whether each rank receives some rows of the output instead of all.
    pub scatter_output: bool,
}

impl RowParallelLinear {
    /// Describes a layer without bias, whose output each rank receives.
    #[must_use]
    pub const fn new(rows: usize, in_features: usize, out_features: usize) -> Self {
        Self {
            rows,
            in_features,
            out_features,
            bias: false,
            precision: Precision::Full,
            scatter_output: false,
        }
    }

    /// Returns the layer with a bias.
    #[must_use]
    pub const fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }

    /// Returns the layer with another precision of `f32` operands.
    #[must_use]
    pub const fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Returns the layer of whose output each rank receives some rows (sequence parallelism).
    #[must_use]
    pub const fn with_scattered_output(mut self) -> Self {
        self.scatter_output = true;
        self
    }
}
