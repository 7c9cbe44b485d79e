//! Storage buffers whose elements are structures with vectors, or three-component vectors: arrays
//! of the element's fields.

use std::collections::BTreeSet;

use super::accesses::{Access, AccessKind, Accesses};
use super::fields::{self, Field};
use crate::kir::AddressSpace;
use crate::{BindingInfo, TypeLayout};

/// The elements of a runtime-sized array, which is a complete storage buffer.
#[derive(Debug)]
pub(super) struct Records {
    /// The fields of an element, by offset.
    pub(super) fields: Vec<Field>,
    /// Bytes from one element to the next.
    pub(super) stride: u32,
}

impl Records {
    /// Returns the elements of a storage buffer; `None` if it cannot be declared as an array of
    /// structures, or if an array of scalars is as good.
    pub(super) fn new(i: u32, binding: &BindingInfo, accesses: &Accesses) -> Option<Self> {
        let (0, stride) = binding.layout.runtime_array()? else { return None };
        let stride = u32::try_from(stride).ok()?;
        let element = element_of(&binding.layout)?;
        let lengths_fit = accesses.lengths_are_multiples(i, stride);
        let accesses = accesses.to_space(AddressSpace::Binding(i));
        let is_within = |access: &Access| {
            let offset = access.place.offset % stride;
            access.kind != AccessKind::Atomic
                && access.ty.size() == 4
                && (access.place.index.is_none() || access.place.stride.is_multiple_of(stride))
                && offset + access.count * 4 <= stride
        };
        if !lengths_fit || !accesses.iter().all(is_within) {
            return None;
        }
        let mut fields = fields::fields_of(&binding.name, element).ok().flatten()?;
        if fields.iter().any(|field| field.ty.size() != 4) {
            return None;
        }
        if let Some(last) = fields.last_mut() {
            last.pad_to(stride);
        }
        let fields: Vec<_> = fields
            .into_iter()
            .flat_map(|field| match is_stored_in_parts(&field, accesses, stride) {
                true => field.split(),
                false => vec![field],
            })
            .collect();
        let names: BTreeSet<_> = fields.iter().map(|field| &field.name).collect();
        let are_unique = names.len() == fields.len();
        let has_vector = fields.iter().any(|field| field.lanes > 1);
        let are_few = fields.len() <= fields::MAX_FIELDS;
        (are_unique && has_vector && are_few).then_some(Self { fields, stride })
    }

    /// Returns the vector that consists of `count` scalars from byte `at` of an element on.
    pub(super) fn vector(&self, at: u32, count: u32) -> Option<&Field> {
        self.fields
            .iter()
            .find(|field| field.lanes > 1 && field.offset <= at && at + count * 4 <= field.end())
    }
}

/// Returns whether a store writes a part of a vector of the elements, or more than the vector: two
/// invocations must not write components of one vector at the same time.
fn is_stored_in_parts(field: &Field, accesses: &[Access], stride: u32) -> bool {
    let stores = accesses.iter().filter(|access| access.kind == AccessKind::Store);
    stores.map(|access| (access.place.offset % stride, access.count)).any(|(at, count)| {
        let overlaps = at < field.end() && field.offset < at + count * 4;
        field.lanes > 1 && overlaps && (at, count) != (field.offset, field.lanes)
    })
}

/// Returns the type of the elements of a runtime-sized array.
pub(super) fn element_of(layout: &TypeLayout) -> Option<&TypeLayout> {
    match layout {
        TypeLayout::Array { element, len: None, .. } => Some(element),
        TypeLayout::Struct { members, .. } => match members.as_slice() {
            [member] => element_of(&member.layout),
            _ => None,
        },
        _ => None,
    }
}
