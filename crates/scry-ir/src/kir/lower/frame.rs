//! The state of a function that is being inlined: its values, variables and jump targets.

use std::rc::Rc;

use naga::valid::FunctionInfo;
use naga::{Expression, Function, Handle};

use super::Lower;
use super::pointers::Pointer;
use super::types::Ty;
use crate::ShaderError;
use crate::kir::{Label, Type, Value, Var};

pub(super) type Expr = Handle<Expression>;

/// A lowered expression.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    /// A value, as scalars.
    Values(Rc<[Value]>),
    /// A pointer in WGSL.
    Pointer(Pointer),
    /// A value that is too large for scalars, in memory that is not written while it is used.
    Memory(Pointer),
    /// The zero of a type that is too large for scalars.
    Zero,
}

/// The targets of `break` and `continue`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Targets {
    pub leave: Label,
    pub next: Option<Label>,
}

/// Whether the value of an expression is also saved in variables.
#[derive(Clone)]
enum Saved {
    No,
    /// It will be saved when it is evaluated.
    OnEvaluation,
    In(Vec<Var>),
}

/// A function that is being inlined.
pub(super) struct Frame<'m> {
    pub function: &'m Function,
    pub info: &'m FunctionInfo,
    pub arguments: Vec<Operand>,
    pub locals: Vec<Pointer>,
    /// The target of `return`, and the variable of its result.
    pub exit: Label,
    pub result: Option<Pointer>,
    /// Innermost last.
    pub targets: Vec<Targets>,
    /// A load whose only use is the store that follows.
    pub moved: Option<Expr>,
    /// Lowered expressions, by handle.
    values: Vec<Option<Operand>>,
    /// Saved values, by handle: of expressions that are used where their values might not be
    /// visible.
    saved: Vec<Saved>,
}

impl<'m> Frame<'m> {
    pub fn new(function: &'m Function, info: &'m FunctionInfo, arguments: Vec<Operand>) -> Self {
        Self {
            function,
            info,
            arguments,
            locals: Vec::new(),
            exit: Label::KERNEL,
            result: None,
            targets: Vec::new(),
            moved: None,
            values: vec![None; function.expressions.len()],
            saved: vec![Saved::No; function.expressions.len()],
        }
    }

    pub fn expression(&self, handle: Expr) -> &'m Expression {
        &self.function.expressions[handle]
    }

    /// Returns the lowered expression, if it has been evaluated.
    pub fn known(&self, handle: Expr) -> Option<&Operand> {
        self.values[handle.index()].as_ref()
    }
}

impl Lower<'_> {
    /// Records a lowered expression.
    pub(super) fn define(&mut self, handle: Expr, operand: Operand) {
        if !matches!(self.frame.saved[handle.index()], Saved::No) {
            self.frame.saved[handle.index()] = Saved::In(self.keep(&operand));
        }
        self.frame.values[handle.index()] = Some(operand);
    }

    /// Saves the scalars of an operand in new variables.
    fn keep(&mut self, operand: &Operand) -> Vec<Var> {
        let values: &[Value] = match operand {
            Operand::Values(values) => values,
            Operand::Pointer(pointer) | Operand::Memory(pointer) => pointer.index.as_slice(),
            Operand::Zero => &[],
        };
        let mut vars = Vec::with_capacity(values.len());
        for &value in values {
            let var = self.builder.var(self.builder.ty(value));
            self.builder.set(var, value);
            vars.push(var);
        }
        vars
    }

    /// Requests that the values of these expressions are saved in variables when they are
    /// evaluated. Expressions that have been evaluated are visible anyway.
    pub(super) fn share(&mut self, wanted: &[Expr]) {
        for &handle in wanted {
            if self.frame.known(handle).is_none() {
                self.frame.saved[handle.index()] = Saved::OnEvaluation;
            }
        }
    }

    /// Reloads the values of these expressions from their variables, if `hidden`.
    pub(super) fn unshare(&mut self, wanted: &[Expr], hidden: bool) {
        for handle in wanted {
            let kept = std::mem::replace(&mut self.frame.saved[handle.index()], Saved::No);
            if let (true, Saved::In(vars)) = (hidden, kept) {
                let mut values = Vec::with_capacity(vars.len());
                for var in vars {
                    values.push(self.builder.get(var));
                }
                match &mut self.frame.values[handle.index()] {
                    Some(Operand::Values(old)) => *old = values.into(),
                    Some(Operand::Pointer(pointer) | Operand::Memory(pointer)) => {
                        pointer.index = values.first().copied();
                    }
                    Some(Operand::Zero) | None => {}
                }
            }
        }
    }

    /// Returns a lowered expression: evaluated by an earlier `Emit`, or of a kind without one.
    pub(super) fn operand(&mut self, handle: Expr) -> Result<Operand, ShaderError> {
        match self.frame.known(handle) {
            Some(operand) => Ok(operand.clone()),
            None => self.evaluate(handle),
        }
    }

    /// Returns lowered expressions.
    pub(super) fn operands(&mut self, handles: &[Expr]) -> Result<Vec<Operand>, ShaderError> {
        let mut operands = Vec::with_capacity(handles.len());
        for handle in handles {
            operands.push(self.operand(*handle)?);
        }
        Ok(operands)
    }

    /// Returns the scalars of a value.
    pub(super) fn values(&mut self, handle: Expr) -> Result<Rc<[Value]>, ShaderError> {
        let operand = self.operand(handle)?;
        let ty = self.ty(handle)?;
        self.scalarised(&operand, ty)
    }

    /// Returns the only scalar of a value.
    pub(super) fn scalar(&mut self, handle: Expr) -> Result<Value, ShaderError> {
        let values = self.values(handle)?;
        let [value] = *values else {
            return Err(ShaderError::compiler("a scalar of several components".into()));
        };
        Ok(value)
    }

    /// Returns a scalar index, bitcast to `u32`.
    pub(super) fn index(&mut self, handle: Expr) -> Result<Value, ShaderError> {
        let value = self.scalar(handle)?;
        match self.builder.kir().constant(value) {
            Some(constant) => Ok(self.constant(crate::kir::Const::u32(constant.bits as u32))),
            None => Ok(self.builder.bitcast(Type::U32, value)),
        }
    }

    /// Returns a pointer.
    pub(super) fn pointer(&mut self, handle: Expr) -> Result<Pointer, ShaderError> {
        match self.operand(handle)? {
            Operand::Pointer(pointer) => Ok(pointer),
            _ => Err(ShaderError::compiler("a value where a pointer belongs".into())),
        }
    }

    /// Returns the type of an expression.
    pub(super) fn ty(&self, handle: Expr) -> Result<Ty, ShaderError> {
        match &self.frame.info[handle].ty {
            naga::proc::TypeResolution::Handle(ty) => self.types.of(*ty),
            naga::proc::TypeResolution::Value(inner) => self.types.of_inner(inner),
        }
    }
}
