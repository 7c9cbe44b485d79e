//! Lowering from the kernel IR to SPIR-V for Vulkan 1.2.
//!
//! `entry` declares the interface and writes the prologue; `control` lowers statements; the other
//! files lower values, by topic.
//!
//! The memory model is GLSL450: it needs no device feature, where the Vulkan memory model is
//! optional in Vulkan 1.2, and it is what drivers are tested with. Cooperative matrices need the
//! Vulkan memory model. Each storage buffer is declared as a few typed views (`views`), as
//! `OpTypeRuntimeArray` of scalars and of vectors. Integers have one type for each width, which is
//! unsigned.

mod arithmetic;
mod atomics;
mod bits;
mod control;
mod convert;
mod divide;
mod entry;
mod float_functions;
mod loop_report;
mod matrices;
mod memory;
mod module;
mod poll;
mod state;
mod subgroups;
mod uniforms;
mod views;

use std::borrow::Cow;

use spirv::{BuiltIn, GlslStd450Op, Op, StorageClass};

use self::module::{Id, Module};
use self::state::{ArrayVariable, Construct, Views, Words};
use super::options::Lowered;
use super::{ControlFlow, SpirvOptions};
use crate::kir::f16_usage::needs_f16;
use crate::kir::{Builtin, Const, Inst, Kir, Type, Value};
use crate::wgsl::naga::guard;
use crate::{Features, Interface, Program, ShaderError};

type Result<T, E = ShaderError> = std::result::Result<T, E>;

/// The error for something that the emitter does not cover: no kernel of a program has it.
fn lacking(what: &str) -> ShaderError {
    ShaderError::compiler(format!("the SPIR-V emitter does not cover {what}"))
}

/// Returns the error for an instruction that the emitter does not cover.
fn not_covered<T>(what: impl std::fmt::Debug, ty: Type) -> Result<T> {
    Err(lacking(&format!("{what:?} of {ty}")))
}

impl Program {
    /// Writes the program as SPIR-V words; the entry point has its name in the source.
    ///
    /// ```
    /// use scry_ir::{FloatTypes, MatrixProducts, Program, SpirvOptions, SpirvWorkarounds};
    ///
    /// let options = SpirvOptions {
    ///     version: (1, 3),
    ///     checked: true,
    ///     native_workgroup_zeroing: false,
    ///     linearised: false,
    ///     workarounds: SpirvWorkarounds::default(),
    ///     reports_aborted_loops: false,
    ///     polls: false,
    ///     matrices: MatrixProducts::empty(),
    ///     nan_preserving: FloatTypes::empty(),
    ///     max_workgroup_memory: 32 << 10,
    /// };
    /// let program = Program::parse("@compute @workgroup_size(1) fn main() {}")?;
    /// let words = program.to_spirv(&options)?;
    /// assert_eq!(words[0], 0x0723_0203); // SPIR-V's magic number
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`UnsupportedFeatures`](crate::ShaderErrorKind::UnsupportedFeatures) for functions of `f64`
    /// that SPIR-V has for `f16` and `f32` only, and for cooperative matrices that are not among
    /// the options' `matrices`, that need more workgroup memory than there is, or whose workgroup
    /// size along x is not a multiple of 32. Otherwise as [`Program::to_kir`].
    pub fn to_spirv(&self, options: &SpirvOptions) -> Result<Vec<u32>> {
        let (words, _) = self.to_spirv_for(options.checked, |_| Ok::<_, ShaderError>(*options))?;
        Ok(words)
    }

    /// Writes the program as [`Program::to_spirv`] does, with options that depend on its control
    /// flow, and returns them too. The program is lowered once, before `choose` is called:
    /// `checked` must be that of the options that it returns.
    ///
    /// ```
    /// use scry_ir::{
    ///     FloatTypes, MatrixProducts, Program, ShaderError, SpirvOptions, SpirvWorkarounds,
    /// };
    ///
    /// let program = Program::parse("@compute @workgroup_size(1) fn main() {}")?;
    /// let (_, options) = program.to_spirv_for(true, |flow| {
    ///     Ok::<_, ShaderError>(SpirvOptions {
    ///         version: (1, 3),
    ///         checked: true,
    ///         native_workgroup_zeroing: false,
    ///         linearised: false,
    ///         workarounds: SpirvWorkarounds::default(),
    ///         reports_aborted_loops: false,
    ///         polls: flow.may_not_end,
    ///         matrices: MatrixProducts::empty(),
    ///         nan_preserving: FloatTypes::empty(),
    ///         max_workgroup_memory: 32 << 10,
    ///     })
    /// })?;
    /// assert!(!options.polls, "there is no loop");
    /// # Ok::<(), ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Program::to_spirv`], and those of `choose`.
    pub fn to_spirv_for<E: From<ShaderError> + Send>(
        &self,
        checked: bool,
        choose: impl FnOnce(ControlFlow) -> Result<SpirvOptions, E> + Send,
    ) -> Result<(Vec<u32>, SpirvOptions), E> {
        let (content, interface) = (self.content(), self.interface());
        guard::run(|| {
            let lowered = Lowered::new(content, checked)?;
            let options = match choose(lowered.flow) {
                Ok(options) => options,
                Err(error) => return Ok(Err(error)),
            };
            debug_assert_eq!(options.checked, checked, "clamps and loop bounds go together");
            Ok(Ok((emit(lowered.kernel(&options), interface, &options)?, options)))
        })?
    }
}

impl Kir {
    /// Writes the kernel as SPIR-V words. `interface` is that of the program that the kernel was
    /// lowered from: it has the types of the bindings.
    ///
    /// Indices are not checked beyond what the kernel itself does, but loops that are not proven to
    /// end are bounded, or poll, if `checked` of the options is true.
    ///
    /// ```
    /// use scry_ir::{
    ///     FloatTypes, MatrixProducts, Program, SpirvOptions, SpirvWorkarounds, kir::KirOptions,
    /// };
    ///
    /// let options = SpirvOptions {
    ///     version: (1, 5),
    ///     checked: true,
    ///     native_workgroup_zeroing: true,
    ///     linearised: false,
    ///     workarounds: SpirvWorkarounds::empty(),
    ///     reports_aborted_loops: false,
    ///     polls: false,
    ///     matrices: MatrixProducts::empty(),
    ///     nan_preserving: FloatTypes::empty(),
    ///     max_workgroup_memory: 32 << 10,
    /// };
    /// let program = Program::parse("@compute @workgroup_size(1) fn main() {}")?;
    /// let kir = program.to_kir(&KirOptions { checked: true })?;
    /// assert_eq!(kir.to_spirv(program.interface(), &options)?, program.to_spirv(&options)?);
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`UnsupportedFeatures`](crate::ShaderErrorKind::UnsupportedFeatures) for functions of `f64`
    /// that SPIR-V has for `f16` and `f32` only, and for cooperative matrices that are not among
    /// the options' `matrices`, that need more workgroup memory than there is, or whose workgroup
    /// size along x is not a multiple of 32.
    pub fn to_spirv(&self, interface: &Interface, options: &SpirvOptions) -> Result<Vec<u32>> {
        guard::run(|| {
            let kir = if options.strip_mines() { self.strip_mined() } else { Cow::Borrowed(self) };
            emit(&kir, interface, options)
        })
    }
}

/// Lowers a kernel whose long loops are split if the options ask for it.
fn emit(kir: &Kir, interface: &Interface, options: &SpirvOptions) -> Result<Vec<u32>> {
    if kir.has_matrices() {
        return emit_whole(&matrices::prepare(kir, interface, options)?, interface, options);
    }
    emit_whole(kir, interface, options)
}

/// Lowers a kernel whose matrices are loaded and stored whole.
fn emit_whole(kir: &Kir, interface: &Interface, options: &SpirvOptions) -> Result<Vec<u32>> {
    let mut emitter = Emitter::new(kir, interface, options);
    emitter.declare()?;
    emitter.prologue()?;
    emitter.block(&kir.body)?;
    Ok(emitter.finish())
}

/// A kernel being lowered.
struct Emitter<'k> {
    kir: &'k Kir,
    interface: &'k Interface,
    options: &'k SpirvOptions,
    m: Module,
    /// The id of each value, by index; 0 until it is computed.
    values: Vec<Id>,
    vars: Vec<Id>,
    views: Views,
    workgroup: Vec<ArrayVariable>,
    locals: Vec<ArrayVariable>,
    /// Uniform buffers and the immediates.
    words: Vec<Words>,
    /// Built-in variables of the stage.
    inputs: Vec<(BuiltIn, Id)>,
    /// Built-in values, which the prologue reads.
    builtins: Vec<(Builtin, Id)>,
    /// The loops and scopes around the current statement.
    constructs: Vec<Construct>,
    /// The variable that says that a label is being left, by label; 0 if there is none.
    leaving: Vec<Id>,
    /// The polls of loops that are not proven to end.
    polling: poll::Poll,
    /// Whether the current block has its terminator.
    terminated: bool,
    /// Whether the kernel needs a device with 16-bit floats, and with 16-bit integers. Otherwise
    /// their values are 32-bit words whose upper half is zero.
    native_f16: bool,
    native_u16: bool,
    /// Whether the kernel has cooperative matrices, and so the Vulkan memory model.
    has_matrices: bool,
    /// Whether barriers order storage buffers too.
    storage_is_shared: bool,
}

impl<'k> Emitter<'k> {
    fn new(kir: &'k Kir, interface: &'k Interface, options: &'k SpirvOptions) -> Self {
        Self {
            kir,
            interface,
            options,
            m: Module::new(kir.has_matrices()),
            values: vec![0; kir.values.len()],
            vars: Vec::new(),
            views: Views::default(),
            workgroup: Vec::new(),
            locals: Vec::new(),
            words: Vec::new(),
            inputs: Vec::new(),
            builtins: Vec::new(),
            constructs: Vec::new(),
            leaving: vec![0; kir.labels as usize],
            polling: poll::Poll::default(),
            terminated: false,
            native_f16: interface.features.contains(Features::F16) || needs_f16(kir),
            has_matrices: kir.has_matrices(),
            native_u16: interface.features.contains(Features::I16),
            storage_is_shared: memory::reads_what_it_writes(kir),
        }
    }

    fn finish(mut self) -> Vec<u32> {
        if self.terminated {
            let label = self.m.id();
            self.m.label(label);
        }
        let mut main = self.m.end_function();
        if self.options.reports_aborted_loops {
            main = self.with_loop_report(main);
        }
        let name = &self.interface.entry_point;
        self.m.finish(self.options, name, main, self.kir.workgroup_size)
    }

    fn ty(&self, value: Value) -> Type {
        self.kir.ty(value)
    }

    /// Returns the type of values of a type.
    fn spirv_ty(&mut self, ty: Type) -> Id {
        match ty {
            Type::Bool => self.m.bool_ty(),
            Type::Matrix(matrix) => self.matrix_ty(matrix),
            Type::F16 if !self.native_f16 => self.m.u32_ty(),
            Type::U16 | Type::I16 if !self.native_u16 => self.m.u32_ty(),
            _ if ty.is_float() => self.m.float(ty.bits()),
            _ => self.m.int(ty.bits()),
        }
    }

    /// Returns the id of a value.
    fn value(&mut self, value: Value) -> Id {
        match self.values[value.index()] {
            0 => {
                let constant = self.kir.constant(value);
                self.constant(constant.expect("a value is computed before it is used"))
            }
            id => id,
        }
    }

    fn constant(&mut self, constant: Const) -> Id {
        let ty = self.spirv_ty(constant.ty);
        let (low, high) = (constant.bits as u32, (constant.bits >> 32) as u32);
        match constant.ty {
            Type::Bool if low == 0 => self.m.constant(Op::ConstantFalse, ty, &[]),
            Type::Bool => self.m.constant(Op::ConstantTrue, ty, &[]),
            _ if constant.ty.size() == 8 => self.m.constant(Op::Constant, ty, &[low, high]),
            _ => self.m.constant(Op::Constant, ty, &[low]),
        }
    }

    /// Returns the integer constant of a type, its high bits cut off.
    fn int(&mut self, ty: Type, value: i64) -> Id {
        self.constant(Const::int(ty.to_unsigned(), value))
    }

    /// Emits an instruction whose result has the type `ty`.
    fn op(&mut self, op: Op, ty: Type, operands: &[Id]) -> Id {
        let ty = self.spirv_ty(ty);
        self.m.op(op, ty, operands)
    }

    /// Computes a value.
    pub(super) fn define(&mut self, value: Value) -> Result<()> {
        let inst = *self.kir.inst(value);
        let id = self.compute(value, &inst)?;
        self.values[value.index()] = id;
        Ok(())
    }

    fn compute(&mut self, value: Value, inst: &Inst) -> Result<Id> {
        let ty = self.ty(value);
        match *inst {
            Inst::Const(constant) => Ok(self.constant(constant)),
            Inst::Builtin(builtin) => Ok(self.builtin(builtin)),
            Inst::Unary(op, a) => self.unary(op, a),
            Inst::Binary(op, a, b) if op.is_comparison() => Ok(self.comparison(op, a, b)),
            Inst::Binary(op, a, b) => self.binary(op, a, b),
            Inst::Fma(a, b, c) => {
                let operands = [a, b, c].map(|value| self.value(value));
                let ty = self.spirv_ty(ty);
                Ok(self.m.glsl(GlslStd450Op::Fma, ty, &operands))
            }
            Inst::Select(condition, a, b) => {
                let operands = [condition, a, b].map(|value| self.value(value));
                Ok(self.op(Op::Select, ty, &operands))
            }
            Inst::Convert(a) => self.convert(ty, a),
            Inst::Bitcast(a) => Ok(self.bitcast(ty, a)),
            Inst::ArrayLength { binding, offset, stride } => {
                Ok(self.array_length(binding, offset, stride))
            }
            Inst::Get(var) => {
                let pointer = self.vars[var.index()];
                Ok(self.op(Op::Load, ty, &[pointer]))
            }
            Inst::Load { place, count } | Inst::WorkgroupUniformLoad { place, count } => {
                self.load(value, &place, count)
            }
            Inst::Extra(..) => Ok(self.value(value)),
            Inst::Atomic { op, place, value: operand, compare } => {
                self.atomic(ty, op, &place, operand, compare)
            }
            Inst::Subgroup(op) => self.subgroup(ty, &op),
            Inst::MatrixFill(element) => Ok(self.matrix_fill(ty, element)),
            Inst::MatrixLoad(place) => match ty {
                Type::Matrix(ty) => self.matrix_load(ty, &place),
                _ => not_covered(inst, ty),
            },
            Inst::MultiplyAdd(a, b, c) => Ok(self.multiply_add(ty, [a, b, c])),
            Inst::LoadFragment(_) | Inst::MultiplyFragments { .. } => not_covered(inst, ty),
        }
    }

    /// Returns a pointer to a part of a variable, by the variable and the indices.
    fn pointer_to(&mut self, class: StorageClass, ty: Id, chain: &[Id]) -> Id {
        let pointer = self.m.pointer(class, ty);
        self.m.op(Op::AccessChain, pointer, chain)
    }
}
