//! Data made up on the spot.

use super::array::{Array, Bytes, Shape};
use super::dtype::{Dtype, Value, Visitor};
use crate::report::Failure;

/// Seeded random values. The buffer's name takes part in the seed, so that two buffers of one run
/// differ, and a buffer gets the same values whatever else is bound.
pub fn random(dtype: Dtype, shape: Shape, seed: u64, name: &str) -> Result<Array, Failure> {
    let bytes = Bytes::zeroed(shape.bytes(dtype.size() as u64)?)?;
    let random = generator(seed, name);
    let bytes = dtype.visit(Fill { bytes, random });
    Ok(Array { dtype, shape, bytes })
}

/// The generator of a buffer's values.
pub fn generator(seed: u64, name: &str) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed ^ fnv1a(name.as_bytes()))
}

struct Fill {
    bytes: Bytes,
    random: fastrand::Rng,
}

impl Visitor for Fill {
    type Output = Bytes;

    fn visit<T: Value>(mut self) -> Bytes {
        for value in self.bytes.values_mut::<T>() {
            *value = T::random(&mut self.random);
        }
        self.bytes
    }
}

/// The 64-bit FNV-1a hash: stable from build to build, unlike the standard library's.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn draw(dtype: Dtype, seed: u64, name: &str) -> Bytes {
        random(dtype, Shape(vec![1000]), seed, name).unwrap().bytes
    }

    #[test]
    fn seed_and_name_decide_the_values() {
        assert_eq!(draw(Dtype::U32, 1, "x"), draw(Dtype::U32, 1, "x"));
        assert_ne!(draw(Dtype::U32, 1, "x"), draw(Dtype::U32, 2, "x"));
        assert_ne!(draw(Dtype::U32, 1, "x"), draw(Dtype::U32, 1, "y"));
    }

    #[test]
    fn floats_fill_the_unit_interval() {
        let within = |values: &[f64]| {
            assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!((0.45..0.55).contains(&mean), "{mean}");
        };
        let bytes = draw(Dtype::F16, 3, "x");
        within(&bytes.values::<f16>().iter().map(|v| v.to_f64()).collect::<Vec<_>>());
        let bytes = draw(Dtype::F32, 3, "x");
        within(&bytes.values::<f32>().iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        within(draw(Dtype::F64, 3, "x").values());
    }

    #[test]
    fn integers_take_both_signs_and_all_bits() {
        let bytes = draw(Dtype::I64, 0, "x");
        let values = bytes.values::<i64>();
        assert!(values.iter().any(|v| *v < 0) && values.iter().any(|v| *v > 0));
        assert_eq!(values.iter().fold(0, |bits, v| bits | v), -1);
    }
}
