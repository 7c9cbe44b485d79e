//! Names of kernels: fields joined by underscores, in the order of the legend in `docs/kernels.md`.

use std::fmt::{Display, Write as _};

use super::gemm::Activation;
use crate::types::PtxType;

/// The name of a kernel, field by field.
#[derive(Debug, Clone)]
pub(crate) struct Name(String);

impl Name {
    /// Starts a name with what the kernel computes, and by which method.
    pub(crate) fn new(family: impl Display) -> Self {
        Self(family.to_string())
    }

    /// Appends a field.
    pub(crate) fn with(mut self, field: impl Display) -> Self {
        write!(self.0, "_{field}").expect("writing to a String cannot fail");
        self
    }

    /// Appends a field if a condition is true.
    pub(crate) fn with_if(self, condition: bool, field: impl Display) -> Self {
        if condition { self.with(field) } else { self }
    }

    /// Appends the types of operands and results, or one for both if they are the same.
    pub(crate) fn types(self, operands: PtxType, output: PtxType) -> Self {
        self.with(operands.name()).with_if(operands != output, output.name())
    }

    /// Appends the layouts of `a` and `b` as BLAS spells them: `n` is column-major, `t` row-major.
    /// K is contiguous in both operands of `tn`.
    pub(crate) fn layout(self, a_k_major: bool, b_k_major: bool) -> Self {
        let a = if a_k_major { 't' } else { 'n' };
        let b = if b_k_major { 'n' } else { 't' };
        self.with(format_args!("{a}{b}"))
    }

    /// Appends the epilogue of a GEMM: a read of the output, a bias along `n` (columns) or `m`
    /// (rows), and an activation.
    pub(crate) fn epilogue(self, beta: bool, bias: Option<char>, activation: Activation) -> Self {
        let with_bias = |name: Self, along| name.with(format_args!("bias{along}"));
        let name = self.with_if(beta, "beta");
        let name = match bias {
            Some(along) => with_bias(name, along),
            None => name,
        };
        name.with_if(activation != Activation::None, activation.name())
    }

    /// Returns the name as a string.
    pub(crate) fn build(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_joined_in_order() {
        let name = Name::new("gemm_sm90")
            .types(PtxType::Bf16, PtxType::Bf16)
            .layout(true, true)
            .with_if(false, "never")
            .with(format_args!("{}x{}", 64, 16));
        assert_eq!(name.build(), "gemm_sm90_bf16_tn_64x16");
    }

    #[test]
    fn different_output_type_is_named() {
        let name = Name::new("gemm").types(PtxType::F16, PtxType::F32).layout(false, false);
        assert_eq!(name.build(), "gemm_f16_f32_nt");
    }

    #[test]
    fn epilogue_fields_are_named() {
        let name = |beta, bias, activation| Name::new("x").epilogue(beta, bias, activation).build();
        assert_eq!(name(true, Some('m'), Activation::Gelu), "x_beta_biasm_gelu");
        assert_eq!(name(false, None, Activation::None), "x");
    }
}
