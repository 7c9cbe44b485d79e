//! An interpreter of straight-line PTX for one thread, according to the PTX ISA manual.
//!
//! Undefined results fail the test: a quotient by zero, or one that overflows.

use std::collections::HashMap;

use scry_test_support::alu::{Alu, Type};

use crate::asm::{Address, AddressBase, Arg, Instruction, Line};
use crate::types::{Operand, Reg};

/// One thread. All parameters are pointers to the start of the memory.
pub(super) struct Machine<'m> {
    memory: &'m mut [u8],
    registers: HashMap<Reg, u64>,
}

impl<'m> Machine<'m> {
    pub(super) fn new(memory: &'m mut [u8]) -> Self {
        Self { memory, registers: HashMap::new() }
    }

    /// Executes instructions in order.
    pub(super) fn run(&mut self, lines: &[Line]) {
        for line in lines {
            if let Line::Instruction(inst) = line {
                assert!(inst.guard.is_none(), "`{inst}` is not straight-line code");
                self.execute(inst);
            }
        }
    }

    /// Returns the value of a register.
    pub(super) fn get(&self, reg: Reg) -> u64 {
        self.registers[&reg]
    }

    pub(super) fn set(&mut self, reg: Reg, bits: u64) {
        let width = reg.class().bits();
        self.registers.insert(reg, bits & (u64::MAX >> (64 - width)));
    }

    fn execute(&mut self, inst: &Instruction) {
        let opcode = inst.opcode.to_string();
        let parts: Vec<&str> = opcode.split('.').collect();
        match (parts[0], inst.args.as_slice()) {
            ("ret" | "griddepcontrol", []) => {}
            ("ld", [Arg::Operand(Operand::Reg(result)), Arg::Address(_)])
                if parts[1] == "param" =>
            {
                self.set(*result, 0);
            }
            ("ld", [Arg::Operand(Operand::Reg(result)), Arg::Address(address)]) => {
                let bytes = self.memory_at(address, result.class().bits() / 8);
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                self.set(*result, u64::from_le_bytes(word));
            }
            ("st", [Arg::Address(address), Arg::Operand(value)]) => {
                let word = self.read(*value).to_le_bytes();
                let size = size(parts[parts.len() - 1]);
                let bytes = self.memory_at(address, size);
                bytes.copy_from_slice(&word[..size as usize]);
            }
            (_, [Arg::Operand(Operand::Reg(result)), operands @ ..]) => {
                let operands: Vec<u64> = operands
                    .iter()
                    .map(|operand| match operand {
                        Arg::Operand(operand) => self.read(*operand),
                        _ => panic!("`{inst}` is not supported by this interpreter"),
                    })
                    .collect();
                self.set(*result, compute(&parts, &operands));
            }
            _ => panic!("`{inst}` is not supported by this interpreter"),
        }
    }

    fn read(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.get(reg),
            Operand::Imm { bits, .. } => bits,
        }
    }

    fn memory_at(&mut self, address: &Address, size: u32) -> &mut [u8] {
        let base = match address.base {
            Some(AddressBase::Reg(reg)) => self.get(reg),
            _ => panic!("the address is not a register"),
        };
        let first = base.wrapping_add_signed(address.offset) as usize;
        &mut self.memory[first..][..size as usize]
    }
}

/// Returns the result of an instruction, which may have more bits than its register.
pub(super) fn compute(parts: &[&str], operands: &[u64]) -> u64 {
    let alu = Alu::parse(parts).unwrap_or_else(|| panic!("there is no `{}`", parts.join(".")));
    let mut x = [0; 3];
    x[..operands.len()].copy_from_slice(operands);
    alu.compute(x).unwrap_or_else(|what| panic!("`{}`: {what}", parts.join(".")))
}

/// Returns the size of a type in bytes.
fn size(ty: &str) -> u32 {
    Type::parse(ty).map_or(0, |ty| ty.bits() / 8)
}
