//! Parses PTX text into executable code.
//!
//! The parser supports exactly the output of the translation: everything else is an error with
//! its line, so that nothing is skipped.

use std::collections::HashMap;

use scry_test_support::alu::{Alu, Type};

use super::code::{
    Address, Atomic, Inst, Memory, Module, Op, Operand, Reg, Shuffle, Space, Special,
};

/// Address of the first variable of a space, and the distance between variables, so that accesses
/// out of bounds hit no other one. Variables are aligned to 16 bytes and no more.
const FIRST_ADDRESS: u64 = 0x4000_0010;
const VARIABLE_STRIDE: u64 = 0x0100_0000;

/// Prefixes of registers, with the number of bits of each.
const CLASSES: [(&str, u32); 4] = [("%p", 1), ("%h", 16), ("%r", 32), ("%d", 64)];

/// Parses a module with one kernel; `dynamic` is the size of dynamic shared memory, which the
/// launch sets.
pub fn parse(text: &str, dynamic: u32) -> Result<Module, String> {
    let mut parser = Parser { dynamic, ..Parser::default() };
    for (nth, line) in text.lines().enumerate() {
        let parsed = parser.declaration(line.trim(), nth);
        parsed.map_err(|what| format!("line {}: `{}`: {what}", nth + 1, line.trim()))?;
    }
    let lines = std::mem::take(&mut parser.lines);
    for (nth, line) in lines {
        let inst = parser.instruction(nth, line);
        let inst = inst.map_err(|what| format!("line {}: `{line}`: {what}", nth + 1))?;
        parser.module.code.push(inst);
    }
    Ok(parser.module)
}

#[derive(Default)]
struct Parser<'t> {
    module: Module,
    /// Bytes of dynamic shared memory.
    dynamic: u32,
    /// The first register of each class, and their number.
    first: [(usize, usize); 4],
    symbols: HashMap<&'t str, (Space, u64)>,
    labels: HashMap<&'t str, usize>,
    /// Instructions, with their line numbers.
    lines: Vec<(usize, &'t str)>,
}

impl<'t> Parser<'t> {
    /// Records a declaration; instructions are parsed after all declarations.
    fn declaration(&mut self, line: &'t str, nth: usize) -> Result<(), String> {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] | ["//", ..] | ["{" | "}" | ")"] => Ok(()),
            [".version" | ".target" | ".address_size" | ".minnctapersm", _] => Ok(()),
            [".visible", ".entry", _] => Ok(()),
            [".reqntid", sizes @ ..] => self.block(sizes),
            [".reg", _, registers] => self.registers(registers),
            [".param", ".u64", ".ptr", ".global", ".align", "16", name] => {
                self.variable(Space::Param, name, 8)
            }
            [".param", ".u32" | ".f32", name] => self.variable(Space::Param, name, 4),
            [".param", ".u64", name] => self.variable(Space::Param, name, 8),
            [".param", ".align", "16", ".b8", array] => self.array(Space::Param, array),
            [".local", ".align", "16", ".b8", array] => self.array(Space::Local, array),
            [".shared", ".align", "16", ".b8", array]
            | [".extern", ".shared", ".align", "16", ".b8", array] => {
                self.array(Space::Shared, array)
            }
            [label] if label.ends_with(':') => {
                self.labels.insert(label.trim_end_matches(':'), self.lines.len());
                Ok(())
            }
            _ if line.ends_with(';') => {
                self.lines.push((nth, line.trim_end_matches(';')));
                Ok(())
            }
            _ => Err("unknown declaration".to_owned()),
        }
    }

    fn block(&mut self, sizes: &[&str]) -> Result<(), String> {
        let sizes: Vec<u32> = sizes.iter().map(|size| number(size)).collect::<Result<_, _>>()?;
        self.module.block = sizes.try_into().map_err(|_| "not three sizes")?;
        Ok(())
    }

    /// Parses `%r<7>;`.
    fn registers(&mut self, text: &str) -> Result<(), String> {
        let (prefix, count) = text.trim_end_matches(">;").split_once('<').ok_or("no count")?;
        let class = CLASSES
            .iter()
            .position(|(prefix_of_class, _)| *prefix_of_class == prefix)
            .ok_or("no class")?;
        let count = number(count)? as usize;
        let first = self.module.registers.len();
        self.first[class] = (first, count);
        self.module.registers.resize(first + count, CLASSES[class].1);
        Ok(())
    }

    /// Parses `local0[16];`.
    fn array(&mut self, space: Space, text: &'t str) -> Result<(), String> {
        let text = text.trim_end_matches(';').trim_end_matches(']');
        let (name, bytes) = text.split_once('[').ok_or("no size")?;
        let bytes = if bytes.is_empty() { self.dynamic } else { number(bytes)? };
        self.variable(space, name, bytes)
    }

    fn variable(&mut self, space: Space, name: &'t str, bytes: u32) -> Result<(), String> {
        let variables = &mut self.module.variables;
        let nth = variables.iter().filter(|variable| variable.space == space).count() as u64;
        let address = FIRST_ADDRESS + nth * VARIABLE_STRIDE;
        if u64::from(bytes) > VARIABLE_STRIDE / 2 {
            return Err("the variable is too large for these tests".to_owned());
        }
        variables.push(Memory { space, name: name.to_owned(), address, bytes });
        self.symbols.insert(name, (space, address));
        Ok(())
    }

    fn instruction(&self, nth: usize, line: &str) -> Result<Inst, String> {
        let (guard, rest) = match line.strip_prefix('@') {
            Some(rest) => {
                let (guard, rest) = rest.split_once(' ').ok_or("nothing is guarded")?;
                let (pred, holds) =
                    guard.strip_prefix('!').map_or((guard, true), |pred| (pred, false));
                (Some((self.register(pred)?, holds)), rest)
            }
            None => (None, line),
        };
        let (opcode, args) = rest.split_once(' ').unwrap_or((rest, ""));
        let parts: Vec<&str> = opcode.split('.').collect();
        let op = self.op(&parts, &arguments(args))?;
        Ok(Inst { guard, op, line: nth })
    }

    fn op(&self, parts: &[&str], args: &[&str]) -> Result<Op, String> {
        Ok(match (parts, args) {
            (["ret"], []) => Op::Return,
            (["bra"], [label]) => Op::Branch(*self.labels.get(label).ok_or("no such label")?),
            (["griddepcontrol", "wait" | "launch_dependents"], []) => Op::Hint,
            (["prefetch", "global", "L2"], [_]) => Op::Hint,
            (["barrier" | "bar", "sync"], ["0"]) => Op::Barrier,
            (["bar", "warp", "sync"], [mask]) => Op::WarpBarrier(self.operand(mask)?),
            (["activemask", "b32"], [to]) => Op::ActiveMask(self.register(to)?),
            (["vote", "sync", "ballot", "b32"], [to, pred, mask]) => Op::Ballot {
                to: self.register(to)?,
                pred: self.register(pred)?,
                mask: self.operand(mask)?,
            },
            (["redux", "sync", name, ty], [to, value, mask]) => Op::Reduce {
                alu: Alu::parse(&[name, ty]).ok_or("unknown reduction")?,
                to: self.register(to)?,
                value: self.register(value)?,
                mask: self.operand(mask)?,
            },
            (["shfl", "sync", mode, "b32"], [to, value, by, bounds, mask]) => {
                self.shuffle(mode, to, [value, by, bounds, mask])?
            }
            (["mma", "sync", "aligned", shape, "row", "col", d, "f16", "f16", c], args)
                if d == c =>
            {
                self.multiply(shape, d, args)?
            }
            (["ldmatrix", "sync", "aligned", "m8n8", count, rest @ ..], [to, address]) => {
                self.load_matrix(count, rest, to, address)?
            }
            (["ld" | "st" | "atom" | "red", ..], _) => self.memory(parts, args)?,
            (["mov", ty], [to, from]) => self.copy(ty, to, from)?,
            (_, [to, from @ ..]) => self.alu(parts, to, from)?,
            _ => return Err(format!("unsupported opcode `{}`", parts.join("."))),
        })
    }

    fn alu(&self, parts: &[&str], to: &str, from: &[&str]) -> Result<Op, String> {
        let unsupported = || format!("unsupported opcode `{}`", parts.join("."));
        let alu = Alu::parse(parts).ok_or_else(unsupported)?;
        let mut operands = [Operand::Bits(0); 3];
        for (slot, operand) in operands.iter_mut().zip(from) {
            *slot = self.operand(operand)?;
        }
        if from.len() > operands.len() {
            return Err("too many operands".to_owned());
        }
        Ok(Op::Alu { alu, to: self.register(to)?, from: operands, count: from.len() })
    }

    /// Parses `mov`: a copy, the address of a variable, a special register, or a conversion between
    /// a register and a vector of its parts.
    fn copy(&self, ty: &str, to: &str, from: &str) -> Result<Op, String> {
        if let Some(special) = Special::parse(from) {
            return Ok(Op::Special(self.register(to)?, special));
        }
        if to.starts_with('{') {
            return Ok(Op::Unpack(self.vector(to)?, self.register(from)?));
        }
        if from.starts_with('{') {
            return Ok(Op::Pack(self.register(to)?, self.vector(from)?));
        }
        if let Some((_, address)) = self.symbols.get(from) {
            let address = Operand::Bits(*address);
            let alu = Alu::parse(&["mov", ty]).ok_or("unknown type")?;
            let from = [address, address, address];
            return Ok(Op::Alu { alu, to: self.register(to)?, from, count: 1 });
        }
        self.alu(&["mov", ty], to, &[from])
    }

    fn shuffle(&self, mode: &str, to: &str, operands: [&str; 4]) -> Result<Op, String> {
        let (to, in_range) = match to.split_once('|') {
            Some((to, in_range)) => (to, Some(self.register(in_range)?)),
            None => (to, None),
        };
        let mode = match mode {
            "up" => Shuffle::Up,
            "down" => Shuffle::Down,
            "bfly" => Shuffle::Butterfly,
            "idx" => Shuffle::Index,
            _ => return Err("unknown mode".to_owned()),
        };
        let [value, by, bounds, mask] = operands;
        Ok(Op::Shuffle {
            mode,
            to: self.register(to)?,
            in_range,
            value: self.register(value)?,
            by: self.operand(by)?,
            bounds: self.operand(bounds)?,
            mask: self.operand(mask)?,
        })
    }

    fn load_matrix(
        &self,
        count: &str,
        rest: &[&str],
        to: &str,
        address: &str,
    ) -> Result<Op, String> {
        let transposed = match rest {
            ["shared", "b16"] => false,
            ["trans", "shared", "b16"] => true,
            _ => return Err("unsupported qualifiers".to_owned()),
        };
        let to = self.vector(to)?;
        if count != format!("x{}", to.len()) || !matches!(to.len(), 1 | 2 | 4) {
            return Err("the number of registers is not that of matrices".to_owned());
        }
        Ok(Op::LoadMatrix { transposed, to, address: self.address(Space::Shared, address)? })
    }

    fn multiply(&self, shape: &str, c_type: &str, args: &[&str]) -> Result<Op, String> {
        let ([d, a, b, c], "m16n8k8" | "m16n8k16", "f16" | "f32") = (args, shape, c_type) else {
            return Err("unknown shape".to_owned());
        };
        Ok(Op::Multiply {
            k_dim: if shape == "m16n8k8" { 8 } else { 16 },
            is_f16: c_type == "f16",
            d: self.vector(d)?,
            abc: [self.vector(a)?, self.vector(b)?, self.vector(c)?],
        })
    }

    /// Parses `ld`, `st`, `atom` and `red` with their qualifiers.
    fn memory(&self, parts: &[&str], args: &[&str]) -> Result<Op, String> {
        let unsupported = || format!("unsupported opcode `{}`", parts.join("."));
        let mut rest = &parts[1..];
        // Skips the next qualifier if it is one of these.
        let mut skip = |names: &[&str]| {
            let found = rest.first().is_some_and(|part| names.contains(part));
            rest = if found { &rest[1..] } else { rest };
            found
        };
        let relaxed = skip(&["relaxed"]);
        if relaxed && !skip(&["cta", "gpu"]) {
            return Err(unsupported());
        }
        skip(&["volatile"]);
        let [space, rest @ ..] = rest else { return Err(unsupported()) };
        let space = Space::parse(space).ok_or_else(unsupported)?;
        let constant = rest.first() == Some(&"nc");
        let rest = if constant { &rest[1..] } else { rest };
        let address = |text| self.address(space, text);
        Ok(match (parts[0], rest, args) {
            ("ld", [size @ .., ty], [to, from]) => {
                let (count, bytes) = width(size, ty).ok_or_else(unsupported)?;
                let to = if count == 1 { vec![self.register(to)?] } else { self.vector(to)? };
                check_count(count, to.len())?;
                Op::Load { space, constant, bytes, to, address: address(from)? }
            }
            ("st", [size @ .., ty], [to, from]) if !constant => {
                let (count, bytes) = width(size, ty).ok_or_else(unsupported)?;
                let values = if count == 1 { vec![*from] } else { braced_list(from)? };
                let values = values.iter().map(|value| self.operand(value));
                let values: Vec<Operand> = values.collect::<Result<_, _>>()?;
                check_count(count, values.len())?;
                Op::Store { space, bytes, values, address: address(to)? }
            }
            ("atom" | "red", [name, ty], _) if relaxed && !constant => {
                let fetches = parts[0] == "atom";
                let (to, args) = if fetches { (args.first(), &args[1..]) } else { (None, args) };
                let [at, operands @ ..] = args else { return Err(unsupported()) };
                let op = match *name {
                    "exch" if fetches && operands.len() == 1 => Atomic::Exchange,
                    "cas" if fetches && operands.len() == 2 => Atomic::CompareExchange,
                    _ if operands.len() == 1 => {
                        Atomic::Alu(Alu::parse(&[name, ty]).ok_or_else(unsupported)?)
                    }
                    _ => return Err(unsupported()),
                };
                let mut from = [Operand::Bits(0); 2];
                for (slot, operand) in from.iter_mut().zip(operands) {
                    *slot = self.operand(operand)?;
                }
                let bytes = Type::parse(ty).ok_or_else(unsupported)?.bits() / 8;
                let to = to.map(|to| self.register(to)).transpose()?;
                Op::Atomic { op, space, bytes, to, from, address: address(at)? }
            }
            _ => return Err(unsupported()),
        })
    }

    fn address(&self, space: Space, text: &str) -> Result<Address, String> {
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let text = text.ok_or("no address")?;
        let (base, offset) = text.split_once('+').unwrap_or((text, "0"));
        let offset = offset.parse().map_err(|_| "no offset")?;
        if base.starts_with('%') {
            return Ok(Address { base: Operand::Reg(self.register(base)?), offset });
        }
        let (of, address) = self.symbols.get(base).ok_or("no such variable")?;
        if *of != space {
            return Err("the variable is in another space".to_owned());
        }
        Ok(Address { base: Operand::Bits(*address), offset })
    }

    fn vector(&self, text: &str) -> Result<Vec<Reg>, String> {
        braced_list(text)?.into_iter().map(|register| self.register(register)).collect()
    }

    fn operand(&self, text: &str) -> Result<Operand, String> {
        if text.starts_with('%') {
            return self.register(text).map(Operand::Reg);
        }
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        let bits = match text.get(..2) {
            Some("0f" | "0d") => hexadecimal(&text[2..]),
            _ if text.starts_with('-') => text.parse::<i64>().ok().map(|number| number as u64),
            _ => text.parse().ok(),
        };
        bits.map(Operand::Bits).ok_or_else(|| format!("`{text}` is not an operand"))
    }

    fn register(&self, text: &str) -> Result<Reg, String> {
        let unknown = || format!("`{text}` is not a register");
        let (prefix, number) = text.split_at_checked(2).ok_or_else(unknown)?;
        let class = CLASSES
            .iter()
            .position(|(prefix_of_class, _)| *prefix_of_class == prefix)
            .ok_or_else(unknown)?;
        let (first, count) = self.first[class];
        let nth: usize = number.parse().map_err(|_| unknown())?;
        let nth = Some(nth).filter(|nth| *nth < count).ok_or_else(unknown)?;
        Ok(Reg(first + nth))
    }
}

/// Returns the number of values of an access, and the bytes of each.
fn width(size: &[&str], ty: &str) -> Option<(usize, u32)> {
    let count = match size {
        [] => 1,
        ["v2"] => 2,
        ["v4"] => 4,
        _ => return None,
    };
    let bits = Type::parse(ty)?.bits();
    (bits >= 8).then_some((count, bits / 8))
}

fn check_count(expected: usize, found: usize) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found} operands, not {expected}")) }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// Returns the items of a list in braces.
fn braced_list(text: &str) -> Result<Vec<&str>, String> {
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    Ok(text.ok_or("no vector")?.split(", ").collect())
}

/// Splits arguments at the commas outside braces.
fn arguments(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let at_comma = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(at_comma).map(str::trim).filter(|arg| !arg.is_empty()).collect()
}
