//! Groups of devices of one process.

use scry_gpu::{Device, DeviceGroup, DeviceKind, GroupTransport, ReduceOp};
use scry_test_support::{devices, succeed};

use crate::collectives::check_all;
use crate::support::cpus;

#[test]
fn collectives_of_2_to_8_ranks() {
    for world in [1, 2, 3, 8] {
        succeed(DeviceGroup::on_each(&cpus(world), |group| match world {
            // A rank alone has no peer for messages.
            1 => group.barrier(),
            _ => check_all(group),
        }));
    }
}

/// Each device, twice if it is software, with two CPU devices.
#[test]
fn collectives_of_mixed_devices() {
    for device in devices() {
        let selector = format!("{}:{}", device.backend_kind(), device.info().index);
        eprintln!("on {selector}");
        let mut members = vec![cpus(1).remove(0), device.clone(), cpus(1).remove(0)];
        if device.info().kind == DeviceKind::Software {
            members.push(succeed(Device::open(&selector)));
        }
        succeed(DeviceGroup::on_each(&members, check_all));
    }
}

#[test]
fn lone_ranks_compute_with_themselves() {
    let group = &succeed(DeviceGroup::local(&cpus(1)))[0];
    assert_eq!((group.rank(), group.world_size()), (0, 1));
    assert_eq!(group.transport(), GroupTransport::HostMemory);
    let x = group.device().upload(&[3.0f32, 5.0]).unwrap();
    for op in ReduceOp::ALL {
        succeed(group.all_reduce(&x, &x, op));
        succeed(group.reduce_scatter(&x, &x, op));
    }
    succeed(group.all_gather(&x, &x));
    assert_eq!(x.download().unwrap(), [3.0, 5.0]);
}

/// Calls see the results of launches before them, and launches those of calls before them.
#[test]
fn calls_are_ordered_with_launches() {
    const ADD: &str = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&x) { x[id.x] += 1u; }
        }";
    for device in devices() {
        let members = [device, cpus(1).remove(0)];
        let results = succeed(DeviceGroup::on_each(&members, |group| {
            let add = group.device().compile(ADD)?;
            let x = group.device().alloc::<u32>(1000)?;
            for _ in 0..10 {
                group.device().run(&add, &[&x], x.len())?;
                group.all_reduce(&x, &x, ReduceOp::Sum)?;
            }
            x.download()
        }));
        // x ← 2 (x + 1), ten times.
        assert_eq!(results, vec![vec![2046; 1000]; 2]);
    }
}

/// Untyped buffers, empty ones, and different but equal types.
#[test]
fn buffers_may_be_untyped_or_empty() {
    use scry_gpu::DType;
    let results = succeed(DeviceGroup::on_each(&cpus(2), |group| {
        let empty = group.device().alloc::<f64>(0)?;
        group.all_reduce(&empty, &empty, ReduceOp::Max)?;
        group.all_to_all(&empty, &group.device().alloc::<f64>(0)?)?;
        let x = group.device().alloc_untyped(DType::I64, 2)?;
        x.typed::<i64>()?.write(&[-3, group.rank() as i64])?;
        group.all_reduce(&x, &x, ReduceOp::Sum)?;
        x.typed::<i64>()?.download()
    }));
    assert_eq!(results, [[-6, 1], [-6, 1]]);
}
