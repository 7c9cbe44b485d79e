//! Graphs that are compiled again and again: a warning that names the sizes that differ.

use std::collections::{BTreeMap, HashMap};
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use super::dim::{Dim, Size};
use crate::error::Call;

/// The compilation from one line of the program that warns.
const WARNED: u32 = 9;

/// The lines of a program that compile graphs for a device.
#[derive(Default)]
pub(crate) struct CallSites {
    sites: Mutex<HashMap<&'static Location<'static>, Site>>,
}

/// What was compiled from one line.
#[derive(Default)]
struct Site {
    compiled: u32,
    /// The smallest and the largest number, by name of the input and axis.
    sizes: BTreeMap<(String, usize), (usize, usize)>,
}

impl CallSites {
    /// Counts a compilation of a graph with these inputs, and warns once for each line. Graphs
    /// without inputs do not count: each run of a batch of operations is one.
    pub(super) fn count(&self, call: Call, inputs: &[(&str, &[Dim])]) {
        if inputs.is_empty() {
            return;
        }
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let site = sites.entry(call.at).or_default();
        site.add(inputs);
        let warning = (site.compiled == WARNED).then(|| site.warning());
        drop(sites);
        if let Some(warning) = warning {
            let at = call.at;
            log::warn!("{} ({}:{}:{}): {warning}", call.op, at.file(), at.line(), at.column());
        }
    }
}

impl Site {
    fn add(&mut self, inputs: &[(&str, &[Dim])]) {
        self.compiled += 1;
        for (name, sizes) in inputs {
            for (axis, Dim(size)) in sizes.iter().enumerate() {
                let Size::Fixed(Some(size)) = size else { continue };
                let key = ((*name).to_owned(), axis);
                let known = self.sizes.entry(key).or_insert((*size, *size));
                *known = (known.0.min(*size), known.1.max(*size));
            }
        }
    }

    fn warning(&self) -> String {
        let differs = |(_, (min, max)): &(&(String, usize), &(usize, usize))| min < max;
        let differing: Vec<_> = self.sizes.iter().filter(differs).collect();
        let compiled = format!("this line has compiled {WARNED} graphs");
        let Some(((name, axis), (min, max))) = differing.first() else {
            return format!(
                "{compiled} with inputs of equal sizes; help: compile once, and keep the plan"
            );
        };
        let others = match differing.len() {
            1 => String::new(),
            count => format!(", and of {} other axes", count - 1),
        };
        let sizes = format!("from {min} to {max} of axis {axis} of input `{name}`{others}");
        let dim = format!("`g.dim(\"{name}{axis}\", {min}..={max})`");
        let help = format!("help: name the size, so that one plan serves all: {dim}");
        format!("{compiled}, with sizes {sizes}; {help}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(shapes: impl Iterator<Item = [usize; 2]>) -> String {
        let mut site = Site::default();
        for shape in shapes {
            site.add(&[("ids", &shape.map(Dim::from))]);
        }
        site.warning()
    }

    #[test]
    fn warnings_name_axis_and_fix() {
        assert_eq!(
            warning((3..12).map(|n| [4, n])),
            "this line has compiled 9 graphs, with sizes from 3 to 11 of axis 1 of input `ids`; \
             help: name the size, so that one plan serves all: `g.dim(\"ids1\", 3..=11)`"
        );
        let both = warning((0..9).map(|n| [n, n]));
        assert!(both.contains("of axis 0 of input `ids`, and of 1 other axes; help"), "{both}");
        assert_eq!(
            warning((0..9).map(|_| [4, 4])),
            "this line has compiled 9 graphs with inputs of equal sizes; help: compile once, and \
             keep the plan"
        );
    }
}
