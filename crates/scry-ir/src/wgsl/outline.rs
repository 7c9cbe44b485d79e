//! The declarations of a source, independent of the entry point.

use crate::wgsl::naga::{guard, scan};
use crate::{Override, OverrideValue, ShaderError, pipeline};

/// The entry points and overrides of a source, to select from before creating a
/// [`Program`](crate::Program).
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// Names of the compute entry points, in source order.
    pub entry_points: Vec<String>,
    /// Every override, in source order, with its default if that is a literal.
    pub overrides: Vec<Override>,
    /// Names of the overrides that have no default: a program needs values for those that its
    /// entry point uses.
    pub without_default: Vec<String>,
}

/// Values for the overrides of a kernel that is analysed, not run.
#[derive(Debug, Clone, PartialEq)]
pub struct AssumedOverrides {
    /// The given values of declared overrides, and 1 for each in [`assumed`](Self::assumed).
    pub values: Vec<(String, OverrideValue)>,
    /// Names of the overrides with neither a default nor a given value, which are set to 1.
    pub assumed: Vec<String>,
}

impl Outline {
    /// Reads a source.
    ///
    /// # Errors
    /// A [`ShaderError`] with the position in the source, for errors that do not depend on the
    /// entry point or on overrides.
    pub fn read(source: &str) -> Result<Self, ShaderError> {
        let scanned = scan::scan(source).map_err(|report| report.render(source))?;
        guard::run_with_stack(scanned.stack, || {
            pipeline::outline(source, &scanned).map_err(|report| report.render(source))
        })
    }

    /// Returns values for [`Options::overrides`](crate::Options::overrides): those in `given` that
    /// the source declares, and 1 for every override with neither a default nor a given value. For
    /// tools that analyse kernels without running them.
    #[must_use]
    pub fn assume(&self, given: &[(String, OverrideValue)]) -> AssumedOverrides {
        let mut values = Vec::new();
        for (key, value) in given {
            if self.overrides.iter().any(|declared| declared.matches_key(key)) {
                values.push((key.clone(), *value));
            }
        }
        let mut assumed = Vec::new();
        for name in &self.without_default {
            let declared = self.overrides.iter().find(|declared| declared.name == *name);
            if !given.iter().any(|(key, _)| declared.is_some_and(|d| d.matches_key(key))) {
                values.push((name.clone(), 1.into()));
                assumed.push(name.clone());
            }
        }
        AssumedOverrides { values, assumed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        override width: u32;
        @id(7) override height: u32;
        override radius: u32 = 3u;
        override area: u32 = width * height;
        @compute @workgroup_size(width) fn first() {}
        @compute @workgroup_size(height, radius, area) fn second() {}
        @vertex fn other() -> @builtin(position) vec4f { return vec4f(); }";

    #[test]
    fn lists_declarations_in_source_order() {
        let outline = Outline::read(SOURCE).unwrap();
        assert_eq!(outline.entry_points, ["first", "second"]);
        let names: Vec<&str> = outline.overrides.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["width", "height", "radius", "area"]);
        assert_eq!(outline.overrides[2].value, Some(3.0));
        assert_eq!(outline.without_default, ["width", "height"]);
    }

    #[test]
    fn missing_overrides_default_to_one() {
        let outline = Outline::read(SOURCE).unwrap();
        let given = [("7".to_owned(), 5.into()), ("elsewhere".to_owned(), 2.into())];
        let AssumedOverrides { values, assumed } = outline.assume(&given);
        assert_eq!(values, [("7".to_owned(), 5.into()), ("width".to_owned(), 1.into())]);
        assert_eq!(assumed, ["width"]);
    }

    #[test]
    fn unparsable_source_is_rejected() {
        let error = Outline::read("fn f() { let x = ; }").unwrap_err();
        assert_eq!(error.location.map(|at| at.line), Some(1));
    }
}
