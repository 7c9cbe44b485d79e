//! Limits the size of a kernel, so that compiling it needs bounded time, memory and stack.

use super::{invalid, too_complex};
use crate::ShaderError;
use crate::kir::{Array, Block, Kir, Stmt, Type};

/// Maximum number of values, and of statements, where each value that is stored counts as one more.
const MAX_WORK: u64 = 1 << 19;
/// Maximum nesting of blocks, of which the kernel's body is the first. WebAssembly has no larger
/// stack than the caller's.
const MAX_DEPTH: u64 = if cfg!(target_arch = "wasm32") { 500 } else { 1000 };
/// Maximum number of invocations of a workgroup. Devices allow fewer.
const MAX_INVOCATIONS: u64 = 1 << 16;
/// Maximum number of buffers. Devices allow fewer.
const MAX_BUFFERS: u64 = 1 << 10;
/// Maximum number of arrays in workgroup memory, and of local arrays.
const MAX_ARRAYS: u64 = 1 << 12;
/// Maximum number of variables.
const MAX_VARS: u64 = 1 << 16;
/// Maximum number of labels.
const MAX_LABELS: u64 = 1 << 16;
/// Maximum product of variables and labels: analyses have a bit for each pair.
const MAX_PAIRS: u64 = 1 << 28;
/// Maximum size of the immediates in bytes. Devices allow fewer.
const MAX_IMMEDIATES: u64 = 1 << 12;
/// Maximum size of the local arrays of an invocation in bytes.
const MAX_LOCAL_BYTES: u64 = 1 << 20;
/// Maximum size of workgroup memory in bytes. Devices allow fewer.
const MAX_WORKGROUP_BYTES: u64 = 1 << 24;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 256;

/// Checks the limits. Does not recurse, and follows no reference to a value, variable or label,
/// since the kernel has not been verified yet.
pub(super) fn check(kir: &Kir) -> Result<(), ShaderError> {
    check_name("the kernel's name", &kir.name)?;
    for (nth, buffer) in kir.buffers.iter().enumerate() {
        check_name(&format!("the name of binding{nth}"), &buffer.name)?;
    }
    let invocations =
        kir.workgroup_size.iter().fold(1u64, |product, n| product.saturating_mul((*n).into()));
    at_most("invocations in a workgroup", invocations, MAX_INVOCATIONS)?;
    at_most("values", kir.values.len() as u64, MAX_WORK)?;
    at_most("buffers", kir.buffers.len() as u64, MAX_BUFFERS)?;
    at_most("bytes of immediates", kir.immediates.into(), MAX_IMMEDIATES)?;
    at_most("arrays in workgroup memory", kir.workgroup.len() as u64, MAX_ARRAYS)?;
    at_most("arrays of an invocation", kir.locals.len() as u64, MAX_ARRAYS)?;
    at_most("bytes of workgroup memory", bytes(&kir.workgroup), MAX_WORKGROUP_BYTES)?;
    at_most("bytes of arrays of an invocation", bytes(&kir.locals), MAX_LOCAL_BYTES)?;
    let (vars, labels) = (kir.vars.len() as u64, u64::from(kir.labels));
    at_most("variables", vars, MAX_VARS)?;
    at_most("labels", labels, MAX_LABELS)?;
    at_most("pairs of a variable and a label", vars * labels, MAX_PAIRS)?;
    check_statements(&kir.body)
}

/// Checks the number of statements, and their nesting.
fn check_statements(body: &Block) -> Result<(), ShaderError> {
    let mut count = 0;
    let mut open = vec![(body, 1)];
    while let Some((block, depth)) = open.pop() {
        at_most("nested blocks", depth, MAX_DEPTH)?;
        for stmt in block {
            count += 1;
            if let Stmt::Store { values, .. } = stmt {
                count += values.len() as u64;
            }
            open.extend(stmt.blocks().map(|inner| (inner, depth + 1)));
        }
        at_most("statements", count, MAX_WORK)?;
    }
    Ok(())
}

/// Returns the size of arrays in bytes as WebGPU counts it: each is rounded up to 16 bytes, and a
/// bool is 4 bytes.
pub(super) fn bytes(arrays: &[Array]) -> u64 {
    let array_bytes = |array: &Array| {
        let element = if array.ty == Type::Bool { 4 } else { array.ty.size() };
        (u64::from(element) * u64::from(array.len)).next_multiple_of(16)
    };
    // The number of arrays is limited, so the sum does not overflow.
    arrays.iter().map(array_bytes).sum()
}

fn at_most(what: &str, found: u64, limit: u64) -> Result<(), ShaderError> {
    if found <= limit {
        return Ok(());
    }
    Err(too_complex(format!("the kernel has {found} {what}, more than the limit of {limit}")))
}

/// Checks a name, which becomes part of generated code.
fn check_name(what: &str, name: &str) -> Result<(), ShaderError> {
    let is_start_valid = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_alphanumeric = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_start_valid && is_alphanumeric && name.len() <= MAX_NAME {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    Err(invalid(format!(
        "{what}, {shown:?}, is not an identifier of at most {MAX_NAME} bytes: a letter or `_`, \
         then letters, digits and `_`"
    )))
}
