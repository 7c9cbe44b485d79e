//! Rewrites cooperative matrix accesses for devices such as Vulkan's, which load and store a matrix
//! only at an address that is the same in all lanes, in bounds and aligned.
//!
//! The address is broadcast from the first lane. If it is in bounds and aligned, the device
//! accesses the matrix directly. Otherwise it accesses a tile in workgroup memory, one for each
//! subgroup, from or to which the lanes copy the elements: elements out of bounds are zero in the
//! tile, and are not copied from it. A condition that depends on run-time values becomes a branch,
//! which is uniform in the subgroup.

mod tiles;

use super::alignment::{Alignment, MATRIX_ALIGNMENT};
use super::matrix_bounds::{Condition, index_from_offset, is_in_bounds};
use super::{
    AddressSpace, BinaryOp, Block, Builder, Inst, Kir, MatrixElement, MatrixPlace, MatrixType,
    Place, ShuffleSource, Stmt, SubgroupOp, Value, Var, Variability, for_each_stmt_mut, optimise,
};

/// A kernel being rewritten.
struct Staging<'k> {
    kir: &'k Kir,
    builder: Builder,
    /// For each value of `kir`, whether it is the same in all lanes of a subgroup.
    uniform: Vec<bool>,
    alignment: Alignment,
    /// Whether the device can access matrices in an address space.
    is_accessible: &'k dyn Fn(AddressSpace) -> bool,
    /// The tiles in workgroup memory, by element type.
    tiles: [Option<AddressSpace>; 2],
    /// Loads of matrices, and the instructions that replace them.
    replaced: Vec<(Value, Inst)>,
}

/// Rewrites the loads and stores of matrices, and optimises the kernel. Matrices in spaces that are
/// not accessible are always copied.
pub(crate) fn stage(kir: &Kir, is_accessible: &dyn Fn(AddressSpace) -> bool) -> Kir {
    let mut staging = Staging {
        kir,
        builder: Builder::continuing(Kir { body: Block::new(), ..kir.clone() }),
        uniform: uniform_values(kir),
        alignment: Alignment::analyse(kir),
        is_accessible,
        tiles: [None; 2],
        replaced: Vec::new(),
    };
    staging.block(&kir.body);
    let Staging { builder, replaced, .. } = staging;
    let mut staged = builder.finish();
    for (value, inst) in replaced {
        staged.values[value.index()].inst = inst;
    }
    optimise(&mut staged);
    drop_unused_tiles(&mut staged, kir.workgroup.len());
    staged
}

/// Returns which values are the same in all lanes of a subgroup. A loop that is not proven to end
/// may be exited by its lanes at different times when the launch is cancelled: in a kernel with
/// such loops, values that depend on variables are not uniform.
fn uniform_values(kir: &Kir) -> Vec<bool> {
    let may_be_cancelled = !kir.is_finite();
    let uniformity = kir.uniformity_in_subgroup();
    let mut uniform = Vec::with_capacity(kir.values.len());
    for (definition, variability) in kir.values.iter().zip(uniformity.values) {
        let mut same = variability == Variability::Uniform;
        if may_be_cancelled {
            same &= !matches!(definition.inst, Inst::Get(_));
            definition.inst.for_each_operand(|operand| {
                same &= uniform.get(operand.index()).copied().unwrap_or(false);
            });
        }
        uniform.push(same);
    }
    uniform
}

/// Removes the tiles that no access needs: workgroup arrays from the `first` on.
fn drop_unused_tiles(kir: &mut Kir, first: usize) {
    for nth in (first..kir.workgroup.len()).rev() {
        let mut is_used = false;
        visit_spaces(kir, &mut |space| is_used |= *space == AddressSpace::Workgroup(nth as u32));
        if !is_used {
            kir.workgroup.remove(nth);
            visit_spaces(kir, &mut |space| match space {
                AddressSpace::Workgroup(other) if *other > nth as u32 => *other -= 1,
                _ => {}
            });
        }
    }
}

/// Calls `visit` with the address space of each load and store. `visit` may change it.
fn visit_spaces(kir: &mut Kir, visit: &mut dyn FnMut(&mut AddressSpace)) {
    for definition in &mut kir.values {
        match &mut definition.inst {
            Inst::Load { place, .. } => visit(&mut place.space),
            Inst::MatrixLoad(place) => visit(&mut place.array.space),
            _ => {}
        }
    }
    for_each_stmt_mut(&mut kir.body, &mut |stmt| match stmt {
        Stmt::Store { place, .. } => visit(&mut place.space),
        Stmt::MatrixStore { place, .. } => visit(&mut place.array.space),
        _ => {}
    });
}

impl Staging<'_> {
    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn nested(&mut self, block: &Block) -> Block {
        self.builder.open();
        self.block(block);
        self.builder.close()
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.builder.set_position(self.kir.position(stmt));
        match stmt {
            Stmt::Let(value) => match (self.kir.inst(*value), self.kir.ty(*value).matrix()) {
                (Inst::MatrixLoad(place), Some(ty)) => self.load(*value, place, ty),
                _ => self.builder.push(stmt.clone()),
            },
            Stmt::MatrixStore { place, value, .. } => {
                if let Some(ty) = self.kir.ty(*value).matrix() {
                    self.store(place, *value, ty);
                }
            }
            Stmt::If { condition, then_block, else_block, at } => {
                let (condition, at) = (*condition, *at);
                let (then_block, else_block) = (self.nested(then_block), self.nested(else_block));
                self.builder.push(Stmt::If { condition, then_block, else_block, at });
            }
            Stmt::Loop { label, body, finite } => {
                let (label, finite, body) = (*label, *finite, self.nested(body));
                self.builder.push(Stmt::Loop { label, body, finite });
            }
            Stmt::Scope { label, body } => {
                let (label, body) = (*label, self.nested(body));
                self.builder.push(Stmt::Scope { label, body });
            }
            Stmt::Set(..) | Stmt::Store { .. } | Stmt::Break(_) | Stmt::Barrier(..) => {
                self.builder.push(stmt.clone());
            }
        }
    }

    /// Loads a matrix.
    fn load(&mut self, value: Value, place: &MatrixPlace, ty: MatrixType) {
        let (place, direct) = self.uniform_place(place, ty);
        let inst = match self.is_direct(&place, &direct, ty) {
            Condition::Always => Inst::MatrixLoad(direct),
            Condition::Never => {
                let var = self.builder.var(super::Type::Matrix(ty));
                self.load_through_tile(var, &place, ty);
                Inst::Get(var)
            }
            Condition::If(condition) => {
                let var = self.builder.var(super::Type::Matrix(ty));
                self.branch(condition, &mut |this, is_direct| match is_direct {
                    true => {
                        let matrix = this.builder.matrix_load(ty, direct);
                        this.builder.set(var, matrix);
                    }
                    false => this.load_through_tile(var, &place, ty),
                });
                Inst::Get(var)
            }
        };
        self.replaced.push((value, inst));
        self.builder.push(Stmt::Let(value));
    }

    /// Stores a matrix.
    fn store(&mut self, place: &MatrixPlace, value: Value, ty: MatrixType) {
        let (place, direct) = self.uniform_place(place, ty);
        match self.is_direct(&place, &direct, ty) {
            Condition::Always => self.builder.matrix_store(direct, value),
            Condition::Never => self.store_through_tile(&place, value, ty),
            Condition::If(condition) => {
                self.branch(condition, &mut |this, is_direct| match is_direct {
                    true => this.builder.matrix_store(direct, value),
                    false => this.store_through_tile(&place, value, ty),
                });
            }
        }
    }

    fn load_through_tile(&mut self, var: Var, place: &MatrixPlace, ty: MatrixType) {
        let tile = self.tile(place, ty);
        self.copy_to_tile(place, &tile, ty);
        let matrix = self.builder.matrix_load(ty, tile);
        self.builder.set(var, matrix);
        self.subgroup_barrier();
    }

    fn store_through_tile(&mut self, place: &MatrixPlace, value: Value, ty: MatrixType) {
        let tile = self.tile(place, ty);
        self.builder.matrix_store(tile, value);
        self.copy_from_tile(place, &tile, ty);
        self.subgroup_barrier();
    }

    /// Adds a branch: `fill` adds the statements for a true condition, then those for a false one.
    fn branch(&mut self, condition: Value, fill: &mut dyn FnMut(&mut Self, bool)) {
        let at = self.builder.position();
        let mut block = |is_true| {
            self.builder.open();
            fill(self, is_true);
            self.builder.close()
        };
        let (then_block, else_block) = (block(true), block(false));
        self.builder.push(Stmt::If { condition, then_block, else_block, at });
    }

    /// Returns the place with its operands broadcast from the first lane, and the same memory for a
    /// direct access: without an index of the array, and without its length.
    fn uniform_place(&mut self, place: &MatrixPlace, ty: MatrixType) -> (MatrixPlace, MatrixPlace) {
        let mut place = *place;
        place.visit_operands(&mut |operand| *operand = self.broadcast_first(*operand));
        let index = index_from_offset(&mut self.builder, &place, ty, place.index);
        let array = Place { index: None, stride: ty.element.ty().size(), ..place.array };
        (place, MatrixPlace { array, index, len: None, ..place })
    }

    /// Returns the value of a `U32` in the first lane. In a valid kernel all lanes have the same
    /// value, but only for values known to be `uniform` can the broadcast be omitted.
    fn broadcast_first(&mut self, value: Value) -> Value {
        if self.uniform.get(value.index()).copied().unwrap_or(false) {
            return value;
        }
        self.builder.subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value })
    }

    /// Returns the condition that the device can access a matrix directly. `direct` is the memory
    /// of `place` as such an access addresses it.
    fn is_direct(
        &mut self,
        place: &MatrixPlace,
        direct: &MatrixPlace,
        ty: MatrixType,
    ) -> Condition {
        if !(self.is_accessible)(place.array.space) {
            return Condition::Never;
        }
        let in_bounds = is_in_bounds(&mut self.builder, place, ty);
        match (in_bounds, self.is_aligned(place, direct, ty)) {
            (Condition::Never, _) | (_, Condition::Never) => Condition::Never,
            (Condition::Always, other) | (other, Condition::Always) => other,
            (Condition::If(in_bounds), Condition::If(aligned)) => {
                Condition::If(self.builder.binary(BinaryOp::And, in_bounds, aligned))
            }
        }
    }

    /// Returns the condition that a matrix and its stride are aligned.
    fn is_aligned(
        &mut self,
        place: &MatrixPlace,
        direct: &MatrixPlace,
        ty: MatrixType,
    ) -> Condition {
        let aligned = self.alignment.of_matrix(self.builder.kir(), place, ty);
        if aligned.index && !aligned.offset {
            return Condition::Never;
        }
        let size = ty.element.ty().size();
        let elements = MATRIX_ALIGNMENT / size;
        // The values whose low bits have to be tested.
        let mut unknown = Vec::new();
        if !aligned.index {
            let offset = self.builder.u32(place.array.offset / size % elements);
            unknown.push(self.builder.binary(BinaryOp::Add, direct.index, offset));
        }
        if !aligned.stride {
            unknown.push(place.stride);
        }
        let builder = &mut self.builder;
        let bits = unknown.into_iter().reduce(|a, b| builder.binary(BinaryOp::Or, a, b));
        let Some(bits) = bits else { return Condition::Always };
        let [mask, zero] = [elements - 1, 0].map(|value| builder.u32(value));
        let low = builder.binary(BinaryOp::And, bits, mask);
        Condition::If(builder.binary(BinaryOp::Eq, low, zero))
    }
}

/// Returns the index of an element type in `Staging::tiles`.
fn tile_index(element: MatrixElement) -> usize {
    match element {
        MatrixElement::F16 => 0,
        MatrixElement::F32 => 1,
    }
}

#[cfg(test)]
mod tests;
