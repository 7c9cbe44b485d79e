//! Lowering from the kernel IR to PTX.
//!
//! `entry` emits the prologue and lays out the kernel's memory; `control` lowers statements; the
//! other files lower values, by topic. Freedoms that the kernel IR leaves are used for speed:
//! multiply-adds are contracted, and without PDL read-only memory is read through the
//! non-coherent cache (`ld.global.nc`).

mod arith;
mod atomic;
mod bits;
mod compare;
mod control;
mod converge;
mod convert;
mod divide;
mod entry;
mod indirect;
mod ldmatrix;
mod math;
mod memory;
mod mma;
mod poll;
mod reduce;
mod subgroup;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use scry_ir::GridSource;
use scry_ir::kir::{Const, Inst, Kir, Type, Value, Var};

use self::mma::Product;

use crate::asm::Label;
use crate::body::Body;
use crate::module::{KernelParam, PtxEntry, PtxModule};
use crate::target::{Target, Version};
use crate::types::{Operand, PtxType, Reg};

/// Options for the translation of a kernel.
#[derive(Debug, Clone)]
pub struct PtxOptions {
    /// The target.
    pub target: Target,
    /// The source of the grid size. With `Linearised`, surplus blocks exit. With `Counts`, the
    /// kernel is launched with any number of blocks along x that are resident at once, and each
    /// block loops over workgroups.
    pub grid: GridSource,
    /// Whether the kernel polls for cancellation: in loops that are not proven to end soon, and,
    /// with `Counts`, between workgroups.
    pub poll_cancellation: bool,
    /// Whether registers are limited so that a multiprocessor holds [`MIN_RESIDENT_THREADS`],
    /// rounded down to whole blocks, of which at most 16 count.
    /// Without the limit, the registers that ptxas allocates may reduce occupancy until it no
    /// longer hides memory latency; a kernel that needs more registers has to be compiled without
    /// the limit.
    pub limit_registers: bool,
    /// Whether the kernel may start while the launch before it ends (PDL, from `sm_90` on). That
    /// costs each block time: it is for kernels of few blocks.
    pub pdl: bool,
}

/// Resident threads per multiprocessor that the register limit makes room for, rounded down to
/// whole blocks: 128 of 64 Ki registers for each. A single block needs no limit other than that of
/// its size.
pub const MIN_RESIDENT_THREADS: u32 = 512;

impl PtxOptions {
    /// Returns options for a target and direct launches, without polls, limit of registers and PDL.
    #[must_use]
    pub const fn new(target: Target) -> Self {
        Self {
            target,
            grid: GridSource::Native,
            poll_cancellation: false,
            limit_registers: false,
            pdl: false,
        }
    }
}

/// The number of resident blocks that the multiprocessors of all targets support.
const MAX_BLOCKS: u32 = 16;

/// A parameter of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// The address of a buffer, by its position in the interface; 8 bytes.
    Buffer(u32),
    /// The number of elements of a buffer's runtime-sized array, at most 2^32 - 1; 4 bytes. The
    /// host computes it for each launch.
    Length {
        /// The buffer, by its position in the interface.
        buffer: u32,
        /// Bytes before the first element.
        offset: u32,
        /// Bytes from one element to the next.
        stride: u32,
    },
    /// The address of a buffer that holds [`scry_ir::LinearisedGrid`]; 8 bytes.
    LinearisedGrid,
    /// The address of three `u32`, the workgroups along x, y and z, constant while the kernel
    /// runs; 8 bytes.
    WorkgroupCounts,
    /// The immediates, of this many bytes.
    Immediates(u32),
    /// The address of three `u64` in device memory: the index of the current launch; and what
    /// kernels write when they read the last cancelled launch, initially 0; 8 bytes.
    Epoch,
    /// The address of a `u64` in host memory: launches up to this index are cancelled; 8 bytes.
    CancelledEpoch,
}

impl Param {
    /// Returns the number of elements in a buffer of this many bytes, if this is a length; else 0.
    #[must_use]
    pub fn elements(self, bytes: u64) -> u32 {
        let Self::Length { offset, stride, .. } = self else { return 0 };
        let count = bytes.saturating_sub(offset.into()) / u64::from(stride);
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// A translated kernel.
#[derive(Debug, Clone)]
pub struct Ptx {
    /// The module: one kernel.
    pub text: String,
    /// The kernel's name in it.
    pub entry: String,
    /// The parameters of a launch, in order.
    pub params: Vec<Param>,
    /// Bytes of dynamic shared memory of a launch; 0 if shared memory is declared statically.
    pub dynamic_shared: u32,
    /// The version of the language.
    pub version: Version,
}

/// Lowers a kernel to PTX. All targets support all kernels: missing instructions are emulated.
#[must_use]
pub fn translate(kir: &Kir, options: &PtxOptions) -> Ptx {
    if kir.has_matrices() {
        return translate(&kir.with_fragments(&mma::FRAGMENTS), options);
    }
    // Long loops become nests whose outer loops poll.
    let mined = if options.poll_cancellation { kir.strip_mined() } else { Cow::Borrowed(kir) };
    let mut lowering = Lowering::new(&mined, options);
    match options.grid {
        GridSource::Counts => lowering.workgroup_loop(),
        GridSource::Native | GridSource::Linearised => {
            lowering.entry();
            lowering.block(&mined.body);
        }
    }
    lowering.finish()
}

/// A kernel being translated.
struct Lowering<'k> {
    kir: &'k Kir,
    options: &'k PtxOptions,
    b: Body,
    entry: entry::Entry,
    /// The operand of each value, by index; `None` until it is computed.
    values: Vec<Option<Operand>>,
    vars: Vec<Reg>,
    /// Number of uses of each value.
    uses: Vec<u32>,
    convergence: converge::Convergence,
    /// Exit labels of loops and scopes, and of the kernel if it loops over workgroups.
    ends: Vec<Option<Label>>,
}

impl<'k> Lowering<'k> {
    fn new(kir: &'k Kir, options: &'k PtxOptions) -> Self {
        let mut b = Body::new(options.target);
        let vars = kir.vars.iter().map(|ty| b.reg(ptx_type(*ty))).collect();
        Self {
            kir,
            options,
            b,
            entry: entry::Entry::default(),
            values: vec![None; kir.values.len()],
            vars,
            uses: control::count_uses(kir),
            convergence: converge::Convergence::of(kir),
            ends: vec![None; kir.labels as usize],
        }
    }

    fn finish(mut self) -> Ptx {
        self.b.ret();
        let mut kernel = PtxEntry::new(
            &identifier(&self.kir.name),
            self.options.target,
            self.kir.workgroup_size,
        );
        kernel.params = self.entry.params.iter().map(declare).collect();
        if self.options.limit_registers {
            let threads: u32 = self.kir.workgroup_size.iter().product();
            let blocks = (MIN_RESIDENT_THREADS / threads).min(MAX_BLOCKS);
            kernel.min_blocks = Some(blocks).filter(|blocks| *blocks > 1);
        }
        kernel.body = self.b;
        let entry = kernel.name.clone();
        let module = PtxModule::new(self.options.target).with(kernel);
        Ptx {
            version: module.version(),
            text: module.to_string(),
            entry,
            params: self.entry.params,
            dynamic_shared: self.entry.dynamic_shared,
        }
    }

    fn ty(&self, value: Value) -> Type {
        self.kir.ty(value)
    }

    /// Returns a value's operand: a register, or an immediate where instructions accept one.
    fn value(&self, value: Value) -> Operand {
        self.values[value.index()].expect("a value is computed before it is used")
    }

    /// Returns a register that holds a value.
    fn reg(&mut self, value: Value) -> Reg {
        let operand = self.value(value);
        self.b.in_register(operand)
    }

    fn var(&self, var: Var) -> Reg {
        self.vars[var.index()]
    }

    /// Computes a value.
    fn define(&mut self, value: Value) {
        let inst = *self.kir.inst(value);
        let result = self.compute(value, &inst);
        self.values[value.index()] = Some(result);
    }

    fn compute(&mut self, value: Value, inst: &Inst) -> Operand {
        let ty = self.ty(value);
        match *inst {
            Inst::Const(constant) => self.constant(constant),
            Inst::Builtin(builtin) => self.builtin(builtin),
            Inst::Unary(op, a) => self.unary(op, a).into(),
            Inst::Binary(op, a, b) if op.is_comparison() => self.comparison(op, a, b, true).into(),
            Inst::Binary(op, a, b) => self.binary(op, a, b).into(),
            Inst::Fma(a, b, c) => self.fma(ty, a, b, c).into(),
            Inst::Select(condition, a, b) => match self.nan_extremum(condition, a, b) {
                Some((name, [a, b])) => self.same_type_op(name, a, b).into(),
                None => self.select(ty, condition, a, b).into(),
            },
            Inst::Convert(a) => self.convert(ty, a),
            Inst::Bitcast(a) => self.bitcast(ty, a),
            Inst::ArrayLength { binding, offset, stride } => {
                self.array_length(binding, offset, stride)
            }
            Inst::Get(var) => {
                let held = self.var(var).into();
                self.b.copy(ptx_type(ty), held).into()
            }
            Inst::Load { place, count } | Inst::WorkgroupUniformLoad { place, count } => {
                self.load(value, &place, count)
            }
            Inst::Extra(..) => self.value(value),
            Inst::Atomic { op, place, value: operand, compare } => {
                self.atomic(value, op, &place, operand, compare).into()
            }
            Inst::Subgroup(op) => self.subgroup(value, &op),
            Inst::MatrixFill(_) | Inst::MatrixLoad(_) | Inst::MultiplyAdd(..) => {
                unreachable!("matrices are replaced by fragments")
            }
            Inst::LoadFragment(from) => {
                self.load_fragment(value, &from);
                self.value(value)
            }
            Inst::MultiplyFragments { a, b, c } => {
                self.multiply_add(value, Product { a, b, c });
                self.value(value)
            }
        }
    }

    /// Constants are immediates, except bools and 16-bit floats.
    fn constant(&mut self, constant: Const) -> Operand {
        let ty = ptx_type(constant.ty);
        let operand = Operand::Imm { bits: constant.bits, ty };
        match ty {
            PtxType::Pred | PtxType::F16 => {
                let bits = Operand::Imm { bits: constant.bits, ty: PtxType::U16 };
                self.b.copy(ty, bits).into()
            }
            _ => operand,
        }
    }
}

/// Returns the PTX type of values of a type.
const fn ptx_type(ty: Type) -> PtxType {
    match ty {
        Type::Bool => PtxType::Pred,
        Type::I16 => PtxType::S16,
        Type::U16 => PtxType::U16,
        Type::I32 => PtxType::S32,
        Type::U32 => PtxType::U32,
        Type::I64 => PtxType::S64,
        Type::U64 => PtxType::U64,
        Type::F16 => PtxType::F16,
        Type::F32 => PtxType::F32,
        Type::F64 => PtxType::F64,
        Type::Matrix(_) => panic!("matrices are replaced by fragments"),
    }
}

/// Returns a valid PTX identifier: WGSL allows letters of all scripts.
fn identifier(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if plain && first { name.to_owned() } else { format!("kernel_{}", escape(name)) }
}

fn escape(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars()
        .map(|c| if plain(c) { c.to_string() } else { format!("${:x}", c as u32) })
        .collect()
}

/// Declares a parameter.
fn declare(param: &Param) -> KernelParam {
    let name = entry::name(*param);
    match *param {
        Param::Buffer(_)
        | Param::LinearisedGrid
        | Param::WorkgroupCounts
        | Param::Epoch
        | Param::CancelledEpoch => KernelParam::Pointer { name },
        Param::Length { .. } => KernelParam::Scalar { name, ty: PtxType::U32 },
        Param::Immediates(bytes) => KernelParam::Bytes { name, bytes },
    }
}
