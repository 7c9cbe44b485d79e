//! The fast path of eager operations, on elements in row-major order of one shape: a lookup of the
//! kernel, which the first of each kind compiles, and its launch. Others take the general path
//! ([`Op::run`](crate::op::Op::run)).

use std::collections::HashMap;
use std::sync::Arc;

use scry_gpu::{Binding, Kernel, Launch};

use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::expr::Map;
use crate::lower::{MIN_UNROLLED, elements_per_word};
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape, check_count};
use crate::stored::{Stored, check_device};

/// The most operands of the short path.
pub(crate) const MAX_OPERANDS: usize = 2;

/// What identifies the map of an operation: its function, by address, and the types. Functions with
/// one address compute the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EagerKey {
    pub(crate) function: usize,
    pub(crate) dtype: DType,
    pub(crate) output: DType,
    /// Whether each operand is a number.
    pub(crate) is_number: [bool; MAX_OPERANDS],
}

/// A kernel of operands in row-major order.
pub(crate) struct EagerKernel {
    pub(crate) kernel: Kernel,
    pub(crate) has_opaque: bool,
}

/// The kernels of the short path.
pub(crate) type EagerKernels = HashMap<EagerKey, Arc<EagerKernel>>;

/// Computes an operation, if it has a short path. `map` returns its map when its kernel is first
/// needed.
pub(crate) fn run(
    call: Call,
    key: EagerKey,
    operands: &[&Arc<Stored>],
    arguments: &[u32],
    map: impl FnOnce() -> Map,
) -> Result<Option<Stored>> {
    let Some((first, others)) = operands.split_first() else { return Ok(None) };
    let shape = first.shape();
    let is_packed = |it: &&Arc<Stored>| it.shape() == shape && it.layout.is_contiguous();
    if operands.len() > MAX_OPERANDS || !operands.iter().all(is_packed) || shape.contains(&0) {
        return Ok(None);
    }
    let runtime = &first.runtime;
    for other in others {
        check_device(call, runtime, &other.runtime)?;
    }
    let count = check_count(call, shape, key.output)?;
    let words = count.div_ceil(elements_per_word(key.output));
    if words >= MIN_UNROLLED {
        return Ok(None);
    }
    let limit = runtime.max_binding();
    if u64::from(words) * 4 > limit || operands.iter().any(|it| it.buffer.byte_size() > limit) {
        return Ok(None);
    }
    let Some(found) =
        runtime.eager_kernel(key, map, operands.len()).map_err(|error| call.gpu(error))?
    else {
        return Ok(None);
    };
    let mut parameters = Vec::with_capacity(4 * (2 + operands.len() + arguments.len()));
    let mut add = |word: u32| parameters.extend_from_slice(&word.to_ne_bytes());
    add(words);
    operands.iter().for_each(|operand| add(operand.layout.offset as u32));
    arguments.iter().for_each(|argument| add(*argument));
    if found.has_opaque {
        add(0);
    }
    let launch = Launch::invocations(words).immediate_bytes(parameters);
    let submitted = submit(runtime, &found.kernel, operands, words as usize * 4, launch);
    let buffer = submitted.map_err(|error| call.gpu(error))?;
    let layout = Layout::contiguous(Shape::clone(shape));
    Ok(Some(Stored { runtime: runtime.clone(), buffer, layout, dtype: key.output }))
}

/// Launches a kernel with a result of a number of bytes.
fn submit(
    runtime: &Runtime,
    kernel: &Kernel,
    operands: &[&Arc<Stored>],
    bytes: usize,
    launch: Launch,
) -> scry_gpu::Result<scry_gpu::UntypedBuffer> {
    let result = runtime.result(bytes)?;
    let mut bindings: [&dyn Binding; 1 + MAX_OPERANDS] = [&result; 1 + MAX_OPERANDS];
    for (binding, operand) in bindings[1..].iter_mut().zip(operands) {
        *binding = &operand.buffer;
    }
    runtime.device().run(kernel, &bindings[..=operands.len()], launch)?;
    Ok(result)
}
