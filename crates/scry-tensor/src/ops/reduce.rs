//! Reductions over axes, computed by the kernel library.

use scry_kernels::Reduction;

use super::unary::types;
use crate::dtype::{BOOL, DType, FLOATS, NUMBERS};
use crate::error::{Call, Result};
use crate::op::{Library, Op, Reduce};
use crate::scalar::Scalar;
use crate::shape::Axes;
use crate::tensor::{Tensor, apply};

/// The rule of a reduction.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) types: &'static [DType],
    pub(super) reduction: Reduction,
    /// The result for no elements; `None` if there is none.
    pub(super) of_nothing: Option<Scalar>,
}

impl Rule {
    pub(super) fn apply(
        self,
        call: Call,
        x: &Tensor,
        axes: &Axes,
        keepdim: bool,
    ) -> Result<Tensor> {
        let described = self.describe(call, x, axes, keepdim);
        apply(call, Tensor::scoped(&[x], described)?, &[x])
    }

    fn describe(self, call: Call, x: &Tensor, axes: &Axes, keepdim: bool) -> Result<Op> {
        call.check_dtype(x.dtype(), self.types)?;
        let axes = axes.resolve(call, x.rank())?;
        let of_nothing = self.of_nothing.map(|it| it.bits(call, x.dtype())).transpose()?;
        let reduce = Reduce { reduction: self.reduction, axes, keepdim, of_nothing };
        Ok(Op::Library(Library::Reduce(reduce)))
    }
}

macro_rules! reductions {
    ($(
        $(#[$doc:meta])*
        $method:ident, $keeping:ident: $types:ident, $reduction:ident, $of_nothing:expr;
        example $input:literal => $result:literal;
    )*) => {
        /// Reductions over axes: a number, an array of numbers, or `..` for all.
        impl Tensor {
            $(
                $(#[$doc])*
                ///
                /// ```
                /// use scry_tensor::{Device, Tensor};
                ///
                /// let gpu = Device::open("cpu")?;
                #[doc = concat!("let x = Tensor::new(", $input, ", &gpu)?;")]
                #[doc = concat!(
                    "assert_eq!(x.", stringify!($method), "(-1)?.to_string(), \"", $result, "\");"
                )]
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                /// [`ErrorKind::Index`](crate::ErrorKind::Index) if an axis is out of range or
                /// given twice; [`ErrorKind::DType`](crate::ErrorKind::DType) for other element
                /// types than
                #[doc = concat!(types!($types), ";")]
                /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if there are no elements and
                /// therefore no result; [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge);
                /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
                #[track_caller]
                pub fn $method(&self, axes: impl Into<Axes>) -> Result<Self> {
                    let call = Call::new(concat!("Tensor::", stringify!($method)));
                    let reduction = Reduction::$reduction;
                    Rule { types: $types, reduction, of_nothing: $of_nothing }
                        .apply(call, self, &axes.into(), false)
                }

                #[doc = concat!(
                    "As [`", stringify!($method), "`](Self::", stringify!($method),
                    "), but the axes remain, with size 1."
                )]
                ///
                /// ```
                /// use scry_tensor::{Device, Tensor};
                ///
                /// let gpu = Device::open("cpu")?;
                #[doc = concat!("let x = Tensor::new(", $input, ", &gpu)?;")]
                #[doc = concat!(
                    "assert_eq!(x.", stringify!($keeping), "(-1)?.rank(), x.rank());"
                )]
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                #[doc = concat!(
                    "As [`", stringify!($method), "`](Self::", stringify!($method), ")."
                )]
                #[track_caller]
                pub fn $keeping(&self, axes: impl Into<Axes>) -> Result<Self> {
                    let call = Call::new(concat!("Tensor::", stringify!($keeping)));
                    let reduction = Reduction::$reduction;
                    Rule { types: $types, reduction, of_nothing: $of_nothing }
                        .apply(call, self, &axes.into(), true)
                }
            )*
        }
    };
}

reductions! {
    /// Returns the sum over axes. 16-bit floats accumulate in `f32`, integers wrap; the sum of no
    /// elements is 0.
    sum, sum_keepdim: NUMBERS, Sum, Some(Scalar::Int(0));
    example "[[1, 2], [3, 4]]" => "[3 7]";

    /// Returns the product over axes. 16-bit floats accumulate in `f32`, integers wrap; the product
    /// of no elements is 1.
    prod, prod_keepdim: NUMBERS, Product, Some(Scalar::Int(1));
    example "[[1, 2], [3, 4]]" => "[ 2 12]";

    /// Returns the mean over axes. 16-bit floats accumulate in `f32`; the mean of no elements is
    /// NaN.
    mean, mean_keepdim: FLOATS, Mean, Some(Scalar::Float(f64::NAN));
    example "[[1.0f32, 2.0], [3.0, 4.0]]" => "[1.5 3.5]";

    /// Returns the largest element over axes; NaN if one is NaN.
    max, max_keepdim: NUMBERS, Max, None;
    example "[[1, 2], [4, 3]]" => "[2 4]";

    /// Returns the smallest element over axes; NaN if one is NaN.
    min, min_keepdim: NUMBERS, Min, None;
    example "[[1, 2], [4, 3]]" => "[1 3]";
}

impl Tensor {
    /// Returns the sum over axes.
    pub(super) fn summed(&self, call: Call, axes: &Axes) -> Result<Self> {
        let (reduction, of_nothing) = (Reduction::Sum, Some(Scalar::Int(0)));
        Rule { types: NUMBERS, reduction, of_nothing }.apply(call, self, axes, false)
    }

    /// Returns the mean over axes.
    pub(super) fn averaged(&self, call: Call, axes: &Axes) -> Result<Self> {
        let (reduction, of_nothing) = (Reduction::Mean, Some(Scalar::Float(f64::NAN)));
        Rule { types: FLOATS, reduction, of_nothing }.apply(call, self, axes, false)
    }
}

/// Reductions of bools.
impl Tensor {
    /// Returns whether any bool over axes is true; false if there are none.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[true, false], [false, false]], &gpu)?;
    /// assert_eq!(x.any(1)?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    #[track_caller]
    pub fn any(&self, axes: impl Into<Axes>) -> Result<Self> {
        self.reduced_bools(Call::new("Tensor::any"), Reduction::Max, false, &axes.into())
    }

    /// Returns whether all bools over axes are true; true if there are none.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[true, true], [true, false]], &gpu)?;
    /// assert_eq!(x.all(1)?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    #[track_caller]
    pub fn all(&self, axes: impl Into<Axes>) -> Result<Self> {
        self.reduced_bools(Call::new("Tensor::all"), Reduction::Min, true, &axes.into())
    }

    fn reduced_bools(
        &self,
        call: Call,
        reduction: Reduction,
        of_nothing: bool,
        axes: &Axes,
    ) -> Result<Self> {
        call.check_dtype(self.dtype(), BOOL)?;
        let numbers = self.cast_for(call, DType::U32)?;
        let of_nothing = Some(Scalar::Int(of_nothing.into()));
        let reduce = Rule { types: NUMBERS, reduction, of_nothing };
        reduce.apply(call, &numbers, axes, false)?.cast_for(call, DType::Bool)
    }
}
