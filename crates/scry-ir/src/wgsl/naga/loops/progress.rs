//! The arithmetic behind loop proofs: does a counter that moves in equal steps reach its bound?

/// A closed interval of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub min: i128,
    pub max: i128,
}

impl Range {
    /// The interval that holds one value.
    pub(super) fn exactly(value: i128) -> Self {
        Self { min: value, max: value }
    }

    /// Every value of an integer type.
    pub(super) fn of_integer(signed: bool, width: u8) -> Self {
        let bits = u32::from(width) * 8;
        if signed {
            Self { min: -(1 << (bits - 1)), max: (1 << (bits - 1)) - 1 }
        } else {
            Self { min: 0, max: (1 << bits) - 1 }
        }
    }

    /// The values in both intervals; `self` if there are none.
    pub(super) fn within(self, other: Self) -> Self {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        if both.min <= both.max { both } else { self }
    }

    /// True if every value of `self` is a value of `other`.
    pub(super) fn fits(self, other: Self) -> bool {
        other.min <= self.min && self.max <= other.max
    }
}

/// How one turn changes the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Adds a constant other than zero, wrapping.
    Add(i128),
    /// Adds an unsigned value, unknown but not zero and always the same, wrapping.
    Stride,
    /// Multiplies by a constant of at least 2, wrapping.
    Multiply(i128),
    /// Divides by a constant of at least 2, towards zero.
    Divide,
    /// Shifts right by a constant number of places from 1 to the width less one; signed counters
    /// keep their sign.
    ShiftRight,
}

/// What must hold of counter and bound for another turn: `counter KEEP bound`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    NotEqual,
}

impl Keep {
    /// The same condition with its sides exchanged.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::NotEqual => Self::NotEqual,
        }
    }
}

/// A counter of a loop, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counter {
    /// Every value of its type.
    pub all: Range,
    /// How it moves.
    pub step: Step,
    /// Its value when the loop is entered, if known.
    pub start: Option<i128>,
}

impl Counter {
    /// True if a loop that goes on only while `counter keep bound` surely ends.
    ///
    /// `bound` holds every value that the bound takes on during the loop; it may change from turn
    /// to turn. The argument is the same each time: as long as the loop goes on, the counter moves
    /// strictly towards one end without wrapping, or falls to a value at which it cannot go on.
    pub(super) fn ends(self, keep: Keep, bound: Range) -> bool {
        match self.step {
            Step::Add(step) if step > 0 => self.rises(keep, bound, |last| last.checked_add(step)),
            Step::Add(step) => self.falls(keep, bound, step),
            // Below half of all values a step either rises past the bound without wrapping, or is
            // as good as a step down, which wraps to the upper half.
            Step::Stride => {
                let half = self.all.max / 2 + 1;
                match keep {
                    Keep::Less => bound.max <= half,
                    Keep::LessEqual => bound.max < half,
                    _ => false,
                }
            }
            Step::Multiply(factor) => {
                self.start.is_some_and(|start| start >= 1)
                    && self.rises(keep, bound, |last| last.checked_mul(factor))
            }
            Step::Divide => self.shrinks(keep, bound, Range::exactly(0)),
            Step::ShiftRight => {
                let low = self.all.min.max(-1);
                self.shrinks(keep, bound, Range { min: low, max: 0 })
            }
        }
    }

    /// A counter that grows: the greatest value that passes the test must not wrap when it moves.
    /// The product of two 64-bit numbers can exceed even the integers that are computed with here,
    /// so that `next` may have no result: then it wraps in the counter's type too.
    fn rises(self, keep: Keep, bound: Range, next: impl Fn(i128) -> Option<i128>) -> bool {
        let fits = |last| next(last).is_some_and(|next| next <= self.all.max);
        match keep {
            Keep::Less => bound.max - 1 < self.all.min || fits(bound.max - 1),
            Keep::LessEqual => fits(bound.max),
            // With unit steps the counter comes by every value of its type.
            Keep::NotEqual => self.step == Step::Add(1) && bound.min == bound.max,
            Keep::Greater | Keep::GreaterEqual => false,
        }
    }

    /// A counter that falls by a constant.
    fn falls(self, keep: Keep, bound: Range, step: i128) -> bool {
        match keep {
            Keep::Greater => bound.min + 1 > self.all.max || bound.min + 1 + step >= self.all.min,
            Keep::GreaterEqual => bound.min + step >= self.all.min,
            Keep::NotEqual => step == -1 && bound.min == bound.max,
            Keep::Less | Keep::LessEqual => false,
        }
    }

    /// A counter that shrinks until it stays at one of the values of `limit`: the test must fail
    /// for each of them.
    fn shrinks(self, keep: Keep, bound: Range, limit: Range) -> bool {
        match keep {
            Keep::Greater => limit.max <= bound.min,
            Keep::GreaterEqual => limit.max < bound.min,
            Keep::NotEqual => limit == Range::exactly(0) && bound == Range::exactly(0),
            Keep::Less | Keep::LessEqual => false,
        }
    }
}
