//! Targets (GPU architectures) and PTX versions.

use std::fmt;
use std::str::FromStr;

/// A version of the PTX language. A driver supports all versions up to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major number.
    pub major: u8,
    /// Minor number.
    pub minor: u8,
}

impl Version {
    /// Creates version `major.minor`.
    #[must_use]
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A GPU architecture, such as `sm_80`. Code for it runs on all newer ones, too, except for `a`
/// architectures, whose code runs on that architecture only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Ten times the major number of the compute capability, plus the minor one.
    sm: u16,
    /// Whether architecture-specific instructions are allowed.
    specific: bool,
}

impl Target {
    /// Turing.
    pub const SM_75: Self = Self { sm: 75, specific: false };
    /// Ampere.
    pub const SM_80: Self = Self { sm: 80, specific: false };
    /// Ada.
    pub const SM_89: Self = Self { sm: 89, specific: false };
    /// Hopper.
    pub const SM_90: Self = Self { sm: 90, specific: false };
    /// Hopper, with architecture-specific instructions.
    pub const SM_90A: Self = Self { sm: 90, specific: true };

    /// Returns the newest target, without architecture-specific instructions, whose code runs on
    /// GPUs of a compute capability; `None` if the GPU is older than all targets.
    #[must_use]
    pub const fn for_capability(major: u16, minor: u16) -> Option<Self> {
        match major * 10 + minor {
            0..75 => None,
            75..80 => Some(Self::SM_75),
            80..89 => Some(Self::SM_80),
            89 => Some(Self::SM_89),
            _ => Some(Self::SM_90),
        }
    }

    /// Returns the architecture's number: ten times the major number of the compute capability,
    /// plus the minor one.
    #[must_use]
    pub const fn sm(self) -> u16 {
        self.sm
    }

    /// Returns whether code for this target may use the features that all architectures from `sm`
    /// on have.
    #[must_use]
    pub const fn has(self, sm: u16) -> bool {
        self.sm >= sm
    }

    /// Returns whether architecture-specific instructions are allowed.
    #[must_use]
    pub const fn is_specific(self) -> bool {
        self.specific
    }

    /// Returns whether code for `older` runs on every GPU that runs code for this target.
    #[must_use]
    pub const fn supports(self, older: Self) -> bool {
        if older.specific { self.specific && self.sm == older.sm } else { self.sm >= older.sm }
    }

    /// Returns the oldest PTX version that supports the target.
    #[must_use]
    pub const fn version(self) -> Version {
        match (self.sm, self.specific) {
            (75, _) => Version::new(6, 3),
            (80, _) => Version::new(7, 0),
            (90, true) => Version::new(8, 0),
            _ => Version::new(7, 8),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.sm, if self.specific { "a" } else { "" })
    }
}

impl FromStr for Target {
    type Err = String;

    /// Parses `80`, `sm_80`, `90a` or `sm_90a`.
    fn from_str(text: &str) -> Result<Self, String> {
        let targets = [Self::SM_75, Self::SM_80, Self::SM_89, Self::SM_90, Self::SM_90A];
        let name = text.strip_prefix("sm_").unwrap_or(text);
        let found = targets.into_iter().find(|target| target.to_string()[3..] == *name);
        found.ok_or_else(|| {
            let names = targets.map(|target| target.to_string()[3..].to_owned());
            format!("`{text}` is not a target; known are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_round_trip_through_text() {
        for name in ["sm_75", "sm_80", "sm_89", "sm_90", "sm_90a"] {
            assert_eq!(name.parse::<Target>().unwrap().to_string(), name);
            assert_eq!(name[3..].parse::<Target>().unwrap().to_string(), name);
        }
        let error = "sm_61".parse::<Target>().unwrap_err();
        assert_eq!(error, "`sm_61` is not a target; known are 75, 80, 89, 90, 90a");
    }

    #[test]
    fn newer_gpus_use_the_newest_target() {
        assert_eq!(Target::for_capability(12, 0), Some(Target::SM_90));
        assert_eq!(Target::for_capability(8, 6), Some(Target::SM_80));
        assert_eq!(Target::for_capability(7, 0), None);
    }
}
