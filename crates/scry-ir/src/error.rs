//! Shader compilation errors.

use std::fmt;

use crate::wgsl::report;

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
    /// The text is WGSL, but breaks one of its rules; or a kernel built in KIR breaks one of KIR.
    Validation,
    /// The requested entry point does not exist, there is none, or there are several and none was
    /// requested.
    EntryPoint,
    /// An override is missing, unknown, of the wrong type or out of range.
    Override,
    /// The kernel uses optional features that the device, or the language to emit, does not have.
    UnsupportedFeatures(crate::Features),
    /// The kernel uses something without a [`Features`](crate::Features) flag that Scry does not
    /// implement (textures, ray queries), or that the language to emit lacks.
    UnsupportedConstruct,
    /// The source is nested too deeply, or too large: it exceeds a limit of the compiler.
    TooComplex,
    /// The compiler itself failed: a defect to report, not an error in the source.
    Compiler,
}

/// A shader compilation error: the message, the position in the source, and the annotated source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShaderError {
    /// What is wrong.
    pub kind: ShaderErrorKind,
    /// Name of the source, such as its file, if one was given ([`ShaderError::with_label`]).
    pub label: Option<String>,
    /// The message, on one line and without the position.
    pub message: String,
    /// Position in the source, if the error has one.
    pub location: Option<Location>,
    /// The message, the annotated source and the notes, several lines; empty if the error has
    /// neither a position nor notes.
    pub rendered: String,
}

impl ShaderError {
    /// Creates an error of the compiler itself, without a position.
    pub(crate) fn compiler(message: String) -> Self {
        Self::new(ShaderErrorKind::Compiler, message)
    }

    /// Creates an error without a position.
    ///
    /// ```
    /// use scry_ir::{ShaderError, ShaderErrorKind};
    ///
    /// let error = ShaderError::new(ShaderErrorKind::EntryPoint, "there is no `main`");
    /// assert_eq!(error.to_string(), "there is no `main`");
    /// ```
    #[must_use]
    pub fn new(kind: ShaderErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, label: None, message, location: None, rendered: String::new() }
    }

    /// Names the source: `wgsl:5:5` in the text becomes `blur.wgsl:5:5`, and an error without a
    /// position begins with the name.
    ///
    /// ```
    /// let error = scry_ir::Program::parse("fn f() { let x = y; }").err().expect("no `y`");
    /// assert!(error.to_string().contains("─ wgsl:1:18"));
    /// let error = error.with_label("blur.wgsl");
    /// assert!(error.to_string().contains("─ blur.wgsl:1:18"));
    /// ```
    #[must_use]
    pub fn with_label(mut self, label: impl AsRef<str>) -> Self {
        let label = report::one_line(label.as_ref());
        self.rendered = report::rename_source(&self.rendered, self.label.as_deref(), &label);
        self.label = Some(label);
        self
    }
}

impl fmt::Display for ShaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rendered errors with a position name the source in their heading.
        let is_named = self.location.is_some() && !self.rendered.is_empty();
        if let (false, Some(label)) = (is_named, &self.label) {
            write!(f, "{label}: ")?;
        }
        if self.rendered.is_empty() {
            f.write_str(&self.message)
        } else {
            f.write_str(&self.rendered)
        }
    }
}

impl std::error::Error for ShaderError {}
