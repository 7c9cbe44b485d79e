//! Chooses few kernel variants for all numbers of rows of a GEMM.

use super::choice::{Choice, Problem};
use crate::kernels::gemm::Gemm;

/// The numbers of rows that a portfolio is chosen for are powers of the cube root of two, up to
/// 2^16. Above, the GEMM is bound by computation, and the same choice remains good.
const SAMPLES: i32 = 49;
/// Choices of a portfolio at most.
const MAX_CHOICES: usize = 3;
/// The ratio of the modelled cycles of a portfolio to those of the best choice, for the worst
/// number of rows, in thousandths, at which no choice is added.
const ACCEPTED_RATIO: u64 = 1300;

impl Problem {
    /// Returns few choices, of which one is good for each number of rows: those that minimise the
    /// largest ratio of modelled cycles to those of the best choice. They do not depend on the
    /// number of rows of the problem.
    pub(in crate::kernels::gemm) fn portfolio(&self) -> Vec<Choice> {
        let rows = (0..SAMPLES).map(|n| 2f64.powf(f64::from(n) / 3.0) as u64);
        let problems: Vec<Self> = rows.map(|m| self.with_rows(m)).collect();
        let mut candidates: Vec<Choice> = Vec::new();
        for problem in &problems {
            let best = problem.choose_single_kernel();
            if !candidates.contains(&best) {
                candidates.push(best);
            }
        }
        let best: Vec<u64> = problems.iter().map(|it| it.cycles(&it.choose())).collect();
        let ratio = |candidate: &Choice| -> Vec<u64> {
            let problems = problems.iter().zip(&best);
            problems.map(|(it, best)| it.cycles(candidate).saturating_mul(1000) / best).collect()
        };
        let ratios: Vec<Vec<u64>> = candidates.iter().map(ratio).collect();
        let chosen = best_subset(&ratios);
        chosen.into_iter().map(|n| candidates[n]).collect()
    }

    /// Returns the choice of a portfolio with the fewest modelled cycles; `None` if it is empty.
    pub(in crate::kernels::gemm) fn choose_among(&self, choices: &[Choice]) -> Option<Choice> {
        choices.iter().copied().min_by_key(|choice| self.cycles(choice))
    }

    /// Returns the modelled cycles of choices.
    #[cfg(test)]
    pub(in crate::kernels::gemm) fn cycles_of<const N: usize>(
        &self,
        choices: [Choice; N],
    ) -> [u64; N] {
        choices.map(|choice| self.cycles(&choice))
    }

    /// Returns the problem with another number of rows.
    fn with_rows(&self, m: u64) -> Self {
        Self { gemm: Gemm { m, ..self.gemm }, ..*self }
    }
}

/// Returns the candidates, by position, that together have the smallest worst ratio, as few as an
/// accepted one needs. `ratios` has a row per candidate.
fn best_subset(ratios: &[Vec<u64>]) -> Vec<usize> {
    let mut subsets: Vec<Vec<usize>> = vec![Vec::new()];
    let mut best = (u64::MAX, Vec::new());
    for _ in 0..MAX_CHOICES {
        let larger = |subset: &Vec<usize>| -> Vec<Vec<usize>> {
            let from = subset.last().map_or(0, |last| last + 1);
            (from..ratios.len()).map(|next| [&subset[..], &[next]].concat()).collect()
        };
        subsets = subsets.iter().flat_map(larger).collect();
        for subset in &subsets {
            let worst = worst_ratio(ratios, subset);
            if worst < best.0 {
                best = (worst, subset.clone());
            }
        }
        if best.0 <= ACCEPTED_RATIO {
            break;
        }
    }
    best.1
}

/// Returns the largest ratio over all samples, where each has the best candidate of a subset.
fn worst_ratio(ratios: &[Vec<u64>], subset: &[usize]) -> u64 {
    let samples = ratios.first().map_or(0, Vec::len);
    let of = |sample: usize| subset.iter().map(|n| ratios[*n][sample]).min().unwrap_or(u64::MAX);
    (0..samples).map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subset_is_as_small_as_accepted() {
        let ratios = [vec![1000, 5000, 1300], vec![2000, 1000, 1100], vec![1150, 1150, 1150]];
        assert_eq!(best_subset(&ratios), [2]);
        assert_eq!(best_subset(&ratios[..2]), [0, 1]);
        assert_eq!(worst_ratio(&ratios, &[0, 1]), 1100);
        assert_eq!(best_subset(&[]), [0; 0]);
    }
}
