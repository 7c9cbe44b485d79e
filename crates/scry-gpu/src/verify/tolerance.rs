//! Tolerances for floats of two devices.

/// Tolerance of a float: within `ulps`, or within `atol` and `rtol`, of the reference. The default
/// requires equality.
///
/// A number converts to a tolerance in ULPs.
///
/// ```
/// use scry_gpu::verify::Tolerance;
///
/// assert_eq!(Tolerance::from(4), Tolerance { ulps: 4, ..Tolerance::default() });
/// assert_eq!(Tolerance::close(1e-8, 1e-5).rtol, 1e-5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tolerance {
    /// Units in the last place (ULPs): the number of steps from one float to the next.
    pub ulps: u64,
    /// Absolute tolerance, as in NumPy: finite floats agree if `|found - expected| <= atol + rtol *
    /// |expected|`.
    pub atol: f64,
    /// Relative tolerance, see [`Tolerance::atol`].
    pub rtol: f64,
}

impl Tolerance {
    /// Creates a tolerance from an absolute and a relative one, as in NumPy.
    #[must_use]
    pub fn close(atol: f64, rtol: f64) -> Self {
        Self { ulps: 0, atol, rtol }
    }

    /// Returns whether values `ulps` ULPs apart agree. `difference` is their absolute difference
    /// and the magnitude of the reference, if both are finite floats.
    pub(super) fn allows(&self, ulps: u64, difference: Option<(f64, f64)>) -> bool {
        let is_close =
            |(absolute, expected): (f64, f64)| absolute <= self.atol + self.rtol * expected;
        ulps <= self.ulps || difference.is_some_and(is_close)
    }
}

impl From<u64> for Tolerance {
    fn from(ulps: u64) -> Self {
        Self { ulps, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_tolerance_is_enough() {
        let ulps = Tolerance::from(4);
        assert!(ulps.allows(4, Some((1.0, 1.0))) && !ulps.allows(5, Some((1e-9, 1.0))));
        let close = Tolerance::close(0.5, 0.25);
        assert!(close.allows(99, Some((1.5, 4.0))) && !close.allows(99, Some((1.6, 4.0))));
        assert!(close.allows(0, None) && !close.allows(1, None));
        let nothing = Tolerance::default();
        assert!(nothing.allows(0, None) && !nothing.allows(1, Some((f64::MIN_POSITIVE, 1.0))));
    }
}
