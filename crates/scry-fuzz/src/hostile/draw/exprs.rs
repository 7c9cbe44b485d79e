//! Expressions: numbers near the ends of arrays and of types, and arithmetic that wraps.

use super::{HostileGenerator, Mode};
use crate::hostile::tree::{Expr, Kind, Space};

/// The buffers of hostile numbers.
const DATA: &[(&str, Kind)] = &[("data", Kind::U32), ("signed", Kind::I32)];

impl HostileGenerator {
    /// Returns an expression that is not a constant: WGSL rejects constants that overflow.
    fn non_constant(&mut self, kind: Kind, text: &'static str, mut operands: Vec<Expr>) -> Expr {
        if operands.iter().all(|operand| operand.constant) {
            operands[0] = self.variable(operands[0].kind);
        }
        Expr::new(kind, text, operands)
    }

    /// Returns a variable of the type, preferably a recent one.
    pub(super) fn variable(&mut self, kind: Kind) -> Expr {
        let candidates: Vec<usize> =
            (0..self.scope.len()).filter(|i| self.scope[*i].kind == kind).collect();
        if candidates.is_empty() {
            return Expr::leaf(kind, if kind == Kind::I32 { "memory" } else { "state" });
        }
        // The latest variables are mostly those of the enclosing loops.
        let latest = candidates.len() - 1 - self.random.below(candidates.len().min(4));
        let index =
            if self.random.one_in(3) { self.random.below(candidates.len()) } else { latest };
        Expr::leaf(kind, self.scope[candidates[index]].name.clone())
    }

    /// Returns a u32 or an i32.
    pub(super) fn number(&mut self, kind: Kind, depth: usize) -> Expr {
        if kind == Kind::I32 { self.int(depth) } else { self.uint(depth) }
    }

    pub(super) fn uint(&mut self, depth: usize) -> Expr {
        if depth == 0 {
            return match self.random.below(4) {
                0 => Expr::uint(self.small()),
                1 if self.random.one_in(2) => Expr::uint(self.hostile_u32()),
                _ => self.variable(Kind::U32),
            };
        }
        match self.random.below(12) {
            0 | 1 => self.variable(Kind::U32),
            2 => self.datum(Kind::U32, depth - 1),
            3 => self.length(),
            4 => {
                let value = self.int(depth - 1);
                let text = self.random.pick(&["u32($0)", "bitcast<u32>($0)", "u32(abs($0))"]);
                self.non_constant(Kind::U32, text, vec![value])
            }
            5 => self.load_as_u32(depth - 1),
            6 => self.special_uint(depth - 1),
            7 => Expr::uint(self.small()),
            _ => self.arithmetic(Kind::U32, depth - 1),
        }
    }

    pub(super) fn int(&mut self, depth: usize) -> Expr {
        if depth == 0 {
            return match self.random.below(4) {
                0 => Expr::int(self.small().cast_signed()),
                1 if self.random.one_in(2) => Expr::int(self.hostile_u32().cast_signed()),
                _ => self.variable(Kind::I32),
            };
        }
        match self.random.below(8) {
            0 | 1 => self.variable(Kind::I32),
            2 => self.datum(Kind::I32, depth - 1),
            3 => {
                let value = self.uint(depth - 1);
                let text = self.random.pick(&["i32($0)", "bitcast<i32>($0)", "(- i32($0))"]);
                self.non_constant(Kind::I32, text, vec![value])
            }
            4 => {
                let value = self.int(depth - 1);
                let text = self.random.pick(&["(- $0)", "abs($0)", "sign($0)", "(~$0)"]);
                self.non_constant(Kind::I32, text, vec![value])
            }
            _ => self.arithmetic(Kind::I32, depth - 1),
        }
    }

    fn arithmetic(&mut self, kind: Kind, depth: usize) -> Expr {
        let a = self.number(kind, depth);
        let b = self.number(kind, depth.min(1));
        let literal = |value: u32| match kind {
            Kind::I32 => Expr::int(value.cast_signed()),
            _ => Expr::uint(value),
        };
        let small = literal(self.random.between(1, 4) as u32);
        let length = literal(self.small().max(1));
        let stride = literal(self.random.pick(&STRIDES));
        let (text, operands) = match self.random.below(20) {
            0..=2 => ("($0 + $1)", vec![a, small]),
            3..=4 => ("($0 - $1)", vec![a, small]),
            5 => ("($0 + $1)", vec![a, b]),
            6 => ("($0 - $1)", vec![a, b]),
            7 => ("($0 * $1)", vec![a, stride]),
            8 => ("($0 * $1)", vec![a, small]),
            9 => ("($1 - $0)", vec![a, length]),
            10 => ("($0 % $1)", vec![a, length]),
            11 => ("($0 / $1)", vec![a, small]),
            12 => ("min($0, $1)", vec![a, length]),
            13 => ("max($0, $1)", vec![a, b]),
            14 => ("min($0, $1)", vec![a, b]),
            15 => ("($0 & $1)", vec![a, length]),
            16 => ("($0 ^ $1)", vec![a, length]),
            17 => ("($0 | $1)", vec![a, small]),
            18 => return self.shift(kind, a),
            _ => return self.select_or_clamp(kind, a, b, depth),
        };
        self.non_constant(kind, text, operands)
    }

    fn shift(&mut self, kind: Kind, value: Expr) -> Expr {
        let wild = self.mode != Mode::InBounds && self.random.one_in(3);
        let by = match wild {
            true => self.variable(Kind::U32),
            false => Expr::uint(self.random.below(32) as u32),
        };
        let text = self.random.pick(&["($0 >> $1)", "($0 << $1)"]);
        self.non_constant(kind, text, vec![value, by])
    }

    fn select_or_clamp(&mut self, kind: Kind, a: Expr, b: Expr, depth: usize) -> Expr {
        match self.random.below(3) {
            0 => {
                let condition = self.condition(depth.min(1));
                Expr::new(kind, "select($0, $1, $2)", vec![a, b, condition])
            }
            1 => {
                let (low, high) = (self.variable(kind), self.variable(kind));
                Expr::new(kind, "clamp($0, $1, $2)", vec![a, low, high])
            }
            _ => {
                let (low, high) = match kind {
                    Kind::I32 => (Expr::int(0), Expr::int(self.small().cast_signed())),
                    _ => (Expr::uint(0), Expr::uint(self.small())),
                };
                self.non_constant(kind, "clamp($0, $1, $2)", vec![a, low, high])
            }
        }
    }

    /// Returns an element of a buffer of hostile numbers.
    pub(super) fn datum(&mut self, kind: Kind, depth: usize) -> Expr {
        let (name, kind) = if kind == Kind::I32 { DATA[1] } else { DATA[0] };
        let index = self.uint(depth.min(1));
        // naga rejects the largest constants.
        let index = if index.constant { self.variable(Kind::U32) } else { index };
        let text = match self.mode {
            Mode::InBounds => format!("{name}[($0) % arrayLength(&{name})]"),
            _ => format!("{name}[$0]"),
        };
        Expr::new(kind, text, vec![index])
    }

    /// Returns the length of an array, or a number near it.
    pub(super) fn length(&mut self) -> Expr {
        let runtime: Vec<String> = self.globals.iter().filter_map(Self::length_of).collect();
        let text = self.random.pick(&runtime);
        let length = Expr::leaf(Kind::U32, text);
        let by = Expr::uint(self.random.between(1, 3) as u32);
        match self.random.below(6) {
            0 | 1 => Expr::new(Kind::U32, "($0 - $1)", vec![length, by]),
            2 => Expr::new(Kind::U32, "($0 + $1)", vec![length, by]),
            _ => length,
        }
    }

    /// Returns a number from a float, a bit operation, a vector or a call.
    fn special_uint(&mut self, depth: usize) -> Expr {
        if self.random.one_in(2) {
            let argument = self.uint(depth.min(1));
            let text = self.random.pick(&["next()", "taken($0)", "fetched($0)"]);
            return Expr::new(Kind::U32, text, vec![argument]);
        }
        let value = self.uint(depth.min(1));
        if self.mode == Mode::InBounds || self.random.one_in(2) {
            let text = self.random.pick(&[
                "countOneBits($0)",
                "firstLeadingBit($0)",
                "countLeadingZeros($0)",
                "reverseBits($0)",
                "extractBits($0, 3u, 5u)",
                "dot(vec2<u32>($0, state), vec2<u32>(1u, 2u))",
            ]);
            return self.non_constant(Kind::U32, text, vec![value]);
        }
        let text = self.random.pick(&[
            "u32(floats[$0])",
            "u32(i32(floats[$0]))",
            "u32(floats[$0] * 4.0)",
            "vec4<u32>($0, state, 3u, 4u)[$0]",
            "vec3<u32>(state, $0, 7u)[state]",
            "u32(floats[$0] >= 3.0)",
        ]);
        self.non_constant(Kind::U32, text, vec![value])
    }

    /// Returns a comparison, or several that are combined.
    pub(super) fn condition(&mut self, depth: usize) -> Expr {
        if depth > 0 && self.random.one_in(3) {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            let text = self.random.pick(&["($0 && $1)", "($0 || $1)", "!($0)", "(!$0 || $1)"]);
            return Expr::new(Kind::Bool, text, vec![a, b]);
        }
        let kind = self.random.pick(&[Kind::U32, Kind::U32, Kind::I32]);
        let a = self.variable(kind);
        let b = match self.random.below(4) {
            0 => self.number(kind, depth),
            1 if kind == Kind::U32 => self.length(),
            _ if kind == Kind::I32 => Expr::int(self.small().cast_signed()),
            _ => Expr::uint(self.small()),
        };
        let text = self.random.pick(&[
            "($0 < $1)",
            "($0 <= $1)",
            "($0 < $1)",
            "($0 > $1)",
            "($0 >= $1)",
            "($0 == $1)",
            "($0 != $1)",
            "($1 > $0)",
            "!($0 >= $1)",
        ]);
        Expr::new(Kind::Bool, text, vec![a, b])
    }

    /// Returns the text for the length of a runtime-sized array.
    pub(super) fn length_of(global: &super::Global) -> Option<String> {
        use crate::hostile::tree::Extent;
        match global.extent {
            Extent::One => None,
            Extent::Runtime(_) => Some(format!("arrayLength(&{})", global.name)),
            Extent::RuntimeMember(_) => Some(format!("arrayLength(&{}.rest)", global.name)),
        }
    }

    /// Returns the atomics that may be used here.
    pub(super) fn atomics(&self) -> Vec<usize> {
        let usable = |global: &super::Global| global.atomic && global.space != Space::Input;
        (0..self.globals.len()).filter(|i| usable(&self.globals[*i])).collect()
    }
}

/// Strides with which indices or byte offsets wrap.
const STRIDES: [u32; 10] = [
    1 << 16,
    (1 << 16) + 1,
    1 << 28,
    1 << 29,
    1 << 30,
    (1 << 30) + 1,
    0x4000_0001,
    0x5555_5556,
    1 << 31,
    u32::MAX,
];
