//! What is uniform in the eyes of WGSL's uniformity analysis.

use std::collections::HashMap;

use crate::kir::{
    AddressSpace, AtomicOp, Builtin, Inst, Kir, Place, Stmt, Value, Var, Variability, for_each_stmt,
};

/// The uniform values of a kernel.
#[derive(Debug)]
pub(super) struct UniformLoads {
    /// The assignments of each variable.
    sets: HashMap<Var, Vec<Value>>,
    /// By value: whether KIR's own analysis finds it uniform.
    uniform: Vec<bool>,
    /// By value: whether it was loaded by `workgroupUniformLoad`.
    pub(super) loaded: Vec<bool>,
}

impl UniformLoads {
    pub(super) fn new(kir: &Kir) -> Self {
        let mut sets: HashMap<Var, Vec<Value>> = HashMap::new();
        for_each_stmt(&kir.body, &mut |stmt| {
            if let Stmt::Set(var, value) = stmt {
                sets.entry(*var).or_default().push(*value);
            }
        });
        let loaded = vec![false; kir.values.len()];
        if kir.workgroup.is_empty() {
            return Self { sets, uniform: loaded.clone(), loaded };
        }
        let uniform = kir.uniformity().values;
        let uniform = uniform.into_iter().map(|class| class == Variability::Uniform).collect();
        Self { sets, uniform, loaded }
    }

    /// Whether a value depends on nothing that WGSL takes for different among invocations.
    /// `seen` has the values that are being judged.
    pub(super) fn is_uniform(&self, kir: &Kir, value: Value, seen: &mut Vec<Value>) -> bool {
        if seen.contains(&value) {
            return true;
        }
        if !self.uniform[value.index()] {
            return false;
        }
        seen.push(value);
        let inst = match *kir.inst(value) {
            Inst::Extra(first, _) => kir.inst(first),
            _ => kir.inst(value),
        };
        match inst {
            Inst::Builtin(builtin) => {
                return matches!(builtin, Builtin::GroupId(_) | Builtin::GroupCount(_));
            }
            Inst::Get(var) => {
                let sets = self.sets.get(var).map_or(&[][..], Vec::as_slice);
                return sets.iter().all(|value| self.is_uniform(kir, *value, seen));
            }
            Inst::Load { place, .. } => {
                let constant = match place.space {
                    AddressSpace::Binding(nth) => !kir.buffers[nth as usize].writable,
                    AddressSpace::Immediate => true,
                    AddressSpace::Workgroup(_) | AddressSpace::Local(_) => false,
                };
                if !constant && !self.loaded[value.index()] {
                    return false;
                }
            }
            Inst::Atomic { .. } if !self.loaded[value.index()] => return false,
            Inst::Subgroup(_) | Inst::MultiplyAdd { .. } => return false,
            _ => {}
        }
        let mut uniform = true;
        inst.for_each_operand(|operand| uniform &= self.is_uniform(kir, operand, seen));
        uniform
    }

    /// The place and the number of values that a statement loads from workgroup memory.
    pub(super) fn load(kir: &Kir, stmt: &Stmt) -> Option<(Value, Place, u32)> {
        let Stmt::Let(value) = stmt else { return None };
        let (place, count) = match *kir.inst(*value) {
            Inst::Load { place, count } => (place, count.into()),
            Inst::Atomic { op: AtomicOp::Load, place, .. } => (place, 1),
            _ => return None,
        };
        matches!(place.space, AddressSpace::Workgroup(_)).then_some((*value, place, count))
    }
}
