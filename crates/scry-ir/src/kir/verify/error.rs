//! Errors of the verifier.

use std::fmt;

use crate::Location;
use crate::kir::source_map::InSource;
use crate::kir::{Type, Value};

/// Maximum length of a name or a statement in an error: in characters for the kernel's name, else
/// in bytes, which the last fragment that is printed may exceed.
const MAX_TEXT: usize = 240;

/// The kind of rule that an invalid kernel breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VerifyErrorKind {
    /// The name, the workgroup size, the number of labels, a buffer or an array is invalid.
    Declaration,
    /// A value, variable, buffer or array does not exist; a value is used where it is not computed
    /// or not visible, or is computed twice; or the additional results of an instruction are not
    /// defined.
    Value,
    /// An operand or a result has the wrong type, or another part of an instruction is invalid.
    Type,
    /// An access is misaligned, out of bounds of memory of known size, not permitted in its address
    /// space, or not of one to four values; or the stride of an array length is zero.
    Memory,
    /// A label is out of range or used twice, or a [`Stmt::Break`](crate::kir::Stmt::Break) is
    /// misplaced.
    Control,
    /// Blocks are nested too deeply, or there are too many labels.
    TooLarge,
}

/// Why a kernel is invalid: the statement or value at fault, and the rule that it breaks.
///
/// ```
/// use scry_ir::kir::{Builder, Type, Value, Var, VerifyErrorKind, verify};
///
/// let mut b = Builder::new("example", [64, 1, 1]);
/// b.var(Type::U32);
/// b.set(Var(0), Value(7));
/// let error = verify(&b.finish()).expect_err("%7 is not defined");
/// assert_eq!(error.kind, VerifyErrorKind::Value);
/// assert_eq!((error.position, error.value), (Some(0), Some(Value(7))));
/// assert_eq!(error.to_string(), "kernel example: `v0 = %7`: %7 has no definition");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyError {
    /// Name of the kernel.
    pub kernel: String,
    /// The kind of rule.
    pub kind: VerifyErrorKind,
    /// Index of the statement at fault, from 0, in the order of
    /// [`for_each_stmt`](crate::kir::for_each_stmt). `None` if a declaration is at fault, or a
    /// definition that no statement computes.
    pub position: Option<usize>,
    /// The statement or definition at fault, as printed, abbreviated if it is long.
    pub statement: Option<String>,
    /// The value at fault: an operand, or the value that the statement computes. `None` if the
    /// error names no value.
    pub value: Option<Value>,
    /// Source location of the statement, or else of the value at fault; `None` if neither is known.
    pub location: Option<Location>,
    /// Name of the source that `location` is in, if known ([`SourceMap::name`]).
    ///
    /// [`SourceMap::name`]: crate::kir::SourceMap::name
    pub source: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}", self.kernel)?;
        if let Some(at) = self.location {
            write!(f, ", {}", InSource { name: self.source.as_deref(), at })?;
        }
        f.write_str(": ")?;
        if let Some(statement) = &self.statement {
            write!(f, "`{statement}`: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for VerifyError {}

/// A broken rule, without the statement or declaration that breaks it.
pub(super) struct Violation {
    kind: VerifyErrorKind,
    value: Option<Value>,
    message: String,
}

/// Creates a violation that names no value.
pub(super) fn violation(kind: VerifyErrorKind, message: impl Into<String>) -> Violation {
    Violation { kind, value: None, message: message.into() }
}

impl Violation {
    /// Names the value at fault.
    pub(super) fn with_value(mut self, value: Value) -> Self {
        self.value = Some(value);
        self
    }

    /// Returns the error for a declaration of a kernel.
    pub(super) fn in_declaration(self, kernel: &str) -> VerifyError {
        VerifyError {
            kernel: kernel.escape_debug().take(MAX_TEXT).collect(),
            kind: self.kind,
            position: None,
            statement: None,
            location: None,
            source: None,
            value: self.value,
            message: self.message,
        }
    }

    /// Returns the error for a statement. `value` is the value that it computes, if any.
    pub(super) fn in_statement(
        self,
        kernel: &str,
        position: Option<usize>,
        statement: &dyn fmt::Display,
        value: Option<Value>,
    ) -> VerifyError {
        let value = self.value.or(value);
        let statement = Some(abbreviated(statement));
        VerifyError { position, statement, value, ..self.in_declaration(kernel) }
    }
}

/// Requires that types are equal. `what` names, in the message, the value of type `found`.
pub(super) fn require_same_type(found: Type, expected: Type, what: &str) -> Result<(), Violation> {
    if found == expected {
        return Ok(());
    }
    let message = format!("{what} must be {expected}, but is {found}");
    Err(violation(VerifyErrorKind::Type, message))
}

/// Prints a statement, without building the text of a very long one.
pub(super) fn abbreviated(statement: &dyn fmt::Display) -> String {
    let mut text = Abbreviation(String::new());
    let is_complete = fmt::write(&mut text, format_args!("{statement}")).is_ok();
    if !is_complete {
        text.0.push('…');
    }
    text.0
}

/// A writer that fails once it contains more than [`MAX_TEXT`] bytes.
struct Abbreviation(String);

impl fmt::Write for Abbreviation {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() > MAX_TEXT { Err(fmt::Error) } else { Ok(()) }
    }
}
