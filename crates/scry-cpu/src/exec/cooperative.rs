//! Cooperative matrices: products of matrices that a subgroup holds together.
//!
//! The scalars of all lanes are gathered into whole matrices, and the result is scattered to the
//! lanes. Products are accumulated in f32, in the order of K.

use scry_ir::kir::{FragmentLayout, LaneBits, MatrixFragments, Type};

use super::exchange::{Members, SIZE};
use super::frame::Frame;
use crate::code::MatrixProduct;
use crate::lanes::Src;
use crate::math::{f16_bits, f32_of_f16};

/// M: rows of the left operand and of the accumulator.
const ROWS: usize = 16;

/// K, and N: columns of the right operand and of the accumulator.
const STEP: usize = 8;

/// Lanes in groups of four, one for each row (or column), which hold pairs of neighbours in it.
const GROUP: LaneBits = LaneBits { shift: 2, scale: 1 };
const PAIR: LaneBits = LaneBits { shift: 0, scale: 2 };

/// The elements that [`element`] assigns to lanes, for each part of [`ROWS`] and [`STEP`].
pub(crate) const FRAGMENTS: MatrixFragments = {
    let rows = FragmentLayout { row: GROUP, column: PAIR, steps: [[0, 1], [8, 0], [0, 8]] };
    let columns = FragmentLayout { row: PAIR, column: GROUP, steps: [[1, 0], [8, 0], [0, 8]] };
    MatrixFragments { a: rows, b: columns, c: rows }
};

/// Rows and columns of a matrix of [`STEP`] columns.
type Matrix<const R: usize> = [[f32; STEP]; R];

impl Frame<'_> {
    pub(super) fn multiply_add(&self, product: &MatrixProduct) {
        let MatrixProduct { operand_type, accumulator_type, .. } = *product;
        self.for_each_subgroup(&mut |first, end| {
            let a: Matrix<ROWS> = self.gather_rows(operand_type, &product.a, [first, end]);
            let b = self.gather_columns(operand_type, &product.b, [first, end]);
            let mut c: Matrix<ROWS> = self.gather_rows(accumulator_type, &product.c, [first, end]);
            multiply_add(&a, &b, &mut c);
            self.scatter(product, [first, end], &c);
        });
    }

    /// Gathers a left operand or accumulator, of which each lane holds a pair in every eighth row.
    fn gather_rows(&self, ty: Type, from: &[Src], [first, end]: [usize; 2]) -> Matrix<ROWS> {
        let mut matrix = [[0.0; STEP]; ROWS];
        for (nth, from) in from.iter().enumerate() {
            let members = self.members(ty, *from, first, end);
            for (lane, bits) in members.values.into_iter().enumerate() {
                let [row, column] = element(lane, nth);
                matrix[row][column] = number(ty, bits);
            }
        }
        matrix
    }

    /// Gathers a right operand, of which lanes hold column pairs.
    fn gather_columns(&self, ty: Type, from: &[Src; 2], [first, end]: [usize; 2]) -> Matrix<STEP> {
        let mut matrix = [[0.0; STEP]; STEP];
        for (nth, from) in from.iter().enumerate() {
            let members = self.members(ty, *from, first, end);
            for (lane, bits) in members.values.into_iter().enumerate() {
                let [column, row] = element(lane, nth);
                matrix[row][column] = number(ty, bits);
            }
        }
        matrix
    }

    /// Writes the part of a result that each active lane holds.
    fn scatter(&self, product: &MatrixProduct, [first, end]: [usize; 2], matrix: &Matrix<ROWS>) {
        let members: Members = self.members(product.accumulator_type, product.c[0], first, end);
        for (nth, d) in product.d.into_iter().enumerate() {
            for lane in 0..SIZE {
                let [row, column] = element(lane, nth);
                let value = bits(product.accumulator_type, matrix[row][column]);
                self.write_result(product.accumulator_type, &members, d, lane, value);
            }
        }
    }
}

/// Returns row and column of the `nth` scalar that a lane holds.
fn element(lane: usize, nth: usize) -> [usize; 2] {
    [lane / 4 + nth / 2 * STEP, lane % 4 * 2 + nth % 2]
}

fn multiply_add(a: &Matrix<ROWS>, b: &Matrix<STEP>, c: &mut Matrix<ROWS>) {
    for (row, sums) in a.iter().zip(c) {
        for (left, right) in row.iter().zip(b) {
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum += left * right;
            }
        }
    }
}

fn number(ty: Type, bits: u64) -> f32 {
    if ty == Type::F16 { f32_of_f16(bits as u16) } else { f32::from_bits(bits as u32) }
}

fn bits(ty: Type, number: f32) -> u64 {
    if ty == Type::F16 { f16_bits(number).into() } else { number.to_bits().into() }
}
