//! Results that are computed of coordinates: the arguments of their maps depend on shapes. Of the
//! last operand only the shape is used.

use scry_gpu::kir::{BinaryOp, Type};

use super::random::Random;
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::expr::{Expression, Map};
use crate::shape::{Shape, broadcast};

/// What is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Computed {
    Address(Address),
    Random(Random),
}

/// Positions along consecutive axes of the last operand, in row-major order of these axes alone.
/// An index out of range has the position `u32::MAX`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    /// The first of the axes.
    pub(crate) first: usize,
    /// For each axis the operand with its indices; `None` for the coordinate of the result.
    pub(crate) indices: Vec<Option<usize>>,
}

impl Computed {
    pub(super) fn shape(&self, call: Call, operands: &[&Shape]) -> Result<Shape> {
        let (like, operands) = (operands[operands.len() - 1], &operands[..operands.len() - 1]);
        match self {
            Self::Random(_) => Ok(like.clone()),
            Self::Address(address) => {
                let shapes: Vec<&[usize]> = operands.iter().map(|shape| &***shape).collect();
                let shape = broadcast(call, &shapes)?;
                address.check(call, &shape, like)?;
                Ok(shape)
            }
        }
    }

    pub(super) fn dtype(&self) -> DType {
        match self {
            Self::Random(random) => random.dtype,
            Self::Address(_) => DType::U32,
        }
    }

    /// Returns the map and its arguments. Operands of the map are those before the last one.
    pub(crate) fn map(&self, dtypes: &[DType], like: &Shape) -> (Map, Vec<u32>) {
        match self {
            Self::Random(random) => random.map(),
            Self::Address(address) => address.map(dtypes, like),
        }
    }
}

impl Address {
    /// Checks that coordinates of the result are coordinates of the last operand.
    fn check(&self, call: Call, shape: &Shape, like: &Shape) -> Result<()> {
        let is_free = |(n, index): (usize, &Option<usize>)| index.is_none().then_some(n);
        let mut free = self.indices.iter().enumerate().filter_map(is_free);
        let has_free = self.indices.contains(&None);
        if !has_free || (shape.rank() == like.rank() && free.all(|axis| shape[axis] <= like[axis]))
        {
            return Ok(());
        }
        let problem = format!("indices of {shape} do not fit {like}");
        let help =
            "indices must have the rank of the tensor, and no larger size except along the axis";
        Err(call.shape_error(&[shape, like], problem, help))
    }

    fn map(&self, dtypes: &[DType], like: &Shape) -> (Map, Vec<u32>) {
        let mut e = Expression::default();
        let loads: Vec<_> = dtypes.iter().map(|dtype| e.operand(*dtype)).collect();
        let (mut arguments, mut position, mut is_valid) = (Vec::new(), None, None);
        for (n, index) in self.indices.iter().enumerate() {
            arguments.push(like[self.first + n] as u32);
            let size = e.argument(DType::U32);
            let at = match index {
                None => e.coordinate(n),
                Some(operand) => {
                    let at = from_end(&mut e, loads[*operand], size);
                    let is_within = e.binary(BinaryOp::Lt, at, size);
                    is_valid = Some(match is_valid {
                        None => is_within,
                        Some(others) => e.binary(BinaryOp::And, others, is_within),
                    });
                    at
                }
            };
            position = Some(match position {
                None => at,
                Some(before) => {
                    let before = e.binary(BinaryOp::Mul, before, size);
                    e.binary(BinaryOp::Add, before, at)
                }
            });
        }
        let position = position.unwrap_or_else(|| e.bits(0));
        let nowhere = e.bits(u32::MAX);
        let result = is_valid.map_or(position, |is_valid| e.select(is_valid, position, nowhere));
        (e.finish(result, DType::U32), arguments)
    }
}

/// Returns an index as `u32`; negative ones count from the end.
fn from_end(e: &mut Expression, index: crate::expr::Id, size: crate::expr::Id) -> crate::expr::Id {
    let at = e.bitcast(Type::U32, index);
    if e.ty(index) != Type::I32 {
        return at;
    }
    let zero = e.zero_like(index);
    let is_negative = e.binary(BinaryOp::Lt, index, zero);
    let moved = e.binary(BinaryOp::Add, at, size);
    e.select(is_negative, moved, at)
}
