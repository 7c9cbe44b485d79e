//! Tests with hostile kernels of the kernel IR: none may change a byte outside of its bindings,
//! crash, or run forever, on any device.
//!
//! There are three kinds: hostile WGSL kernels, lowered without checks; well-defined WGSL kernels,
//! lowered without checks; and random kernels of the IR. Some are damaged. All of them claim that
//! their loops are finite and that their buffers are huge. A kernel may be rejected, without a
//! panic.

mod damage;
mod draw;
mod random;

use scry_fuzz::hostile::{self, Rules};
use scry_fuzz::{Case, Features};
use scry_gpu::kir::{Kir, Stmt, any_stmt};
use scry_gpu::verify::{GuardedRun, run_guarded_kernel};
use scry_gpu::{BackendKind, Device, GpuError, Launch, ShaderErrorKind};
use scry_ir::kir::KirOptions;
use scry_ir::kir::interpret::{InterpretError, Interpreter};
use scry_ir::{Program, ShaderError};
use scry_ptx::{PtxOptions, Target, translate};
use scry_test_support::env_number;

use self::random::Random;

/// Default number of kernels on the CPU, and on other devices.
const DEFAULT_SEEDS: [u64; 2] = [400, 100];
/// Default number of kernels that are translated to PTX.
const DEFAULT_PTX_SEEDS: u64 = 200;

/// A hostile kernel with its data.
struct Hostile {
    kir: Kir,
    buffers: Vec<Vec<u8>>,
    /// Size of the immediates in bytes.
    immediates: usize,
    groups: [u32; 3],
}

/// Returns the kernel of a seed. If `endless` is false, every loop ends after a few iterations.
fn kernel(seed: u64, endless: bool) -> Hostile {
    let mut random = Random(seed);
    let mut hostile = match seed % 3 {
        0 => lower_case(hostile::kernel(seed, Features::ALL, Rules { endless }).case()),
        1 => lower_case(scry_fuzz::kernel(seed, Features::ALL.for_seed(seed)).case()),
        _ => with_data(draw::kernel(seed, endless), &mut random),
    };
    // Well-defined kernels are damaged more, because they are not hostile yet.
    for _ in 0..random.below(if seed % 3 == 1 { 4 } else { 2 }) {
        damage::damage(&mut hostile.kir, &mut random, endless);
    }
    damage::make_false_claims(&mut hostile.kir);
    hostile
}

fn lower_case(Case { source, buffers, immediates, groups, .. }: Case) -> Hostile {
    let program = Program::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    let lower = |checked| program.to_kir(&KirOptions { checked });
    // A constant index out of bounds of an array is invalid without checks.
    let kir = lower(false).or_else(|_| lower(true)).unwrap_or_else(|error| panic!("{error}"));
    Hostile { kir, buffers, immediates: immediates.map_or(0, |bytes| bytes.len()), groups }
}

fn with_data(kir: Kir, random: &mut Random) -> Hostile {
    let sizes: Vec<usize> = kir.buffers.iter().map(|_| 16 + random.below(120)).collect();
    let buffers = sizes.into_iter().map(|size| random.bytes(size)).collect();
    Hostile { kir, buffers, immediates: 16, groups: [1 + random.below(3) as u32, 1, 1] }
}

/// What happened to a kernel without a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Completed,
    TimedOut,
    Rejected,
}

/// Runs a kernel. Returns its outcome, or the problem as an error.
fn run_checked(hostile: &Hostile, device: &Device, seed: u64) -> Result<Outcome, String> {
    let program = match Program::from_kir(&hostile.kir) {
        Ok(program) => program,
        Err(error) if is_rejection(&error) => return Ok(Outcome::Rejected),
        Err(error) => return Err(error.to_string()),
    };
    if device.backend_kind() == BackendKind::Cpu
        && let Some(problem) = interpret(hostile, &program)
    {
        return Err(problem);
    }
    match run(hostile, &program, device, seed) {
        Ok(Some(result)) => match result.corrupted.first() {
            Some(region) => Err(region.to_string()),
            None if result.timed_out => Ok(Outcome::TimedOut),
            None => Ok(Outcome::Completed),
        },
        Ok(None) => Ok(Outcome::Rejected),
        Err(GpuError::Shader(error)) if is_rejection(&error) => Ok(Outcome::Rejected),
        // The device lacks a feature, a buffer is too small, or a limit is exceeded.
        Err(
            GpuError::Unsupported(_)
            | GpuError::TooLarge(_)
            | GpuError::Argument(_)
            | GpuError::Kernel(_),
        ) => Ok(Outcome::Rejected),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns whether the compiler rejected the kernel, rather than failed itself.
fn is_rejection(error: &ShaderError) -> bool {
    let is_gap = error.message.starts_with("the SPIR-V emitter does not cover");
    error.kind != ShaderErrorKind::Compiler || is_gap
}

/// Executes a kernel in the interpreter, where accesses out of bounds are errors. (The CPU device
/// drops them, which would hide a missing clamp.) Returns the error.
fn interpret(hostile: &Hostile, program: &Program) -> Option<String> {
    let kir = program.to_kir(&KirOptions { checked: true }).ok()?;
    let mut buffers = hostile.buffers.clone();
    if kir.workgroup_size.iter().map(|axis| u64::from(*axis)).product::<u64>() > 256 {
        return None;
    }
    for (binding, buffer) in program.interface().bindings.iter().zip(&mut buffers) {
        if (buffer.len() as u64) < binding.layout.min_binding_size() {
            return None;
        }
        let (head, stride) = binding.layout.runtime_array().unwrap_or((0, 1));
        let elements = (buffer.len() as u64 - head) / stride;
        buffer.truncate((head + elements * stride) as usize);
    }
    let mut interpreter = Interpreter::new(&kir, buffers);
    interpreter.immediates = vec![0; hostile.immediates];
    interpreter.iteration_limit = 500;
    match interpreter.run(hostile.groups) {
        Ok(()) | Err(InterpretError::IterationLimit { .. } | InterpretError::Setup { .. }) => None,
        Err(error) => Some(format!("in the interpreter, {error}")),
    }
}

/// Runs a kernel with guard bytes around its buffers. Returns `None` if the device cannot cancel it
/// and it has a loop that is not proven finite.
fn run(
    hostile: &Hostile,
    program: &Program,
    device: &Device,
    seed: u64,
) -> Result<Option<GuardedRun>, GpuError> {
    let endless = |kir: Kir| {
        any_stmt(&kir.body, &mut |stmt| matches!(stmt, Stmt::Loop { finite: false, .. }))
    };
    if !super::cancels_loops(device) && program.with_kir(&KirOptions { checked: true }, endless)? {
        return Ok(None);
    }
    let kernel = device.compile_ir(&hostile.kir)?;
    let launch = Launch::workgroups(hostile.groups);
    let launch = match hostile.immediates {
        0 => launch,
        bytes => launch.immediate_bytes(vec![0; bytes]),
    };
    run_guarded_kernel(device, &kernel, &hostile.buffers, &launch, seed).map(Some)
}

#[test]
fn ir_kernels_write_only_their_bindings() {
    let (_in_use, devices) = super::exclusive_devices();
    for device in devices {
        let [cpu, other] = DEFAULT_SEEDS;
        let default = if device.backend_kind() == BackendKind::Cpu { cpu } else { other };
        let endless = super::cancels_loops(&device);
        device.set_time_limit(endless.then_some(super::limit(&device)));
        let first = env_number("SCRY_FUZZ_FIRST").unwrap_or(0);
        let count = env_number("SCRY_FUZZ_SEEDS").unwrap_or(default);
        let mut outcomes = Vec::new();
        for seed in first..first + count {
            let hostile = kernel(seed, endless);
            match run_checked(&hostile, &device, seed) {
                Ok(outcome) => outcomes.push(outcome),
                Err(problem) => {
                    let small = shrink(hostile, &device, seed);
                    panic!("{}: seed {seed}: {problem}\n{}", device.name(), small.kir);
                }
            }
        }
        device.set_time_limit(None);
        let count_of = |kind| outcomes.iter().filter(|outcome| **outcome == kind).count();
        let [completed, timed_out, rejected] =
            [Outcome::Completed, Outcome::TimedOut, Outcome::Rejected].map(count_of);
        eprintln!(
            "{}: {completed} completed, {timed_out} timed out, {rejected} were rejected",
            device.name()
        );
        assert!(completed as u64 > count / 5, "too few kernels run");
    }
}

/// Removes each statement without which the kernel still has a problem.
fn shrink(mut hostile: Hostile, device: &Device, seed: u64) -> Hostile {
    let mut index = 0;
    while index < damage::count(&hostile.kir.body) {
        let before = hostile.kir.clone();
        let mut remaining = index;
        damage::edit(&mut hostile.kir.body, &mut |block, at| {
            let chosen = remaining == 0;
            remaining = remaining.wrapping_sub(1);
            if chosen {
                block.remove(at);
            }
            chosen
        });
        if run_checked(&hostile, device, seed).is_ok() {
            hostile.kir = before;
            index += 1;
        }
    }
    hostile
}

/// Every accepted kernel can be translated to PTX. If `SCRY_PTXAS` is set, that assembler must
/// accept every eighth of them.
#[test]
fn ir_kernels_translate_to_ptx() {
    let assembler = std::env::var_os("SCRY_PTXAS");
    let folder = tempfile::tempdir().unwrap();
    let mut accepted = 0;
    for seed in 0..env_number("SCRY_FUZZ_SEEDS").unwrap_or(DEFAULT_PTX_SEEDS) {
        let endless = true;
        let Ok(program) = Program::from_kir(&kernel(seed, endless).kir) else { continue };
        let options = PtxOptions { poll_cancellation: true, ..PtxOptions::new(Target::SM_80) };
        let ptx = program.with_kir(&KirOptions { checked: true }, |kir| translate(&kir, &options));
        let ptx = ptx.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        accepted += 1;
        let Some(assembler) = assembler.as_ref().filter(|_| accepted % 8 == 0) else { continue };
        let file = folder.path().join("kernel.ptx");
        std::fs::write(&file, &ptx.text).unwrap();
        let mut command = std::process::Command::new(assembler);
        command.args(["-arch=sm_80", "-O0", "-o", "/dev/null"]).arg(&file);
        let output = command.output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "seed {seed}: {messages}\n{}", ptx.text);
    }
    assert!(accepted > 20, "{accepted} kernels are accepted");
}
