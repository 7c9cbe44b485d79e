//! The entry point, whose arguments are built-in values.

use naga::{Binding, BuiltIn, Expression, FunctionArgument, TypeInner};

use super::Lower;
use super::frame::Operand;
use crate::ShaderError;
use crate::kir::{BinaryOp, Builtin, Const, Value};

impl Lower<'_> {
    /// Returns the values of the entry point's arguments.
    pub(super) fn entry_arguments(&mut self) -> Result<Vec<Operand>, ShaderError> {
        let mut operands = Vec::new();
        let function = self.frame.function;
        for (nth, argument) in function.arguments.iter().enumerate() {
            let is_argument = |expression: &Expression| match expression {
                Expression::FunctionArgument(at) => *at as usize == nth,
                _ => false,
            };
            let mut expressions = function.expressions.iter();
            if let Some((handle, _)) = expressions.find(|(_, it)| is_argument(it)) {
                self.set_span(function.expressions.get_span(handle));
            }
            operands.push(self.entry_argument(argument)?);
        }
        Ok(operands)
    }

    fn entry_argument(&mut self, argument: &FunctionArgument) -> Result<Operand, ShaderError> {
        let mut values = Vec::new();
        match (&argument.binding, &self.module.types[argument.ty].inner) {
            (None, TypeInner::Struct { members, .. }) => {
                for member in members {
                    self.push_built_in(member.binding.as_ref(), &mut values)?;
                }
            }
            (binding, _) => self.push_built_in(binding.as_ref(), &mut values)?,
        }
        Ok(Operand::Values(values.into()))
    }

    /// Appends the scalars of a built-in value.
    fn push_built_in(
        &mut self,
        binding: Option<&Binding>,
        out: &mut Vec<Value>,
    ) -> Result<(), ShaderError> {
        let Some(Binding::BuiltIn(
            built_in @ (BuiltIn::GlobalInvocationId
            | BuiltIn::LocalInvocationId
            | BuiltIn::WorkGroupId
            | BuiltIn::NumWorkGroups
            | BuiltIn::WorkGroupSize),
        )) = binding
        else {
            out.push(self.scalar_built_in(binding)?);
            return Ok(());
        };
        for axis in 0..3 {
            out.push(self.built_in_component(*built_in, axis));
        }
        Ok(())
    }

    /// Returns the component of a built-in vector along an axis.
    fn built_in_component(&mut self, built_in: BuiltIn, axis: u8) -> Value {
        match built_in {
            BuiltIn::GlobalInvocationId => self.global_id(axis),
            BuiltIn::LocalInvocationId => self.local_id(axis),
            BuiltIn::WorkGroupId => self.builder.builtin(Builtin::GroupId(axis)),
            BuiltIn::NumWorkGroups => self.builder.builtin(Builtin::GroupCount(axis)),
            _ => self.constant(Const::u32(self.workgroup_size[usize::from(axis)])),
        }
    }

    fn scalar_built_in(&mut self, binding: Option<&Binding>) -> Result<Value, ShaderError> {
        let builtin = match binding {
            Some(Binding::BuiltIn(BuiltIn::LocalInvocationIndex)) => {
                return Ok(self.local_index());
            }
            Some(Binding::BuiltIn(BuiltIn::NumSubgroups)) => Builtin::SubgroupCount,
            Some(Binding::BuiltIn(BuiltIn::SubgroupId)) => Builtin::SubgroupId,
            Some(Binding::BuiltIn(BuiltIn::SubgroupSize)) => Builtin::SubgroupSize,
            Some(Binding::BuiltIn(BuiltIn::SubgroupInvocationId)) => Builtin::SubgroupLane,
            _ => {
                let what = "an argument of the entry point without a supported built-in";
                return Err(ShaderError::compiler(what.into()));
            }
        };
        Ok(self.builder.builtin(builtin))
    }

    /// Returns the position in the workgroup along an axis; zero if the axis has one invocation.
    fn local_id(&mut self, axis: u8) -> Value {
        match self.workgroup_size[usize::from(axis)] {
            1 => self.constant(Const::u32(0)),
            _ => self.builder.builtin(Builtin::LocalId(axis)),
        }
    }

    /// Returns `workgroup_id * size + local_id`.
    fn global_id(&mut self, axis: u8) -> Value {
        let group = self.builder.builtin(Builtin::GroupId(axis));
        let size = self.workgroup_size[usize::from(axis)];
        if size == 1 {
            return group;
        }
        let size = self.constant(Const::u32(size));
        let first = self.builder.binary(BinaryOp::Mul, group, size);
        let local = self.local_id(axis);
        self.builder.binary(BinaryOp::Add, first, local)
    }

    /// Returns `x + width * (y + height * z)` of the position in the workgroup, without axes of one
    /// invocation.
    fn local_index(&mut self) -> Value {
        let mut sum = None;
        let mut stride = 1;
        for (axis, size) in (0..).zip(self.workgroup_size) {
            if size > 1 {
                let id = self.local_id(axis);
                let term = self.multiply_by(id, stride);
                sum = Some(match sum {
                    Some(sum) => self.builder.binary(BinaryOp::Add, sum, term),
                    None => term,
                });
            }
            stride *= size;
        }
        sum.unwrap_or_else(|| self.constant(Const::u32(0)))
    }
}
