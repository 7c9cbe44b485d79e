//! Maps of tensors, computed at once.

use std::sync::Arc;

use super::{Tensor, check_count};
use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};
use crate::expr::Map;
use crate::lower::GatherAxis;
use crate::runtime::{MapLaunch, Runtime};
use crate::shape::{Layout, MAX_RANK, Shape};

/// A map with its operands.
pub(crate) struct Computation<'c> {
    pub(crate) map: &'c Map,
    pub(crate) shape: Shape,
    /// The operands, and their layouts with the shape of the result.
    pub(crate) operands: Vec<(&'c Tensor, Layout)>,
    pub(crate) gathered: Option<GatherAxis>,
    /// Bits of the arguments.
    pub(crate) arguments: &'c [u32],
}

impl Computation<'_> {
    /// Submits the computation and returns its result.
    pub(crate) fn run(&self, call: Call, runtime: &Arc<Runtime>) -> Result<Tensor> {
        let dtype = self.map.output;
        let count = check_count(call, &self.shape, dtype)?;
        for (operand, _) in &self.operands {
            check_device(call, runtime, operand)?;
        }
        self.check_bindings(call, runtime, count)?;
        let operands: Vec<_> =
            self.operands.iter().map(|(it, layout)| (it.buffer(), layout.clone())).collect();
        let buffer = match count {
            0 => runtime.device().alloc_untyped(None, 0),
            count => runtime.run(&MapLaunch {
                map: self.map,
                sizes: &self.shape,
                count,
                operands: &operands,
                gathered: self.gathered,
                arguments: self.arguments,
            }),
        };
        let buffer = buffer.map_err(|error| call.gpu(error))?;
        let layout = Layout::contiguous(self.shape.clone());
        Ok(Tensor::from_parts(runtime.clone(), buffer, layout, dtype))
    }

    /// Checks that the device can bind the operands and the result.
    fn check_bindings(&self, call: Call, runtime: &Runtime, count: u32) -> Result<()> {
        let info = runtime.device().info();
        let limit = info.limits.max_storage_binding_size;
        let result = u64::from(count) * self.map.output.size() as u64;
        let operands = self.operands.iter().map(|(it, _)| ("an operand", it.buffer().byte_size()));
        let too_large = operands.chain([("the result", result)]).find(|(_, bytes)| *bytes > limit);
        let Some((what, bytes)) = too_large else { return Ok(()) };
        Err(call.error(
            ErrorKind::TooLarge,
            format!("{what} has {bytes} bytes in memory, but {} binds at most {limit}", info.name),
            "split the tensor when it is created, or use a smaller element type",
        ))
    }
}

impl Tensor {
    /// Computes a map of tensors with element types that it was made for, broadcast to a shape.
    pub(crate) fn map(
        call: Call,
        map: &Map,
        shape: Shape,
        operands: &[&Tensor],
        arguments: &[u32],
    ) -> Result<Tensor> {
        let Some(first) = operands.first() else {
            return Err(call.error(ErrorKind::Shape, "there is no operand", "pass a tensor"));
        };
        let mut expanded = Vec::new();
        for operand in operands {
            expanded.push((*operand, operand.expanded_layout(call, &shape)?));
        }
        let computation = Computation { map, shape, operands: expanded, gathered: None, arguments };
        computation.run(call, first.runtime())
    }

    /// Returns the layout broadcast to a shape.
    pub(crate) fn expanded_layout(&self, call: Call, shape: &Shape) -> Result<Layout> {
        check_view(call, shape)?;
        self.layout().expand(shape).ok_or_else(|| {
            let own = self.shape();
            call.shape_error(
                &[own, shape],
                format!("{own} does not expand to {shape}"),
                "sizes are aligned at the last axis; only those of 1 expand",
            )
        })
    }
}

/// Checks that an operand is on the device of the others.
pub(crate) fn check_device(call: Call, runtime: &Arc<Runtime>, operand: &Tensor) -> Result<()> {
    if Arc::ptr_eq(runtime, operand.runtime()) {
        return Ok(());
    }
    let (first, other) = (runtime.device().name(), operand.device().name());
    let suffix = if first == other { ", opened separately" } else { "" };
    Err(call.error(
        ErrorKind::Device,
        format!("one tensor is on {first}, another on {other}{suffix}"),
        "copy one of them with `.to(&device)`, and open each device once",
    ))
}

/// Checks the shape of a view, whose elements may share memory: positions have 64 bits.
pub(crate) fn check_view(call: Call, shape: &Shape) -> Result<()> {
    if shape.rank() > MAX_RANK {
        return Err(rank_error(call, shape));
    }
    // Strides of an empty view are products of its other sizes.
    let product = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size.max(&1)));
    if product.is_some_and(|product| i64::try_from(product).is_ok()) {
        return Ok(());
    }
    Err(call.error(
        ErrorKind::TooLarge,
        format!("the product of the sizes {shape} is more than {}", i64::MAX),
        "use smaller sizes",
    ))
}

/// Returns the error for a shape with too many axes.
pub(crate) fn rank_error(call: Call, shape: &Shape) -> crate::Error {
    call.shape_error(
        &[shape],
        format!("{} axes exceed the limit of {MAX_RANK}", shape.rank()),
        "merge axes with `reshape`",
    )
}

/// Returns the map that copies elements.
pub(crate) fn copy(dtype: DType) -> Map {
    let mut e = crate::expr::Expression::default();
    let x = e.operand(dtype);
    e.finish(x, dtype)
}
