//! WGSL programs as code for the lockstep machine.
//!
//! The disk cache is not used: compiling takes less time than to read a file and to check it.

use scry_cpu::{Code, Refusal};
use scry_ir::kir::{KirOptions, sabotage};

use crate::driver::CompileJob;
use crate::error::{GpuError, Result};
use crate::info::DeviceInfo;

/// A compiled kernel.
pub(super) struct Kernel {
    pub(super) code: Code,
    pub(super) bindings: usize,
}

/// Compiles a program.
pub(super) fn compile(info: &DeviceInfo, job: &CompileJob<'_>) -> Result<Kernel> {
    let interface = job.program.interface();
    if job.folded {
        return Err(GpuError::Driver {
            device: info.name.clone(),
            call: "compile",
            code: "grids of any size are run as they are, and never folded".to_owned(),
        });
    }
    let mut kir = job.program.to_kir(&KirOptions { checked: job.checked })?;
    sabotage::plant_as_asked(&mut kir);
    let refused = |refusal| too_large(info, &interface.entry_point, refusal);
    let code = Code::compile(&kir).map_err(refused)?;
    Ok(Kernel { code, bindings: interface.bindings.len() })
}

/// The error for a kernel that the machine refuses.
fn too_large(info: &DeviceInfo, kernel: &str, refusal: Refusal) -> GpuError {
    let Refusal { what, needed, limit } = refusal;
    GpuError::TooLarge {
        what: format!("kernel `{kernel}`, {what}"),
        requested: needed.to_string(),
        device: info.name.clone(),
        limit: limit.to_string(),
        limit_name: "a limit of the lockstep machine",
        remedy: "make its arrays smaller, keep them in a storage buffer, or use smaller workgroups"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_too_large_and_what_to_do() {
        let what = "bytes of private memory in an invocation".to_owned();
        let info = super::super::info::info();
        let error = too_large(&info, "k", Refusal { what, needed: 1 << 30, limit: 1 << 20 });
        let text = error.to_string();
        let expected = "kernel `k`, bytes of private memory in an invocation is 1073741824";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("takes at most 1048576"), "{text}");
        assert!(text.contains("make its arrays smaller"), "{text}");
    }
}
