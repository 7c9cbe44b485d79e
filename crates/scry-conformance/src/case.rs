//! A case: a kernel, its buffers and launches, and the expected results.

use std::ops::Range;

use scry_gpu::{CompileOptions, DType, Features, Launch};

use crate::outputs::Outputs;
use crate::ty::{Ty, pack};

/// A kernel with its inputs, and what must be in its buffers afterwards.
///
/// ```
/// use scry_conformance::{Case, Data, run};
/// use scry_gpu::{Device, Launch};
///
/// let source = "
///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
///     @compute @workgroup_size(1)
///     fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] += 1u; }";
/// let case = Case::new("increment", source).buffer(Data::words(&[4, 7]));
/// let case = case.launch(Launch::invocations(2)).expect_words(0, vec![5, 8]);
/// let gpu = Device::open("cpu").unwrap();
/// assert!(run(&gpu, &case).unwrap().skipped.is_empty());
/// ```
pub struct Case {
    /// Distinguishes it from the other cases of its test.
    pub name: String,
    /// The kernel in WGSL.
    pub source: String,
    /// Entry point, overrides and label.
    pub options: CompileOptions,
    /// The workgroup size that the compiled kernel must report, if that is checked.
    pub workgroup_size: Option<[u32; 3]>,
    /// Contents of the buffers before the first launch.
    pub buffers: Vec<Data>,
    /// The kernel's arguments, in order. Bytes of buffers outside of them must stay unchanged.
    pub bindings: Vec<Bound>,
    /// Launches in order; without any the kernel is only compiled.
    pub launches: Vec<Work>,
    /// Contents of bindings after the launches, each value with its tolerance.
    pub expected: Vec<Expected>,
    /// Whether compiling or launching must fail, or may.
    pub failure: Failure,
    /// What the case needs of a device.
    pub needs: Needs,
    /// What a missing operation of the driver's compiler means.
    pub lacking: Lacking,
}

/// The contents of a buffer.
pub struct Data {
    /// The initial bytes.
    pub content: Content,
    /// The element type that the device sees; `None` binds to every WGSL type.
    pub dtype: Option<DType>,
}

/// The initial bytes of a buffer.
pub enum Content {
    /// These, uploaded.
    Bytes(Vec<u8>),
    /// This many elements, allocated and not written.
    Zeros(usize),
}

/// A range of a buffer.
#[derive(Clone)]
pub struct Bound {
    /// The buffer's index.
    pub buffer: usize,
    /// The bytes; `None` is the whole buffer.
    pub bytes: Option<Range<usize>>,
}

/// A launch.
pub enum Work {
    /// Its size is given by the host.
    Direct(Launch),
    /// Its workgroup counts are read from a buffer; with the bytes of its immediates.
    Indirect(Bound, Option<Vec<u8>>),
}

/// Contents of a binding after the launches.
pub enum Expected {
    /// Exactly these bytes.
    Bytes(usize, Vec<u8>),
    /// Exactly these words.
    Words(usize, Vec<u32>),
    /// Values of a type, each with its tolerance.
    Values {
        /// The binding's index.
        binding: usize,
        /// The type of the values.
        ty: Ty,
        /// The values.
        wants: Vec<Want>,
        /// Describes the value with an index.
        describe: Box<dyn Fn(usize) -> String>,
    },
    /// A property of the contents of all bindings: for results that depend on an order or on a
    /// choice that WGSL leaves open.
    Holds(Property),
}

/// Checks the contents of all bindings; the error says what is wrong.
pub type Property = Box<dyn Fn(&Outputs) -> Result<(), String>>;

/// An expected value and its tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Want {
    /// These bits.
    Bits(u64),
    /// This number; zeros may have any sign.
    Number(f64),
    /// At most this many ULP from this number: the number, the ULP.
    Near(f64, f64),
    /// A number with at most this absolute error: the number, the error.
    Within(f64, f64),
    /// Bits that differ by at most this much from these, as integers.
    Steps(u64, u64),
    /// A number in a range, ends included.
    Between(f64, f64),
    /// Any.
    Any,
}

/// Whether an error is expected. The parts must be in its text.
pub enum Failure {
    /// None may occur.
    Never,
    /// One must occur, in the compiler or at the first launch that is refused.
    Always(Vec<String>),
    /// The device may refuse the kernel.
    Allowed(Vec<String>),
    /// The kernel may exceed a limit that the driver has beyond those of its API
    /// ([`GpuError::Kernel`](scry_gpu::GpuError::Kernel)). Its results are then incomplete.
    Limit(Vec<String>),
}

/// Features that a case needs, and what it does on a device without them.
#[derive(Clone, Default)]
pub struct Needs {
    /// The features.
    pub features: Features,
    /// Whether a device without them must refuse the kernel, with an error that names them;
    /// otherwise the case is skipped there.
    pub or_refused: bool,
    /// Why the case is skipped on this device, if it is.
    pub skip: Option<String>,
}

/// What it means if the driver's compiler lacks an operation on types beyond WGSL's.
#[derive(Default)]
pub enum Lacking {
    /// The case fails.
    #[default]
    Fails,
    /// The case is skipped.
    Skips,
    /// These cases, which are parts of it, are run instead.
    Splits(Box<dyn Fn() -> Vec<Case>>),
}

impl Data {
    /// Words that bind to every WGSL type.
    pub fn words(words: &[u32]) -> Self {
        Self::bytes(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    /// Bytes that bind to every WGSL type.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self { content: Content::Bytes(bytes), dtype: None }
    }

    /// Floats, which bind to the types of `f32`.
    pub fn floats(floats: &[f32]) -> Self {
        Self::bytes(floats.iter().flat_map(|x| x.to_ne_bytes()).collect()).typed(DType::F32)
    }

    /// Values of a type, padded to whole words; they bind to every WGSL type.
    pub fn values(ty: Ty, values: &[u64]) -> Self {
        Self::words(&pack(ty, values))
    }

    /// A buffer of zeros that is not written by the host.
    pub fn zeros(dtype: DType, len: usize) -> Self {
        Self { content: Content::Zeros(len), dtype: Some(dtype) }
    }

    /// The same with an element type, which the kernel's type is compared with.
    pub fn typed(self, dtype: DType) -> Self {
        Self { dtype: Some(dtype), ..self }
    }

    /// The bytes before the first launch.
    pub(crate) fn initial(&self) -> Vec<u8> {
        match &self.content {
            Content::Bytes(bytes) => bytes.clone(),
            Content::Zeros(len) => vec![0; len * self.dtype.map_or(1, DType::size)],
        }
    }
}

impl Bound {
    /// A whole buffer.
    pub fn whole(buffer: usize) -> Self {
        Self { buffer, bytes: None }
    }

    /// A part of a buffer, in bytes.
    pub fn part(buffer: usize, bytes: Range<usize>) -> Self {
        Self { buffer, bytes: Some(bytes) }
    }
}

impl Case {
    /// A kernel without buffers and launches.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            source: source.into(),
            options: CompileOptions::new(),
            workgroup_size: None,
            buffers: Vec::new(),
            bindings: Vec::new(),
            launches: Vec::new(),
            expected: Vec::new(),
            failure: Failure::Never,
            needs: Needs::default(),
            lacking: Lacking::Fails,
        }
    }

    /// A case that this device skips.
    pub fn skipped(name: impl Into<String>, reason: impl Into<String>) -> Self {
        let mut case = Self::new(name, "");
        case.needs.skip = Some(reason.into());
        case
    }

    /// Adds a buffer, and binds it whole.
    pub fn buffer(mut self, data: Data) -> Self {
        self.bindings.push(Bound::whole(self.buffers.len()));
        self.buffers.push(data);
        self
    }

    /// Adds buffers of words that bind to every WGSL type.
    pub fn words(self, buffers: &[&[u32]]) -> Self {
        buffers.iter().fold(self, |case, words| case.buffer(Data::words(words)))
    }

    /// Adds a launch.
    pub fn launch(mut self, launch: Launch) -> Self {
        self.launches.push(Work::Direct(launch));
        self
    }

    /// Adds a launch of one workgroup.
    pub fn one_workgroup(self) -> Self {
        self.launch(Launch::workgroups([1, 1, 1]))
    }

    /// Adds an output of words, initially all ones, and its expected contents.
    pub fn output(self, words: Vec<u32>) -> Self {
        let binding = self.bindings.len();
        let all_ones = vec![u32::MAX; words.len()];
        let data = Data::words(&all_ones).typed(DType::U32);
        self.buffer(data).expect_words(binding, words)
    }

    /// Expects these words in a binding.
    pub fn expect_words(mut self, binding: usize, words: Vec<u32>) -> Self {
        self.expected.push(Expected::Words(binding, words));
        self
    }

    /// Expects these values of a type in a binding, exactly.
    pub fn expect_values(self, binding: usize, ty: Ty, values: &[u64]) -> Self {
        let wants = values.iter().map(|bits| Want::Bits(*bits)).collect();
        self.expect_wants(binding, ty, wants, |index| format!("value {index}"))
    }

    /// Expects values with tolerances in a binding.
    pub fn expect_wants(
        mut self,
        binding: usize,
        ty: Ty,
        wants: Vec<Want>,
        describe: impl Fn(usize) -> String + 'static,
    ) -> Self {
        let describe = Box::new(describe);
        self.expected.push(Expected::Values { binding, ty, wants, describe });
        self
    }

    /// Expects a property of all bindings.
    pub fn expect(mut self, property: impl Fn(&Outputs) -> Result<(), String> + 'static) -> Self {
        self.expected.push(Expected::Holds(Box::new(property)));
        self
    }

    /// Expects an error whose text has each part.
    pub fn refused(mut self, says: &[&str]) -> Self {
        self.failure = Failure::Always(says.iter().map(|part| (*part).to_owned()).collect());
        self
    }

    /// Skips the case on devices without these features.
    pub fn needs(mut self, features: Features) -> Self {
        self.needs.features = features;
        self
    }

    /// Expects devices without these features to refuse the kernel.
    pub fn needs_or_refused(mut self, features: Features) -> Self {
        self.needs = Needs { features, or_refused: true, skip: None };
        self
    }
}
