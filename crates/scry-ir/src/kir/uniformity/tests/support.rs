//! Helpers that build small kernels.

use crate::Access;
use crate::kir::uniformity::{VarUniformity, Variability};
use crate::kir::{AddressSpace, BinaryOp, Builder, Builtin, Label, Place, Type, Value, Var};

/// A kernel with a buffer, a uniform bool, a varying bool and a variable.
pub struct Kernel {
    pub b: Builder,
    pub buffer: AddressSpace,
    /// A uniform bool.
    pub uniform: Value,
    /// A varying bool.
    pub varying: Value,
    /// A `U32`.
    pub x: Var,
}

pub fn kernel() -> Kernel {
    let mut b = Builder::new("test", [8, 8, 1]);
    let buffer = AddressSpace::Binding(b.buffer(Access::ReadWrite));
    let (local, group) = (b.builtin(Builtin::LocalId(0)), b.builtin(Builtin::GroupId(0)));
    let three = b.u32(3);
    let uniform = b.binary(BinaryOp::Lt, group, three);
    let varying = b.binary(BinaryOp::Lt, local, three);
    let x = b.var(Type::U32);
    Kernel { b, buffer, uniform, varying, x }
}

impl Kernel {
    /// Assigns a constant to `x`.
    pub fn set_x(&mut self, value: u32) {
        set(&mut self.b, self.x, value);
    }

    /// Reads `x` and stores it.
    pub fn store_x(&mut self) {
        store_var(&mut self.b, self.x);
    }

    /// Returns the variability of `x`, and whether it is partially assigned.
    pub fn uniformity_of_x(self) -> (Variability, bool) {
        let VarUniformity { variability, partially_assigned } =
            self.b.finish().uniformity().var(self.x);
        (variability, partially_assigned)
    }
}

/// Assigns a constant to a variable.
pub fn set(b: &mut Builder, var: Var, value: u32) {
    let value = b.u32(value);
    b.set(var, value);
}

/// Reads a variable and stores its value.
pub fn store_var(b: &mut Builder, var: Var) {
    let value = b.get(var);
    b.store(Place::new(AddressSpace::Binding(0), None, 4, 0), vec![value]);
}

/// Adds one to a variable.
pub fn increment(b: &mut Builder, var: Var) {
    let (old, one) = (b.get(var), b.u32(1));
    let new = b.binary(BinaryOp::Add, old, one);
    b.set(var, new);
}

/// Exits the loop or scope with this label if a variable is at least ten.
pub fn exit_at_ten(b: &mut Builder, var: Var, label: Label) {
    let (count, ten) = (b.get(var), b.u32(10));
    let done = b.binary(BinaryOp::Ge, count, ten);
    b.if_then(done, |b| b.break_to(label));
}
