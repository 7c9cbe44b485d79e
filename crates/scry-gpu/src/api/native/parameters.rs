//! Parameters of native kernels that are declared one by one.

use super::{NativeInterface, TensorMap};
use crate::api::error::{ArgumentError, GpuError, Result};

/// Maximum bytes of kernel parameters that every GPU supports: CUDA's limit before 12.1.
const MAX_BYTES: usize = 4096;

/// A parameter in the list of [`NativeInterface::with_parameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NativeParameter {
    /// The 64-bit address of the binding at this index.
    Pointer(usize),
    /// A 32-bit value.
    U32,
    /// A 64-bit value.
    U64,
    /// A [`TensorMap`] of the binding at this index, in CUDA C a
    /// `const __grid_constant__ CUtensorMap`.
    TensorMap(usize),
}

impl NativeParameter {
    /// Returns its size in the immediates in bytes.
    pub(crate) const fn immediate_size(self) -> usize {
        match self {
            Self::Pointer(_) => 0,
            Self::U32 => 4,
            Self::U64 => 8,
            Self::TensorMap(_) => TensorMap::BYTES,
        }
    }

    /// Returns its size in the parameters in bytes.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::U32 => 4,
            Self::Pointer(_) | Self::U64 => 8,
            Self::TensorMap(_) => 128,
        }
    }

    /// Returns its alignment in bytes.
    const fn align(self) -> usize {
        if let Self::TensorMap(_) = self { 64 } else { self.size() }
    }

    /// Returns the index of its binding.
    const fn binding(self) -> Option<usize> {
        match self {
            Self::Pointer(binding) | Self::TensorMap(binding) => Some(binding),
            Self::U32 | Self::U64 => None,
        }
    }
}

impl NativeInterface {
    /// Lists the kernel's parameters, instead of deriving them from the bindings.
    ///
    /// The immediates of a launch ([`Launch::immediate_bytes`](crate::Launch::immediate_bytes)) are
    /// then, in the order of the parameters and without gaps: 4 bytes for each
    /// [`U32`](NativeParameter::U32), 8 for each [`U64`](NativeParameter::U64), and
    /// [`TensorMap::to_bytes`] for each tensor map. Pointers have none: they follow from the
    /// bindings.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch, NativeBinding, NativeInterface, NativeParameter, Scalar};
    ///
    /// // .visible .entry scale(.param .u32 n, .param .u64 x)
    /// let x = NativeBinding::read_write("x", Scalar::F32);
    /// let interface = NativeInterface::new([x], [64, 1, 1])
    ///     .with_parameters([NativeParameter::U32, NativeParameter::Pointer(0)]);
    /// let gpu = Device::open("null")?;
    /// # let ptx = "";
    /// // SAFETY: the null device executes no kernels.
    /// let scale = unsafe { gpu.compile_ptx(ptx, "scale", &interface)? };
    /// let x = gpu.alloc::<f32>(100)?;
    /// let launch = Launch::invocations(100).immediate_bytes(100u32.to_ne_bytes());
    /// gpu.run(&scale, &[&x], launch)?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl Into<Vec<NativeParameter>>) -> Self {
        let parameters = parameters.into();
        let bytes: usize = parameters.iter().map(|parameter| parameter.immediate_size()).sum();
        // A size that does not fit in 32 bits becomes the largest multiple of 4, which is rejected
        // too: it is far above the limit.
        self.immediates = u32::try_from(bytes).unwrap_or(!3);
        self.declared = Some(parameters);
        self
    }

    /// Returns the parameters, if they are declared one by one.
    pub(crate) fn declared_parameters(&self) -> Option<&[NativeParameter]> {
        self.declared.as_deref()
    }
}

/// Returns the size of all parameters in bytes, each aligned.
pub(super) fn size(parameters: &[NativeParameter]) -> usize {
    parameters
        .iter()
        .fold(0, |end: usize, parameter| end.next_multiple_of(parameter.align()) + parameter.size())
}

/// Rejects declarations that are invalid for every launch.
pub(super) fn validate(entry: &str, interface: &NativeInterface) -> Result<()> {
    let Some(declared) = interface.declared_parameters() else { return Ok(()) };
    let reject = |problem: String, help: &str| {
        Err(GpuError::Argument(ArgumentError {
            label: None,
            function: None,
            kernel: Some(entry.to_owned()),
            argument: "parameters".to_owned(),
            problem,
            help: help.to_owned(),
        }))
    };
    let count = interface.binding_count();
    let is_out_of_range =
        |parameter: &NativeParameter| parameter.binding().is_some_and(|at| at >= count);
    if let Some(parameter) = declared.iter().find(|parameter| is_out_of_range(parameter)) {
        let problem = format!(
            "{parameter:?} is out of range: the bindings are numbered from 0 and there are {count}"
        );
        return reject(problem, "declare the binding, or correct the index");
    }
    if size(declared) > MAX_BYTES {
        let problem =
            format!("{} bytes, above the limit of {MAX_BYTES} per launch", size(declared));
        return reject(problem, "put some of them into a buffer");
    }
    // At most the size of all parameters, which the limit above bounds.
    let immediates: usize = declared.iter().map(|it| it.immediate_size()).sum();
    if u32::try_from(immediates) != Ok(interface.immediates) {
        let problem = format!(
            "immediates of {} bytes are declared, but the list of parameters needs {immediates}",
            interface.immediates
        );
        return reject(problem, "leave out NativeInterface::immediates");
    }
    if interface.bindings.0.iter().any(|binding| binding.length) {
        let problem = "bindings have `with_length`, which a list of parameters excludes".to_owned();
        return reject(problem, "list the lengths as `U64`, and pass them with each launch");
    }
    Ok(())
}

/// What is wrong with bytes that are not those of a tensor map with a valid shape.
const INVALID_SHAPE: &str = "it has no valid shape: 2 to 5 dimensions, one stride fewer, and a \
                             tile of as many dimensions";

/// Rejects tensor maps in the immediates of a launch that exceed their buffers. `sizes` are the
/// buffers' sizes in bytes.
pub(crate) fn check_maps(
    kernel: &str,
    interface: &NativeInterface,
    immediates: &[u8],
    sizes: &[u64],
) -> Result<()> {
    for (index, parameter, bytes) in with_immediates(interface, immediates) {
        let NativeParameter::TensorMap(binding) = parameter else { continue };
        let map = TensorMap::from_bytes(bytes).ok_or_else(|| INVALID_SHAPE.to_owned());
        let writes = interface.bindings.0[binding].writes;
        let checked = map.and_then(|map| map.check(sizes[binding], writes));
        checked.map_err(|problem| {
            GpuError::Argument(ArgumentError {
                label: None,
                function: None,
                kernel: Some(kernel.to_owned()),
                argument: format!("tensor map at parameter {index}, of binding {binding}"),
                problem,
                help: "describe a tensor within the buffer and the limits of TensorMap".to_owned(),
            })
        })?;
    }
    Ok(())
}

/// Returns each declared parameter with its index, and its bytes in the immediates.
pub(crate) fn with_immediates<'a>(
    interface: &'a NativeInterface,
    immediates: &'a [u8],
) -> impl Iterator<Item = (usize, NativeParameter, &'a [u8])> {
    let mut rest = immediates;
    interface.declared_parameters().unwrap_or_default().iter().enumerate().map(
        move |(index, parameter)| {
            let (bytes, after) = rest.split_at(parameter.immediate_size().min(rest.len()));
            rest = after;
            (index, *parameter, bytes)
        },
    )
}
