//! Instructions that the threads of a warp execute together.

use half::f16;

use super::alu::Alu;
use super::code::{Op, Operand, Reg, Shuffle};
use super::warp::{LANES, State, Warp, lanes};

/// An error and its lane.
type Wrong = (usize, String);

/// The value from inactive lanes.
const POISON: u64 = 0xdead_beef;

impl Warp<'_> {
    /// Executes a collective instruction; returns the lanes for which it completed. The others wait
    /// for the lanes of their mask.
    pub fn collective(&mut self, op: &Op, acting: u32) -> Result<u32, Wrong> {
        let mask = match op {
            Op::ActiveMask(to) => {
                self.write(*to, acting, &[acting.into(); LANES]);
                return Ok(acting);
            }
            Op::WarpBarrier(mask)
            | Op::Ballot { mask, .. }
            | Op::Reduce { mask, .. }
            | Op::Shuffle { mask, .. } => *mask,
            Op::Multiply { .. } => Operand::Bits(u32::MAX.into()),
            other => unreachable!("{other:?} is no instruction of a warp"),
        };
        let masks = self.operand(mask, acting)?;
        let mut done = 0;
        for lane in lanes(acting) {
            let named = masks[lane] as u32;
            if named & 1 << lane == 0 {
                return Err((lane, format!("the thread is not in its own mask {named:#010x}")));
            }
            let named = named & self.live();
            if done & 1 << lane != 0 || named & !acting != 0 {
                continue;
            }
            if let Some(other) = lanes(named).find(|other| masks[*other] != masks[lane]) {
                let masks = (masks[lane], masks[other]);
                return Err((lane, format!("threads that meet name different masks: {masks:x?}")));
            }
            self.perform(op, named)?;
            done |= named;
        }
        Ok(done)
    }

    /// Executes an instruction at which all its threads have arrived.
    fn perform(&mut self, op: &Op, here: u32) -> Result<(), Wrong> {
        match op {
            Op::Ballot { to, pred, .. } => {
                let votes = self.read(*pred, here)?;
                let yes: u32 = lanes(here).filter(|n| votes[*n] & 1 == 1).map(|n| 1 << n).sum();
                self.write(*to, here, &[yes.into(); LANES]);
            }
            Op::Reduce { alu, to, value, .. } => {
                let sum = self.reduced(*alu, *value, here)?;
                self.write(*to, here, &[sum; LANES]);
            }
            Op::Shuffle { mode, to, known, value, by, bounds, .. } => {
                let operands = [self.operand(*by, here)?, self.operand(*bounds, here)?];
                self.shuffle(*mode, (*to, *known), *value, operands, here)?;
            }
            Op::Multiply { depth, is_half, d, abc } => {
                if self.are(State::Ended) != 0 {
                    return Err((0, "threads are missing that matrices are multiplied by".into()));
                }
                self.multiply(*depth, *is_half, d, abc)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn reduced(&self, alu: Alu, value: Reg, here: u32) -> Result<u64, Wrong> {
        let values = self.read(value, here)?;
        let mut all = lanes(here);
        let first = all.next().map_or(0, |lane| values[lane]);
        all.try_fold(first, |sum, lane| {
            alu.compute([sum, values[lane], 0]).map_err(|what| (lane, what.to_owned()))
        })
    }

    fn shuffle(
        &mut self,
        mode: Shuffle,
        (to, known): (Reg, Option<Reg>),
        value: Reg,
        [by, bounds]: [[u64; LANES]; 2],
        here: u32,
    ) -> Result<(), Wrong> {
        let values = *self.read(value, here)?;
        let (mut got, mut fits) = ([POISON; LANES], [0; LANES]);
        for lane in lanes(here) {
            let (by, bounds) = (by[lane] as i64 & 31, bounds[lane] as i64);
            let (own, clamp, segment) = (lane as i64, bounds & 31, bounds >> 8 & 31);
            let (least, most) = (own & segment, (own & segment) | (clamp & !segment));
            let (from, is_there) = match mode {
                Shuffle::Up => (own - by, own - by >= most),
                Shuffle::Down => (own + by, own + by <= most),
                Shuffle::Butterfly => (own ^ by, own ^ by <= most),
                Shuffle::Index => (least | (by & !segment), least | (by & !segment) <= most),
            };
            let from = if is_there { from as usize } else { lane };
            fits[lane] = is_there.into();
            // The value from an inactive lane is undefined, but harmless if unused.
            if here & 1 << from != 0 {
                got[lane] = values[from];
            }
        }
        self.write(to, here, &got);
        if let Some(known) = known {
            self.write(known, here, &fits);
        }
        Ok(())
    }

    /// `mma.sync.aligned.m16n8kK.row.col.D.f16.f16.C`, where each thread's elements are as the
    /// manual has them.
    fn multiply(
        &mut self,
        depth: usize,
        is_half: bool,
        d: &[Reg],
        [a, b, c]: &[Vec<Reg>; 3],
    ) -> Result<(), Wrong> {
        let (mut left, mut right) = ([[0f32; 16]; 16], [[0f32; 8]; 16]);
        let mut sums = [[0f32; 8]; 16];
        for thread in 0..LANES {
            let (group, within) = (thread / 4, thread % 4);
            for (i, element) in self.elements(thread, a, true)?.into_iter().enumerate() {
                let row = if i / 2 % 2 == 0 { group } else { group + 8 };
                left[row][within * 2 + (i & 1) + if i >= 4 { 8 } else { 0 }] = element;
            }
            for (i, element) in self.elements(thread, b, true)?.into_iter().enumerate() {
                right[within * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }][group] = element;
            }
            for (i, element) in self.elements(thread, c, is_half)?.into_iter().enumerate() {
                sums[group + i / 2 * 8][within * 2 + (i & 1)] = element;
            }
        }
        for (row, sums) in left.iter().zip(&mut sums) {
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum += (0..depth).map(|k| row[k] * right[k][column]).sum::<f32>();
            }
        }
        for (nth, register) in d.iter().enumerate() {
            let bits = std::array::from_fn(|thread| {
                let (group, within) = (thread / 4, thread % 4);
                let element = |i: usize| sums[group + i / 2 * 8][within * 2 + (i & 1)];
                let half = |i: usize| u64::from(f16::from_f32(element(i)).to_bits());
                match is_half {
                    true => half(2 * nth) | half(2 * nth + 1) << 16,
                    false => element(nth).to_bits().into(),
                }
            });
            self.write(*register, u32::MAX, &bits);
        }
        Ok(())
    }

    /// The elements of a fragment of registers: two 16-bit floats each, or one of 32 bits.
    fn elements(&self, thread: usize, registers: &[Reg], halves: bool) -> Result<Vec<f32>, Wrong> {
        let mut elements = Vec::new();
        for register in registers {
            let word = self.read(*register, 1 << thread)?[thread] as u32;
            let half = |bits: u32| f16::from_bits(bits as u16).to_f32();
            match halves {
                true => elements.extend([half(word), half(word >> 16)]),
                false => elements.push(f32::from_bits(word)),
            }
        }
        Ok(elements)
    }
}
