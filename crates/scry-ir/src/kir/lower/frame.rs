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
    /// A value, as a list of scalars.
    Values(Rc<[Value]>),
    /// A value of a WGSL pointer type.
    Pointer(Pointer),
    /// A value that is too large for scalars, in memory that is not written while it is used.
    Memory(Pointer),
    /// The zero of a type that is too large for scalars.
    Zero,
}

/// The targets of `break` and `continue`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Targets {
    pub break_to: Label,
    pub continue_to: Option<Label>,
}

/// Whether the value of an expression is also saved in variables, one for each scalar.
#[derive(Clone)]
enum Saved {
    No,
    /// It is to be saved when it is evaluated.
    OnEvaluation,
    In(Vec<Var>),
}

/// A function that is being inlined.
pub(super) struct Frame<'m> {
    pub function: &'m Function,
    pub info: &'m FunctionInfo,
    pub arguments: Vec<Operand>,
    pub locals: Vec<Pointer>,
    /// The target of `return`.
    pub exit: Label,
    /// The variable to which `return` stores its value; `None` if there is no value, or if the
    /// only `return` is the last statement.
    pub result: Option<Pointer>,
    /// The targets of the enclosing loops and switches, the innermost last.
    pub targets: Vec<Targets>,
    /// A load whose only use is the store that follows: its value is not copied to a temporary.
    pub stored_load: Option<Expr>,
    /// Lowered expressions, by handle.
    values: Vec<Option<Operand>>,
    /// Whether values are saved, by handle: those of expressions that are used where the value
    /// might not be visible.
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
            stored_load: None,
            values: vec![None; function.expressions.len()],
            saved: vec![Saved::No; function.expressions.len()],
        }
    }

    pub fn expression(&self, handle: Expr) -> &'m Expression {
        &self.function.expressions[handle]
    }

    /// Returns the lowered expression, if it has been evaluated.
    pub fn get(&self, handle: Expr) -> Option<&Operand> {
        self.values[handle.index()].as_ref()
    }
}

impl Lower<'_> {
    /// Records a lowered expression.
    pub(super) fn define(&mut self, handle: Expr, operand: Operand) {
        if !matches!(self.frame.saved[handle.index()], Saved::No) {
            self.frame.saved[handle.index()] = Saved::In(self.save(&operand));
        }
        self.frame.values[handle.index()] = Some(operand);
    }

    /// Saves the scalars of an operand in new variables.
    fn save(&mut self, operand: &Operand) -> Vec<Var> {
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
    pub(super) fn save_on_evaluation(&mut self, handles: &[Expr]) {
        for &handle in handles {
            if self.frame.get(handle).is_none() {
                self.frame.saved[handle.index()] = Saved::OnEvaluation;
            }
        }
    }

    /// Stops saving the values of these expressions. If the values are not visible here (`hidden`),
    /// reads them from the variables.
    pub(super) fn restore_saved(&mut self, handles: &[Expr], hidden: bool) {
        for handle in handles {
            let saved = std::mem::replace(&mut self.frame.saved[handle.index()], Saved::No);
            if let (true, Saved::In(vars)) = (hidden, saved) {
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

    /// Returns a lowered expression. It has been evaluated by an earlier `Emit`, or is of a kind
    /// that needs none, such as a literal, and is evaluated here.
    pub(super) fn operand(&mut self, handle: Expr) -> Result<Operand, ShaderError> {
        match self.frame.get(handle) {
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
        self.scalars_of(&operand, ty)
    }

    /// Returns the only scalar of a value.
    pub(super) fn scalar(&mut self, handle: Expr) -> Result<Value, ShaderError> {
        let values = self.values(handle)?;
        let [value] = *values else {
            return Err(ShaderError::compiler("a scalar of several components".into()));
        };
        Ok(value)
    }

    /// Returns the value of an integer expression, bitcast to `u32`.
    pub(super) fn index(&mut self, handle: Expr) -> Result<Value, ShaderError> {
        let value = self.scalar(handle)?;
        match self.builder.kir().constant(value) {
            Some(constant) => Ok(self.constant(crate::kir::Const::u32(constant.bits as u32))),
            None => Ok(self.builder.bitcast(Type::U32, value)),
        }
    }

    /// Returns the pointer that an expression evaluates to.
    pub(super) fn pointer(&mut self, handle: Expr) -> Result<Pointer, ShaderError> {
        match self.operand(handle)? {
            Operand::Pointer(pointer) => Ok(pointer),
            _ => Err(ShaderError::compiler("a value where a pointer belongs".into())),
        }
    }

    /// Returns the type of an expression.
    pub(super) fn ty(&self, handle: Expr) -> Result<Ty, ShaderError> {
        match &self.frame.info[handle].ty {
            naga::proc::TypeResolution::Handle(ty) => self.types.ty_of(*ty),
            naga::proc::TypeResolution::Value(inner) => self.types.ty_of_inner(inner),
        }
    }
}
