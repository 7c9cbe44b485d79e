//! State of code emission. Its methods for instructions and statements are in other files.

use scry_ir::kir::{Kir, Label, Type, Uniformity, Variability};

use super::analysis::conditions::Conditions;
use super::analysis::liveness::{LiveRange, LiveRanges};
use super::registers::Registers;
use crate::code::{Affine, Code, Step};
use crate::lanes::{BLOCK, Src};

/// The state of code emission.
pub(super) struct Emitter<'a> {
    pub(super) kir: &'a Kir,
    pub(super) uniformity: &'a Uniformity,
    pub(super) live_ranges: &'a LiveRanges,
    /// Values that are needed in lane registers.
    pub(super) demand: Vec<bool>,
    pub(super) conditions: Conditions,
    /// Loops and scopes that lanes may leave while others stay, by label.
    pub(super) divergent_exits: Vec<bool>,
    pub(super) locations: Vec<Option<Location>>,
    /// For each uniform value, the block that holds its broadcast, if any.
    pub(super) splats: Vec<Option<u32>>,
    pub(super) vars: Vec<Option<Location>>,
    pub(super) code: Code,
    pub(super) registers: Registers,
    /// For each workgroup array, the number of its first element among those of the same size.
    pub(super) shared: Vec<u32>,
    /// Position of the current statement, in the numbering of `liveness`.
    pub(super) position: u32,
    /// The mask register of each depth of divergence.
    pub(super) masks: Vec<u32>,
    pub(super) depth: usize,
    pub(super) constructs: Vec<Construct>,
}

/// Location of a value or variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    /// One value for all lanes.
    Scalar(u32),
    /// Coefficients, or lanes if not affine.
    Affine(Affine),
    /// A register.
    Lanes(u32),
}

/// An operand or a result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reg {
    Scalar(u32),
    Lanes(Src),
}

impl Reg {
    /// Returns the register that starts at a block.
    pub(super) fn lanes(start: u32) -> Self {
        Self::Lanes(Src { start, step: 1 })
    }
}

/// An open loop, scope or divergent branch.
#[derive(Debug)]
pub(super) struct Construct {
    /// The label of a loop or scope.
    pub(super) label: Option<Label>,
    /// Depth of the mask that is active before and after it.
    pub(super) depth: usize,
    /// Whether it has a mask of its own: lanes that leave it wait at its end.
    pub(super) has_mask: bool,
    /// Steps that jump to its end.
    pub(super) exits: Vec<usize>,
    /// Steps that jump to its end, or to its else block, if no lane is active.
    pub(super) empty_exits: Vec<usize>,
}

impl Emitter<'_> {
    pub(super) fn push(&mut self, step: Step) {
        self.code.steps.push(step);
    }

    /// Returns the index of the next step, as the target of jumps.
    pub(super) fn here(&self) -> u32 {
        self.code.steps.len() as u32
    }

    /// Allocates workgroup and local memory.
    pub(super) fn allocate_arrays(&mut self) {
        for array in &self.kir.workgroup {
            let sizes = &mut self.code.shared;
            let size = match array.ty.size() {
                1 => &mut sizes.b8,
                2 => &mut sizes.b16,
                4 => &mut sizes.b32,
                _ => &mut sizes.b64,
            };
            self.shared.push(*size as u32);
            // Arrays start at a block, so that whole blocks of them can be written.
            *size += (array.len as usize).next_multiple_of(BLOCK);
        }
        let blocks = self.code.lane_layout.lanes().div_ceil(BLOCK) as u32;
        for array in &self.kir.locals {
            let start = self.registers.allocate_array(array.ty, array.len);
            self.code.locals.push((array.ty, start, array.len * blocks));
        }
    }

    /// Allocates and clears variables that need zero-initialisation.
    pub(super) fn allocate_vars(&mut self) {
        for (index, var) in self.live_ranges.vars.iter().enumerate() {
            if var.zeroed {
                let ty = self.kir.vars[index];
                let location =
                    self.allocate(ty, self.uniformity.vars[index].variability, var.live_range);
                self.vars[index] = Some(location);
                self.zero(ty, location);
            }
        }
    }

    /// Allocates a location of this type and variability for a live range.
    pub(super) fn allocate(
        &mut self,
        ty: Type,
        variability: Variability,
        live_range: LiveRange,
    ) -> Location {
        match variability {
            Variability::Uniform => Location::Scalar(self.scalar()),
            Variability::Affine => {
                let lanes = self.registers.allocate(live_range.last, ty);
                Location::Affine(self.affine(lanes))
            }
            Variability::Varying => Location::Lanes(self.registers.allocate(live_range.last, ty)),
        }
    }
}
