//! A kernel, from WGSL or from the kernel IR, and its interface.

use std::sync::Arc;

use naga::valid::ModuleInfo;

use crate::kir::{Kir, optimise, sanitise};
use crate::wgsl::naga::{guard, scan};
use crate::wgsl::source_text::SourceText;
use crate::{Features, Interface, OverrideValue, ShaderError, pipeline};

/// Options for compiling a source.
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

/// One entry point of a parsed and validated WGSL module, overrides applied, or a kernel built in
/// the kernel IR. Cheap to clone.
#[derive(Clone)]
pub struct Program {
    content: Arc<Content>,
}

/// The content of a program.
pub(crate) enum Content {
    /// From WGSL.
    Wgsl(Box<WgslKernel>),
    /// From the kernel IR.
    Kir(Box<SanitisedKir>),
}

/// A kernel that was built in the kernel IR, after [`sanitise`].
pub(crate) struct SanitisedKir {
    /// The kernel, safe to run, before its optimisation.
    pub(crate) sanitised: Kir,
    /// The kernel, safe to run, and optimised.
    pub(crate) kir: Kir,
    /// The interface to the host.
    pub(crate) interface: Interface,
}

/// A kernel from a WGSL source.
pub(crate) struct WgslKernel {
    /// The module, with overrides applied, reduced to the selected entry point and the code it
    /// reaches.
    pub(crate) module: naga::Module,
    /// The validator's findings about `module`.
    pub(crate) info: ModuleInfo,
    /// The interface to the host.
    pub(crate) interface: Interface,
    /// The source, for positions.
    pub(crate) source: SourceText,
}

impl Program {
    /// Returns whether the kernel was built in the kernel IR, by [`Program::from_kir`].
    #[must_use]
    pub fn is_from_kir(&self) -> bool {
        matches!(*self.content, Content::Kir(_))
    }

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
    /// In addition to standard WGSL, `var<immediate>` (parameters of each launch), `f64`, 16-bit
    /// and 64-bit integers, atomics of `f32` and of 64-bit integers, and cooperative matrices are
    /// supported: see [`Features`]. Entry points that use textures, samplers or other resources
    /// that are not buffers are rejected.
    ///
    /// # Errors
    /// A [`ShaderError`] with a kind, a message of one line and, if it has a position, line, column
    /// and the annotated source. Any source is compiled or rejected within seconds; one that is
    /// nested too deeply or too large is rejected as
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
    /// assert_eq!(error.kind, ShaderErrorKind::UnsupportedFeatures(Features::F16));
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    pub fn with_options(source: &str, options: &Options) -> Result<Self, ShaderError> {
        let scanned = scan::scan(source).map_err(|report| report.render(source))?;
        let inner = guard::run_with_stack(scanned.stack, || {
            pipeline::read(source, &scanned, options).map_err(|report| report.render(source))
        })?;
        Ok(Self { content: Arc::new(Content::Wgsl(Box::new(inner))) })
    }

    /// Creates a program from a kernel that was built in the kernel IR, such as by a
    /// [`Builder`](crate::kir::Builder).
    ///
    /// The kernel need not be trusted. It is verified against the rules of the IR. Every index is
    /// clamped to the last element in bounds, as in WGSL. Loops that are not proven to end can be
    /// stopped, even if the kernel claims that they are `finite`. The minimum size of a buffer is
    /// that of its accesses without an index, or at index 0; launches are checked against it.
    ///
    /// The layout of a buffer is a runtime-sized array of its element type. If it needs more than
    /// one element, it is a structure of two arrays: `_first`, of all needed elements but the last,
    /// and the runtime-sized `_others`.
    ///
    /// ```
    /// use scry_ir::Program;
    /// use scry_ir::kir::{Access, BinaryOp, Builder, Type, Var};
    ///
    /// let mut b = Builder::new("twice", [64, 1, 1]);
    /// let data = b.named_buffer("data", Type::F32, Access::ReadWrite);
    /// let i = b.global_id(0);
    /// let place = b.element(data, i);
    /// let x = b.load(Type::F32, place, 1)[0];
    /// let twice = b.binary(BinaryOp::Add, x, x);
    /// b.store(place, vec![twice]);
    /// let program = Program::from_kir(&b.finish())?;
    /// assert_eq!(program.interface().bindings[0].layout.to_string(), "array<f32>");
    ///
    /// let mut wrong = Builder::new("wrong", [64, 1, 1]);
    /// wrong.set(Var(7), i); // neither the variable nor the value exists
    /// assert!(Program::from_kir(&wrong.finish()).is_err());
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`Validation`](crate::ShaderErrorKind::Validation) if the kernel breaks a rule of the IR,
    /// if only some invocations of a workgroup may reach a barrier or a subgroup operation, or if
    /// an access is beyond an array for every index;
    /// [`TooComplex`](crate::ShaderErrorKind::TooComplex) if it is too large or nested too deeply.
    pub fn from_kir(kir: &Kir) -> Result<Self, ShaderError> {
        let content = guard::run(|| {
            let (sanitised, interface) = sanitise::sanitise(kir)?;
            let mut kir = sanitised.clone();
            optimise(&mut kir);
            Ok(SanitisedKir { sanitised, kir, interface })
        })?;
        Ok(Self { content: Arc::new(Content::Kir(Box::new(content))) })
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
        match &*self.content {
            Content::Wgsl(inner) => &inner.interface,
            Content::Kir(built) => &built.interface,
        }
    }

    /// Returns the content of the program.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }
}
