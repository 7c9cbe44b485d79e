//! Lowering from naga's module to the kernel IR.
//!
//! Functions are inlined, starting with the entry point. Expressions are evaluated at naga's `Emit`
//! statements; lowered values are kept in the frame of their function.

mod access;
mod atomics;
mod calls;
mod componentwise;
mod constants;
mod control;
mod convert;
mod cooperative;
mod dynamic_indexing;
mod element_type;
mod entry;
mod expressions;
mod frame;
mod math;
mod memory;
mod operators;
mod pointers;
#[cfg(test)]
mod semantics;
mod shape;
mod short_circuit;
mod statements;
mod subgroups;
mod switch;
#[cfg(test)]
mod tests;
mod types;
mod variables;

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;
use naga::valid::ModuleInfo;
use naga::{LocalVariable, Module, Span};

use self::dynamic_indexing::IndexedVariables;
use self::frame::{Frame, Operand};
use self::pointers::Pointer;
use self::shape::{Shape, Shaped};
use self::types::{Ty, Types};
use super::{Builder, Const, Kir, Label, Value, optimise, optimise_with, termination};
use crate::program::{Content, WgslKernel};
use crate::wgsl::naga::guard;
use crate::wgsl::report::Report;
use crate::wgsl::source_text::SourceText;
use crate::{Interface, Program, ShaderError, ShaderErrorKind};

/// How to lower a program to the kernel IR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KirOptions {
    /// Clamps every index that might be out of bounds, and assumes that a loop is finite only if it
    /// is proven to terminate. `false` is for trusted kernels only. In both cases no buffer may be
    /// smaller than [`TypeLayout::min_binding_size`](crate::TypeLayout::min_binding_size).
    pub checked: bool,
}

/// Maximum scalars of a value in registers; larger values are in memory and copied in loops.
const MAX_SCALARISED: u64 = 256;

/// Maximum number of values, and of lowering steps: statements, expressions and scalars accessed.
const MAX_WORK: u64 = 2_000_000;

/// Maximum nesting of blocks. WebAssembly has no larger stack than the caller's.
const MAX_BLOCK_DEPTH: u32 = if cfg!(target_arch = "wasm32") { 500 } else { 1000 };

/// Maximum nesting of calls.
const MAX_CALL_DEPTH: u32 = if cfg!(target_arch = "wasm32") { 250 } else { 4000 };

impl Program {
    /// Lowers the program to the kernel IR.
    ///
    /// ```
    /// use scry_ir::Program;
    /// use scry_ir::kir::KirOptions;
    ///
    /// let program = Program::parse(
    ///     "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
    ///      @compute @workgroup_size(64)
    ///      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2.0; }",
    /// )?;
    /// let kir = program.to_kir(&KirOptions { checked: true })?;
    /// assert_eq!(kir.workgroup_size, [64, 1, 1]);
    /// assert!(kir.buffers[0].writable);
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`Validation`](ShaderErrorKind::Validation) for products of cooperative matrices of
    /// unsupported types, and for cooperative matrices in memory that cannot contain them,
    /// [`TooComplex`](ShaderErrorKind::TooComplex) for a kernel that becomes too large when its
    /// functions are inlined, [`Compiler`](ShaderErrorKind::Compiler) if the lowering fails.
    pub fn to_kir(&self, options: &KirOptions) -> Result<Kir, ShaderError> {
        self.with_kir(options, |kir| kir)
    }

    /// Lowers the program to the kernel IR, and calls `work` with it on a thread whose stack is
    /// large enough for recursion over the most deeply nested blocks. The caller's stack may be too
    /// small for that. The options do not affect a kernel that was built in the IR: it is always
    /// checked.
    ///
    /// ```
    /// use scry_ir::{Program, kir::KirOptions};
    ///
    /// let program = Program::parse("@compute @workgroup_size(8) fn main() {}")?;
    /// let size = program.with_kir(&KirOptions { checked: true }, |kir| kir.workgroup_size)?;
    /// assert_eq!(size, [8, 1, 1]);
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Program::to_kir`], and [`Compiler`](ShaderErrorKind::Compiler) if `work` panics.
    pub fn with_kir<T: Send>(
        &self,
        options: &KirOptions,
        work: impl FnOnce(Kir) -> T + Send,
    ) -> Result<T, ShaderError> {
        let content = self.content();
        guard::run(|| {
            let inner = match content {
                Content::Wgsl(inner) => inner,
                Content::Kir(built) => return Ok(work(built.kir.clone())),
            };
            Ok(work(optimised(lower(inner, options)?)?))
        })
    }

    /// Lowers the program to the kernel IR, and calls `visit` with the kernel before its
    /// optimisation and after each pass: for debugging. The stages are named `lower` (`sanitise`,
    /// if the kernel was built in the IR), `fold`, `cse` and so on; passes are repeated.
    ///
    /// ```
    /// use scry_ir::{Program, kir::KirOptions};
    ///
    /// let program = Program::parse("@compute @workgroup_size(8) fn main() {}")?;
    /// let mut names = Vec::new();
    /// program.visit_passes(&KirOptions { checked: true }, &mut |name, _| names.push(name))?;
    /// assert_eq!(names[..2], ["lower", "fold"]);
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Program::with_kir`].
    pub fn visit_passes(
        &self,
        options: &KirOptions,
        visit: &mut (dyn FnMut(&'static str, &Kir) + Send),
    ) -> Result<(), ShaderError> {
        let content = self.content();
        guard::run(|| {
            let name = match content {
                Content::Wgsl(_) => "lower",
                Content::Kir(_) => "sanitise",
            };
            let mut kir = unoptimised(content, options)?;
            visit(name, &kir);
            optimise_with(&mut kir, visit);
            Ok(())
        })
    }
}

/// A program being lowered.
struct Lower<'m> {
    module: &'m Module,
    info: &'m ModuleInfo,
    interface: &'m Interface,
    types: Types<'m>,
    indexed: Rc<IndexedVariables>,
    /// Whether indices are clamped ([`KirOptions::checked`]).
    checked: bool,
    workgroup_size: [u32; 3],
    builder: Builder,
    frame: Frame<'m>,
    /// Pointers to global variables that have been used.
    globals: Vec<Option<Pointer>>,
    /// Global expressions that have been used.
    global_expressions: Vec<Option<Operand>>,
    /// Local variables of functions, if they are in memory.
    local_arrays: HashMap<*const LocalVariable, Pointer>,
    /// Constants that have been added to the outermost block.
    constants: HashMap<Const, Value, RandomState>,
    /// Local arrays that are filled with constants in the outermost block.
    tables: HashMap<(Ty, Rc<[Value]>), Pointer>,
    /// For each buffer, the length of its runtime-sized array and the index of its last element,
    /// once computed.
    lengths: Vec<Option<(Value, Value)>>,
    /// Number of exits from each scope or loop, by label.
    exits: Vec<u32>,
    /// Whether there has been a `storageBarrier`.
    has_storage_barrier: bool,
    /// Number of open blocks.
    block_depth: u32,
    /// Number of calls that are being inlined.
    call_depth: u32,
    /// Number of lowering steps so far.
    work: u64,
    source: &'m SourceText,
    /// The statement or expression that is being lowered.
    span: Span,
    /// The line of `span`, where the search for the next line starts.
    line: usize,
}

/// Returns the kernel of a program, without optimisation.
pub(crate) fn unoptimised(content: &Content, options: &KirOptions) -> Result<Kir, ShaderError> {
    match content {
        Content::Wgsl(inner) => lower(inner, options),
        Content::Kir(built) => Ok(built.sanitised.clone()),
    }
}

/// Optimises a lowered kernel.
pub(crate) fn optimised(mut kir: Kir) -> Result<Kir, ShaderError> {
    optimise(&mut kir);
    check_lowered(&kir)?;
    Ok(kir)
}

/// Lowers a program, without optimisation.
fn lower(program: &WgslKernel, options: &KirOptions) -> Result<Kir, ShaderError> {
    let mut lower = Lower::new(program, options);
    lower.entry_point().map_err(|error| lower.with_location(error))?;
    let mut kir = lower.builder.finish();
    kir.storage_barriers = lower.has_storage_barrier;
    control::drop_redundant_exits(&mut kir.body, Label::KERNEL);
    termination::mark_finite(&mut kir);
    check_lowered(&kir)?;
    Ok(kir)
}

/// Verifies the kernel, in debug builds.
fn check_lowered(kir: &Kir) -> Result<(), ShaderError> {
    if cfg!(debug_assertions) {
        super::verify(kir).map_err(|error| {
            ShaderError::compiler(format!("the kernel was lowered or optimised wrongly: {error}"))
        })?;
    }
    Ok(())
}

impl<'m> Lower<'m> {
    fn entry_point(&mut self) -> Result<(), ShaderError> {
        self.declare_bindings();
        self.frame.arguments = self.entry_arguments()?;
        self.initialise_private()?;
        let indexed = self.indexed.clone();
        if let Some(variables) = indexed.entry_point() {
            self.create_locals(variables, false)?;
        }
        self.statements(&self.frame.function.body)
    }

    /// Sets the source position of the code that is being lowered.
    fn set_span(&mut self, span: Span) {
        if span.is_defined() && span != self.span {
            self.span = span;
            self.builder.set_position(self.source.location(span, &mut self.line));
        }
    }

    /// Adds the source position of the code that is being lowered to an error without one.
    fn with_location(&self, error: ShaderError) -> ShaderError {
        if error.location.is_some() || !self.span.is_defined() {
            return error;
        }
        Report::new(error.kind, error.message).at(self.span, "").render(self.source.text())
    }

    fn new(program: &'m WgslKernel, options: &KirOptions) -> Self {
        let WgslKernel { module, info, interface, source } = program;
        let entry = &module.entry_points[0];
        Self {
            module,
            info,
            interface,
            types: Types::new(module),
            indexed: Rc::new(IndexedVariables::new(module)),
            checked: options.checked,
            workgroup_size: entry.workgroup_size,
            builder: Builder::new(&interface.entry_point, entry.workgroup_size),
            frame: Frame::new(&entry.function, info.get_entry_point(0), Vec::new()),
            globals: vec![None; module.global_variables.len()],
            global_expressions: vec![None; module.global_expressions.len()],
            local_arrays: HashMap::new(),
            constants: HashMap::default(),
            tables: HashMap::new(),
            lengths: vec![None; interface.bindings.len()],
            exits: Vec::new(),
            has_storage_barrier: false,
            block_depth: 0,
            call_depth: 0,
            work: 0,
            source,
            span: Span::UNDEFINED,
            line: 0,
        }
    }

    /// Declares buffers and immediates as in the interface.
    fn declare_bindings(&mut self) {
        for binding in &self.interface.bindings {
            let buffer = self.builder.buffer(binding.access);
            self.builder.set_buffer_type(
                buffer,
                &binding.name,
                element_type::of_layout(&binding.layout),
            );
            self.builder.set_buffer_min_size(buffer, binding.layout.min_binding_size());
        }
        if let Some(immediates) = &self.interface.immediates {
            self.builder.immediates(immediates.layout.fixed_size() as u32);
        }
    }

    /// Counts lowering steps; returns an error if they or the values are more than [`MAX_WORK`].
    fn spend(&mut self, steps: usize) -> Result<(), ShaderError> {
        self.work += steps as u64;
        if self.work.max(self.builder.kir().values.len() as u64) <= MAX_WORK {
            return Ok(());
        }
        Err(too_complex(format!(
            "the kernel has more than {MAX_WORK} instructions, counting those of a function once \
             per call"
        )))
    }
}

/// Returns the error for a program that is too large to be lowered.
fn too_complex(message: String) -> ShaderError {
    ShaderError::new(ShaderErrorKind::TooComplex, message)
}
