//! Tests with hostile sources: each must be compiled or rejected within a minute. Errors must have
//! a position, except for those of truncated and changed kernels.

mod constants;
mod large;
mod mutation;
mod nesting;

use std::time::{Duration, Instant};

use scry_ir::kir::KirOptions;
use scry_ir::{
    FloatTypes, MatrixProducts, Program, ShaderError, ShaderErrorKind, SpirvOptions,
    SpirvWorkarounds,
};

/// A valid kernel, which tests modify.
const KERNEL: &str = include_str!("plain.wgsl");

/// A second one, with types and operations that [`KERNEL`] lacks.
const RICH: &str = include_str!("rich.wgsl");

/// Compiles a source to SPIR-V, by both emitters, and to the kernel IR.
fn compile_to_all(source: &str) -> Result<Program, ShaderError> {
    let program = Program::parse(source)?;
    let options = SpirvOptions {
        version: (1, 3),
        checked: true,
        native_workgroup_zeroing: false,
        linearised: false,
        workarounds: SpirvWorkarounds::all(),
        reports_aborted_loops: true,
        polls: false,
        matrices: MatrixProducts::empty(),
        nan_preserving: FloatTypes::empty(),
        max_workgroup_memory: 32 << 10,
    };
    program.to_spirv_with_naga(&options)?;
    allow_too_complex(program.control_flow())?;
    allow_too_complex(program.to_spirv(&options))?;
    allow_too_complex(program.to_kir(&KirOptions { checked: true }))?;
    Ok(program)
}

/// Drops a `TooComplex` error of a step that uses the kernel IR, where functions are inlined.
fn allow_too_complex<T>(result: Result<T, ShaderError>) -> Result<(), ShaderError> {
    match result {
        Err(error) if error.kind == ShaderErrorKind::TooComplex => Ok(()),
        result => result.map(drop),
    }
}

/// Compiles within a time limit; returns the result.
fn compile(source: &str) -> Result<Program, ShaderError> {
    let start = Instant::now();
    let result = compile_to_all(source);
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?} for {} bytes", source.len());
    if let Err(error) = &result {
        assert_ne!(error.kind, ShaderErrorKind::Compiler, "{error}");
        assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error}");
        assert!(error.rendered.len() < 100_000, "{} bytes of text", error.rendered.len());
    }
    result
}

/// Compiles a source that must be rejected, with a position.
fn compile_error(source: &str) -> ShaderError {
    let error = compile(source).err().expect("it is rejected");
    let location = error.location.unwrap_or_else(|| panic!("no location: {error}"));
    let lines = source.bytes().filter(|b| *b == b'\n').count() as u32 + 1;
    assert!((1..=lines).contains(&location.line) && location.column >= 1, "{location:?}: {error}");
    error
}

/// Returns a kernel with these statements.
fn kernel(body: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    var x = f32(id.x); var i = i32(id.x); var b = i > 3;
    {body}
    data[0] = x + f32(i) + f32(b);
}}"
    )
}

#[test]
fn unmodified_kernels_compile() {
    let program = compile(KERNEL).unwrap();
    assert_eq!(program.interface().bindings.len(), 3);
    let program = compile(RICH).unwrap();
    assert_eq!(program.interface().bindings.len(), 4);
}

#[test]
fn errors_are_deterministic_across_threads() {
    let bad = KERNEL.replace("sum += src", "sum += sorce");
    let errors: Vec<ShaderError> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| compile_error(&bad))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(errors.windows(2).all(|pair| pair[0] == pair[1]));
}
