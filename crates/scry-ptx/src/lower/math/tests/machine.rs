//! A model of the hardware that executes straight-line code.

use super::semantics::{Push, Step, step};
use crate::asm::{Arg, Line};
use crate::body::Body;
use crate::types::{Operand, Reg, RegisterClass};

/// The source of an operand.
#[derive(Clone, Copy)]
enum From {
    Slot(usize),
    Bits(u64),
}

struct Inst {
    step: Step,
    to: usize,
    from: [From; 3],
}

/// A function, ready to be executed.
pub struct Program {
    insts: Vec<Inst>,
    /// Number of registers.
    size: usize,
    inputs: [usize; 2],
    result: usize,
}

impl Program {
    /// Reads the lines.
    pub fn new(body: &Body, inputs: [Reg; 2], result: Reg) -> Self {
        let mut begins = [0; 4];
        for nth in 1..4 {
            begins[nth] = begins[nth - 1] + body.registers()[nth - 1] as usize;
        }
        let size = begins[3] + body.registers()[3] as usize;
        let slot = |reg: Reg| slot(&begins, reg);
        let insts = body.lines().iter().map(|line| read(line, &begins)).collect();
        Self { insts, size, inputs: inputs.map(slot), result: slot(result) }
    }

    /// Returns the bits of the result for the bits of the operands.
    pub fn run(&self, inputs: [u64; 2], push: Push) -> u64 {
        let mut slots = vec![0; self.size];
        for (slot, bits) in self.inputs.iter().zip(inputs) {
            slots[*slot] = bits;
        }
        for inst in &self.insts {
            let operands = inst.from.map(|from| match from {
                From::Slot(slot) => slots[slot],
                From::Bits(bits) => bits,
            });
            slots[inst.to] = (inst.step)(operands, push);
        }
        slots[self.result]
    }
}

fn slot(begins: &[usize; 4], reg: Reg) -> usize {
    let class = RegisterClass::ALL.iter().position(|class| *class == reg.class()).unwrap();
    begins[class] + reg.index as usize
}

fn read(line: &Line, begins: &[usize; 4]) -> Inst {
    let Line::Instruction(inst) = line else { panic!("{line} is not straight code") };
    assert!(inst.guard.is_none(), "{line} is conditional");
    let opcode = inst.opcode.to_string();
    let name = opcode.as_str();
    let step = step(name).unwrap_or_else(|| panic!("the model has no {name}"));
    let [to, operands @ ..] = &inst.args[..] else { panic!("{line} has no result") };
    let Arg::Operand(Operand::Reg(to)) = to else { panic!("{line} has no register as its result") };
    let mut from = [From::Bits(0); 3];
    for (place, operand) in from.iter_mut().zip(operands) {
        *place = match operand {
            Arg::Operand(Operand::Reg(reg)) => From::Slot(slot(begins, *reg)),
            Arg::Operand(Operand::Imm { bits, .. }) => From::Bits(*bits),
            _ => panic!("{line} has an operand that is no number"),
        };
    }
    Inst { step, to: slot(begins, *to), from }
}
