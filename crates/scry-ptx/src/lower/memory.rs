//! Loads and stores.

use scry_ir::kir::{AddressSpace, Place, Value};

use super::entry::{self, memory_type};
use super::{Lowering, Param, ptx_type};
use crate::asm::{Address, Opcode};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// Bytes of the widest access, and the alignment of all buffers and arrays.
const WIDEST: u32 = 16;

/// The memory operand of an access.
pub(super) struct Target {
    pub(super) space: StateSpace,
    pub(super) address: Address,
    /// Known alignment of the address, at most [`WIDEST`].
    align: u32,
    /// Whether the memory is constant while the kernel runs.
    constant: bool,
}

impl Target {
    /// Returns the address plus this many bytes.
    fn at(&self, bytes: u32) -> Address {
        let offset = self.address.offset + i64::from(bytes);
        Address { base: self.address.base.clone(), offset }
    }
}

impl Lowering<'_> {
    /// Loads values; returns the first, and stores the others as further results.
    pub(super) fn load(&mut self, value: Value, place: &Place, count: u8) -> Operand {
        let ty = self.ty(value);
        let target = self.target(place);
        let mut loaded = Vec::with_capacity(usize::from(count));
        for (first, piece) in pieces(count.into(), ty.size(), &target) {
            let address = target.at(first * ty.size());
            let constant = target.constant;
            loaded.extend(self.b.load(target.space, memory_type(ty), address, piece, constant));
        }
        for (nth, register) in (value.0..).zip(loaded) {
            let held = self.decode_loaded(ptx_type(ty), register);
            self.values[nth as usize] = Some(held.into());
        }
        self.value(value)
    }

    /// Stores values.
    pub(super) fn store(&mut self, place: &Place, values: &[Value]) {
        let ty = self.ty(values[0]);
        let target = self.target(place);
        let operands: Vec<Operand> =
            values.iter().map(|value| self.encode_stored(*value)).collect();
        for (first, piece) in pieces(values.len() as u32, ty.size(), &target) {
            let address = target.at(first * ty.size());
            let some = &operands[first as usize..][..piece];
            self.b.store(target.space, memory_type(ty), address, some);
        }
    }

    /// Converts a loaded register to its type.
    pub(super) fn decode_loaded(&mut self, ty: PtxType, register: Reg) -> Reg {
        match ty {
            PtxType::Pred => {
                let zero = Operand::Imm { bits: 0, ty: PtxType::U16 };
                self.b.compare("ne", PtxType::U16, register.into(), zero)
            }
            _ => register,
        }
    }

    /// Converts a value to its type in memory.
    fn encode_stored(&mut self, value: Value) -> Operand {
        match ptx_type(self.ty(value)) {
            PtxType::Pred => {
                let pred = self.reg(value);
                let one = Operand::Imm { bits: 1, ty: PtxType::U16 };
                let zero = Operand::Imm { bits: 0, ty: PtxType::U16 };
                self.b.select(PtxType::U16, pred, one, zero).into()
            }
            _ => self.value(value),
        }
    }

    /// Returns the memory operand of a place.
    pub(super) fn target(&mut self, place: &Place) -> Target {
        let (index, offset) = self.split(place);
        let stride = if index.is_some() { place.stride } else { 0 };
        let align = [stride, (offset % u64::from(WIDEST)) as u32].into_iter().fold(WIDEST, common);
        let (space, constant) = match place.space {
            AddressSpace::Binding(nth) => {
                (StateSpace::Global, !self.kir.buffers[nth as usize].writable)
            }
            AddressSpace::Immediate => (StateSpace::Param, false),
            AddressSpace::Workgroup(_) => (StateSpace::Shared, false),
            AddressSpace::Local(_) => (StateSpace::Local, false),
        };
        let address = match place.space {
            AddressSpace::Workgroup(nth) => self.shared_address(nth, index, place.stride, offset),
            _ => self.wide_address(place.space, index, place.stride, offset),
        };
        Target { space, address, align, constant }
    }

    /// Splits a place's offset into a dynamic index, if any, and constant bytes.
    fn split(&self, place: &Place) -> (Option<Reg>, u64) {
        let offset = u64::from(place.offset);
        match place.index.map(|index| self.value(index)) {
            None => (None, offset),
            Some(Operand::Imm { bits, .. }) => (None, bits * u64::from(place.stride) + offset),
            Some(Operand::Reg(index)) => (Some(index), offset),
        }
    }

    fn shared_address(
        &mut self,
        nth: u32,
        index: Option<Reg>,
        stride: u32,
        offset: u64,
    ) -> Address {
        let offset = offset as i64 + i64::from(self.entry.shared_offsets[nth as usize]);
        let (base, name) =
            self.entry.shared.clone().expect("workgroup memory is laid out on entry");
        let Some(index) = index else { return Address::symbol(&name, offset) };
        let sizes = [index.into(), Operand::u32(stride), base.into()];
        Address::reg(self.b.typed("mad.lo", PtxType::U32, &sizes), offset)
    }

    /// Computes a 64-bit address.
    fn wide_address(
        &mut self,
        space: AddressSpace,
        index: Option<Reg>,
        stride: u32,
        offset: u64,
    ) -> Address {
        let near = i64::try_from(offset).ok().filter(|offset| i32::try_from(*offset).is_ok());
        if let (None, Some(near), Some(symbol)) = (index, near, self.symbol(space)) {
            return Address::symbol(&symbol, near);
        }
        let mut base = self.base(space);
        if let Some(index) = index {
            let sizes = [index.into(), Operand::u32(stride), base.into()];
            base = self.b.op(PtxType::U64, Opcode::new("mad.wide.u32"), &sizes);
        }
        if let Some(near) = near {
            return Address::reg(base, near);
        }
        let far = Operand::u64(offset);
        Address::reg(self.b.typed("add", PtxType::U64, &[base.into(), far]), 0)
    }

    /// Returns the symbol of an address space, if it has one.
    fn symbol(&self, space: AddressSpace) -> Option<String> {
        match space {
            AddressSpace::Immediate => Some(entry::name(Param::Immediates(0))),
            AddressSpace::Local(nth) => Some(self.entry.locals[nth as usize].clone()),
            AddressSpace::Binding(_) | AddressSpace::Workgroup(_) => None,
        }
    }

    /// Returns the base address of an address space.
    fn base(&mut self, space: AddressSpace) -> Reg {
        match (space, self.symbol(space)) {
            (AddressSpace::Binding(nth), _) => self.entry.buffer(nth),
            (_, symbol) => {
                let base = self.b.reg(PtxType::U64);
                let symbol = symbol.expect("memory other than buffers has a symbol");
                self.b.emit(Opcode::new("mov.u64"), vec![base.into(), symbol.as_str().into()]);
                base
            }
        }
    }
}

/// Returns the known alignment of an aligned address plus an offset.
fn common(align: u32, bytes: u32) -> u32 {
    if bytes == 0 { align } else { align.min(1 << bytes.trailing_zeros()) }
}

/// Splits an access to `count` values into accesses of 1, 2 or 4 values, as first index and count.
fn pieces(count: u32, size: u32, target: &Target) -> Vec<(u32, usize)> {
    let mut pieces = Vec::new();
    let mut first = 0;
    while first < count {
        let align = common(target.align, (first * size) % WIDEST);
        let fits = |n: &u32| *n <= count - first && n * size <= align.max(size);
        let piece = [4, 2, 1].into_iter().find(fits).unwrap_or(1);
        pieces.push((first, piece as usize));
        first += piece;
    }
    pieces
}
