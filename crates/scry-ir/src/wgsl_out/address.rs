//! Converts places to indices of the declared arrays.

use super::Emitter;
use super::declarations::{Elements, Shape};
use super::fields::COMPONENTS;
use crate::ShaderError;
use crate::kir::{AddressSpace, Place};

/// The index `base * scale + add`, in units that the context defines; without a base, `add`.
#[derive(Debug, Clone)]
pub(super) struct Index {
    base: Option<String>,
    scale: u32,
    add: u64,
}

impl Index {
    /// Creates an index from an expression.
    pub(super) fn from_base(base: String) -> Self {
        Self { base: Some(base), scale: 1, add: 0 }
    }

    /// Returns which component of a vector of `lanes` scalars this index of a scalar refers to;
    /// `None` if that depends on the base.
    pub(super) fn lane(&self, lanes: u32) -> Option<u32> {
        let is_constant = self.base.is_none() || self.scale.is_multiple_of(lanes);
        is_constant.then_some((self.add % u64::from(lanes)) as u32)
    }

    /// Returns the index of the vector of `lanes` scalars that contains the scalar. Requires that
    /// [`Index::lane`] is not `None`.
    pub(super) fn element(&self, lanes: u32) -> Self {
        let base = self.base.clone();
        Self { base, scale: self.scale / lanes, add: self.add / u64::from(lanes) }
    }

    pub(super) fn plus(&self, count: u64) -> Self {
        Self { add: self.add + count, ..self.clone() }
    }

    /// Returns the expression of the index.
    pub(super) fn expression(&self) -> String {
        let Self { base, scale, add } = self;
        match (base, scale, add) {
            (None, _, add) | (Some(_), 0, add) => format!("{add}u"),
            (Some(base), 1, 0) => base.clone(),
            (Some(base), 1, add) => format!("{base} + {add}u"),
            (Some(base), scale, 0) => format!("{base} * {scale}u"),
            (Some(base), scale, add) => format!("{base} * {scale}u + {add}u"),
        }
    }
}

impl Emitter<'_> {
    /// Returns the index of a place in units of `unit` bytes, of which its offset and stride are
    /// multiples.
    pub(super) fn index(&self, place: &Place, unit: u32) -> Index {
        let (stride, offset) = (place.stride, u64::from(place.offset));
        let Some(index) = place.index else {
            return Index { base: None, scale: 0, add: offset / u64::from(unit) };
        };
        if let Some(constant) = self.kir.constant(index) {
            let byte = constant.bits * u64::from(stride) + offset;
            return Index { base: None, scale: 0, add: byte / u64::from(unit) };
        }
        let base = Some(self.operand(index));
        Index { base, scale: stride / unit, add: offset / u64::from(unit) }
    }

    /// Returns the number of elements of the runtime-sized array at the end of a binding.
    pub(super) fn array_length(
        &mut self,
        binding: u32,
        offset: u32,
        stride: u32,
    ) -> Result<String, ShaderError> {
        let memory =
            self.memory_variable(&Place::new(AddressSpace::Binding(binding), None, 0, 0))?;
        let unit = match &memory.shape {
            Shape::Array(elements) => elements.size(),
            Shape::Records(records) => records.stride,
            Shape::Fields(_) => {
                return Err(ShaderError::compiler(
                    "Kir::to_wgsl: a structure has no length".into(),
                ));
            }
        };
        let units = format!("arrayLength(&{})", memory.name);
        if !offset.is_multiple_of(unit) || !stride.is_multiple_of(unit) {
            return Ok(format!("(max({units} * {unit}u, {offset}u) - {offset}u) / {stride}u"));
        }
        let (skipped, ratio) = (offset / unit, stride / unit);
        let after = match skipped {
            0 => units,
            _ => format!("(max({units}, {skipped}u) - {skipped}u)"),
        };
        Ok(if ratio == 1 { after } else { format!("{after} / {ratio}u") })
    }

    /// Returns the scalar at an index: an element, or a component of a vector.
    pub(super) fn scalar_at(&mut self, name: &str, elements: &Elements, index: &Index) -> String {
        let lanes = elements.lanes;
        if lanes == 1 {
            return format!("{name}[{}]", index.expression());
        }
        if let Some(lane) = index.lane(lanes) {
            let component = COMPONENTS[lane as usize];
            return format!("{name}[{}].{component}", index.element(lanes).expression());
        }
        let scalar = self.temporary(&index.expression());
        format!("{name}[{scalar} / {lanes}u][{scalar} % {lanes}u]")
    }
}
