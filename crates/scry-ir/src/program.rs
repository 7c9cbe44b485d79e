//! A kernel: one entry point of a validated WGSL module, and its interface.

use std::sync::Arc;

use naga::valid::ModuleInfo;

use crate::{Features, Interface, ShaderError, guard, pipeline, scan};

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
    pub(crate) inner: Arc<Inner>,
}

/// What a program holds.
pub(crate) struct Inner {
    /// The module: overrides applied, only the chosen entry point and what it reaches kept.
    pub(crate) module: naga::Module,
    /// The validator's findings about `module`.
    pub(crate) info: ModuleInfo,
    /// What the host has to know.
    pub(crate) interface: Interface,
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
        let scanned = scan::scan(source).map_err(|report| report.render(source))?;
        let inner = guard::run_with_stack(scanned.stack, || {
            pipeline::read(source, &scanned, options).map_err(|report| report.render(source))
        })?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the host has to know of the kernel.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.inner.interface
    }
}
