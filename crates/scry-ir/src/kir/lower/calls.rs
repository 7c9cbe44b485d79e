//! Calls, which are inlined.

use naga::{Block, Function, Handle, LocalVariable, Statement};

use super::dynamic_indexing::FunctionVariables;
use super::frame::{Expr, Frame, Operand};
use super::pointers::{Pointer, Root};
use super::types::Ty;
use super::{Lower, MAX_CALLS, too_complex};
use crate::ShaderError;
use crate::kir::Label;

impl<'m> Lower<'m> {
    /// Lowers a call.
    pub(super) fn call(
        &mut self,
        callee: Handle<Function>,
        arguments: &[Expr],
        result: Option<Expr>,
    ) -> Result<(), ShaderError> {
        let arguments = self.operands(arguments)?;
        let frame = Frame::new(&self.module.functions[callee], &self.info[callee], arguments);
        let caller = std::mem::replace(&mut self.frame, frame);
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return Err(too_complex(format!("calls are nested more than {MAX_CALLS} deep")));
        }
        let value = self.inlined(callee)?;
        self.calls -= 1;
        self.frame = caller;
        if let (Some(result), Some(value)) = (result, value) {
            self.define(result, value);
        }
        Ok(())
    }

    /// Lowers the body of the frame's function; returns its result.
    fn inlined(&mut self, callee: Handle<Function>) -> Result<Option<Operand>, ShaderError> {
        let function = self.frame.function;
        let indexed = self.indexed.clone();
        self.locals(&indexed.functions[callee.index()], true)?;
        if let Some((Statement::Return { value }, body)) = function.body.split_last()
            && returns(&function.body) == 1
        {
            self.first_statements(&function.body, body.len())?;
            return value.map(|value| self.operand(value)).transpose();
        }
        if let Some(result) = &function.result {
            let ty = self.types.of(result.ty)?;
            self.frame.result = Some(self.variable(ty, false)?);
        }
        self.frame.exit = self.enter_scope()?;
        self.statements(&function.body)?;
        self.exit_scope(self.frame.exit);
        let result = self.frame.result;
        result.map(|result| self.view(result)).transpose()
    }

    /// Creates the function's variables. They are initialised explicitly if the function may be
    /// executed more than once.
    pub(super) fn locals(
        &mut self,
        indexed: &FunctionVariables,
        again: bool,
    ) -> Result<(), ShaderError> {
        for (handle, local) in self.frame.function.local_variables.iter() {
            let ty = self.types.of(local.ty)?;
            let pointer = self.local(local, ty, indexed.locals[handle.index()])?;
            self.frame.locals.push(pointer);
            // The flags of `&&` and `||` are set before they are read.
            let is_flag = local.name.is_none() && ty == Ty::Scalar(crate::kir::Type::Bool);
            if let Some(init) = local.init {
                let value = self.operand(init)?;
                self.store(&pointer, &value)?;
            } else if again && !is_flag {
                self.clear(&pointer)?;
            }
        }
        Ok(())
    }

    /// Creates a local variable. One in memory has the same address in each call of the function:
    /// recursion is impossible.
    fn local(
        &mut self,
        local: &'m LocalVariable,
        ty: Ty,
        indexed: bool,
    ) -> Result<Pointer, ShaderError> {
        if let Some(pointer) = self.local_arrays.get(&std::ptr::from_ref(local)) {
            return Ok(*pointer);
        }
        let pointer = self.variable(ty, indexed)?;
        if let Root::Leaves { .. } = pointer.root {
            self.local_arrays.insert(local, pointer);
        }
        Ok(pointer)
    }

    /// Lowers a return.
    pub(super) fn leave_function(&mut self, value: Option<Expr>) -> Result<(), ShaderError> {
        if let (Some(value), Some(to)) = (value, self.frame.result) {
            let value = self.operand(value)?;
            self.store(&to, &value)?;
        }
        let exit = self.frame.exit;
        if exit == Label::KERNEL {
            self.builder.leave(exit);
        } else {
            self.leave(exit);
        }
        Ok(())
    }
}

/// Counts the returns of a function.
fn returns(block: &Block) -> usize {
    block
        .iter()
        .map(|statement| match statement {
            Statement::Return { .. } => 1,
            Statement::Block(inner) => returns(inner),
            Statement::If { accept, reject, .. } => returns(accept) + returns(reject),
            Statement::Switch { cases, .. } => cases.iter().map(|case| returns(&case.body)).sum(),
            Statement::Loop { body, continuing, .. } => returns(body) + returns(continuing),
            _ => 0,
        })
        .sum()
}
