//! The products of cooperative matrices that a device computes.

use std::fmt;

bitflags::bitflags! {
    /// The products `A * B + C` of cooperative matrices (`coopMultiplyAdd`) that a device computes,
    /// each for one size and one choice of types.
    ///
    /// All matrices of a product are square and have the same size. `A` and `B` have the type of
    /// the operands, `C` and the result that of the accumulators. WGSL has no other products.
    ///
    /// ```
    /// use scry_ir::MatrixProducts;
    ///
    /// let products = MatrixProducts::F16_16X16 | MatrixProducts::F16_F32_16X16;
    /// assert_eq!(products.to_string(), "f16-16x16, f16-f32-16x16");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct MatrixProducts: u32 {
        /// `f16` operands and accumulators, 8 rows and columns.
        const F16_8X8 = 1 << 0;
        /// `f16` operands and `f32` accumulators, 8 rows and columns.
        const F16_F32_8X8 = 1 << 1;
        /// `f32` operands and accumulators, 8 rows and columns.
        const F32_8X8 = 1 << 2;
        /// `f16` operands and accumulators, 16 rows and columns.
        const F16_16X16 = 1 << 3;
        /// `f16` operands and `f32` accumulators, 16 rows and columns.
        const F16_F32_16X16 = 1 << 4;
        /// `f32` operands and accumulators, 16 rows and columns.
        const F32_16X16 = 1 << 5;
    }
}

impl MatrixProducts {
    /// The products with `f16` operands, which devices without `f16` do not compute.
    pub const F16: Self =
        Self::F16_8X8.union(Self::F16_F32_8X8).union(Self::F16_16X16).union(Self::F16_F32_16X16);

    /// Returns the names of the products in the set: the type of the operands, that of the
    /// accumulators if it differs, and the size.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(MatrixProducts, &str); 6] = [
            (MatrixProducts::F16_8X8, "f16-8x8"),
            (MatrixProducts::F16_F32_8X8, "f16-f32-8x8"),
            (MatrixProducts::F32_8X8, "f32-8x8"),
            (MatrixProducts::F16_16X16, "f16-16x16"),
            (MatrixProducts::F16_F32_16X16, "f16-f32-16x16"),
            (MatrixProducts::F32_16X16, "f32-16x16"),
        ];
        NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }
}

impl fmt::Display for MatrixProducts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.names().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::MatrixProducts;

    #[test]
    fn every_product_has_a_name() {
        assert_eq!(MatrixProducts::all().names().count(), 6);
        assert!(MatrixProducts::all().iter().all(|product| product.names().count() == 1));
    }

    #[test]
    fn f16_contains_products_with_f16_operands() {
        let named = MatrixProducts::all()
            .iter()
            .filter(|product| product.names().all(|name| name.starts_with("f16")));
        assert_eq!(named.collect::<MatrixProducts>(), MatrixProducts::F16);
    }
}
