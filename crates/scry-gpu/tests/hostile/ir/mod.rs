//! Hostile kernels of the kernel IR: none may change a byte outside of its bindings, crash, or run
//! forever, on any device.
//!
//! There are three kinds: hostile WGSL kernels and well-defined ones, lowered without checks, the
//! latter damaged; and kernels that are drawn in the IR. All of them claim that their loops end and
//! that their buffers are huge. A kernel may be refused, but by no panic.

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

use self::random::Random;
use super::number;

/// Default number of kernels on the processor, and on other devices.
const SEEDS: [u64; 2] = [400, 100];
/// Default number of kernels that become PTX.
const PTX_SEEDS: u64 = 200;

/// A hostile kernel with its data.
struct Hostile {
    kir: Kir,
    buffers: Vec<Vec<u8>>,
    immediates: usize,
    groups: [u32; 3],
}

/// Returns the kernel of a seed. Without `endless` every loop ends soon.
fn kernel(seed: u64, endless: bool) -> Hostile {
    let mut random = Random(seed);
    let mut hostile = match seed % 3 {
        0 => lowered(hostile::kernel(seed, Features::ALL, Rules { endless }).case()),
        1 => lowered(scry_fuzz::kernel(seed, Features::ALL.for_seed(seed)).case()),
        _ => drawn(draw::kernel(seed, endless), &mut random),
    };
    for _ in 0..random.below(if seed % 3 == 1 { 4 } else { 2 }) {
        damage::damage(&mut hostile.kir, &mut random, endless);
    }
    damage::claim(&mut hostile.kir);
    hostile
}

fn lowered(Case { source, buffers, immediates, groups, .. }: Case) -> Hostile {
    let program = Program::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    let lower = |checked| program.to_kir(&KirOptions { checked });
    // Constant indices beyond an array are not valid without checks.
    let kir = lower(false).or_else(|_| lower(true)).unwrap_or_else(|error| panic!("{error}"));
    Hostile { kir, buffers, immediates: immediates.map_or(0, |bytes| bytes.len()), groups }
}

fn drawn(kir: Kir, random: &mut Random) -> Hostile {
    let sizes: Vec<usize> = kir.buffers.iter().map(|_| 16 + random.below(120)).collect();
    let buffers = sizes.into_iter().map(|size| random.bytes(size)).collect();
    Hostile { kir, buffers, immediates: 16, groups: [1 + random.below(3) as u32, 1, 1] }
}

/// What became of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ran,
    Ended,
    Refused,
}

/// Runs a kernel; returns the problem, if it is one.
fn outcome(hostile: &Hostile, device: &Device, seed: u64) -> Result<Outcome, String> {
    let program = match Program::from_kir(&hostile.kir) {
        Ok(program) => program,
        Err(error) if is_refusal(&error) => return Ok(Outcome::Refused),
        Err(error) => return Err(error.to_string()),
    };
    if device.backend_kind() == BackendKind::Cpu
        && let Some(problem) = interpreted(hostile, &program)
    {
        return Err(problem);
    }
    match run(hostile, &program, device, seed) {
        Ok(Some(ran)) => match ran.corrupted.first() {
            Some(region) => Err(region.to_string()),
            None if ran.timed_out => Ok(Outcome::Ended),
            None => Ok(Outcome::Ran),
        },
        Ok(None) => Ok(Outcome::Refused),
        Err(GpuError::Shader(error)) if is_refusal(&error) => Ok(Outcome::Refused),
        // Missing features, buffers that are too small, limits of devices and their drivers.
        Err(
            GpuError::Unsupported(_)
            | GpuError::TooLarge(_)
            | GpuError::Argument(_)
            | GpuError::Kernel(_),
        ) => Ok(Outcome::Refused),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether an error is the kernel's fault, rather than the compiler's.
fn is_refusal(error: &ShaderError) -> bool {
    let is_gap = error.message.starts_with("the SPIR-V emitter does not cover");
    error.kind != ShaderErrorKind::Compiler || is_gap
}

/// Executes a kernel in the interpreter, where accesses out of bounds are errors: the processor
/// drops them, which would hide a clamp that is missing. Returns the error.
fn interpreted(hostile: &Hostile, program: &Program) -> Option<String> {
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

/// Runs a kernel between guard bytes; `None` if it might not end on a device that cannot cancel it.
fn run(
    hostile: &Hostile,
    program: &Program,
    device: &Device,
    seed: u64,
) -> Result<Option<GuardedRun>, GpuError> {
    let endless = |kir: Kir| {
        any_stmt(&kir.body, &mut |stmt| matches!(stmt, Stmt::Loop { finite: false, .. }))
    };
    if !super::can_cancel(device) && program.with_kir(&KirOptions { checked: true }, endless)? {
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
        let [cpu, other] = SEEDS;
        let default = if device.backend_kind() == BackendKind::Cpu { cpu } else { other };
        let endless = super::can_cancel(&device);
        device.set_time_limit(endless.then_some(super::limit(&device)));
        let first = number("SCRY_FUZZ_FIRST").unwrap_or(0);
        let count = number("SCRY_FUZZ_SEEDS").unwrap_or(default);
        let mut outcomes = Vec::new();
        for seed in first..first + count {
            let hostile = kernel(seed, endless);
            match outcome(&hostile, &device, seed) {
                Ok(outcome) => outcomes.push(outcome),
                Err(problem) => {
                    let small = smallest(hostile, &device, seed);
                    panic!("{}: seed {seed}: {problem}\n{}", device.name(), small.kir);
                }
            }
        }
        device.set_time_limit(None);
        let of = |kind| outcomes.iter().filter(|outcome| **outcome == kind).count();
        let [ran, ended, refused] = [Outcome::Ran, Outcome::Ended, Outcome::Refused].map(of);
        eprintln!("{}: {ran} ran, {ended} were ended, {refused} were refused", device.name());
        assert!(ran as u64 > count / 5, "too few kernels run");
    }
}

/// Removes statements as long as the kernel has a problem.
fn smallest(mut hostile: Hostile, device: &Device, seed: u64) -> Hostile {
    let mut nth = 0;
    while nth < damage::count(&hostile.kir.body) {
        let before = hostile.kir.clone();
        let mut left = nth;
        damage::edit(&mut hostile.kir.body, &mut |block, at| {
            let chosen = left == 0;
            left = left.wrapping_sub(1);
            if chosen {
                block.remove(at);
            }
            chosen
        });
        if outcome(&hostile, device, seed).is_ok() {
            hostile.kir = before;
            nth += 1;
        }
    }
    hostile
}

/// Every kernel that is accepted becomes PTX, which `SCRY_PTXAS` assembles.
#[test]
fn ir_kernels_become_ptx() {
    let assembler = std::env::var_os("SCRY_PTXAS");
    let folder = tempfile::tempdir().unwrap();
    let mut accepted = 0;
    for seed in 0..number("SCRY_FUZZ_SEEDS").unwrap_or(PTX_SEEDS) {
        let Ok(program) = Program::from_kir(&kernel(seed, true).kir) else { continue };
        let options = PtxOptions { polled: true, ..PtxOptions::new(Target::SM_80) };
        let ptx = program.with_kir(&KirOptions { checked: true }, |kir| translate(&kir, &options));
        let ptx = ptx.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        accepted += 1;
        let Some(assembler) = assembler.as_ref().filter(|_| accepted % 8 == 0) else { continue };
        let file = folder.path().join("kernel.ptx");
        std::fs::write(&file, &ptx.text).unwrap();
        let mut command = std::process::Command::new(assembler);
        command.args(["-arch=sm_80", "-O0", "-o", "/dev/null"]).arg(&file);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "seed {seed}: {said}\n{}", ptx.text);
    }
    assert!(accepted > 20, "{accepted} kernels are accepted");
}
