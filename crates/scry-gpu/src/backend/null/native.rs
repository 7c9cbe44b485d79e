//! Checks native kernels for what drivers rely on.

use crate::api::info::DeviceInfo;
use crate::api::native::NativeParameter;
use crate::core::driver::NativeJob;

/// Returns an error text unless the key, sizes and parameters are those that drivers accept. The
/// source is not compiled.
pub(super) fn check(info: &DeviceInfo, job: &NativeJob<'_>) -> Result<(), String> {
    let NativeJob { source, entry, spec, key, cache } = job;
    if key.native.as_ref() != Some(*spec) || key.source != *source || source.as_bytes().contains(&0)
    {
        return Err(format!("kernel `{entry}` has the key of another one, or a zero byte"));
    }
    let interface = &spec.interface;
    let threads: u64 = interface.block().iter().map(|n| u64::from(*n)).product();
    let fits = threads <= info.limits.max_workgroup_invocations.into()
        && interface.shared_bytes() <= info.limits.max_workgroup_memory
        && (interface.immediate_bytes() <= info.limits.max_immediates
            || interface.declared_parameters().is_some());
    if threads == 0 {
        return Err(format!("kernel `{entry}` has a block without threads"));
    }
    if !fits {
        return Err(format!("kernel `{entry}` is beyond the device: {interface:?}"));
    }
    if let Some(parameters) = interface.declared_parameters() {
        let has_no_binding = |parameter: &NativeParameter| match parameter {
            NativeParameter::Pointer(binding) | NativeParameter::TensorMap(binding) => {
                *binding >= interface.binding_count()
            }
            NativeParameter::U32 | NativeParameter::U64 => false,
        };
        return match parameters.iter().any(has_no_binding) {
            true => Err(format!(
                "kernel `{entry}` lists parameters of missing bindings: {parameters:?}"
            )),
            false => Ok(()),
        };
    }
    let immediates = vec![0; interface.immediate_bytes() as usize];
    let block = interface.encode_parameters(&vec![(0, 0); interface.binding_count()], &immediates);
    if block.len() != interface.parameter_bytes() {
        return Err(format!(
            "kernel `{entry}` has {} bytes of parameters instead of {}",
            block.len(),
            interface.parameter_bytes()
        ));
    }
    log::trace!("null: {} `{entry}`, with a cache: {}", spec.language, cache.is_some());
    Ok(())
}
