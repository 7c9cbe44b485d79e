//! Limits of a kernel's size, so that compiling it needs bounded time, memory and stack.

use super::{invalid, too_complex};
use crate::ShaderError;
use crate::kir::{Array, Block, Kir, Stmt, Type};

/// Maximum values, and maximum statements with the values that they store.
const MAX_WORK: u64 = 1 << 19;
/// Maximum nesting of blocks.
const MAX_DEPTH: u64 = 1000;
/// Maximum invocations of a workgroup. Devices allow fewer.
const MAX_INVOCATIONS: u64 = 1 << 16;
/// Maximum buffers. Devices allow fewer.
const MAX_BUFFERS: u64 = 1 << 10;
/// Maximum arrays in workgroup memory, and in the memory of an invocation.
const MAX_ARRAYS: u64 = 1 << 12;
/// Maximum variables.
const MAX_VARS: u64 = 1 << 16;
/// Maximum labels.
const MAX_LABELS: u64 = 1 << 16;
/// Maximum product of variables and labels: analyses have a bit for each pair.
const MAX_PAIRS: u64 = 1 << 28;
/// Maximum bytes of immediates. Devices allow fewer.
const MAX_IMMEDIATES: u64 = 1 << 12;
/// Maximum bytes of the arrays of an invocation.
const MAX_LOCAL_BYTES: u64 = 1 << 20;
/// Maximum bytes of workgroup memory. Devices allow fewer.
const MAX_WORKGROUP_BYTES: u64 = 1 << 24;
/// Maximum characters of a name.
const MAX_NAME: usize = 256;

/// Checks the limits. Does not recurse, and follows no reference to a value, variable or label.
pub(super) fn check(kir: &Kir) -> Result<(), ShaderError> {
    name("the kernel's name", &kir.name)?;
    for (nth, buffer) in kir.buffers.iter().enumerate() {
        name(&format!("the name of binding{nth}"), &buffer.name)?;
    }
    let invocations =
        kir.workgroup_size.iter().fold(1u64, |all, n| all.saturating_mul((*n).into()));
    most("invocations in a workgroup", invocations, MAX_INVOCATIONS)?;
    most("values", kir.values.len() as u64, MAX_WORK)?;
    most("buffers", kir.buffers.len() as u64, MAX_BUFFERS)?;
    most("bytes of immediates", kir.immediates.into(), MAX_IMMEDIATES)?;
    most("arrays in workgroup memory", kir.workgroup.len() as u64, MAX_ARRAYS)?;
    most("arrays of an invocation", kir.locals.len() as u64, MAX_ARRAYS)?;
    most("bytes of workgroup memory", bytes(&kir.workgroup), MAX_WORKGROUP_BYTES)?;
    most("bytes of arrays of an invocation", bytes(&kir.locals), MAX_LOCAL_BYTES)?;
    let (vars, labels) = (kir.vars.len() as u64, u64::from(kir.labels));
    most("variables", vars, MAX_VARS)?;
    most("labels", labels, MAX_LABELS)?;
    most("pairs of a variable and a label", vars * labels, MAX_PAIRS)?;
    statements(&kir.body)
}

/// Counts statements and their nesting.
fn statements(body: &Block) -> Result<(), ShaderError> {
    let mut count = 0;
    let mut open = vec![(body, 1)];
    while let Some((block, depth)) = open.pop() {
        most("nested blocks", depth, MAX_DEPTH)?;
        for stmt in block {
            count += 1;
            if let Stmt::Store { values, .. } = stmt {
                count += values.len() as u64;
            }
            open.extend(stmt.blocks().map(|inner| (inner, depth + 1)));
        }
        most("statements", count, MAX_WORK)?;
    }
    Ok(())
}

/// Returns the bytes of arrays, each in whole blocks of 16 bytes, bools as words.
pub(super) fn bytes(arrays: &[Array]) -> u64 {
    let bytes = |array: &Array| {
        let element = if array.ty == Type::Bool { 4 } else { array.ty.size() };
        (u64::from(element) * u64::from(array.len)).next_multiple_of(16)
    };
    // There are few enough arrays: the sum fits.
    arrays.iter().map(bytes).sum()
}

fn most(what: &str, found: u64, limit: u64) -> Result<(), ShaderError> {
    if found <= limit {
        return Ok(());
    }
    Err(too_complex(format!("the kernel has {found} {what}, more than the limit of {limit}")))
}

/// Checks a name, which becomes part of generated code.
fn name(what: &str, name: &str) -> Result<(), ShaderError> {
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if starts && plain && name.len() <= MAX_NAME {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    Err(invalid(format!(
        "{what}, {shown:?}, is not an identifier of at most {MAX_NAME} bytes: a letter or `_`, \
         then letters, digits and `_`"
    )))
}
