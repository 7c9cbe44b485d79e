//! Executes a kernel by the interpreter and by the CPU device's machine.

use std::fmt;
use std::time::Duration;

use scry_cpu::{CancelToken, Code, Job, Machine, Memory};
use scry_ir::kir::{Kir, KirOptions};
use scry_ir::{GridSource, LinearisedGrid, Program, runnable_workgroups};
use scry_ptx::{Param, Ptx, PtxOptions, Target, translate};

use super::code::{Module, Space};
use super::compare::difference;
use super::grid::{Ended, Launch, Poll, TICKS};
use super::memory::{Access, Region, Regions, word};
use super::parse::parse;

/// The epoch of the launch, and the address of the cancellation word.
const EPOCH: u64 = 7;

/// Distance between buffers. Their addresses are aligned to 16 bytes and no more, like slices of
/// buffers.
const DISTANCE: u64 = 1 << 44;
const OFFSET: u64 = 0x110;

/// Physical blocks in a row of a linearised grid, and rows along y.
const LINEARISED: [u32; 2] = [3, 2];

/// Blocks of a kernel that reads workgroup counts.
const RESIDENT: u32 = 3;

/// A kernel and its data.
#[derive(Debug, Clone)]
pub struct Work {
    pub source: String,
    pub buffers: Vec<Vec<u8>>,
    pub immediates: Vec<u8>,
    pub groups: [u32; 3],
}

/// How a kernel is executed.
#[derive(Clone)]
pub struct How<'a> {
    pub options: PtxOptions,
    /// Instructions of all threads before the kernel is asked to end, and thereafter.
    pub budget: [u64; 2],
    /// Whether the results are compared: those of a race are not the same on all devices.
    pub compared: bool,
    /// Units in the last place by which floats may differ.
    pub ulps: u64,
    /// Ticks of the clock for an instruction of a thread.
    pub ticks: u64,
    /// A change of the PTX before execution.
    pub edit: Option<&'a dyn Fn(&str) -> String>,
}

impl How<'_> {
    /// As the CUDA device does it for a target.
    pub fn on(target: Target) -> Self {
        let options = PtxOptions { polled: true, ..PtxOptions::new(target) };
        let budget = [4_000_000, 4_000_000];
        Self { options, budget, compared: true, ulps: 0, ticks: TICKS, edit: None }
    }

    /// Derives all options from a seed.
    pub fn drawn(seed: u64) -> Self {
        let targets = [Target::SM_75, Target::SM_80, Target::SM_89, Target::SM_90];
        let mut how = Self::on(targets[seed as usize % 4]);
        how.options.grid = match seed % 5 {
            3 => GridSource::Counts,
            4 => GridSource::Linearised,
            _ => GridSource::Native,
        };
        how
    }
}

/// The outcome of a correct kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Both computed the same.
    Same,
    /// It ended, and every access was within bounds; nothing was compared.
    WithinBounds,
    /// It ended by cancellation.
    Stopped,
}

/// The problem of a kernel.
#[derive(Debug)]
pub enum Problem {
    /// The source is not accepted.
    Refused(String),
    /// An access out of bounds, or something else that the manual leaves undefined.
    Fault(String),
    /// The kernel continues after cancellation.
    Endless(String),
    /// The results differ.
    Different(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what) => write!(f, "the kernel is refused: {what}"),
            Self::Fault(what) => write!(f, "undefined behaviour: {what}"),
            Self::Endless(what) => write!(f, "the kernel does not end: {what}"),
            Self::Different(what) => write!(f, "CUDA and the CPU differ: {what}"),
        }
    }
}

/// Executes a kernel on the interpreter alone; returns its polls, in order.
pub fn polls(work: &Work, how: &How<'_>) -> Result<Vec<Poll>, Problem> {
    let (_, kir) = checked(&work.source)?;
    let found = interpret(work, how, &kir, &translate(&kir, &how.options))?;
    Ok(found.polls)
}

fn checked(source: &str) -> Result<(Program, Kir), Problem> {
    let program = Program::parse(source).map_err(|error| Problem::Refused(error.to_string()))?;
    let kir = program.to_kir(&KirOptions { checked: true });
    Ok((program, kir.map_err(|error| Problem::Refused(error.to_string()))?))
}

/// Executes a kernel both ways.
pub fn run(work: &Work, how: &How<'_>) -> Result<Outcome, Problem> {
    let (program, kir) = checked(&work.source)?;
    let mut ptx = translate(&kir, &how.options);
    if let Some(edit) = how.edit {
        ptx.text = edit(&ptx.text);
    }
    let Interpreted { ended, buffers: found, .. } = interpret(work, how, &kir, &ptx)?;
    match ended {
        Ended::WhenAsked => return Ok(Outcome::Stopped),
        Ended::ByItself if !how.compared => return Ok(Outcome::WithinBounds),
        Ended::ByItself => {}
    }
    // Only now: the CPU's machine checks nothing that the kernel does not check itself.
    let groups = match how.options.grid {
        GridSource::Counts => runnable_workgroups(kir.workgroup_size, work.groups),
        GridSource::Native | GridSource::Linearised => work.groups,
    };
    let expected = on_cpu(work, groups, &kir).map_err(Problem::Different)?;
    let bindings = program.interface().bindings.iter().zip(expected).zip(&found);
    for ((binding, expected), found) in bindings {
        if let Some(what) = difference(&binding.layout, &expected, found, how.ulps) {
            return Err(Problem::Different(format!("{}{what}", binding.name)));
        }
    }
    Ok(Outcome::Same)
}

/// Results of the interpreter.
struct Interpreted {
    ended: Ended,
    buffers: Vec<Vec<u8>>,
    polls: Vec<Poll>,
}

/// Executes the kernel's PTX.
fn interpret(work: &Work, how: &How<'_>, kir: &Kir, ptx: &Ptx) -> Result<Interpreted, Problem> {
    let module = parse(&ptx.text, ptx.dynamic_shared).map_err(Problem::Fault)?;
    let mut global = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>, writable| {
        let address = DISTANCE * (global.len() as u64 + 1) + OFFSET;
        global.push(Region::new(name, address, bytes, writable));
        address
    };
    for ((nth, bytes), buffer) in work.buffers.iter().enumerate().zip(&kir.buffers) {
        add(&format!("buffer{nth}"), bytes.clone(), buffer.writable);
    }
    let (grid, linearised) = physical(how, work.groups);
    let linearised_grid = add("linearised_grid", linearised.to_bytes().to_vec(), false);
    let counts = work.groups.iter().flat_map(|count| count.to_le_bytes()).collect();
    // At an address that is a multiple of 4 and no more.
    let counts = add("counts", [vec![0xA5; 4], counts].concat(), false) + 4;
    let epoch = add("epoch", EPOCH.to_le_bytes().to_vec(), false);
    let stop = add("stop", vec![0; 8], true);
    let given = Given { work, linearised_grid, counts, epoch, stop };
    let params = given.params(&module, &ptx.params).map_err(Problem::Fault)?;
    let launch = Launch {
        module: &module,
        text: &ptx.text,
        grid,
        params,
        budget: how.budget,
        stop: (stop, EPOCH),
        ticks: how.ticks,
    };
    let mut global = Regions(global);
    let (ended, polls) = launch.run(&mut global).map_err(|fault| match fault.endless {
        true => Problem::Endless(fault.to_string()),
        false => Problem::Fault(fault.to_string()),
    })?;
    let word = global.access(stop, 8, Access::Read).map(|bytes| word(bytes));
    let asked = if ended == Ended::WhenAsked { EPOCH } else { 0 };
    if word != Ok(asked) {
        return Err(Problem::Fault("the kernel writes the word that it polls".to_owned()));
    }
    let buffers = global.0.into_iter().take(work.buffers.len());
    Ok(Interpreted { ended, buffers: buffers.map(|region| region.bytes).collect(), polls })
}

/// The physical grid, and the parameters of a linearised kernel.
fn physical(how: &How<'_>, groups: [u32; 3]) -> ([u32; 3], LinearisedGrid) {
    let total = groups.iter().fold(1u32, |total, count| total.wrapping_mul(*count));
    let [width, height] = LINEARISED;
    let rows = total.div_ceil(width);
    let last_row = total - rows.saturating_sub(1) * width;
    let params = LinearisedGrid { groups, width, height, rows, last_row, padding: 0 };
    let grid = match how.options.grid {
        GridSource::Native => groups,
        GridSource::Linearised => [width, height, rows.div_ceil(height)],
        GridSource::Counts => [RESIDENT, 1, 1],
    };
    (grid, params)
}

/// The arguments of a launch.
struct Given<'a> {
    work: &'a Work,
    linearised_grid: u64,
    counts: u64,
    epoch: u64,
    stop: u64,
}

impl Given<'_> {
    /// Returns the parameter space, each parameter with its declared size.
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
            Param::Buffer(nth) => address(DISTANCE * (u64::from(nth) + 1) + OFFSET),
            Param::Length { buffer, .. } => {
                let bytes = self.work.buffers[buffer as usize].len() as u64;
                param.elements(bytes).to_le_bytes().to_vec()
            }
            Param::LinearisedGrid => address(self.linearised_grid),
            Param::Counts => address(self.counts),
            Param::Epoch => address(self.epoch),
            Param::Stop => address(self.stop),
            Param::Immediates(bytes) => {
                let mut block = self.work.immediates.clone();
                block.resize(bytes as usize, 0);
                block
            }
        }
    }
}

/// Executes the kernel on the CPU device.
fn on_cpu(work: &Work, groups: [u32; 3], kir: &Kir) -> Result<Vec<Vec<u8>>, String> {
    let code = Code::compile(kir).map_err(|refusal| format!("the CPU refuses it: {refusal:?}"))?;
    let memory: Option<Vec<_>> = work.buffers.iter().map(|b| Memory::new(b.len())).collect();
    let memory = memory.ok_or("the buffers could not be allocated")?;
    let bindings: Vec<_> = memory.iter().map(Memory::whole).collect();
    let immediates = &work.immediates;
    let job = Job { code: &code, bindings: &bindings, groups, immediates };
    let stop = CancelToken::default();
    let timer = Timer::start(&stop);
    for (binding, bytes) in bindings.iter().zip(&work.buffers) {
        // SAFETY: the memory is alive, as long as the bytes, and no kernel uses it yet.
        unsafe { binding.write(bytes) };
    }
    // SAFETY: the memory of all bindings is alive, used by no other thread, and the IR comes from a
    // program.
    let ran = unsafe { Machine::new(1).run(&job, &stop) };
    timer.end();
    ran.map_err(|_| "the CPU does not end, CUDA does".to_owned())?;
    let read = |(binding, bytes): (&scry_cpu::Span, &Vec<u8>)| {
        let mut found = vec![0; bytes.len()];
        // SAFETY: the memory is alive, as long as the bytes, and the kernel has ended.
        unsafe { binding.read(&mut found) };
        found
    };
    Ok(bindings.iter().zip(&work.buffers).map(read).collect())
}

/// Ends a kernel on the CPU after some time.
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
        // The other end is gone if the time was up.
        let _ = self.done.send(());
        self.thread.join().expect("a timer does not fail");
    }
}
