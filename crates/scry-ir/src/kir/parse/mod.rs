//! Parses the text of kernels, as [`Display`](std::fmt::Display) prints it.
//!
//! `cursor` reads tokens, `header` the declarations, `statements` the body, and `instructions` the
//! right sides of definitions. Parsing checks the syntax and that values are numbered without gaps,
//! which those of a kernel with definitions that no statement computes are not;
//! [`verify`](super::verify) checks the rest.

mod cursor;
mod header;
mod instructions;
mod statements;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use self::statements::Body;
use super::Kir;

/// Why a text is not a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseKirError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The problem.
    pub message: String,
}

impl fmt::Display for ParseKirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl Error for ParseKirError {}

impl FromStr for Kir {
    type Err = ParseKirError;

    /// Parses a kernel as printed. Indentation and empty lines are ignored.
    ///
    /// ```
    /// use scry_ir::kir::{Kir, verify};
    ///
    /// let text = "\
    /// kernel twice [64, 1, 1]
    /// buffer binding0: read_write f32 data
    ///
    /// %0: f32 = load binding0[4]
    /// %1: f32 = add %0, %0
    /// store binding0[4] = %1
    /// ";
    /// let kir: Kir = text.parse()?;
    /// assert_eq!(verify(&kir), Ok(()));
    /// assert_eq!(kir.to_string(), text);
    /// # Ok::<(), scry_ir::kir::ParseKirError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, ParseKirError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty())
            .peekable();
        let at = |line| move |message| ParseKirError { line, message };
        let Some((line, first)) = lines.next() else {
            return Err(at(1)("there is no kernel".to_owned()));
        };
        let mut kir = header::kernel(first).map_err(at(line))?;
        let mut last = line;
        while let Some((line, text)) = lines.next_if(|(_, text)| header::is_declaration(text)) {
            header::declaration(&mut kir, text).map_err(at(line))?;
            last = line;
        }
        let mut body = Body::default();
        for (line, text) in lines {
            body.line(text).map_err(at(line))?;
            last = line;
        }
        body.finish(kir).map_err(at(last))
    }
}
