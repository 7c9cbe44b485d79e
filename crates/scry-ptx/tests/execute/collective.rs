//! Collective instructions, which the threads of a warp execute together.

use half::f16;
use scry_test_support::alu::Alu;

use super::code::{Address, Op, Operand, Reg, Shuffle, Space};
use super::grid::SharedState;
use super::memory::{Access, read_le};
use super::warp::{LANES, State, Warp, lanes};

/// An error and its lane.
type LaneError = (usize, String);

/// The value from inactive lanes, which the manual leaves undefined.
const UNDEFINED: u64 = 0xdead_beef;

impl Warp<'_> {
    /// Executes a collective instruction; returns the lanes for which it completed. The others wait
    /// for the lanes of their mask.
    pub fn collective(
        &mut self,
        op: &Op,
        active: u32,
        shared: &mut SharedState<'_>,
    ) -> Result<u32, LaneError> {
        let mask = match op {
            Op::ActiveMask(to) => {
                self.write(*to, active, &[active.into(); LANES]);
                return Ok(active);
            }
            Op::WarpBarrier(mask)
            | Op::Ballot { mask, .. }
            | Op::Reduce { mask, .. }
            | Op::Shuffle { mask, .. } => *mask,
            Op::LoadMatrix { .. } | Op::Multiply { .. } => Operand::Bits(u32::MAX.into()),
            other => unreachable!("{other:?} is not a collective instruction"),
        };
        let masks = self.operand(mask, active)?;
        let mut completed = 0;
        for lane in lanes(active) {
            let masked = masks[lane] as u32;
            if masked & 1 << lane == 0 {
                return Err((lane, format!("the thread is not in its own mask {masked:#010x}")));
            }
            let masked = masked & self.live();
            if completed & 1 << lane != 0 || masked & !active != 0 {
                continue;
            }
            if let Some(other) = lanes(masked).find(|other| masks[*other] != masks[lane]) {
                let masks = (masks[lane], masks[other]);
                return Err((
                    lane,
                    format!("threads at the same instruction have different masks: {masks:x?}"),
                ));
            }
            self.execute_collective(op, masked, shared)?;
            completed |= masked;
        }
        Ok(completed)
    }

    /// Executes an instruction that all threads of a mask have reached.
    fn execute_collective(
        &mut self,
        op: &Op,
        lanes_mask: u32,
        shared: &mut SharedState<'_>,
    ) -> Result<(), LaneError> {
        match op {
            Op::Ballot { to, pred, .. } => {
                let votes = self.read(*pred, lanes_mask)?;
                let voters: u32 =
                    lanes(lanes_mask).filter(|n| votes[*n] & 1 == 1).map(|n| 1 << n).sum();
                self.write(*to, lanes_mask, &[voters.into(); LANES]);
            }
            Op::Reduce { alu, to, value, .. } => {
                let result = self.reduce(*alu, *value, lanes_mask)?;
                self.write(*to, lanes_mask, &[result; LANES]);
            }
            Op::Shuffle { mode, to, in_range, value, by, bounds, .. } => {
                let operands = [self.operand(*by, lanes_mask)?, self.operand(*bounds, lanes_mask)?];
                self.shuffle(*mode, (*to, *in_range), *value, operands, lanes_mask)?;
            }
            Op::LoadMatrix { transposed, to, address } => {
                if self.lanes_in(State::Exited) != 0 {
                    return Err((0, "`ldmatrix` needs all threads of the warp".into()));
                }
                self.load_matrices(*transposed, to, *address, shared)?;
            }
            Op::Multiply { k_dim, is_f16, d, abc } => {
                if self.lanes_in(State::Exited) != 0 {
                    return Err((0, "a matrix product needs all threads of the warp".into()));
                }
                self.multiply(*k_dim, *is_f16, d, abc)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn reduce(&self, alu: Alu, value: Reg, lanes_mask: u32) -> Result<u64, LaneError> {
        let values = self.read(value, lanes_mask)?;
        let mut all = lanes(lanes_mask);
        let first = all.next().map_or(0, |lane| values[lane]);
        all.try_fold(first, |sum, lane| {
            alu.compute([sum, values[lane], 0]).map_err(|what| (lane, what.to_owned()))
        })
    }

    fn shuffle(
        &mut self,
        mode: Shuffle,
        (to, in_range): (Reg, Option<Reg>),
        value: Reg,
        [by, bounds]: [[u64; LANES]; 2],
        lanes_mask: u32,
    ) -> Result<(), LaneError> {
        let values = *self.read(value, lanes_mask)?;
        let (mut received, mut in_range_bits) = ([UNDEFINED; LANES], [0; LANES]);
        for lane in lanes(lanes_mask) {
            let (by, bounds) = (by[lane] as i64 & 31, bounds[lane] as i64);
            let (lane_index, clamp, segment) = (lane as i64, bounds & 31, bounds >> 8 & 31);
            let (min_lane, max_lane) =
                (lane_index & segment, (lane_index & segment) | (clamp & !segment));
            let (from, is_in_range) = match mode {
                Shuffle::Up => (lane_index - by, lane_index - by >= max_lane),
                Shuffle::Down => (lane_index + by, lane_index + by <= max_lane),
                Shuffle::Butterfly => (lane_index ^ by, lane_index ^ by <= max_lane),
                Shuffle::Index => {
                    (min_lane | (by & !segment), min_lane | (by & !segment) <= max_lane)
                }
            };
            let from = if is_in_range { from as usize } else { lane };
            in_range_bits[lane] = is_in_range.into();
            // The value from an inactive lane is undefined, but harmless if unused.
            if lanes_mask & 1 << from != 0 {
                received[lane] = values[from];
            }
        }
        self.write(to, lanes_mask, &received);
        if let Some(in_range) = in_range {
            self.write(in_range, lanes_mask, &in_range_bits);
        }
        Ok(())
    }

    /// Executes `ldmatrix.sync.aligned.m8n8`. Lane `8 * i + j` has the address of row `j` of matrix
    /// `i`, which is loaded to register `i`.
    fn load_matrices(
        &mut self,
        transposed: bool,
        to: &[Reg],
        address: Address,
        shared: &mut SharedState<'_>,
    ) -> Result<(), LaneError> {
        for (matrix, register) in to.iter().enumerate() {
            let mut rows = [[0u64; 8]; 8];
            for (nth, row) in rows.iter_mut().enumerate() {
                let lane = 8 * matrix + nth;
                let bytes =
                    self.access_memory(Space::Shared, address, lane, 16, Access::Read, shared);
                let bytes = bytes.map_err(|what| (lane, what))?;
                *row = std::array::from_fn(|column| read_le(&bytes[2 * column..][..2]));
            }
            let words = std::array::from_fn(|lane| {
                let (group, pair) = (lane / 4, lane % 4 * 2);
                let [low, high] = match transposed {
                    false => [rows[group][pair], rows[group][pair + 1]],
                    true => [rows[pair][group], rows[pair + 1][group]],
                };
                low | high << 16
            });
            self.write(*register, u32::MAX, &words);
        }
        Ok(())
    }

    /// Executes `mma.sync.aligned.m16n8kK.row.col.D.f16.f16.C`, with the fragment layouts of the
    /// manual.
    fn multiply(
        &mut self,
        k_dim: usize,
        is_f16: bool,
        d: &[Reg],
        [a, b, c]: &[Vec<Reg>; 3],
    ) -> Result<(), LaneError> {
        let (mut left, mut right) = ([[0f32; 16]; 16], [[0f32; 8]; 16]);
        let mut accumulators = [[0f32; 8]; 16];
        for thread in 0..LANES {
            let (group, within) = (thread / 4, thread % 4);
            for (i, element) in self.elements(thread, a, true)?.into_iter().enumerate() {
                let row = if i / 2 % 2 == 0 { group } else { group + 8 };
                left[row][within * 2 + (i & 1) + if i >= 4 { 8 } else { 0 }] = element;
            }
            for (i, element) in self.elements(thread, b, true)?.into_iter().enumerate() {
                right[within * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }][group] = element;
            }
            for (i, element) in self.elements(thread, c, is_f16)?.into_iter().enumerate() {
                accumulators[group + i / 2 * 8][within * 2 + (i & 1)] = element;
            }
        }
        for (row, accumulators) in left.iter().zip(&mut accumulators) {
            for (column, sum) in accumulators.iter_mut().enumerate() {
                *sum += (0..k_dim).map(|k| row[k] * right[k][column]).sum::<f32>();
            }
        }
        for (nth, register) in d.iter().enumerate() {
            let bits = std::array::from_fn(|thread| {
                let (group, within) = (thread / 4, thread % 4);
                let element = |i: usize| accumulators[group + i / 2 * 8][within * 2 + (i & 1)];
                let f16_bits = |i: usize| u64::from(f16::from_f32(element(i)).to_bits());
                match is_f16 {
                    true => f16_bits(2 * nth) | f16_bits(2 * nth + 1) << 16,
                    false => element(nth).to_bits().into(),
                }
            });
            self.write(*register, u32::MAX, &bits);
        }
        Ok(())
    }

    /// Returns the elements in the registers of a fragment: two f16 each, or one f32.
    fn elements(
        &self,
        thread: usize,
        registers: &[Reg],
        is_f16: bool,
    ) -> Result<Vec<f32>, LaneError> {
        let mut elements = Vec::new();
        for register in registers {
            let word = self.read(*register, 1 << thread)?[thread] as u32;
            let to_f32 = |bits: u32| f16::from_bits(bits as u16).to_f32();
            match is_f16 {
                true => elements.extend([to_f32(word), to_f32(word >> 16)]),
                false => elements.push(f32::from_bits(word)),
            }
        }
        Ok(elements)
    }
}
