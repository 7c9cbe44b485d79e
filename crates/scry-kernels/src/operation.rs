//! Operations and their variants.
//!
//! An operation is a value: what is computed, with its sizes and types. It lists its variants in
//! order of preference; each has a predicate that says why it cannot be used. The last variant is
//! the reference: plain WGSL within WebGPU's default limits, unless its sizes exceed them.

use std::fmt::Debug;

use scry_gpu::{CapabilityError, GpuError, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::call::Call;
use crate::explanation::Explanation;
use crate::kernels::Kernels;
use crate::ops;

/// What the library computes with one call.
pub(crate) trait Operation: Debug + Send + Sync + 'static {
    /// Returns the name of the public function.
    fn function(&self) -> &'static str;

    /// Returns the sizes that the program passed, for errors.
    fn sizes(&self) -> Vec<(&'static str, u64)>;

    /// Returns the buffers with their types and minimum lengths.
    fn arguments(&self) -> Vec<NativeBinding>;

    /// Returns the variants in order of preference; the last one is the reference.
    fn variants() -> &'static [Variant<Self>]
    where
        Self: Sized;

    /// Returns whether there is nothing to compute.
    fn is_empty(&self) -> bool;

    /// Returns the largest error, relative to the largest absolute value of a result, that a
    /// variant may have beside the reference; 0 for results that must be equal.
    fn tolerance(&self) -> f64;

    /// Returns the call, for errors.
    fn call(&self) -> Call {
        Call { function: self.function().into(), sizes: self.sizes() }
    }
}

/// A way to compute an operation.
pub(crate) struct Variant<O> {
    pub(crate) info: VariantInfo,
    /// Returns why the variant cannot compute the operation on the device; `None` if it can.
    pub(crate) obstacle: fn(&O, &Kernels) -> Option<String>,
    /// Returns whether the variant is expected to be faster than the later ones.
    pub(crate) suits: fn(&O, &Kernels) -> bool,
    /// Prepares the launches for checked buffers.
    pub(crate) prepare: fn(&O, &Preparation<'_>) -> Result<Vec<PreparedLaunch>>,
}

/// A variant of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantInfo {
    /// The name, as [`KernelOptions::variant`](crate::KernelOptions::variant) and
    /// [`Op::explain`](crate::Op::explain) spell it.
    pub name: &'static str,
    /// What it needs of a device.
    pub needs: &'static str,
    /// Whether results are bit-equal between runs on one device.
    pub deterministic: bool,
}

/// An operation of the library, for tables.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationInfo {
    /// The function of [`Kernels`](crate::Kernels).
    pub name: &'static str,
    /// What it computes.
    pub summary: &'static str,
    /// The element types that it supports.
    pub types: &'static str,
    /// The variants in order of preference.
    pub variants: Vec<VariantInfo>,
}

/// Returns every operation of the library, with its variants.
///
/// ```
/// let softmax = scry_kernels::operations().into_iter().find(|it| it.name == "softmax").unwrap();
/// assert_eq!(softmax.variants.last().unwrap().name, "wgsl");
/// ```
#[must_use]
pub fn operations() -> Vec<OperationInfo> {
    ops::list()
}

/// Describes an operation.
pub(crate) fn describe<O: Operation>(
    name: &'static str,
    summary: &'static str,
    types: &'static str,
) -> OperationInfo {
    let variants = O::variants().iter().map(|variant| variant.info).collect();
    OperationInfo { name, summary, types, variants }
}

/// What a variant needs to prepare its launches.
pub(crate) struct Preparation<'p> {
    pub(crate) kernels: &'p Kernels,
    pub(crate) call: &'p Call,
    /// The buffers of the call, in the order of [`Operation::arguments`].
    pub(crate) buffers: &'p [UntypedBuffer],
}

/// An operation of any type.
pub(crate) trait AnyOperation: Debug + Send + Sync {
    fn call(&self) -> Call;
    fn arguments(&self) -> Vec<NativeBinding>;
    fn is_empty(&self) -> bool;
    fn tolerance(&self) -> f64;

    /// Returns each variant, and why it cannot be used, if so.
    fn candidates(&self, kernels: &Kernels) -> Vec<Candidate>;

    /// Prepares the launches of a variant, by its position.
    fn prepare(
        &self,
        variant: usize,
        kernels: &Kernels,
        buffers: &[UntypedBuffer],
    ) -> Result<Vec<PreparedLaunch>>;

    /// Returns a text that equal operations have in common.
    fn key(&self) -> String {
        format!("{self:?}")
    }
}

/// A variant for one operation on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) info: VariantInfo,
    /// Why it cannot be used.
    pub(crate) obstacle: Option<String>,
    pub(crate) suits: bool,
}

impl<O: Operation> AnyOperation for O {
    fn call(&self) -> Call {
        Operation::call(self)
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        Operation::arguments(self)
    }

    fn is_empty(&self) -> bool {
        Operation::is_empty(self)
    }

    fn tolerance(&self) -> f64 {
        Operation::tolerance(self)
    }

    fn candidates(&self, kernels: &Kernels) -> Vec<Candidate> {
        let candidate = |variant: &Variant<O>| Candidate {
            info: variant.info,
            obstacle: (variant.obstacle)(self, kernels),
            suits: (variant.suits)(self, kernels),
        };
        O::variants().iter().map(candidate).collect()
    }

    fn prepare(
        &self,
        variant: usize,
        kernels: &Kernels,
        buffers: &[UntypedBuffer],
    ) -> Result<Vec<PreparedLaunch>> {
        let call = Operation::call(self);
        let preparation = Preparation { kernels, call: &call, buffers };
        (O::variants()[variant].prepare)(self, &preparation)
            .map_err(|error| call.for_function(error))
    }
}

/// Chooses the variant of an operation: the requested one, the tuned one, or else the first that
/// can be used and suits, or that can be used.
///
/// # Errors
/// [`GpuError::Argument`] for an unknown requested variant; [`GpuError::Capability`] if the
/// requested variant, or every variant, cannot be used.
pub(crate) fn choose(
    operation: &dyn AnyOperation,
    kernels: &Kernels,
) -> Result<(usize, Explanation)> {
    let candidates = operation.candidates(kernels);
    let call = operation.call();
    let options = kernels.options();
    let usable = |candidate: &Candidate| {
        candidate.obstacle.is_none() && (candidate.info.deterministic || !options.deterministic)
    };
    let (chosen, reason) = if let Some(name) = options.variant.as_deref() {
        let position = candidates.iter().position(|candidate| candidate.info.name == name);
        let Some(position) = position else {
            return Err(unknown_variant(&call, name, &candidates));
        };
        if let Some(obstacle) = &candidates[position].obstacle {
            return Err(cannot_be_used(kernels, &call, name, obstacle));
        }
        (position, "the options request it".to_owned())
    } else if let Some(tuned) = kernels.tuned(&operation.key()) {
        let position = candidates.iter().position(|candidate| candidate.info.name == tuned);
        (position.unwrap_or(candidates.len() - 1), "it was the fastest when tuned".to_owned())
    } else {
        let suitable = candidates.iter().position(|it| usable(it) && it.suits);
        let any = || candidates.iter().position(usable);
        let Some(position) = suitable.or_else(any) else {
            return Err(no_variant(kernels, &call, &candidates));
        };
        let reason = match suitable {
            Some(_) => "it is the first one that suits the sizes and the device",
            None => "it is the first one that the device supports",
        };
        (position, reason.to_owned())
    };
    Ok((chosen, Explanation::new(&call, chosen, reason, &candidates)))
}

fn unknown_variant(call: &Call, name: &str, candidates: &[Candidate]) -> GpuError {
    let names: Vec<_> = candidates.iter().map(|candidate| candidate.info.name).collect();
    call.argument_error(
        "the option `variant`",
        format!("is `{name}`, which this function does not have"),
        format!("use one of {}, or none", names.join(", ")),
    )
}

fn cannot_be_used(kernels: &Kernels, call: &Call, name: &str, obstacle: &str) -> GpuError {
    GpuError::Capability(CapabilityError::new(
        &call.description(),
        format!("another variant than `{name}`, which the options request"),
        kernels.device().name(),
        format!("an obstacle: {obstacle}"),
        "leave the choice to the library: KernelOptions::variant = None",
    ))
}

fn no_variant(kernels: &Kernels, call: &Call, candidates: &[Candidate]) -> GpuError {
    let obstacle = |candidate: &Candidate| {
        let other = "is not deterministic, as the options request";
        let why = candidate.obstacle.as_deref().unwrap_or(other);
        format!("`{}` {why}", candidate.info.name)
    };
    let obstacles: Vec<_> = candidates.iter().map(obstacle).collect();
    GpuError::Capability(CapabilityError::new(
        &call.description(),
        "a device that supports one of its variants",
        kernels.device().name(),
        format!("none: {}", obstacles.join("; ")),
        "convert the data to f32, use smaller sizes, or another device",
    ))
}
