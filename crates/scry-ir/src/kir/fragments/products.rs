//! Products of matrices as products of fragments.

use std::rc::Rc;

use super::expand::Expand;
use crate::kir::{Const, MatrixSize, Value};

impl Expand<'_> {
    /// Computes `a * b + c` by products of 16 × 8 and 8 × 8 fragments. An 8 × 8 `a` or `c` is the
    /// upper half of a fragment whose lower half is zero.
    pub(super) fn multiply_add(
        &mut self,
        size: MatrixSize,
        [a, b, c]: [Rc<[Value]>; 3],
    ) -> Vec<Value> {
        if size == MatrixSize::M8 {
            let zeros = [a[0], c[0]].map(|element| {
                let zero = Const::zero(self.builder.ty(element));
                self.builder.constant(zero)
            });
            let a = [a[0], a[1], zeros[0], zeros[0]];
            let c = [c[0], c[1], zeros[1], zeros[1]];
            let mut result = self.builder.multiply_fragments(a, [b[0], b[1]], c);
            result.truncate(2);
            return result;
        }
        let mut result = Vec::with_capacity(8);
        // The first element of columns 0 to 7, and of columns 8 to 15, in `b` and `c`.
        for columns in [0, 4] {
            let mut accumulator = first_four(&c[columns..]);
            // The lower and the upper half of K.
            for k in [0, 2] {
                let (a, b) = (first_four(&a[2 * k..]), [b[columns + k], b[columns + k + 1]]);
                accumulator = first_four(&self.builder.multiply_fragments(a, b, accumulator));
            }
            result.extend(accumulator);
        }
        result
    }
}

fn first_four(values: &[Value]) -> [Value; 4] {
    [values[0], values[1], values[2], values[3]]
}
