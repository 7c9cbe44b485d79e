//! The operations: one file a family, one row an operation.
//!
//! The row of an element-wise operation has the method, the element types, the meaning as a scalar
//! expression, the reference on the host and the example. That of another operation has a function
//! that draws random operands with the expected result. The documentation, the table of
//! [`operations`] and the tests come from the rows.

mod attention;
mod binary;
mod cast;
mod contractions;
mod convolution;
mod gather;
mod joining;
mod loss;
mod math;
mod matmul;
mod norms;
mod parametric;
mod random;
mod reduce;
mod reference;
mod scatter;
mod select;
mod sorting;
mod statistics;
mod unary;

pub use attention::Attention;
pub(crate) use binary::Binary;
pub use contractions::Metric;
pub use convolution::{Conv1d, Conv2d};
pub(crate) use math::activations;
pub use random::Seed;
#[doc(hidden)]
pub use reference::{Array, Case, Draw};
pub(crate) use unary::Unary;

use scry_gpu::BackendKind;

use crate::dtype::DType;
use crate::error::Result;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// An operand of an element-wise operation: a tensor, or a number or bool that adopts the element
/// type of the tensor.
///
/// ```
/// use scry_tensor::{Device, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([1, 2], &gpu)?;
/// assert_eq!(x.add(&x)?.add(1)?.to_vec::<i32>()?, [3, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub enum Operand {
    /// A tensor.
    Tensor(Tensor),
    /// A number or a bool.
    Scalar(Scalar),
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Self {
        Self::Tensor(tensor.clone())
    }
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

macro_rules! scalars {
    ($($ty:ty),*) => {
        $(impl From<$ty> for Operand {
            fn from(value: $ty) -> Self {
                Self::Scalar(value.into())
            }
        })*
    };
}

scalars!(Scalar, bool, i32, i64, u32, f32, f64, half::f16, half::bf16);

impl Operand {
    /// Returns the tensor; `None` for a scalar.
    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            Self::Scalar(_) => None,
        }
    }
}

/// An operation of the crate, for tables and tests: see [`operations`].
///
/// ```
/// use scry_tensor::{DType, Operation, operations};
///
/// let matmul: Operation = operations().find(|it| it.name == "matmul").unwrap();
/// assert!(matmul.types.contains(&DType::F32) && !matmul.types.contains(&DType::Bool));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Operation {
    /// The method of [`Tensor`].
    pub name: &'static str,
    /// What it computes: the summary, or the documentation of the method.
    pub(crate) summary: &'static str,
    /// The element types that it supports.
    pub types: &'static [DType],
    /// The largest error for `f32`, relative to the larger of 1 and the magnitude of the result; 0
    /// if results are exact.
    pub tolerance: f64,
    /// Where its kernels come from.
    pub kernel: KernelSource,
    pub(crate) apply: Apply,
}

/// Where the kernels of an operation come from.
///
/// ```
/// use scry_tensor::{KernelSource, operations};
///
/// let source = |name| operations().find(|it| it.name == name).unwrap().kernel;
/// assert_eq!(source("exp"), KernelSource::Generated);
/// assert!(matches!(source("matmul"), KernelSource::Library(_)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelSource {
    /// They are generated, and fused in graphs.
    Generated,
    /// There are none: the result is a view.
    View,
    /// The function of the kernel library that computes it, in the main.
    Library(&'static str),
}

/// How an operation is called, and what it computes.
#[derive(Clone, Copy)]
pub(crate) enum Apply {
    Unary(fn(&Tensor) -> Result<Tensor>, fn(Value) -> Option<Value>),
    Binary(fn(&Tensor, &Tensor) -> Result<Tensor>, fn(Value, Value) -> Option<Value>),
    /// A function that returns a random case for an element type.
    Case(fn(&mut Draw, DType) -> Case),
}

/// A value on the host, for references.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    Float(f64),
    Integer(i64),
    Bool(bool),
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl Operation {
    /// Returns what the operation computes, in a few words.
    ///
    /// ```
    /// let exp = scry_tensor::operations().find(|it| it.name == "exp").unwrap();
    /// assert_eq!(exp.summary(), "e to the power of each element");
    /// ```
    #[must_use]
    pub fn summary(&self) -> &'static str {
        let text = self.summary.trim_start();
        let text = text.strip_prefix("Returns ").unwrap_or(text);
        let text = text.strip_prefix("the ").unwrap_or(text);
        let text = text.split_once(". ").map_or(text, |(sentence, _)| sentence);
        text.strip_suffix('.').unwrap_or(text)
    }

    /// Returns the names of the element types that it supports.
    ///
    /// ```
    /// let floor = scry_tensor::operations().find(|it| it.name == "floor").unwrap();
    /// assert_eq!(floor.type_names(), "f32, f16, bf16");
    /// ```
    #[must_use]
    pub fn type_names(&self) -> String {
        let names: Vec<&str> = self.types.iter().map(|dtype| dtype.name()).collect();
        names.join(", ")
    }

    /// Returns the variants of the kernel library that may compute it on devices of a backend, in
    /// order of preference; `generated` or `view` if it needs none.
    ///
    /// ```
    /// use scry_gpu::BackendKind;
    ///
    /// let softmax = scry_tensor::operations().find(|it| it.name == "softmax").unwrap();
    /// assert_eq!(softmax.kernels_on(BackendKind::Cpu), ["wgsl-subgroups", "wgsl"]);
    /// ```
    #[must_use]
    pub fn kernels_on(&self, backend: BackendKind) -> Vec<&'static str> {
        let function = match self.kernel {
            KernelSource::Generated => return vec!["generated"],
            KernelSource::View => return vec!["view"],
            KernelSource::Library(function) => function,
        };
        let library = scry_kernels::operations();
        let of_function = library.iter().filter(|it| it.name == function);
        let variants = of_function.flat_map(|it| &it.variants);
        let runs = |needs: &str| match backend {
            BackendKind::Cuda => needs != "the CPU device",
            BackendKind::Cpu => !needs.starts_with("CUDA"),
            _ => !needs.starts_with("CUDA") && needs != "the CPU device",
        };
        variants.filter(|it| runs(it.needs)).map(|it| it.name).collect()
    }

    /// Returns whether each element of the result depends on the elements of the operands at its
    /// coordinates alone, so that its kernel fuses with others.
    ///
    /// ```
    /// let sum = scry_tensor::operations().find(|it| it.name == "sum").unwrap();
    /// assert!(!sum.is_elementwise());
    /// ```
    #[must_use]
    pub fn is_elementwise(&self) -> bool {
        !matches!(self.apply, Apply::Case(_))
    }

    /// Calls an element-wise operation. A unary one ignores the second operand.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor, operations};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1, 2], &gpu)?;
    /// let add = operations().find(|it| it.name == "add").unwrap();
    /// assert_eq!(add.call(&x, &x).unwrap()?.to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As the method.
    #[doc(hidden)]
    pub fn call(&self, a: &Tensor, b: &Tensor) -> Option<Result<Tensor>> {
        match self.apply {
            Apply::Unary(call, _) => Some(call(a)),
            Apply::Binary(call, _) => Some(call(a, b)),
            Apply::Case(_) => None,
        }
    }

    /// Returns the exact result of an element-wise operation, before it is rounded to the element
    /// type; `None` for values of a type that it does not support.
    ///
    /// ```
    /// use scry_tensor::{Value, operations};
    ///
    /// let add = operations().find(|it| it.name == "add").unwrap();
    /// let two = Value::Integer(2);
    /// assert_eq!(add.reference(two, two), Some(Value::Integer(4)));
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn reference(&self, a: Value, b: Value) -> Option<Value> {
        match self.apply {
            Apply::Unary(_, reference) => reference(a),
            Apply::Binary(_, reference) => reference(a, b),
            Apply::Case(_) => None,
        }
    }

    /// Returns a random call of an operation that is not element-wise, with its expected result.
    ///
    /// ```
    /// use scry_tensor::{DType, Draw, operations};
    ///
    /// let softmax = operations().find(|it| it.name == "softmax").unwrap();
    /// let case = softmax.case(&mut Draw(1), DType::F32).unwrap();
    /// assert_eq!(case.operands[0].shape, case.wanted.shape);
    /// ```
    #[doc(hidden)]
    pub fn case(&self, draw: &mut Draw, dtype: DType) -> Option<Case> {
        match self.apply {
            Apply::Case(case) => Some(case(draw, dtype)),
            _ => None,
        }
    }
}

/// Returns the operations, with what they compute, and of which element types.
///
/// ```
/// let names: Vec<&str> = scry_tensor::operations().map(|it| it.name).collect();
/// assert!(names.contains(&"gelu") && names.contains(&"conv2d"));
/// ```
pub fn operations() -> impl Iterator<Item = Operation> {
    const FAMILIES: [&[Operation]; 15] = [
        unary::OPERATIONS,
        parametric::OPERATIONS,
        binary::OPERATIONS,
        statistics::OPERATIONS,
        norms::OPERATIONS,
        contractions::OPERATIONS,
        convolution::OPERATIONS,
        attention::OPERATIONS,
        gather::OPERATIONS,
        scatter::OPERATIONS,
        joining::OPERATIONS,
        sorting::OPERATIONS,
        select::OPERATIONS,
        random::OPERATIONS,
        loss::OPERATIONS,
    ];
    FAMILIES.into_iter().flatten().copied()
}
