//! A builder for hand-written kernels with typed values. Operators emit arithmetic, typed pointers
//! access memory, and closures are the bodies of branches and loops.
//!
//! ```
//! use scry_ptx::{PtxModule, Target, typed};
//!
//! let saxpy = typed::kernel("saxpy", Target::SM_80, [256, 1, 1], |k| {
//!     let (x, y) = (k.pointer_param::<f32>("x"), k.pointer_param::<f32>("y"));
//!     let (a, n) = (k.scalar_param::<f32>("a"), k.scalar_param::<u32>("n"));
//!     let i = k.block_id(0) * 256 + k.thread_id();
//!     k.if_then(i.lt(n), || {
//!         let y = y.at(i);
//!         y.store(a.mul_add(x.at(i).load_constant(), y.load()));
//!     });
//! });
//! let text = PtxModule::new(Target::SM_80).with(saxpy).to_string();
//! assert!(text.contains("fma.rn.f32"));
//! ```
//!
//! A Rust loop unrolls its body; [`KernelBuilder::for_range`] and [`KernelBuilder::loop_`] emit
//! loops.

pub mod ampere;
mod cluster;
mod divide;
mod flow;
pub mod hopper;
mod packed;
mod pdl;
mod pointer;
mod streaming;
#[cfg(test)]
mod tests;
mod tma_bulk;
mod value;

use std::cell::RefCell;
use std::marker::PhantomData;

pub use flow::LoopExit;
pub use packed::Sign;
pub use pointer::{Global, Memory, Ptr, Shared};
pub use streaming::{Policy, unpack_bf16x2, unpack_f16x2};
pub use value::{
    Bf16, Bf16x2, Bits, Divisible, Element, F16, F16x2, Number, Scalar, Signed, ToOperand, Val,
    Var, pack,
};

use crate::asm::{self, Address, Opcode};
use crate::body::Body;
use crate::module::{KernelParam, PtxEntry};
use crate::target::Target;
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// Builds a kernel that is launched in blocks of this many threads along x, y and z: `write` emits
/// its instructions.
#[must_use]
pub fn kernel(
    name: &str,
    target: Target,
    block: [u32; 3],
    write: impl FnOnce(&KernelBuilder),
) -> PtxEntry {
    let code = KernelBuilder { body: RefCell::new(Body::new(target)), params: RefCell::default() };
    write(&code);
    let mut kernel = PtxEntry::new(name, target, block);
    kernel.params = code.params.into_inner();
    kernel.body = code.body.into_inner();
    kernel
}

/// A builder of a kernel: methods append instructions. [`kernel`] creates it.
#[derive(Debug)]
pub struct KernelBuilder {
    body: RefCell<Body>,
    params: RefCell<Vec<KernelParam>>,
}

/// Access to the body.
impl KernelBuilder {
    /// Emits untyped instructions with [`Body`]. `write` must not call methods of this builder,
    /// which would panic: the body is in a `RefCell`.
    pub fn edit<R>(&self, write: impl FnOnce(&mut Body) -> R) -> R {
        write(&mut self.body.borrow_mut())
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.body.borrow().target()
    }

    /// Returns a register as a value.
    #[must_use]
    pub fn wrap<T: Element>(&self, reg: Reg) -> Val<'_, T> {
        Val { k: self, operand: reg.into(), element: PhantomData }
    }

    /// Emits an instruction with one result.
    #[must_use]
    pub fn op<T: Element>(&self, opcode: Opcode, operands: &[Operand]) -> Val<'_, T> {
        let result = self.edit(|body| body.op(T::TYPE, opcode, operands));
        self.wrap(result)
    }

    /// Emits an instruction whose results, if any, are among its arguments.
    pub fn emit<const N: usize>(&self, opcode: Opcode, args: [asm::Arg; N]) {
        self.edit(|body| body.emit(opcode, args.into()));
    }

    /// Returns a constant.
    #[must_use]
    pub fn constant<T: Element + ToOperand<T>>(&self, number: T) -> Val<'_, T> {
        Val { k: self, operand: number.operand(), element: PhantomData }
    }

    /// Declares a variable with an initial value.
    #[must_use]
    pub fn var<T: Element>(&self, initial: impl ToOperand<T>) -> Var<'_, T> {
        let reg = self.edit(|body| body.copy(T::TYPE, initial.operand()));
        Var { k: self, reg, element: PhantomData }
    }

    /// Emits a comment.
    pub fn comment(&self, text: &str) {
        self.edit(|body| body.comment(text));
    }
}

/// Parameters, which are declared in the order of these calls, and shared memory.
impl KernelBuilder {
    fn declare_param(&self, param: KernelParam) {
        self.params.borrow_mut().push(param);
    }

    /// Loads a declared parameter.
    fn load_param(&self, name: &str, ty: PtxType) -> Reg {
        self.edit(|body| body.load(StateSpace::Param, ty, Address::symbol(name, 0), 1, false)[0])
    }

    /// Declares a pointer parameter, an address in global memory, and returns it.
    #[must_use]
    pub fn pointer_param<T: Element>(&self, name: &str) -> Ptr<'_, Global, T> {
        self.declare_param(KernelParam::Pointer { name: name.to_owned() });
        let generic = self.load_param(name, PtxType::U64);
        let opcode = Opcode::new("cvta.to.global.u64");
        let base = self.edit(|body| body.op(PtxType::U64, opcode, &[generic.into()]));
        Ptr { k: self, base, bytes: 0, pointee: PhantomData }
    }

    /// Declares a scalar parameter, and returns its value. Types that ptxas rejects for parameters
    /// are declared as bits.
    #[must_use]
    pub fn scalar_param<T: Number>(&self, name: &str) -> Val<'_, T> {
        let ty = match T::TYPE {
            PtxType::Bf16 | PtxType::F16x2 | PtxType::Bf16x2 => T::TYPE.to_bits(),
            ty => ty,
        };
        self.declare_param(KernelParam::Scalar { name: name.to_owned(), ty });
        self.wrap(self.load_param(name, T::TYPE))
    }

    /// Declares a tensor map parameter, and returns its address.
    #[must_use]
    pub fn tensor_map_param(&self, name: &str) -> Val<'_, u64> {
        self.declare_param(KernelParam::TensorMap { name: name.to_owned() });
        let address = self.edit(|body| body.reg(PtxType::U64));
        self.emit(Opcode::new("mov.b64"), [address.into(), name.into()]);
        self.op(Opcode::new("cvta.param.u64"), &[address.into()])
    }

    /// Declares a static shared array of `count` elements. `align` is its alignment in bytes: a
    /// power of two, at least the size of an element; 128 for TMA copies of tiles. ptxas limits
    /// static shared memory to 48 KiB per kernel.
    #[must_use]
    pub fn shared<T: Element>(&self, count: u32, align: u32) -> Ptr<'_, Shared, T> {
        self.shared_bytes(count * T::TYPE.size(), align)
    }

    /// Declares dynamic shared memory, with an alignment in bytes as for
    /// [`KernelBuilder::shared`]. Its size is set by the launch: together with static shared memory
    /// at most 227 KiB on compute capability 9.0. There is one such memory: all calls return the
    /// same address.
    #[must_use]
    pub fn dynamic_shared<T: Element>(&self, align: u32) -> Ptr<'_, Shared, T> {
        self.shared_bytes(0, align)
    }

    fn shared_bytes<T: Element>(&self, bytes: u32, align: u32) -> Ptr<'_, Shared, T> {
        let name = self.edit(|body| body.shared(bytes, align));
        let base = self.edit(|body| body.reg(PtxType::U32));
        self.emit(Opcode::new("mov.u32"), [base.into(), name.as_str().into()]);
        Ptr { k: self, base, bytes: 0, pointee: PhantomData }
    }
}

/// Thread, block and lane indices.
impl KernelBuilder {
    /// Returns the current value of a 32-bit special register, such as `%tid.x`.
    #[must_use]
    pub fn special(&self, name: &'static str) -> Val<'_, u32> {
        let reg = self.edit(|body| body.reg(PtxType::U32));
        self.emit(Opcode::new("mov.u32"), [reg.into(), name.into()]);
        self.wrap(reg)
    }

    /// Returns the thread's index along x in its block.
    #[must_use]
    pub fn thread_id(&self) -> Val<'_, u32> {
        self.special("%tid.x")
    }

    /// Returns the block's index along an axis.
    #[must_use]
    pub fn block_id(&self, axis: usize) -> Val<'_, u32> {
        self.special(["%ctaid.x", "%ctaid.y", "%ctaid.z"][axis])
    }

    /// Returns the number of blocks of the launch along an axis.
    #[must_use]
    pub fn block_count(&self, axis: usize) -> Val<'_, u32> {
        self.special(["%nctaid.x", "%nctaid.y", "%nctaid.z"][axis])
    }

    /// Returns the thread's index in its warp. The block must be one-dimensional (along x).
    #[must_use]
    pub fn lane(&self) -> Val<'_, u32> {
        self.thread_id() & 31
    }

    /// Returns the warp's index in its block. A shuffle makes it uniform for the compiler, so all
    /// lanes must be active.
    #[must_use]
    pub fn warp(&self) -> Val<'_, u32> {
        let warp = self.thread_id() >> 5;
        self.shuffle("idx", warp, 0u32)
    }
}
