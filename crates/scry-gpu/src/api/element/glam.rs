//! glam's vectors and matrices as elements (feature `glam`).
//!
//! Excluded are types with padding (`Vec3A`, `Mat3A` and the affine transformations), `BVec`s, for
//! which not every bit pattern is valid, and vectors of `usize`.

use ::glam as g;

use super::{Element, ElementLayout};

/// Implements [`Element`] for types that are arrays of numbers without padding.
macro_rules! elements {
    ($($ty:ident: $array:ty),* $(,)?) => {$(
        // SAFETY: all fields are numbers, and the assertion shows that nothing is between or
        // after them: plain data, every bit pattern valid.
        unsafe impl Element for g::$ty {
            const LAYOUT: ElementLayout = {
                assert!(size_of::<g::$ty>() == size_of::<$array>(), "the type has padding");
                <$array>::LAYOUT
            };
        }
    )*};
}

elements! {
    Vec2: [f32; 2], Vec3: [f32; 3], Vec4: [f32; 4], Quat: [f32; 4],
    Mat2: [[f32; 2]; 2], Mat3: [[f32; 3]; 3], Mat4: [[f32; 4]; 4],
    DVec2: [f64; 2], DVec3: [f64; 3], DVec4: [f64; 4], DQuat: [f64; 4],
    DMat2: [[f64; 2]; 2], DMat3: [[f64; 3]; 3], DMat4: [[f64; 4]; 4],
    I8Vec2: [i8; 2], I8Vec3: [i8; 3], I8Vec4: [i8; 4],
    U8Vec2: [u8; 2], U8Vec3: [u8; 3], U8Vec4: [u8; 4],
    I16Vec2: [i16; 2], I16Vec3: [i16; 3], I16Vec4: [i16; 4],
    U16Vec2: [u16; 2], U16Vec3: [u16; 3], U16Vec4: [u16; 4],
    IVec2: [i32; 2], IVec3: [i32; 3], IVec4: [i32; 4],
    UVec2: [u32; 2], UVec3: [u32; 3], UVec4: [u32; 4],
    I64Vec2: [i64; 2], I64Vec3: [i64; 3], I64Vec4: [i64; 4],
    U64Vec2: [u64; 2], U64Vec3: [u64; 3], U64Vec4: [u64; 4],
}

#[cfg(test)]
mod tests {
    use super::super::bytes_of;
    use super::*;

    #[test]
    fn bytes_are_those_of_the_array() {
        let columns: [f32; 9] = std::array::from_fn(|i| i as f32);
        assert_eq!(bytes_of(&[g::Mat3::from_cols_array(&columns)]), bytes_of(&[columns]));
        let columns: [f32; 16] = std::array::from_fn(|i| i as f32);
        assert_eq!(bytes_of(&[g::Mat4::from_cols_array(&columns)]), bytes_of(&[columns]));
        let square = g::Mat2::from_cols_array(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(bytes_of(&[square]), bytes_of(&[1.0f32, 2.0, 3.0, 4.0]));
        let quat = g::Quat::from_xyzw(1.0, 2.0, 3.0, 4.0);
        assert_eq!(bytes_of(&[quat]), bytes_of(&[1.0f32, 2.0, 3.0, 4.0]));
        let points = [g::Vec3::new(1.0, 2.0, 3.0), g::Vec3::new(4.0, 5.0, 6.0)];
        assert_eq!(bytes_of(&points), bytes_of(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(bytes_of(&[g::U16Vec3::new(1, 2, 3)]), bytes_of(&[1u16, 2, 3]));
        assert_eq!(bytes_of(&[g::DVec2::new(1.0, 2.0)]), bytes_of(&[1.0f64, 2.0]));
    }
}
