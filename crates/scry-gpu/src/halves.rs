//! 16-bit floats of the crate half as elements, in builds with the feature of that name.

use half::{bf16, f16};
use scry_ir::ScalarKind;

use crate::element::{Element, ElementLayout};
use crate::native::multiply::{Factor, sealed::Sealed};

// SAFETY: two bytes of plain data, every pattern a number.
unsafe impl Element for f16 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Float, 2);
}
// SAFETY: two bytes of plain data, every pattern a number.
unsafe impl Element for bf16 {
    const LAYOUT: ElementLayout = ElementLayout::scalar(ScalarKind::Bfloat, 2);
}

impl Sealed for f16 {}
impl Sealed for bf16 {}
impl Factor for f16 {}
impl Factor for bf16 {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_their_types() {
        assert_eq!(<bf16 as Element>::LAYOUT.to_string(), "bf16");
        assert_eq!(<[[f16; 3]; 5] as Element>::LAYOUT.size(), Some(30));
    }
}
