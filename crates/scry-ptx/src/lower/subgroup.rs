//! Exchange within a subgroup.

use scry_ir::kir::{SubgroupOp, Type};

use super::Lowering;
use crate::types::Reg;

impl Lowering<'_> {
    /// Exchange between the invocations of a subgroup.
    pub(super) fn subgroup(&mut self, ty: Type, op: &SubgroupOp) -> Reg {
        let _ = (ty, op);
        todo!()
    }
}
