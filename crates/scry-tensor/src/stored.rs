//! Elements in memory: a buffer, an element type, and a layout. Computed eagerly.

use std::sync::Arc;

use scry_gpu::UntypedBuffer;

use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};
use crate::expr::{Expression, Map};
use crate::lower::GatherAxis;
use crate::runtime::{MapLaunch, Runtime};
use crate::scalar;
use crate::shape::{Layout, Shape, check_count};
use crate::sharding::{self, MapShards};

/// Elements of one type in a buffer of a device.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) runtime: Arc<Runtime>,
    /// The elements, padded to words of 4 bytes, or the blocks of quantised weights.
    pub(crate) buffer: UntypedBuffer,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
}

impl Stored {
    pub(crate) fn shape(&self) -> &Shape {
        &self.layout.shape
    }

    /// Returns the same elements with another layout.
    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        Self { layout, ..self.clone() }
    }

    /// Returns whether the first element is at the start of the buffer, and no gaps follow.
    pub(crate) fn is_packed(&self) -> bool {
        self.layout.is_contiguous() && self.layout.offset == 0
    }

    /// Returns the same elements in row-major order without gaps, copied if necessary.
    pub(crate) fn contiguous(&self, call: Call) -> Result<Self> {
        if self.needs_no_copy() { Ok(self.clone()) } else { self.copied(call) }
    }

    /// Returns whether the elements are in row-major order without gaps.
    pub(crate) fn needs_no_copy(&self) -> bool {
        self.layout.is_contiguous() || self.dtype.is_quantized()
    }

    /// Returns the elements in row-major order in a buffer of their own.
    pub(crate) fn copied(&self, call: Call) -> Result<Self> {
        let map = Map::copy(self.dtype);
        let operands = vec![(self, self.layout.clone())];
        let shape = self.shape().clone();
        Computation { map: &map, shape, operands, gathered: None, arguments: &[] }
            .run(call, &self.runtime)
    }

    /// Returns one element, the first in a word of memory, repeated.
    pub(crate) fn repeated(
        call: Call,
        runtime: &Arc<Runtime>,
        shape: Shape,
        dtype: DType,
        word: u32,
    ) -> Result<Self> {
        let word = word.to_ne_bytes();
        let buffer = runtime.device().upload_bytes(None, &word).map_err(|error| call.gpu(error))?;
        Ok(Self { runtime: runtime.clone(), buffer, layout: Layout::repeated(shape), dtype })
    }
}

/// Returns the word that begins with an element, of bits in the type that kernels compute with.
pub(crate) fn stored_word(dtype: DType, bits: u32) -> u32 {
    match dtype {
        DType::F16 => scalar::to_f16(f32::from_bits(bits).into()).to_bits().into(),
        DType::BF16 => scalar::to_bf16(f32::from_bits(bits).into()).to_bits().into(),
        _ => bits,
    }
}

impl Map {
    /// Returns the map that copies elements.
    pub(crate) fn copy(dtype: DType) -> Self {
        let mut e = Expression::default();
        let x = e.operand(dtype);
        e.finish(x, dtype)
    }
}

/// A map with its operands.
pub(crate) struct Computation<'c> {
    pub(crate) map: &'c Map,
    pub(crate) shape: Shape,
    /// The operands, and their layouts with the shape of the result.
    pub(crate) operands: Vec<(&'c Stored, Layout)>,
    pub(crate) gathered: Option<GatherAxis>,
    /// Bits of the arguments.
    pub(crate) arguments: &'c [u32],
}

impl Computation<'_> {
    /// Submits the computation and returns its result.
    pub(crate) fn run(&self, call: Call, runtime: &Arc<Runtime>) -> Result<Stored> {
        let dtype = self.map.output;
        let count = check_count(call, &self.shape, dtype)?;
        for (operand, _) in &self.operands {
            check_device(call, runtime, &operand.runtime)?;
        }
        let operands: Vec<_> =
            self.operands.iter().map(|(it, layout)| (&it.buffer, layout.clone())).collect();
        let launch = MapLaunch {
            map: self.map,
            sizes: &self.shape,
            count,
            operands: &operands,
            gathered: self.gathered,
            arguments: self.arguments,
        };
        let bytes = (count as usize * dtype.size()).next_multiple_of(4);
        let buffer = match count {
            0 => runtime.device().alloc_untyped(None, 0),
            _ => match map_shards(call, runtime, &launch, bytes as u64)? {
                None => runtime.run(&launch),
                Some(shards) => runtime.run_shards(&launch, &shards, bytes),
            },
        };
        let buffer = buffer.map_err(|error| call.gpu(error))?;
        let layout = Layout::contiguous(self.shape.clone());
        Ok(Stored { runtime: runtime.clone(), buffer, layout, dtype })
    }
}

/// Returns the shards of a map with a result of a number of bytes; `None` if the device binds all
/// of its buffers.
pub(crate) fn map_shards(
    call: Call,
    runtime: &Runtime,
    launch: &MapLaunch<'_>,
    result: u64,
) -> Result<Option<MapShards>> {
    let sizes = || launch.operands.iter().map(|(buffer, _)| buffer.byte_size());
    let limit = runtime.max_binding();
    if sizes().chain([result]).all(|bytes| bytes <= limit) {
        return Ok(None);
    }
    let MapLaunch { map, sizes: shape, operands, gathered, .. } = launch;
    match sharding::split_map(map, shape, operands, *gathered, limit) {
        Some(shards) => Ok(Some(shards)),
        None => check_bindings(call, runtime, sizes(), result).map(|()| None),
    }
}

/// Checks that the device can bind operands and a result of these sizes in bytes.
pub(crate) fn check_bindings(
    call: Call,
    runtime: &Runtime,
    operands: impl Iterator<Item = u64>,
    result: u64,
) -> Result<()> {
    let info = runtime.device().info();
    let limit = info.limits.max_storage_binding_size;
    let operands = operands.map(|bytes| ("an operand", bytes));
    let too_large = operands.chain([("the result", result)]).find(|(_, bytes)| *bytes > limit);
    let Some((what, bytes)) = too_large else { return Ok(()) };
    Err(call.error(
        ErrorKind::TooLarge,
        format!("{what} has {bytes} bytes in memory, but {} binds at most {limit}", info.name),
        "split the tensor when it is created, or use a smaller element type",
    ))
}

/// Checks that an operand is on the device of the others.
pub(crate) fn check_device(call: Call, first: &Arc<Runtime>, other: &Arc<Runtime>) -> Result<()> {
    if Arc::ptr_eq(first, other) {
        return Ok(());
    }
    let (first, other) = (first.device().name(), other.device().name());
    let suffix = if first == other { ", opened separately" } else { "" };
    Err(call.error(
        ErrorKind::Device,
        format!("one tensor is on {first}, another on {other}{suffix}"),
        "copy one of them with `.to(&device)`, and open each device once",
    ))
}
