//! Barriers, and loads from workgroup memory with barriers: `workgroupUniformLoad`.

use super::Emitter;
use super::address::COMPONENTS;
use super::declarations::Shape;
use crate::ShaderError;
use crate::kir::{Place, Value};

impl Emitter<'_> {
    pub(super) fn barrier(&mut self) {
        let storage = self.barriers.take();
        if storage {
            self.body.line("storageBarrier();");
        }
        if self.barriers.workgroup || !storage {
            self.body.line("workgroupBarrier();");
        }
    }

    /// Writes a load with its barriers. `workgroupUniformLoad` has those of workgroup memory; those
    /// of storage are added where they are needed and order anything.
    pub(super) fn uniform_load(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
        [before, after]: [bool; 2],
    ) -> Result<(), ShaderError> {
        self.storage_barrier_if(before);
        self.loads_of_workgroup(first, place, count)?;
        self.storage_barrier_if(after);
        Ok(())
    }

    fn storage_barrier_if(&mut self, needed: bool) {
        if needed && self.barriers.take() {
            self.body.line("storageBarrier();");
        }
    }

    fn loads_of_workgroup(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
    ) -> Result<(), ShaderError> {
        let memory = self.memory(place)?;
        let Shape::Array(elements) = memory.shape else {
            return Err(ShaderError::compiler("Kir::to_wgsl: workgroup memory of fields".into()));
        };
        let name = memory.name.clone();
        let index = self.index(place, elements.width());
        for nth in 0..count {
            let value = Value(first.0 + nth);
            let index = index.plus(nth.into());
            let at = index.lane(elements.lanes);
            let unit = match at {
                Some(_) => index.unit(elements.lanes).spelled(),
                None => format!("({}) / {}u", index.spelled(), elements.lanes),
            };
            let loaded = format!("workgroupUniformLoad(&{name}[{unit}])");
            let loaded = match at {
                _ if elements.lanes == 1 => loaded,
                Some(lane) => format!("{loaded}.{}", COMPONENTS[lane as usize]),
                None => format!("{loaded}[({}) % {}u]", index.spelled(), elements.lanes),
            };
            self.define(value, &loaded);
        }
        Ok(())
    }
}
