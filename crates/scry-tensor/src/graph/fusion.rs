//! How far a graph fuses operations.

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

impl Fusion {
    /// Returns the choice of the environment variable `SCRY_FUSE`: `0`, `exact`, or any other.
    pub(super) fn from_environment() -> Self {
        match std::env::var_os("SCRY_FUSE") {
            Some(value) if value == "0" => Self::None,
            Some(value) if value == "exact" => Self::Exact,
            _ => Self::Full,
        }
    }
}
