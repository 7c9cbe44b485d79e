//! An exhaustive test of the arithmetic of termination proofs: all counters of 3 and 4 bits,
//! against the execution of the loop.

use crate::kir::termination::counter::{Counter, Interval, Keep, Step};

/// The order of the two parts of each iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    TestThenStep,
    StepThenTest,
}

/// A loop of one step and one test; `by` is the operand of the step.
#[derive(Debug, Clone, Copy)]
struct Case {
    all: Interval,
    step: Step,
    by: i128,
    keep: Keep,
    bound: Interval,
}

impl Case {
    fn wrap(self, value: i128) -> i128 {
        self.all.min + (value - self.all.min).rem_euclid(self.all.max - self.all.min + 1)
    }

    fn next(self, counter: i128) -> i128 {
        self.wrap(match self.step {
            Step::Add(_) | Step::Stride => counter + self.by,
            Step::Multiply(_) => counter * self.by,
            Step::Divide => counter / self.by,
            Step::ShiftRight => counter >> self.by,
        })
    }

    /// Returns whether the loop continues with the least favourable value of the bound.
    fn continues(self, counter: i128) -> bool {
        match self.keep {
            Keep::Less => counter < self.bound.max,
            Keep::LessEqual => counter <= self.bound.max,
            Keep::Greater => counter > self.bound.min,
            Keep::GreaterEqual => counter >= self.bound.min,
            Keep::NotEqual => counter != self.bound.min,
        }
    }

    /// Executes the loop. Returns the iterations, with the one that exits; `None` if it never ends.
    fn execute(self, start: i128, order: Order) -> Option<u64> {
        let mut counter = start;
        // More iterations visit a value for the second time.
        let limit = (self.all.max - self.all.min + 2) as u64;
        for iteration in 1..=limit {
            let tested = self.next(counter);
            let tested = if order == Order::StepThenTest { tested } else { counter };
            if !self.continues(tested) {
                return Some(iteration);
            }
            counter = self.next(counter);
        }
        None
    }

    /// Checks the proof and the number of iterations against every execution, and returns whether
    /// the loop is proven to end.
    fn check(self) -> bool {
        let Self { all, step, keep, bound, .. } = self;
        let bits = u64::from((all.max - all.min + 1).ilog2());
        let mut proven = false;
        for start in (all.min..=all.max).map(Some).chain([None]) {
            let counter = Counter { all, step, start };
            if !counter.ends(keep, bound) {
                continue;
            }
            proven = true;
            let most = match step {
                // The bound is that of counters of 64 bits.
                Step::Multiply(_) | Step::Divide | Step::ShiftRight => Some(bits),
                Step::Add(_) | Step::Stride => counter.iterations(keep, bound),
            };
            // The last iteration need not be complete.
            let most = most.map(|most| most + 1);
            let starts = start.map_or(all.min..=all.max, |start| start..=start);
            for start in starts {
                for order in [Order::TestThenStep, Order::StepThenTest] {
                    let found = self.execute(start, order);
                    let ends = found.is_some_and(|found| most.is_none_or(|most| found <= most));
                    assert!(ends, "{self:?}\nfrom {start}, {order:?}: {found:?}, not {most:?}");
                }
            }
        }
        proven
    }
}

/// Returns every kind of step of a type, with its operands.
fn steps(all: Interval, bits: u32) -> Vec<(Step, i128)> {
    let is_signed = all.min < 0;
    let values = || all.min..=all.max;
    // `Add` of a constant, and `Sub` of one.
    let sums = values().flat_map(|by| [by, -by]).filter(|by| *by != 0);
    let mut steps: Vec<_> = sums.map(|by| (Step::Add(by), by)).collect();
    if !is_signed {
        steps.extend(values().filter(|by| *by != 0).map(|by| (Step::Stride, by)));
    }
    let factors = values().filter(|by| *by >= 2);
    let factors = factors.chain((1..bits).map(|by| 1 << by));
    steps.extend(factors.map(|by| (Step::Multiply(by), by)));
    steps.extend(values().filter(|by| *by >= 2).map(|by| (Step::Divide, by)));
    steps.extend((1..bits).map(|by| (Step::ShiftRight, i128::from(by))));
    steps
}

#[test]
fn proofs_hold_for_all_small_counters() {
    let keeps = [Keep::Less, Keep::LessEqual, Keep::Greater, Keep::GreaterEqual, Keep::NotEqual];
    let mut proven = 0;
    for (bits, is_signed) in [(3, false), (3, true), (4, false), (4, true)] {
        let min = if is_signed { -(1 << (bits - 1)) } else { 0 };
        let all = Interval { min, max: min + (1 << bits) - 1 };
        for (step, by) in steps(all, bits) {
            for keep in keeps {
                for low in all.min..=all.max {
                    // A bound that `!=` compares with is fixed.
                    let highest = if keep == Keep::NotEqual { low } else { all.max };
                    for high in low..=highest {
                        let bound = Interval { min: low, max: high };
                        proven += u32::from(Case { all, step, by, keep, bound }.check());
                    }
                }
            }
        }
    }
    assert!(proven > 10_000, "only {proven} loops are proven to end");
}
