//! Which variant of an operation was chosen, and why.

use std::fmt;

use crate::call::Call;
use crate::operation::Candidate;

/// The variant that computes an operation, and why it was chosen. Its `Display` form is for humans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    operation: String,
    variant: &'static str,
    reason: String,
    others: Vec<(&'static str, String)>,
}

impl Explanation {
    pub(crate) fn new(
        call: &Call,
        chosen: usize,
        reason: String,
        candidates: &[Candidate],
    ) -> Self {
        let others = candidates.iter().enumerate().filter(|(position, _)| *position != chosen);
        let others = others.map(|(_, candidate)| {
            let why = candidate.obstacle.clone().unwrap_or_else(|| "could be used".to_owned());
            (candidate.info.name, why)
        });
        Self {
            operation: call.description(),
            variant: candidates[chosen].info.name,
            reason,
            others: others.collect(),
        }
    }

    /// Returns the name of the chosen variant.
    #[must_use]
    pub fn variant(&self) -> &'static str {
        self.variant
    }

    /// Returns why it was chosen.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the other variants, each with the reason why it cannot be used, or `could be used`.
    #[must_use]
    pub fn others(&self) -> &[(&'static str, String)] {
        &self.others
    }
}

impl fmt::Display for Explanation {
    /// Writes the choice on one line, and each other variant on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: variant `{}`, because {}", self.operation, self.variant, self.reason)?;
        self.others.iter().try_for_each(|(name, why)| write!(f, "\n  `{name}`: {why}"))
    }
}
