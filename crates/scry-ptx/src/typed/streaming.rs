//! Predicated loads and stores, and cache policies for streamed data.

use super::value::{Element, F16, ToOperand, Val};
use super::{Global, KernelBuilder, Memory, Ptr};
use crate::asm::{self, Opcode};
use crate::types::{Operand, PtxType, Reg};

impl<'k, T: Element> Ptr<'k, Global, T> {
    /// Loads a vector of 1, 2 or 4 elements that are constant while the kernel runs. Where
    /// `predicate` is false nothing is loaded, and each element is `otherwise`; `None` is always
    /// true.
    #[must_use]
    pub fn load_constant_if<const N: usize>(
        self,
        predicate: Option<Val<'k, bool>>,
        otherwise: impl ToOperand<T>,
    ) -> [Val<'k, T>; N] {
        self.load_with(self.k.edit(|body| body.constant_load()), None, predicate, otherwise)
    }

    /// As [`Ptr::load_constant_if`], for memory that may be written while the kernel runs.
    #[must_use]
    pub fn load_if<const N: usize>(
        self,
        predicate: Option<Val<'k, bool>>,
        otherwise: impl ToOperand<T>,
    ) -> [Val<'k, T>; N] {
        self.load_with(Opcode::new("ld.global"), None, predicate, otherwise)
    }

    /// Loads an element, bypassing L1. For loads before [`KernelBuilder::pdl_wait`]: while the
    /// predecessor still runs, L1 may hold stale data.
    #[must_use]
    pub fn load_before_wait(self) -> Val<'k, T> {
        let value = self.k.edit(|body| body.reg(T::TYPE));
        let opcode = Opcode::new("ld.relaxed.gpu.global").ty(T::TYPE.to_bits());
        self.k.emit(opcode, [value.into(), self.address().into()]);
        self.k.wrap(value)
    }

    /// As [`Ptr::load_constant_if`], for data that is read only once: bypasses L1, and applies an
    /// eviction policy in L2.
    #[must_use]
    pub fn load_streaming<const N: usize>(
        self,
        policy: Policy<'k>,
        predicate: Option<Val<'k, bool>>,
        otherwise: impl ToOperand<T>,
    ) -> [Val<'k, T>; N] {
        let opcode =
            self.k.edit(|body| body.constant_load()).with("L1::no_allocate").with("L2::cache_hint");
        self.load_with(opcode, Some(policy), predicate, otherwise)
    }

    fn load_with<const N: usize>(
        self,
        opcode: Opcode,
        policy: Option<Policy<'k>>,
        predicate: Option<Val<'k, bool>>,
        otherwise: impl ToOperand<T>,
    ) -> [Val<'k, T>; N] {
        let regs: [Reg; N] = std::array::from_fn(|_| match predicate {
            None => self.k.edit(|body| body.reg(T::TYPE)),
            Some(_) => self.k.var(otherwise).reg(),
        });
        let mut args = vec![scalar_or_vector(&regs.map(Operand::Reg)), self.address().into()];
        args.extend(policy.map(|Policy(policy)| policy.reg().into()));
        emit_predicated(self.k, predicate, vector_opcode(opcode, N, T::TYPE), args);
        regs.map(|reg| self.k.wrap(reg))
    }
}

impl<'k, S: Memory, T: Element> Ptr<'k, S, T> {
    /// Stores a vector of 1, 2 or 4 elements where `predicate` is true; `None` always is.
    pub fn store_if<const N: usize>(
        self,
        predicate: Option<Val<'k, bool>>,
        values: [impl ToOperand<T>; N],
    ) {
        let values = values.map(ToOperand::operand);
        let opcode = vector_opcode(Opcode::new("st").space(S::SPACE), N, T::TYPE);
        emit_predicated(
            self.k,
            predicate,
            opcode,
            vec![self.address().into(), scalar_or_vector(&values)],
        );
    }
}

/// An L2 eviction policy, an operand of loads.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'k>(Val<'k, u64>);

impl Policy<'_> {
    pub(super) fn operand(self) -> Operand {
        self.0.operand()
    }
}

impl KernelBuilder {
    /// Returns the policy by which data is evicted first.
    #[must_use]
    pub fn evict_first(&self) -> Policy<'_> {
        self.edit(|body| body.require(7, 4));
        let opcode = Opcode::new("createpolicy.fractional.L2::evict_first.b64");
        Policy(self.op(opcode, &[Operand::f32(1.0)]))
    }

    /// Starts to copy the 128 bytes that contain an address to L2. Not a read: what is written
    /// there afterwards is seen by later loads.
    pub fn prefetch_line<T: Element>(&self, at: Ptr<'_, Global, T>) {
        self.emit(Opcode::new("prefetch.global.L2"), [at.address().into()]);
    }

    /// Prefetches this many bytes into L2 (`sm_90`). Address and size must be multiples of 16.
    /// Executed by one thread.
    pub fn prefetch<T: Element>(&self, from: Ptr<'_, Global, T>, bytes: impl ToOperand<u32>) {
        self.edit(|body| body.require(8, 0));
        let args = [from.address().into(), bytes.operand().into()];
        self.emit(Opcode::new("cp.async.bulk.prefetch.L2.global"), args);
    }
}

/// Unpacks two `f16` of one register to `f32`, the low one first.
#[must_use]
pub fn unpack_f16x2(pair: Val<'_, u32>) -> [Val<'_, f32>; 2] {
    let k = pair.builder();
    let [low, high] = [0, 1].map(|_| k.edit(|body| body.reg(F16::TYPE)));
    let parts = asm::Arg::Vector(vec![low.into(), high.into()]);
    k.emit(Opcode::new("mov.b32"), [parts, pair.operand().into()]);
    [low, high].map(|half| k.wrap::<F16>(half).convert(""))
}

/// Unpacks two bfloat16 of one register to `f32`, the low one first.
#[must_use]
pub fn unpack_bf16x2(pair: Val<'_, u32>) -> [Val<'_, f32>; 2] {
    [(pair << 16).cast(), (pair & 0xffff_0000).cast()]
}

/// Adds the vector size and the type to an opcode.
fn vector_opcode(opcode: Opcode, count: usize, ty: PtxType) -> Opcode {
    let opcode = opcode.with_if(count > 1, if count == 2 { "v2" } else { "v4" });
    opcode.ty(ty.to_bits())
}

fn scalar_or_vector(operands: &[Operand]) -> asm::Arg {
    match operands {
        [scalar] => (*scalar).into(),
        several => asm::Arg::Vector(several.to_vec()),
    }
}

/// Emits an instruction, under a predicate if there is one.
fn emit_predicated(
    k: &KernelBuilder,
    predicate: Option<Val<'_, bool>>,
    opcode: Opcode,
    args: Vec<asm::Arg>,
) {
    match predicate.map(Val::reg) {
        None => k.edit(|body| body.emit(opcode, args)),
        Some(pred) => k.edit(|body| body.emit_if(pred, true, opcode, args)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel;
    use super::*;
    use crate::assembler::assemble;
    use crate::{PtxModule, Target};

    #[test]
    fn predicated_accesses_skip_absent_elements() {
        let kernel = kernel("k", Target::SM_80, [32, 1, 1], |k| {
            let (x, y, n) = (
                k.pointer_param::<u32>("x"),
                k.pointer_param::<u32>("y"),
                k.scalar_param::<u32>("n"),
            );
            let some = n.lt(7);
            let [a, b] = x.load_streaming(k.evict_first(), Some(some), 9);
            let [c] = x.cast::<u16>().load_constant_if(None, 0);
            y.store_if(Some(some), [a, b]);
            y.cast::<u16>().offset(8).store_if(None, [c]);
            let accumulators =
                [unpack_f16x2(a), unpack_bf16x2(b)].map(|[low, high]| (low + high).cast());
            y.store_if(None, accumulators);
        });
        let text = PtxModule::new(Target::SM_80).with(kernel).to_string();
        assemble(&text, Target::SM_80);
        for line in [
            ".version 7.4",
            "mov.b32 %r1, 9;",
            "createpolicy.fractional.L2::evict_first.b64 %d4, 0f3F800000;",
            "@%p0 ld.global.nc.L1::no_allocate.L2::cache_hint.v2.b32 {%r1, %r2}, [%d1], %d4;",
            "\tld.global.nc.b16 %h0, [%d1];",
            "@%p0 st.global.v2.b32 [%d3], {%r1, %r2};",
            "\tst.global.b16 [%d3+8], %h0;",
            "mov.b32 {%h1, %h2}, %r1;",
            "cvt.f32.f16 %r4, %h2;",
            "and.b32 %r6, %r2, 4294901760;",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
    }

    #[test]
    fn loads_before_wait_bypass_l1() {
        let kernel = kernel("k", Target::SM_90, [32, 1, 1], |k| {
            let (x, y) = (k.pointer_param::<u16>("x"), k.pointer_param::<u16>("y"));
            let before_wait = x.load_before_wait();
            k.pdl_wait();
            let [fresh] = x.load_if(Some(before_wait.lt(7)), 0);
            y.store_if(None, [before_wait, fresh]);
        });
        let text = PtxModule::new(Target::SM_90).with(kernel).to_string();
        assemble(&text, Target::SM_90);
        let before_wait = text.find("ld.relaxed.gpu.global.b16 ").expect("a load before the wait");
        let wait = text.find("griddepcontrol.wait;").expect("a wait");
        let fresh = text.find(" ld.global.b16 ").expect("a load after the wait");
        assert!(before_wait < wait && wait < fresh, "{text}");
    }
}
