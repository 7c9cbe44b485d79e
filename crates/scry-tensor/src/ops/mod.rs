//! The operations: one file a family, one row an operation. A row has the method, the element
//! types, the meaning as a scalar expression, the reference on the host and the example; the
//! documentation, the table of [`operations`] and the tests come from it.

mod binary;
mod cast;
mod gather;
mod math;
mod matmul;
mod reduce;
mod select;
mod unary;

pub(crate) use binary::Binary;
pub(crate) use unary::Unary;

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

/// An element-wise operation of the crate, for tables and tests: see [`operations`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Operation {
    /// The method of [`Tensor`].
    pub name: &'static str,
    /// The element types that it supports.
    pub types: &'static [DType],
    /// The largest error for `f32`, relative to the larger of 1 and the magnitude of the result; 0
    /// if results are exact.
    pub tolerance: f64,
    pub(crate) apply: Apply,
}

/// How an operation is called, and what it computes.
#[derive(Clone, Copy)]
pub(crate) enum Apply {
    Unary(fn(&Tensor) -> Result<Tensor>, fn(Value) -> Option<Value>),
    Binary(fn(&Tensor, &Tensor) -> Result<Tensor>, fn(Value, Value) -> Option<Value>),
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
    /// Returns the number of operands: 1 or 2.
    ///
    /// ```
    /// let add = scry_tensor::operations().find(|it| it.name == "add").unwrap();
    /// assert_eq!(add.operands(), 2);
    /// ```
    #[must_use]
    pub fn operands(&self) -> usize {
        match self.apply {
            Apply::Unary(..) => 1,
            Apply::Binary(..) => 2,
        }
    }

    /// Calls the operation. A unary one ignores the second operand.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor, operations};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1, 2], &gpu)?;
    /// let add = operations().find(|it| it.name == "add").unwrap();
    /// assert_eq!(add.call(&x, &x)?.to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As the method.
    #[doc(hidden)]
    pub fn call(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        match self.apply {
            Apply::Unary(call, _) => call(a),
            Apply::Binary(call, _) => call(a, b),
        }
    }

    /// Returns the exact result, before it is rounded to the element type; `None` for values of a
    /// type that the operation does not support.
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
        }
    }
}

/// Returns the element-wise operations.
///
/// ```
/// let names: Vec<&str> = scry_tensor::operations().map(|it| it.name).collect();
/// assert!(names.contains(&"gelu") && names.contains(&"maximum"));
/// ```
pub fn operations() -> impl Iterator<Item = Operation> {
    unary::OPERATIONS.iter().chain(binary::OPERATIONS).copied()
}
