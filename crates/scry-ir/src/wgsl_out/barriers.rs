//! Barriers, and loads from workgroup memory between two of them: `workgroupUniformLoad`.
//!
//! KIR knows that such a load from a uniform address is uniform. WGSL's uniformity analysis does
//! not, and would refuse barriers under a condition on it.

use super::Emitter;
use super::address::COMPONENTS;
use super::declarations::Shape;
use super::uniformity::UniformLoads;
use crate::ShaderError;
use crate::kir::{Barrier, Place, Stmt, Value};

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

    /// A barrier before or after `workgroupUniformLoad`, which has one for workgroup memory.
    pub(super) fn barrier_of_load(&mut self) {
        if self.barriers.take() {
            self.body.line("storageBarrier();");
        }
    }

    /// Writes uniform loads between two barriers, if a block begins with them; returns the
    /// statements behind.
    pub(super) fn uniform_loads<'b>(
        &mut self,
        block: &'b [Stmt],
    ) -> Result<Option<&'b [Stmt]>, ShaderError> {
        let Some((Stmt::Barrier(Barrier::Workgroup), rest)) = block.split_first() else {
            return Ok(None);
        };
        let count = rest.iter().take_while(|stmt| matches!(stmt, Stmt::Let(_))).count();
        let (between, behind) = rest.split_at(count);
        let Some((Stmt::Barrier(Barrier::Workgroup), behind)) = behind.split_first() else {
            return Ok(None);
        };
        let kir = self.kir;
        let mut loads = between.iter().filter_map(|stmt| UniformLoads::load(kir, stmt)).peekable();
        if loads.peek().is_none() || !loads.all(|(_, place, _)| self.is_uniform_place(&place)) {
            return Ok(None);
        }
        self.barrier_of_load();
        for stmt in between {
            match UniformLoads::load(kir, stmt) {
                Some((value, place, count)) => self.uniform_load(value, &place, count)?,
                None => self.statements(std::slice::from_ref(stmt))?,
            }
        }
        self.barrier_of_load();
        Ok(Some(behind))
    }

    fn is_uniform_place(&self, place: &Place) -> bool {
        let uniform = &self.barriers.uniform;
        place.index.is_none_or(|index| uniform.is_uniform(self.kir, index, &mut Vec::new()))
    }

    fn uniform_load(&mut self, first: Value, place: &Place, count: u32) -> Result<(), ShaderError> {
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
            self.barriers.uniform.loaded[value.index()] = true;
        }
        Ok(())
    }
}
