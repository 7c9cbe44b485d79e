//! The operators `+ - * / -x !x`, of tensors and scalars. Each returns a `Result`.
//!
//! There is one implementation for all right operands, and one for floats and one for integers on
//! the left, so that the types of literals are inferred: `(&x + 1)?`, `(1.0 / &x)?`.

use std::ops::{Add, Div, Mul, Neg, Not, Sub};

use crate::error::{Call, Result};
use crate::ops::{Binary, Operand, Unary};
use crate::tensor::Tensor;

macro_rules! operator {
    ($trait:ident, $method:ident, $name:literal, $row:ident) => {
        impl<T: Into<Operand>> $trait<T> for &Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: T) -> Result<Tensor> {
                Binary::$row.apply(Call::new($name), &self.into(), &other.into())
            }
        }

        impl<T: Into<Operand>> $trait<T> for Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: T) -> Result<Tensor> {
                Binary::$row.apply(Call::new($name), &self.into(), &other.into())
            }
        }

        operator!($trait, $method, $name, $row, f64);
        operator!($trait, $method, $name, $row, i64);
    };
    ($trait:ident, $method:ident, $name:literal, $row:ident, $scalar:ty) => {
        impl $trait<&Tensor> for $scalar {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                Binary::$row.apply(Call::new($name), &Operand::from(self), &other.into())
            }
        }

        impl $trait<Tensor> for $scalar {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                Binary::$row.apply(Call::new($name), &Operand::from(self), &other.into())
            }
        }
    };
}

operator!(Add, add, "Tensor + Tensor", ADD);
operator!(Sub, sub, "Tensor - Tensor", SUB);
operator!(Mul, mul, "Tensor * Tensor", MUL);
operator!(Div, div, "Tensor / Tensor", DIV);

macro_rules! prefix {
    ($trait:ident, $method:ident, $name:literal, $row:ident, $($ty:ty),*) => {
        $(impl $trait for $ty {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self) -> Result<Tensor> {
                Unary::$row.apply(Call::new($name), &self)
            }
        })*
    };
}

prefix!(Neg, neg, "-Tensor", NEG, Tensor, &Tensor);
prefix!(Not, not, "!Tensor", LOGICAL_NOT, Tensor, &Tensor);
