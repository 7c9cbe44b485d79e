//! What is computed for each element: a scalar expression over operands.
//!
//! A [`Map`] is the *map* of a graph's node and the content of one eager operation; `lower` makes
//! kernels of both. It has no shapes: the same map computes any sizes.

use scry_gpu::kir::{BinaryOp, Type, UnaryOp};

use crate::dtype::DType;

/// A scalar of a map, by position in [`Map::scalars`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Id(u32);

impl Id {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A step of the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    /// The element of an operand at the coordinates of the result.
    Load(u32),
    /// The element of an operand at the coordinates of the result, moved along one axis to an
    /// index: negative ones count from the end. Zero if the index is out of range.
    Gather { operand: u32, index: Id },
    /// A scalar that is passed when the kernel is launched, by position.
    Argument(u32),
    /// A coordinate of the result, a `u32`.
    Coordinate(u32),
    /// The position of the element in the result, in row-major order, a `u32`.
    Position,
    /// A constant, by its bits.
    Constant(u32),
    /// A unary operation.
    Unary(UnaryOp, Id),
    /// A binary operation.
    Binary(BinaryOp, Id, Id),
    /// The second scalar if the first is true, else the third.
    Select(Id, Id, Id),
    /// Conversion to the type of this step.
    Convert(Id),
    /// The same bits as another type.
    Bitcast(Id),
    /// The number as it is after it was stored as an element of a type with 16 bits.
    Round(DType, Id),
    /// The same number, which no compiler combines with the steps before it: it is an operation
    /// with a parameter that only launches set. It keeps a product of one operation from being
    /// contracted with a sum of the next, which would round differently.
    Opaque(Id),
}

impl Scalar {
    /// Returns the step with other operands.
    fn with(self, of: impl Fn(Id) -> Id) -> Self {
        match self {
            Self::Gather { operand, index } => Self::Gather { operand, index: of(index) },
            Self::Unary(op, a) => Self::Unary(op, of(a)),
            Self::Binary(op, a, b) => Self::Binary(op, of(a), of(b)),
            Self::Select(a, b, c) => Self::Select(of(a), of(b), of(c)),
            Self::Convert(a) => Self::Convert(of(a)),
            Self::Bitcast(a) => Self::Bitcast(of(a)),
            Self::Round(dtype, a) => Self::Round(dtype, of(a)),
            Self::Opaque(a) => Self::Opaque(of(a)),
            Self::Load(_)
            | Self::Argument(_)
            | Self::Coordinate(_)
            | Self::Position
            | Self::Constant(_) => self,
        }
    }

    /// Returns whether a compiler may contract the operation with a sum that uses its result.
    fn may_contract(self) -> bool {
        use BinaryOp::{Div, Mul};
        matches!(self, Self::Binary(Mul | Div, ..) | Self::Unary(UnaryOp::Neg, _))
    }
}

/// What replaces an operand of a map that is appended to an expression.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slot {
    /// An operand of the expression, by position.
    Operand(u32),
    /// A scalar of the expression.
    Scalar(Id),
}

/// What is computed for each element of a result. Equal maps have equal kernels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Map {
    /// The element types of the operands.
    pub(crate) operands: Vec<DType>,
    /// The number of arguments.
    pub(crate) arguments: u32,
    /// The steps, with the type of each; operands of a step are before it.
    pub(crate) scalars: Vec<(Scalar, Type)>,
    /// The step with the result.
    pub(crate) result: Id,
    /// The element type of the result.
    pub(crate) output: DType,
}

impl Expression {
    /// Returns whether computing an element again costs more than loading it.
    pub(crate) fn is_expensive(&self) -> bool {
        self.scalars.len() > 8 || self.has_functions()
    }

    /// Returns whether a step is a function or a division.
    pub(crate) fn has_functions(&self) -> bool {
        use UnaryOp::{Abs, Ceil, Floor, IsInf, IsNan, Neg, Not, Round, Trunc};
        let is_function = |(scalar, _): &(Scalar, Type)| match scalar {
            Scalar::Unary(op, _) => {
                !matches!(op, Neg | Abs | Not | Floor | Ceil | Round | Trunc | IsNan | IsInf)
            }
            Scalar::Binary(op, ..) => matches!(op, BinaryOp::Div | BinaryOp::Rem),
            _ => false,
        };
        self.scalars.iter().any(is_function)
    }
}

impl Map {
    /// Returns whether a step depends on where its element is in the result, beyond the
    /// coordinates of operands.
    pub(crate) fn has_coordinates(&self) -> bool {
        let is_place = |scalar| matches!(scalar, Scalar::Coordinate(_) | Scalar::Position);
        self.scalars.iter().any(|(scalar, _)| is_place(*scalar))
    }

    /// Returns whether a step needs the coordinates along the axes of the result.
    pub(crate) fn needs_axes(&self) -> bool {
        self.scalars.iter().any(|(scalar, _)| matches!(scalar, Scalar::Coordinate(_)))
    }

    /// Returns the map of a shard of a result, which computes the same elements: coordinates and
    /// positions are those in the whole. Further arguments are the first coordinate of the shard
    /// along each of `rank` axes, and the position of its first element.
    pub(crate) fn of_shard(&self, rank: u32) -> Self {
        if !self.has_coordinates() {
            return self.clone();
        }
        let (operands, arguments) = (self.operands.clone(), self.arguments + rank + 1);
        let mut e = Expression { operands, arguments, scalars: Vec::new() };
        let mut ids: Vec<Id> = Vec::with_capacity(self.scalars.len());
        for (scalar, ty) in &self.scalars {
            let first = match scalar {
                Scalar::Coordinate(axis) => Some(self.arguments + axis),
                Scalar::Position => Some(self.arguments + rank),
                _ => None,
            };
            let mut id = e.add(scalar.with(|id| ids[id.index()]), *ty);
            if let Some(first) = first {
                let first = e.add(Scalar::Argument(first), Type::U32);
                id = e.binary(BinaryOp::Add, id, first);
            }
            ids.push(id);
        }
        let result = ids[self.result.index()];
        let Expression { operands, arguments, scalars } = e;
        Self { operands, arguments, scalars, result, output: self.output }
    }

    /// Returns the number of floating-point operations for an element.
    pub(crate) fn flops(&self) -> usize {
        let is_operation = |(scalar, ty): &&(Scalar, Type)| {
            *ty == Type::F32 && matches!(scalar, Scalar::Unary(..) | Scalar::Binary(..))
        };
        self.scalars.iter().filter(is_operation).count()
    }

    /// Returns whether a step needs the parameter that compilers do not see.
    pub(crate) fn has_opaque(&self) -> bool {
        self.scalars.iter().any(|(scalar, _)| matches!(scalar, Scalar::Opaque(_)))
    }

    /// Returns whether a compiler may contract the last step with the steps of another map.
    pub(crate) fn may_contract(&self) -> bool {
        self.scalars[self.result.index()].0.may_contract()
    }

    /// Returns whether an operand is read at indices of another one.
    pub(crate) fn is_gathered(&self, operand: usize) -> bool {
        self.scalars.iter().any(|(scalar, _)| match scalar {
            Scalar::Gather { operand: gathered, .. } => *gathered as usize == operand,
            _ => false,
        })
    }
}

/// Builds a map. Equal steps are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expression {
    operands: Vec<DType>,
    arguments: u32,
    scalars: Vec<(Scalar, Type)>,
}

impl Expression {
    /// Adds an operand and loads its elements.
    pub(crate) fn operand(&mut self, dtype: DType) -> Id {
        self.operands.push(dtype);
        self.add(Scalar::Load(self.operands.len() as u32 - 1), dtype.computed())
    }

    /// Adds an operand and loads its elements at indices along an axis.
    pub(crate) fn gathered(&mut self, dtype: DType, index: Id) -> Id {
        self.operands.push(dtype);
        let operand = self.operands.len() as u32 - 1;
        self.add(Scalar::Gather { operand, index }, dtype.computed())
    }

    /// Adds an operand that is not loaded yet.
    pub(crate) fn declare(&mut self, dtype: DType) -> u32 {
        self.operands.push(dtype);
        self.operands.len() as u32 - 1
    }

    /// Loads the elements of an operand.
    pub(crate) fn load(&mut self, operand: u32) -> Id {
        let ty = self.operands[operand as usize].computed();
        self.add(Scalar::Load(operand), ty)
    }

    /// Returns the number of steps.
    pub(crate) fn len(&self) -> usize {
        self.scalars.len()
    }

    /// Appends a map as [`append_map`](Self::append_map) does. Returns its result as it is after it
    /// was stored.
    pub(crate) fn append(&mut self, map: &Map, slots: &[Slot]) -> Id {
        let result = self.append_map(map, slots);
        self.round(map.output, result)
    }

    /// Returns a scalar as it is after it was stored as an element of a type.
    pub(crate) fn round(&mut self, dtype: DType, a: Id) -> Id {
        match dtype {
            DType::F16 | DType::BF16 => self.add(Scalar::Round(dtype, a), Type::F32),
            DType::F32 if self.scalars[a.index()].0.may_contract() => {
                self.add(Scalar::Opaque(a), Type::F32)
            }
            _ => a,
        }
    }

    /// Appends the steps of a map whose operands are replaced, and whose arguments follow those of
    /// this expression. Returns its result.
    pub(crate) fn append_map(&mut self, map: &Map, slots: &[Slot]) -> Id {
        let first = self.arguments;
        let mut ids: Vec<Id> = Vec::with_capacity(map.scalars.len());
        for (scalar, ty) in &map.scalars {
            let of = |id: Id| ids[id.index()];
            let scalar = match *scalar {
                Scalar::Load(n) => match slots[n as usize] {
                    Slot::Operand(operand) => Scalar::Load(operand),
                    Slot::Scalar(id) => {
                        ids.push(id);
                        continue;
                    }
                },
                Scalar::Gather { operand, index } => match slots[operand as usize] {
                    Slot::Operand(operand) => Scalar::Gather { operand, index: of(index) },
                    // Elements to select from are in memory.
                    Slot::Scalar(id) => {
                        ids.push(id);
                        continue;
                    }
                },
                Scalar::Argument(n) => Scalar::Argument(first + n),
                other => other.with(of),
            };
            ids.push(self.add(scalar, *ty));
        }
        self.arguments += map.arguments;
        ids[map.result.index()]
    }

    /// Adds an argument for elements of type `dtype`.
    pub(crate) fn argument(&mut self, dtype: DType) -> Id {
        self.arguments += 1;
        self.add(Scalar::Argument(self.arguments - 1), dtype.computed())
    }

    pub(crate) fn coordinate(&mut self, axis: usize) -> Id {
        self.add(Scalar::Coordinate(axis as u32), Type::U32)
    }

    pub(crate) fn position(&mut self) -> Id {
        self.add(Scalar::Position, Type::U32)
    }

    /// Adds a constant of `u32`.
    pub(crate) fn bits(&mut self, value: u32) -> Id {
        self.add(Scalar::Constant(value), Type::U32)
    }

    pub(crate) fn f32(&mut self, value: f32) -> Id {
        self.add(Scalar::Constant(value.to_bits()), Type::F32)
    }

    /// Adds a small number of the type of another scalar.
    pub(crate) fn number_like(&mut self, like: Id, number: u16) -> Id {
        let ty = self.ty(like);
        let bits = if ty == Type::F32 { f32::from(number).to_bits() } else { number.into() };
        self.add(Scalar::Constant(bits), ty)
    }

    /// Adds the zero, or false, of the type of another scalar.
    pub(crate) fn zero_like(&mut self, like: Id) -> Id {
        self.add(Scalar::Constant(0), self.ty(like))
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, a: Id) -> Id {
        self.add(Scalar::Unary(op, a), result_of_unary(op, self.ty(a)))
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: Id, b: Id) -> Id {
        self.add(Scalar::Binary(op, a, b), result_of_binary(op, self.ty(a)))
    }

    /// Returns `terms[0] * x + terms[1] * x² + …`.
    pub(crate) fn series<const N: usize>(&mut self, x: Id, terms: [f32; N]) -> Id {
        let Some((last, others)) = terms.split_last() else { return self.f32(0.0) };
        let mut sum = self.f32(*last);
        for term in others.iter().rev() {
            let product = self.binary(BinaryOp::Mul, sum, x);
            let term = self.f32(*term);
            sum = self.binary(BinaryOp::Add, product, term);
        }
        self.binary(BinaryOp::Mul, sum, x)
    }

    pub(crate) fn select(&mut self, condition: Id, if_true: Id, if_false: Id) -> Id {
        self.add(Scalar::Select(condition, if_true, if_false), self.ty(if_true))
    }

    /// Converts to a type; returns the scalar itself if it has it.
    pub(crate) fn convert(&mut self, ty: Type, a: Id) -> Id {
        if self.ty(a) == ty { a } else { self.add(Scalar::Convert(a), ty) }
    }

    pub(crate) fn bitcast(&mut self, ty: Type, a: Id) -> Id {
        if self.ty(a) == ty { a } else { self.add(Scalar::Bitcast(a), ty) }
    }

    pub(crate) fn ty(&self, id: Id) -> Type {
        self.scalars[id.index()].1
    }

    /// Returns the map with a result, converted to the type of `output` for storage.
    pub(crate) fn finish(mut self, result: Id, output: DType) -> Map {
        let result = self.convert(output.computed(), result);
        let Self { operands, arguments, scalars } = self;
        Map { operands, arguments, scalars, result, output }
    }

    fn add(&mut self, scalar: Scalar, ty: Type) -> Id {
        let known = self.scalars.iter().position(|it| *it == (scalar, ty));
        let position = known.unwrap_or_else(|| {
            self.scalars.push((scalar, ty));
            self.scalars.len() - 1
        });
        Id(position as u32)
    }
}

fn result_of_unary(op: UnaryOp, operand: Type) -> Type {
    match op {
        UnaryOp::IsNan | UnaryOp::IsInf => Type::Bool,
        _ => operand,
    }
}

fn result_of_binary(op: BinaryOp, operand: Type) -> Type {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    if matches!(op, Eq | Ne | Lt | Le | Gt | Ge) { Type::Bool } else { operand }
}
