//! Cooperative matrices for devices that access them whole, as Vulkan's do: at places that are the
//! same in all lanes, inside of the array, and aligned.
//!
//! The place of a matrix is made that of the first lane. A test, which is the same in all lanes,
//! decides whether the device accesses the matrix where it is; if not, the lanes copy its elements
//! from or to a tile in workgroup memory, one tile for each subgroup, and the device accesses that.
//! Elements outside of the array are zero in the tile, and are not copied from it.

mod alignment;
mod tiles;

use self::alignment::Alignment;
use super::matrix_bounds::{Inside, index_from_offset, inside};
use super::{
    AddressSpace, BinaryOp, Block, Builder, Inst, Kir, MatrixElement, MatrixPlace, MatrixType,
    Place, ShuffleSource, Stmt, SubgroupOp, Value, Var, Variability, any_stmt, for_each_stmt_mut,
    optimise,
};

/// Bytes to which devices want matrices and their strides aligned. The lines of all matrices have
/// at least as many.
const ALIGNMENT: u32 = 16;

/// A kernel being rewritten.
struct Staging<'k> {
    kir: &'k Kir,
    builder: Builder,
    uniform: Vec<bool>,
    alignment: Alignment,
    is_accessible: &'k dyn Fn(AddressSpace) -> bool,
    /// The tiles in workgroup memory, by element type.
    tiles: [Option<AddressSpace>; 2],
    /// Loads of matrices, and what replaces them.
    replaced: Vec<(Value, Inst)>,
}

/// Rewrites the loads and stores of matrices, and optimises the kernel. Matrices in spaces that are
/// not accessible are always copied.
pub(crate) fn stage(kir: &Kir, is_accessible: &dyn Fn(AddressSpace) -> bool) -> Kir {
    let mut staging = Staging {
        kir,
        builder: Builder::continuing(Kir { body: Block::new(), ..kir.clone() }),
        uniform: uniform_values(kir),
        alignment: Alignment::of(kir),
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
/// may be left by its lanes at different times when the launch is cancelled: in a kernel with such
/// loops, values that depend on variables do not count.
fn uniform_values(kir: &Kir) -> Vec<bool> {
    let may_be_cancelled =
        any_stmt(&kir.body, &mut |stmt| matches!(stmt, Stmt::Loop { finite: false, .. }));
    let uniformity = kir.uniformity_in_subgroup();
    let mut uniform = Vec::with_capacity(kir.values.len());
    for (definition, class) in kir.values.iter().zip(uniformity.values) {
        let mut same = class == Variability::Uniform;
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

/// Calls `visit` with the address spaces of loads and stores, which it may change.
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
            Stmt::Set(..) | Stmt::Store { .. } | Stmt::Leave(_) | Stmt::Barrier(..) => {
                self.builder.push(stmt.clone());
            }
        }
    }

    /// Loads a matrix.
    fn load(&mut self, value: Value, place: &MatrixPlace, ty: MatrixType) {
        let (place, whole) = self.uniform_place(place, ty);
        let inst = match self.accessible(&place, &whole, ty) {
            Inside::Always => Inst::MatrixLoad(whole),
            Inside::Never => {
                let var = self.builder.var(super::Type::Matrix(ty));
                self.load_through_tile(var, &place, ty);
                Inst::Get(var)
            }
            Inside::If(condition) => {
                let var = self.builder.var(super::Type::Matrix(ty));
                self.branch(condition, &mut |this, direct| match direct {
                    true => {
                        let matrix = this.builder.matrix_load(ty, whole);
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
        let (place, whole) = self.uniform_place(place, ty);
        match self.accessible(&place, &whole, ty) {
            Inside::Always => self.builder.matrix_store(whole, value),
            Inside::Never => self.store_through_tile(&place, value, ty),
            Inside::If(condition) => self.branch(condition, &mut |this, direct| match direct {
                true => this.builder.matrix_store(whole, value),
                false => this.store_through_tile(&place, value, ty),
            }),
        }
    }

    fn load_through_tile(&mut self, var: Var, place: &MatrixPlace, ty: MatrixType) {
        let tile = self.tile(place, ty);
        self.copy_to_tile(place, &tile, ty);
        let matrix = self.builder.matrix_load(ty, tile);
        self.builder.set(var, matrix);
        self.wait_for_subgroup();
    }

    fn store_through_tile(&mut self, place: &MatrixPlace, value: Value, ty: MatrixType) {
        let tile = self.tile(place, ty);
        self.builder.matrix_store(tile, value);
        self.copy_from_tile(place, &tile, ty);
        self.wait_for_subgroup();
    }

    /// Adds a branch: `fill` adds the block for a true condition, and that for a false one.
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

    /// Returns a place with the operands of the first lane, and the same for an access of the whole
    /// matrix: without an index of the array, and without its length.
    fn uniform_place(&mut self, place: &MatrixPlace, ty: MatrixType) -> (MatrixPlace, MatrixPlace) {
        let mut place = *place;
        place.visit_operands(&mut |operand| *operand = self.of_first_lane(*operand));
        let index = index_from_offset(&mut self.builder, &place, ty, place.index);
        let array = Place { index: None, stride: ty.element.ty().size(), ..place.array };
        (place, MatrixPlace { array, index, len: None, ..place })
    }

    /// Returns the value of a `U32` in the first lane; lanes may differ only if a kernel is wrong.
    fn of_first_lane(&mut self, value: Value) -> Value {
        if self.uniform.get(value.index()).copied().unwrap_or(false) {
            return value;
        }
        self.builder.subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value })
    }

    /// Returns whether the device can access a matrix where it is.
    fn accessible(&mut self, place: &MatrixPlace, whole: &MatrixPlace, ty: MatrixType) -> Inside {
        if !(self.is_accessible)(place.array.space) {
            return Inside::Never;
        }
        let inside = inside(&mut self.builder, place, ty);
        match (inside, self.aligned(place, whole, ty)) {
            (Inside::Never, _) | (_, Inside::Never) => Inside::Never,
            (Inside::Always, other) | (other, Inside::Always) => other,
            (Inside::If(inside), Inside::If(aligned)) => {
                Inside::If(self.builder.binary(BinaryOp::And, inside, aligned))
            }
        }
    }

    /// Returns whether the matrix and its stride are aligned.
    fn aligned(&mut self, place: &MatrixPlace, whole: &MatrixPlace, ty: MatrixType) -> Inside {
        let size = ty.element.ty().size();
        let elements = ALIGNMENT / size;
        let wanted = elements.trailing_zeros();
        let offset = place.array.offset / size % elements;
        let [index, stride] = [self.zero_bits_of_index(place, size), self.zero_bits(place.stride)];
        if index >= wanted && offset != 0 {
            return Inside::Never;
        }
        let mut unknown = Vec::new();
        if index < wanted {
            let offset = self.builder.u32(offset);
            unknown.push(self.builder.binary(BinaryOp::Add, whole.index, offset));
        }
        if stride < wanted {
            unknown.push(place.stride);
        }
        let builder = &mut self.builder;
        let bits = unknown.into_iter().reduce(|a, b| builder.binary(BinaryOp::Or, a, b));
        let Some(bits) = bits else { return Inside::Always };
        let [mask, zero] = [elements - 1, 0].map(|value| builder.u32(value));
        let low = builder.binary(BinaryOp::And, bits, mask);
        Inside::If(builder.binary(BinaryOp::Eq, low, zero))
    }

    /// Returns the zero bits of the index of a matrix, counted from the array's offset.
    fn zero_bits_of_index(&self, place: &MatrixPlace, size: u32) -> u32 {
        let elements = (place.array.stride / size).max(1).trailing_zeros();
        let outer = place.array.index.map_or(u32::BITS, |index| self.zero_bits(index) + elements);
        outer.min(self.zero_bits(place.index))
    }

    /// Returns the zero bits of a value of the original kernel, or of one in the first lane.
    fn zero_bits(&self, value: Value) -> u32 {
        match *self.builder.kir().inst(value) {
            Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value }) => {
                self.alignment.zero_bits(value)
            }
            _ => self.alignment.zero_bits(value),
        }
    }
}

/// The position of an element type among the tiles.
fn nth_tile(element: MatrixElement) -> usize {
    match element {
        MatrixElement::F16 => 0,
        MatrixElement::F32 => 1,
    }
}

#[cfg(test)]
mod tests;
