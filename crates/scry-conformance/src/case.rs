//! A conformance test case: a kernel, its buffers and launches, and the expected results.

use std::ops::Range;

use scry_gpu::{CompileOptions, DType, Features, Launch, MatrixProducts};

use crate::outputs::Outputs;
use crate::ty::{Ty, pack};

/// A kernel with its inputs and its expected results.
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
    /// The name, unique within the test.
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
    pub bindings: Vec<BufferBinding>,
    /// Launches in order; without any the kernel is only compiled.
    pub launches: Vec<CaseLaunch>,
    /// Contents of bindings after the launches, each value with its tolerance.
    pub expected: Vec<Expected>,
    /// Whether compiling or launching must or may fail.
    pub failure: Failure,
    /// The features that the case needs, and what happens without them.
    pub needs: Needs,
    /// The behaviour if the driver's compiler does not implement an operation.
    pub on_unsupported_op: OnUnsupportedOp,
}

/// The contents of a buffer.
pub struct Data {
    /// The initial bytes.
    pub content: Content,
    /// The element type of the buffer. `None` is an untyped buffer, which can be bound to every
    /// WGSL type.
    pub dtype: Option<DType>,
}

/// The initial bytes of a buffer.
pub enum Content {
    /// Uploaded bytes.
    Bytes(Vec<u8>),
    /// A zero-initialised allocation of this many elements; nothing is uploaded.
    Zeros(usize),
}

/// A buffer, or a byte range of one, bound as a kernel argument.
#[derive(Clone)]
pub struct BufferBinding {
    /// The buffer's index.
    pub buffer: usize,
    /// The bytes; `None` is the whole buffer.
    pub bytes: Option<Range<usize>>,
}

/// A launch of a case.
pub enum CaseLaunch {
    /// The host specifies the size.
    Direct(Launch),
    /// The device reads the workgroup counts from the buffer. The second field has the bytes of
    /// the immediates.
    Indirect(BufferBinding, Option<Vec<u8>>),
}

/// Contents of a binding after the launches.
pub enum Expected {
    /// A binding's index and exactly these bytes.
    Bytes(usize, Vec<u8>),
    /// A binding's index and exactly these words.
    Words(usize, Vec<u32>),
    /// Values of a type, each with its tolerance.
    Values {
        /// The binding's index.
        binding: usize,
        /// The type of the values.
        ty: Ty,
        /// The values.
        values: Vec<ExpectedValue>,
        /// Describes the value at an index, for errors.
        describe: Box<dyn Fn(usize) -> String>,
    },
    /// A property of the contents of all bindings: for results that depend on the order of
    /// execution, or that WGSL leaves to the implementation.
    Holds(Property),
}

/// Checks the contents of all bindings; the error describes the violation.
pub type Property = Box<dyn Fn(&Outputs) -> Result<(), String>>;

/// An expected value and its tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExpectedValue {
    /// These bits.
    Bits(u64),
    /// This number; zeros may have any sign.
    Number(f64),
    /// `WithinUlps(value, ulps)`: a number within `ulps` ULP of `value`.
    WithinUlps(f64, f64),
    /// `WithinAbsolute(value, error)`: a number whose absolute error is at most `error`.
    WithinAbsolute(f64, f64),
    /// `BitsWithin(bits, distance)`: a bit pattern whose difference from `bits`, both read as
    /// unsigned integers, is at most `distance`.
    BitsWithin(u64, u64),
    /// `Between(min, max)`: a number in this range, inclusive.
    Between(f64, f64),
    /// Any value.
    Any,
}

/// Whether an error is expected. Its text must contain all the given parts.
pub enum Failure {
    /// No error may occur.
    Never,
    /// Compiling must fail, or else a launch. After a failed launch the expected contents are
    /// still compared.
    Always(Vec<String>),
    /// Compiling may fail; otherwise the expected contents are compared.
    Allowed(Vec<String>),
    /// A launch may fail with [`GpuError::Kernel`](scry_gpu::GpuError::Kernel), because the
    /// driver has a limit that its API does not report. The contents are then not compared.
    Limit(Vec<String>),
}

/// The features that a case needs, and its behaviour on devices without them.
#[derive(Clone, Default)]
pub struct Needs {
    /// The features.
    pub features: Features,
    /// If not empty: products of cooperative matrices, at least one of which the device must
    /// support. Otherwise it must reject the kernel, with an error that names the products it has.
    pub products: MatrixProducts,
    /// Whether a device without the features must reject the kernel, with an error that names
    /// them. If false, the case is skipped there.
    pub is_rejected_without: bool,
    /// Why the case is skipped on this device, if it is.
    pub skip: Option<String>,
}

/// The behaviour if the driver's compiler does not implement an operation on a type that WGSL
/// lacks.
#[derive(Default)]
pub enum OnUnsupportedOp {
    /// Fail the case.
    #[default]
    Fail,
    /// Skip the case.
    Skip,
    /// Run these smaller cases instead, which must not be split again.
    Split(Box<dyn Fn() -> Vec<Case>>),
}

impl Data {
    /// Returns an untyped buffer of words, which can be bound to every WGSL type.
    pub fn words(words: &[u32]) -> Self {
        Self::bytes(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    /// Returns an untyped buffer of bytes, which can be bound to every WGSL type.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self { content: Content::Bytes(bytes), dtype: None }
    }

    /// Returns an `f32` buffer, which can be bound to `f32` and its vectors, matrices and arrays.
    pub fn floats(floats: &[f32]) -> Self {
        Self::bytes(floats.iter().flat_map(|x| x.to_ne_bytes()).collect()).typed(DType::F32)
    }

    /// Returns an untyped buffer with the bits of values of a type, padded to whole words.
    pub fn values(ty: Ty, values: &[u64]) -> Self {
        Self::words(&pack(ty, values))
    }

    /// Returns a zero-initialised buffer of `len` elements; nothing is uploaded.
    pub fn zeros(dtype: DType, len: usize) -> Self {
        Self { content: Content::Zeros(len), dtype: Some(dtype) }
    }

    /// Sets the element type, which must match the kernel's type.
    pub fn typed(self, dtype: DType) -> Self {
        Self { dtype: Some(dtype), ..self }
    }

    /// Returns the bytes before the first launch.
    pub(crate) fn initial(&self) -> Vec<u8> {
        match &self.content {
            Content::Bytes(bytes) => bytes.clone(),
            Content::Zeros(len) => vec![0; len * self.dtype.map_or(1, DType::size)],
        }
    }
}

impl BufferBinding {
    /// Binds a whole buffer.
    pub fn whole(buffer: usize) -> Self {
        Self { buffer, bytes: None }
    }

    /// Binds a byte range of a buffer.
    pub fn part(buffer: usize, bytes: Range<usize>) -> Self {
        Self { buffer, bytes: Some(bytes) }
    }
}

impl Case {
    /// Creates a case without buffers and launches.
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
            on_unsupported_op: OnUnsupportedOp::Fail,
        }
    }

    /// Creates a case that is skipped, for a reason.
    pub fn skipped(name: impl Into<String>, reason: impl Into<String>) -> Self {
        let mut case = Self::new(name, "");
        case.needs.skip = Some(reason.into());
        case
    }

    /// Adds a buffer, and binds it whole.
    pub fn buffer(mut self, data: Data) -> Self {
        self.bindings.push(BufferBinding::whole(self.buffers.len()));
        self.buffers.push(data);
        self
    }

    /// Adds untyped buffers of words, and binds them whole.
    pub fn words(self, buffers: &[&[u32]]) -> Self {
        buffers.iter().fold(self, |case, words| case.buffer(Data::words(words)))
    }

    /// Adds a launch.
    pub fn launch(mut self, launch: Launch) -> Self {
        self.launches.push(CaseLaunch::Direct(launch));
        self
    }

    /// Adds a launch of one workgroup.
    pub fn one_workgroup(self) -> Self {
        self.launch(Launch::workgroups([1, 1, 1]))
    }

    /// Adds a `u32` buffer in which all bits are set, and its expected contents.
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
        let expected = values.iter().map(|bits| ExpectedValue::Bits(*bits)).collect();
        self.expect_approx(binding, ty, expected, |index| format!("value {index}"))
    }

    /// Expects values with tolerances in a binding.
    pub fn expect_approx(
        mut self,
        binding: usize,
        ty: Ty,
        values: Vec<ExpectedValue>,
        describe: impl Fn(usize) -> String + 'static,
    ) -> Self {
        let describe = Box::new(describe);
        self.expected.push(Expected::Values { binding, ty, values, describe });
        self
    }

    /// Expects a property of all bindings.
    pub fn expect(mut self, property: impl Fn(&Outputs) -> Result<(), String> + 'static) -> Self {
        self.expected.push(Expected::Holds(Box::new(property)));
        self
    }

    /// Expects an error whose text contains each part.
    pub fn expect_error(mut self, parts: &[&str]) -> Self {
        self.failure = Failure::Always(parts.iter().map(|part| (*part).to_owned()).collect());
        self
    }

    /// Skips the case on devices without these features.
    pub fn skipped_without(mut self, features: Features) -> Self {
        self.needs.features = features;
        self
    }

    /// Expects devices without these features to reject the kernel. Replaces all other needs.
    pub fn rejected_without(mut self, features: Features) -> Self {
        self.needs = Needs { features, is_rejected_without: true, ..Needs::default() };
        self
    }

    /// Expects devices that support none of these products of cooperative matrices to reject the
    /// kernel.
    pub fn rejected_without_product(mut self, products: MatrixProducts) -> Self {
        self.needs.products = products;
        self
    }
}
