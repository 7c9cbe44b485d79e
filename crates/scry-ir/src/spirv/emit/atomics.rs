//! Atomic operations.

use spirv::{Capability, MemorySemantics, Op, Scope};

use super::module::Id;
use super::{Emitter, Result, lacking, not_covered};
use crate::kir::{AddressSpace, AtomicOp, Place, Type, Value};

/// The extension with atomic additions of floats.
const FLOAT_ADD: &str = "SPV_EXT_shader_atomic_float_add";

impl Emitter<'_> {
    /// Emits an atomic operation, whose result is the previous content; zero for a store.
    pub(super) fn atomic(
        &mut self,
        ty: Type,
        op: AtomicOp,
        place: &Place,
        value: Option<Value>,
        compare: Option<Value>,
    ) -> Result<Id> {
        if ty.size() == 8 {
            self.m.require(Capability::Int64Atomics);
        }
        let (pointer, scope) = self.atomic_pointer(place, ty)?;
        let relaxed = MemorySemantics::RELAXED.bits();
        let [scope, relaxed] = [scope as u32, relaxed].map(|word| self.m.u32(word));
        let value = value.map(|value| self.value(value));
        let result = self.spirv_ty(ty);
        let mut operands = vec![pointer, scope, relaxed];
        match op {
            AtomicOp::Load => {}
            AtomicOp::Store => {
                operands.extend(value);
                self.m.run(Op::AtomicStore, &operands);
                return Ok(self.m.null(result));
            }
            AtomicOp::CompareExchange => {
                operands.push(relaxed);
                operands.extend(value);
                operands.extend(compare.map(|compare| self.value(compare)));
            }
            AtomicOp::Sub if ty.is_float() => {
                operands.extend(value.map(|value| self.op(Op::FNegate, ty, &[value])));
            }
            _ => operands.extend(value),
        }
        let Some(code) = opcode(op, ty) else { return not_covered(op, ty) };
        if code == Op::AtomicFAddEXT {
            self.m.require(Capability::AtomicFloat32AddEXT);
            self.m.extension(FLOAT_ADD);
        }
        Ok(self.m.op(code, result, &operands))
    }

    fn atomic_pointer(&mut self, place: &Place, ty: Type) -> Result<(Id, Scope)> {
        let resolved = self.resolve(place);
        match place.space {
            AddressSpace::Binding(binding) => {
                let memory_ty = super::views::view_type(ty);
                Ok((self.buffer_pointer(binding, &resolved, memory_ty, 0, 1), Scope::Device))
            }
            AddressSpace::Workgroup(i) => {
                let array = self.workgroup[i as usize];
                let (pointer, _) = self.array_pointer(&array, &resolved, ty, 0, 1)?;
                Ok((pointer, Scope::Workgroup))
            }
            other => Err(lacking(&format!("an atomic operation in {other:?}"))),
        }
    }
}

fn opcode(op: AtomicOp, ty: Type) -> Option<Op> {
    let signed = ty.is_signed();
    Some(match op {
        AtomicOp::Load => Op::AtomicLoad,
        AtomicOp::Exchange => Op::AtomicExchange,
        AtomicOp::Add | AtomicOp::Sub if ty == Type::F32 => Op::AtomicFAddEXT,
        _ if ty.is_float() => return None,
        AtomicOp::Add => Op::AtomicIAdd,
        AtomicOp::Sub => Op::AtomicISub,
        AtomicOp::Min if signed => Op::AtomicSMin,
        AtomicOp::Min => Op::AtomicUMin,
        AtomicOp::Max if signed => Op::AtomicSMax,
        AtomicOp::Max => Op::AtomicUMax,
        AtomicOp::And => Op::AtomicAnd,
        AtomicOp::Or => Op::AtomicOr,
        AtomicOp::Xor => Op::AtomicXor,
        AtomicOp::CompareExchange => Op::AtomicCompareExchange,
        AtomicOp::Store => return None,
    })
}
