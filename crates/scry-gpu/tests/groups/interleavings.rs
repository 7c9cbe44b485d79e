//! Random sequences of collectives and launches, compared with a model of all ranks on the host.

use scry_gpu::{Buffer, Device, DeviceGroup, Kernel, ReduceOp, Result};
use scry_test_support::{devices, env_number, succeed};

use crate::reference::reduced;
use crate::support::{LONG, cpus, join, over_tcp};

const LEN: usize = 24;
const BUFFERS: usize = 3;

/// The launch: `y = 3 y + x + rank`.
const LAUNCH: &str = "
    var<immediate> rank: u32;
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(8) fn mix(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] = 3u * y[id.x] + x[id.x] + rank; }
    }";

/// A step that all ranks make.
#[derive(Debug, Clone, Copy)]
enum Step {
    Launch { x: usize, y: usize },
    AllReduce { x: usize, y: usize, op: ReduceOp },
    Broadcast { x: usize, y: usize, root: usize },
    Reduce { x: usize, y: usize, op: ReduceOp, root: usize },
    Gather { x: usize, y: usize },
    Scatter { x: usize, y: usize, op: ReduceOp },
    AllToAll { x: usize, y: usize },
    Message { x: usize, y: usize, from: usize, to: usize },
}

/// A generator of numbers, the same on every rank.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % bound
    }

    fn step(&mut self, world: usize) -> Step {
        let x = self.below(BUFFERS);
        let y = (x + 1 + self.below(BUFFERS - 1)) % BUFFERS;
        let (op, root) = (ReduceOp::ALL[self.below(5)], self.below(world));
        let to = (root + 1 + self.below(world - 1)) % world;
        match self.below(12) {
            0 => Step::AllReduce { x, y, op },
            1 => Step::AllReduce { x, y: x, op },
            2 => Step::Broadcast { x, y, root },
            3 => Step::Reduce { x, y, op, root },
            4 => Step::Gather { x, y },
            5 => Step::Scatter { x, y, op },
            6 => Step::AllToAll { x, y },
            7 => Step::Message { x, y, from: root, to },
            _ => Step::Launch { x, y },
        }
    }
}

/// Makes a step on a rank's buffers.
fn make(group: &DeviceGroup, kernel: &Kernel, buffers: &[Buffer<u32>], step: Step) -> Result<()> {
    let part = LEN / group.world_size();
    match step {
        Step::Launch { x, y } => {
            let rank = group.rank() as u32;
            let launch = scry_gpu::Launch::invocations(LEN).immediates(&rank);
            group.device().run(kernel, &[&buffers[x], &buffers[y]], launch)
        }
        Step::AllReduce { x, y, op } => group.all_reduce(&buffers[x], &buffers[y], op),
        Step::Broadcast { x, y, root } => group.broadcast(&buffers[x], &buffers[y], root),
        Step::Reduce { x, y, op, root } => group.reduce(&buffers[x], &buffers[y], op, root),
        Step::Gather { x, y } => group.all_gather(buffers[x].slice(..part)?, &buffers[y]),
        Step::Scatter { x, y, op } => {
            group.reduce_scatter(&buffers[x], buffers[y].slice(..part)?, op)
        }
        Step::AllToAll { x, y } => group.all_to_all(&buffers[x], &buffers[y]),
        Step::Message { x, from, to, .. } if group.rank() == from => group.send(&buffers[x], to),
        Step::Message { y, from, to, .. } if group.rank() == to => group.recv(&buffers[y], from),
        Step::Message { .. } => Ok(()),
    }
}

/// The buffers of all ranks: `model[rank][buffer]`.
pub type Model = Vec<Vec<Vec<u32>>>;

/// Makes a step on the model.
fn apply(model: &mut Model, step: Step) {
    let (world, before) = (model.len(), model.clone());
    let part = LEN / world;
    let all = |x: usize| before.iter().map(|rank| rank[x].clone()).collect::<Vec<_>>();
    for (rank, buffers) in model.iter_mut().enumerate() {
        match step {
            Step::Launch { x, y } => {
                for (index, y) in buffers[y].iter_mut().enumerate() {
                    let sum = y.wrapping_mul(3).wrapping_add(before[rank][x][index]);
                    *y = sum.wrapping_add(rank as u32);
                }
            }
            Step::AllReduce { x, y, op } => buffers[y] = reduced(op, &all(x)),
            Step::Broadcast { x, y, root } => buffers[y] = before[root][x].clone(),
            Step::Reduce { x, y, op, root } if rank == root => buffers[y] = reduced(op, &all(x)),
            Step::Gather { x, y } => {
                buffers[y] = before.iter().flat_map(|rank| rank[x][..part].to_vec()).collect();
            }
            Step::Scatter { x, y, op } => {
                let result = reduced(op, &all(x));
                buffers[y][..part].copy_from_slice(&result[rank * part..][..part]);
            }
            Step::AllToAll { x, y } => {
                let parts = before.iter().flat_map(|from| from[x][rank * part..][..part].to_vec());
                buffers[y] = parts.collect();
            }
            Step::Message { x, y, from, to } if rank == to => buffers[y] = before[from][x].clone(),
            Step::Reduce { .. } | Step::Message { .. } => {}
        }
    }
}

/// The buffers before the first step.
fn start(world: usize) -> Model {
    let buffer = |rank, it| vec![(10 * rank + it) as u32; LEN];
    (0..world).map(|rank| (0..BUFFERS).map(|it| buffer(rank, it)).collect()).collect()
}

/// Makes `steps` random steps as one rank, and returns its buffers.
pub fn run_rank(group: &DeviceGroup, seed: u64, steps: usize) -> Result<Vec<Vec<u32>>> {
    let kernel = group.device().compile(LAUNCH)?;
    let upload = |data: &Vec<u32>| group.device().upload(data);
    let start = start(group.world_size());
    let buffers = start[group.rank()].iter().map(upload).collect::<Result<Vec<_>>>()?;
    let mut random = Random(seed);
    for _ in 0..steps {
        make(group, &kernel, &buffers, random.step(group.world_size()))?;
    }
    buffers.iter().map(Buffer::download).collect()
}

/// Returns the buffers of all ranks after random steps.
fn model(world: usize, seed: u64, steps: usize) -> Model {
    let (mut model, mut random) = (start(world), Random(seed));
    (0..steps).for_each(|_| apply(&mut model, random.step(world)));
    model
}

/// Compares the buffers of all ranks with those of the model.
pub fn compare(found: &Model, seed: u64, steps: usize) {
    let world = found.len();
    assert_eq!(*found, model(world, seed, steps), "seed {seed}, {world} ranks");
}

/// Makes random steps as a rank in a process of its own, and compares its buffers with those of the
/// model.
pub fn check_rank(group: &DeviceGroup, seed: u64, steps: usize) {
    let (rank, world) = (group.rank(), group.world_size());
    let found = succeed(run_rank(group, seed, steps));
    assert_eq!(found, model(world, seed, steps)[rank], "seed {seed}, rank {rank} of {world}");
}

/// Makes random steps with a group of these devices.
fn run(devices: &[Device], seed: u64, steps: usize) {
    let found = succeed(DeviceGroup::on_each(devices, |group| run_rank(group, seed, steps)));
    compare(&found, seed, steps);
}

#[test]
fn random_steps_match_the_model() {
    let first = env_number("SCRY_FUZZ_FIRST").unwrap_or(0);
    for seed in first..first + env_number("SCRY_FUZZ_SEEDS").unwrap_or(6) {
        run(&cpus(2 + seed as usize % 3), seed, 60);
    }
}

/// Each device with two CPU devices.
#[test]
fn random_steps_on_each_device() {
    for device in devices() {
        let [first, last] = [cpus(1).remove(0), cpus(1).remove(0)];
        run(&[first, device, last], 99, 60);
    }
}

#[test]
fn random_steps_over_tcp() {
    let found = over_tcp(4, |address, rank| {
        succeed(run_rank(&succeed(join(address, rank, 4, LONG)), 7, 100))
    });
    compare(&found, 7, 100);
}

#[test]
#[ignore = "it takes 10 s in debug builds, more on GPUs"]
fn soak_of_ten_thousand_steps() {
    for device in devices() {
        let [first, last] = [cpus(1).remove(0), cpus(1).remove(0)];
        run(&[first, device, last], 1, 10_000);
    }
}
