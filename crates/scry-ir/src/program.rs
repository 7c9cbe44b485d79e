//! A kernel: one entry point of a validated WGSL module, and its interface.

use std::sync::Arc;

use crate::{Features, Interface, ShaderError};

/// How to read a source.
#[derive(Debug, Clone)]
pub struct Options {
    /// Entry point; `None` takes the only compute entry point.
    pub entry: Option<String>,
    /// Values of `override`s, by name or by decimal `@id`.
    pub overrides: Vec<(String, f64)>,
    /// Optional features that the source may use.
    pub features: Features,
}

impl Default for Options {
    /// The only entry point, no overrides, every feature.
    fn default() -> Self {
        Self {
            entry: None,
            overrides: Vec::new(),
            features: Features::all(),
        }
    }
}

/// One entry point of a parsed and validated WGSL module, overrides applied. Cheap to clone.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

struct Inner {
    interface: Interface,
}

impl Program {
    /// Reads a source with the default [`Options`].
    ///
    /// # Errors
    /// See [`Program::with_options`].
    pub fn parse(source: &str) -> Result<Self, ShaderError> {
        Self::with_options(source, &Options::default())
    }

    /// Reads a source.
    ///
    /// # Errors
    /// A [`ShaderError`] that shows the place in the source.
    pub fn with_options(source: &str, options: &Options) -> Result<Self, ShaderError> {
        let _ = (source, options);
        todo!()
    }

    /// What the host has to know of the kernel.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.inner.interface
    }
}
