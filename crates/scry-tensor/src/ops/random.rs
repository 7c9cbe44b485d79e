//! Random numbers, and dropout.

use super::reference::{Array, Case, Draw};
use super::{Apply, Binary, KernelSource, Operand, Operation};
use crate::dtype::{DType, FLOATS, INTEGERS};
use crate::error::{Call, ErrorKind, Result};
use crate::op::{Computed, Distribution, Op, Part, Random, View};
use crate::runtime::Runtime;
use crate::scalar::Scalar;
use crate::shape::{Shape, check_view};
use crate::stored::Computation;
use crate::tensor::{Tensor, apply};
use scry_gpu::Device;

/// The seed of random numbers: a number, or a tensor of two `u32`, its lower and upper 32 bits. A
/// tensor may be an input of a graph, so that each run has other numbers.
///
/// ```
/// use scry_tensor::{DType, Device, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::ones([8], DType::F32, &gpu)?;
/// let seed = Tensor::new([7u32, 0], &gpu)?;
/// assert_eq!(x.rand_like(&seed)?.to_vec::<f32>()?, x.rand_like(7)?.to_vec::<f32>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Seed {
    /// A number.
    Number(u64),
    /// A tensor of two `u32`.
    Tensor(Tensor),
}

impl From<u64> for Seed {
    fn from(seed: u64) -> Self {
        Self::Number(seed)
    }
}

impl From<&Tensor> for Seed {
    fn from(seed: &Tensor) -> Self {
        Self::Tensor(seed.clone())
    }
}

/// Random numbers. An element depends only on the seed and its position in row-major order: the
/// same seed produces the same numbers on every device, except for the last places of
/// [`randn`](Tensor::randn), eagerly and in a graph. Use another seed for each call.
impl Tensor {
    /// Returns floats that are uniformly distributed from 0, inclusive, to 1, exclusive: those of
    /// scry-kernels' `random_uniform`, the same on every device.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::rand([1000], 7, DType::F32, &gpu)?;
    /// assert!((x.mean(..)?.item::<f32>()? - 0.5).abs() < 0.05);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for other types than floats; [`ErrorKind::TooLarge`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn rand(shape: impl Into<Shape>, seed: u64, dtype: DType, device: &Device) -> Result<Self> {
        let call = Call::new("Tensor::rand");
        call.check_new_dtype(dtype, FLOATS)?;
        let random = Random { distribution: Distribution::Uniform, dtype, seed: Some(seed) };
        created(call, &random, shape.into(), device)
    }

    /// Returns floats that are normally distributed with mean 0 and variance 1, by the method of
    /// Box and Muller from the bits of [`random_bits`](Self::random_bits). Devices differ in the
    /// last places.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::randn([1000], 7, DType::F32, &gpu)?;
    /// assert!((x.std(.., 1)?.item::<f32>()? - 1.0).abs() < 0.1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`rand`](Self::rand).
    #[track_caller]
    pub fn randn(
        shape: impl Into<Shape>,
        seed: u64,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        let call = Call::new("Tensor::randn");
        call.check_new_dtype(dtype, FLOATS)?;
        let random = Random { distribution: Distribution::Normal, dtype, seed: Some(seed) };
        created(call, &random, shape.into(), device)
    }

    /// Returns integers with random bits, by the counter-based generator Philox 4×32-10: those of
    /// scry-kernels' `random_bits`, the same on every device.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::random_bits([2], 0, DType::U32, &gpu)?;
    /// assert_eq!(x.to_vec::<u32>()?, [0x6627e8d5, 0xe169c58d]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for other types than integers; [`ErrorKind::TooLarge`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn random_bits(
        shape: impl Into<Shape>,
        seed: u64,
        dtype: DType,
        device: &Device,
    ) -> Result<Self> {
        let call = Call::new("Tensor::random_bits");
        call.check_new_dtype(dtype, INTEGERS)?;
        let random = Random { distribution: Distribution::Bits, dtype, seed: Some(seed) };
        created(call, &random, shape.into(), device)
    }

    /// Returns floats as [`rand`](Self::rand) does, with the shape, the type and the device of this
    /// tensor, whose elements are not read.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([4], DType::F32, &gpu)?;
    /// let same = Tensor::rand([4], 7, DType::F32, &gpu)?;
    /// assert_eq!(x.rand_like(7)?.to_vec::<f32>()?, same.to_vec::<f32>()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for other types than floats, and seeds of another type than `u32`;
    /// [`ErrorKind::Shape`] for seeds of another shape than `[2]`; [`ErrorKind::TooLarge`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn rand_like(&self, seed: impl Into<Seed>) -> Result<Self> {
        let call = Call::new("Tensor::rand_like");
        self.in_scope(|| {
            call.check_dtype(self.dtype(), FLOATS)?;
            self.random(call, Distribution::Uniform, self.dtype(), &seed.into())
        })
    }

    /// Returns floats as [`randn`](Self::randn) does, with the shape, the type and the device of
    /// this tensor, whose elements are not read.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([4], DType::F32, &gpu)?;
    /// let noisy = (&x + x.randn_like(7)?)?;
    /// assert_ne!(noisy.to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`rand_like`](Self::rand_like).
    #[track_caller]
    pub fn randn_like(&self, seed: impl Into<Seed>) -> Result<Self> {
        let call = Call::new("Tensor::randn_like");
        self.in_scope(|| {
            call.check_dtype(self.dtype(), FLOATS)?;
            self.random(call, Distribution::Normal, self.dtype(), &seed.into())
        })
    }

    /// Returns the tensor with each element replaced by 0 with a probability, and divided by the
    /// opposite probability otherwise, as PyTorch's `dropout` during training.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::ones([1000], DType::F32, &gpu)?.dropout(0.5, 7)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|it| [0.0, 2.0].contains(it)));
    /// assert!((x.mean(..)?.item::<f32>()? - 1.0).abs() < 0.1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a probability below 0 or above 1; otherwise as
    /// [`rand_like`](Self::rand_like).
    #[track_caller]
    pub fn dropout(&self, probability: f32, seed: impl Into<Seed>) -> Result<Self> {
        let call = Call::new("Tensor::dropout");
        self.in_scope(|| {
            call.check_dtype(self.dtype(), FLOATS)?;
            if !(0.0..=1.0).contains(&probability) {
                let problem = format!("{probability} is not a probability");
                return Err(call.error(ErrorKind::Value, problem, "use a number from 0 to 1"));
            }
            let numbers = self.random(call, Distribution::Uniform, DType::F32, &seed.into())?;
            let limit = Operand::Scalar(Scalar::Float(probability.into()));
            let is_kept = Binary::GE.apply(call, &numbers.into(), &limit)?;
            // Nothing is kept of all.
            let factor = if probability < 1.0 { 1.0 / (1.0 - probability) } else { 1.0 };
            // In f32: the factor may be larger than any `f16`.
            let scaled =
                Binary::MUL.apply(call, &self.accumulated(call)?.into(), &factor.into())?;
            let scaled = scaled.narrowed(call, self.dtype())?;
            is_kept.chosen(call, &scaled.into(), &Operand::Scalar(Scalar::Int(0)))
        })
    }

    fn random(
        &self,
        call: Call,
        distribution: Distribution,
        dtype: DType,
        seed: &Seed,
    ) -> Result<Self> {
        let random = |seed| Op::Computed(Computed::Random(Random { distribution, dtype, seed }));
        let seeds = match seed {
            Seed::Number(seed) => return apply(call, random(Some(*seed)), &[self]),
            Seed::Tensor(seed) => seed,
        };
        call.check_dtype(seeds.dtype(), &[DType::U32])?;
        if *seeds.shape() != [2] {
            let problem = format!("a seed has the shape {}", seeds.shape());
            let help = "pass a number, or a tensor of two `u32`";
            return Err(call.shape_error(&[seeds.shape()], problem, help));
        }
        let half = |n: i64| seeds.view(call, View::Index(vec![Part::At(n)]));
        apply(call, random(None), &[&half(0)?, &half(1)?, self])
    }
}

fn created(call: Call, random: &Random, shape: Shape, device: &Device) -> Result<Tensor> {
    check_view(call, &shape)?;
    let runtime = Runtime::of(device).map_err(|error| call.gpu(error))?;
    let (map, arguments) = random.map();
    let (map, operands, gathered) = (&map, Vec::new(), None);
    Computation { map, shape, operands, gathered, arguments: &arguments }
        .run(call, &runtime)
        .map(Tensor::from)
}

/// Returns the table's row of random numbers.
const fn row(
    name: &'static str,
    summary: &'static str,
    tolerance: f64,
    apply: fn(&mut Draw, DType) -> Case,
) -> Operation {
    let (types, kernel) = (FLOATS, KernelSource::Generated);
    Operation { name, summary, types, tolerance, kernel, apply: Apply::Case(apply) }
}

pub(super) const OPERATIONS: &[Operation] = &[
    row("rand_like", "uniformly distributed numbers", 0.0, |draw, dtype| {
        let (shape, seed) = (draw.shape(0, 3), draw.bits());
        let x = draw.numbers(dtype, &shape);
        let mut position = 0..;
        let wanted = x.like(&shape, |_| uniform(dtype, seed, position.next().unwrap_or(0)));
        Case::new(vec![x], wanted, move |it| it[0].rand_like(seed))
    }),
    row("randn_like", "normally distributed numbers", 1e-4, |draw, dtype| {
        let (shape, seed) = (draw.shape(0, 3), draw.bits());
        let x = draw.numbers(dtype, &shape);
        let mut position = 0u64..;
        let wanted = x.like(&shape, |_| {
            let at = position.next().unwrap_or(0);
            let [first, second] = [at / 2 * 2, at / 2 * 2 + 1].map(|at| f64::from(word(seed, at)));
            let unit = 2f64.powi(-32);
            let radius = (-2.0 * ((first + 0.5) * unit).ln()).sqrt();
            let angle = std::f64::consts::TAU * second * unit;
            radius * if at % 2 == 0 { angle.cos() } else { angle.sin() }
        });
        Case::new(vec![x], wanted, move |it| it[0].randn_like(seed))
    }),
    row("dropout", "dropout: random elements set to 0, others scaled", 1e-5, |draw, dtype| {
        let (shape, seed) = (draw.shape(0, 3), draw.bits());
        let x: Array = draw.numbers(dtype, &shape);
        let mut position = 0..;
        let wanted = x.like(&shape, |at| {
            let number = uniform(DType::F32, seed, position.next().unwrap_or(0));
            if number >= 0.25 { x.at(at) / 0.75 } else { 0.0 }
        });
        Case::new(vec![x], wanted, move |it| it[0].dropout(0.25, seed))
    }),
];

/// Returns a uniformly distributed number on the host.
fn uniform(dtype: DType, seed: u64, position: u64) -> f64 {
    let bits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    f64::from(word(seed, position) >> (32 - bits)) / f64::from(1u32 << bits)
}

/// Returns random bits on the host, by Philox 4×32-10.
fn word(seed: u64, position: u64) -> u32 {
    let block = position / 4;
    let mut state = [block as u32, (block >> 32) as u32, 0, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let product = |factor: u32, x: u32| u64::from(factor) * u64::from(x);
        let [a, b] = [product(0xd251_1f53, state[0]), product(0xcd9e_8d57, state[2])];
        let high = |product: u64| (product >> 32) as u32;
        state = [high(b) ^ state[1] ^ key[0], b as u32, high(a) ^ state[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    state[(position % 4) as usize]
}
