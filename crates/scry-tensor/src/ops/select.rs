//! Choices: by a condition, and by the position in a matrix.

use scry_gpu::kir::{BinaryOp, Type};

use super::binary::{Operands, common_dtype};
use super::reference::{Array, Case, Draw};
use super::{Apply, KernelSource, Operand, Operation};
use crate::dtype::{DType, ELEMENTS};
use crate::error::{Call, ErrorKind, Result};
use crate::expr::Expression;
use crate::op::Op;
use crate::tensor::{Tensor, apply};

/// Choices.
impl Tensor {
    /// Returns the elements of `if_true` where this tensor, of `bool`, is true, and those of
    /// `if_false` elsewhere: NumPy's `where`. Shapes are broadcast. Two scalars become `f32` if one
    /// of them is a float, else `i32`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1.5f32, -2.0], &gpu)?;
    /// assert_eq!(x.lt(0.0)?.where_(0.0, &x)?.to_vec::<f32>()?, [1.5, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the condition is not `bool`, or the element types differ;
    /// [`ErrorKind::Shape`] if the shapes do not broadcast; [`ErrorKind::Device`];
    /// [`ErrorKind::Gpu`].
    #[doc(alias("where", "select", "masked_fill"))]
    #[track_caller]
    pub fn where_(
        &self,
        if_true: impl Into<Operand>,
        if_false: impl Into<Operand>,
    ) -> Result<Self> {
        let call = Call::new("Tensor::where_");
        self.chosen(call, &if_true.into(), &if_false.into())
    }

    /// Returns the elements of one operand where this tensor is true, and of the other elsewhere.
    pub(super) fn chosen(&self, call: Call, if_true: &Operand, if_false: &Operand) -> Result<Self> {
        let others = [if_true, if_false];
        let others = others.iter().filter_map(|it| it.tensor());
        let tensors: Vec<&Self> = [self].into_iter().chain(others).collect();
        let described = self.choice(call, if_true, if_false);
        apply(call, Self::scoped(&tensors, described)?, &tensors)
    }

    fn choice(&self, call: Call, if_true: &Operand, if_false: &Operand) -> Result<Op> {
        call.check_dtype(self.dtype(), &[DType::Bool])?;
        let dtype = common_dtype(call, &[if_true, if_false])?;
        call.check_dtype(dtype, ELEMENTS)?;
        let mut operands = Operands::default();
        let chosen = operands.add(call, DType::Bool, &self.into())?;
        let first = operands.add(call, dtype, if_true)?;
        let second = operands.add(call, dtype, if_false)?;
        let Operands { mut e, arguments } = operands;
        let result = e.select(chosen, first, second);
        Ok(Op::map(e.finish(result, dtype), arguments))
    }

    /// Returns the lower triangle of a matrix, or of each matrix of a stack, with zeros above:
    /// elements on the diagonal `diagonal`, which is 0 for the main one and positive above it, and
    /// below are kept.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::ones([2, 3], DType::I32, &gpu)?;
    /// assert_eq!(x.tril(0)?.to_vec::<i32>()?, [1, 0, 0, 1, 1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for tensors of rank 0 and 1; [`ErrorKind::TooLarge`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Result<Self> {
        self.triangle(Call::new("Tensor::tril"), BinaryOp::Le, diagonal)
    }

    /// Returns the upper triangle of a matrix, or of each matrix of a stack, with zeros below:
    /// elements on the diagonal `diagonal` and above are kept.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::ones([2, 3], DType::I32, &gpu)?;
    /// assert_eq!(x.triu(1)?.to_vec::<i32>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::tril`].
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Result<Self> {
        self.triangle(Call::new("Tensor::triu"), BinaryOp::Ge, diagonal)
    }

    /// Keeps elements where `column - row` compares with the diagonal.
    fn triangle(&self, call: Call, keeps: BinaryOp, diagonal: i64) -> Result<Self> {
        call.check_dtype(self.dtype(), ELEMENTS)?;
        let shape = self.shape();
        let [.., rows, columns] = **shape else {
            let problem = format!("{shape} is not the shape of a matrix");
            return Err(call.shape_error(&[shape], problem, "insert an axis with `unsqueeze`"));
        };
        if rows.max(columns) > i32::MAX as usize {
            let problem = format!("a matrix of {rows} × {columns} has positions beyond 32 bits");
            return Err(call.error(ErrorKind::TooLarge, problem, "compute parts of it"));
        }
        let mut e = Expression::default();
        let x = e.operand(self.dtype());
        let (row, column) = (e.coordinate(shape.rank() - 2), e.coordinate(shape.rank() - 1));
        let (row, column) = (e.bitcast(Type::I32, row), e.bitcast(Type::I32, column));
        let distance = e.binary(BinaryOp::Sub, column, row);
        let limit = e.argument(DType::I32);
        let is_kept = e.binary(keeps, distance, limit);
        let zero = e.zero_like(x);
        let result = e.select(is_kept, x, zero);
        let map = e.finish(result, self.dtype());
        let diagonal = diagonal.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        apply(call, Op::map(map, vec![diagonal as u32]), &[self])
    }
}

/// Returns the table's row of a choice.
const fn row(
    name: &'static str,
    summary: &'static str,
    apply: fn(&mut Draw, DType) -> Case,
) -> Operation {
    let (types, tolerance, kernel) = (ELEMENTS, 0.0, KernelSource::Generated);
    Operation { name, summary, types, tolerance, kernel, apply: Apply::Case(apply) }
}

pub(super) const OPERATIONS: &[Operation] = &[
    row("where_", "element-wise choice by a condition", |draw, dtype| {
        let shape = draw.shape(0, 4);
        let condition = draw.numbers(DType::Bool, &shape);
        let (x, y) = (draw.numbers(dtype, &shape), draw.numbers(dtype, &[]));
        let wanted = x.like(&shape, |at| match condition.at(at) != 0.0 {
            true => x.at(at),
            false => y.values[0],
        });
        Case::new(vec![condition, x, y], wanted, |it| it[0].where_(&it[1], &it[2]))
    }),
    row("tril", "lower triangles of matrices", |draw, dtype| triangle(draw, dtype, true)),
    row("triu", "upper triangles of matrices", |draw, dtype| triangle(draw, dtype, false)),
    row("cast", "elements as another type", |draw, dtype| {
        let shape = draw.shape(0, 4);
        let x = draw.numbers(dtype, &shape);
        // Integers as floats, which are exact in all types but `u32`, as `i32`.
        let whole = Array { values: x.values.iter().map(|x| x.trunc()).collect(), ..x };
        let wanted = Array { dtype: DType::I32, ..whole.clone() };
        Case::new(vec![whole], wanted, |it| it[0].cast(DType::I32))
    }),
];

fn triangle(draw: &mut Draw, dtype: DType, is_lower: bool) -> Case {
    let (shape, diagonal) = (draw.shape(2, 4), draw.below(7) as i64 - 3);
    let x = draw.numbers(dtype, &shape);
    let rank = shape.len();
    let wanted = x.like(&shape, |at| {
        let distance = at[rank - 1] as i64 - at[rank - 2] as i64;
        let is_kept = if is_lower { distance <= diagonal } else { distance >= diagonal };
        if is_kept { x.at(at) } else { 0.0 }
    });
    Case::new(vec![x], wanted, move |it| match is_lower {
        true => it[0].tril(diagonal),
        false => it[0].triu(diagonal),
    })
}
