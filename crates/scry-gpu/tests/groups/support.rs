//! Groups for tests: devices, TCP groups of threads, and processes.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::{Device, DeviceGroup, GpuError, GroupError, Rendezvous, Result};

/// A token for tests that reach no other rank.
pub const TOKEN: &str = "a secret of the tests";

/// A time limit for what must not happen.
pub const LONG: Duration = Duration::from_secs(60);

/// The environment variable that has the name of the test in whose processes it is set.
const CHILD: &str = "SCRY_GROUPS_CHILD";

/// The environment variable that has the folder of the signals of a rank's group.
const SIGNALS: &str = "SCRY_GROUPS_SIGNALS";

/// Opens CPU devices, one for each rank.
pub fn cpus(count: usize) -> Vec<Device> {
    (0..count).map(|_| Device::open("cpu").unwrap()).collect()
}

/// Returns an address on which no program listens, a different one in each call.
pub fn free_address() -> String {
    static USED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        if USED.lock().unwrap().insert(address.clone()) {
            return address;
        }
    }
}

/// Returns the token of the group of threads that meets at an address: ranks of another process
/// that was given the same port do not join it.
pub fn token(address: &str) -> String {
    format!("{TOKEN} {} {address}", std::process::id())
}

/// Returns the error of a group; panics for other results.
#[track_caller]
pub fn group_error<T>(result: Result<T>) -> GroupError {
    match result {
        Err(GpuError::Group(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error"),
    }
}

/// Joins a group as one rank over TCP.
pub fn join(address: &str, rank: usize, world: usize, limit: Duration) -> Result<DeviceGroup> {
    let rendezvous = Rendezvous::tcp(address).token(token(address)).time_limit(limit);
    DeviceGroup::join(&Device::open("cpu")?, rendezvous, rank, world)
}

/// Runs `program` for the ranks of a group over TCP, on threads of this process. `program` joins.
pub fn over_tcp<T: Send>(world: usize, program: impl Fn(&str, usize) -> T + Sync) -> Vec<T> {
    let (address, program) = (free_address(), &program);
    thread::scope(|scope| {
        let address = &address;
        let start = |rank| scope.spawn(move || program(address, rank));
        let threads: Vec<_> = (0..world).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A process of a rank that has ended.
#[derive(Debug)]
pub struct Ended {
    /// `None` if it was killed at the timeout.
    pub status: Option<ExitStatus>,
    pub output: String,
}

/// Runs the test `name` in `world` further processes, with the environment of `scry launch`.
/// In these processes, this call runs `body` and ends the process.
pub fn in_processes(name: &str, world: usize, body: impl FnOnce()) -> Vec<Ended> {
    in_processes_with(name, world, &[], body)
}

/// As [`in_processes`], with further environment variables.
pub fn in_processes_with(
    name: &str,
    world: usize,
    variables: &[(&str, &str)],
    body: impl FnOnce(),
) -> Vec<Ended> {
    run_if_child(name, body);
    let own = env::current_exe().unwrap();
    let start = |_: usize| {
        let mut command = Command::new(&own);
        command.envs(variables.iter().copied());
        command
    };
    start_processes(name, world, &free_address(), start, |_| ())
}

/// In a process of [`start_processes`] for this test, runs `body` and ends the process.
pub fn run_if_child(name: &str, body: impl FnOnce()) {
    if env::var_os(CHILD).is_some_and(|child| child == OsStr::new(name)) {
        body();
        println!("the rank is done");
        std::process::exit(0);
    }
}

/// Runs the test `name` in `world` processes that meet at `address`. `command` returns what runs
/// this program for a rank; `meanwhile` is called once they are started, with the folder of their
/// signals.
pub fn start_processes(
    name: &str,
    world: usize,
    address: &str,
    command: impl Fn(usize) -> Command,
    meanwhile: impl FnOnce(&Path),
) -> Vec<Ended> {
    let folder = tempfile::tempdir().unwrap();
    let start = |rank: usize| {
        command(rank)
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CHILD, name)
            .env(SIGNALS, folder.path())
            .env("SCRY_RANK", rank.to_string())
            .env("SCRY_WORLD_SIZE", world.to_string())
            .env("SCRY_RENDEZVOUS", address)
            .env("SCRY_TOKEN", token(address))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..world).map(start).collect();
    let threads: Vec<_> =
        children.into_iter().map(|child| thread::spawn(move || finish(child))).collect();
    meanwhile(folder.path());
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Returns the file that is there once a rank has signalled.
fn signal_file(rank: usize) -> PathBuf {
    PathBuf::from(env::var_os(SIGNALS).unwrap()).join(rank.to_string())
}

/// Signals to the other processes of [`in_processes`] that this rank is so far.
pub fn signal(rank: usize) {
    fs::write(signal_file(rank), "").unwrap();
}

/// Waits for the signals of these ranks, at most half of [`LONG`].
pub fn await_signals(ranks: &[usize]) {
    assert!(await_files(ranks.iter().map(|rank| signal_file(*rank))), "no signal of {ranks:?}");
}

/// Waits until all files exist, at most half of [`LONG`]; returns whether they do.
pub fn await_files(files: impl Iterator<Item = PathBuf> + Clone) -> bool {
    let start = Instant::now();
    while !files.clone().all(|file| file.exists()) {
        if start.elapsed() >= LONG / 2 {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Waits for a process at most [`LONG`], then kills it.
fn finish(mut child: Child) -> Ended {
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let errors = thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let output = thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let start = Instant::now();
    let mut status = None;
    while status.is_none() && start.elapsed() < LONG {
        thread::sleep(Duration::from_millis(5));
        status = child.try_wait().unwrap();
    }
    let _ = child.kill();
    let _ = child.wait();
    Ended { status, output: output.join().unwrap() + &errors.join().unwrap() }
}

impl Ended {
    /// Panics unless the rank ran its body to the end.
    #[track_caller]
    pub fn assert_done(&self) {
        let is_done = self.output.contains("the rank is done");
        assert!(is_done && self.status.is_some_and(|it| it.success()), "{self:#?}");
    }
}
