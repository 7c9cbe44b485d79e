//! A kernel: one entry point of a validated WGSL module, and its interface.

use std::sync::Arc;

use naga::valid::ModuleInfo;

use crate::wgsl::naga::{guard, scan};
use crate::{Features, Interface, OverrideValue, ShaderError, pipeline};

/// How to read a source.
#[derive(Debug, Clone)]
pub struct Options {
    /// Entry point; `None` selects the only compute entry point.
    pub entry: Option<String>,
    /// Values of `override`s, by name or by decimal `@id`.
    pub overrides: Vec<(String, OverrideValue)>,
    /// Optional features that the source may use: those of the device. A feature is used if code
    /// that the entry point reaches uses it, or if a directive enables it.
    pub features: Features,
}

impl Default for Options {
    /// The only entry point, no overrides, every feature.
    fn default() -> Self {
        Self { entry: None, overrides: Vec::new(), features: Features::all() }
    }
}

/// One entry point of a parsed and validated WGSL module, overrides applied. Cheap to clone.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

/// The content of a program.
pub(crate) struct Inner {
    /// The module, with overrides applied, reduced to the selected entry point and the code it
    /// reaches.
    pub(crate) module: naga::Module,
    /// The validator's findings about `module`.
    pub(crate) info: ModuleInfo,
    /// The interface to the host.
    pub(crate) interface: Interface,
}

impl Program {
    /// Reads a source with the default [`Options`].
    ///
    /// ```
    /// use scry_ir::{Access, Program};
    ///
    /// let program = Program::parse(
    ///     "@group(0) @binding(0) var<storage, read> src: array<f32>;
    ///      @group(0) @binding(1) var<storage, read_write> dst: array<f32>;
    ///
    ///      @compute @workgroup_size(64)
    ///      fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    ///          if id.x < arrayLength(&dst) { dst[id.x] = 2.0 * src[id.x]; }
    ///      }",
    /// )?;
    /// let interface = program.interface();
    /// assert_eq!(interface.entry_point, "double");
    /// assert_eq!(interface.workgroup_size, [64, 1, 1]);
    /// assert_eq!(interface.bindings[0].access, Access::Read);
    /// assert_eq!(interface.bindings[1].name, "dst");
    /// assert_eq!(interface.bindings[1].layout.to_string(), "array<f32>");
    ///
    /// let error = Program::parse("fn f() { let x = y; }").err().expect("y is not declared");
    /// assert_eq!(error.message, "no definition in scope for identifier: `y`");
    /// assert_eq!(error.location.map(|at| (at.line, at.column)), Some((1, 18)));
    /// println!("{error}"); // the annotated source line
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Program::with_options`].
    pub fn parse(source: &str) -> Result<Self, ShaderError> {
        Self::with_options(source, &Options::default())
    }

    /// Reads a source: parses and validates it, applies its `override`s, removes code that the
    /// entry point does not reach, and computes its interface.
    ///
    /// In addition to standard WGSL, `var<immediate>` (parameters of each launch), `f64`, `i64`,
    /// `u64` and `atomic<f32>` are supported; `enable subgroups;` is accepted. Textures, samplers
    /// and other resources than buffers are refused.
    ///
    /// # Errors
    /// A [`ShaderError`] with a kind, a message of one line and, if it has a position, line, column
    /// and the annotated source. Any source is compiled or refused within seconds; one that is
    /// nested too deeply or too large is refused as
    /// [`TooComplex`](crate::ShaderErrorKind::TooComplex).
    ///
    /// ```
    /// use scry_ir::{Features, Options, Program, ShaderErrorKind};
    ///
    /// let source = "override TILE: u32 = 8;
    ///      @compute @workgroup_size(TILE, TILE) fn main() {}";
    /// let options = Options {
    ///     overrides: vec![("TILE".into(), 16.into())],
    ///     ..Options::default()
    /// };
    /// let program = Program::with_options(source, &options)?;
    /// assert_eq!(program.interface().workgroup_size, [16, 16, 1]);
    ///
    /// let f32_only = Options { features: Features::empty(), ..Options::default() };
    /// let source = "enable f16; @compute @workgroup_size(1) fn main() { let x = 1.0h; }";
    /// let error = Program::with_options(source, &f32_only).err().expect("f16 is not allowed");
    /// assert_eq!(error.kind, ShaderErrorKind::Unsupported(Features::F16));
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    pub fn with_options(source: &str, options: &Options) -> Result<Self, ShaderError> {
        let scanned = scan::scan(source).map_err(|report| report.render(source))?;
        let inner = guard::run_with_stack(scanned.stack, || {
            pipeline::read(source, &scanned, options).map_err(|report| report.render(source))
        })?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the interface of the kernel to the host.
    ///
    /// ```
    /// use scry_ir::Program;
    ///
    /// let program = Program::parse(
    ///     "var<immediate> scale: f32;
    ///      @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ///      @compute @workgroup_size(32) fn main() { x[0] *= scale; }",
    /// )?;
    /// let interface = program.interface();
    /// assert_eq!(interface.workgroup_size, [32, 1, 1]);
    /// assert_eq!(interface.bindings[0].name, "x");
    /// assert_eq!(interface.immediates.as_ref().map(|it| &*it.name), Some("scale"));
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.inner().interface
    }

    /// Returns the content of the program.
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}
