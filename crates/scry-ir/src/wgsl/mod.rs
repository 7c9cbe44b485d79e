//! The WGSL front end: from text to a validated module and the interface of its kernel.

pub(crate) mod advice;
pub(crate) mod declarations;
pub(crate) mod directives;
pub(crate) mod entry;
pub(crate) mod lex;
pub(crate) mod naga;
pub(crate) mod outline;
pub(crate) mod overrides;
pub(crate) mod reflect;
pub(crate) mod report;
pub(crate) mod source_text;
pub(crate) mod type_layout;
pub(crate) mod uniformity;
pub(crate) mod used_features;
pub(crate) mod validate;
