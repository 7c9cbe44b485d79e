//! Calls, which are inlined.

use naga::{Block, Function, Handle, LocalVariable, Statement};

use super::dynamic_indexing::FunctionVariables;
use super::frame::{Expr, Frame, Operand};
use super::pointers::{Pointer, Root};
use super::types::Ty;
use super::{Lower, MAX_CALL_DEPTH, too_complex};
use crate::ShaderError;
use crate::kir::Label;

impl<'m> Lower<'m> {
    /// Lowers a call.
    pub(super) fn lower_call(
        &mut self,
        callee: Handle<Function>,
        arguments: &[Expr],
        result: Option<Expr>,
    ) -> Result<(), ShaderError> {
        let arguments = self.operands(arguments)?;
        let frame = Frame::new(&self.module.functions[callee], &self.info[callee], arguments);
        let caller = std::mem::replace(&mut self.frame, frame);
        self.call_depth += 1;
        if self.call_depth > MAX_CALL_DEPTH {
            let message = format!("calls are nested more than {MAX_CALL_DEPTH} deep");
            return Err(too_complex(message));
        }
        let value = self.inline_body(callee)?;
        self.call_depth -= 1;
        self.frame = caller;
        if let (Some(result), Some(value)) = (result, value) {
            self.define(result, value);
        }
        Ok(())
    }

    /// Lowers the body of the frame's function; returns its result.
    fn inline_body(&mut self, callee: Handle<Function>) -> Result<Option<Operand>, ShaderError> {
        let function = self.frame.function;
        let indexed = self.indexed.clone();
        self.create_locals(&indexed.functions[callee.index()], true)?;
        if let Some((Statement::Return { value }, body)) = function.body.split_last()
            && count_returns(&function.body) == 1
        {
            // The only `return` is at the end: no scope and no result variable are needed.
            self.first_statements(&function.body, body.len())?;
            return value.map(|value| self.operand(value)).transpose();
        }
        if let Some(result) = &function.result {
            let ty = self.types.ty_of(result.ty)?;
            self.frame.result = Some(self.allocate(ty, false)?);
        }
        self.frame.exit = self.begin_scope()?;
        self.statements(&function.body)?;
        self.end_scope(self.frame.exit);
        let result = self.frame.result;
        result.map(|result| self.load_unchanging(result)).transpose()
    }

    /// Creates the function's local variables. `clear` zeroes those without an initialiser: without
    /// it, they are zero only if the function is executed once.
    pub(super) fn create_locals(
        &mut self,
        indexed: &FunctionVariables,
        clear: bool,
    ) -> Result<(), ShaderError> {
        for (handle, local) in self.frame.function.local_variables.iter() {
            let ty = self.types.ty_of(local.ty)?;
            let pointer = self.local_variable(local, ty, indexed.locals[handle.index()])?;
            self.frame.locals.push(pointer);
            // The flags that naga adds for `&&` and `||` are set before they are read.
            let is_flag = local.name.is_none() && ty == Ty::Scalar(crate::kir::Type::Bool);
            if let Some(init) = local.init {
                let value = self.operand(init)?;
                self.store(&pointer, &value)?;
            } else if clear && !is_flag {
                self.clear(&pointer)?;
            }
        }
        Ok(())
    }

    /// Returns the pointer to a local variable. A variable in memory is allocated once for all
    /// calls of the function, since WGSL has no recursion.
    fn local_variable(
        &mut self,
        local: &'m LocalVariable,
        ty: Ty,
        indexed: bool,
    ) -> Result<Pointer, ShaderError> {
        if let Some(pointer) = self.local_arrays.get(&std::ptr::from_ref(local)) {
            return Ok(*pointer);
        }
        let pointer = self.allocate(ty, indexed)?;
        if let Root::Leaves { .. } = pointer.root {
            self.local_arrays.insert(local, pointer);
        }
        Ok(pointer)
    }

    /// Lowers a return.
    pub(super) fn lower_return(&mut self, value: Option<Expr>) -> Result<(), ShaderError> {
        if let (Some(value), Some(to)) = (value, self.frame.result) {
            let value = self.operand(value)?;
            self.store(&to, &value)?;
        }
        let exit = self.frame.exit;
        // `emit_break` counts the exits of scopes; the kernel's label has no scope.
        if exit == Label::KERNEL {
            self.builder.break_to(exit);
        } else {
            self.emit_break(exit);
        }
        Ok(())
    }
}

/// Counts the `return` statements of a block.
fn count_returns(block: &Block) -> usize {
    block
        .iter()
        .map(|statement| match statement {
            Statement::Return { .. } => 1,
            Statement::Block(inner) => count_returns(inner),
            Statement::If { accept, reject, .. } => count_returns(accept) + count_returns(reject),
            Statement::Switch { cases, .. } => {
                cases.iter().map(|case| count_returns(&case.body)).sum()
            }
            Statement::Loop { body, continuing, .. } => {
                count_returns(body) + count_returns(continuing)
            }
            _ => 0,
        })
        .sum()
}
