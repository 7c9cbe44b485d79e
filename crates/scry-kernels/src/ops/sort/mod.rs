//! Sorting by radix.

pub(super) mod host;
mod passes;
mod sweeps;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::call::Call;
use crate::elements;
use crate::kernels::Kernels;
use crate::lookback;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};

/// Types of keys, and of values, which are only moved.
const WORDS: [DType; 3] = [DType::U32, DType::I32, DType::F32];

/// What is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorted {
    /// Keys, in place.
    Keys,
    /// Keys and values, in place.
    Pairs(DType),
    /// The positions of keys, which are only read.
    Positions,
}

/// How another operation sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// With look-back.
    Lookback,
    /// With workgroup memory only.
    Passes,
}

/// The number of scratch buffers that sorts use.
pub(super) const SCRATCH: usize = 6;

/// A sort.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sort {
    function: &'static str,
    sorted: Sorted,
    dtype: DType,
    len: u64,
    /// Passes, each by 8 bits, from the lowest ones. If there are fewer than 4, the upper bits of
    /// keys are 0.
    passes: usize,
}

/// Sorting.
impl Kernels {
    /// Prepares to sort all elements of `keys` in place, in ascending order. They are of `f32`,
    /// `i32` or `u32`.
    ///
    /// Floats are in a total order: -∞, numbers, with -0 before +0, +∞, and NaN last: those with
    /// the sign bit after those without.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let keys = gpu.upload(&[3.0f32, -1.0, f32::INFINITY, 2.0])?;
    /// Kernels::new(&gpu)?.sort(&keys)?.run()?;
    /// assert_eq!(keys.download()?, [-1.0, 2.0, 3.0, f32::INFINITY]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for a buffer of another type;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if there are more than 2^32 - 1
    /// keys.
    pub fn sort(&self, keys: &dyn Binding) -> Result<Op> {
        const FUNCTION: &str = "Kernels::sort";
        let dtype = Call::new(FUNCTION).dtype("keys", keys, &WORDS)?;
        let len = keys.len() as u64;
        self.op(Sort::new(FUNCTION, Sorted::Keys, dtype, len), &[keys])
    }

    /// Prepares to sort all elements of `keys` in place, as [`Kernels::sort`] does, and to move the
    /// elements of `values` in the same way. Values of equal keys keep their order: the sort is
    /// stable. There are as many values as keys, of `f32`, `i32` or `u32`.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (keys, values) = (gpu.upload(&[7, -1, 7, 3])?, gpu.upload(&[10u32, 11, 12, 13])?);
    /// Kernels::new(&gpu)?.sort_pairs(&keys, &values)?.run()?;
    /// assert_eq!(keys.download()?, [-1, 3, 7, 7]);
    /// assert_eq!(values.download()?, [11, 13, 10, 12]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers of other types or of
    /// different lengths, or that overlap; otherwise as [`Kernels::sort`].
    pub fn sort_pairs(&self, keys: &dyn Binding, values: &dyn Binding) -> Result<Op> {
        const FUNCTION: &str = "Kernels::sort_pairs";
        let call = Call::new(FUNCTION);
        let dtype = call.dtype("keys", keys, &WORDS)?;
        let value = call.dtype("values", values, &WORDS)?;
        if keys.len() != values.len() {
            return Err(call.argument_error(
                "buffer `values`",
                format!("has {} elements, but `keys` has {}", values.len(), keys.len()),
                "pass one value per key",
            ));
        }
        let (sorted, len) = (Sorted::Pairs(value), keys.len() as u64);
        self.op(Sort::new(FUNCTION, sorted, dtype, len), &[keys, values])
    }

    /// Prepares to compute the indices that sort `keys` as [`Kernels::sort`] does: `indices`
    /// becomes the permutation with which `keys[indices[i]]` ascends, as `u32`. Indices of equal
    /// keys ascend: the sort is stable. `keys` does not change; `indices` may be longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (keys, indices) = (gpu.upload(&[7.0f32, -1.0, 7.0, 3.0])?, gpu.alloc::<u32>(4)?);
    /// Kernels::new(&gpu)?.argsort(&keys, &indices)?.run()?;
    /// assert_eq!(indices.download()?, [1, 3, 0, 2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// other types, or that overlap; otherwise as [`Kernels::sort`].
    pub fn argsort(&self, keys: &dyn Binding, indices: &dyn Binding) -> Result<Op> {
        const FUNCTION: &str = "Kernels::argsort";
        let dtype = Call::new(FUNCTION).dtype("keys", keys, &WORDS)?;
        let (sorted, len) = (Sorted::Positions, keys.len() as u64);
        self.op(Sort::new(FUNCTION, sorted, dtype, len), &[keys, indices])
    }
}

impl Operation for Sort {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("len", self.len)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let keys = arguments::write("keys", self.dtype, self.len);
        match self.sorted {
            Sorted::Keys => vec![keys],
            Sorted::Pairs(value) => vec![keys, arguments::write("values", value, self.len)],
            Sorted::Positions => vec![
                arguments::read("keys", self.dtype, self.len),
                arguments::write("indices", DType::U32, self.len),
            ],
        }
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                Variant {
                    info: VariantInfo {
                        name: "wgsl-lookback",
                        needs: lookback::NEEDS,
                        deterministic: true,
                    },
                    obstacle: sweeps::obstacle,
                    suits: |it, _| suits_lookback(it.len),
                    prepare: sweeps::prepare,
                },
                crate::host::variant(host::prepare),
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: |it, _| elements::too_long(&[it.len]),
                    suits: |_, _| true,
                    prepare: passes::prepare,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn tolerance(&self) -> f64 {
        0.0
    }
}

impl Sort {
    fn new(function: &'static str, sorted: Sorted, dtype: DType, len: u64) -> Self {
        Self { function, sorted, dtype, len, passes: passes::MAX_PASSES }
    }

    fn of_words(sorted: Sorted, len: u64) -> Self {
        Self::new("Kernels::sort", sorted, DType::U32, len)
    }

    fn prepare(
        &self,
        preparation: &Preparation<'_>,
        method: Method,
    ) -> Result<Vec<PreparedLaunch>> {
        match method {
            Method::Lookback => sweeps::prepare(self, preparation),
            Method::Passes => passes::prepare(self, preparation),
        }
    }
}

/// Returns whether a sort of this many words is faster with look-back: those of a tile are one
/// launch without.
pub(super) fn suits_lookback(len: u64) -> bool {
    len > passes::TILE
}

/// Returns why look-back cannot be used to sort this many words; `None` if it can.
pub(super) fn lookback_obstacle(len: u64, kernels: &Kernels) -> Option<String> {
    sweeps::obstacle(&Sort::of_words(Sorted::Keys, len), kernels)
}

/// Prepares a sort of words for another operation: of all keys, the first buffer, with the second
/// one.
pub(super) fn words(
    preparation: &Preparation<'_>,
    buffers: &[UntypedBuffer],
    sorted: Sorted,
    has_lookback: bool,
) -> Result<Vec<PreparedLaunch>> {
    let it = Sort::of_words(sorted, buffers[0].len() as u64);
    let method = if has_lookback { Method::Lookback } else { Method::Passes };
    it.prepare(&Preparation { buffers, ..*preparation }, method)
}

/// Prepares a stable sort of words with words for another operation, of keys below 2^bits. Returns
/// the launches, and where keys and values are afterwards: in place, or in scratch memory.
pub(super) fn short_pairs(
    preparation: &Preparation<'_>,
    buffers: &[UntypedBuffer; 2],
    bits: u32,
    method: Method,
) -> Result<(Vec<PreparedLaunch>, [UntypedBuffer; 2])> {
    let it = Sort::of_words(Sorted::Pairs(DType::U32), buffers[0].len() as u64);
    let it = Sort { passes: bits.div_ceil(8) as usize, ..it };
    let preparation = Preparation { buffers, ..*preparation };
    let launches = it.prepare(&preparation, method)?;
    let is_in_place = match method {
        Method::Lookback => it.passes.is_multiple_of(2),
        Method::Passes => it.passes.is_multiple_of(2) || it.is_tile(),
    };
    let sorted = match is_in_place {
        true => buffers.clone(),
        false => it.other_buffers(&preparation)?,
    };
    Ok((launches, sorted))
}
