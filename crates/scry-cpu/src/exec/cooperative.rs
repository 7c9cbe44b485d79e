//! Products of cooperative matrices, whose elements are distributed over the lanes of a subgroup.
//!
//! The scalars of all lanes are gathered into whole matrices, and the result is scattered to the
//! lanes. Products are accumulated in f32, in ascending order of k.

use scry_ir::kir::{FragmentLayout, LaneBits, MatrixFragments, Type};

use super::exchange::{Members, SIZE};
use super::frame::Frame;
use crate::code::MatrixProduct;
use crate::lanes::Src;
use crate::math::{f16_bits, f32_of_f16};

/// Rows of the left operand and of the accumulator.
const M: usize = 16;

/// K, and the columns of the right operand and of the accumulator.
const N: usize = 8;

/// How a lane's number selects its first element: `lane / 4` is the row, and `lane % 4` the pair of
/// columns, or for the right operand the other way round.
const GROUP: LaneBits = LaneBits { shift: 2, scale: 1 };
const PAIR: LaneBits = LaneBits { shift: 0, scale: 2 };

/// The layout that [`element`] computes, as the IR describes it.
pub(crate) const FRAGMENTS: MatrixFragments = {
    let rows = FragmentLayout { row: GROUP, column: PAIR, steps: [[0, 1], [8, 0], [0, 8]] };
    let columns = FragmentLayout { row: PAIR, column: GROUP, steps: [[1, 0], [8, 0], [0, 8]] };
    MatrixFragments { a: rows, b: columns, c: rows, has_load: false }
};

/// The rows of a matrix of [`N`] columns.
type Matrix<const R: usize> = [[f32; N]; R];

impl Frame<'_> {
    pub(super) fn multiply_add(&self, product: &MatrixProduct) {
        let MatrixProduct { operand_type, accumulator_type, .. } = *product;
        self.for_each_subgroup(&mut |first, end| {
            let a: Matrix<M> = self.gather_rows(operand_type, &product.a, [first, end]);
            let b = self.gather_columns(operand_type, &product.b, [first, end]);
            let mut c: Matrix<M> = self.gather_rows(accumulator_type, &product.c, [first, end]);
            multiply_add(&a, &b, &mut c);
            self.scatter(product, [first, end], &c);
        });
    }

    /// Gathers a left operand or an accumulator, of which each lane has a pair in every eighth row.
    fn gather_rows(&self, ty: Type, from: &[Src], [first, end]: [usize; 2]) -> Matrix<M> {
        let mut matrix = [[0.0; N]; M];
        for (nth, from) in from.iter().enumerate() {
            let members = self.members(ty, *from, first, end);
            for (lane, bits) in members.values.into_iter().enumerate() {
                let [row, column] = element(lane, nth);
                matrix[row][column] = to_f32(ty, bits);
            }
        }
        matrix
    }

    /// Gathers a right operand, of which each lane has a pair in a column.
    fn gather_columns(&self, ty: Type, from: &[Src; 2], [first, end]: [usize; 2]) -> Matrix<N> {
        let mut matrix = [[0.0; N]; N];
        for (nth, from) in from.iter().enumerate() {
            let members = self.members(ty, *from, first, end);
            for (lane, bits) in members.values.into_iter().enumerate() {
                let [column, row] = element(lane, nth);
                matrix[row][column] = to_f32(ty, bits);
            }
        }
        matrix
    }

    /// Writes the elements of a result to the lanes that hold them, if active.
    fn scatter(&self, product: &MatrixProduct, [first, end]: [usize; 2], matrix: &Matrix<M>) {
        let members: Members = self.members(product.accumulator_type, product.c[0], first, end);
        for (nth, d) in product.d.into_iter().enumerate() {
            for lane in 0..SIZE {
                let [row, column] = element(lane, nth);
                let value = from_f32(product.accumulator_type, matrix[row][column]);
                self.write_result(product.accumulator_type, &members, d, lane, value);
            }
        }
    }
}

/// Returns row and column of the `nth` scalar of a lane.
fn element(lane: usize, nth: usize) -> [usize; 2] {
    [lane / 4 + nth / 2 * N, lane % 4 * 2 + nth % 2]
}

fn multiply_add(a: &Matrix<M>, b: &Matrix<N>, c: &mut Matrix<M>) {
    for (row, accumulators) in a.iter().zip(c) {
        for (left, right) in row.iter().zip(b) {
            for (accumulator, right) in accumulators.iter_mut().zip(right) {
                *accumulator += left * right;
            }
        }
    }
}

fn to_f32(ty: Type, bits: u64) -> f32 {
    if ty == Type::F16 { f32_of_f16(bits as u16) } else { f32::from_bits(bits as u32) }
}

fn from_f32(ty: Type, number: f32) -> u64 {
    if ty == Type::F16 { f16_bits(number).into() } else { number.to_bits().into() }
}
