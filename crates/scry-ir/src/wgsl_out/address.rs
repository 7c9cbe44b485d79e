//! Addresses as indices of arrays.

use super::Emitter;
use super::declarations::{Elements, Shape};
use crate::ShaderError;
use crate::kir::{AddressSpace, Place};

/// Element `base * scale + add`; without a base, element `add`.
#[derive(Debug, Clone)]
pub(super) struct Index {
    base: Option<String>,
    scale: u32,
    add: u64,
}

/// The component of a vector.
pub(super) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

impl Index {
    /// An index that is computed.
    pub(super) fn of(base: String) -> Self {
        Self { base: Some(base), scale: 1, add: 0 }
    }

    /// The number within its element of `lanes` scalars, if it is the same for every base.
    pub(super) fn lane(&self, lanes: u32) -> Option<u32> {
        let known = self.base.is_none() || self.scale.is_multiple_of(lanes);
        known.then_some((self.add % u64::from(lanes)) as u32)
    }

    /// The index of the element of `lanes` scalars whose lane is known.
    pub(super) fn unit(&self, lanes: u32) -> Self {
        let base = self.base.clone();
        Self { base, scale: self.scale / lanes, add: self.add / u64::from(lanes) }
    }

    pub(super) fn plus(&self, count: u64) -> Self {
        Self { add: self.add + count, ..self.clone() }
    }

    /// The expression.
    pub(super) fn spelled(&self) -> String {
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
    /// The index of a place in units of `unit` bytes. Where stride and offset are no multiples of
    /// them, it is rounded down.
    pub(super) fn index(&mut self, place: &Place, unit: u32) -> Index {
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

    /// The number of elements of a runtime-sized array at the end of a binding.
    pub(super) fn array_length(
        &mut self,
        binding: u32,
        offset: u32,
        stride: u32,
    ) -> Result<String, ShaderError> {
        let memory = self.memory(&Place::new(AddressSpace::Binding(binding), None, 0, 0))?;
        let Shape::Array(elements) = memory.shape else {
            return Err(ShaderError::compiler("Kir::to_wgsl: a structure has no length".into()));
        };
        let units = format!("arrayLength(&{})", memory.name);
        let unit = elements.unit();
        if !offset.is_multiple_of(unit) || !stride.is_multiple_of(unit) {
            return Ok(format!("(max({units} * {unit}u, {offset}u) - {offset}u) / {stride}u"));
        }
        let (before, each) = (offset / unit, stride / unit);
        let after = match before {
            0 => units,
            _ => format!("(max({units}, {before}u) - {before}u)"),
        };
        Ok(if each == 1 { after } else { format!("{after} / {each}u") })
    }

    /// The scalar at an index: an element, or a component of one.
    pub(super) fn scalar_at(&mut self, name: &str, elements: &Elements, index: &Index) -> String {
        let lanes = elements.lanes;
        if lanes == 1 {
            return format!("{name}[{}]", index.spelled());
        }
        if let Some(lane) = index.lane(lanes) {
            let component = COMPONENTS[lane as usize];
            return format!("{name}[{}].{component}", index.unit(lanes).spelled());
        }
        let scalar = self.temporary(&index.spelled());
        format!("{name}[{scalar} / {lanes}u][{scalar} % {lanes}u]")
    }
}
