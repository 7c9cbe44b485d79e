//! WGSL programs as code for the lockstep machine.
//!
//! The disk cache is not used: compiling takes less time than to read a file and to check it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use scry_cpu::{Code, Refusal};
use scry_ir::kir::{KirOptions, sabotage};

use super::panic_text;
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
    let code = guarded(info, || {
        let mut kir = job.program.to_kir(&KirOptions { checked: job.checked })?;
        sabotage::plant_as_asked(&mut kir);
        let refused = |refusal| too_large(info, &interface.entry_point, refusal);
        Code::compile(&kir).map_err(refused)
    })?;
    Ok(Kernel { code, bindings: interface.bindings.len() })
}

/// Makes an error of a panic in the compiler: a defect, but no reason to end the program.
fn guarded<T>(info: &DeviceInfo, compile: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|panic| {
        let why = panic_text(&*panic);
        Err(GpuError::Driver {
            device: info.name.clone(),
            call: "compile",
            code: format!("the compiler failed on this kernel: {why}; please report it"),
        })
    })
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
    fn a_panic_in_the_compiler_is_an_error_that_says_so() {
        let info = super::super::info::info();
        assert_eq!(guarded(&info, || Ok(5)), Ok(5));
        let error = guarded(&info, || -> Result<()> { panic!("made {}", "up") }).unwrap_err();
        let expected = "the compiler failed on this kernel: made up; please report it";
        assert!(error.to_string().contains(expected), "{error}");
    }

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
