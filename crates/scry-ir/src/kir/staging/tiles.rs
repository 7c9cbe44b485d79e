//! Tiles in workgroup memory, one for each subgroup, and the copies of elements to and from them.

use super::{Staging, tile_index};
use crate::kir::matrix_bounds::{element_place, index_u64, to_u64};
use crate::kir::{
    AddressSpace, Barrier, BinaryOp, Builder, Builtin, Const, MatrixPlace, MatrixSize, MatrixType,
    Place, Type, Value,
};

/// Subgroup size of kernels with cooperative matrices.
const LANES: u32 = 32;

/// Number of elements of a tile: that of the largest matrix.
const TILE_ELEMENTS: u32 = MatrixSize::M16.rows() * MatrixSize::M16.rows();

/// Adds the copy of an element, given its addresses in the array and in the tile.
type AddCopy<'a> = &'a dyn Fn(&mut Builder, Place, Place);

/// Adds the statements for an element, given the condition that it is in bounds (`None`: it always
/// is), and its addresses in the array and in the tile.
type AddElement<'a> = &'a dyn Fn(&mut Builder, Option<Value>, Place, Place);

impl Staging<'_> {
    /// Returns the place of a matrix in the subgroup's tile.
    pub(super) fn tile(&mut self, place: &MatrixPlace, ty: MatrixType) -> MatrixPlace {
        let space = self.tiles_of(ty);
        let id = self.builder.builtin(Builtin::SubgroupId);
        let elements = self.builder.u32(TILE_ELEMENTS);
        let index = self.builder.binary(BinaryOp::Mul, id, elements);
        let stride = self.builder.u32(ty.size.rows());
        let array = Place::new(space, None, ty.element.ty().size(), 0);
        MatrixPlace { array, len: None, index, stride, row_major: place.row_major }
    }

    /// Returns the workgroup array of tiles of an element type, which is declared at its first use.
    fn tiles_of(&mut self, ty: MatrixType) -> AddressSpace {
        let invocations: u32 = self.kir.workgroup_size.iter().product();
        let (builder, len) = (&mut self.builder, invocations.div_ceil(LANES) * TILE_ELEMENTS);
        let tiles = &mut self.tiles[tile_index(ty.element)];
        *tiles.get_or_insert_with(|| builder.workgroup_array(ty.element.ty(), len))
    }

    /// Adds a subgroup barrier, which orders the accesses of a subgroup to its tile.
    pub(super) fn subgroup_barrier(&mut self) {
        self.builder.barrier(Barrier::Subgroup);
    }

    /// Copies a matrix to its tile; elements out of bounds become zero.
    pub(super) fn copy_to_tile(&mut self, place: &MatrixPlace, tile: &MatrixPlace, ty: MatrixType) {
        let element = ty.element.ty();
        let var = self.builder.var(element);
        let zero = self.builder.constant(Const::zero(element));
        let copy = |b: &mut Builder, from: Place, _: Place| {
            let value = b.load(element, from, 1)[0];
            b.set(var, value);
        };
        self.for_each_element(place, tile, ty, &|b, in_bounds, from, to| {
            b.set(var, zero);
            copy_if(b, in_bounds, &copy, [from, to]);
            let value = b.get(var);
            b.store(to, vec![value]);
        });
        self.subgroup_barrier();
    }

    /// Copies a matrix from its tile, without the elements out of bounds.
    pub(super) fn copy_from_tile(
        &mut self,
        place: &MatrixPlace,
        tile: &MatrixPlace,
        ty: MatrixType,
    ) {
        self.subgroup_barrier();
        let copy = |b: &mut Builder, to: Place, from: Place| {
            let value = b.load(ty.element.ty(), from, 1)[0];
            b.store(to, vec![value]);
        };
        self.for_each_element(place, tile, ty, &|b, in_bounds, to, from| {
            copy_if(b, in_bounds, &copy, [to, from]);
        });
    }

    /// Adds a loop over a lane's share of the elements. Consecutive lanes access consecutive
    /// elements of a line.
    fn for_each_element(
        &mut self,
        place: &MatrixPlace,
        tile: &MatrixPlace,
        ty: MatrixType,
        body: AddElement<'_>,
    ) {
        let rows = ty.size.rows();
        let lane = self.builder.builtin(Builtin::SubgroupLane);
        let [first, end, lanes, mask, shift] =
            [0, rows * rows / LANES, LANES, rows - 1, rows.trailing_zeros()]
                .map(|value| self.builder.u32(value));
        let [place, tile] = [*place, *tile];
        self.builder.for_range(first, end, |b, iteration, _| {
            let preceding = b.binary(BinaryOp::Mul, iteration, lanes);
            let element = b.binary(BinaryOp::Add, preceding, lane);
            let line = b.binary(BinaryOp::Shr, element, shift);
            let position = b.binary(BinaryOp::And, element, mask);
            let exact = index_u64(b, &place, line, position);
            let in_bounds = place.len.map(|len| {
                let len = to_u64(b, len);
                b.binary(BinaryOp::Lt, exact, len)
            });
            let index = b.convert(Type::U32, exact);
            let in_array = element_place(b, &place, ty, index);
            let tile_index = b.binary(BinaryOp::Add, tile.index, element);
            let in_tile = element_place(b, &tile, ty, tile_index);
            body(b, in_bounds, in_array, in_tile);
        });
    }
}

/// Adds the copy of an element, executed if the element is in bounds.
fn copy_if(b: &mut Builder, in_bounds: Option<Value>, copy: AddCopy<'_>, places: [Place; 2]) {
    let [array, tile] = places;
    match in_bounds {
        None => copy(b, array, tile),
        Some(in_bounds) => b.if_then(in_bounds, |b| copy(b, array, tile)),
    }
}
