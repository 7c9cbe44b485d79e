//! Typed pointers into memory.

use std::marker::PhantomData;

use super::value::{Arg, Element, Val};
use crate::asm::{Address, Opcode};
use crate::types::{Operand, PtxType, Reg, Space};

/// A kind of memory that pointers lead to.
pub trait Memory: Copy {
    /// How instructions name it.
    const SPACE: Space;
    /// The type of an address.
    const ADDRESS: PtxType;
}

/// Memory of the device; addresses have 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct Global;
/// Memory that the threads of a block share; addresses have 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Shared;

impl Memory for Global {
    const SPACE: Space = Space::Global;
    const ADDRESS: PtxType = PtxType::U64;
}

impl Memory for Shared {
    const SPACE: Space = Space::Shared;
    const ADDRESS: PtxType = PtxType::U32;
}

/// A pointer to elements `T` in memory `S`: a register, and bytes from there that are known.
#[derive(Debug)]
pub struct Ptr<'k, S, T> {
    pub(super) k: &'k super::Code,
    pub(super) base: Reg,
    pub(super) bytes: i64,
    pub(super) leads_to: PhantomData<(S, T)>,
}

impl<S, T> Clone for Ptr<'_, S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, T> Copy for Ptr<'_, S, T> {}

impl<'k, S: Memory, T: Element> Ptr<'k, S, T> {
    /// The kernel that it belongs to.
    #[must_use]
    pub fn code(self) -> &'k super::Code {
        self.k
    }

    /// This many elements further on.
    #[must_use]
    pub fn at(self, index: impl Arg<u32>) -> Self {
        let size = T::TYPE.size();
        match index.operand() {
            Operand::Imm { bits, .. } => self.offset(bits as i64 * i64::from(size)),
            index => self.moved("mad.wide.u32", "mad.lo.u32", &[index, Operand::u32(size)]),
        }
    }

    /// Returns the address of element `index`, with 64-bit arithmetic.
    #[must_use]
    pub fn at_wide(self, index: impl Arg<u64>) -> Self {
        let size = Operand::u64(T::TYPE.size().into());
        self.moved("mad.lo.u64", "mad.lo.u64", &[index.operand(), size])
    }

    /// This many bytes further on, known when the kernel is written.
    #[must_use]
    pub fn offset(self, bytes: i64) -> Self {
        Self { bytes: self.bytes + bytes, ..self }
    }

    /// This many bytes further on.
    #[must_use]
    pub fn plus_bytes(self, bytes: impl Arg<u32>) -> Self {
        self.moved("mad.wide.u32", "mad.lo.u32", &[bytes.operand(), Operand::u32(1)])
    }

    fn moved(self, wide: &str, narrow: &str, factors: &[Operand; 2]) -> Self {
        let name = if S::ADDRESS == PtxType::U64 { wide } else { narrow };
        let operands = [factors[0], factors[1], self.base.into()];
        let base = self.k.edit(|body| body.op(S::ADDRESS, Opcode::new(name), &operands));
        Self { base, ..self }
    }

    /// A pointer to the same place, to elements of another type.
    #[must_use]
    pub fn cast<U: Element>(self) -> Ptr<'k, S, U> {
        Ptr { k: self.k, base: self.base, bytes: self.bytes, leads_to: PhantomData }
    }

    /// As instructions take it.
    #[must_use]
    pub fn address(self) -> Address {
        Address::reg(self.base, self.bytes)
    }

    /// Reads an element.
    #[must_use]
    pub fn load(self) -> Val<'k, T> {
        let [value] = self.load_vector();
        value
    }

    /// Reads 1, 2 or 4 elements at once; the address is a multiple of their size together.
    #[must_use]
    pub fn load_vector<const N: usize>(self) -> [Val<'k, T>; N] {
        self.load_through(false)
    }

    fn load_through<const N: usize>(self, cached: bool) -> [Val<'k, T>; N] {
        let regs = self.k.edit(|body| body.load(S::SPACE, T::TYPE, self.address(), N, cached));
        std::array::from_fn(|nth| self.k.wrap(regs[nth]))
    }

    /// Writes an element.
    pub fn store(self, value: impl Arg<T>) {
        self.store_vector([value]);
    }

    /// Writes 1, 2 or 4 elements at once; the address is a multiple of their size together.
    pub fn store_vector<const N: usize>(self, values: [impl Arg<T>; N]) {
        let values = values.map(Arg::operand);
        self.k.edit(|body| body.store(S::SPACE, T::TYPE, self.address(), &values));
    }
}

impl<'k, T: Element> Ptr<'k, Global, T> {
    /// Reads an element that is not written while the kernel runs.
    #[must_use]
    pub fn load_constant(self) -> Val<'k, T> {
        let [value] = self.load_through(true);
        value
    }

    /// Reads 1, 2 or 4 elements that is not written while the kernel runs.
    #[must_use]
    pub fn load_constant_vector<const N: usize>(self) -> [Val<'k, T>; N] {
        self.load_through(true)
    }

    /// Returns the address as an integer.
    #[must_use]
    pub fn to_bits(self) -> Val<'k, u64> {
        self.k.wrap::<u64>(self.base) + self.bytes as u64
    }

    /// The pointer to an address.
    #[must_use]
    pub fn from_bits(address: Val<'k, u64>) -> Self {
        Self { k: address.k, base: address.reg(), bytes: 0, leads_to: PhantomData }
    }
}

impl<'k, T: Element> Ptr<'k, Shared, T> {
    /// Returns the address as an integer.
    #[must_use]
    pub fn to_bits(self) -> Val<'k, u32> {
        self.k.wrap::<u32>(self.base) + self.bytes as u32
    }

    /// The pointer to an address.
    #[must_use]
    pub fn from_bits(address: Val<'k, u32>) -> Self {
        Self { k: address.k, base: address.reg(), bytes: 0, leads_to: PhantomData }
    }
}
