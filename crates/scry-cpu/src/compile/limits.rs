//! What the machine can hold, and how long a kernel takes.

use scry_ir::kir::{Block, Kir, Stmt};

use crate::code::{Code, Group, Refusal};

/// Bytes of local memory and variables that an invocation may have.
const LOCAL_BYTES: u64 = 256 << 10;

/// Bytes of registers that a thread may need.
const REGISTER_BYTES: u64 = 256 << 20;

/// Nanoseconds that a step takes, roughly: for the step, and for each of its blocks.
const STEP_COST: u64 = 3;
const BLOCK_COST: u64 = 1;

/// Groups of invocations that are executed together.
pub(super) fn group(kir: &Kir) -> Result<Group, Refusal> {
    let needed: u64 = kir.locals.iter().map(|array| array.size()).sum();
    if needed > LOCAL_BYTES {
        let what = "bytes of private arrays in an invocation".to_owned();
        return Err(Refusal { what, needed, limit: LOCAL_BYTES });
    }
    Ok(Group { size: kir.workgroup_size, batch: 1 })
}

/// Refuses code that needs more registers than a thread should have.
pub(super) fn check(code: &Code) -> Result<(), Refusal> {
    let needed = code.files.bytes() as u64;
    if needed > REGISTER_BYTES {
        let what = "bytes of values and private arrays in a workgroup".to_owned();
        return Err(Refusal { what, needed, limit: REGISTER_BYTES });
    }
    Ok(())
}

/// Roughly how long a workgroup takes, in nanoseconds, if it has no loops.
pub(super) fn cost(kir: &Kir, blocks: u32) -> Option<u64> {
    let step = STEP_COST + BLOCK_COST * u64::from(blocks);
    statements(&kir.body).map(|statements| statements * step)
}

fn statements(block: &Block) -> Option<u64> {
    block.iter().try_fold(0, |sum, stmt| {
        if matches!(stmt, Stmt::Loop { .. }) {
            return None;
        }
        stmt.blocks().try_fold(sum + 1, |sum, inner| Some(sum + statements(inner)?))
    })
}
