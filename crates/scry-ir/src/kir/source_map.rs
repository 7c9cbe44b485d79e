//! Source locations of values, loops and scopes.
//!
//! They are stored in separate tables, so that passes which create no values can ignore them.

use std::collections::BTreeMap;
use std::fmt;

use super::types::{Label, Value};
use crate::Location;

/// A source location for messages: `kernel.wgsl:5:13`, or `line 5, column 13` if the source has no
/// name.
pub(super) struct InSource<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) at: Location,
}

impl fmt::Display for InSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location { line, column } = self.at;
        match self.name {
            Some(name) => write!(f, "{name}:{line}:{column}"),
            None => write!(f, "line {line}, column {column}"),
        }
    }
}

/// Marks an unknown location: lines are counted from 1.
const UNKNOWN: Location = Location { line: 0, column: 0 };

/// The source locations of a kernel's values, loops and scopes. Inlined code has its location in
/// the function that it comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// Name of the source, such as its file, if known.
    pub name: Option<String>,
    /// Whether code generated from the kernel refers to lines of the source, for debuggers,
    /// profilers and compiler explorers: PTX by `.loc`, SPIR-V by `OpLine`, WGSL by comments.
    pub line_info: bool,
    pub(super) values: Vec<Location>,
    pub(super) labels: BTreeMap<Label, Location>,
}

impl SourceMap {
    /// Returns the location of a value, if known.
    #[must_use]
    pub fn value(&self, value: Value) -> Option<Location> {
        self.values.get(value.index()).copied().filter(|at| *at != UNKNOWN)
    }

    /// Sets the location of a value.
    ///
    /// ```
    /// use scry_ir::Location;
    /// use scry_ir::kir::Builder;
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let seven = b.u32(7);
    /// let mut kir = b.finish();
    /// kir.source.set_value(seven, Location { line: 3, column: 9 });
    /// assert_eq!(kir.source.value(seven).map(|at| at.line), Some(3));
    /// assert!(kir.with_positions().to_string().contains("%0: u32 = 7 @3:9"));
    /// ```
    pub fn set_value(&mut self, value: Value, at: Location) {
        match self.values.get_mut(value.index()) {
            Some(old) => *old = at,
            None => {
                self.values.resize(value.index(), UNKNOWN);
                self.values.push(at);
            }
        }
    }

    /// Returns a location in parentheses after a space, for messages; empty if it is unknown.
    pub(super) fn parenthesised(&self, at: Option<Location>) -> String {
        let name = self.name.as_deref();
        at.map(|at| format!(" ({})", InSource { name, at })).unwrap_or_default()
    }

    /// Returns the location of a loop or scope, if known.
    #[must_use]
    pub fn label(&self, label: Label) -> Option<Location> {
        self.labels.get(&label).copied()
    }

    /// Sets the location of a loop or scope.
    pub fn set_label(&mut self, label: Label, at: Location) {
        self.labels.insert(label, at);
    }

    /// Copies the location of a replaced value to the new one.
    pub(crate) fn inherit(&mut self, new: Value, replaced: Value) {
        if let Some(at) = self.value(replaced) {
            self.set_value(new, at);
        }
    }

    /// Returns the map for renumbered values. `origins` yields, for each new value, the value that
    /// it comes from.
    pub(crate) fn renumbered(&self, origins: impl Iterator<Item = Option<Value>>) -> Self {
        let mut values = Vec::new();
        if !self.values.is_empty() {
            values
                .extend(origins.map(|old| old.and_then(|old| self.value(old)).unwrap_or(UNKNOWN)));
        }
        Self { values, name: self.name.clone(), labels: self.labels.clone(), ..*self }
    }

    /// Returns the map for renumbered labels. `labels` has the new label of each old one, or
    /// [`Label::KERNEL`] for a label that no longer exists.
    pub(crate) fn relabelled(mut self, labels: &[Label]) -> Self {
        let old = std::mem::take(&mut self.labels);
        for (old, at) in old {
            if let Some(label) = labels.get(old.0 as usize).filter(|new| **new != Label::KERNEL) {
                self.set_label(*label, at);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::kir::KirOptions;
    use crate::{Program, SpirvOptions, spirv_text};

    const SOURCE: &str = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() {
    x[0] *= 2.0;
}";

    #[test]
    fn line_info_is_only_written_on_request() {
        let program = Program::parse(SOURCE).unwrap();
        let mut kir = program.to_kir(&KirOptions { checked: true }).unwrap();
        let options = SpirvOptions::portable(true);
        for line_info in [false, true] {
            kir.source.line_info = line_info;
            let spirv = spirv_text(&kir.to_spirv(program.interface(), &options).unwrap());
            assert_eq!(spirv.contains("\nLine ") && spirv.contains("String \"wgsl\""), line_info);
            let wgsl = kir.to_wgsl(program.interface()).unwrap();
            assert_eq!(wgsl.contains("// line 3"), line_info, "{wgsl}");
            Program::parse(&wgsl).unwrap();
        }
    }
}
