//! Kernels that are not WGSL: PTX, CUDA C and functions of the host, with an interface that the
//! program declares.

mod check;
mod compile;
pub(crate) mod cublas;
mod host;
mod host_kernel;
mod language;
mod lengths;
pub(crate) mod parameters;
mod tensor_map;
#[cfg(test)]
mod tests;

use scry_ir::{
    Access, BindingInfo, BufferBindingType, Features, Immediates, Interface, Member, Scalar,
    TypeLayout,
};

pub use cublas::GemmElement;
pub(crate) use cublas::Routine;
#[cfg(feature = "cpu")]
pub(crate) use host::HostBuffer;
pub(crate) use host::HostFunction;
pub use host::{HostArguments, HostThreads};
pub use language::Language;
pub(crate) use lengths::check_lengths;
pub use parameters::NativeParameter;
pub use tensor_map::{TensorElement, TensorMap, TensorSwizzle};

use crate::api::error::{ArgumentError, GpuError, LanguageError, LibraryError, Result};

/// A buffer argument of a native kernel: a pointer among its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NativeBinding {
    name: String,
    writes: bool,
    /// `None` for bytes without a declared type.
    element: Option<Scalar>,
    /// Whether the number of elements is a parameter too.
    length: bool,
    /// Minimum number of elements.
    min_len: u64,
}

impl NativeBinding {
    /// Declares a buffer of scalars that the kernel only reads: `const float *x` for
    /// [`Scalar::F32`].
    #[must_use]
    pub fn read(name: impl Into<String>, element: Scalar) -> Self {
        Self { name: name.into(), writes: false, element: Some(element), length: false, min_len: 0 }
    }

    /// Declares a buffer of scalars that the kernel writes, or reads and writes: `float *y`.
    #[must_use]
    pub fn read_write(name: impl Into<String>, element: Scalar) -> Self {
        Self { writes: true, ..Self::read(name, element) }
    }

    /// Declares a buffer that the kernel only reads; element types are not checked.
    #[must_use]
    pub fn read_bytes(name: impl Into<String>) -> Self {
        Self { name: name.into(), writes: false, element: None, length: false, min_len: 0 }
    }

    /// Declares a buffer that the kernel writes, or reads and writes; element types are not
    /// checked.
    #[must_use]
    pub fn read_write_bytes(name: impl Into<String>) -> Self {
        Self { writes: true, ..Self::read_bytes(name) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the kernel writes the buffer.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.writes
    }

    /// Passes the number of elements as well (of bytes where the element type is not declared): an
    /// `unsigned long long` after all pointers.
    #[must_use]
    pub fn with_length(mut self) -> Self {
        self.length = true;
        self
    }

    /// Declares the elements that every launch needs (bytes where the element type is not
    /// declared): shorter buffers are rejected.
    ///
    /// ```
    /// use scry_gpu::{Device, NativeBinding, NativeInterface, Scalar};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = NativeBinding::read("x", Scalar::F32).with_min_len(100);
    /// let interface = NativeInterface::new([x], [64, 1, 1]);
    /// let short = gpu.alloc::<f32>(99)?;
    /// assert!(interface.check(&gpu, "total", &[&short]).is_err());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn with_min_len(mut self, elements: u64) -> Self {
        self.min_len = elements;
        self
    }

    /// Returns the size of an element in bytes.
    fn stride(&self) -> u32 {
        self.element.map_or(1, |scalar| scalar.width.into())
    }

    fn reflect(&self, index: u32) -> BindingInfo {
        let element = self.element.map_or_else(|| opaque("byte", 1), TypeLayout::Scalar);
        let stride = self.stride();
        BindingInfo {
            group: 0,
            binding: index,
            name: self.name.clone(),
            ty: BufferBindingType::Storage,
            access: if self.writes { Access::ReadWrite } else { Access::Read },
            layout: TypeLayout::Array { element: Box::new(element), len: None, stride },
        }
    }
}

/// The buffers of a native kernel, in the order of its parameters. Converts from a list of
/// [`NativeBinding`]s, or from a number of buffers of any type, all of them written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NativeBindings(Vec<NativeBinding>);

impl From<usize> for NativeBindings {
    fn from(count: usize) -> Self {
        let name = |index| format!("parameter {index}");
        Self((0..count).map(|index| NativeBinding::read_write_bytes(name(index))).collect())
    }
}

impl From<Vec<NativeBinding>> for NativeBindings {
    fn from(bindings: Vec<NativeBinding>) -> Self {
        Self(bindings)
    }
}

impl From<&[NativeBinding]> for NativeBindings {
    fn from(bindings: &[NativeBinding]) -> Self {
        Self(bindings.to_vec())
    }
}

impl<const N: usize> From<[NativeBinding; N]> for NativeBindings {
    fn from(bindings: [NativeBinding; N]) -> Self {
        Self(bindings.into())
    }
}

/// The parameters of a native kernel, as declared by the program.
///
/// # Parameters
///
/// A kernel's parameters are, in this order:
///
/// 1. for each binding, a 64-bit address in global memory;
/// 2. for each binding with a length ([`NativeBinding::with_length`]), in the same order, a
///    64-bit number of elements;
/// 3. the immediates: the value given with [`Launch::immediates`](crate::Launch), as one structure
///    or as a separate parameter for each field. The fields have C's layout, with alignments of at
///    most 8 bytes.
///
/// Kernels with other parameters, or with tensor maps, list them one by one:
/// [`NativeInterface::with_parameters`].
///
/// ```
/// use scry_gpu::{NativeBinding, NativeInterface, Scalar};
///
/// // extern "C" __global__ void saxpy(const float *x, float *y, unsigned long long n, float a)
/// let saxpy = NativeInterface::new(
///     [NativeBinding::read("x", Scalar::F32),
///      NativeBinding::read_write("y", Scalar::F32).with_length()],
///     [256, 1, 1],
/// ).immediates(4);
/// # let _ = saxpy;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NativeInterface {
    bindings: NativeBindings,
    block: [u32; 3],
    immediates: u32,
    dynamic_shared: u32,
    /// The parameters declared one by one, if they are.
    declared: Option<Vec<NativeParameter>>,
    /// The bindings that are read before `griddepcontrol.wait`, if the kernel uses PDL.
    pdl_reads: Option<Vec<usize>>,
    /// What determines the minimum lengths of buffers, for errors; empty if unknown.
    sizes: String,
}

impl NativeInterface {
    /// Declares a kernel with these buffers, and blocks of this many threads along x, y and z.
    #[must_use]
    pub fn new(bindings: impl Into<NativeBindings>, block: [u32; 3]) -> Self {
        let bindings = bindings.into();
        Self {
            bindings,
            block,
            immediates: 0,
            dynamic_shared: 0,
            declared: None,
            pdl_reads: None,
            sizes: String::new(),
        }
    }

    /// Declares the size of the immediates in bytes, a multiple of 4. Not for parameters that are
    /// listed one by one, whose types determine it.
    #[must_use]
    pub fn immediates(mut self, bytes: u32) -> Self {
        self.immediates = bytes;
        self
    }

    /// Declares the dynamic shared memory of a block in bytes.
    #[must_use]
    pub fn dynamic_shared(mut self, bytes: u32) -> Self {
        self.dynamic_shared = bytes;
        self
    }

    /// Opts in to programmatic dependent launch (PDL) on devices of compute capability 9.0 and
    /// newer: the kernel may start before its predecessor has finished. Before it executes
    /// `griddepcontrol.wait` it writes nothing, and reads only the bindings at the indices `reads`.
    /// Each block waits before it ends, and before `griddepcontrol.launch_dependents`, if it
    /// executes that.
    ///
    /// Each launch decides whether PDL applies: not if its predecessor writes one of these
    /// bindings, nor if its predecessor is not a launch.
    ///
    /// ```
    /// use scry_gpu::{Device, NativeBinding, NativeInterface, Scalar};
    ///
    /// // The kernel reads `weights` before `griddepcontrol.wait`, and `x` after it.
    /// let bindings = [
    ///     NativeBinding::read("weights", Scalar::F32),
    ///     NativeBinding::read("x", Scalar::F32),
    ///     NativeBinding::read_write("y", Scalar::F32),
    /// ];
    /// let interface = NativeInterface::new(bindings, [256, 1, 1]);
    /// let gpu = Device::open("null")?;
    /// # let ptx = "";
    /// // SAFETY: the null device executes no kernels.
    /// unsafe { gpu.compile_ptx(ptx, "scale", &interface.clone().pdl([0]))? };
    /// // A binding that the kernel writes cannot be read early.
    /// // SAFETY: as above.
    /// assert!(unsafe { gpu.compile_ptx(ptx, "scale", &interface.pdl([0, 2])) }.is_err());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn pdl(mut self, reads: impl Into<Vec<usize>>) -> Self {
        self.pdl_reads = Some(reads.into());
        self
    }

    /// Names what determines the minimum lengths of buffers, such as `m=3, n=5`, for the errors of
    /// [`NativeInterface::check`].
    #[must_use]
    pub fn sizes(mut self, sizes: impl Into<String>) -> Self {
        self.sizes = sizes.into();
        self
    }

    /// Returns the interface against which the core checks launches.
    pub(crate) fn reflect(&self, entry: &str) -> Interface {
        let immediates = (self.immediates > 0).then(|| Immediates {
            name: "immediates".to_owned(),
            layout: opaque("parameters", self.immediates),
        });
        Interface {
            entry_point: entry.to_owned(),
            workgroup_size: self.block,
            workgroup_memory: self.dynamic_shared,
            bindings: self
                .bindings
                .0
                .iter()
                .zip(0..)
                .map(|(it, index)| it.reflect(index))
                .collect(),
            immediates,
            overrides: Vec::new(),
            features: Features::empty(),
        }
    }
}

/// The accessors for drivers.
impl NativeInterface {
    /// Returns the threads of a block along x, y and z.
    pub(crate) fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Returns the bindings that the kernel reads before `griddepcontrol.wait`; `None` without PDL.
    pub(crate) fn pdl_reads(&self) -> Option<&[usize]> {
        self.pdl_reads.as_deref()
    }

    /// Returns the dynamic shared memory of a block in bytes.
    pub(crate) fn shared_bytes(&self) -> u32 {
        self.dynamic_shared
    }

    /// Returns the size of the immediates in bytes.
    pub(crate) fn immediate_bytes(&self) -> u32 {
        self.immediates
    }

    /// Returns the size of all parameters in bytes.
    pub(crate) fn parameter_bytes(&self) -> usize {
        if let Some(declared) = &self.declared {
            return parameters::size(declared);
        }
        let bindings = &self.bindings.0;
        let lengths = bindings.iter().filter(|binding| binding.length).count();
        8 * (bindings.len() + lengths) + self.immediates as usize
    }

    /// Returns the number of buffers.
    pub(crate) fn binding_count(&self) -> usize {
        self.bindings.0.len()
    }

    /// Encodes the parameters of a launch: `buffers` has an address and a size in bytes for each
    /// binding.
    pub(crate) fn encode_parameters(&self, buffers: &[(u64, u64)], immediates: &[u8]) -> Vec<u8> {
        let mut block = Vec::with_capacity(16 * buffers.len() + immediates.len());
        for (address, _) in buffers {
            block.extend_from_slice(&address.to_ne_bytes());
        }
        for (binding, (_, size)) in self.bindings.0.iter().zip(buffers) {
            if binding.length {
                block.extend_from_slice(&(size / u64::from(binding.stride())).to_ne_bytes());
            }
        }
        block.extend_from_slice(immediates);
        block
    }
}

/// Returns a structure with a size and no members, which WGSL cannot declare.
fn opaque(name: &str, size: u32) -> TypeLayout {
    TypeLayout::Struct { name: name.to_owned(), members: Vec::<Member>::new(), size }
}

/// Returns whether a layout has no members or type: every host type fits.
pub(crate) fn is_opaque(layout: &TypeLayout) -> bool {
    match layout {
        TypeLayout::Struct { members, .. } => members.is_empty(),
        TypeLayout::Array { element, .. } => is_opaque(element),
        _ => false,
    }
}

/// Language and interface of a native kernel, which are part of its cache key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NativeSpec {
    pub language: Language,
    pub interface: NativeInterface,
}

impl NativeSpec {
    /// Returns an injective encoding for cache keys.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // `sizes` is only used in errors.
        let NativeInterface {
            bindings,
            block,
            immediates,
            dynamic_shared,
            declared,
            pdl_reads,
            sizes: _,
        } = &self.interface;
        let numbers = [*immediates, *dynamic_shared, bindings.0.len() as u32];
        for number in block.iter().chain(&numbers) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        push_text(&mut out, self.language.name());
        for NativeBinding { name, writes, element, length, min_len } in &bindings.0 {
            push_text(&mut out, name);
            push_text(&mut out, &element.map_or_else(String::new, |scalar| scalar.to_string()));
            let has_min = *min_len > 0;
            out.push(u8::from(*writes) | u8::from(*length) << 1 | u8::from(has_min) << 2);
            if has_min {
                out.extend_from_slice(&min_len.to_le_bytes());
            }
        }
        for parameter in declared.iter().flatten() {
            push_text(&mut out, &format!("{parameter:?}"));
        }
        out.push(u8::from(declared.is_some()));
        if let Some(pdl_reads) = pdl_reads {
            push_text(&mut out, &format!("{pdl_reads:?}"));
        }
        out
    }
}

/// Appends the length of a text and the text.
fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Rejects arguments that are invalid on every driver.
pub(crate) fn validate(source: &str, entry: &str, spec: &NativeSpec) -> Result<()> {
    let reject = |argument: &str, problem: String, help: &str| {
        Err(GpuError::Argument(ArgumentError {
            label: None,
            function: None,
            kernel: Some(entry.to_owned()),
            argument: argument.to_owned(),
            problem,
            help: help.to_owned(),
        }))
    };
    if entry.is_empty() || entry.contains(|c: char| c.is_control() || c.is_whitespace()) {
        let help = "give the name of a kernel as the source spells it (in CUDA C, one that is \
                      declared extern \"C\")";
        return reject("entry point", format!("{entry:?} is not a name"), help);
    }
    if let Some(at) = source.find('\0') {
        let problem = format!("byte {at} of the source is 0, which would end it");
        return reject("source", problem, "remove the zero bytes");
    }
    parameters::validate(entry, &spec.interface)?;
    let bindings = &spec.interface.bindings.0;
    let mut pdl_reads = spec.interface.pdl_reads().unwrap_or_default().iter();
    if let Some(at) = pdl_reads.find(|at| bindings.get(**at).is_none_or(|binding| binding.writes)) {
        let problem = format!("binding {at} of {} is not read-only", bindings.len());
        let help = "pass indices of read-only bindings, from 0";
        return reject("`reads` of NativeInterface::pdl", problem, help);
    }
    let bytes = spec.interface.immediates;
    if !bytes.is_multiple_of(4) {
        let problem = format!("{bytes} bytes, which is not a multiple of 4");
        return reject("immediates", problem, "pad the structure");
    }
    Ok(())
}

/// Returns the error of a driver that only runs WGSL.
pub(crate) fn language_error(kernel: Option<&str>, language: Language, device: &str) -> GpuError {
    GpuError::Language(LanguageError {
        function: None,
        kernel: kernel.map(str::to_owned),
        language,
        device: device.to_owned(),
        help: "open a CUDA device (Device::with_backend(BackendKind::Cuda)), or write the kernel \
                 in WGSL, which runs on every device"
            .to_owned(),
    })
}

/// Returns the error of a driver that does not run functions of the host.
pub(crate) fn host_function_error(kernel: &str, device: &str) -> GpuError {
    GpuError::Language(LanguageError {
        function: None,
        kernel: Some(kernel.to_owned()),
        language: Language::Host,
        device: device.to_owned(),
        help: "open the CPU (Device::with_backend(BackendKind::Cpu)), or write the kernel in \
               WGSL, which runs on every device"
            .to_owned(),
    })
}

/// Returns the error of a driver without support for vendor libraries.
pub(crate) fn library_error(library: &'static str, device: &str) -> GpuError {
    GpuError::Library(LibraryError {
        function: None,
        library,
        problem: format!("{device} does not support it; CUDA devices do"),
        help: "open a CUDA device (Device::with_backend(BackendKind::Cuda)), or multiply with a \
               kernel in WGSL, which runs on every device"
            .to_owned(),
    })
}
