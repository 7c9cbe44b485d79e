//! Loads of matrix fragments from shared memory: `ldmatrix` if the whole warp is active, else loads
//! of single elements or of contiguous pairs.

use scry_ir::kir::{AddressSpace, FragmentPlace, MatrixSize, MatrixUse, Type, Value};

use super::Lowering;
use super::entry::memory_type;
use super::mma::vector;
use crate::asm::{Address, Opcode};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// Bytes of an element.
const ELEMENT: u32 = 2;

impl Lowering<'_> {
    /// Loads the elements of a matrix that this lane holds; stores their registers in `values`.
    pub(super) fn load_fragment(&mut self, value: Value, from: &FragmentPlace) {
        let is_warp_whole =
            self.convergence.at_value(value) && self.thread_count().is_multiple_of(32);
        let packed = match is_warp_whole {
            true => self.load_by_warp(from),
            false => self.load_by_lanes(from),
        };
        for (nth, register) in packed.into_iter().enumerate() {
            let pair = [self.b.reg(PtxType::F16), self.b.reg(PtxType::F16)];
            self.b.emit(Opcode::new("mov.b32"), vec![vector(&pair), register.into()]);
            let results = &mut self.values[value.index() + 2 * nth..];
            results.iter_mut().zip(pair).for_each(|(result, half)| *result = Some(half.into()));
        }
    }

    /// Emits `ldmatrix`. A line is a row of a row-major matrix, else a column. Lane `8 * i + j`
    /// supplies the address of line `j` of tile `i`. The tiles are 8 × 8 elements: upper left,
    /// lower left, upper right, lower right.
    fn load_by_warp(&mut self, from: &FragmentPlace) -> Vec<Reg> {
        let lane = self.lane();
        let mut and = |mask| self.b.typed("and", PtxType::B32, &[lane.into(), Operand::u32(mask)]);
        let (line, element) = match (from.matrix.size, from.row_major) {
            (MatrixSize::M8, _) => (and(7), None),
            (MatrixSize::M16, true) => {
                let (line, right) = (and(15), and(16));
                (line, Some(self.b.typed("shr", PtxType::U32, &[right.into(), Operand::u32(1)])))
            }
            (MatrixSize::M16, false) => {
                let (line, right, lower) = (and(7), and(16), and(8));
                let right = self.b.typed("shr", PtxType::U32, &[right.into(), Operand::u32(1)]);
                (self.b.typed("or", PtxType::B32, &[line.into(), right.into()]), Some(lower))
            }
        };
        let (address, offset) = self.fragment_address(from, line, element);
        let registers: Vec<Reg> = (0..from.matrix.size.elements_per_lane() / 2)
            .map(|_| self.b.reg(PtxType::B32))
            .collect();
        let opcode = Opcode::new("ldmatrix.sync.aligned.m8n8")
            .with(if registers.len() == 1 { "x1" } else { "x4" })
            .with_if(is_transposed(from), "trans")
            .with("shared.b16");
        self.b.require(6, 5);
        self.b.emit(opcode, vec![vector(&registers), Address::reg(address, offset).into()]);
        registers
    }

    /// Loads each pair of elements of this lane.
    fn load_by_lanes(&mut self, from: &FragmentPlace) -> Vec<Reg> {
        let lane = self.lane();
        let quad = self.b.typed("shr", PtxType::U32, &[lane.into(), Operand::u32(2)]);
        let within = self.b.typed("and", PtxType::B32, &[lane.into(), Operand::u32(3)]);
        let pair = self.b.typed("shl", PtxType::B32, &[within.into(), Operand::u32(1)]);
        let is_transposed = is_transposed(from);
        let (line, element) = if is_transposed { (pair, quad) } else { (quad, pair) };
        let (address, offset) = self.fragment_address(from, line, Some(element));
        let mut registers = Vec::new();
        for tile in 0..from.matrix.size.elements_per_lane() / 2 {
            let (row, column) = (tile % 2 * 8, tile / 2 * 8);
            let (line, element) = if from.row_major { (row, column) } else { (column, row) };
            let offset = offset + i64::from(element * ELEMENT);
            let first = self.line_address(address, offset, from.stride, line);
            registers.push(match is_transposed {
                false => self.b.load(StateSpace::Shared, PtxType::B32, first, 1, false)[0],
                true => {
                    let second = self.line_address(address, offset, from.stride, line + 1);
                    let ty = memory_type(Type::F16);
                    let mut load = |at| self.b.load(StateSpace::Shared, ty, at, 1, false)[0];
                    let pair = [load(first), load(second)];
                    let packed = self.b.reg(PtxType::B32);
                    self.b.emit(Opcode::new("mov.b32"), vec![packed.into(), vector(&pair)]);
                    packed
                }
            });
        }
        registers
    }

    fn lane(&mut self) -> Reg {
        let thread = self.thread_index().into();
        self.b.typed("and", PtxType::B32, &[thread, Operand::u32(31)])
    }

    /// Returns the address of an element of a matrix, by its line and its position there: a
    /// register, and a constant offset. What depends on the lane only is computed first, so that it
    /// is loop-invariant.
    fn fragment_address(
        &mut self,
        from: &FragmentPlace,
        line: Reg,
        element: Option<Reg>,
    ) -> (Reg, i64) {
        let AddressSpace::Workgroup(nth) = from.place.space else {
            unreachable!("fragments are loaded from workgroup memory")
        };
        let (base, _) = self.entry.shared.clone().expect("workgroup memory is laid out on entry");
        let (index, offset) = self.split_offset(&from.place);
        let stride = self.value(from.stride);
        let element = element.map_or(Operand::u32(0), Operand::Reg);
        let elements = self.b.typed("mad.lo", PtxType::U32, &[line.into(), stride, element]);
        let operands = [elements.into(), Operand::u32(ELEMENT), base.into()];
        let mut address = self.b.typed("mad.lo", PtxType::U32, &operands);
        if let Some(index) = index {
            let operands = [index.into(), Operand::u32(from.place.stride), address.into()];
            address = self.b.typed("mad.lo", PtxType::U32, &operands);
        }
        (address, offset as i64 + i64::from(self.entry.shared_offsets[nth as usize]))
    }

    /// Returns the address a number of lines after another one.
    fn line_address(&mut self, address: Reg, offset: i64, stride: Value, lines: u32) -> Address {
        match self.value(stride) {
            _ if lines == 0 => Address::reg(address, offset),
            Operand::Imm { bits: stride, .. } => {
                let bytes = (stride as u32).wrapping_mul(lines * ELEMENT) as i32;
                Address::reg(address, offset + i64::from(bytes))
            }
            Operand::Reg(stride) => {
                let operands = [stride.into(), Operand::u32(lines * ELEMENT), address.into()];
                Address::reg(self.b.typed("mad.lo", PtxType::U32, &operands), offset)
            }
        }
    }
}

/// Returns whether the two elements of a register are in different lines of memory.
fn is_transposed(from: &FragmentPlace) -> bool {
    (from.matrix.role == MatrixUse::B) == from.row_major
}
