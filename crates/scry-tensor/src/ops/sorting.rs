//! Sorting, largest elements, prefix sums.

use scry_gpu::kir::{BinaryOp, Type, UnaryOp};

use super::reference::{Case, Draw};
use super::{Apply, KernelSource, Operation};
use crate::dtype::{DType, NUMBERS};
use crate::error::{Call, Result};
use crate::expr::Expression;
use crate::op::{Library, Op, Rows, Selection, TopK};
use crate::shape::resolve_axis;
use crate::tensor::{Tensor, apply};

/// Which elements come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

/// Order along an axis.
impl Tensor {
    /// Returns the sums of the elements up to each one along an axis. 16-bit floats accumulate in
    /// `f32`, integers wrap.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4]], &gpu)?;
    /// assert_eq!(x.cumsum(0)?.to_vec::<i32>()?, [1, 2, 4, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`](crate::ErrorKind::Index) if the axis is out of range;
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) for `bool` and quantised weights;
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn cumsum(&self, axis: i64) -> Result<Self> {
        self.rows(Call::new("Tensor::cumsum"), axis, NUMBERS, Rows::Cumsum)
    }

    /// Returns the elements along an axis in ascending order, and their indices, as `u32`. Equal
    /// elements, such as zeros of either sign, keep their order; NaN is last.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([2.0f32, f32::NAN, -1.0], &gpu)?;
    /// let (sorted, indices) = x.sort(-1)?;
    /// assert_eq!(sorted.to_vec::<f32>()?[..2], [-1.0, 2.0]);
    /// assert_eq!(indices.to_vec::<u32>()?, [2, 0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`cumsum`](Self::cumsum).
    #[track_caller]
    pub fn sort(&self, axis: i64) -> Result<(Self, Self)> {
        self.ordered(Call::new("Tensor::sort"), axis, None, Order::Ascending)
    }

    /// Returns the indices that sort an axis in ascending order, as `u32`: those of
    /// [`sort`](Self::sort).
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[30, 10, 20]], &gpu)?;
    /// assert_eq!(x.argsort(1)?.to_vec::<u32>()?, [1, 2, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`cumsum`](Self::cumsum).
    #[track_caller]
    pub fn argsort(&self, axis: i64) -> Result<Self> {
        let call = Call::new("Tensor::argsort");
        let axis = self.check_order(call, axis)?;
        self.positions(call, axis, None, Order::Ascending)
    }

    /// Returns the `k` largest elements along an axis in descending order, and their indices, as
    /// `u32`. NaN is the largest; of equal elements the first ones are taken, and come first.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 9, 5], [7, 7, 0]], &gpu)?;
    /// let (values, indices) = x.topk(2, -1)?;
    /// assert_eq!(values.to_vec::<i32>()?, [9, 5, 7, 7]);
    /// assert_eq!(indices.to_vec::<u32>()?, [1, 2, 0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if there are fewer than `k` elements;
    /// otherwise as [`cumsum`](Self::cumsum).
    #[track_caller]
    pub fn topk(&self, k: usize, axis: i64) -> Result<(Self, Self)> {
        self.ordered(Call::new("Tensor::topk"), axis, Some(k), Order::Descending)
    }

    fn ordered(
        &self,
        call: Call,
        axis: i64,
        k: Option<usize>,
        order: Order,
    ) -> Result<(Self, Self)> {
        let axis = self.check_order(call, axis)?;
        let positions = self.positions(call, axis, k, order)?;
        let selection = Selection { axis, is_along: true };
        Ok((apply(call, Op::Gather(selection), &[self, &positions])?, positions))
    }

    fn check_order(&self, call: Call, axis: i64) -> Result<usize> {
        let checked = call.check_dtype(self.dtype(), NUMBERS);
        let checked = checked.and_then(|()| resolve_axis(call, axis, self.rank()));
        Self::scoped(&[self], checked)
    }

    /// Returns the positions of the first elements in an order.
    fn positions(&self, call: Call, axis: usize, k: Option<usize>, order: Order) -> Result<Self> {
        let keys = apply(call, keys(self.dtype(), order), &[self])?.with_last(call, axis)?;
        let top = apply(call, Op::Library(Library::TopK(TopK { k })), &[&keys])?;
        top.with_last_at(call, axis)
    }
}

/// Returns the map of elements to unsigned keys, of which the largest is the first in the order.
fn keys(dtype: DType, order: Order) -> Op {
    let mut e = Expression::default();
    let x = e.operand(dtype);
    let sign = e.bits(1 << 31);
    let ascending = match dtype.computed() {
        Type::I32 => {
            let bits = e.bitcast(Type::U32, x);
            e.binary(BinaryOp::Xor, bits, sign)
        }
        Type::F32 => {
            let bits = e.bitcast(Type::U32, x);
            let magnitude = e.bits(u32::MAX >> 1);
            let magnitude = e.binary(BinaryOp::And, bits, magnitude);
            // -0 is +0; negative numbers descend with their magnitude; NaN is the largest.
            let negative = e.binary(BinaryOp::Sub, sign, magnitude);
            let positive = e.binary(BinaryOp::Or, sign, magnitude);
            let is_positive = e.binary(BinaryOp::Eq, bits, magnitude);
            let key = e.select(is_positive, positive, negative);
            let (is_nan, last) = (e.unary(UnaryOp::IsNan, x), e.bits(u32::MAX));
            e.select(is_nan, last, key)
        }
        _ => x,
    };
    let key = match order {
        Order::Descending => ascending,
        Order::Ascending => {
            let ones = e.bits(u32::MAX);
            e.binary(BinaryOp::Xor, ascending, ones)
        }
    };
    Op::map(e.finish(key, DType::U32), Vec::new())
}

/// Returns the positions in a stable order.
fn order_of(line: &[f64], order: Order) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..line.len()).collect();
    positions.sort_by(|a, b| {
        match order {
            Order::Ascending => line[*a].partial_cmp(&line[*b]),
            Order::Descending => line[*b].partial_cmp(&line[*a]),
        }
        .unwrap_or(std::cmp::Ordering::Equal)
    });
    positions
}

/// Returns a case along a random axis.
fn case(
    draw: &mut Draw,
    dtype: DType,
    output: DType,
    reference: impl Fn(&[f64]) -> Vec<f64>,
    call: fn(&Tensor, i64) -> Result<Tensor>,
) -> Case {
    let shape = draw.shape(1, 3);
    let axis = draw.below(shape.len());
    let x = draw.numbers(dtype, &shape);
    let wanted = x.along(axis, output, reference);
    Case::new(vec![x], wanted, move |it| call(&it[0], axis as i64))
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "cumsum",
        summary: "cumulative sum along an axis",
        types: NUMBERS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("scan_rows"),
        apply: Apply::Case(|draw, dtype| {
            let sums = |line: &[f64]| {
                let mut sum = 0.0;
                line.iter()
                    .map(|x| {
                        sum += x;
                        sum
                    })
                    .collect()
            };
            case(draw, dtype, dtype, sums, Tensor::cumsum)
        }),
    },
    Operation {
        name: "sort",
        summary: "elements in ascending order, and their indices",
        types: NUMBERS,
        tolerance: 0.0,
        kernel: KernelSource::Library("top_k"),
        apply: Apply::Case(|draw, dtype| {
            let sorted = |line: &[f64]| {
                order_of(line, Order::Ascending).into_iter().map(|n| line[n]).collect()
            };
            case(draw, dtype, dtype, sorted, |x, axis| Ok(x.sort(axis)?.0))
        }),
    },
    Operation {
        name: "argsort",
        summary: "indices that sort an axis",
        types: NUMBERS,
        tolerance: 0.0,
        kernel: KernelSource::Library("top_k"),
        apply: Apply::Case(|draw, dtype| {
            let positions = |line: &[f64]| {
                order_of(line, Order::Ascending).into_iter().map(|n| n as f64).collect()
            };
            case(draw, dtype, DType::U32, positions, Tensor::argsort)
        }),
    },
    Operation {
        name: "topk",
        summary: "`k` largest elements, and their indices",
        types: NUMBERS,
        tolerance: 0.0,
        kernel: KernelSource::Library("top_k"),
        apply: Apply::Case(|draw, dtype| {
            let mut shape = draw.shape(1, 3);
            let axis = draw.below(shape.len());
            shape[axis] += 1;
            let k = draw.from_to(1, shape[axis]);
            let x = draw.numbers(dtype, &shape);
            let wanted = x.along(axis, DType::U32, |line| {
                let order = order_of(line, Order::Descending);
                order[..k].iter().map(|n| *n as f64).collect()
            });
            Case::new(vec![x], wanted, move |it| Ok(it[0].topk(k, axis as i64)?.1))
        }),
    },
];
