//! Loads and stores of elements that are structures: a vector is one access instead of several.

use super::Emitter;
use super::declarations::Shape;
use super::fields::{COMPONENTS, Field};
use super::loads_stores::cast;
use super::records::Records;
use crate::ShaderError;
use crate::kir::{Place, Value};

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
