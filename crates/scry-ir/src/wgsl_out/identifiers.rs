//! Names of declarations: those of the source, made valid and unique.

use std::collections::HashSet;

use super::reserved::is_reserved;

/// Names in use.
#[derive(Debug, Default)]
pub(super) struct Names {
    used: HashSet<String>,
}

impl Names {
    /// Returns a valid name that is not in use, as close to `wanted` as possible, and reserves it.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let valid = sanitise(wanted);
        let mut name = valid.clone();
        let mut number = 0;
        while is_reserved(&name) || self.used.contains(&name) {
            number += 1;
            name = if number == 1 { format!("{valid}_") } else { format!("{valid}_{number}") };
        }
        self.used.insert(name.clone());
        name
    }

    /// Returns a prefix of numbered names that collides with no name in use.
    pub(super) fn prefix(&self, wanted: &str) -> String {
        let mut prefix = wanted.to_owned();
        let collides = |prefix: &str, name: &String| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        while self.used.iter().any(|name| collides(&prefix, name)) {
            prefix.push('_');
        }
        prefix
    }
}

/// Replaces characters that WGSL might not accept in a name. Prepends a letter if the start is
/// invalid.
fn sanitise(name: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = name.chars().map(valid).collect();
    let invalid = name.is_empty()
        || name == "_"
        || name.starts_with("__")
        || name.starts_with(|c: char| c.is_ascii_digit());
    if invalid { format!("k{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_unique() {
        let mut names = Names::default();
        assert_eq!(names.unique("data"), "data");
        assert_eq!(names.unique("data"), "data_");
        assert_eq!(names.unique("data"), "data_2");
        assert_eq!(names.unique("target"), "target_", "reserved");
        assert_eq!(names.unique("min"), "min_", "it would shadow the function");
        assert_eq!(names.unique("größe 2"), "gr__e_2");
        assert_eq!(names.unique("__x"), "k__x");
        assert_eq!(names.unique("2d"), "k2d");
        assert_eq!(names.unique("_"), "k_");
        assert_eq!(names.unique(""), "k");
    }

    #[test]
    fn prefixes_collide_with_no_name() {
        let mut names = Names::default();
        names.unique("x1");
        names.unique("v");
        assert_eq!(names.prefix("x"), "x_");
        assert_eq!(names.prefix("v"), "v");
    }
}
