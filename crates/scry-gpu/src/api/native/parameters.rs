//! Parameters of native kernels that are listed one by one.

use super::{NativeInterface, TensorMap};
use crate::api::error::{ArgumentError, GpuError, Result};

/// Bytes of parameters that every GPU supports.
const MOST: usize = 4096;

/// A parameter of a kernel that lists them: [`NativeInterface::with_parameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NativeParameter {
    /// The 64-bit address of a buffer, by its place among the bindings.
    Pointer(usize),
    /// A number of 32 bits.
    Word,
    /// A number of 64 bits.
    Long,
    /// A [`TensorMap`] of a buffer, by its place among the bindings: `const __grid_constant__
    /// CUtensorMap` in CUDA C.
    Map(usize),
}

impl NativeParameter {
    /// Its bytes among the immediates.
    pub(crate) const fn given(self) -> usize {
        match self {
            Self::Pointer(_) => 0,
            Self::Word => 4,
            Self::Long => 8,
            Self::Map(_) => TensorMap::BYTES,
        }
    }

    /// Its bytes among the parameters.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Word => 4,
            Self::Pointer(_) | Self::Long => 8,
            Self::Map(_) => 128,
        }
    }

    /// Alignment in bytes.
    const fn align(self) -> usize {
        if let Self::Map(_) = self { 64 } else { self.size() }
    }

    /// The binding that it is of.
    const fn binding(self) -> Option<usize> {
        match self {
            Self::Pointer(binding) | Self::Map(binding) => Some(binding),
            Self::Word | Self::Long => None,
        }
    }
}

impl NativeInterface {
    /// The kernel's parameters, one by one, in place of those that follow from the bindings.
    ///
    /// The immediates of a launch ([`Launch::immediate_bytes`](crate::Launch)) are then, in the
    /// order of the parameters and without gaps, 4 bytes for each word, 8 for each long, and
    /// [`TensorMap::to_bytes`] for each map.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl Into<Vec<NativeParameter>>) -> Self {
        let parameters = parameters.into();
        let bytes: usize = parameters.iter().map(|parameter| parameter.given()).sum();
        // A number that does not fit is far above the limit of kernels, and rejected as such.
        self.immediates = u32::try_from(bytes).unwrap_or(!3);
        self.listed = Some(parameters);
        self
    }

    /// The parameters, where they are listed.
    pub(crate) fn listed(&self) -> Option<&[NativeParameter]> {
        self.listed.as_deref()
    }
}

/// Bytes of all parameters, each at the next place that it may have.
pub(super) fn size(listed: &[NativeParameter]) -> usize {
    listed
        .iter()
        .fold(0, |end: usize, parameter| end.next_multiple_of(parameter.align()) + parameter.size())
}

/// Refuses lists that no launch could follow.
pub(super) fn validate(entry: &str, interface: &NativeInterface) -> Result<()> {
    let Some(listed) = interface.listed() else { return Ok(()) };
    let refuse = |problem: String, help: &str| {
        Err(GpuError::Argument(ArgumentError {
            label: None,
            kernel: entry.to_owned(),
            argument: "parameters".to_owned(),
            problem,
            help: help.to_owned(),
        }))
    };
    let count = interface.binding_count();
    let strays = |parameter: &NativeParameter| parameter.binding().is_some_and(|at| at >= count);
    if let Some(stray) = listed.iter().find(|parameter| strays(parameter)) {
        let problem = format!("{stray:?} is of a binding, of which there are {count}");
        return refuse(problem, "declare the binding, or count them from 0");
    }
    if size(listed) > MOST {
        let problem = format!("{} bytes, beyond the {MOST} of a launch", size(listed));
        return refuse(problem, "put some of them into a buffer");
    }
    if interface.bindings.0.iter().any(|binding| binding.length) {
        let problem = "lengths of bindings are asked for, beside a list of parameters".to_owned();
        return refuse(problem, "list them as longs, and give them with each launch");
    }
    Ok(())
}

/// Rejects tensor maps among the immediates of a launch that exceed their buffers, whose sizes are
/// in bytes.
pub(crate) fn check_maps(
    kernel: &str,
    interface: &NativeInterface,
    immediates: &[u8],
    sizes: &[u64],
) -> Result<()> {
    for (index, parameter, bytes) in given(interface, immediates) {
        let NativeParameter::Map(binding) = parameter else { continue };
        let map = TensorMap::from_bytes(bytes).ok_or("is no tensor map".to_owned());
        let writes = interface.bindings.0[binding].writes;
        let checked = map.and_then(|map| map.check(sizes[binding], writes));
        checked.map_err(|problem| {
            GpuError::Argument(ArgumentError {
                label: None,
                kernel: kernel.to_owned(),
                argument: format!("tensor map at parameter {index}, of binding {binding}"),
                problem,
                help: "describe a tensor that lies within the buffer, as TensorMap says".to_owned(),
            })
        })?;
    }
    Ok(())
}

/// Each listed parameter with its number, and its bytes among the immediates.
pub(crate) fn given<'a>(
    interface: &'a NativeInterface,
    immediates: &'a [u8],
) -> impl Iterator<Item = (usize, NativeParameter, &'a [u8])> {
    let mut rest = immediates;
    interface.listed().unwrap_or_default().iter().enumerate().map(move |(index, parameter)| {
        let (bytes, after) = rest.split_at(parameter.given().min(rest.len()));
        rest = after;
        (index, *parameter, bytes)
    })
}
