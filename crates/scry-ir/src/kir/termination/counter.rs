//! The arithmetic of termination proofs: whether a counter (induction variable) reaches its bound,
//! and after how many iterations.

/// Maximum number of iterations of a loop whose counter, of up to 64 bits, is multiplied, divided
/// or shifted: each iteration changes it by at least a factor of 2.
const MAX_BITS: u64 = 64;

/// A closed interval of integers, of up to 64 bits. That of `passes::range` does not hold all of
/// `u64`, and may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) min: i128,
    pub(crate) max: i128,
}

impl Interval {
    /// Returns the interval of one value.
    pub(crate) fn exactly(value: i128) -> Self {
        Self { min: value, max: value }
    }

    /// Returns the interval of all values of an integer type of `width` bytes.
    pub(crate) fn of_integer(signed: bool, width: u8) -> Self {
        let bits = u32::from(width) * 8;
        if signed {
            Self { min: -(1 << (bits - 1)), max: (1 << (bits - 1)) - 1 }
        } else {
            Self { min: 0, max: (1 << bits) - 1 }
        }
    }

    /// Returns the intersection; `self` if it is empty.
    pub(crate) fn within(self, other: Self) -> Self {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        if both.min <= both.max { both } else { self }
    }
}

/// The change of a counter in one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Adds a constant other than zero, wrapping.
    Add(i128),
    /// Adds an unknown unsigned value, the same in each iteration and not zero, wrapping.
    Stride,
    /// Multiplies by a constant of at least 2, wrapping.
    Multiply(i128),
    /// Divides by a constant of at least 2, towards zero.
    Divide,
    /// Shifts right by a constant from 1 to the width - 1; arithmetically if signed.
    ShiftRight,
}

/// The comparison of counter and bound that must hold for another iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    NotEqual,
}

impl Keep {
    /// Returns the comparison with exchanged operands.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::NotEqual => Self::NotEqual,
        }
    }
}

/// A variable that counts the iterations of a loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    /// All values of its type.
    pub(crate) all: Interval,
    /// Its change in each iteration.
    pub(crate) step: Step,
    /// Its value at loop entry, if known.
    pub(crate) start: Option<i128>,
}

impl Counter {
    /// Returns whether a loop that continues only while `counter keep bound` is proven to end.
    ///
    /// `bound` contains all values that the bound has during the loop; it may change between
    /// iterations. The counter either moves in one direction without wrapping while the loop
    /// continues, or reaches a value at which the comparison fails.
    pub(crate) fn ends(self, keep: Keep, bound: Interval) -> bool {
        match self.step {
            Step::Add(step) if step > 0 => self.rises(keep, bound, |last| last.checked_add(step)),
            Step::Add(step) => self.falls(keep, bound, step),
            // If the bound is at most half of all values, a step of less than half exceeds it
            // before it wraps; a larger one is a step down, which wraps to the upper half.
            Step::Stride => {
                let half = self.all.max / 2 + 1;
                match keep {
                    Keep::Less => bound.max <= half,
                    Keep::LessEqual => bound.max < half,
                    _ => false,
                }
            }
            Step::Multiply(factor) => {
                // The first step may precede the first comparison. Zero stays zero.
                let first = self.start.filter(|start| *start >= 1);
                let first = first.and_then(|start| start.checked_mul(factor));
                first.is_some_and(|first| first <= self.all.max)
                    && self.rises(keep, bound, |last| last.checked_mul(factor))
            }
            Step::Divide => self.shrinks(keep, bound, Interval::exactly(0)),
            Step::ShiftRight => {
                let low = self.all.min.max(-1);
                self.shrinks(keep, bound, Interval { min: low, max: 0 })
            }
        }
    }

    /// As [`ends`](Self::ends), for a counter that increases. The largest value for which the loop
    /// continues must not wrap in the next step. `next` is `None` if a product exceeds 128 bits,
    /// and so wraps too.
    fn rises(self, keep: Keep, bound: Interval, next: impl Fn(i128) -> Option<i128>) -> bool {
        let fits = |last| next(last).is_some_and(|next| next <= self.all.max);
        match keep {
            Keep::Less => bound.max - 1 < self.all.min || fits(bound.max - 1),
            Keep::LessEqual => fits(bound.max),
            // With steps of 1 the counter takes every value of its type, the bound too.
            Keep::NotEqual => self.step == Step::Add(1) && bound.min == bound.max,
            Keep::Greater | Keep::GreaterEqual => false,
        }
    }

    /// As [`ends`](Self::ends), for a counter that decreases by a constant.
    fn falls(self, keep: Keep, bound: Interval, step: i128) -> bool {
        match keep {
            Keep::Greater => bound.min + 1 > self.all.max || bound.min + 1 + step >= self.all.min,
            Keep::GreaterEqual => bound.min + step >= self.all.min,
            Keep::NotEqual => step == -1 && bound.min == bound.max,
            Keep::Less | Keep::LessEqual => false,
        }
    }

    /// As [`ends`](Self::ends), for a counter that converges to a value in `limit`. The comparison
    /// must fail for each of them.
    fn shrinks(self, keep: Keep, bound: Interval, limit: Interval) -> bool {
        match keep {
            Keep::Greater => limit.max <= bound.min,
            Keep::GreaterEqual => limit.max < bound.min,
            Keep::NotEqual => limit == Interval::exactly(0) && bound == Interval::exactly(0),
            Keep::Less | Keep::LessEqual => false,
        }
    }

    /// Returns an upper bound of the iterations (trip count) of a loop that [`Counter::ends`] by
    /// this comparison; `None` if none is known.
    pub(crate) fn iterations(self, keep: Keep, bound: Interval) -> Option<u64> {
        // The first step may precede the first comparison, and wrap.
        let wraps = |start: i128| match self.step {
            Step::Add(step) => !(self.all.min..=self.all.max).contains(&(start + step)),
            _ => false,
        };
        let start = self.start.filter(|start| !wraps(*start));
        let (min, max) = (start.unwrap_or(self.all.min), start.unwrap_or(self.all.max));
        let (distance, step) = match (self.step, keep) {
            (Step::Add(step), Keep::Less) => (bound.max - min, step),
            (Step::Add(step), Keep::LessEqual) => (bound.max - min + 1, step),
            (Step::Add(step), Keep::Greater) => (max - bound.min, -step),
            (Step::Add(step), Keep::GreaterEqual) => (max - bound.min + 1, -step),
            (Step::Add(step), Keep::NotEqual) => {
                let start = start.filter(|_| bound.min == bound.max)?;
                // At the bound already, or moving away from it, the counter would take every other
                // value first.
                (Some((bound.min - start) * step.signum()).filter(|distance| *distance > 0)?, 1)
            }
            (Step::Stride, _) => (bound.max + 1, 1),
            (Step::Multiply(_) | Step::Divide | Step::ShiftRight, _) => {
                return Some(MAX_BITS);
            }
        };
        let distance = u64::try_from(distance.max(0)).ok()?;
        Some(distance.div_ceil(u64::try_from(step).ok().filter(|step| *step > 0)?))
    }
}
