//! How far a graph fuses operations.

use crate::error::{Call, ErrorKind, Result};

/// How far [`Graph::compile`](crate::Graph::compile) fuses operations.
///
/// ```
/// use scry_tensor::{Device, Fusion, Graph};
///
/// let gpu = Device::open("cpu")?;
/// let g = Graph::new(&gpu)?;
/// let x = g.input("x", [4, 8])?;
/// let e = (&x - x.max_keepdim(-1)?)?.exp()?;
/// let softmax = (&e / e.sum_keepdim(-1)?)?;
/// assert_eq!(g.compile(&[softmax.clone()])?.explain()?.kernels.len(), 1);
/// g.set_fusion(Fusion::Exact);
/// assert_eq!(g.compile(&[softmax])?.explain()?.kernels.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fusion {
    /// A kernel for each operation.
    None,
    /// Only where results keep their bits: sums and means of floats are kernels of their own.
    Exact,
    /// Also sums and means of rows of floats, with the operations before and after them. They are
    /// added in another order: the error of a sum of `n` elements, of at most 8192, is at most
    /// `48 * 2^-24` times the sum of their absolute values, as without fusion. Products are fused
    /// with a factor, a bias, a residual and an activation after them, without the roundings
    /// between these: results differ by at most `1e-5` (`f16`: `2e-3`, `bf16`: `2e-2`) of the
    /// largest of 1 and the magnitudes of the operations that are fused. Products with quantised
    /// weights are also fused with SwiGLU before them.
    Full,
}

/// The environment variable with the choice of all graphs that make none.
const VARIABLE: &str = "SCRY_FUSE";

impl Fusion {
    /// Returns the choice of the environment variable `SCRY_FUSE`.
    pub(super) fn from_environment(call: Call) -> Result<Self> {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        Self::named(call, &value.to_string_lossy())
    }

    /// Returns the choice that a value of `SCRY_FUSE` names.
    fn named(call: Call, value: &str) -> Result<Self> {
        match value {
            "" | "1" => Ok(Self::Full),
            "0" => Ok(Self::None),
            "exact" => Ok(Self::Exact),
            _ => Err(call.error(
                ErrorKind::Value,
                format!("the environment variable {VARIABLE} is `{value}`, not 0, exact or 1"),
                "set it to 0 (a kernel for each operation), exact (only where results keep their \
                 bits) or 1 (all), or unset it",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_choices_are_errors() {
        let named = |value| Fusion::named(Call::new("Graph::compile"), value);
        for (value, wanted) in
            [("", Fusion::Full), ("1", Fusion::Full), ("0", Fusion::None), ("exact", Fusion::Exact)]
        {
            assert_eq!(named(value).unwrap(), wanted);
        }
        for value in ["2", "off", "Exact", "0 "] {
            let error = named(value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Value);
            let text = error.to_string();
            assert!(text.contains(&format!("SCRY_FUSE is `{value}`, not 0, exact or 1")), "{text}");
        }
    }
}
