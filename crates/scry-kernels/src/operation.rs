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
    /// Returns why the variant cannot compute the operation on the device, as the predicate of a
    /// sentence such as `needs CUDA`; `None` if it can.
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
    /// Why it cannot be used, because of the device, the sizes or the options.
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
        let random = "is not deterministic, as the options request".to_owned();
        let excludes = |info: &VariantInfo| kernels.options().deterministic && !info.deterministic;
        let candidate = |variant: &Variant<O>| Candidate {
            info: variant.info,
            obstacle: (variant.obstacle)(self, kernels)
                .or_else(|| excludes(&variant.info).then(|| random.clone())),
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
    let (chosen, reason) = match options.variant.as_deref() {
        Some(name) => (requested(kernels, &call, name, &candidates)?, "the options request it"),
        None => best(operation, kernels, &candidates)
            .ok_or_else(|| no_variant(kernels, &call, &candidates))?,
    };
    Ok((chosen, Explanation::new(&call, chosen, reason.to_owned(), &candidates)))
}

/// Returns the position of the variant that the options request.
fn requested(
    kernels: &Kernels,
    call: &Call,
    name: &str,
    candidates: &[Candidate],
) -> Result<usize> {
    let position = candidates.iter().position(|candidate| candidate.info.name == name);
    let position = position.ok_or_else(|| unknown_variant(call, name, candidates))?;
    match &candidates[position].obstacle {
        Some(obstacle) => Err(cannot_be_used(kernels, call, name, obstacle)),
        None => Ok(position),
    }
}

/// Returns the position of the best variant that can be used, and why it is the best.
fn best(
    operation: &dyn AnyOperation,
    kernels: &Kernels,
    candidates: &[Candidate],
) -> Option<(usize, &'static str)> {
    let usable = candidates.iter().enumerate().filter(|(_, it)| it.obstacle.is_none());
    let find = |is_best: &dyn Fn(&Candidate) -> bool, reason| {
        usable.clone().find(|(_, it)| is_best(it)).map(|(position, _)| (position, reason))
    };
    let tuned = kernels.tuned(|| operation.key());
    find(&|it| tuned == Some(it.info.name), "it was the fastest when tuned")
        .or_else(|| find(&|it| it.suits, "it is the first one that suits the sizes and the device"))
        .or_else(|| find(&|_| true, "it is the first one that the device supports"))
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
        format!("support for its variant `{name}`, which the options request"),
        kernels.device().name(),
        format!("none: it {obstacle}"),
        "leave the choice to the library (KernelOptions::variant = None)",
    ))
}

fn no_variant(kernels: &Kernels, call: &Call, candidates: &[Candidate]) -> GpuError {
    let obstacle = |candidate: &Candidate| {
        let why = candidate.obstacle.as_deref().unwrap_or_default();
        format!("`{}` {why}", candidate.info.name)
    };
    let obstacles: Vec<_> = candidates.iter().map(obstacle).collect();
    GpuError::Capability(CapabilityError::new(
        &call.description(),
        "support for one of its variants",
        kernels.device().name(),
        format!("none: {}", obstacles.join("; ")),
        "convert the data to f32, use smaller sizes, or another device",
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use scry_gpu::testing;

    use super::*;
    use crate::kernels::KernelOptions;

    /// An operation with two variants, of which the first is not deterministic.
    #[derive(Debug)]
    struct Sum;

    fn variant(name: &'static str, deterministic: bool) -> Variant<Sum> {
        Variant {
            info: VariantInfo { name, needs: "", deterministic },
            obstacle: |_, _| None,
            suits: |_, _| true,
            prepare: |_, _| Ok(Vec::new()),
        }
    }

    impl Operation for Sum {
        fn function(&self) -> &'static str {
            "Kernels::sum"
        }

        fn sizes(&self) -> Vec<(&'static str, u64)> {
            vec![("count", 9)]
        }

        fn arguments(&self) -> Vec<NativeBinding> {
            Vec::new()
        }

        fn variants() -> &'static [Variant<Self>] {
            static VARIANTS: LazyLock<[Variant<Sum>; 2]> =
                LazyLock::new(|| [variant("atomics", false), variant("tree", true)]);
            &*VARIANTS
        }

        fn is_empty(&self) -> bool {
            false
        }

        fn tolerance(&self) -> f64 {
            0.0
        }
    }

    fn kernels(variant: Option<&str>, deterministic: bool) -> Kernels {
        let (gpu, _) = testing::observed(testing::null_info());
        let options = KernelOptions {
            variant: variant.map(str::to_owned),
            deterministic,
            ..Default::default()
        };
        Kernels::with_options(&gpu, options).unwrap()
    }

    fn chosen(kernels: &Kernels) -> String {
        match choose(&Sum, kernels) {
            Ok((_, explanation)) => explanation.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn deterministic_option_excludes_variants() {
        assert_eq!(
            chosen(&kernels(None, true)),
            "Kernels::sum (count=9): variant `tree`, because it is the first one that suits the \
             sizes and the device\n  `atomics`: is not deterministic, as the options request"
        );
        let text = chosen(&kernels(Some("atomics"), true));
        assert!(text.contains("none: it is not deterministic, as the options request"), "{text}");
        let text = chosen(&kernels(Some("atomics"), false));
        assert!(text.contains("variant `atomics`, because the options request it"), "{text}");
    }

    #[test]
    fn tuned_variant_must_suit_options() {
        let any = kernels(None, false);
        any.set_tuned(AnyOperation::key(&Sum), "atomics");
        assert!(chosen(&any).contains("variant `atomics`, because it was the fastest"));
        let deterministic = KernelOptions { deterministic: true, ..Default::default() };
        assert!(chosen(&any.having(deterministic)).contains("variant `tree`, because"));
    }
}
