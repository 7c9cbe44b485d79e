//! Loads and stores.

use scry_ir::kir::{AddressSpace, Place, Value};

use super::entry::{self, memory_type};
use super::{Lowering, Param, ptx_type};
use crate::asm::{Address, Opcode};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// Maximum bytes of an access; also the alignment of all buffers and arrays.
const MAX_ACCESS: u32 = 16;

/// The memory that an instruction accesses.
pub(super) struct MemoryOperand {
    pub(super) space: StateSpace,
    pub(super) address: Address,
    /// Known alignment of the address, at most [`MAX_ACCESS`].
    align: u32,
    /// Whether it is a buffer that the kernel does not write: loads are [`Body::constant_load`].
    constant: bool,
}

impl MemoryOperand {
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
        let operand = self.memory_operand(place);
        let mut loaded = Vec::with_capacity(usize::from(count));
        for (first, piece) in split_access(count.into(), ty.size(), &operand) {
            let address = operand.at(first * ty.size());
            let constant = operand.constant;
            loaded.extend(self.b.load(operand.space, memory_type(ty), address, piece, constant));
        }
        for (nth, register) in (value.0..).zip(loaded) {
            let decoded = self.decode_loaded(ptx_type(ty), register);
            self.values[nth as usize] = Some(decoded.into());
        }
        self.value(value)
    }

    /// Stores values.
    pub(super) fn store(&mut self, place: &Place, values: &[Value]) {
        let ty = self.ty(values[0]);
        let operand = self.memory_operand(place);
        let operands: Vec<Operand> =
            values.iter().map(|value| self.encode_stored(*value)).collect();
        for (first, piece) in split_access(values.len() as u32, ty.size(), &operand) {
            let address = operand.at(first * ty.size());
            let values = &operands[first as usize..][..piece];
            self.b.store(operand.space, memory_type(ty), address, values);
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

    /// Lowers a place to a memory operand.
    pub(super) fn memory_operand(&mut self, place: &Place) -> MemoryOperand {
        let (index, offset) = self.split_offset(place);
        let stride = if index.is_some() { place.stride } else { 0 };
        let align = [stride, (offset % u64::from(MAX_ACCESS)) as u32]
            .into_iter()
            .fold(MAX_ACCESS, offset_alignment);
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
        MemoryOperand { space, address, align, constant }
    }

    /// Splits a place's offset into a dynamic index, if any, and constant bytes.
    pub(super) fn split_offset(&self, place: &Place) -> (Option<Reg>, u64) {
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
        let operands = [index.into(), Operand::u32(stride), base.into()];
        Address::reg(self.b.typed("mad.lo", PtxType::U32, &operands), offset)
    }

    /// Computes a 64-bit address. An instruction can add a constant offset of 32 bits, signed.
    fn wide_address(
        &mut self,
        space: AddressSpace,
        index: Option<Reg>,
        stride: u32,
        offset: u64,
    ) -> Address {
        let short_offset =
            i64::try_from(offset).ok().filter(|offset| i32::try_from(*offset).is_ok());
        if let (None, Some(short_offset), Some(symbol)) = (index, short_offset, self.symbol(space))
        {
            return Address::symbol(&symbol, short_offset);
        }
        let mut base = self.base(space);
        if let Some(index) = index {
            let operands = [index.into(), Operand::u32(stride), base.into()];
            base = self.b.op(PtxType::U64, Opcode::new("mad.wide.u32"), &operands);
        }
        if let Some(short_offset) = short_offset {
            return Address::reg(base, short_offset);
        }
        let long_offset = Operand::u64(offset);
        Address::reg(self.b.typed("add", PtxType::U64, &[base.into(), long_offset]), 0)
    }

    /// Returns the name of the PTX variable or parameter that holds an address space; `None` for
    /// buffers and workgroup memory.
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

/// Returns the known alignment of an address with alignment `align` plus an offset in bytes.
fn offset_alignment(align: u32, bytes: u32) -> u32 {
    if bytes == 0 { align } else { align.min(1 << bytes.trailing_zeros()) }
}

/// Splits an access to `count` values into instructions for 1, 2 or 4 values each. Returns the
/// index of the first value, and the number of values, of each instruction.
fn split_access(count: u32, size: u32, operand: &MemoryOperand) -> Vec<(u32, usize)> {
    let mut pieces = Vec::new();
    let mut first = 0;
    while first < count {
        let align = offset_alignment(operand.align, (first * size) % MAX_ACCESS);
        let fits = |n: &u32| *n <= count - first && n * size <= align.max(size);
        let piece = [4, 2, 1].into_iter().find(fits).unwrap_or(1);
        pieces.push((first, piece as usize));
        first += piece;
    }
    pieces
}
