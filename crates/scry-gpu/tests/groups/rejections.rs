//! Calls with wrong arguments: they fail before other ranks notice anything.

use scry_gpu::{Device, DeviceGroup, GpuError, GroupFault, ReduceOp, Rendezvous, Result};
use scry_test_support::succeed;

use crate::support::{TOKEN, cpus, group_error, over_tcp, token};

#[track_caller]
fn rejects<T>(result: Result<T>, text: &str) {
    match result {
        Err(GpuError::Group(error)) => panic!("{error}"),
        Err(error) => assert_eq!(error.to_string(), text),
        Ok(_) => panic!("no error"),
    }
}

#[test]
fn wrong_arguments_are_rejected() {
    succeed(DeviceGroup::on_each(&cpus(2), |group| {
        check_lengths(group)?;
        check_ranks_and_types(group)?;
        check_overlaps(group)?;
        // The group is not affected.
        group.barrier()
    }));
}

fn check_lengths(group: &DeviceGroup) -> Result<()> {
    let gpu = group.device();
    let (two, three) = (gpu.alloc::<u32>(2)?, gpu.alloc::<u32>(3)?);
    rejects(
        group.all_reduce(&two, &three, ReduceOp::Sum),
        "DeviceGroup::all_reduce: the source has 2 elements, and the destination 3; help: pass \
         buffers or slices of the same length",
    );
    rejects(
        group.all_gather(&two, &three),
        "DeviceGroup::all_gather: the destination has 3 elements, but 2 ranks with the 2 of the \
         source need 4; help: pass a destination that is 2 times as long as the source",
    );
    rejects(
        group.reduce_scatter(&three, &two, ReduceOp::Max),
        "DeviceGroup::reduce_scatter: the source has 3 elements, but 2 ranks with the 2 of the \
         destination need 4; help: pass a source that is 2 times as long as the destination",
    );
    rejects(
        group.all_to_all(&three, &gpu.alloc::<u32>(3)?),
        "DeviceGroup::all_to_all: 3 elements are not a multiple of the 2 ranks; help: pass 2 \
         elements, the same number for each rank",
    );
    Ok(())
}

fn check_ranks_and_types(group: &DeviceGroup) -> Result<()> {
    let gpu = group.device();
    let x = gpu.alloc::<u32>(2)?;
    rejects(
        group.broadcast(&x, &x, 2),
        "DeviceGroup::broadcast: `root` is 2, but the group has 2 ranks; help: pass a rank from 0 \
         to 1",
    );
    rejects(
        group.send(&x, group.rank()),
        &format!(
            "DeviceGroup::send: `to` is {}, the rank of the caller; help: pass another rank, or \
             copy the elements with Buffer::copy_to",
            group.rank()
        ),
    );
    let short = gpu.alloc::<i16>(2)?;
    rejects(
        group.all_reduce(&short, &short, ReduceOp::Sum),
        "DeviceGroup::all_reduce: the source has elements of type i16; help: view them \
         (Buffer::view_as) as f32, f64, f16, bf16, i32, u32, i64, u64 or u8",
    );
    let foreign = cpus(1)[0].alloc::<u32>(2)?.with_label("weights");
    let error = group.all_reduce(&x, &foreign, ReduceOp::Sum).unwrap_err();
    assert!(matches!(error, GpuError::WrongDevice(_)), "{error}");
    assert!(error.to_string().starts_with("DeviceGroup::all_reduce: buffer `weights` (the dest"));
    let untyped = gpu.alloc_untyped(scry_gpu::DType::F32, 2)?;
    let other = gpu.alloc_untyped(scry_gpu::DType::U32, 2)?;
    let error = group.all_reduce(&untyped, &other, ReduceOp::Sum).unwrap_err();
    assert!(error.to_string().contains("holds f32, but the buffer holds u32"), "{error}");
    Ok(())
}

fn check_overlaps(group: &DeviceGroup) -> Result<()> {
    let x = group.device().alloc::<u32>(8)?;
    let slice = |range| x.slice(range);
    rejects(
        group.all_reduce(slice(0..4)?, slice(2..6)?, ReduceOp::Sum),
        "DeviceGroup::all_reduce: source and destination overlap; help: pass the same elements \
         twice, or buffers that do not overlap",
    );
    rejects(
        group.all_to_all(&x, &x),
        "DeviceGroup::all_to_all: source and destination overlap; help: use another buffer for one \
         of them",
    );
    let other = 1 - group.rank();
    rejects(
        group.all_gather(slice(4 * other..4 * other + 4)?, &x),
        "DeviceGroup::all_gather: source and destination overlap; help: pass as source this rank's \
         part of the destination",
    );
    rejects(
        group.reduce_scatter(&x, slice(4 * other..4 * other + 4)?, ReduceOp::Sum),
        "DeviceGroup::reduce_scatter: source and destination overlap; help: pass as destination \
         this rank's part of the source",
    );
    // Neighbours do not overlap.
    group.all_reduce(slice(0..4)?, slice(4..8)?, ReduceOp::Sum)
}

#[test]
fn impossible_groups_are_rejected() {
    rejects(
        DeviceGroup::local(&[]),
        "DeviceGroup::local: `devices` is empty; help: pass at least one device",
    );
    let device = cpus(1).remove(0);
    let error =
        group_error(DeviceGroup::local(&[cpus(1).remove(0), device.clone(), device.clone()]));
    assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[1, 2][..]));
    assert_eq!(
        error.to_string(),
        "DeviceGroup::local: rank 0 of 3: ranks 1 and 2 are the same Device; help: open another \
         GPU on each rank, such as `cuda:N` for local rank N (Membership::local_rank)"
    );
    let join = |rank, world| {
        let rendezvous = Rendezvous::tcp("127.0.0.1:9").token(TOKEN);
        DeviceGroup::join(&device, rendezvous, rank, world)
    };
    rejects(
        join(2, 2),
        "DeviceGroup::join: `rank` is 2, but the group has 2 ranks; help: number the ranks from 0",
    );
    let empty = join(0, 0).map(drop).unwrap_err().to_string();
    assert!(empty.contains("is 0; help: pass the number of ranks, at least 1"), "{empty}");
    rejects(
        join(0, usize::MAX),
        &format!(
            "DeviceGroup::join: `world_size` has {} ranks, but a group has at most 65536; help: \
             form several groups",
            usize::MAX
        ),
    );
}

/// The null device states that it is a GPU with a UUID.
#[test]
fn groups_with_one_gpu_twice_are_rejected() {
    let gpu = || {
        let mut info = scry_gpu::testing::null_info();
        info.kind = scry_gpu::DeviceKind::Discrete;
        info.uuid = Some([7; 16]);
        scry_gpu::testing::observed(info).0
    };
    let error = group_error(DeviceGroup::local(&[gpu(), cpus(1).remove(0), gpu()]));
    assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[0, 2][..]));
    assert_eq!(error.problem(), "ranks 0 and 2 use the same GPU");
    let errors = over_tcp(2, |address, rank| {
        let rendezvous = Rendezvous::tcp(address).token(token(address));
        group_error(DeviceGroup::join(&gpu(), rendezvous, rank, 2))
    });
    for error in errors {
        assert_eq!(error.problem(), "ranks 0 and 1 use the same GPU");
    }
}

/// The environment of the tests has no token.
#[test]
fn joining_needs_a_token() {
    let device = succeed(Device::open("cpu"));
    let error = DeviceGroup::join(&device, Rendezvous::tcp("127.0.0.1:9").token("secret"), 0, 2);
    let text = error.unwrap_err().to_string();
    let start = "DeviceGroup::join: `rendezvous` has a token of 6 bytes, but needs at least 16; ";
    assert!(text.starts_with(start), "{text}");
}
