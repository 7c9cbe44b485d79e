//! Tests of `scry launch`.

use std::time::{Duration, Instant};

use scry_gpu::{Device, DeviceGroup, ReduceOp};

use crate::support::Workplace;
use crate::transcript::Transcript;

/// Runs a shell script as each rank.
fn launch(place: &Workplace, ranks: &str, script: &str) -> crate::support::Outcome {
    place.scry(&["launch", "--ranks", ranks, "--", "sh", "-c", script])
}

#[test]
fn ranks_have_their_environment() {
    let place = Workplace::without_driver();
    let script = "echo $SCRY_RANK of $SCRY_WORLD_SIZE, $SCRY_LOCAL_RANK at $SCRY_RENDEZVOUS; \
                  echo token $SCRY_TOKEN >&2";
    let outcome = launch(&place, "3", script).exits_with(0);
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 3, "{outcome:?}");
    let address = lines[0].rsplit(' ').next().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{outcome:?}");
    for (rank, line) in lines.iter().enumerate() {
        assert_eq!(*line, format!("[{rank}] {rank} of 3, {rank} at {address}"));
    }
    let mut tokens: Vec<&str> =
        outcome.stderr.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    tokens.dedup();
    assert!(tokens.len() == 1 && tokens[0].len() == 32, "{outcome:?}");
}

#[test]
fn a_failure_ends_all_ranks() {
    let place = Workplace::without_driver();
    let start = Instant::now();
    let script = "test $SCRY_RANK = 1 && exit 7; exec sleep 100";
    let outcome = launch(&place, "3", script).exits_with(1);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(
        outcome.stderr,
        "error: rank 1 ended with exit code 7, rank 0 was then ended by scry launch, rank 2 was \
         then ended by scry launch; help: see the output above, in the lines that begin with [1]\n"
    );
}

#[test]
fn json_is_apart_from_output() {
    let place = Workplace::without_driver();
    let arguments = ["launch", "-n", "2", "--json", "--", "sh", "-c", "echo hello"];
    let outcome = place.scry(&arguments).exits_with(0).prints(&["[0] hello\n", "[1] hello\n"]);
    assert_eq!(outcome.json()["result"]["ranks"][1]["rank"], 1);
    let script = "kill -9 $$";
    let outcome = place.scry(&["launch", "-n", "1", "--json", "--", "sh", "-c", script]);
    let document = outcome.exits_with(1).json();
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("rank 0 was ended by a signal: 9 (SIGKILL); help"), "{message}");
}

#[test]
fn bad_launches_match_transcript() {
    let mut transcript = Transcript::new("launch");
    transcript.run(&["launch", "--help"]);
    transcript.run(&["launch", "--ranks", "2", "--", "./no-such-program"]);
    transcript.run(&["launch", "--ranks", "0", "--", "true"]);
    transcript.run(&["launch", "--ranks", "2"]);
    transcript.compare();
}

/// Launches this test: its processes are the ranks, which form a group. Rank 2 fails if `mode` says
/// so.
fn launch_group(mode: &str) -> crate::support::Outcome {
    let mut place = Workplace::without_driver();
    place.set(MODE, mode);
    let this = std::env::current_exe().expect("the test has a path");
    let test = "launch::ranks_form_a_group";
    let ranks = [
        "launch",
        "-n",
        "3",
        "--grace",
        "60s",
        "--",
        this.to_str().expect("the path is text"),
        "--exact",
        test,
        "--nocapture",
    ];
    place.scry(&ranks)
}

/// The environment variable of the ranks of [`launch_group`].
const MODE: &str = "SCRY_LAUNCH_TEST";

/// What a rank of [`launch_group`] does.
fn act_as_rank(mode: &str) {
    let gpu = Device::open("cpu").expect("there is a processor");
    let group = DeviceGroup::from_env(&gpu).expect("all ranks join");
    if mode == "failing" && group.rank() == 2 {
        // The others are in their call when it ends.
        std::thread::sleep(Duration::from_millis(300));
        std::process::exit(5);
    }
    let x = gpu.upload(&[group.rank() as u32 + 1]).expect("there is memory");
    match group.all_reduce(&x, &x, ReduceOp::Sum) {
        Ok(()) => println!("\nthe sum is {}", x.get(0).expect("it has an element")),
        Err(error) => {
            println!("\n{error}");
            std::process::exit(6);
        }
    }
}

#[test]
fn ranks_form_a_group() {
    if let Ok(mode) = std::env::var(MODE) {
        return act_as_rank(&mode);
    }
    let sums = ["[0] the sum is 6\n", "[1] the sum is 6\n", "[2] the sum is 6\n"];
    launch_group("working").exits_with(0).prints(&sums);
    // The others have the time to report the rank that failed. One that begins its call only after
    // another has reported, and ended, names that one instead.
    let outcome = launch_group("failing").exits_with(1).prints(&[
        "error: rank 0 ended with exit code 6, rank 1 ended with exit code 6, rank 2 ended with \
         exit code 5; help: see the output above, in the lines that begin with their rank\n",
    ]);
    let named = |rank: u32| {
        let text = "of 3: the connection to rank 2 was closed; help: see the output";
        outcome.stdout.contains(&format!("[{rank}] DeviceGroup::all_reduce: rank {rank} {text}"))
    };
    assert!(named(0) || named(1), "{outcome:#?}");
}

#[cfg(unix)]
mod processes {
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Child, Stdio};

    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::*;

    /// Each rank starts a child.
    const WITH_CHILD: &str = "sleep 1000 & echo $! $$; wait";

    fn pid(text: &str) -> Pid {
        Pid::from_raw(text.parse().expect("a number")).expect("not 0")
    }

    /// Starts a launch of two ranks, and returns the processes that they print.
    fn start(place: &Workplace, script: &str) -> (Child, Vec<Pid>) {
        let mut command = place.command(&["launch", "-n", "2", "--", "sh", "-c", script]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was built");
        let lines = BufReader::new(child.stdout.as_mut().expect("a pipe")).lines().take(2);
        let lines: Vec<String> = lines.map(|it| it.expect("text")).collect();
        let pids = lines.iter().flat_map(|line| line.split(' ').skip(1).map(pid)).collect();
        (child, pids)
    }

    /// Waits until a process has ended. A zombie, which nothing reaps, has.
    fn assert_ends(pid: Pid) {
        let start = Instant::now();
        let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
        let is_zombie = || std::fs::read_to_string(&stat).is_ok_and(|it| it.contains(") Z "));
        while test_kill_process(pid).is_ok() && !(Path::new("/proc/self").exists() && is_zombie()) {
            assert!(start.elapsed() < Duration::from_secs(60), "{pid:?} is still running");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal to a launch, and checks that everything ends.
    fn assert_interrupted(script: &str, signal: Signal) {
        let (mut child, pids) = start(&Workplace::without_driver(), script);
        assert_eq!(pids.len(), 4);
        kill_process(Pid::from_child(&child), signal).expect("it is running");
        let status = child.wait().expect("a child");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        let mut text = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
        let name = if signal == Signal::INT { "SIGINT" } else { "SIGTERM" };
        assert_eq!(text, format!("error: interrupted by {name}; all ranks were ended\n"));
        pids.into_iter().for_each(assert_ends);
    }

    #[test]
    fn signals_end_ranks_and_their_children() {
        assert_interrupted(WITH_CHILD, Signal::TERM);
        assert_interrupted(WITH_CHILD, Signal::INT);
    }

    #[test]
    fn ranks_that_ignore_signals_are_killed() {
        assert_interrupted(&format!("trap '' TERM; {WITH_CHILD}"), Signal::TERM);
    }

    #[test]
    fn failures_end_children_of_ranks() {
        let script = "sleep 1000 & echo $! $$; test $SCRY_RANK = 0 && exit 3; wait";
        let (child, pids) = start(&Workplace::without_driver(), script);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        pids.into_iter().for_each(assert_ends);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let place = Workplace::without_driver();
        let mut command = place.command(&["launch", "-n", "2", "--", "sh", "-c", "echo hello"]);
        let Ok(full) = File::options().write(true).open("/dev/full") else {
            return eprintln!("skipped a_full_disk_is_an_error: there is no /dev/full");
        };
        let output = command.stdout(full).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.starts_with("error: standard output: No space left on device"), "{text}");
    }

    #[test]
    fn slow_readers_receive_all_output() {
        let place = Workplace::without_driver();
        // More than a pipe and the buffers between hold.
        let script = "for n in 1 2 3 4; do head -c 100000 /dev/zero | tr '\\0' x; echo; done";
        let mut command = place.command(&["launch", "-n", "1", "--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        // The rank has ended long before its output is read.
        std::thread::sleep(Duration::from_millis(2500));
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text.matches('x').count(), 400_000);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
