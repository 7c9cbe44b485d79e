//! Views: the same elements with another shape.

use crate::error::{Call, ErrorKind, Result};
use crate::shape::{Dims, Layout, MAX_RANK, Shape, check_view, rank_error};
use crate::stored::Stored;

/// A view of elements. Coordinates may be negative and depend on sizes only when the view is
/// applied, so that one view serves all sizes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum View {
    /// The axes in another order.
    Permute(Vec<usize>),
    /// Other sizes, in row-major order.
    Reshape(Dims),
    /// Axes of size 1 repeated, and new axes before the first.
    Expand(Shape),
    /// Broadcast to the shape that it has together with another operand.
    Like,
    /// Unchanged; `axis` must have the size that axis `other` of another operand has.
    SameSize { axis: usize, other: usize },
    /// A new axis of size 1.
    Unsqueeze(usize),
    /// Without an axis of size 1.
    Squeeze(usize),
    /// Coordinates and ranges of the axes.
    Index(Vec<Part>),
    /// `len` coordinates from `start` on of an axis of a size.
    Narrow { axis: usize, start: usize, len: usize, size: usize },
    /// Consecutive axes as one, from an axis on.
    Merge { axis: usize, count: usize },
}

/// A part of an index without tensors and ellipses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    At(i64),
    Range {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    NewAxis,
    /// A whole axis.
    Full,
}

impl View {
    /// Returns the shape of the view.
    pub(crate) fn shape(&self, call: Call, shape: &Shape, like: Option<&Shape>) -> Result<Shape> {
        let layout = self.layout(call, &Layout::contiguous(shape.clone()), like)?;
        Ok(layout.map_or_else(Shape::default, |layout| layout.shape))
    }

    /// Returns the layout of the view; `None` if no strides describe it.
    pub(crate) fn layout(
        &self,
        call: Call,
        layout: &Layout,
        like: Option<&Shape>,
    ) -> Result<Option<Layout>> {
        let own = &layout.shape;
        Ok(Some(match self {
            Self::Permute(axes) => layout.permute(axes),
            Self::Reshape(dims) => {
                let shape = dims.resolve(call, own, own.count().unwrap_or(usize::MAX))?;
                check_view(call, &shape)?;
                return Ok(layout.reshape(&shape));
            }
            Self::Expand(shape) => expanded_layout(call, layout, shape)?,
            Self::Like => {
                let shape = crate::shape::broadcast(call, &[own, like.unwrap_or(own)])?;
                expanded_layout(call, layout, &shape)?
            }
            Self::SameSize { axis, other } => {
                check_same_size(call, (own, *axis), (like.unwrap_or(own), *other))?;
                layout.clone()
            }
            Self::Unsqueeze(axis) => {
                let layout = layout.with_axis(*axis);
                if layout.shape.rank() > MAX_RANK {
                    return Err(rank_error(call, &layout.shape));
                }
                layout
            }
            Self::Squeeze(axis) => {
                if own[*axis] != 1 {
                    let problem = format!("axis {axis} of {own} has size {}, not 1", own[*axis]);
                    let help = "select one index with `i`";
                    return Err(call.shape_error(&[own], problem, help));
                }
                layout.without(*axis)
            }
            Self::Index(parts) => indexed(call, parts, layout)?,
            Self::Narrow { axis, start, len, size } => {
                if own[*axis] != *size {
                    let problem = format!("the parts of axis {axis} of {own} have {size} elements");
                    let help = "the sizes of the parts must add up to that of the axis";
                    return Err(call.shape_error(&[own], problem, help));
                }
                layout.slice(*axis, *start as i64, 1, *len)
            }
            Self::Merge { axis, count } => {
                let end = axis + count;
                let size = own[*axis..end].iter().try_fold(1usize, |a, b| a.checked_mul(*b));
                let size = size.unwrap_or(usize::MAX);
                let shape = Shape::from([&own[..*axis], &[size], &own[end..]].concat());
                check_view(call, &shape)?;
                return Ok(layout.reshape(&shape));
            }
        }))
    }

    /// Returns a short name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Permute(_) => "permute",
            Self::Reshape(_) => "reshape",
            Self::Expand(_) | Self::Like => "expand",
            Self::SameSize { .. } => "same_size",
            Self::Unsqueeze(_) => "unsqueeze",
            Self::Squeeze(_) => "squeeze",
            Self::Index(_) => "index",
            Self::Narrow { .. } => "narrow",
            Self::Merge { .. } => "merge",
        }
    }
}

fn indexed(call: Call, parts: &[Part], layout: &Layout) -> Result<Layout> {
    let mut layout = layout.clone();
    let mut axis = 0;
    for part in parts {
        match part {
            Part::At(at) => {
                let position = coordinate(call, *at, axis, &layout)?;
                layout = layout.slice(axis, position, 1, 1).without(axis);
                continue;
            }
            Part::Range { start, end, step } => {
                let size = layout.shape[axis] as i64;
                let (first, count) = slice(call, (*start, *end, *step), size)?;
                layout = layout.slice(axis, first, *step, count);
            }
            Part::NewAxis => layout = layout.with_axis(axis),
            Part::Full => {}
        }
        axis += 1;
    }
    if layout.shape.rank() > MAX_RANK {
        return Err(rank_error(call, &layout.shape));
    }
    Ok(layout)
}

/// Checks that two axes have the same size: neither is broadcast.
fn check_same_size(
    call: Call,
    (a, axis): (&Shape, usize),
    (b, other): (&Shape, usize),
) -> Result<()> {
    if a[axis] == b[other] {
        return Ok(());
    }
    let problem = format!("axis {axis} of {a} and axis {other} of {b} differ in size");
    Err(call.shape_error(&[a, b], problem, "pass tensors for which they have the same size"))
}

/// Returns a coordinate in range; negative ones count from the end.
fn coordinate(call: Call, at: i64, axis: usize, layout: &Layout) -> Result<i64> {
    let size = layout.shape[axis] as i64;
    let position = if at < 0 { at.saturating_add(size) } else { at };
    if (0..size).contains(&position) {
        return Ok(position);
    }
    let help = match size {
        0 => "the axis is empty: check the sizes first".to_owned(),
        _ => format!("use an index from {} to {}", -size, size - 1),
    };
    let problem = format!("index {at} is out of range for an axis of size {size}");
    Err(call.error(ErrorKind::Index, problem, help))
}

/// Returns the first coordinate and the number of them, with NumPy's rules.
fn slice(
    call: Call,
    (start, end, step): (Option<i64>, Option<i64>, i64),
    size: i64,
) -> Result<(i64, usize)> {
    if step == 0 {
        let help = "use a positive step, or a negative one for the reverse order";
        return Err(call.error(ErrorKind::Index, "the step of a range is 0", help));
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let (lowest, highest) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let bound = |at: i64| from_end(at).clamp(lowest, highest);
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let first = start.map_or(first, bound);
    let last = end.map_or(last, bound);
    let distance = if step > 0 { last - first } else { first - last };
    let count = if distance <= 0 { 0 } else { (distance as u64).div_ceil(step.unsigned_abs()) };
    Ok((first, count as usize))
}

/// Returns a view of elements, copied first if no strides describe it.
pub(super) fn run_view(
    view: &View,
    call: Call,
    x: &Stored,
    like: Option<&Shape>,
) -> Result<Stored> {
    if let Some(layout) = view.layout(call, &x.layout, like)? {
        return Ok(x.with_layout(layout));
    }
    let copy = x.copied(call)?;
    let layout = view.layout(call, &copy.layout, like)?;
    Ok(copy.with_layout(layout.unwrap_or(copy.layout.clone())))
}

/// Returns a layout broadcast to a shape.
pub(super) fn expanded_layout(call: Call, layout: &Layout, shape: &Shape) -> Result<Layout> {
    check_view(call, shape)?;
    layout.expand(shape).ok_or_else(|| {
        let own = &layout.shape;
        call.shape_error(
            &[own, shape],
            format!("{own} does not expand to {shape}"),
            "sizes are aligned at the last axis; only those of 1 expand",
        )
    })
}
