//! Products of matrices as products of fragments.

use std::rc::Rc;

use super::expand::Expand;
use crate::kir::{Const, MatrixSize, Value};

impl Expand<'_> {
    /// Computes `a * b + c`. A matrix of 8 rows is half of a left factor, whose other rows are zero
    /// then.
    pub(super) fn multiply_add(
        &mut self,
        size: MatrixSize,
        [a, b, c]: [Rc<[Value]>; 3],
    ) -> Vec<Value> {
        if size == MatrixSize::M8 {
            let zeros = [a[0], c[0]].map(|of| {
                let zero = Const::zero(self.builder.ty(of));
                self.builder.constant(zero)
            });
            let (left, sum) = ([a[0], a[1], zeros[0], zeros[0]], [c[0], c[1], zeros[1], zeros[1]]);
            let mut result = self.builder.multiply_fragments(left, [b[0], b[1]], sum);
            result.truncate(2);
            return result;
        }
        let mut result = Vec::with_capacity(8);
        for right in [0, 4] {
            let mut sum = four(&c[right..]);
            for step in [0, 2] {
                let factor = [b[right + step], b[right + step + 1]];
                sum = four(&self.builder.multiply_fragments(four(&a[2 * step..]), factor, sum));
            }
            result.extend(sum);
        }
        result
    }
}

fn four(values: &[Value]) -> [Value; 4] {
    [values[0], values[1], values[2], values[3]]
}
