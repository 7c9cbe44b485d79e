//! Tiles in workgroup memory, one for each subgroup, and copies of the elements of matrices.

use super::{Staging, nth_tile};
use crate::kir::matrix_bounds::{element_place, exact_index, wide};
use crate::kir::{
    AddressSpace, Barrier, BinaryOp, Builder, Builtin, Const, MatrixPlace, MatrixSize, MatrixType,
    Place, Type, Value,
};

/// Lanes of a subgroup, all of which have matrices.
const LANES: u32 = 32;

/// Elements of a tile: those of the largest matrix.
const TILE: u32 = MatrixSize::M16.rows() * MatrixSize::M16.rows();

/// The places of an element in the array and in the tile.
type Copy<'a> = &'a dyn Fn(&mut Builder, Place, Place);

/// What is done with an element: whether it exists (always without a value), its places in the
/// array and in the tile.
type OnElement<'a> = &'a dyn Fn(&mut Builder, Option<Value>, Place, Place);

impl Staging<'_> {
    /// Returns the place of a matrix in the subgroup's tile.
    pub(super) fn tile(&mut self, place: &MatrixPlace, ty: MatrixType) -> MatrixPlace {
        let space = self.tiles_of(ty);
        let (id, elements) = (self.builder.builtin(Builtin::SubgroupId), self.builder.u32(TILE));
        let index = self.builder.binary(BinaryOp::Mul, id, elements);
        let stride = self.builder.u32(ty.size.rows());
        let array = Place::new(space, None, ty.element.ty().size(), 0);
        MatrixPlace { array, len: None, index, stride, row_major: place.row_major }
    }

    /// Returns the tiles of an element type, which it declares when they are first needed.
    fn tiles_of(&mut self, ty: MatrixType) -> AddressSpace {
        let invocations: u32 = self.kir.workgroup_size.iter().product();
        let (builder, len) = (&mut self.builder, invocations.div_ceil(LANES) * TILE);
        let known = &mut self.tiles[nth_tile(ty.element)];
        *known.get_or_insert_with(|| builder.workgroup_array(ty.element.ty(), len))
    }

    /// Orders the accesses of a subgroup to its tile.
    pub(super) fn wait_for_subgroup(&mut self) {
        self.builder.barrier(Barrier::Subgroup);
    }

    /// Copies a matrix to its tile; elements outside of the array become zero.
    pub(super) fn copy_to_tile(&mut self, place: &MatrixPlace, tile: &MatrixPlace, ty: MatrixType) {
        let element = ty.element.ty();
        let var = self.builder.var(element);
        let zero = self.builder.constant(Const::zero(element));
        let copy = |b: &mut Builder, from: Place, _: Place| {
            let value = b.load(element, from, 1)[0];
            b.set(var, value);
        };
        self.for_each_element(place, tile, ty, &|b, exists, from, to| {
            b.set(var, zero);
            guarded(b, exists, &copy, [from, to]);
            let value = b.get(var);
            b.store(to, vec![value]);
        });
        self.wait_for_subgroup();
    }

    /// Copies a matrix from its tile, without the elements outside of the array.
    pub(super) fn copy_from_tile(
        &mut self,
        place: &MatrixPlace,
        tile: &MatrixPlace,
        ty: MatrixType,
    ) {
        self.wait_for_subgroup();
        let copy = |b: &mut Builder, to: Place, from: Place| {
            let value = b.load(ty.element.ty(), from, 1)[0];
            b.store(to, vec![value]);
        };
        self.for_each_element(place, tile, ty, &|b, exists, to, from| {
            guarded(b, exists, &copy, [to, from]);
        });
    }

    /// Adds a loop over a lane's share of the elements. Neighbouring lanes have neighbouring
    /// elements of a line.
    fn for_each_element(
        &mut self,
        place: &MatrixPlace,
        tile: &MatrixPlace,
        ty: MatrixType,
        body: OnElement<'_>,
    ) {
        let rows = ty.size.rows();
        let lane = self.builder.builtin(Builtin::SubgroupLane);
        let [first, end, lanes, most, shift] =
            [0, rows * rows / LANES, LANES, rows - 1, rows.trailing_zeros()]
                .map(|value| self.builder.u32(value));
        let [place, tile] = [*place, *tile];
        self.builder.count(first, end, |b, nth, _| {
            let before = b.binary(BinaryOp::Mul, nth, lanes);
            let nth = b.binary(BinaryOp::Add, before, lane);
            let line = b.binary(BinaryOp::Shr, nth, shift);
            let position = b.binary(BinaryOp::And, nth, most);
            let exact = exact_index(b, &place, line, position);
            let exists = place.len.map(|len| {
                let len = wide(b, len);
                b.binary(BinaryOp::Lt, exact, len)
            });
            let index = b.convert(Type::U32, exact);
            let element = element_place(b, &place, ty, index);
            let in_tile = b.binary(BinaryOp::Add, tile.index, nth);
            let in_tile = element_place(b, &tile, ty, in_tile);
            body(b, exists, element, in_tile);
        });
    }
}

/// Copies an element if it exists.
fn guarded(b: &mut Builder, exists: Option<Value>, copy: Copy<'_>, places: [Place; 2]) {
    let [array, tile] = places;
    match exists {
        None => copy(b, array, tile),
        Some(exists) => b.if_then(exists, |b| copy(b, array, tile)),
    }
}
