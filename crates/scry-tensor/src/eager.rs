//! The short path of eager operations on one or two tensors: a lookup of the kernel, which the
//! first of each kind compiles, and its launch, without building the map. Others use the general
//! path ([`Op::run`](crate::op::Op::run)), which also reports errors of shapes.

use std::collections::HashMap;
use std::sync::Arc;

use arrayvec::ArrayVec;
use scry_gpu::{Binding, Kernel, Launch};

use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::expr::Map;
use crate::lower::{Access, MIN_UNROLLED, elements_per_word, for_each_axis};
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape, broadcast, check_count};
use crate::stored::{Stored, check_device};

/// The most operands of the short path.
pub(crate) const MAX_OPERANDS: usize = 2;

/// The most axes of a result of the short path, after axes are merged.
const MAX_AXES: usize = 4;

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

/// The classes of sizes and strides that have kernels of their own: see
/// [`Classes`](crate::lower::Classes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EagerClasses {
    pub(crate) rank: u32,
    pub(crate) operands: [Access; MAX_OPERANDS],
}

/// A kernel of the short path.
pub(crate) struct EagerKernel {
    pub(crate) kernel: Kernel,
    pub(crate) has_opaque: bool,
}

/// The kernels of the short path.
pub(crate) type EagerKernels = HashMap<(EagerKey, EagerClasses), Arc<EagerKernel>>;

/// The coordinates of a result, and where operands are read for each, without allocations: an
/// [`Iteration`](crate::lower::Iteration) of a few axes.
#[derive(Default)]
struct Walk {
    sizes: ArrayVec<u32, MAX_AXES>,
    strides: [ArrayVec<u32, MAX_AXES>; MAX_OPERANDS],
}

impl Walk {
    /// Merges the axes of operands that are broadcast to a shape; `None` if there are too many.
    fn new(shape: &Shape, operands: &[&Arc<Stored>]) -> Option<Self> {
        let stride = |n: usize, axis: usize| {
            let layout = &operands[n].layout;
            let own = (axis + layout.shape.rank()).checked_sub(shape.rank());
            own.filter(|own| layout.shape[*own] != 1).map_or(0, |own| layout.strides[own])
        };
        let (mut walk, mut is_full) = (Self::default(), false);
        for_each_axis(shape, operands.len(), stride, |axis, merges| {
            let size = shape[axis] as u32;
            match walk.sizes.last_mut().filter(|_| merges) {
                Some(last) => *last *= size,
                None => is_full |= walk.sizes.try_push(size).is_err(),
            }
            for (n, strides) in walk.strides.iter_mut().enumerate().take(operands.len()) {
                if merges {
                    strides.pop();
                }
                // Two's complement of negative ones: positions wrap.
                is_full |= strides.try_push(stride(n, axis) as u32).is_err();
            }
        });
        (!is_full).then_some(walk)
    }

    /// Returns how an operand is accessed.
    fn access(&self, operand: usize) -> Access {
        let strides = &self.strides[operand];
        let mut expected = 1u32;
        let mut is_contiguous = true;
        for (size, stride) in self.sizes.iter().zip(strides).rev() {
            is_contiguous &= *stride == expected;
            expected = expected.wrapping_mul(*size);
        }
        match is_contiguous {
            true => Access::Linear,
            false if strides.iter().all(|stride| *stride == 0) => Access::Uniform,
            false => Access::Strided,
        }
    }

    fn classes(&self, operands: usize) -> EagerClasses {
        let mut classes = EagerClasses { rank: 0, operands: [Access::Linear; MAX_OPERANDS] };
        for (n, access) in classes.operands.iter_mut().enumerate().take(operands) {
            *access = self.access(n);
        }
        if classes.operands.contains(&Access::Strided) {
            classes.rank = self.sizes.len() as u32;
        }
        classes
    }
}

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
    if operands.len() > MAX_OPERANDS {
        return Ok(None);
    }
    let Some(shape) = result_shape(call, operands) else { return Ok(None) };
    let runtime = &first.runtime;
    for other in others {
        check_device(call, runtime, &other.runtime)?;
    }
    let count = check_count(call, &shape, key.output)?;
    let Some(walk) = Walk::new(&shape, operands) else { return Ok(None) };
    let words = count.div_ceil(elements_per_word(key.output));
    let limit = runtime.max_binding();
    if !(1..MIN_UNROLLED).contains(&words)
        || u64::from(words) * 4 > limit
        || operands.iter().any(|it| it.buffer.byte_size() > limit)
    {
        return Ok(None);
    }
    let classes = walk.classes(operands.len());
    let found = runtime.eager_kernel((key, classes), map, operands.len());
    let Some(found) = found.map_err(|error| call.gpu(error))? else { return Ok(None) };
    let mut parameters = Vec::with_capacity(64);
    let mut add = |word: u32| parameters.extend_from_slice(&word.to_ne_bytes());
    add(words);
    walk.sizes.iter().take(classes.rank as usize).for_each(|size| add(*size));
    for (n, operand) in operands.iter().enumerate() {
        add(operand.layout.offset as u32);
        if classes.operands[n] == Access::Strided {
            walk.strides[n].iter().for_each(|stride| add(*stride));
        }
    }
    arguments.iter().for_each(|argument| add(*argument));
    if found.has_opaque {
        add(0);
    }
    let launch = Launch::invocations(words).immediate_bytes(parameters);
    let submitted = submit(runtime, &found.kernel, operands, words as usize * 4, launch);
    let buffer = submitted.map_err(|error| call.gpu(error))?;
    let layout = Layout::contiguous(shape);
    Ok(Some(Stored { runtime: runtime.clone(), buffer, layout, dtype: key.output }))
}

/// Returns the shape of a result with elements; `None` if there is none.
fn result_shape(call: Call, operands: &[&Arc<Stored>]) -> Option<Shape> {
    let shape = match operands {
        [one] => one.shape().clone(),
        [a, b] if a.shape() == b.shape() => a.shape().clone(),
        _ => {
            let [a, b] = operands else { return None };
            broadcast(call, &[a.shape(), b.shape()]).ok()?
        }
    };
    (!shape.contains(&0)).then_some(shape)
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
