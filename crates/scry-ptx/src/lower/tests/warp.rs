//! An interpreter of PTX for a warp, according to the PTX ISA manual.
//!
//! The threads at the earliest line are executed first, so that divergent threads reconverge as
//! soon as possible. Undefined behaviour fails the test (masks with threads that do not arrive) or
//! returns a value that no test expects (the values of threads that are not in the mask).

use std::collections::HashMap;

use half::f16;

use super::machine::compute;
use crate::asm::{Address, AddressBase, Arg, Instruction, Label, Line};
use crate::types::{Operand, PtxType, Reg};

/// Bytes of a buffer; buffer `n` begins at `n * BUFFER`.
pub(super) const BUFFER: usize = 4096;

/// The result where the manual leaves it undefined; no test expects it.
const POISON: u64 = 0xdead_beef;

/// The threads of a block of at most one warp.
pub(super) struct Warp<'m> {
    lines: &'m [Line],
    labels: HashMap<Label, usize>,
    memory: &'m mut [u8],
    registers: Vec<HashMap<Reg, u64>>,
    /// The next line of each thread; `None` once it has exited.
    next: Vec<Option<usize>>,
}

impl<'m> Warp<'m> {
    /// Executes all threads to the end.
    pub(super) fn run(lines: &'m [Line], memory: &'m mut [u8], threads: usize) {
        let labels = lines.iter().enumerate().filter_map(|(at, line)| match line {
            Line::Label(label) => Some((*label, at)),
            _ => None,
        });
        let registers = vec![HashMap::new(); threads];
        let next = vec![Some(0); threads];
        let mut warp = Warp { lines, labels: labels.collect(), memory, registers, next };
        let mut steps_left = 1_000_000;
        while let Some(at) = warp.next.iter().flatten().min().copied() {
            steps_left -= 1;
            assert!(steps_left > 0, "the code does not terminate");
            warp.line(at);
        }
    }

    fn line(&mut self, at: usize) {
        let all: Vec<usize> = (0..self.next.len()).filter(|n| self.next[*n] == Some(at)).collect();
        all.iter().for_each(|thread| self.next[*thread] = Some(at + 1));
        let Line::Instruction(inst) = &self.lines[at] else { return };
        let is_selected = |thread: &usize| match inst.guard {
            Some(guard) => (self.registers[*thread][&guard.pred] & 1 == 1) == guard.holds,
            None => true,
        };
        let threads: Vec<usize> = all.into_iter().filter(is_selected).collect();
        if !threads.is_empty() {
            self.execute(inst, &threads);
        }
    }

    fn execute(&mut self, inst: &Instruction, threads: &[usize]) {
        let opcode = inst.opcode.to_string();
        let parts: Vec<&str> = opcode.split('.').collect();
        match (parts[0], inst.args.as_slice()) {
            ("ret", []) => threads.iter().for_each(|thread| self.next[*thread] = None),
            ("bra", [Arg::Label(label)]) => {
                let to = self.labels[label];
                threads.iter().for_each(|thread| self.next[*thread] = Some(to));
            }
            ("activemask", [Arg::Operand(Operand::Reg(result))]) => {
                let mask = mask_of(threads);
                threads.iter().for_each(|thread| self.set(*thread, *result, mask));
            }
            (
                "vote",
                [Arg::Operand(Operand::Reg(result)), Arg::Operand(vote), Arg::Operand(mask)],
            ) => {
                self.check_mask(threads, *mask);
                let voters: Vec<usize> =
                    threads.iter().copied().filter(|n| self.read(*n, *vote) & 1 == 1).collect();
                threads.iter().for_each(|thread| self.set(*thread, *result, mask_of(&voters)));
            }
            (
                "redux",
                [Arg::Operand(Operand::Reg(result)), Arg::Operand(value), Arg::Operand(mask)],
            ) => {
                self.check_mask(threads, *mask);
                let values = threads.iter().map(|thread| self.read(*thread, *value));
                let name = [parts[2], parts[3]];
                let reduced =
                    values.reduce(|x, y| compute(&name, &[x, y])).expect("at least one thread");
                threads.iter().for_each(|thread| self.set(*thread, *result, reduced));
            }
            (
                "shfl",
                [
                    result,
                    Arg::Operand(value),
                    Arg::Operand(by),
                    Arg::Operand(bounds),
                    Arg::Operand(mask),
                ],
            ) => {
                self.check_mask(threads, *mask);
                self.shuffle(parts[2], result, [*value, *by, *bounds], threads);
            }
            ("mma", [Arg::Vector(d), Arg::Vector(a), Arg::Vector(b), Arg::Vector(c)]) => {
                assert_eq!(threads.len(), 32, "a whole warp multiplies");
                self.multiply(&parts, d, [a, b, c]);
            }
            _ => threads.iter().for_each(|thread| self.execute_thread(*thread, &parts, &inst.args)),
        }
    }

    /// Checks that the threads in the mask that have not exited are those that execute this.
    fn check_mask(&self, threads: &[usize], mask: Operand) {
        let live: Vec<usize> = (0..self.next.len()).filter(|n| self.next[*n].is_some()).collect();
        for thread in threads {
            let present = self.read(*thread, mask) & mask_of(&live);
            assert_eq!(present, mask_of(threads), "the mask has threads that do not arrive");
        }
    }

    fn shuffle(&mut self, mode: &str, result: &Arg, operands: [Operand; 3], threads: &[usize]) {
        let values: HashMap<usize, u64> =
            threads.iter().map(|thread| (*thread, self.read(*thread, operands[0]))).collect();
        for &thread in threads {
            let [by, bounds] = [operands[1], operands[2]].map(|o| self.read(thread, o) as i64);
            let (lane, by, clamp, segment) =
                (thread as i64, by & 31, bounds & 31, bounds >> 8 & 31);
            let (min_lane, max_lane) = (lane & segment, (lane & segment) | (clamp & !segment));
            let (from, fits) = match mode {
                "up" => (lane - by, lane - by >= max_lane),
                "down" => (lane + by, lane + by <= max_lane),
                "bfly" => (lane ^ by, lane ^ by <= max_lane),
                _ => (min_lane | (by & !segment), min_lane | (by & !segment) <= max_lane),
            };
            let from = if fits { from } else { lane };
            let received = values.get(&(from as usize)).copied().unwrap_or(POISON);
            match result {
                Arg::Operand(Operand::Reg(result)) => self.set(thread, *result, received),
                Arg::Pair(Some(result), in_range) => {
                    self.set(thread, *result, received);
                    self.set(thread, *in_range, fits.into());
                }
                _ => panic!("not the result of a shuffle"),
            }
        }
    }

    /// Returns the elements in the registers of a fragment: two f16 each, or one f32.
    fn elements(&self, thread: usize, fragment: &[Operand], is_f16: bool) -> Vec<f32> {
        let words = fragment.iter().map(|register| self.read(thread, *register) as u32);
        let pair =
            |word: u32| [word as u16, (word >> 16) as u16].map(|h| f16::from_bits(h).to_f32());
        match is_f16 {
            true => words.flat_map(pair).collect(),
            false => words.map(f32::from_bits).collect(),
        }
    }

    /// Executes `mma.sync.aligned.m16n8kK.row.col.D.f16.f16.C`, with the fragment layouts of the
    /// manual.
    fn multiply(&mut self, parts: &[&str], d: &[Operand], [a, b, c]: [&[Operand]; 3]) {
        let k_dim = if parts[3] == "m16n8k16" { 16 } else { 8 };
        let is_f16 = parts[6] == "f16";
        let (mut left, mut right) = ([[0f32; 16]; 16], [[0f32; 8]; 16]);
        let mut accumulators = [[0f32; 8]; 16];
        for thread in 0..32 {
            let (group, within) = (thread / 4, thread % 4);
            for (i, element) in self.elements(thread, a, true).into_iter().enumerate() {
                let row = if i / 2 % 2 == 0 { group } else { group + 8 };
                left[row][within * 2 + (i & 1) + if i >= 4 { 8 } else { 0 }] = element;
            }
            for (i, element) in self.elements(thread, b, true).into_iter().enumerate() {
                right[within * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }][group] = element;
            }
            for (i, element) in self.elements(thread, c, is_f16).into_iter().enumerate() {
                accumulators[if i < 2 { group } else { group + 8 }][within * 2 + (i & 1)] = element;
            }
        }
        for (row, accumulators) in left.iter().zip(&mut accumulators) {
            for (column, accumulator) in accumulators.iter_mut().enumerate() {
                *accumulator += (0..k_dim).map(|k| row[k] * right[k][column]).sum::<f32>();
            }
        }
        for thread in 0..32 {
            let (group, within) = (thread / 4, thread % 4);
            let element = |i: usize| accumulators[group + i / 2 * 8][within * 2 + (i & 1)];
            let f16_bits = |i: usize| u64::from(f16::from_f32(element(i)).to_bits());
            for (nth, register) in d.iter().enumerate() {
                let Operand::Reg(register) = *register else { panic!("a result is a register") };
                let bits = match is_f16 {
                    true => f16_bits(2 * nth) | f16_bits(2 * nth + 1) << 16,
                    false => element(nth).to_bits().into(),
                };
                self.set(thread, register, bits);
            }
        }
    }

    /// Executes an instruction of a single thread.
    fn execute_thread(&mut self, thread: usize, parts: &[&str], args: &[Arg]) {
        match (parts[0], args) {
            ("ld", [Arg::Operand(Operand::Reg(result)), Arg::Address(address)])
                if parts[1] == "param" =>
            {
                let Some(AddressBase::Symbol(name)) = &address.base else {
                    panic!("the address is not a symbol")
                };
                let number = name.strip_prefix("buffer").expect("only buffers are passed");
                let start = BUFFER * number.parse::<usize>().expect("buffers have numbers");
                self.set(thread, *result, start as u64);
            }
            ("ld", [result, Arg::Address(address)]) => {
                for (nth, result) in operands_of(result).into_iter().enumerate() {
                    let Operand::Reg(result) = result else { panic!("a result is a register") };
                    let bytes = self.memory_at(thread, address, nth, result.class().bits() / 8);
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    self.set(thread, result, u64::from_le_bytes(word));
                }
            }
            ("st", [Arg::Address(address), values]) => {
                let size = bits_of(parts[parts.len() - 1]) / 8;
                for (nth, value) in operands_of(values).into_iter().enumerate() {
                    let word = self.read(thread, value).to_le_bytes();
                    let bytes = self.memory_at(thread, address, nth, size);
                    bytes.copy_from_slice(&word[..size as usize]);
                }
            }
            ("mov", [Arg::Operand(Operand::Reg(result)), Arg::Name(name)]) => {
                let value = special(name, thread);
                self.set(thread, *result, value);
            }
            ("mov", [Arg::Operand(Operand::Reg(result)), Arg::Vector(pair)]) => {
                let [low, high] = [0, 1].map(|nth| self.read(thread, pair[nth]));
                self.set(thread, *result, low | high << (result.class().bits() / 2));
            }
            ("mov", [Arg::Vector(pair), Arg::Operand(word)]) => {
                let word = self.read(thread, *word);
                for (nth, result) in pair.iter().enumerate() {
                    let Operand::Reg(result) = *result else { panic!("a result is a register") };
                    self.set(thread, result, word >> (nth as u32 * result.class().bits()));
                }
            }
            (_, [Arg::Operand(Operand::Reg(result)), operands @ ..]) => {
                let read = |operand: &Arg| match operand {
                    Arg::Operand(operand) => self.read(thread, *operand),
                    other => panic!("`{other}` is not supported by this interpreter"),
                };
                let operands: Vec<u64> = operands.iter().map(read).collect();
                self.set(thread, *result, compute(parts, &operands));
            }
            ("griddepcontrol", []) => {}
            _ => panic!("`{}` is not supported by this interpreter", parts.join(".")),
        }
    }

    fn read(&self, thread: usize, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.registers[thread][&reg],
            Operand::Imm { bits, .. } => bits,
        }
    }

    fn set(&mut self, thread: usize, reg: Reg, bits: u64) {
        let width = reg.class().bits();
        self.registers[thread].insert(reg, bits & (u64::MAX >> (64 - width)));
    }

    /// Returns the bytes of the `nth` of several values of a size at an address.
    fn memory_at(&mut self, thread: usize, address: &Address, nth: usize, size: u32) -> &mut [u8] {
        let Some(AddressBase::Reg(base)) = address.base else {
            panic!("the address is not a register")
        };
        let first = self.registers[thread][&base].wrapping_add_signed(address.offset) as usize;
        &mut self.memory[first + nth * size as usize..][..size as usize]
    }
}

/// Returns threads as a mask.
fn mask_of(threads: &[usize]) -> u64 {
    threads.iter().map(|thread| 1 << thread).sum()
}

fn operands_of(arg: &Arg) -> Vec<Operand> {
    match arg {
        Arg::Operand(operand) => vec![*operand],
        Arg::Vector(operands) => operands.clone(),
        other => panic!("`{other}` is not a value"),
    }
}

fn bits_of(ty: &str) -> u32 {
    let all = [PtxType::B8, PtxType::B16, PtxType::B32, PtxType::B64];
    all.into_iter().find(|known| known.name() == ty).map_or(0, |known| known.size() * 8)
}

fn special(name: &str, thread: usize) -> u64 {
    match name {
        "%tid.x" | "%laneid" => thread as u64,
        "%lanemask_lt" => (1 << thread) - 1,
        "%lanemask_le" => (2 << thread) - 1,
        _ => panic!("there is no `{name}` here"),
    }
}
