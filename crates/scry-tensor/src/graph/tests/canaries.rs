//! Hostile custom kernels in plans: whatever they write out of bounds, no other tensor and
//! no byte between tensors changes.

use scry_gpu::{Batch, Device, UntypedBuffer};
use scry_test_support::on_each_device;

use super::super::Graph;
use super::super::compiled::Plan;
use super::super::plan::ALIGNMENT;
use super::super::specialised::Specialised;
use crate::dtype::DType;
use crate::error::Call;
use crate::tensor::Tensor;

/// Four of them are a NaN, so that results that were computed from it show it.
const CANARY: u8 = 0xff;

/// Writes and reads far beyond its buffers, before them, and just after them.
const HOSTILE: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> first: array<f32>;
    @group(0) @binding(2) var<storage, read_write> second: array<u32>;
    @group(0) @binding(3) var<storage, read_write> words: array<vec4<u32>>;
    @compute @workgroup_size(32) fn hostile(@builtin(global_invocation_id) id: vec3u) {
        let at = id.x * FACTORu + OFFSETu;
        let end = arrayLength(&first);
        first[id.x] = x[id.x];
        first[end + id.x] = x[at];
        first[i32(id.x) - 7] = 1.0;
        second[at] = 0x55555555u;
        second[at ^ 0xffffffffu] = at;
        for (var k = 0u; k < 40u; k++) {
            second[arrayLength(&second) - 3u + k] = k;
            words[k * 16u + id.x] = vec4<u32>(k);
            words[at + k] = vec4<u32>(at);
        }
    }";

/// A chain of hostile kernels and other operations, of odd sizes.
fn plan(gpu: &Device, factor: u32, offset: u32) -> Plan {
    let wgsl =
        HOSTILE.replace("FACTOR", &factor.to_string()).replace("OFFSET", &offset.to_string());
    let g = Graph::new(gpu).unwrap();
    let x = g.input("x", [61]).unwrap();
    let mut y = x.mul(2.0).unwrap();
    // A matrix product is in an arena until its last use.
    let column = y.exp().unwrap().unsqueeze(1).unwrap();
    let kept = column.matmul(Tensor::full([1, 2], 1.0, DType::F32, gpu).unwrap()).unwrap();
    for _ in 0..3 {
        let words = ([5, 4].into(), DType::U32);
        let outputs = [([61].into(), DType::F32), ([3].into(), DType::U32), words];
        let parts = g.kernel(&wgsl, &[&y], &outputs).unwrap();
        let sum = parts[1].sum_keepdim(0).unwrap().cast(DType::F32).unwrap();
        let square = parts[0].unsqueeze(1).unwrap().matmul(parts[0].unsqueeze(0).unwrap());
        y = square.unwrap().max(0).unwrap().add(&sum).unwrap();
        let words = parts[2].reshape([-1]).unwrap().i(0..1).unwrap();
        y = y.sub(words.cast(DType::F32).unwrap()).unwrap().tanh().unwrap();
    }
    g.compile(&[y, kept.mul(1.5).unwrap()]).unwrap()
}

/// Returns the bytes of the arenas before the first kernel, and after each: its position, and them.
fn snapshots(plan: &Plan, specialised: &Specialised, x: &Tensor) -> Vec<(usize, Vec<Vec<u8>>)> {
    let (call, device) = (Call::new("test"), plan.device());
    let arenas = specialised.arenas();
    let mut copies: Vec<(usize, Vec<UntypedBuffer>)> = Vec::new();
    for arena in arenas {
        device.batch().fill(arena, CANARY).unwrap().submit().unwrap();
    }
    let given = [("x", x)];
    let inputs = plan.inputs(call, &given).unwrap();
    let mut copy = |batch: &mut Batch, position: usize, _: &UntypedBuffer| {
        let mut copied = Vec::new();
        for arena in arenas {
            let copy = device.alloc_untyped(None, arena.byte_size() as usize)?;
            batch.copy(arena, &copy)?;
            copied.push(copy);
        }
        copies.push((position, copied));
        Ok(())
    };
    let outputs = plan.submit(call, specialised, &inputs, Some(&mut copy));
    // What hostile kernels do not reach has no canary.
    let kept = outputs.unwrap()[1].read::<f32>(call).unwrap();
    let is_kept = |it: &f32| (it - 1.5 * std::f32::consts::E).abs() < 1e-4;
    assert!(kept.len() == 122 && kept.iter().all(is_kept), "{kept:?}");
    let bytes = |arenas: &Vec<UntypedBuffer>| -> Vec<Vec<u8>> {
        arenas.iter().map(|arena| arena.download_bytes().unwrap()).collect()
    };
    copies.iter().map(|(position, arenas)| (*position, bytes(arenas))).collect()
}

/// Checks that each kernel changes its results only.
fn check(gpu: &Device, factor: u32, offset: u32) {
    let plan = plan(gpu, factor, offset);
    let specialised = plan.specialised(&Vec::new()).unwrap();
    let x = Tensor::full([61], 0.5, DType::F32, gpu).unwrap();
    let arenas = specialised.memory.arenas.iter();
    let mut before: Vec<Vec<u8>> = arenas.map(|bytes| vec![CANARY; *bytes as usize]).collect();
    let mut canaries = 0;
    for (position, after) in snapshots(&plan, &specialised, &x) {
        let results = specialised.grouped.kernels[position].results();
        let slots = results.iter().filter_map(|it| {
            let bytes = specialised.grouped.buffers[it.index()].bytes as u64;
            specialised.memory.slots[it.index()].map(|slot| (slot, bytes))
        });
        let slots: Vec<_> = slots.collect();
        for (arena, (before, after)) in before.iter().zip(&after).enumerate() {
            let changed = before.iter().zip(after).enumerate().filter(|(_, (a, b))| a != b);
            for (at, _) in changed {
                let at = at as u64;
                let is_result = slots.iter().any(|(slot, bytes)| {
                    slot.arena == arena && (slot.offset..slot.offset + bytes).contains(&at)
                });
                assert!(is_result, "kernel {position} changes byte {at} of arena {arena}");
            }
        }
        canaries += slots.iter().filter(|(slot, bytes)| slot.bytes > *bytes).count();
        before = after;
    }
    assert!(canaries > 0 && before.iter().any(|arena| arena.len() as u64 > ALIGNMENT));
}

#[test]
fn hostile_kernels_change_their_results_only() {
    on_each_device(|gpu| {
        for (factor, offset) in [(1, 61), (64, 5), (0x4000_0000, 0xffff_fff0), (0, 0x7fff_ffff)] {
            check(gpu, factor, offset);
        }
    });
}
