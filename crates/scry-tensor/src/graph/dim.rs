//! Sizes of a graph's inputs: numbers, and named dimensions whose size each run chooses.

use std::ops::RangeInclusive;
use std::sync::Arc;

/// The number of assignments of sizes to named dimensions for which shapes are checked when
/// operations are recorded: the largest sizes, the smallest, and sizes between them.
pub(crate) const WITNESSES: usize = 3;

/// A size of a graph's input: a number, or a named dimension that [`Graph::dim`](crate::Graph::dim)
/// creates.
///
/// ```
/// use scry_tensor::{Device, Graph};
///
/// let gpu = Device::open("cpu")?;
/// let g = Graph::new(&gpu)?;
/// let batch = g.dim("batch", 1..=64);
/// assert_eq!(batch.to_string(), "batch (1..=64)");
/// assert_eq!(scry_tensor::Dim::from(128).to_string(), "128");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dim(pub(crate) Size);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Size {
    /// A size; `None` for a negative number.
    Fixed(Option<usize>),
    Named(Arc<NamedDim>),
}

/// A named dimension and its range.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct NamedDim {
    pub(crate) name: String,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

impl NamedDim {
    pub(crate) fn new(name: &str, range: &RangeInclusive<usize>) -> Self {
        Self { name: name.to_owned(), min: *range.start(), max: *range.end() }
    }

    /// Returns the size in one of the [`WITNESSES`] assignments.
    pub(crate) fn witness(&self, witness: usize) -> usize {
        match witness {
            0 => self.max,
            1 => self.min,
            _ => {
                // Sizes of different dimensions should differ: derived from the name (FNV-1a).
                let fold = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
                let hash = self.name.bytes().fold(2_166_136_261, fold) as usize;
                match self.max - self.min {
                    0 | 1 => self.max,
                    extent => self.min + 1 + hash % (extent - 1),
                }
            }
        }
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Size::Fixed(Some(size)) => write!(f, "{size}"),
            Size::Fixed(None) => f.write_str("a negative size"),
            Size::Named(dim) => write!(f, "{} ({}..={})", dim.name, dim.min, dim.max),
        }
    }
}

/// The shape of a graph's input: a tuple or an array of sizes, or a [`Shape`](crate::Shape).
///
/// ```
/// use scry_tensor::{Device, DimShape, Graph};
///
/// let g = Graph::new(&Device::open("cpu")?)?;
/// let shape = DimShape::from((g.dim("batch", 1..=64), 128));
/// assert_eq!(shape.to_string(), "[batch (1..=64), 128]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DimShape(pub(crate) Vec<Dim>);

impl std::fmt::Display for DimShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "[{}]", sizes.join(", "))
    }
}

impl From<&Self> for Dim {
    fn from(dim: &Self) -> Self {
        dim.clone()
    }
}

macro_rules! from_integers {
    ($($ty:ty),*) => {
        $(
            impl From<$ty> for Dim {
                fn from(size: $ty) -> Self {
                    Self(Size::Fixed(usize::try_from(size).ok()))
                }
            }
        )*
    };
}

from_integers!(i32, i64, u32, usize);

impl<D: Into<Dim>, const N: usize> From<[D; N]> for DimShape {
    fn from(sizes: [D; N]) -> Self {
        Self(sizes.into_iter().map(Into::into).collect())
    }
}

impl<D: Into<Dim>> From<Vec<D>> for DimShape {
    fn from(sizes: Vec<D>) -> Self {
        Self(sizes.into_iter().map(Into::into).collect())
    }
}

impl From<&crate::shape::Shape> for DimShape {
    fn from(shape: &crate::shape::Shape) -> Self {
        shape.to_vec().into()
    }
}

impl From<()> for DimShape {
    fn from((): ()) -> Self {
        Self(Vec::new())
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {
        $(impl<$($name: Into<Dim>),*> From<($($name,)*)> for DimShape {
            #[expect(non_snake_case, reason = "the variables have the names of their types")]
            fn from(($($name,)*): ($($name,)*)) -> Self {
                Self(vec![$($name.into()),*])
            }
        })*
    };
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }
