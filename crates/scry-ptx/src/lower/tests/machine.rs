//! A machine that executes straight lines of PTX for one thread, as the manual has it.
//!
//! What the manual leaves open ends the test: a quotient by zero, one that does not fit.

use std::collections::HashMap;

use half::f16;

use crate::asm::{Address, Arg, Base, Inst, Line};
use crate::types::{Operand, PtxType, Reg};

/// One thread. All parameters are addresses of the memory.
pub(super) struct Machine<'m> {
    memory: &'m mut [u8],
    registers: HashMap<Reg, u64>,
}

impl<'m> Machine<'m> {
    pub(super) fn new(memory: &'m mut [u8]) -> Self {
        Self { memory, registers: HashMap::new() }
    }

    /// Executes instructions until one returns.
    pub(super) fn run(&mut self, lines: &[Line]) {
        for line in lines {
            if let Line::Inst(inst) = line {
                assert!(inst.guard.is_none(), "`{inst}` is not for straight lines");
                self.execute(inst);
            }
        }
    }

    /// What a register holds.
    pub(super) fn get(&self, reg: Reg) -> u64 {
        self.registers[&reg]
    }

    pub(super) fn set(&mut self, reg: Reg, bits: u64) {
        let width = reg.class().bits();
        self.registers.insert(reg, bits & (u64::MAX >> (64 - width)));
    }

    fn execute(&mut self, inst: &Inst) {
        let opcode = inst.opcode.to_string();
        let parts: Vec<&str> = opcode.split('.').collect();
        match (parts[0], inst.args.as_slice()) {
            ("ret", []) => {}
            ("ld", [Arg::Operand(Operand::Reg(result)), Arg::Address(_)])
                if parts[1] == "param" =>
            {
                self.set(*result, 0);
            }
            ("ld", [Arg::Operand(Operand::Reg(result)), Arg::Address(address)]) => {
                let bytes = self.place(address, result.class().bits() / 8);
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                self.set(*result, u64::from_le_bytes(word));
            }
            ("st", [Arg::Address(address), Arg::Operand(value)]) => {
                let word = self.read(*value).to_le_bytes();
                let size = ty(parts[parts.len() - 1]).size();
                let bytes = self.place(address, size);
                bytes.copy_from_slice(&word[..size as usize]);
            }
            (_, [Arg::Operand(Operand::Reg(result)), operands @ ..]) => {
                let operands: Vec<u64> = operands
                    .iter()
                    .map(|operand| match operand {
                        Arg::Operand(operand) => self.read(*operand),
                        _ => panic!("`{inst}` has no place in these tests"),
                    })
                    .collect();
                self.set(*result, compute(&parts, &operands));
            }
            _ => panic!("`{inst}` has no place in these tests"),
        }
    }

    fn read(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.get(reg),
            Operand::Imm { bits, .. } => bits,
        }
    }

    fn place(&mut self, address: &Address, size: u32) -> &mut [u8] {
        let base = match address.base {
            Some(Base::Reg(reg)) => self.get(reg),
            _ => panic!("the memory has no name"),
        };
        let first = base.wrapping_add_signed(address.offset) as usize;
        &mut self.memory[first..][..size as usize]
    }
}

fn ty(name: &str) -> PtxType {
    use PtxType::*;
    let all = [Pred, B8, U8, B16, U16, S16, F16, B32, U32, S32, F32, B64, U64, S64, F64];
    all.into_iter().find(|ty| ty.name() == name).unwrap_or_else(|| panic!("there is no `{name}`"))
}

fn is_float(ty: PtxType) -> bool {
    matches!(ty, PtxType::F16 | PtxType::F32 | PtxType::F64)
}

fn is_signed(ty: PtxType) -> bool {
    matches!(ty, PtxType::S16 | PtxType::S32 | PtxType::S64)
}

/// The integer that bits are.
fn int(ty: PtxType, bits: u64) -> i128 {
    let unused = 64 - ty.class().bits();
    if is_signed(ty) {
        i128::from(((bits << unused) as i64) >> unused)
    } else {
        i128::from((bits << unused) >> unused)
    }
}

/// The number that bits are; exact for every type.
fn float(ty: PtxType, bits: u64) -> f64 {
    match ty {
        PtxType::F16 => f16::from_bits(bits as u16).to_f64(),
        PtxType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The bits of the nearest number. Sums, products and quotients of narrower types may be computed
/// with 64 bits before.
fn round(ty: PtxType, value: f64) -> u64 {
    match ty {
        PtxType::F16 => f16::from_f64(value).to_bits().into(),
        PtxType::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

/// The result of an instruction, with more bits than its register may have.
pub(super) fn compute(parts: &[&str], x: &[u64]) -> u64 {
    let last = parts[parts.len() - 1];
    match parts[0] {
        "mov" | "cvta" => x[0],
        "cvt" => convert(parts, x[0]),
        "selp" => x[if x[2] & 1 == 1 { 0 } else { 1 }],
        "setp" => compare(parts, x),
        "and" => x[0] & x[1],
        "or" => x[0] | x[1],
        "xor" => x[0] ^ x[1],
        "not" => !x[0],
        "shl" | "shr" => shift(parts[0], ty(last), x[0], x[1]),
        "shf" => funnel(parts, x),
        "popc" | "clz" | "brev" | "bfind" => bits(parts, x[0]),
        "dp4a" => dot(ty(last), x),
        _ if is_float(ty(last)) => of_floats(parts, ty(last), x),
        _ => of_integers(parts, ty(last), x),
    }
}

fn of_floats(parts: &[&str], ty: PtxType, x: &[u64]) -> u64 {
    let f = |nth: usize| float(ty, x[nth]);
    let sign = 1 << (ty.class().bits() - 1);
    match parts[0] {
        "neg" => x[0] ^ sign,
        "abs" => x[0] & !sign,
        "add" => round(ty, f(0) + f(1)),
        "sub" => round(ty, f(0) - f(1)),
        "mul" => round(ty, f(0) * f(1)),
        "div" => round(ty, f(0) / f(1)),
        "min" => round(ty, f(0).min(f(1))),
        "max" => round(ty, f(0).max(f(1))),
        "fma" => round(ty, f(0).mul_add(f(1), f(2))),
        name => panic!("there is no `{name}` of floats here"),
    }
}

fn of_integers(parts: &[&str], ty: PtxType, x: &[u64]) -> u64 {
    let i = |nth: usize| int(ty, x[nth]);
    let result = match (parts[0], parts[1]) {
        ("neg", _) => -i(0),
        ("abs", _) => i(0).abs(),
        ("add", _) => i(0) + i(1),
        ("sub", _) => i(0) - i(1),
        ("mul", "hi") if is_signed(ty) => (i(0) * i(1)) >> ty.class().bits(),
        ("mul", "hi") => ((i(0) as u128 * i(1) as u128) >> ty.class().bits()) as i128,
        ("mul", "lo") => i(0).wrapping_mul(i(1)),
        ("mad", "lo" | "wide") => i(0).wrapping_mul(i(1)) + i(2),
        ("min", _) => i(0).min(i(1)),
        ("max", _) => i(0).max(i(1)),
        ("div", _) => {
            let quotient = i(0).checked_div(i(1)).expect("divisors are not zero");
            assert_eq!(quotient, int(ty, quotient as u64), "the quotient fits");
            quotient
        }
        ("rem", _) => {
            assert!(i(1) != -1 || !is_signed(ty), "the quotient fits");
            i(0).checked_rem(i(1)).expect("divisors are not zero")
        }
        (name, _) => panic!("there is no `{name}` of integers here"),
    };
    result as u64
}

/// From the width on everything is shifted out.
fn shift(name: &str, ty: PtxType, value: u64, by: u64) -> u64 {
    let by = (by as u32).min(ty.class().bits());
    match name {
        "shl" => ((int(ty, value) as u128) << by) as u64,
        _ => (int(ty, value) >> by) as u64,
    }
}

/// Shifts two words that are one after the other, modulo 32, and gives one of them.
fn funnel(parts: &[&str], x: &[u64]) -> u64 {
    let pair = x[1] << 32 | x[0] & 0xffff_ffff;
    let by = x[2] & 31;
    match parts[1..] {
        ["l", "wrap", "b32"] => (pair << by) >> 32,
        ["r", "wrap", "b32"] => pair >> by,
        _ => panic!("there is no such `shf` here"),
    }
}

fn bits(parts: &[&str], x: u64) -> u64 {
    let ty = ty(parts[parts.len() - 1]);
    let width = ty.class().bits();
    let x = int(ty, x);
    let ones = x as u64 & (u64::MAX >> (64 - width));
    match parts[0] {
        "popc" => ones.count_ones().into(),
        "clz" => u64::from(ones.leading_zeros()) - u64::from(64 - width),
        "brev" => ones.reverse_bits() >> (64 - width),
        _ => {
            let highest = 63 - i64::from((if x < 0 { !x as u64 } else { ones }).leading_zeros());
            let is_amount = parts[1] == "shiftamt" && highest >= 0;
            (if is_amount { i64::from(width) - 1 - highest } else { highest }) as u64
        }
    }
}

fn dot(ty: PtxType, x: &[u64]) -> u64 {
    let byte = |word: u64, nth: usize| {
        let byte = word.to_le_bytes()[nth];
        if is_signed(ty) { i64::from(byte as i8) } else { i64::from(byte) }
    };
    (0..4).map(|nth| byte(x[0], nth) * byte(x[1], nth)).sum::<i64>() as u64 + x[2]
}

/// `setp.comparison.type`, and `setp.comparison.and.type` with a truth value more.
fn compare(parts: &[&str], x: &[u64]) -> u64 {
    let ty = ty(parts[parts.len() - 1]);
    let order = if is_float(ty) {
        float(ty, x[0]).partial_cmp(&float(ty, x[1]))
    } else {
        Some(int(ty, x[0]).cmp(&int(ty, x[1])))
    };
    let holds = match (parts[1], order) {
        (name, None) => name.ends_with('u') || name == "nan",
        ("eq", Some(order)) => order.is_eq(),
        ("ne" | "neu", Some(order)) => order.is_ne(),
        ("lt" | "ltu", Some(order)) => order.is_lt(),
        ("le" | "leu", Some(order)) => order.is_le(),
        ("gt" | "gtu", Some(order)) => order.is_gt(),
        ("ge" | "geu", Some(order)) => order.is_ge(),
        ("nan", Some(_)) => false,
        (name, _) => panic!("there is no comparison `{name}`"),
    };
    let holds = u64::from(holds);
    match (parts.len(), parts[2]) {
        (3, _) => holds,
        (_, "and") => holds & x[2],
        (_, "or") => holds | x[2],
        (_, name) => panic!("comparisons are not combined with `{name}` here"),
    }
}

fn convert(parts: &[&str], x: u64) -> u64 {
    let (to, from) = (ty(parts[parts.len() - 2]), ty(parts[parts.len() - 1]));
    match (is_float(from), is_float(to), &parts[1..parts.len() - 2]) {
        (true, true, ["rzi"]) if to == from => round(to, float(from, x).trunc()),
        (true, true, ["rn"]) if to.size() < from.size() => round(to, float(from, x)),
        (true, true, []) if to.size() > from.size() => round(to, float(from, x)),
        (true, false, ["rzi"]) => to_integer(to, from, float(from, x)),
        (false, true, ["rn"]) if to == PtxType::F32 => (int(from, x) as f32).to_bits().into(),
        (false, true, ["rn"]) if to == PtxType::F64 => (int(from, x) as f64).to_bits(),
        (false, false, []) => int(from, x) as u64,
        _ => panic!("there is no `{}` here", parts.join(".")),
    }
}

/// Saturates. Of what is no number it is 0 only if neither type has 64 bits.
fn to_integer(to: PtxType, from: PtxType, value: f64) -> u64 {
    let width = to.class().bits();
    if value.is_nan() {
        return if from == PtxType::F64 || width == 64 { 1 << (width - 1) } else { 0 };
    }
    let (low, high) = match is_signed(to) {
        true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
        false => (0, (1i128 << width) - 1),
    };
    (value as i128).clamp(low, high) as u64
}
