//! Compares Rust types with WGSL types: the same scalar at the same byte offset.
//!
//! A buffer is a Rust element, repeated. The comparison walks the WGSL type once, down to its
//! scalars, and looks up each one at its offset in the buffer. No value of the buffer may begin in
//! padding of the WGSL type and extend beyond it. [`describe`](super::describe) has the error
//! texts.

use scry_ir::{Member, Scalar, TypeLayout};

use super::describe;
use crate::api::element::ElementLayout;
use crate::api::native::is_opaque;

/// The reason why a Rust type does not match, and help.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub problem: String,
    pub help: String,
}

/// A Rust type, to be compared with a WGSL type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host<'a> {
    /// Layout of a value.
    pub layout: &'a ElementLayout,
    /// Bytes of a value.
    pub size: u64,
    /// Name of the type, used where the layout is unknown.
    pub type_name: &'a str,
}

/// Checks a buffer of `host` elements against the type of its binding.
pub(super) fn buffer(host: &Host<'_>, wgsl: &TypeLayout) -> Result<(), Mismatch> {
    if is_same_scalar(host, wgsl) || is_opaque(wgsl) {
        return Ok(());
    }
    let period = period(wgsl);
    let has_struct = holds_struct(host.layout);
    let divides = host.size > 0 && period.is_multiple_of(host.size) && !has_struct;
    let is_multiple = host.size > 0 && host.size.is_multiple_of(period);
    // A single value, unlike an array's elements, may be followed by any bytes.
    let fits = divides || is_multiple || (is_single(wgsl) && host.size > period);
    if host.size > 0 && !matches!(host.layout, ElementLayout::Opaque) && (fits || has_struct) {
        // Reports the first misplaced field rather than the different sizes that result from it.
        let part = Part {
            layout: host.layout,
            size: host.size,
            period: host.size,
            base: 0,
            field: None,
            is_element: host.size < period,
            names_compared: false,
        };
        compare(part, 0, wgsl, None).map_err(|it| describe::difference(&it, host, wgsl))?;
    }
    if fits { Ok(()) } else { Err(describe::size_mismatch(host, wgsl)) }
}

/// Returns whether the binding is an array of exactly this scalar type: the common case, which
/// skips the comparison.
fn is_same_scalar(host: &Host<'_>, wgsl: &TypeLayout) -> bool {
    let (ElementLayout::Scalar(expected), TypeLayout::Array { element, stride, .. }) =
        (host.layout, wgsl)
    else {
        return false;
    };
    matches!(**element, TypeLayout::Scalar(scalar) if scalar == *expected)
        && u64::from(*stride) == host.size
}

/// Checks the fields of one value; sizes may differ by padding at the end.
pub(super) fn value(host: &Host<'_>, wgsl: &TypeLayout) -> Result<(), Mismatch> {
    if matches!(host.layout, ElementLayout::Opaque) || host.size == 0 || is_opaque(wgsl) {
        return Ok(());
    }
    let part = Part {
        layout: host.layout,
        size: host.size,
        period: host.size.max(wgsl.fixed_size()),
        base: 0,
        field: None,
        is_element: false,
        names_compared: false,
    };
    compare(part, 0, wgsl, None).map_err(|it| describe::difference(&it, host, wgsl))
}

/// Returns the bytes after which a binding of this type repeats: the stride of an array, otherwise
/// the size.
pub(super) fn period(wgsl: &TypeLayout) -> u64 {
    let bytes = match (wgsl.runtime_array(), wgsl) {
        (Some((_, stride)), _) => stride,
        (None, TypeLayout::Array { stride, .. }) => u64::from(*stride),
        (None, _) => wgsl.fixed_size(),
    };
    bytes.max(1)
}

/// Returns whether a binding of this type is a single value rather than an array.
pub(super) fn is_single(wgsl: &TypeLayout) -> bool {
    wgsl.runtime_array().is_none() && !matches!(wgsl, TypeLayout::Array { .. })
}

/// Returns whether the element, or the innermost element of its arrays, is a structure.
pub(super) fn holds_struct(layout: &ElementLayout) -> bool {
    match layout {
        ElementLayout::Struct { .. } => true,
        ElementLayout::Array { element, .. } => holds_struct(element),
        ElementLayout::Scalar(_) | ElementLayout::Opaque => false,
    }
}

/// A repeated part of a Rust type.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    layout: &'a ElementLayout,
    /// Bytes of the part.
    size: u64,
    /// Bytes from one repetition to the next.
    period: u64,
    /// Offset of the first repetition, in bytes from the start of the element.
    base: u64,
    /// The innermost field that contains it, and that field's offset.
    field: Option<(&'static str, u64)>,
    /// True for the whole element of a buffer, if smaller than the WGSL type's period.
    is_element: bool,
    /// Whether the names of its fields were compared with those of a WGSL structure.
    names_compared: bool,
}

impl Part<'_> {
    /// Returns the smallest part that contains the bytes from `at` to `at + len`, and their offset
    /// in it.
    fn narrow(mut self, mut at: u64, len: u64) -> (Self, u64) {
        while let Some((child, offset)) = self.child(at, len) {
            (self, at) = (child, offset);
        }
        (self, at)
    }

    /// Returns the innermost element of arrays larger than `stride`. Used for WGSL types of runtime
    /// size, which no single field contains.
    fn element(mut self, stride: u64) -> Self {
        while self.size > stride && matches!(self.layout, ElementLayout::Array { .. }) {
            let Some((child, _)) = self.child(0, 1) else {
                break;
            };
            self = child;
        }
        self
    }

    /// Returns the field, or the array element, that contains some bytes; `None` if they span
    /// several fields, or the part has none.
    fn child(&self, at: u64, len: u64) -> Option<(Self, u64)> {
        let inside = at % self.period;
        let base = self.base + (at - inside);
        match *self.layout {
            ElementLayout::Struct { fields, .. } => {
                let field = fields.iter().find(|field| {
                    let start = field.offset as u64;
                    start <= inside && inside + len <= start + field.size as u64
                })?;
                let (size, offset) = (field.size as u64, field.offset as u64);
                let child = Self {
                    layout: field.layout,
                    size,
                    period: size,
                    base: base + offset,
                    field: Some((field.name, base + offset)),
                    is_element: false,
                    names_compared: false,
                };
                Some((child, inside - offset))
            }
            ElementLayout::Array { element, len: count } if inside + len <= self.size => {
                let size = self.size / (count as u64).max(1);
                let child = Self {
                    layout: element,
                    size,
                    period: size,
                    base,
                    is_element: false,
                    names_compared: false,
                    ..*self
                };
                Some((child, inside))
            }
            _ => None,
        }
    }

    /// Returns the scalar that contains a byte; `None` beyond the end, or where the layout is
    /// unknown.
    fn scalar_at(self, at: u64) -> Option<Scalar> {
        let (part, at) = self.narrow(at, 1);
        match part.layout {
            ElementLayout::Scalar(scalar) if at % part.period < part.size => Some(*scalar),
            _ => None,
        }
    }

    /// Returns whether the four bytes from `at` all belong to scalars narrower than four bytes.
    fn is_packed(self, at: u64) -> bool {
        (at..at + 4).all(|byte| self.scalar_at(byte).is_some_and(|scalar| scalar.width < 4))
    }
}

/// The first difference between two types.
#[derive(Debug)]
pub(super) struct Difference<'w> {
    pub kind: DifferenceKind<'w>,
    /// The field of the Rust type, and its offset.
    pub field: Option<(&'static str, u64)>,
    /// The member of the WGSL type.
    pub member: Option<&'w Member>,
    /// Offset of the member, in bytes from the start of the WGSL type.
    pub member_at: u64,
}

/// What differs between two types.
#[derive(Debug)]
pub(super) enum DifferenceKind<'w> {
    /// Different scalars at an offset; `rust` is `None` if no scalar begins there.
    Scalar { rust: Option<Scalar>, wgsl: Scalar, at: u64 },
    /// A value that begins in padding of the WGSL type and extends beyond it, or a whole element
    /// that begins in padding; `value` is its offset and size.
    Unused { value: (u64, u64), start: u64, end: u64, is_element: bool },
    /// A field with a different offset than the member of the same name.
    Moved { name: &'w str, rust: u64, wgsl: u64 },
}

/// The innermost WGSL structure member that contains a value, and its offset.
type EnclosingMember<'w> = Option<(&'w Member, u64)>;

/// Compares a WGSL type with the bytes from `at` on.
fn compare<'w>(
    part: Part<'_>,
    at: u64,
    wgsl: &'w TypeLayout,
    context: EnclosingMember<'w>,
) -> Result<(), Difference<'w>> {
    let outer = (part, at);
    let (mut part, at) = match wgsl.runtime_array() {
        None => part.narrow(at, wgsl.fixed_size()),
        Some((_, stride)) => (part.element(stride), at),
    };
    if matches!(part.layout, ElementLayout::Opaque) {
        return Ok(());
    }
    match wgsl {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => {
            compare_scalar(part, at, *scalar, context)
        }
        TypeLayout::Vector { len, scalar } => (0..u64::from(*len)).try_for_each(|i| {
            compare_scalar(part, at + i * u64::from(scalar.width), *scalar, context)
        }),
        TypeLayout::Matrix { columns, rows, scalar, stride } => {
            let width = u64::from(scalar.width);
            let repeat = Repeat {
                len: Some((*columns).into()),
                stride: *stride,
                used: u64::from(*rows) * width,
            };
            repeat.try_each(part, at, context, |at| {
                (0..u64::from(*rows))
                    .try_for_each(|i| compare_scalar(part, at + i * width, *scalar, context))
            })
        }
        TypeLayout::Array { element, len, stride } => {
            let repeat = Repeat { len: *len, stride: *stride, used: element.fixed_size() };
            repeat.try_each(part, at, context, |at| compare(part, at, element, context))
        }
        TypeLayout::Struct { members, size, .. } => {
            let names_compared = std::mem::replace(&mut part.names_compared, true);
            let mut end = at;
            for member in members {
                let start = at + u64::from(member.offset);
                let context = Some((member, part.base + start));
                check_padding(part, end, start, context)?;
                compare(part, start, &member.layout, context)?;
                end = start + member.layout.fixed_size();
            }
            if wgsl.runtime_array().is_some() {
                // A length beyond the part: no field contains it, so fields are not searched.
                return compare_names(
                    (Part { names_compared, ..part }, at),
                    members,
                    part.size + 1,
                );
            }
            check_padding(part, end, at + u64::from(*size), None)?;
            compare_names(outer, members, wgsl.fixed_size())
        }
    }
}

/// Compares the names of a WGSL structure's members with the field names of the Rust structure that
/// begins at the same byte. Of nested structures, one with matching names is enough; those with
/// fewer than `len` bytes are skipped.
fn compare_names<'w>(
    (mut part, mut at): (Part<'_>, u64),
    members: &'w [Member],
    len: u64,
) -> Result<(), Difference<'w>> {
    let mut moved = None;
    loop {
        let begins = at.is_multiple_of(part.period) && !part.names_compared;
        if let (ElementLayout::Struct { fields, .. }, true) = (part.layout, begins) {
            let mut shared = fields.iter().filter_map(|field| {
                let has_name = |member: &&Member| member.name == field.name;
                let member =
                    members.iter().find(has_name).filter(|_| !field.name.starts_with('_'))?;
                Some((field.offset as u64, member))
            });
            let agree = |(offset, member): (u64, &Member)| offset == u64::from(member.offset);
            if shared.clone().next().is_some() && shared.clone().all(agree) {
                return Ok(());
            }
            let other = shared.find(|it| !agree(*it));
            moved = moved.or(other.map(|(offset, member)| (part.base + at, offset, member)));
        }
        match part.child(at, len) {
            Some(inner) => (part, at) = inner,
            None => break,
        }
    }
    let Some((start, offset, member)) = moved else { return Ok(()) };
    let (rust, wgsl) = (start + offset, start + u64::from(member.offset));
    let kind = DifferenceKind::Moved { name: &member.name, rust, wgsl };
    Err(Difference { kind, field: None, member: None, member_at: 0 })
}

/// An array, or the columns of a matrix.
struct Repeat {
    len: Option<u32>,
    stride: u32,
    /// Bytes of each element without padding.
    used: u64,
}

impl Repeat {
    /// Compares elements until both types repeat.
    fn try_each<'w>(
        &self,
        part: Part<'_>,
        at: u64,
        context: EnclosingMember<'w>,
        mut compare: impl FnMut(u64) -> Result<(), Difference<'w>>,
    ) -> Result<(), Difference<'w>> {
        let stride = u64::from(self.stride).max(1);
        let count = part.period / gcd(part.period, stride);
        for index in 0..self.len.map_or(count, |len| count.min(len.into())) {
            let start = at + index * stride;
            compare(start)?;
            check_padding(part, start + self.used, start + stride, context)?;
        }
        Ok(())
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn compare_scalar<'w>(
    part: Part<'_>,
    at: u64,
    wgsl: Scalar,
    context: EnclosingMember<'w>,
) -> Result<(), Difference<'w>> {
    let (leaf, inside) = part.narrow(at, wgsl.width.into());
    let starts = inside % leaf.period == 0;
    match leaf.layout {
        ElementLayout::Opaque => return Ok(()),
        ElementLayout::Scalar(rust) if *rust == wgsl && starts => return Ok(()),
        _ if wgsl == Scalar::U32 && leaf.is_packed(inside) => return Ok(()),
        _ => {}
    }
    let (found, _) = leaf.narrow(inside, 1);
    Err(Difference {
        kind: DifferenceKind::Scalar { rust: leaf.scalar_at(inside), wgsl, at: leaf.base + inside },
        field: found.field,
        member: context.map(|(member, _)| member),
        member_at: context.map_or(0, |(_, at)| at),
    })
}

/// Checks the bytes from `start` to `end`, which are padding in WGSL.
fn check_padding<'w>(
    part: Part<'_>,
    start: u64,
    end: u64,
    context: EnclosingMember<'w>,
) -> Result<(), Difference<'w>> {
    if start >= end {
        return Ok(());
    }
    let element_starts = part.is_element && start.next_multiple_of(part.period) < end;
    let found = match element_starts {
        true => Some((part, start.next_multiple_of(part.period))),
        false => extending_beyond(part, start, end),
    };
    let Some((value, value_at)) = found else {
        return Ok(());
    };
    Err(Difference {
        kind: DifferenceKind::Unused {
            value: (value_at, value.size),
            start: part.base + start,
            end: part.base + end,
            is_element: value.field.is_none() && !matches!(value.layout, ElementLayout::Scalar(_))
                || element_starts,
        },
        field: value.field,
        member: context.map(|(member, _)| member),
        member_at: context.map_or(0, |(_, at)| at),
    })
}

/// Returns the outermost value that begins at `start` or later and extends beyond `end`, with its
/// offset in bytes from the start of the element. Only values that contain the last byte before
/// `end` qualify.
fn extending_beyond<'a>(part: Part<'a>, start: u64, end: u64) -> Option<(Part<'a>, u64)> {
    let (mut part, mut last) = (part, end - 1);
    let (start, end) = (part.base + start, part.base + end);
    loop {
        let inside = last % part.period;
        let value_at = part.base + (last - inside);
        if inside >= part.size || value_at + part.size <= end {
            return None;
        }
        if value_at >= start {
            return Some((part, value_at));
        }
        (part, last) = part.child(last, 1)?;
    }
}
