//! Storage buffers whose elements are structures with vectors, or three-component vectors: arrays
//! of the element's fields, so that a vector is one load or store instead of several.

use std::collections::BTreeSet;

use super::Emitter;
use super::accesses::{Access, AccessKind, Accesses};
use super::address::COMPONENTS;
use super::declarations::Shape;
use super::fields::{self, Field};
use super::loads_stores::cast;
use crate::kir::{AddressSpace, Place, Value};
use crate::{BindingInfo, ShaderError, TypeLayout};

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
    fn vector(&self, at: u32, count: u32) -> Option<&Field> {
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

impl Emitter<'_> {
    /// Loads contiguous values of an element: components of one vector by one load.
    pub(super) fn load_record(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
    ) -> Result<(), ShaderError> {
        let ty = self.kir.ty(first);
        let (element, records) = self.element(place)?;
        let at = place.offset % records.stride;
        if let Some(field) = records.vector(at, count).filter(|_| count > 1) {
            let (lane, lanes) = ((at - field.offset) / 4, field.lanes);
            let loaded = cast(&format!("{element}{}", field.path()), field.ty, ty, lanes);
            let vector = self.temporary(&loaded);
            for i in 0..count {
                let component = COMPONENTS[(lane + i) as usize];
                self.alias(Value(first.0 + i), format!("{vector}.{component}"));
            }
            return Ok(());
        }
        for i in 0..count {
            let (element, records) = self.element(place)?;
            let found = Field::scalar_at(&records.fields, at + i * 4);
            let (found, path) = found.ok_or_else(no_element_error)?;
            let loaded = cast(&format!("{element}{path}"), found, ty, 1);
            self.define(Value(first.0 + i), &loaded);
        }
        Ok(())
    }

    /// Stores contiguous values of an element: a vector by one store.
    pub(super) fn store_record(
        &mut self,
        place: &Place,
        values: &[Value],
    ) -> Result<(), ShaderError> {
        let (element, records) = self.element(place)?;
        let at = place.offset % records.stride;
        let operands = values.iter().map(|value| (self.kir.ty(*value), self.operand(*value)));
        let operands: Vec<_> = operands.collect();
        let mut lines = Vec::new();
        match (records.vector(at, values.len() as u32), operands.first()) {
            (Some(field), Some((ty, _))) if values.len() > 1 => {
                let parts: Vec<_> = operands.iter().map(|(_, text)| text.as_str()).collect();
                let vector = format!("vec{}<{ty}>({})", field.lanes, parts.join(", "));
                let vector = cast(&vector, *ty, field.ty, field.lanes);
                lines.push(format!("{element}{} = {vector};", field.path()));
            }
            _ => {
                for (i, (ty, text)) in (0..).zip(&operands) {
                    let found = Field::scalar_at(&records.fields, at + i * 4);
                    let (found, path) = found.ok_or_else(no_element_error)?;
                    lines.push(format!("{element}{path} = {};", cast(text, *ty, found, 1)));
                }
            }
        }
        lines.into_iter().for_each(|line| self.body.line(line));
        Ok(())
    }

    /// Returns the expression of the element that a place is in, and the fields of elements.
    fn element(&self, place: &Place) -> Result<(String, &Records), ShaderError> {
        let memory = self.memory_variable(place)?;
        let Shape::Records(records) = &memory.shape else {
            return Err(no_element_error());
        };
        let index = self.index(place, records.stride).expression();
        Ok((format!("{}[{index}]", memory.name), records))
    }
}

fn no_element_error() -> ShaderError {
    ShaderError::compiler("Kir::to_wgsl: an access is not to a field of an element".into())
}
