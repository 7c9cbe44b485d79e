//! The limits and optional features of wgpu's adapters that devices use.

use crate::api::info::Limits;
use crate::backend::Absence;
use crate::backend::shared::loop_limits::LoopDefects;

/// Bytes of immediates that kernels may have where they are read from a uniform buffer.
const UNIFORM_IMMEDIATES: u32 = 256;

/// Uniform bindings that kernels may have besides those of their source: the grid and the launch
/// block.
const HIDDEN_UNIFORMS: u32 = 2;

/// The environment variable that chooses the limits.
const VARIABLE: &str = "SCRY_WGPU_LIMITS";

/// The limits of the devices that are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitChoice {
    /// Those of the adapter.
    Adapter,
    /// Those that every implementation of WebGPU has, and no optional feature: what runs there
    /// runs in every browser.
    WebGpu,
}

impl LimitChoice {
    /// Returns the choice of the environment. It fails for an unknown one.
    pub(super) fn from_environment() -> Result<Self, Absence> {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        Self::named(&value.to_string_lossy())
    }

    fn named(value: &str) -> Result<Self, Absence> {
        match value {
            "" | "adapter" => Ok(Self::Adapter),
            "webgpu" => Ok(Self::WebGpu),
            _ => Err(Absence {
                reason: format!("{VARIABLE} is `{value}`"),
                help: format!("set {VARIABLE} to `adapter` or `webgpu`, or unset it"),
            }),
        }
    }

    /// Returns the optional features of devices whose adapter supports others, too.
    pub(super) fn features(self, supported: wgpu::Features) -> wgpu::Features {
        match self {
            Self::Adapter => optional_features(supported),
            Self::WebGpu => wgpu::Features::empty(),
        }
    }

    /// Returns the limits of devices.
    pub(super) fn limits(self, raw: &wgpu::Adapter, defects: LoopDefects) -> wgpu::Limits {
        let (all, guaranteed) = (raw.limits(), wgpu::Limits::default());
        match self {
            Self::Adapter => all,
            Self::WebGpu => wgpu::Limits {
                // The failure report takes none of those that are guaranteed.
                max_storage_buffers_per_shader_stage: all.max_storage_buffers_per_shader_stage.min(
                    guaranteed.max_storage_buffers_per_shader_stage + defects.aborts_loops as u32,
                ),
                ..guaranteed
            },
        }
    }
}

/// Returns the optional features that this backend uses.
pub(super) fn optional_features(supported: wgpu::Features) -> wgpu::Features {
    let used = wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::IMMEDIATES;
    supported & used
}

/// Returns which of WebGPU's guaranteed limits an adapter is below, if any.
pub(super) fn missing_limit(limits: &wgpu::Limits) -> Option<String> {
    let required = wgpu::Limits::default();
    let pairs = |limits: &wgpu::Limits| {
        [
            ("max_buffer_size", limits.max_buffer_size),
            ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
            ("max_uniform_buffer_binding_size", limits.max_uniform_buffer_binding_size),
            (
                "max_storage_buffers_per_shader_stage",
                limits.max_storage_buffers_per_shader_stage.into(),
            ),
            (
                "max_uniform_buffers_per_shader_stage",
                limits.max_uniform_buffers_per_shader_stage.into(),
            ),
            (
                "max_compute_workgroup_storage_size",
                limits.max_compute_workgroup_storage_size.into(),
            ),
            (
                "max_compute_invocations_per_workgroup",
                limits.max_compute_invocations_per_workgroup.into(),
            ),
            (
                "max_compute_workgroups_per_dimension",
                limits.max_compute_workgroups_per_dimension.into(),
            ),
        ]
    };
    let required = pairs(&required).into_iter().zip(pairs(limits));
    let below = required.into_iter().find(|((_, required), (_, actual))| actual < required);
    below.map(|((name, required), (_, actual))| {
        format!("has a {name} of {actual}, below WebGPU's {required}")
    })
}

/// Returns the bytes of immediates that kernels may have.
pub(super) fn max_immediates(features: wgpu::Features, limits: &wgpu::Limits) -> u32 {
    match features.contains(wgpu::Features::IMMEDIATES) {
        true => limits.max_immediate_size,
        false => UNIFORM_IMMEDIATES,
    }
}

/// Returns the limits of kernels.
pub(super) fn convert_limits(
    features: wgpu::Features,
    limits: &wgpu::Limits,
    defects: LoopDefects,
) -> Limits {
    // Sizes are rounded up when memory is allocated.
    let max_buffer_size = limits.max_buffer_size & !(super::memory::GRANULARITY - 1);
    let largest = |bytes: u64| bytes.min(max_buffer_size).min(Limits::MAX_WGSL_BINDING) & !15;
    Limits {
        max_buffer_size,
        max_storage_binding_size: largest(limits.max_storage_buffer_binding_size),
        max_uniform_binding_size: largest(limits.max_uniform_buffer_binding_size),
        max_storage_bindings: limits
            .max_storage_buffers_per_shader_stage
            // The failure report.
            .saturating_sub(defects.aborts_loops.into()),
        max_uniform_bindings: limits
            .max_uniform_buffers_per_shader_stage
            .saturating_sub(HIDDEN_UNIFORMS),
        max_workgroup_size: [
            limits.max_compute_workgroup_size_x,
            limits.max_compute_workgroup_size_y,
            limits.max_compute_workgroup_size_z,
        ],
        max_workgroup_invocations: limits.max_compute_invocations_per_workgroup,
        max_workgroup_memory: limits.max_compute_workgroup_storage_size,
        max_immediates: max_immediates(features, limits),
        max_native_workgroups: [limits.max_compute_workgroups_per_dimension; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_below_webgpu_are_refused_by_name() {
        assert_eq!(missing_limit(&wgpu::Limits::default()), None);
        let weak = wgpu::Limits { max_storage_buffers_per_shader_stage: 4, ..Default::default() };
        let text = "has a max_storage_buffers_per_shader_stage of 4, below WebGPU's 8";
        assert_eq!(missing_limit(&weak).as_deref(), Some(text));
    }

    #[test]
    fn least_capable_browsers_have_no_optional_feature() {
        let all = wgpu::Features::all();
        assert!(LimitChoice::Adapter.features(all).contains(wgpu::Features::SHADER_F16));
        assert!(LimitChoice::WebGpu.features(all).is_empty());
    }

    #[test]
    fn unknown_choices_are_errors() {
        assert_eq!(LimitChoice::named("webgpu").ok(), Some(LimitChoice::WebGpu));
        let absence = LimitChoice::named("small").expect_err("there is no such choice");
        assert_eq!(absence.reason, "SCRY_WGPU_LIMITS is `small`");
        assert_eq!(absence.help, "set SCRY_WGPU_LIMITS to `adapter` or `webgpu`, or unset it");
    }
}
