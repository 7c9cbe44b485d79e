//! Tests in child processes.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Names the test that a child process runs.
const CHILD: &str = "SCRY_FAULTS_CHILD";

/// Write-locked by tests that saturate devices, read-locked by tests with time limits.
static TIME_OF_DEVICES: RwLock<()> = RwLock::new(());

/// Keeps other tests from saturating devices until it is dropped.
pub fn in_time() -> RwLockReadGuard<'static, ()> {
    TIME_OF_DEVICES.read().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a child process.
pub struct Outcome {
    /// Its exit status; `None` if it was killed after the timeout.
    pub status: Option<ExitStatus>,
    /// Its output.
    pub output: String,
    /// Its duration.
    pub took: Duration,
}

/// Runs `body` in a child process with these environment variables, for at most `patience`. `name`
/// is the name of the calling test, which is run again in the child; there the call does not
/// return.
pub fn in_child_with(
    name: &str,
    patience: Duration,
    variables: &[(&str, OsString)],
    body: impl FnOnce(),
) -> Outcome {
    let _in_time = in_time();
    run_in_child(name, patience, variables, body)
}

fn run_in_child(
    name: &str,
    patience: Duration,
    variables: &[(&str, OsString)],
    body: impl FnOnce(),
) -> Outcome {
    if env::var_os(CHILD).is_some_and(|child| child == OsStr::new(name)) {
        body();
        println!("the child is done");
        // A normal exit, with the exit handlers of libraries.
        std::process::exit(0);
    }
    let this = env::current_exe().expect("a test knows its program");
    let mut child = Command::new(this)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a test can be run again");
    let start = Instant::now();
    let mut streams: Vec<_> = [
        child.stdout.take().map(|it| Box::new(it) as Box<dyn std::io::Read + Send>),
        child.stderr.take().map(|it| Box::new(it) as _),
    ]
    .into_iter()
    .flatten()
    .map(|mut stream| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    })
    .collect();
    let status = end_of(&mut child, start + patience);
    let took = start.elapsed();
    let output = streams.drain(..).filter_map(|stream| stream.join().ok());
    Outcome { status, output: output.collect(), took }
}

fn end_of(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("the child belongs to this process") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("the child belongs to this process");
    let _ = child.wait();
    None
}

/// [`in_child_with`], for a child that must finish its work and exit normally.
pub fn in_child(name: &str, patience: Duration, body: impl FnOnce()) -> String {
    in_child_with(name, patience, &[], body).finished()
}

/// [`in_child`], for work that saturates devices: no other child runs at the same time.
pub fn in_child_alone(name: &str, patience: Duration, body: impl FnOnce()) -> String {
    in_child_alone_with(name, patience, &[], body)
}

/// [`in_child_alone`], with these variables in the child's environment.
pub fn in_child_alone_with(
    name: &str,
    patience: Duration,
    variables: &[(&str, OsString)],
    body: impl FnOnce(),
) -> String {
    let _alone = TIME_OF_DEVICES.write().unwrap_or_else(PoisonError::into_inner);
    run_in_child(name, patience, variables, body).finished()
}

impl Outcome {
    /// Returns the child's output; panics unless it finished its work and exited normally.
    pub fn finished(self) -> String {
        let Self { status, output, took } = self;
        let ended = status.is_some_and(|status| status.success());
        assert!(
            ended && output.contains("the child is done"),
            "{status:?} after {took:?}: {output}"
        );
        // Repeats the child's messages about what it skipped.
        for line in output.lines().filter(|line| line.starts_with("skipped")) {
            eprintln!("{line}");
        }
        output
    }
}
