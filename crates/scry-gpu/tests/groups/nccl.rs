//! Groups of CUDA devices, whose collectives NCCL makes. Without two of them, or without NCCL, the
//! tests say so and end; with `SCRY_REQUIRE_NCCL=1` they fail instead.

use std::thread;
use std::time::Instant;

use scry_gpu::{
    BackendKind, Buffer, Device, DeviceGroup, GroupTransport, ReduceOp, Rendezvous, Result, bf16,
    f16,
};
use scry_test_support::{env_number, succeed};

use crate::collectives::check_all;
use crate::interleavings::{compare, run_rank};
use crate::reference::{Number, elements, reduced};
use crate::support::{LONG, cpus, in_processes, over_tcp, token};

/// Opens `count` CUDA devices, or all. `None` if a group of them would not use NCCL.
pub fn gpus(count: Option<usize>) -> Option<Vec<Device>> {
    let mut found = Device::list();
    found.retain(|info| info.backend == BackendKind::Cuda);
    let count = count.unwrap_or(found.len());
    let problem = if found.len() < count.max(2) {
        format!("there are {} CUDA devices", found.len())
    } else {
        let open = |index: usize| succeed(Device::open(&format!("cuda:{index}")));
        let gpus: Vec<Device> = (0..count).map(open).collect();
        let groups = succeed(DeviceGroup::local(&gpus));
        let reason = groups[0].transport_reason().to_owned();
        let transport = groups[0].transport();
        on_threads(groups, drop);
        if transport == GroupTransport::Nccl {
            return Some(gpus);
        }
        reason
    };
    assert!(env_number("SCRY_REQUIRE_NCCL") != Some(1), "{problem}");
    eprintln!("skipped: {problem}");
    None
}

/// Runs `program` for each rank on a thread.
pub fn on_threads<T: Send>(
    groups: Vec<DeviceGroup>,
    program: impl Fn(DeviceGroup) -> T + Sync,
) -> Vec<T> {
    let program = &program;
    thread::scope(|scope| {
        let start = |group| scope.spawn(move || program(group));
        let threads: Vec<_> = groups.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// In a process of a rank: its GPU, in the group of all.
pub fn member() -> DeviceGroup {
    let membership = succeed(scry_gpu::Membership::from_env());
    let gpu = succeed(Device::open(&format!("cuda:{}", membership.local_rank())));
    let group = succeed(membership.join(&gpu));
    assert_eq!(group.transport(), GroupTransport::Nccl, "{}", group.transport_reason());
    group
}

pub fn is_child() -> bool {
    std::env::var_os("SCRY_GROUPS_CHILD").is_some()
}

#[test]
fn collectives_of_2_gpus() {
    let Some(gpus) = gpus(Some(2)) else { return };
    succeed(DeviceGroup::on_each(&gpus, check_all));
}

#[test]
fn collectives_of_all_gpus() {
    let Some(gpus) = gpus(None) else { return };
    succeed(DeviceGroup::on_each(&gpus, check_all));
}

#[test]
fn lone_gpus_compute_with_themselves() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let group = &succeed(DeviceGroup::local(&gpus[..1]))[0];
    assert_eq!(group.transport(), GroupTransport::Nccl, "{}", group.transport_reason());
    let x = succeed(group.device().upload(&[3.0f32, 5.0]));
    for op in ReduceOp::ALL {
        succeed(group.all_reduce(&x, &x, op));
        succeed(group.reduce_scatter(&x, &x, op));
    }
    succeed(group.all_gather(&x, &x));
    assert_eq!(succeed(x.download()), [3.0, 5.0]);
}

#[test]
fn collectives_over_tcp() {
    let Some(gpus) = gpus(None) else { return };
    over_tcp(gpus.len(), |address, rank| {
        let rendezvous = Rendezvous::tcp(address).token(token(address)).time_limit(LONG);
        let group = succeed(DeviceGroup::join(&gpus[rank], rendezvous, rank, gpus.len()));
        assert_eq!(group.transport(), GroupTransport::Nccl);
        succeed(check_all(&group));
    });
}

#[test]
fn collectives_of_processes() {
    let world = if is_child() { Some(2) } else { gpus(None).map(|gpus| gpus.len()) };
    let Some(world) = world else { return };
    let ranks = in_processes("nccl::collectives_of_processes", world, || {
        succeed(check_all(&member()));
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}

/// A CPU device among the ranks.
#[test]
fn mixed_groups_use_host_memory() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let devices = [gpus[0].clone(), cpus(1).remove(0), gpus[1].clone()];
    succeed(DeviceGroup::on_each(&devices, |group| {
        assert_eq!(group.transport(), GroupTransport::HostMemory);
        assert_eq!(group.transport_reason(), "rank 1 has no CUDA device");
        check_all(group)
    }));
}

/// Larger buffers, so that NCCL uses its other algorithms, and the results of each are compared
/// with those of the reference.
#[test]
fn large_buffers_match_the_reference() {
    let Some(gpus) = gpus(None) else { return };
    succeed(DeviceGroup::on_each(&gpus, |group| {
        for len in [1000, 1 << 16, (1 << 20) + 3] {
            check_large::<f32>(group, len)?;
            check_large::<bf16>(group, len)?;
            check_large::<f16>(group, len)?;
            check_large::<u8>(group, len)?;
            check_large::<i64>(group, len)?;
        }
        Ok(())
    }));
}

fn check_large<T: Number>(group: &DeviceGroup, len: usize) -> Result<()> {
    let (rank, world) = (group.rank(), group.world_size());
    let all: Vec<Vec<T>> = (0..world).map(|rank| elements(3, rank, len)).collect();
    let x = group.device().upload(&all[rank])?;
    let y = group.device().alloc::<T>(len)?;
    for op in [ReduceOp::Sum, ReduceOp::Max] {
        group.all_reduce(&x, &y, op)?;
        assert!(y.download()? == reduced(op, &all), "{op} of {len}");
    }
    let gathered = group.device().alloc::<T>(len * world)?;
    group.all_gather(&x, &gathered)?;
    assert!(gathered.download()? == all.concat(), "all_gather of {len}");
    group.broadcast(&x, &y, world - 1)?;
    assert!(y.download()? == all[world - 1], "broadcast of {len}");
    Ok(())
}

#[test]
fn calls_are_ordered_with_launches() {
    const ADD: &str = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&x) { x[id.x] += 1u; }
        }";
    let Some(gpus) = gpus(Some(2)) else { return };
    let results = succeed(DeviceGroup::on_each(&gpus, |group| {
        let add = group.device().compile(ADD)?;
        let x = group.device().alloc::<u32>(100_000)?;
        for _ in 0..10 {
            group.device().run(&add, &[&x], x.len())?;
            group.all_reduce(&x, &x, ReduceOp::Sum)?;
        }
        // The same in batches, and in a recording, by itself and in a batch.
        let mut batch = group.device().batch();
        for _ in 0..3 {
            batch.run(&add, &[&x], x.len())?.all_reduce(group, &x, &x, ReduceOp::Sum)?;
        }
        batch.submit()?;
        let step = batch.run(&add, &[&x], x.len())?.all_reduce(group, &x, &x, ReduceOp::Sum)?;
        let recording = step.record()?;
        for _ in 0..3 {
            let _ = recording.replay()?;
        }
        batch.replay(&recording)?.replay(&recording)?.submit()?;
        group.barrier()?;
        x.download()
    }));
    // x ← 2 (x + 1), eighteen times.
    assert_eq!(results, vec![vec![524_286; 100_000]; 2]);
}

/// Each part of a buffer is written by a launch and then reduced, while the next is written.
#[test]
fn collectives_overlap_launches() {
    const PART: usize = 1 << 20;
    const PARTS: usize = 8;
    const MIX: &str = "
        var<immediate> step: u32;
        @group(0) @binding(0) var<storage, read> before: array<u32>;
        @group(0) @binding(1) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(256) fn mix(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&x) { x[id.x] = 5u * before[id.x] + step + id.x; }
        }";
    let Some(gpus) = gpus(None) else { return };
    let world = gpus.len() as u32;
    let results = succeed(DeviceGroup::on_each(&gpus, |group| {
        let gpu = group.device();
        let mix = gpu.compile(MIX)?;
        let (x, start) = (gpu.alloc::<u32>(PARTS * PART)?, gpu.upload(&vec![7u32; PART])?);
        let mut batch = gpu.batch();
        for part in 0..PARTS {
            let own = x.slice(part * PART..(part + 1) * PART)?;
            batch.run_with_immediates(&mix, &[&start, &own], PART, &(part as u32))?;
            batch.all_reduce(group, own, own, ReduceOp::Sum)?;
        }
        let recording = batch.record()?;
        let mut found = Vec::new();
        for _ in 0..3 {
            x.fill(0)?;
            let _ = recording.replay()?;
            found.push(x.download()?);
        }
        for part in 0..PARTS {
            let own = x.slice(part * PART..(part + 1) * PART)?;
            batch.run_with_immediates(&mix, &[&start, &own], PART, &(part as u32))?;
            batch.all_reduce(group, own, own, ReduceOp::Sum)?;
        }
        x.fill(0)?;
        batch.submit()?;
        found.push(x.download()?);
        Ok(found)
    }));
    let expected: Vec<u32> = (0..PARTS * PART)
        .map(|index| world * (35 + (index / PART + index % PART) as u32))
        .collect();
    assert!(results.into_iter().flatten().all(|found| found == expected));
}

#[test]
fn every_collective_works_in_recordings() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let results = succeed(DeviceGroup::on_each(&gpus, |group| {
        let gpu = group.device();
        let rank = group.rank() as u32;
        let x = gpu.upload(&[rank + 1, 10 * (rank + 1)])?;
        let (sum, root, copy) = (gpu.alloc::<u32>(2)?, gpu.alloc::<u32>(2)?, gpu.alloc::<u32>(2)?);
        let (all, part) = (gpu.alloc::<u32>(4)?, gpu.alloc::<u32>(1)?);
        let (swapped, received) = (gpu.alloc::<u32>(2)?, gpu.alloc::<u32>(2)?);
        let mut batch = gpu.batch();
        batch
            .all_reduce(group, &x, &sum, ReduceOp::Sum)?
            .reduce(group, &x, &root, ReduceOp::Max, 1)?
            .broadcast(group, &x, &copy, 1)?
            .all_gather(group, &x, &all)?
            .reduce_scatter(group, &x, &part, ReduceOp::Prod)?
            .all_to_all(group, &x, &swapped)?;
        match rank {
            0 => batch.send(group, &x, 1)?.recv(group, &received, 1)?,
            _ => batch.recv(group, &received, 0)?.send(group, &x, 0)?,
        };
        let recording = batch.record()?;
        for step in 0..20 {
            x.write(&[7 * step, 0])?;
            let _ = recording.replay()?;
        }
        x.write(&[rank + 1, 10 * (rank + 1)])?;
        let _ = recording.replay()?;
        let buffers = [&sum, &root, &copy, &all, &part, &swapped, &received];
        buffers.into_iter().map(Buffer::download).collect::<Result<Vec<_>>>()
    }));
    let [sum, copy, all] = [vec![3, 30], vec![2, 20], vec![1, 10, 2, 20]];
    let [zero, max] = [vec![0, 0], vec![2, 20]];
    let [first, second] = [vec![1, 2], vec![10, 20]];
    assert_eq!(
        results,
        [
            [sum.clone(), zero, copy.clone(), all.clone(), vec![2], first, vec![2, 20]],
            [sum, max, copy, all, vec![200], second, vec![1, 10]],
        ]
    );
}

/// The sum of these does not fit their type.
#[test]
fn means_of_integers_are_exact() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let means = succeed(DeviceGroup::on_each(&gpus, |group| {
        let x = group.device().upload(&[255u8, 253])?;
        group.all_reduce(&x, &x, ReduceOp::Mean)?;
        let error = group.device().batch().all_reduce(group, &x, &x, ReduceOp::Mean).err();
        let text = error.unwrap().to_string();
        assert!(text.contains("executes all_reduce(mean) of 2 u8 through host memory"), "{text}");
        x.download()
    }));
    assert_eq!(means, [[255, 253]; 2]);
}

#[test]
fn minimum_and_maximum_ignore_nan() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let results = succeed(DeviceGroup::on_each(&gpus, |group| {
        let values = if group.rank() == 0 { [f32::NAN, 1.0] } else { [1.0, f32::NAN] };
        let x = group.device().upload(&values)?;
        let mut found = Vec::new();
        for op in [ReduceOp::Min, ReduceOp::Max] {
            let y = group.device().alloc::<f32>(2)?;
            group.all_reduce(&x, &y, op)?;
            found.extend(y.download()?);
        }
        Ok(found)
    }));
    // As `ReduceOp` documents, unlike through host memory.
    assert_eq!(results, [[1.0; 4]; 2]);
}

fn random_steps(gpus: &[Device], seed: u64, steps: usize) {
    let found = succeed(DeviceGroup::on_each(gpus, |group| run_rank(group, seed, steps)));
    compare(&found, seed, steps);
}

#[test]
fn random_steps_match_the_model() {
    let Some(gpus) = gpus(None) else { return };
    for seed in 0..6 {
        random_steps(&gpus, seed, 60);
    }
}

#[test]
#[ignore = "it needs several GPUs, and minutes"]
fn soak_of_ten_thousand_steps() {
    let Some(gpus) = gpus(None) else { return };
    let start = Instant::now();
    random_steps(&gpus, 1, 10_000);
    eprintln!("10000 steps on {} GPUs: {:?}", gpus.len(), start.elapsed());
}
