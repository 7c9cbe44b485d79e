//! Values of a kernel being made.

use super::Builder;
use crate::kir::{
    AtomicOp, BinaryOp, Builtin, Const, Definition, Inst, Place, Stmt, SubgroupOp, Type, UnaryOp,
    Value, Var,
};

// The commonest of these stay calls: copies at each of a hundred places take long to build.
/// Values.
impl Builder {
    /// Computes a value of type `ty` here.
    #[inline(never)]
    pub fn value(&mut self, ty: Type, inst: Inst) -> Value {
        let value = self.define(ty, inst);
        self.push(Stmt::Let(value));
        value
    }

    fn define(&mut self, ty: Type, inst: Inst) -> Value {
        self.kir.values.push(Definition { ty, inst });
        Value(self.kir.values.len() as u32 - 1)
    }

    /// A constant.
    pub fn constant(&mut self, constant: Const) -> Value {
        self.value(constant.ty, Inst::Const(constant))
    }

    /// A `u32` constant.
    pub fn u32(&mut self, value: u32) -> Value {
        self.constant(Const::u32(value))
    }

    /// A fact about the invocation, a `u32`.
    pub fn builtin(&mut self, builtin: Builtin) -> Value {
        self.value(Type::U32, Inst::Builtin(builtin))
    }

    /// A function of one operand.
    #[inline(never)]
    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        self.value(op.result(self.ty(a)), Inst::Unary(op, a))
    }

    /// A function of two operands.
    #[inline(never)]
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        self.value(op.result(self.ty(a)), Inst::Binary(op, a, b))
    }

    /// `a * b + c`.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.value(self.ty(a), Inst::Fma(a, b, c))
    }

    /// `accept` where `condition` holds, else `reject`.
    pub fn select(&mut self, condition: Value, accept: Value, reject: Value) -> Value {
        self.value(self.ty(accept), Inst::Select(condition, accept, reject))
    }

    /// The same number as a `ty`; the value itself if it is one.
    pub fn convert(&mut self, ty: Type, a: Value) -> Value {
        if self.ty(a) == ty { a } else { self.value(ty, Inst::Convert(a)) }
    }

    /// The same bits as a `ty` of the same size; the value itself if it is one.
    pub fn bitcast(&mut self, ty: Type, a: Value) -> Value {
        if self.ty(a) == ty { a } else { self.value(ty, Inst::Bitcast(a)) }
    }

    /// Elements of the runtime-sized array that begins at byte `offset` of a buffer.
    pub fn array_length(&mut self, binding: u32, offset: u32, stride: u32) -> Value {
        self.value(Type::U32, Inst::ArrayLength { binding, offset, stride })
    }

    /// What a variable holds now.
    pub fn get(&mut self, var: Var) -> Value {
        self.value(self.kir.vars[var.index()], Inst::Get(var))
    }

    /// Reads `count` values (1 to 4) of type `ty`, one after the other.
    pub fn load(&mut self, ty: Type, place: Place, count: u8) -> Vec<Value> {
        self.several(ty, Inst::Load { place, count })
    }

    /// Computes values of type `ty` by an instruction that gives several.
    fn several(&mut self, ty: Type, inst: Inst) -> Vec<Value> {
        let first = self.value(ty, inst);
        let mut results = vec![first];
        for nth in 1..inst.results() {
            results.push(self.define(ty, Inst::Extra(first, nth as u8)));
        }
        results
    }

    /// `a * b + c` of matrices; see [`Inst::MultiplyAdd`].
    pub fn multiply_add(&mut self, a: [Value; 4], b: [Value; 2], c: [Value; 4]) -> Vec<Value> {
        self.several(self.ty(c[0]), Inst::MultiplyAdd { a, b, c })
    }

    /// Changes memory as one step; gives what was there before.
    pub fn atomic(
        &mut self,
        ty: Type,
        op: AtomicOp,
        place: Place,
        value: Option<Value>,
        compare: Option<Value>,
    ) -> Value {
        self.value(ty, Inst::Atomic { op, place, value, compare })
    }

    /// Exchange within the subgroup.
    pub fn subgroup(&mut self, op: SubgroupOp) -> Value {
        let ty = match op {
            SubgroupOp::Ballot { .. } => Type::U32,
            SubgroupOp::Reduce { value, .. } | SubgroupOp::Shuffle { value, .. } => self.ty(value),
        };
        self.value(ty, Inst::Subgroup(op))
    }
}
