//! Why a shader was refused.

use std::fmt;

/// A position in a WGSL source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// What is wrong with a shader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShaderErrorKind {
    /// The text is not WGSL.
    Parse,
    /// The text is WGSL, but breaks one of its rules.
    Validation,
    /// No such entry point, none at all, or several and none named.
    EntryPoint,
    /// An override is missing, unknown, of another type or out of range.
    Override,
    /// The kernel uses optional features that were not asked for.
    Unsupported(crate::Features),
    /// The kernel uses something that compute kernels of Scry do not have: textures, ray queries.
    NotCompute,
    /// The source is nested too deeply or too large to be compiled within bounds.
    TooComplex,
    /// The compiler itself failed: a defect to report, not an error of the source.
    Compiler,
}

/// A refused shader: the message, where in the source, and the annotated source line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShaderError {
    /// What is wrong.
    pub kind: ShaderErrorKind,
    /// One line, without position.
    pub message: String,
    /// Where, if the error has a place.
    pub location: Option<Location>,
    /// The annotated source and the notes, several lines; empty if the error has no place.
    pub rendered: String,
}

impl ShaderError {
    /// The compiler itself failed, at no place of the source.
    pub(crate) fn compiler(message: String) -> Self {
        let (location, rendered) = (None, String::new());
        Self { kind: ShaderErrorKind::Compiler, message, location, rendered }
    }
}

impl fmt::Display for ShaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rendered.is_empty() {
            f.write_str(&self.message)
        } else {
            f.write_str(&self.rendered)
        }
    }
}

impl std::error::Error for ShaderError {}
