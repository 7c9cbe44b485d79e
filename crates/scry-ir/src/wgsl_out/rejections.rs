//! Rejects kernels that WGSL cannot express, with an error that names the missing feature.

use crate::kir::{
    AtomicOp, Barrier, Definition, GroupOperation, Inst, Kir, Reduction, Stmt, SubgroupOp, Type,
    any_stmt,
};
use crate::{Features, Interface, ShaderError, ShaderErrorKind};

/// Maximum nesting of statements in WGSL.
const MAX_DEPTH: usize = 127;

type Check = Result<(), ShaderError>;

/// Checks that WGSL has everything that the kernel uses.
pub(super) fn check(kir: &Kir, interface: &Interface) -> Check {
    if kir.buffers.len() != interface.bindings.len() {
        let (buffers, bindings) = (kir.buffers.len(), interface.bindings.len());
        return Err(ShaderError::compiler(format!(
            "Kir::to_wgsl: the kernel has {buffers} buffers, the interface {bindings}; help: pass \
             the interface of the program that the kernel was lowered from"
        )));
    }
    // Before the types: bounds checks of matrices in memory have 64-bit integers.
    let is_fragment = |value: &Definition| {
        matches!(value.inst, Inst::LoadFragment(_) | Inst::MultiplyFragments { .. })
    };
    if kir.has_matrices() || kir.values.iter().any(is_fragment) {
        return Err(cooperative_matrices());
    }
    let arrays = kir.workgroup.iter().chain(&kir.locals).map(|array| array.ty);
    arrays.chain(kir.vars.iter().copied()).try_for_each(check_type)?;
    kir.values.iter().try_for_each(|definition| check_value(kir, definition))?;
    if any_stmt(&kir.body, &mut |stmt| matches!(stmt, Stmt::Barrier(Barrier::Subgroup, _))) {
        return Err(not_in_wgsl("no subgroup barriers", "use workgroupBarrier() instead"));
    }
    let depth = 1 + kir.body.iter().map(brace_depth).max().unwrap_or(0);
    if depth > MAX_DEPTH {
        let message = format!(
            "statements are nested {depth} deep, and in WGSL at most {MAX_DEPTH}; help: split the \
             kernel, or nest fewer loops and branches"
        );
        return Err(ShaderError::new(ShaderErrorKind::TooComplex, message));
    }
    Ok(())
}

/// Returns the number of braces around the innermost statement. A scope counts twice: it becomes a
/// `switch` with one clause.
fn brace_depth(stmt: &Stmt) -> usize {
    let braces = match stmt {
        Stmt::Scope { .. } => 2,
        Stmt::If { .. } | Stmt::Loop { .. } => 1,
        _ => 0,
    };
    braces + stmt.blocks().flatten().map(brace_depth).max().unwrap_or(0)
}

/// The error for something that no flag of [`Features`] represents.
fn not_in_wgsl(what: &str, help: &str) -> ShaderError {
    let message = format!("WGSL has {what}; help: {help}");
    ShaderError::new(ShaderErrorKind::UnsupportedConstruct, message)
}

/// The error for optional features that WGSL lacks.
fn unsupported_error(features: Features, what: &str, help: &str) -> ShaderError {
    let message = format!("WGSL has no {what}; help: {help}");
    ShaderError::new(ShaderErrorKind::UnsupportedFeatures(features), message)
}

const OTHER_TARGETS: &str = "emit SPIR-V or PTX, or use 32-bit types";

/// Checks the type of a value, variable or array.
fn check_type(ty: Type) -> Check {
    match ty {
        Type::F64 => Err(unsupported_error(Features::F64, "64-bit floats (f64)", OTHER_TARGETS)),
        Type::I64 | Type::U64 => {
            Err(unsupported_error(Features::I64, "64-bit integers (i64, u64)", OTHER_TARGETS))
        }
        _ => Ok(()),
    }
}

fn cooperative_matrices() -> ShaderError {
    unsupported_error(
        Features::COOPERATIVE_MATRIX,
        "cooperative matrices",
        "emit PTX, or multiply tiles in workgroup memory",
    )
}

fn check_value(kir: &Kir, Definition { ty, inst }: &Definition) -> Check {
    check_type(*ty)?;
    match inst {
        Inst::LoadFragment(_) | Inst::MultiplyFragments { .. } => Err(cooperative_matrices()),
        Inst::Atomic { .. } if *ty == Type::F32 => Err(unsupported_error(
            Features::F32_ATOMICS,
            "atomics of floats (atomic<f32>)",
            "use atomic<u32> and atomicCompareExchangeWeak on the bits",
        )),
        Inst::Atomic { op: AtomicOp::Store, value: Some(stored), .. } => {
            check_type(kir.ty(*stored))
        }
        Inst::Subgroup(SubgroupOp::Reduce { op, group, .. }) => check_reduction(*op, *group, *ty),
        _ => Ok(()),
    }
}

fn check_reduction(op: Reduction, group: GroupOperation, ty: Type) -> Check {
    match (op, group) {
        (Reduction::Xor, _) if ty == Type::Bool => {
            let help = "reduce u32 values of 0 and 1";
            Err(not_in_wgsl("no exclusive disjunction of bools over a subgroup", help))
        }
        (_, GroupOperation::Reduce) | (Reduction::Add | Reduction::Mul, _) => Ok(()),
        _ => {
            let help = "scan in workgroup memory";
            Err(not_in_wgsl("prefix scans over a subgroup for sums and products only", help))
        }
    }
}
