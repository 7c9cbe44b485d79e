//! Builds small kernels.

use crate::kir::uniformity::{VarUniformity, Variability};
use crate::kir::{AddressSpace, BinaryOp, Builder, Builtin, Label, Place, Type, Value, Var};

/// A kernel with a buffer, a uniform bool and a varying one.
pub struct Kernel {
    pub b: Builder,
    pub buffer: AddressSpace,
    /// A uniform bool.
    pub same: Value,
    /// A varying bool.
    pub differs: Value,
    pub x: Var,
}

pub fn kernel() -> Kernel {
    let mut b = Builder::new("test", [8, 8, 1]);
    let buffer = AddressSpace::Binding(b.buffer(true));
    let (local, group) = (b.builtin(Builtin::LocalId(0)), b.builtin(Builtin::GroupId(0)));
    let three = b.u32(3);
    let same = b.binary(BinaryOp::Lt, group, three);
    let differs = b.binary(BinaryOp::Lt, local, three);
    let x = b.var(Type::U32);
    Kernel { b, buffer, same, differs, x }
}

impl Kernel {
    /// Assigns a constant to `x`.
    pub fn set(&mut self, value: u32) {
        set(&mut self.b, self.x, value);
    }

    /// Reads `x` and stores it.
    pub fn read(&mut self) {
        read(&mut self.b, self.x);
    }

    /// Returns the uniformity of `x`.
    pub fn fact(self) -> (Variability, bool) {
        let VarUniformity { class, partial } = self.b.finish().uniformity().var(self.x);
        (class, partial)
    }
}

pub fn set(b: &mut Builder, var: Var, value: u32) {
    let value = b.u32(value);
    b.set(var, value);
}

pub fn read(b: &mut Builder, var: Var) {
    let value = b.get(var);
    b.store(Place::new(AddressSpace::Binding(0), None, 4, 0), vec![value]);
}

/// Adds one to a variable.
pub fn step(b: &mut Builder, var: Var) {
    let (old, one) = (b.get(var), b.u32(1));
    let new = b.binary(BinaryOp::Add, old, one);
    b.set(var, new);
}

/// Leaves a label once a variable is ten.
pub fn until_ten(b: &mut Builder, var: Var, label: Label) {
    let (count, ten) = (b.get(var), b.u32(10));
    let done = b.binary(BinaryOp::Ge, count, ten);
    b.if_then(done, |b| b.leave(label));
}
