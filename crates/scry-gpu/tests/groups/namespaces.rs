//! Groups of processes in network namespaces of their own, as on hosts of their own: an Ethernet
//! with a switch between them, whose links can be cut.
//!
//! They need root and `ip` of iproute2, and are skipped without them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::{Device, DeviceGroup, GroupFault, ReduceOp};
use scry_test_support::succeed;

use crate::collectives::check_all;
use crate::interleavings::check_rank;
use crate::support::{
    Ended, await_files, await_signals, group_error, run_if_child, signal, start_processes,
};

/// Where rank 0 listens.
const RENDEZVOUS: &str = "10.77.0.1:29400";

/// The time limit of calls after a cut.
const LIMIT: Duration = Duration::from_secs(2);

/// How much later a rank that does not reach rank 0 has its error, as documented.
const GRACE: Duration = Duration::from_secs(5);

/// How much later than stated an error may come on a busy machine.
const TOLERANCE: Duration = Duration::from_secs(10);

/// The environment variable with the rank that is cut off.
const LOST: &str = "SCRY_GROUPS_LOST";

/// The file that exists once a link is cut; ranks have numbers.
const CUT: usize = 1000;

/// Namespaces of ranks, and one with the switch that connects them.
struct Network {
    name: String,
    world: usize,
}

impl Network {
    /// Creates the namespaces; `None`, after a line that says why, where the system has none.
    fn new(test: &str, world: usize) -> Option<Self> {
        let name = format!("scry-{}-{test}", std::process::id());
        // Dropped after an error, it deletes what exists.
        let network = Self { name, world };
        match network.create() {
            Ok(()) => Some(network),
            Err(problem) => {
                eprintln!("skipped: {test}: no network namespaces (root, iproute2): {problem}");
                None
            }
        }
    }

    fn create(&self) -> Result<(), String> {
        let switch = self.switch();
        ip(&["netns", "add", &switch])?;
        ip(&["-n", &switch, "link", "add", "switch", "type", "bridge"])?;
        ip(&["-n", &switch, "link", "set", "switch", "up"])?;
        for rank in 0..self.world {
            let (namespace, port) = (self.namespace(rank), port(rank));
            ip(&["netns", "add", &namespace])?;
            let peer = ["peer", "name", "eth0", "netns", &namespace];
            ip(&[&["-n", &switch, "link", "add", &port, "type", "veth"][..], &peer].concat())?;
            ip(&["-n", &switch, "link", "set", &port, "master", "switch"])?;
            ip(&["-n", &switch, "link", "set", &port, "up"])?;
            let address = format!("10.77.0.{}/24", rank + 1);
            ip(&["-n", &namespace, "addr", "add", &address, "dev", "eth0"])?;
            ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
            ip(&["-n", &namespace, "link", "set", "eth0", "up"])?;
        }
        Ok(())
    }

    /// Cuts the link of a rank: what it sends and what is sent to it is lost.
    fn cut(&self, rank: usize) {
        ip(&["-n", &self.switch(), "link", "set", &port(rank), "down"]).unwrap();
    }

    /// Runs the test of this name in a process for each rank, with environment variables.
    fn run(
        &self,
        name: &str,
        variables: &[(&str, &str)],
        meanwhile: impl FnOnce(&Path),
    ) -> Vec<Ended> {
        let own = std::env::current_exe().unwrap();
        let command = |rank: usize| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &self.namespace(rank)]).arg(&own);
            command.envs(variables.iter().copied());
            command
        };
        start_processes(name, self.world, RENDEZVOUS, command, meanwhile)
    }

    fn switch(&self) -> String {
        format!("{}-switch", self.name)
    }

    fn namespace(&self, rank: usize) -> String {
        format!("{}-{rank}", self.name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Their links are deleted with them.
        let ranks = (0..self.world).map(|rank| self.namespace(rank));
        for namespace in ranks.chain([self.switch()]) {
            let _ = ip(&["netns", "del", &namespace]);
        }
    }
}

/// The port of the switch that a rank is connected to.
fn port(rank: usize) -> String {
    format!("port{rank}")
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| format!("`ip` cannot be started: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let problem = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(format!("`ip {}`: {problem}", arguments.join(" ")))
        }
    }
}

fn group() -> DeviceGroup {
    succeed(DeviceGroup::from_env(&succeed(Device::open("cpu"))))
}

/// Every collective, and random ones between launches, with a network for each number of processes.
#[test]
fn collectives_across_networks() {
    let name = "namespaces::collectives_across_networks";
    run_if_child(name, || {
        let group = group();
        succeed(check_all(&group));
        check_rank(&group, 11, 60);
        succeed(group.barrier());
    });
    for world in [2, 8] {
        let Some(network) = Network::new(&format!("all{world}"), world) else { return };
        network.run(name, &[], |_| ()).iter().for_each(Ended::assert_done);
    }
}

/// Asserts that the ranks have the error of a call, once the link of `lost` is cut.
fn check_cut(lost: usize) {
    let group = group();
    let x = succeed(group.device().upload(&[1.0f32; 1000]));
    succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
    group.set_time_limit(LIMIT);
    signal(group.rank());
    await_signals(&[CUT]);
    let start = Instant::now();
    let error = group_error(group.all_reduce(&x, &x, ReduceOp::Sum));
    // Those who do not reach rank 0 name it; the others name the rank that they miss.
    let is_alone = group.rank() == lost || lost == 0;
    let (named, limit) = match (group.rank(), is_alone) {
        (0, true) => (vec![1, 2], LIMIT),
        (_, true) => (vec![0], LIMIT + GRACE),
        _ => (vec![lost], LIMIT),
    };
    assert!(start.elapsed() < limit + TOLERANCE, "{:?}", start.elapsed());
    assert_eq!((error.fault(), error.ranks()), (GroupFault::Unresponsive, &named[..]), "{error}");
    // The device remains usable.
    assert_eq!(succeed(x.get(0)), 3.0);
    // Rank 0 has to stay until the others have their errors.
    signal(10 + group.rank());
    await_signals(&[10, 11, 12]);
}

/// Rank 2, and rank 0 of another group: both wait for seconds, at the same time.
#[test]
fn ranks_that_are_cut_off_are_named() {
    let name = "namespaces::ranks_that_are_cut_off_are_named";
    run_if_child(name, || check_cut(std::env::var(LOST).unwrap().parse().unwrap()));
    let run = |lost: usize| {
        let Some(network) = Network::new(&format!("cut{lost}"), 3) else { return };
        let ranks = network.run(name, &[(LOST, &lost.to_string())], |signals| {
            if await_files((0..3).map(|rank| signals.join(rank.to_string()))) {
                network.cut(lost);
            }
            fs::write(signals.join(CUT.to_string()), "").unwrap();
        });
        ranks.iter().for_each(Ended::assert_done);
    };
    thread::scope(|scope| {
        scope.spawn(|| run(0));
        run(2);
    });
}
