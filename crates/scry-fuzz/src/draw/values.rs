//! Values: literals, parts of variables, and operators on them.

use super::ops::{self, Arg, Form};
use super::{Generator, Variable};
use crate::exact::{Rule, bound, can_be_stored};
use crate::tree::{Access, Expr, IndexReduction, Literal, Node, Place};
use crate::types::{Scalar, Type};

/// A step of an access path, without its index.
#[derive(Debug, Clone, Copy)]
enum AccessStep {
    Member(usize),
    Component(usize),
    Index(usize),
    Runtime,
}

impl Generator {
    /// Returns a value of a type, with operators nested at most `depth` deep.
    pub(super) fn value(&mut self, ty: &Type, depth: usize) -> Expr {
        if depth == 0 || self.random.one_in(6) {
            return self.leaf(ty, depth);
        }
        if self.random.one_in(8)
            && let Some(call) = self.call(ty, depth - 1)
        {
            return call;
        }
        match ty {
            Type::Scalar(_) | Type::Vector(..) => self.operation(ty, depth - 1),
            Type::Matrix(scalar, columns, rows) => self.matrix(*scalar, *columns, *rows, depth - 1),
            Type::Array(..) | Type::Struct(_) if self.random.one_in(2) => self.leaf(ty, depth),
            Type::Array(..) | Type::Struct(_) => self.composite_constructor(ty, depth - 1),
        }
    }

    /// Returns a value that can be stored in a variable.
    pub(super) fn storable_value(&mut self, ty: &Type, depth: usize) -> Expr {
        let value = self.value(ty, depth);
        if can_be_stored(&value) { value } else { tame(value) }
    }

    /// Returns a literal, or a read of a variable. The indices of the variable may have operators,
    /// nested `depth` deep.
    fn leaf(&mut self, ty: &Type, depth: usize) -> Expr {
        if self.random.below(4) > 0
            && let Some(place) = self.readable_place(ty, depth)
        {
            return Expr::read(ty.clone(), place);
        }
        self.literal(ty)
    }

    /// Returns a constant.
    pub(super) fn literal(&mut self, ty: &Type) -> Expr {
        let literal = match ty {
            Type::Scalar(Scalar::Bool) => Literal::Bool(self.random.one_in(2)),
            Type::Scalar(scalar) if scalar.is_float() => Literal::Float(self.float(*scalar)),
            Type::Scalar(scalar) => Literal::Int(self.integer(*scalar)),
            Type::Vector(scalar, width) => {
                let count = if self.random.one_in(2) { 1 } else { *width };
                let parts = (0..count).map(|_| self.literal(&Type::Scalar(*scalar))).collect();
                return Expr::op(ty.clone(), "$T($*)", Rule::Largest, parts);
            }
            Type::Matrix(scalar, columns, rows) => {
                let column = Type::Vector(*scalar, *rows);
                let parts = (0..*columns).map(|_| self.literal(&column)).collect();
                return Expr::op(ty.clone(), "$T($*)", Rule::Largest, parts);
            }
            Type::Array(element, len) => {
                let parts = (0..*len).map(|_| self.literal(element)).collect();
                return Expr::op(ty.clone(), "$T($*)", Rule::Largest, parts);
            }
            Type::Struct(index) => {
                let members = self.structs[*index].clone();
                let parts = members.iter().map(|member| self.literal(member)).collect();
                return Expr::op(ty.clone(), "$T($*)", Rule::Largest, parts);
            }
        };
        Expr::literal(ty.clone(), literal)
    }

    /// Returns a float within the bound of variables.
    pub(super) fn float(&mut self, scalar: Scalar) -> f64 {
        let steps = if scalar == Scalar::F16 { 2 } else { 4 };
        let max = if self.random.one_in(2) { 2 } else { 8 };
        let range = 2 * max * steps;
        (self.random.below(range + 1) as f64 - (max * steps) as f64) / steps as f64
    }

    fn integer(&mut self, scalar: Scalar) -> i128 {
        match scalar {
            Scalar::I16 => i128::from(self.random.integer(16) as u16 as i16),
            Scalar::U16 => i128::from(self.random.integer(16) as u16),
            Scalar::I32 => i128::from(self.random.integer(32) as u32 as i32),
            Scalar::U32 => i128::from(self.random.integer(32) as u32),
            // The minimum has no literal: its absolute value overflows.
            Scalar::I64 => i128::from((self.random.integer(64) as i64).max(-i64::MAX)),
            _ => i128::from(self.random.integer(64)),
        }
    }

    /// Returns a value that is not a constant expression; an array or structure may be one.
    fn non_constant(&mut self, ty: &Type) -> Expr {
        if let Some(place) = self.readable_place(ty, 0) {
            return Expr::read(ty.clone(), place);
        }
        match ty {
            Type::Scalar(scalar) => {
                let index = Expr::uint(self.random.below(16));
                let path = vec![Access::Runtime(Box::new(index), IndexReduction::Remainder)];
                let word = Expr::read(Type::U32, Place { root: "words".to_owned(), path });
                let (text, rule) = match scalar {
                    Scalar::U32 => return word,
                    Scalar::Bool => ("(($0 & 1u) == 1u)", Rule::Largest),
                    Scalar::I32 => ("bitcast<i32>($0)", Rule::Largest),
                    Scalar::I16 | Scalar::U16 | Scalar::I64 | Scalar::U64 => {
                        ("$T($0)", Rule::Largest)
                    }
                    Scalar::F16 | Scalar::F32 | Scalar::F64 => ("$T($0 % 8u)", Rule::Fixed(3, 0)),
                };
                Expr::op(ty.clone(), text, rule, vec![word])
            }
            Type::Vector(scalar, _) => {
                let part = self.non_constant(&Type::Scalar(*scalar));
                Expr::op(ty.clone(), "$T($0)", Rule::Largest, vec![part])
            }
            Type::Matrix(scalar, columns, rows) => {
                let column = self.non_constant(&Type::Vector(*scalar, *rows));
                Expr::op(ty.clone(), "$T($*)", Rule::Largest, vec![column; *columns])
            }
            Type::Array(..) | Type::Struct(_) => self.literal(ty),
        }
    }

    /// Returns a variable in scope, or a part of one; `None` if none has this type.
    fn readable_place(&mut self, ty: &Type, depth: usize) -> Option<Place> {
        self.place(ty, false, depth)
    }

    /// Returns a writable variable in scope, or a part of one; `None` if none has this type.
    pub(super) fn writable_place(&mut self, ty: &Type, depth: usize) -> Option<Place> {
        self.place(ty, true, depth)
    }

    fn place(&mut self, ty: &Type, for_write: bool, depth: usize) -> Option<Place> {
        let mut found = Vec::new();
        for variable in self.scope.iter().filter(|variable| variable.writable || !for_write) {
            let mut path = Vec::new();
            self.collect_parts(variable, &variable.ty, ty, &mut path, &mut found);
        }
        if found.is_empty() {
            return None;
        }
        let (root, steps) = found.swap_remove(self.random.below(found.len()));
        let path = steps.into_iter().map(|step| self.access(step, depth)).collect();
        Some(Place { root, path })
    }

    /// Finds the parts of a variable that have the type `wanted`.
    fn collect_parts(
        &self,
        variable: &Variable,
        ty: &Type,
        wanted: &Type,
        path: &mut Vec<AccessStep>,
        found: &mut Vec<(String, Vec<AccessStep>)>,
    ) {
        if ty == wanted {
            found.push((variable.root.clone(), path.clone()));
        }
        let parts: Vec<(AccessStep, Type)> = match ty {
            Type::Scalar(_) => Vec::new(),
            Type::Vector(scalar, width) => {
                let part = Type::Scalar(*scalar);
                vec![
                    (AccessStep::Component(width - 1), part.clone()),
                    (AccessStep::Index(*width), part),
                ]
            }
            Type::Matrix(scalar, columns, rows) => {
                vec![(AccessStep::Index(*columns), Type::Vector(*scalar, *rows))]
            }
            Type::Array(element, 0) => vec![(AccessStep::Runtime, (**element).clone())],
            Type::Array(element, len) => vec![(AccessStep::Index(*len), (**element).clone())],
            Type::Struct(index) => {
                let members = self.structs[*index].iter().enumerate();
                members.map(|(i, member)| (AccessStep::Member(i), member.clone())).collect()
            }
        };
        for (step, part) in parts {
            path.push(step);
            self.collect_parts(variable, &part, wanted, path, found);
            path.pop();
        }
    }

    fn access(&mut self, step: AccessStep, depth: usize) -> Access {
        match step {
            AccessStep::Member(member) => Access::Member(member),
            AccessStep::Component(last) => Access::Component(self.random.between(0, last)),
            AccessStep::Index(len) => self.element(len, depth),
            AccessStep::Runtime => self.runtime_element(depth),
        }
    }

    /// Returns an index that is below `len` if it is a constant.
    pub(super) fn index(&mut self, len: usize, depth: usize) -> Expr {
        if depth == 0 || self.random.one_in(3) {
            return Expr::uint(self.random.below(len));
        }
        let index = self.value(&Type::U32, depth - 1);
        if index.is_const() { Expr::uint(self.random.below(len)) } else { index }
    }

    /// Returns an operation with a scalar or vector result: an operator, a builtin function, a
    /// swizzle or a constructor.
    fn operation(&mut self, ty: &Type, depth: usize) -> Expr {
        if self.random.one_in(6) {
            return self.swizzle_or_constructor(ty, depth);
        }
        if let (Type::Vector(scalar, width), Some(_)) = (ty, ty.float())
            && self.random.one_in(10)
        {
            return self.matrix_vector_product(ty, *scalar, *width, depth);
        }
        let mut tables: Vec<&[Form]> = ops::tables(ty);
        if self.random.one_in(3) && tables.len() > 1 {
            // Without this, the few special forms would rarely be selected.
            tables.remove(0);
        }
        let count: usize = tables.iter().map(|table| table.len()).sum();
        let mut index = self.random.below(count);
        for table in tables {
            if let Some(form) = table.get(index) {
                return self.apply_form(ty, form, depth);
            }
            index -= table.len();
        }
        self.leaf(ty, depth)
    }

    /// Returns an operation of a form.
    fn apply_form(&mut self, ty: &Type, form: &Form, depth: usize) -> Expr {
        let (text, args, rule) = *form;
        let wide = self.random.between(2, 4);
        let number = self.random.pick(&[Scalar::I32, Scalar::U32, Scalar::F32]);
        let pure = self.pure;
        // An operand that is spliced twice must have the same value both times.
        self.pure |= text.matches("$1").count() > 1;
        let mut operands: Vec<Expr> =
            args.iter().map(|arg| self.operand(*arg, ty, wide, number, depth)).collect();
        self.pure = pure;
        if operands.iter().all(Expr::is_const) {
            operands[0] = self.non_constant(&operands[0].ty.clone());
        }
        self.exact_operation(ty, text, rule, operands)
    }

    /// Returns an operation; its operands are reduced to the bound of variables if it would not be
    /// exact otherwise.
    fn exact_operation(
        &mut self,
        ty: &Type,
        text: &'static str,
        rule: Rule,
        operands: Vec<Expr>,
    ) -> Expr {
        let operation = Expr::op(ty.clone(), text, rule, operands.clone());
        if bound(&operation).is_some() {
            return operation;
        }
        let operands = operands.into_iter().map(tame).collect();
        let operation = Expr::op(ty.clone(), text, rule, operands);
        if bound(&operation).is_some() { operation } else { self.leaf(ty, 0) }
    }

    /// Returns an operand. `wide` is the width of [`Arg::Wide`] and [`Arg::Flags`], and `number`
    /// the scalar of [`Arg::Number`].
    fn operand(&mut self, arg: Arg, ty: &Type, wide: usize, number: Scalar, depth: usize) -> Expr {
        let width = ty.width();
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let integers: Vec<Scalar> =
            self.numbers.iter().copied().filter(|number| !number.is_float()).collect();
        let integer = self.random.pick(&integers);
        let wanted = match arg {
            Arg::Same | Arg::NonConstant | Arg::Divisor => ty.clone(),
            Arg::One => Type::Scalar(scalar),
            Arg::Shift | Arg::Unsigned => Type::scalar_or_vector(Scalar::U32, width),
            Arg::Position => Type::U32,
            Arg::Signed => Type::scalar_or_vector(Scalar::I32, width),
            Arg::Float => Type::scalar_or_vector(Scalar::F32, width),
            Arg::Bools => Type::scalar_or_vector(Scalar::Bool, width),
            Arg::Bool => Type::BOOL,
            Arg::Number => Type::scalar_or_vector(number, width),
            Arg::Integer => Type::scalar_or_vector(integer, width),
            Arg::Ints(width) => Type::scalar_or_vector(Scalar::I32, width),
            Arg::Uints(width) => Type::scalar_or_vector(Scalar::U32, width),
            Arg::Floats(width) => Type::scalar_or_vector(Scalar::F32, width),
            Arg::Wide => Type::Vector(scalar, wide),
            Arg::Flags => Type::Vector(Scalar::Bool, wide),
        };
        let value = self.value(&wanted, depth);
        // naga also checks constant components of constructors and swizzles.
        let may_be_checked =
            matches!(arg, Arg::Divisor | Arg::Shift) && is_constructor_or_swizzle(&value);
        if !value.is_const() && !may_be_checked {
            return value;
        }
        match arg {
            Arg::Position | Arg::NonConstant => self.non_constant(&wanted),
            Arg::Divisor | Arg::Shift if self.random.one_in(2) => self.non_constant(&wanted),
            Arg::Divisor => self.small_constant(&wanted, 31),
            Arg::Shift => self.small_constant(&wanted, scalar.size() * 8 - 1),
            _ => value,
        }
    }

    /// Returns a constant from 1 to `max`.
    fn small_constant(&mut self, ty: &Type, max: usize) -> Expr {
        let scalar = Type::Scalar(ty.scalar().unwrap_or(Scalar::U32));
        let value = Literal::Int(self.random.between(1, max) as i128);
        let value = Expr::literal(scalar.clone(), value);
        if *ty == scalar {
            return value;
        }
        Expr::op(ty.clone(), "$T($0)", Rule::Largest, vec![value])
    }

    /// Returns a swizzle or a constructor.
    fn swizzle_or_constructor(&mut self, ty: &Type, depth: usize) -> Expr {
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let source = Type::Vector(scalar, 4);
        let width = ty.width();
        if self.random.one_in(2) {
            let text = match width {
                1 => self.random.pick(&["$0.x", "$0.y", "$0.w"]),
                2 => self.random.pick(&["$0.xy", "$0.wx", "$0.zz"]),
                3 => self.random.pick(&["$0.zyx", "$0.wyw", "$0.xyz"]),
                _ => self.random.pick(&["$0.wzyx", "$0.xxyy", "$0.yxwz"]),
            };
            let vector = self.value(&source, depth);
            let vector = if vector.is_const() { self.non_constant(&source) } else { vector };
            return Expr::op(ty.clone(), text, Rule::Largest, vec![vector]);
        }
        if width == 1 {
            return self.value(ty, depth);
        }
        let component = Type::Scalar(scalar);
        let parts = match width {
            4 if self.random.one_in(2) => vec![Type::Vector(scalar, 3), component],
            3 if self.random.one_in(2) => vec![component, Type::Vector(scalar, 2)],
            _ => vec![component; width],
        };
        let parts = parts.iter().map(|part| self.value(part, depth)).collect();
        self.exact_operation(ty, "$T($*)", Rule::Largest, parts)
    }

    fn matrix(&mut self, scalar: Scalar, columns: usize, rows: usize, depth: usize) -> Expr {
        let ty = Type::Matrix(scalar, columns, rows);
        let inner = self.random.between(2, 4);
        let (text, rule, operands) = match self.random.below(7) {
            0 => ("($0 + $1)", Rule::Sum, vec![ty.clone(), ty.clone()]),
            1 => ("($0 - $1)", Rule::Sum, vec![ty.clone(), ty.clone()]),
            2 => ("($0 * $1)", Rule::Products(1), vec![ty.clone(), Type::Scalar(scalar)]),
            3 => ("($0 * $1)", Rule::Products(1), vec![Type::Scalar(scalar), ty.clone()]),
            4 => {
                let (a, b) =
                    (Type::Matrix(scalar, inner, rows), Type::Matrix(scalar, columns, inner));
                ("($0 * $1)", Rule::Products(4), vec![a, b])
            }
            // Mesa 22 cannot compile a product of two transposed matrices unless they are square:
            // see corpus/drivers/product_of_transposes.wgsl. A sum hides that a matrix is
            // transposed.
            5 => {
                let operands = vec![Type::Matrix(scalar, rows, columns)];
                ("(transpose($0) + $T())", Rule::Largest, operands)
            }
            _ => ("$T($*)", Rule::Largest, vec![Type::Vector(scalar, rows); columns]),
        };
        self.matrix_operation(&ty, text, rule, &operands, depth)
    }

    /// Returns a product of a vector and a matrix.
    fn matrix_vector_product(
        &mut self,
        ty: &Type,
        scalar: Scalar,
        width: usize,
        depth: usize,
    ) -> Expr {
        let inner = self.random.between(2, 4);
        let vector = Type::Vector(scalar, inner);
        let types = if self.random.one_in(2) {
            [Type::Matrix(scalar, inner, width), vector]
        } else {
            [vector, Type::Matrix(scalar, width, inner)]
        };
        self.matrix_operation(ty, "($0 * $1)", Rule::Products(4), &types, depth)
    }

    /// Returns an operation on operands of given types.
    fn matrix_operation(
        &mut self,
        ty: &Type,
        text: &'static str,
        rule: Rule,
        types: &[Type],
        depth: usize,
    ) -> Expr {
        let mut operands: Vec<Expr> = types.iter().map(|ty| self.value(ty, depth)).collect();
        if operands.iter().all(Expr::is_const) {
            operands[0] = self.non_constant(&types[0]);
        }
        self.exact_operation(ty, text, rule, operands)
    }

    /// Returns a constructor of an array or structure.
    fn composite_constructor(&mut self, ty: &Type, depth: usize) -> Expr {
        let parts: Vec<Type> = match ty {
            Type::Array(element, len) => vec![(**element).clone(); *len],
            Type::Struct(index) => self.structs[*index].clone(),
            _ => Vec::new(),
        };
        let parts = parts.iter().map(|part| self.storable_value(part, depth.min(1))).collect();
        Expr::op(ty.clone(), "$T($*)", Rule::Largest, parts)
    }
}

/// Returns whether a value is a constructor or a swizzle.
pub(super) fn is_constructor_or_swizzle(value: &Expr) -> bool {
    match &value.node {
        Node::Op(op, _) => op.text.starts_with("$T(") || op.text.starts_with("$0."),
        _ => false,
    }
}

/// Reduces floats of a value to the bound of variables.
pub(super) fn tame(value: Expr) -> Expr {
    if value.ty.float().is_none() || can_be_stored(&value) {
        return value;
    }
    Expr::op(value.ty.clone(), "tame_$W($0)", Rule::VariableBound, vec![value])
}
