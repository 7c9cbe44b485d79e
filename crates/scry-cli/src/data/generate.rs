//! Generated data.

use super::array::{Array, Bytes, Shape};
use super::dtype::{Dtype, Number, Value, Visitor};
use crate::report::Failure;

/// A rule that generates values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// `zeros`.
    Zeros,
    /// `ones`.
    Ones,
    /// `arange`: each value is its index, in row-major order.
    Arange,
    /// `rand`: seeded random values.
    Random,
}

impl Generator {
    /// Returns the rule with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "zeros" => Self::Zeros,
            "ones" => Self::Ones,
            "arange" => Self::Arange,
            "rand" => Self::Random,
            _ => return None,
        })
    }
}

/// Generates values for the buffer `name`. The name is part of the seed, so that two buffers of one
/// run differ, and the values of a buffer do not depend on the other bindings.
///
/// # Errors
/// [`Failure::Usage`] if an index is out of the type's range, [`Failure::Runtime`] if the
/// allocation fails.
pub fn generate(
    generator: Generator,
    dtype: Dtype,
    shape: Shape,
    seed: u64,
    name: &str,
) -> Result<Array, Failure> {
    let len = shape.bytes(dtype.size() as u64)?;
    let last = shape.count().unwrap_or(u64::MAX).saturating_sub(1);
    if generator == Generator::Arange && !dtype.visit(Fits(Number::Int(last.into()))) {
        return Err(Failure::Usage(format!(
            "arange: the last index {last} is out of range for {dtype}"
        )));
    }
    let rng = rng(seed, name);
    let bytes = dtype.visit(Fill { generator, bytes: Bytes::zeroed(len)?, rng });
    Ok(Array { dtype, shape, bytes })
}

/// Returns the random number generator of a buffer's values.
pub fn rng(seed: u64, name: &str) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed ^ fnv1a(name.as_bytes()))
}

struct Fill {
    generator: Generator,
    bytes: Bytes,
    rng: fastrand::Rng,
}

impl Visitor for Fill {
    type Output = Bytes;

    fn visit<T: Value>(mut self) -> Bytes {
        let number = |value| T::from_number(Number::Int(value)).unwrap_or(T::zeroed());
        let values = self.bytes.values_mut::<T>();
        match self.generator {
            Generator::Zeros => {}
            Generator::Ones => values.fill(number(1)),
            Generator::Arange => values.iter_mut().zip(0..).for_each(|(v, at)| *v = number(at)),
            Generator::Random => values.fill_with(|| T::random(&mut self.rng)),
        }
        self.bytes
    }
}

/// Checks whether a number is in the range of a type.
struct Fits(Number);

impl Visitor for Fits {
    type Output = bool;

    fn visit<T: Value>(self) -> bool {
        T::from_number(self.0).is_some()
    }
}

/// Returns the 64-bit FNV-1a hash, which is stable across builds, unlike the standard library's.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn random(dtype: Dtype, seed: u64, name: &str) -> Bytes {
        generate(Generator::Random, dtype, Shape(vec![1000]), seed, name).unwrap().bytes
    }

    #[test]
    fn ones_and_arange_generate_values() {
        let generated =
            |generator, dtype| generate(generator, dtype, Shape(vec![2, 3]), 0, "x").unwrap();
        assert_eq!(generated(Generator::Ones, Dtype::F32).bytes.values::<f32>(), [1.0; 6]);
        assert_eq!(
            generated(Generator::Arange, Dtype::I64).bytes.values::<i64>(),
            [0, 1, 2, 3, 4, 5]
        );
        let f16s = generated(Generator::Arange, Dtype::F16);
        assert_eq!(f16s.bytes.values::<f16>()[5], f16::from_f32(5.0));
    }

    #[test]
    fn arange_out_of_range_is_rejected() {
        let count = |dtype, count| generate(Generator::Arange, dtype, Shape(vec![count]), 0, "x");
        assert!(count(Dtype::F16, 65_505).is_ok());
        assert!(matches!(count(Dtype::F16, 65_600), Err(Failure::Usage(_))));
        assert_eq!(count(Dtype::F16, 0).unwrap().bytes.len(), 0);
        assert!(count(Dtype::I32, 1 << 60).is_err());
    }

    #[test]
    fn seed_and_name_decide_the_values() {
        assert_eq!(random(Dtype::U32, 1, "x"), random(Dtype::U32, 1, "x"));
        assert_ne!(random(Dtype::U32, 1, "x"), random(Dtype::U32, 2, "x"));
        assert_ne!(random(Dtype::U32, 1, "x"), random(Dtype::U32, 1, "y"));
    }

    #[test]
    fn floats_fill_the_unit_interval() {
        let assert_uniform = |values: &[f64]| {
            assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!((0.45..0.55).contains(&mean), "{mean}");
        };
        let bytes = random(Dtype::F16, 3, "x");
        assert_uniform(&bytes.values::<f16>().iter().map(|v| v.to_f64()).collect::<Vec<_>>());
        let bytes = random(Dtype::F32, 3, "x");
        assert_uniform(&bytes.values::<f32>().iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        assert_uniform(random(Dtype::F64, 3, "x").values());
    }

    #[test]
    fn random_integers_cover_the_range() {
        let bytes = random(Dtype::I64, 0, "x");
        let values = bytes.values::<i64>();
        assert!(values.iter().any(|v| *v < 0) && values.iter().any(|v| *v > 0));
        assert_eq!(values.iter().fold(0, |bits, v| bits | v), -1);
    }
}
