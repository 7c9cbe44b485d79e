//! Executes a kernel with the PTX interpreter and on the CPU device, and compares the results.

use std::fmt;
use std::time::Duration;

use scry_cpu::{CancelToken, Code, Machine, Memory};
use scry_ir::kir::{Kir, KirOptions};
use scry_ir::{GridSource, LinearisedGrid, Program, runnable_workgroups};
use scry_ptx::{Param, Ptx, PtxOptions, Target, translate};

use super::code::{Module, Space};
use super::compare::difference;
use super::grid::{End, Launch, Poll, TICKS};
use super::memory::{Access, Region, Regions, read_le};
use super::parse::parse;

/// The epoch (index) of the launch.
const EPOCH: u64 = 7;

/// Distance between the addresses of buffers, and offset of the first one. The addresses are
/// aligned to 16 bytes and no more, like slices of buffers.
const BUFFER_STRIDE: u64 = 1 << 44;
const FIRST_BUFFER_OFFSET: u64 = 0x110;

/// Physical blocks in a row of a linearised grid, and rows along y.
const LINEARISED: [u32; 2] = [3, 2];

/// Blocks of a kernel that loops over workgroups, whose counts it reads.
const RESIDENT_BLOCKS: u32 = 3;

/// A kernel, its arguments and its workgroup counts.
#[derive(Debug, Clone)]
pub struct TestLaunch {
    pub source: String,
    pub buffers: Vec<Vec<u8>>,
    pub immediates: Vec<u8>,
    pub groups: [u32; 3],
}

/// Options for the execution of a kernel.
#[derive(Clone)]
pub struct RunOptions<'a> {
    pub ptx: PtxOptions,
    /// Instructions of all threads together before cancellation is requested, and the maximum after
    /// that.
    pub budget: [u64; 2],
    /// Whether the results are compared: those of data races differ between devices.
    pub is_compared: bool,
    /// The maximum difference of floats, in units in the last place.
    pub ulps: u64,
    /// Ticks of the clock for an instruction of a thread.
    pub ticks: u64,
    /// Edits the PTX before execution.
    pub edit: Option<&'a dyn Fn(&str) -> String>,
}

impl RunOptions<'_> {
    /// Returns the options of the CUDA device for a target.
    pub fn for_target(target: Target) -> Self {
        let options = PtxOptions { poll_cancellation: true, ..PtxOptions::new(target) };
        let budget = [4_000_000, 4_000_000];
        Self { ptx: options, budget, is_compared: true, ulps: 0, ticks: TICKS, edit: None }
    }

    /// Derives the target and the source of the grid from a seed.
    pub fn from_seed(seed: u64) -> Self {
        let targets = [Target::SM_75, Target::SM_80, Target::SM_89, Target::SM_90];
        let mut run_options = Self::for_target(targets[seed as usize % 4]);
        run_options.ptx.grid = match seed % 5 {
            3 => GridSource::Counts,
            4 => GridSource::Linearised,
            _ => GridSource::Native,
        };
        run_options
    }
}

/// The outcome of a correct kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The interpreter and the CPU computed the same results.
    Same,
    /// It terminated, and every access was within bounds; results were not compared.
    NotCompared,
    /// It was cancelled.
    Cancelled,
}

/// The problem of a kernel.
#[derive(Debug)]
pub enum Problem {
    /// The source is rejected.
    Rejected(String),
    /// The interpreter lacks something that the code uses.
    Unsupported(String),
    /// An access out of bounds, or something else that the manual leaves undefined.
    Fault(String),
    /// The kernel continues after cancellation.
    NotTerminating(String),
    /// The results differ.
    Mismatch(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(what) => write!(f, "the kernel is rejected: {what}"),
            Self::Unsupported(what) => write!(f, "the interpreter does not support {what}"),
            Self::Fault(what) => write!(f, "undefined behaviour: {what}"),
            Self::NotTerminating(what) => write!(f, "the kernel does not terminate: {what}"),
            Self::Mismatch(what) => write!(f, "CUDA and the CPU differ: {what}"),
        }
    }
}

/// Executes a kernel with the interpreter only; returns its polls, in order.
pub fn polls(launch: &TestLaunch, run_options: &RunOptions<'_>) -> Result<Vec<Poll>, Problem> {
    let (_, kir) = compile(&launch.source)?;
    let found = interpret(launch, run_options, &kir, &translate(&kir, &run_options.ptx))?;
    Ok(found.polls)
}

pub fn compile(source: &str) -> Result<(Program, Kir), Problem> {
    let program = Program::parse(source).map_err(|error| Problem::Rejected(error.to_string()))?;
    let kir = program.to_kir(&KirOptions { checked: true });
    Ok((program, kir.map_err(|error| Problem::Rejected(error.to_string()))?))
}

/// Executes a kernel with the interpreter and on the CPU, and compares the results.
pub fn run(launch: &TestLaunch, run_options: &RunOptions<'_>) -> Result<Outcome, Problem> {
    let (program, kir) = compile(&launch.source)?;
    let mut ptx = translate(&kir, &run_options.ptx);
    if let Some(edit) = run_options.edit {
        ptx.text = edit(&ptx.text);
    }
    let Interpreted { ended, buffers: found, .. } = interpret(launch, run_options, &kir, &ptx)?;
    match ended {
        End::Cancelled => return Ok(Outcome::Cancelled),
        End::Normal if !run_options.is_compared => return Ok(Outcome::NotCompared),
        End::Normal => {}
    }
    // Only after the interpreter has found no access out of bounds: the CPU does not check
    // accesses.
    let groups = match run_options.ptx.grid {
        GridSource::Counts => runnable_workgroups(kir.workgroup_size, launch.groups),
        GridSource::Native | GridSource::Linearised => launch.groups,
    };
    let expected = run_on_cpu(launch, groups, &kir).map_err(Problem::Mismatch)?;
    let bindings = program.interface().bindings.iter().zip(expected).zip(&found);
    for ((binding, expected), found) in bindings {
        if let Some(what) = difference(&binding.layout, &expected, found, run_options.ulps) {
            return Err(Problem::Mismatch(format!("{}{what}", binding.name)));
        }
    }
    Ok(Outcome::Same)
}

/// Results of the interpreter.
struct Interpreted {
    ended: End,
    buffers: Vec<Vec<u8>>,
    polls: Vec<Poll>,
}

/// Executes the kernel's PTX with the interpreter.
fn interpret(
    launch: &TestLaunch,
    run_options: &RunOptions<'_>,
    kir: &Kir,
    ptx: &Ptx,
) -> Result<Interpreted, Problem> {
    let module = parse(&ptx.text, ptx.dynamic_shared).map_err(Problem::Unsupported)?;
    let mut global = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>, writable| {
        let address = BUFFER_STRIDE * (global.len() as u64 + 1) + FIRST_BUFFER_OFFSET;
        global.push(Region::new(name, address, bytes, writable));
        address
    };
    for ((nth, bytes), buffer) in launch.buffers.iter().enumerate().zip(&kir.buffers) {
        add(&format!("buffer{nth}"), bytes.clone(), buffer.writable);
    }
    let (grid, linearised) = physical_grid(run_options, launch.groups);
    let linearised_grid = add("linearised_grid", linearised.to_bytes().to_vec(), false);
    let counts = launch.groups.iter().flat_map(|count| count.to_le_bytes()).collect();
    // The address is a multiple of 4 and no more.
    let counts = add("counts", [vec![0xA5; 4], counts].concat(), false) + 4;
    let epoch = add("epoch", [EPOCH, 0, 0].map(u64::to_le_bytes).concat(), true);
    let stop = add("stop", vec![0; 8], true);
    let arguments = Arguments { launch, linearised_grid, counts, epoch, stop };
    let params = arguments.params(&module, &ptx.params).map_err(Problem::Unsupported)?;
    let grid_launch = Launch {
        module: &module,
        text: &ptx.text,
        grid,
        params,
        budget: run_options.budget,
        stop: (stop, EPOCH),
        ticks: run_options.ticks,
    };
    let mut global = Regions(global);
    let (ended, polls) =
        grid_launch.run(&mut global).map_err(|fault| match fault.not_terminating {
            true => Problem::NotTerminating(fault.to_string()),
            false => Problem::Fault(fault.to_string()),
        })?;
    let word = global.access(stop, 8, Access::Read).map(|bytes| read_le(bytes));
    let expected_word = if ended == End::Cancelled { EPOCH } else { 0 };
    if word != Ok(expected_word) {
        return Err(Problem::Fault("the kernel writes the cancellation word".to_owned()));
    }
    let buffers = global.0.into_iter().take(launch.buffers.len());
    Ok(Interpreted { ended, buffers: buffers.map(|region| region.bytes).collect(), polls })
}

/// Returns the physical grid, and the parameters of a linearised one.
fn physical_grid(run_options: &RunOptions<'_>, groups: [u32; 3]) -> ([u32; 3], LinearisedGrid) {
    let total = groups.iter().fold(1u32, |total, count| total.wrapping_mul(*count));
    let [width, height] = LINEARISED;
    let rows = total.div_ceil(width);
    let last_row_len = total - rows.saturating_sub(1) * width;
    let params = LinearisedGrid { groups, width, height, rows, last_row_len, padding: 0 };
    let grid = match run_options.ptx.grid {
        GridSource::Native => groups,
        GridSource::Linearised => [width, height, rows.div_ceil(height)],
        GridSource::Counts => [RESIDENT_BLOCKS, 1, 1],
    };
    (grid, params)
}

/// The arguments of a launch.
struct Arguments<'a> {
    launch: &'a TestLaunch,
    linearised_grid: u64,
    counts: u64,
    epoch: u64,
    stop: u64,
}

impl Arguments<'_> {
    /// Returns the regions of the parameter space, one for each parameter.
    fn params(&self, module: &Module, params: &[Param]) -> Result<Regions, String> {
        let declared = module.variables.iter().filter(|variable| variable.space == Space::Param);
        let declared: Vec<_> = declared.collect();
        if declared.len() != params.len() {
            return Err(format!("{} parameters are passed to {}", params.len(), declared.len()));
        }
        let mut regions = Vec::new();
        for (variable, param) in declared.into_iter().zip(params) {
            let bytes = self.bytes(*param);
            if bytes.len() != variable.bytes as usize {
                return Err(format!("{} has {} bytes", variable.name, bytes.len()));
            }
            regions.push(Region::new(&variable.name, variable.address, bytes, false));
        }
        Ok(Regions(regions))
    }

    fn bytes(&self, param: Param) -> Vec<u8> {
        let address = |address: u64| address.to_le_bytes().to_vec();
        match param {
            Param::Buffer(nth) => {
                address(BUFFER_STRIDE * (u64::from(nth) + 1) + FIRST_BUFFER_OFFSET)
            }
            Param::Length { buffer, .. } => {
                let bytes = self.launch.buffers[buffer as usize].len() as u64;
                param.elements(bytes).to_le_bytes().to_vec()
            }
            Param::LinearisedGrid => address(self.linearised_grid),
            Param::WorkgroupCounts => address(self.counts),
            Param::Epoch => address(self.epoch),
            Param::CancelledEpoch => address(self.stop),
            Param::Immediates(bytes) => {
                let mut block = self.launch.immediates.clone();
                block.resize(bytes as usize, 0);
                block
            }
        }
    }
}

/// Executes the kernel on the CPU device; returns the contents of the buffers.
fn run_on_cpu(launch: &TestLaunch, groups: [u32; 3], kir: &Kir) -> Result<Vec<Vec<u8>>, String> {
    let code = Code::compile(kir).map_err(|error| format!("the CPU rejects it: {error:?}"))?;
    let memory: Option<Vec<_>> = launch.buffers.iter().map(|b| Memory::new(b.len())).collect();
    let memory = memory.ok_or("the buffers could not be allocated")?;
    let bindings: Vec<_> = memory.iter().map(Memory::whole).collect();
    let immediates = &launch.immediates;
    let cpu_launch = scry_cpu::Launch { code: &code, bindings: &bindings, groups, immediates };
    let stop = CancelToken::default();
    let timer = Timer::start(&stop);
    for (binding, bytes) in bindings.iter().zip(&launch.buffers) {
        // SAFETY: the memory is allocated, has the length of the bytes, and no kernel uses it yet.
        unsafe { binding.write(bytes) };
    }
    // SAFETY: the memory of all bindings is allocated, no other thread uses it, and the IR was
    // compiled from a program.
    let result = unsafe { Machine::new(1).run(&cpu_launch, &stop) };
    timer.end();
    result.map_err(|_| "the CPU does not terminate, CUDA does".to_owned())?;
    let read = |(binding, bytes): (&scry_cpu::MemoryRange, &Vec<u8>)| {
        let mut found = vec![0; bytes.len()];
        // SAFETY: the memory is allocated, has the length of the bytes, and the kernel has ended.
        unsafe { binding.read(&mut found) };
        found
    };
    Ok(bindings.iter().zip(&launch.buffers).map(read).collect())
}

/// Cancels a kernel on the CPU after 20 seconds.
struct Timer {
    done: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Timer {
    fn start(stop: &CancelToken) -> Self {
        let (done, wait) = std::sync::mpsc::channel();
        let stop = stop.clone();
        let thread = std::thread::spawn(move || {
            if wait.recv_timeout(Duration::from_secs(20)).is_err() {
                stop.request();
            }
        });
        Self { done, thread }
    }

    fn end(self) {
        // The receiver does not exist any more if the time was up.
        let _ = self.done.send(());
        self.thread.join().expect("the timer does not panic");
    }
}
