//! Dispatches expressions to the files that lower them.

use std::rc::Rc;

use naga::{Expression, Range, ScalarKind};

use super::frame::{Expr, Operand};
use super::{Lower, Shape, Shaped, convert, math, operators, types};
use crate::ShaderError;
use crate::kir::Value;

/// An argument: its shape, and its scalars.
type Argument = (Shape, Rc<[Value]>);

fn shaped(argument: &Argument) -> Shaped<'_> {
    Shaped { shape: argument.0, values: &argument.1 }
}

impl Lower<'_> {
    /// Lowers an `Emit` statement.
    pub(super) fn emit(&mut self, range: &Range<Expression>) -> Result<(), ShaderError> {
        for handle in range.clone() {
            self.set_span(self.frame.function.expressions.get_span(handle));
            self.spend(1)?;
            let operand = self.evaluate(handle)?;
            self.define(handle, operand);
        }
        Ok(())
    }

    /// Lowers an expression in the current block.
    pub(super) fn evaluate(&mut self, handle: Expr) -> Result<Operand, ShaderError> {
        match *self.frame.expression(handle) {
            Expression::Literal(literal) => self.literal(literal),
            Expression::Constant(constant) => {
                self.global_expression(self.module.constants[constant].init)
            }
            Expression::ZeroValue(ty) => self.zero(self.types.ty_of(ty)?),
            Expression::Compose { ty, ref components } => self.lower_compose(ty, components),
            Expression::Splat { size, value } => {
                super::constants::splat(&self.operand(value)?, size)
            }
            Expression::Swizzle { size, vector, pattern } => {
                let vector = self.values(vector)?;
                let components = pattern[..size as usize].iter().map(|at| vector[*at as usize]);
                Ok(Operand::Values(components.collect()))
            }
            Expression::FunctionArgument(at) => Ok(self.frame.arguments[at as usize].clone()),
            Expression::GlobalVariable(global) => Ok(Operand::Pointer(self.global(global)?)),
            Expression::LocalVariable(local) => {
                Ok(Operand::Pointer(self.frame.locals[local.index()]))
            }
            Expression::Access { base, index } => self.access(base, index),
            Expression::AccessIndex { base, index } => self.access_index(base, index),
            Expression::Load { pointer } => self.lower_load(handle, pointer),
            Expression::ArrayLength(array) => {
                let array = self.pointer(array)?;
                Ok(Operand::Values([self.length(&array)?].into()))
            }
            _ => Ok(Operand::Values(self.lower_operation(handle)?.into())),
        }
    }

    /// Lowers a constructor of a vector, matrix, array or structure.
    fn lower_compose(
        &mut self,
        ty: naga::Handle<naga::Type>,
        components: &[Expr],
    ) -> Result<Operand, ShaderError> {
        let parts = self.operands(components)?;
        self.compose(self.types.ty_of(ty)?, &parts)
    }

    /// Lowers a load, without a copy if its only use is the store that follows.
    fn lower_load(&mut self, handle: Expr, pointer: Expr) -> Result<Operand, ShaderError> {
        let pointer = self.pointer(pointer)?;
        if self.frame.stored_load == Some(handle) {
            return self.load_unchanging(pointer);
        }
        self.load(&pointer)
    }

    fn argument(&mut self, handle: Expr) -> Result<Argument, ShaderError> {
        Ok((self.ty(handle)?.shape(), self.values(handle)?))
    }

    /// Lowers an operator, a built-in function, a conversion or an operation on cooperative
    /// matrices.
    fn lower_operation(&mut self, handle: Expr) -> Result<Vec<Value>, ShaderError> {
        match *self.frame.expression(handle) {
            Expression::Unary { op, expr } => {
                let a = self.argument(expr)?;
                operators::unary(&mut self.builder, op, shaped(&a))
            }
            Expression::Binary { op, left, right } => {
                let (left, right) = (self.argument(left)?, self.argument(right)?);
                operators::binary(&mut self.builder, op, shaped(&left), shaped(&right))
            }
            Expression::Select { condition, accept, reject } => {
                let condition = self.argument(condition)?;
                let (a, b) = (self.argument(accept)?, self.argument(reject)?);
                operators::select(&mut self.builder, shaped(&condition), shaped(&a), shaped(&b))
            }
            Expression::Relational { fun, argument } => {
                let a = self.argument(argument)?;
                operators::relational(&mut self.builder, fun, shaped(&a))
            }
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let mut arguments = Vec::with_capacity(4);
                for arg in [Some(arg), arg1, arg2, arg3].into_iter().flatten() {
                    arguments.push(self.argument(arg)?);
                }
                let shaped: Vec<_> = arguments.iter().map(shaped).collect();
                math::math(&mut self.builder, fun, &shaped)
            }
            Expression::As { expr, kind, convert } => self.lower_cast(expr, kind, convert),
            Expression::CooperativeLoad { data, .. } => {
                self.cooperative_load(self.ty(handle)?, data)
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                self.cooperative_multiply_add([a, b, c])
            }
            ref other => Err(unsupported(other)),
        }
    }

    /// Lowers a conversion, or a bitcast if `width` is `None`.
    fn lower_cast(
        &mut self,
        expr: Expr,
        kind: ScalarKind,
        width: Option<naga::Bytes>,
    ) -> Result<Vec<Value>, ShaderError> {
        let a = self.argument(expr)?;
        if let Some(width) = width {
            let to = types::scalar(naga::Scalar { kind, width })?;
            return convert::convert(&mut self.builder, shaped(&a), to);
        }
        let width = a.1.first().map_or(4, |first| self.builder.ty(*first).size() as u8);
        let to = types::scalar(naga::Scalar { kind, width })?;
        convert::bitcast(&mut self.builder, shaped(&a), to)
    }
}

/// Returns the error for an unsupported expression. The validator has already rejected textures,
/// ray queries and the like.
fn unsupported(expression: &Expression) -> ShaderError {
    ShaderError::compiler(match expression {
        Expression::CallResult(_)
        | Expression::AtomicResult { .. }
        | Expression::WorkGroupUniformLoadResult { .. }
        | Expression::SubgroupBallotResult
        | Expression::SubgroupOperationResult { .. } => {
            "the result of a call, atomic or subgroup operation is used before the statement that \
             produces it"
                .into()
        }
        Expression::Override(_) => "unresolved override".into(),
        _ => "unsupported expression".into(),
    })
}
