//! A module that is copied when it is first changed.

use std::ops::Deref;

use naga::Module;

/// A module as it was read, or a copy that was changed.
pub(crate) struct Draft<'a> {
    given: &'a Module,
    changed: Option<Module>,
}

impl<'a> Draft<'a> {
    pub(crate) fn of(given: &'a Module) -> Self {
        Self { given, changed: None }
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// The module, to be changed.
    pub(crate) fn to_mut(&mut self) -> &mut Module {
        self.changed.get_or_insert_with(|| copy(self.given))
    }
}

impl Deref for Draft<'_> {
    type Target = Module;

    fn deref(&self) -> &Module {
        self.changed.as_ref().unwrap_or(self.given)
    }
}

/// A copy without comments on declarations, which the parser was not asked for: maps of them would
/// take code of their own to copy.
fn copy(module: &Module) -> Module {
    Module {
        types: module.types.clone(),
        special_types: module.special_types.clone(),
        constants: module.constants.clone(),
        overrides: module.overrides.clone(),
        global_variables: module.global_variables.clone(),
        global_expressions: module.global_expressions.clone(),
        functions: module.functions.clone(),
        entry_points: module.entry_points.clone(),
        diagnostic_filters: module.diagnostic_filters.clone(),
        diagnostic_filter_leaf: module.diagnostic_filter_leaf,
        doc_comments: None,
    }
}
