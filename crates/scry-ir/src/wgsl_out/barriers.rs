//! Barriers, and loads from workgroup memory with barriers: `workgroupUniformLoad`.

use super::Emitter;
use super::declarations::Shape;
use super::fields::COMPONENTS;
use crate::ShaderError;
use crate::kir::{Place, Value};

impl Emitter<'_> {
    /// Writes a workgroup barrier.
    pub(super) fn barrier(&mut self) {
        let storage = self.barriers.next_orders_storage();
        if storage {
            self.body.line("storageBarrier();");
        }
        // At least one of the two is written, so that no barrier disappears.
        if self.barriers.has_workgroup_memory || !storage {
            self.body.line("workgroupBarrier();");
        }
    }

    /// Writes a load with barriers before and after it. `workgroupUniformLoad` contains those for
    /// workgroup memory. Those for storage are added where they are needed.
    pub(super) fn uniform_load(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
        [before, after]: [bool; 2],
    ) -> Result<(), ShaderError> {
        self.storage_barrier_if(before);
        self.load_workgroup(first, place, count)?;
        self.storage_barrier_if(after);
        Ok(())
    }

    fn storage_barrier_if(&mut self, needed: bool) {
        if needed && self.barriers.next_orders_storage() {
            self.body.line("storageBarrier();");
        }
    }

    fn load_workgroup(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
    ) -> Result<(), ShaderError> {
        let memory = self.memory_variable(place)?;
        let Shape::Array(elements) = memory.shape else {
            return Err(ShaderError::compiler("Kir::to_wgsl: workgroup memory of fields".into()));
        };
        let name = memory.name.clone();
        if self.kir.ty(first).size() < elements.scalar_size() {
            return self.load_between_barriers(first, place, count);
        }
        let index = self.index(place, elements.scalar_size());
        for i in 0..count {
            let value = Value(first.0 + i);
            let index = index.plus(i.into());
            let lane = index.lane(elements.lanes);
            let unit = match lane {
                Some(_) => index.element(elements.lanes).expression(),
                None => format!("({}) / {}u", index.expression(), elements.lanes),
            };
            let loaded = format!("workgroupUniformLoad(&{name}[{unit}])");
            let loaded = match lane {
                _ if elements.lanes == 1 => loaded,
                Some(lane) => format!("{loaded}.{}", COMPONENTS[lane as usize]),
                None => format!("{loaded}[({}) % {}u]", index.expression(), elements.lanes),
            };
            self.define(value, &loaded);
        }
        Ok(())
    }

    /// Loads parts of words, which `workgroupUniformLoad` cannot.
    fn load_between_barriers(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
    ) -> Result<(), ShaderError> {
        self.body.line("workgroupBarrier();");
        self.load(first, place, count)?;
        self.body.line("workgroupBarrier();");
        Ok(())
    }
}
