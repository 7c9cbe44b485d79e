//! Kernels: WGSL programs, compiled to code of the lockstep machine, and functions of the host.
//!
//! The disk cache is not used: compiling is faster than reading and verifying a file.

use std::thread;

use scry_cpu::{Code, LimitExceeded};
use scry_ir::Program;
use scry_ir::kir::{KirOptions, mutation};

use crate::api::error::{DEFECT, DriverError, GpuError, Result, TooLargeError};
use crate::api::info::DeviceInfo;
use crate::api::native::HostFunction;
use crate::core::driver::{CompileJob, GridSource, HostJob};

/// A kernel.
pub(super) struct Kernel {
    pub(super) body: Body,
    /// Workgroup size along x, y and z.
    pub(super) workgroup_size: [u32; 3],
    pub(super) bindings: usize,
}

/// What a kernel executes.
pub(super) enum Body {
    /// Code of the lockstep machine.
    Code(Box<Code>),
    /// A function of the host, with its name.
    Function(String, HostFunction),
}

/// Makes a kernel of a function of the host.
pub(super) fn host_function(job: &HostJob<'_>) -> Kernel {
    let body = Body::Function(job.name.to_owned(), job.function.clone());
    let (workgroup_size, bindings) = (job.interface.block(), job.interface.binding_count());
    Kernel { body, workgroup_size, bindings }
}

/// Compiles a program.
pub(super) fn compile(info: &DeviceInfo, job: &CompileJob<'_>) -> Result<Kernel> {
    let interface = job.program.interface();
    if job.grid != GridSource::Native {
        let text = "grids of any size are executed directly, without linearisation".to_owned();
        return Err(GpuError::Driver(DriverError::new(&info.name, "compile", text, DEFECT)));
    }
    let code = code(job.program, job.checked)?;
    let code = code.map_err(|excess| too_large(info, &interface.entry_point, excess))?;
    let workgroup_size = interface.workgroup_size;
    let bindings = interface.bindings.len();
    Ok(Kernel { body: Body::Code(Box::new(code)), workgroup_size, bindings })
}

/// Compiles a program to code of the lockstep machine, on a stack that is large enough. A panic of
/// the compiler becomes an error.
fn code(program: &Program, checked: bool) -> Result<Result<Code, LimitExceeded>> {
    let caller = thread::current();
    let code = program.with_kir(&KirOptions { checked }, |mut kir| {
        // Changes the kernel only under mutation testing.
        mutation::mutate_as_requested(&mut kir, &caller);
        Code::compile(&kir)
    });
    Ok(code?)
}

/// Returns the error for a kernel that exceeds a limit of the machine.
fn too_large(info: &DeviceInfo, kernel: &str, excess: LimitExceeded) -> GpuError {
    let LimitExceeded { what, needed, limit } = excess;
    GpuError::TooLarge(TooLargeError {
        label: None,
        function: None,
        what: format!("kernel `{kernel}`, {what}"),
        requested: needed.to_string(),
        device: info.name.clone(),
        limit: limit.to_string(),
        limit_name: "a limit of the lockstep machine",
        help: "make its arrays smaller, keep them in a storage buffer, or use smaller workgroups"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a kernel with a chain of function calls, each within `branches` nested branches.
    fn nested_kernel(functions: usize, branches: usize) -> String {
        let level = |function: usize| {
            let open: String =
                (0..branches).map(|n| format!("if x[{n}] != i {{ x[{n}] = i; ")).collect();
            let call = match function {
                0 => "x[0] = 1;".to_owned(),
                _ => format!("f{}(i + 1);", function - 1),
            };
            format!("fn f{function}(i: u32) {{ {open}{call}{} }}\n", "}".repeat(branches))
        };
        let all: String = (0..functions).map(level).collect();
        format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             {all}
             @compute @workgroup_size(1)
             fn main(@builtin(global_invocation_id) id: vec3u) {{ f{}(id.x); }}",
            functions - 1
        )
    }

    #[test]
    fn deep_kernels_compile_on_small_stacks() {
        let program = Program::parse(&nested_kernel(12, 80)).unwrap();
        let small = thread::Builder::new().stack_size(128 << 10);
        thread::scope(|scope| {
            let compiled = small.spawn_scoped(scope, || code(&program, true)).unwrap();
            assert!(compiled.join().unwrap().unwrap().is_ok());
        });
    }

    #[test]
    fn limit_error_names_limit_and_help() {
        let what = "bytes of private memory in an invocation".to_owned();
        let info = super::super::info::info();
        let error = too_large(&info, "k", LimitExceeded { what, needed: 1 << 30, limit: 1 << 20 });
        let text = error.to_string();
        let expected = "kernel `k`, bytes of private memory in an invocation is 1073741824";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("is limited to 1048576"), "{text}");
        assert!(text.contains("make its arrays smaller"), "{text}");
    }
}
