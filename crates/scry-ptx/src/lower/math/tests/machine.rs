//! Executes straight-line code with the models of `semantics.rs`.

use super::semantics::{Bias, Operation, operation};
use crate::asm::{Arg, Line};
use crate::body::Body;
use crate::types::{Operand, Reg, RegisterClass};

/// The source of an operand: a register's slot, or a constant.
#[derive(Clone, Copy)]
enum Source {
    Slot(usize),
    Bits(u64),
}

struct Inst {
    operation: Operation,
    to: usize,
    from: [Source; 3],
}

/// The code of a function in executable form: each register is a slot.
pub struct Program {
    insts: Vec<Inst>,
    /// Number of registers.
    size: usize,
    inputs: [usize; 2],
    result: usize,
}

impl Program {
    /// Parses the instructions of a body.
    pub fn new(body: &Body, inputs: [Reg; 2], result: Reg) -> Self {
        let mut first_slots = [0; 4];
        for nth in 1..4 {
            first_slots[nth] = first_slots[nth - 1] + body.registers()[nth - 1] as usize;
        }
        let size = first_slots[3] + body.registers()[3] as usize;
        let slot = |reg: Reg| slot(&first_slots, reg);
        let insts = body.lines().iter().map(|line| parse_line(line, &first_slots)).collect();
        Self { insts, size, inputs: inputs.map(slot), result: slot(result) }
    }

    /// Returns the bits of the result for the bits of the operands.
    pub fn run(&self, inputs: [u64; 2], bias: Bias) -> u64 {
        let mut slots = vec![0; self.size];
        for (slot, bits) in self.inputs.iter().zip(inputs) {
            slots[*slot] = bits;
        }
        for inst in &self.insts {
            let operands = inst.from.map(|from| match from {
                Source::Slot(slot) => slots[slot],
                Source::Bits(bits) => bits,
            });
            slots[inst.to] = (inst.operation)(operands, bias);
        }
        slots[self.result]
    }
}

/// Returns the slot of a register: those of a class follow one another.
fn slot(first_slots: &[usize; 4], reg: Reg) -> usize {
    let class = RegisterClass::ALL.iter().position(|class| *class == reg.class()).unwrap();
    first_slots[class] + reg.index as usize
}

fn parse_line(line: &Line, first_slots: &[usize; 4]) -> Inst {
    let Line::Instruction(inst) = line else { panic!("{line} is not straight-line code") };
    assert!(inst.guard.is_none(), "{line} is conditional");
    let opcode = inst.opcode.to_string();
    let name = opcode.as_str();
    let operation = operation(name).unwrap_or_else(|| panic!("the model has no {name}"));
    let [to, operands @ ..] = &inst.args[..] else { panic!("{line} has no result") };
    let Arg::Operand(Operand::Reg(to)) = to else { panic!("{line} has no register as its result") };
    let mut from = [Source::Bits(0); 3];
    for (source, operand) in from.iter_mut().zip(operands) {
        *source = match operand {
            Arg::Operand(Operand::Reg(reg)) => Source::Slot(slot(first_slots, *reg)),
            Arg::Operand(Operand::Imm { bits, .. }) => Source::Bits(*bits),
            _ => panic!("{line} has an operand that is not a number"),
        };
    }
    Inst { operation, to: slot(first_slots, *to), from }
}
