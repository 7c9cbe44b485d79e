//! Typed pointers.

use std::marker::PhantomData;

use super::value::{Element, ToOperand, Val};
use crate::asm::{Address, Opcode};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// The state space of a pointer.
pub trait Memory: Copy {
    /// The state space in instructions.
    const SPACE: StateSpace;
    /// The type of an address.
    const ADDRESS: PtxType;
}

/// Global memory; addresses have 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct Global;
/// Shared memory; addresses have 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Shared;

impl Memory for Global {
    const SPACE: StateSpace = StateSpace::Global;
    const ADDRESS: PtxType = PtxType::U64;
}

impl Memory for Shared {
    const SPACE: StateSpace = StateSpace::Shared;
    const ADDRESS: PtxType = PtxType::U32;
}

/// A pointer to elements `T` in memory `S`: a register plus a constant byte offset.
#[derive(Debug)]
pub struct Ptr<'k, S, T> {
    pub(super) k: &'k super::KernelBuilder,
    pub(super) base: Reg,
    pub(super) bytes: i64,
    pub(super) pointee: PhantomData<(S, T)>,
}

impl<S, T> Clone for Ptr<'_, S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, T> Copy for Ptr<'_, S, T> {}

impl<'k, S: Memory, T: Element> Ptr<'k, S, T> {
    /// Returns the builder of the kernel that it belongs to.
    #[must_use]
    pub fn builder(self) -> &'k super::KernelBuilder {
        self.k
    }

    /// Returns a pointer to element `index`.
    #[must_use]
    pub fn at(self, index: impl ToOperand<u32>) -> Self {
        let size = T::TYPE.size();
        match index.operand() {
            Operand::Imm { bits, .. } => self.offset(bits as i64 * i64::from(size)),
            index => {
                self.base_plus_product("mad.wide.u32", "mad.lo.u32", &[index, Operand::u32(size)])
            }
        }
    }

    /// Returns a pointer to element `index`, computed with 64-bit arithmetic; for global memory
    /// only.
    #[must_use]
    pub fn at_wide(self, index: impl ToOperand<u64>) -> Self {
        let size = Operand::u64(T::TYPE.size().into());
        self.base_plus_product("mad.lo.u64", "mad.lo.u64", &[index.operand(), size])
    }

    /// Adds a constant number of bytes.
    #[must_use]
    pub fn offset(self, bytes: i64) -> Self {
        Self { bytes: self.bytes + bytes, ..self }
    }

    /// Adds a number of bytes.
    #[must_use]
    pub fn plus_bytes(self, bytes: impl ToOperand<u32>) -> Self {
        self.base_plus_product("mad.wide.u32", "mad.lo.u32", &[bytes.operand(), Operand::u32(1)])
    }

    /// Returns a pointer whose base is the product of two operands plus the base of this one.
    fn base_plus_product(self, wide: &str, narrow: &str, factors: &[Operand; 2]) -> Self {
        let name = if S::ADDRESS == PtxType::U64 { wide } else { narrow };
        let operands = [factors[0], factors[1], self.base.into()];
        let base = self.k.edit(|body| body.op(S::ADDRESS, Opcode::new(name), &operands));
        Self { base, ..self }
    }

    /// Returns the same pointer to elements of another type.
    #[must_use]
    pub fn cast<U: Element>(self) -> Ptr<'k, S, U> {
        Ptr { k: self.k, base: self.base, bytes: self.bytes, pointee: PhantomData }
    }

    /// Returns it as the address of a memory access.
    #[must_use]
    pub fn address(self) -> Address {
        Address::reg(self.base, self.bytes)
    }

    /// Loads an element.
    #[must_use]
    pub fn load(self) -> Val<'k, T> {
        let [value] = self.load_vector();
        value
    }

    /// Loads a vector of 1, 2 or 4 elements, aligned to its size.
    #[must_use]
    pub fn load_vector<const N: usize>(self) -> [Val<'k, T>; N] {
        self.load_as(false)
    }

    fn load_as<const N: usize>(self, read_only: bool) -> [Val<'k, T>; N] {
        let regs = self.k.edit(|body| body.load(S::SPACE, T::TYPE, self.address(), N, read_only));
        std::array::from_fn(|nth| self.k.wrap(regs[nth]))
    }

    /// Stores an element.
    pub fn store(self, value: impl ToOperand<T>) {
        self.store_vector([value]);
    }

    /// Stores a vector of 1, 2 or 4 elements, aligned to its size.
    pub fn store_vector<const N: usize>(self, values: [impl ToOperand<T>; N]) {
        let values = values.map(ToOperand::operand);
        self.k.edit(|body| body.store(S::SPACE, T::TYPE, self.address(), &values));
    }
}

impl<'k, T: Element> Ptr<'k, Global, T> {
    /// Loads an element that the kernel does not write (`ld.global.nc`, before `sm_90`).
    #[must_use]
    pub fn load_constant(self) -> Val<'k, T> {
        let [value] = self.load_as(true);
        value
    }

    /// Loads a vector of 1, 2 or 4 elements that the kernel does not write (`ld.global.nc`, before
    /// `sm_90`).
    #[must_use]
    pub fn load_constant_vector<const N: usize>(self) -> [Val<'k, T>; N] {
        self.load_as(true)
    }

    /// Returns the address as an integer.
    #[must_use]
    pub fn to_bits(self) -> Val<'k, u64> {
        self.k.wrap::<u64>(self.base) + self.bytes as u64
    }

    /// Returns the pointer to an address.
    #[must_use]
    pub fn from_bits(address: Val<'k, u64>) -> Self {
        Self { k: address.k, base: address.reg(), bytes: 0, pointee: PhantomData }
    }
}

impl<'k, T: Element> Ptr<'k, Shared, T> {
    /// Returns the address as an integer.
    #[must_use]
    pub fn to_bits(self) -> Val<'k, u32> {
        self.k.wrap::<u32>(self.base) + self.bytes as u32
    }

    /// Returns the pointer to an address.
    #[must_use]
    pub fn from_bits(address: Val<'k, u32>) -> Self {
        Self { k: address.k, base: address.reg(), bytes: 0, pointee: PhantomData }
    }
}
