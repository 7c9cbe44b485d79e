//! Indices into arrays: random ones, and those that depend on the invocation index or a loop
//! counter, as most indices of real kernels do.

use super::Generator;
use crate::exact::Rule;
use crate::tree::{Access, Expr, IndexReduction, Literal, Place};
use crate::types::Type;

impl Generator {
    /// Returns an element of an array, vector or matrix of known length.
    pub(super) fn element(&mut self, len: usize, depth: usize) -> Access {
        let special = match self.random.below(5) {
            0 => self.index_below(len, depth).map(|index| (index, IndexReduction::None)),
            1 => self.invocation_index(len, depth).map(|index| (index, self.index_reduction())),
            _ => None,
        };
        let (index, reduction) =
            special.unwrap_or_else(|| (self.index(len, depth), self.index_reduction()));
        Access::Index(Box::new(index), len, reduction)
    }

    /// Returns an element of a runtime-sized array.
    pub(super) fn runtime_element(&mut self, depth: usize) -> Access {
        let in_entry_point = self.in_entry_point();
        if in_entry_point && self.input_for_each_invocation && self.random.one_in(4) {
            let own = Place::variable(self.random.pick(&["me", "back", "twin"]));
            return Access::Runtime(Box::new(Expr::read(Type::U32, own)), IndexReduction::None);
        }
        let special = if self.random.one_in(2) { self.invocation_index(16, depth) } else { None };
        let index = special.unwrap_or_else(|| self.index(32, depth));
        Access::Runtime(Box::new(index), self.index_reduction())
    }

    /// Returns whether the current function is the entry point.
    fn in_entry_point(&self) -> bool {
        self.scope.iter().any(|variable| variable.root == "me")
    }

    /// Returns the invocation's own element in an array with an element for each invocation of the
    /// workgroup.
    pub(super) fn own_slot(&mut self, lanes: usize) -> Access {
        let lane = Expr::read(Type::U32, Place::variable("lane"));
        let (index, reduction) = match self.random.below(5) {
            0 => (uint("($1 - $0)", vec![lane, Expr::uint(lanes - 1)]), IndexReduction::None),
            1 if lanes.is_multiple_of(2) => (uint("($0 ^ 1u)", vec![lane]), IndexReduction::None),
            2 => (lane, IndexReduction::Remainder),
            3 => (lane, IndexReduction::Min),
            _ => (lane, IndexReduction::None),
        };
        Access::Own(Box::new(index), lanes, reduction)
    }

    /// Returns a way to reduce an index to a length.
    fn index_reduction(&mut self) -> IndexReduction {
        self.random.pick(&[
            IndexReduction::Remainder,
            IndexReduction::Remainder,
            IndexReduction::Min,
        ])
    }

    /// Returns an invocation index or a loop counter, with its exclusive upper bound.
    fn counter(&mut self) -> Option<(Expr, usize)> {
        let counters: Vec<(String, usize)> = (self.scope.iter())
            .filter(|variable| variable.below < usize::MAX)
            .map(|variable| (variable.root.clone(), variable.below))
            .collect();
        if counters.is_empty() {
            return None;
        }
        let (root, below) = self.random.pick(&counters);
        Some((Expr::read(Type::U32, Place::variable(root)), below))
    }

    /// Returns an index computed from a counter that is below `len` by construction, if there is a
    /// counter in scope.
    fn index_below(&mut self, len: usize, depth: usize) -> Option<Expr> {
        let (counter, below) = self.counter()?;
        let last = Expr::uint(len - 1);
        if below > len || self.random.one_in(4) {
            return Some(match self.random.below(3) {
                0 => uint("min($0, $1)", vec![counter, last]),
                1 => {
                    let last = Expr::literal(Type::I32, Literal::Int(len as i128 - 1));
                    uint("u32(clamp(i32($0) - 1i, 0i, $1))", vec![counter, last])
                }
                _ => uint("($1 - min($0, $1))", vec![counter, last]),
            });
        }
        let room = Expr::uint(len - below);
        let condition = self.value(&Type::BOOL, depth.min(1));
        Some(match self.random.below(7) {
            0 => uint("($1 - $0)", vec![counter, Expr::uint(below - 1)]),
            1 => uint("($0 / 2u)", vec![counter]),
            2 => uint("($0 + $1)", vec![counter, room]),
            3 => uint("min($0 + 1u, $1)", vec![counter, last]),
            4 => uint("select($0, $1 - $0, $2)", vec![counter, last, condition]),
            5 if len.is_multiple_of(2) => uint("($0 ^ 1u)", vec![counter]),
            _ => counter,
        })
    }

    /// Returns an index that increases or decreases with the invocation or the iteration; it may
    /// wrap.
    fn invocation_index(&mut self, len: usize, depth: usize) -> Option<Expr> {
        let (mut index, _) = self.counter()?;
        if self.random.one_in(3) && self.in_entry_point() {
            index = Expr::read(Type::U32, Place::variable("me"));
        }
        for _ in 0..self.random.between(1, 3) {
            index = self.transform_index(index, len, depth);
        }
        Some(index)
    }

    /// Returns an operation on an index.
    fn transform_index(&mut self, index: Expr, len: usize, depth: usize) -> Expr {
        let last = Expr::uint(len - 1);
        let number = Expr::uint(self.random.below(2 * len));
        let (text, second) = match self.random.below(14) {
            0 => ("($1 - $0)", last),
            1 => ("($0 * 3u + $1)", number),
            2 => ("($0 ^ $1)", number),
            3 => ("($0 / 2u)", number),
            4 => ("u32(clamp(i32($0) - 1i, 0i, i32($1)))", last),
            5 => ("($0 + $1)", number),
            6 => ("min($0, $1)", number),
            7 => ("(max($0, $1) - $1)", number),
            8 => ("(~$0)", number),
            9 => ("($0 * 0x80000001u)", number),
            10 => ("($0 - $1)", number),
            11 => ("u32(abs(i32($0) - i32($1)))", number),
            12 => ("($0 & $1)", number),
            _ => {
                let condition = self.value(&Type::BOOL, depth.min(1));
                return uint("select($0, $1 - $0, $2)", vec![index, last, condition]);
            }
        };
        uint(text, vec![index, second])
    }
}

fn uint(text: &'static str, operands: Vec<Expr>) -> Expr {
    Expr::op(Type::U32, text, Rule::Largest, operands)
}
