//! Subgroup operations: arithmetic and exchanges on numbers of every type, bitwise operations on
//! integers of 32 and 64 bits, votes and ballots. The expected results are computed from the lanes
//! and subgroups that the invocations report.

use scry_gpu::{BackendKind, DType, DeviceInfo, Features, Launch};

use crate::case::{Case, Data};
use crate::check::{ensure, ensure_eq};
use crate::outputs::Outputs;
use crate::ty::{NUMBERS, Ty, directives};

/// Number of invocations, in one workgroup.
const N: usize = 64;

/// An invocation's subgroup, and its lane in it.
#[derive(Debug, Clone, Copy)]
struct Member {
    size: u32,
    lane: u32,
    subgroup: u32,
    active: bool,
}

/// The invocations of a workgroup with their values.
struct Workgroup {
    members: Vec<Member>,
    values: Vec<i64>,
}

impl Workgroup {
    /// Returns lane and value of the active members of an invocation's subgroup, in lane order.
    fn active_members(&self, i: usize) -> Vec<(u32, i64)> {
        let own = self.members[i].subgroup;
        let pairs = self.members.iter().zip(&self.values);
        let mut members: Vec<(u32, i64)> = pairs
            .filter(|(member, _)| member.subgroup == own && member.active)
            .map(|(member, value)| (member.lane, *value))
            .collect();
        members.sort_unstable();
        members
    }

    /// Returns the value of a lane of an invocation's subgroup; `None` if the lane is not active,
    /// where WGSL leaves the result undefined.
    fn lane_value(&self, i: usize, lane: Option<u32>) -> Option<i64> {
        self.active_members(i).into_iter().find(|it| Some(it.0) == lane).map(|it| it.1)
    }
}

/// An expression over `v`, `p`, `lane` and `size`, and its result in an invocation, `None` where
/// WGSL leaves it undefined. `T(…)` converts to the type under test.
type Op = (&'static str, fn(&Workgroup, usize) -> Option<i64>);

/// Returns the values of lanes below that of invocation `i`, and its own value if `inclusive`.
fn preceding(workgroup: &Workgroup, i: usize, inclusive: bool) -> Vec<i64> {
    let lane = workgroup.members[i].lane;
    let members = workgroup.active_members(i).into_iter();
    let members = members.filter(|it| it.0 < lane || inclusive && it.0 == lane);
    members.map(|it| it.1).collect()
}

/// Returns the values of all active lanes of an invocation's subgroup.
fn all(workgroup: &Workgroup, i: usize) -> Vec<i64> {
    workgroup.active_members(i).into_iter().map(|it| it.1).collect()
}

/// Returns the factor `p` for a value: 1 or 2, mostly 1, so that products are small.
fn factor(value: i64) -> i64 {
    if value % 7 == 3 { 2 } else { 1 }
}

const NUMERIC: [Op; 8] = [
    ("subgroupAdd(v)", |w, i| Some(all(w, i).iter().sum())),
    ("subgroupInclusiveAdd(v)", |w, i| Some(preceding(w, i, true).iter().sum())),
    ("subgroupExclusiveAdd(v)", |w, i| Some(preceding(w, i, false).iter().sum())),
    ("subgroupMul(p)", |w, i| Some(all(w, i).into_iter().map(factor).product())),
    ("subgroupInclusiveMul(p)", |w, i| {
        Some(preceding(w, i, true).into_iter().map(factor).product())
    }),
    ("subgroupExclusiveMul(p)", |w, i| {
        Some(preceding(w, i, false).into_iter().map(factor).product())
    }),
    ("subgroupMin(v)", |w, i| all(w, i).into_iter().min()),
    ("subgroupMax(v)", |w, i| all(w, i).into_iter().max()),
];

const EXCHANGES: [Op; 11] = [
    ("subgroupBroadcastFirst(v)", |w, i| all(w, i).first().copied()),
    ("subgroupBroadcast(v, 2u)", |w, i| w.lane_value(i, Some(2))),
    ("subgroupShuffle(v, (lane * 3u + 1u) % size)", |w, i| {
        let Member { size, lane, .. } = w.members[i];
        w.lane_value(i, Some((lane * 3 + 1) % size))
    }),
    ("subgroupShuffle(v, 1u)", |w, i| w.lane_value(i, Some(1))),
    ("subgroupShuffleXor(v, 3u)", |w, i| w.lane_value(i, Some(w.members[i].lane ^ 3))),
    ("subgroupShuffleUp(v, 2u)", |w, i| w.lane_value(i, w.members[i].lane.checked_sub(2))),
    ("subgroupShuffleDown(v, 1u)", |w, i| w.lane_value(i, Some(w.members[i].lane + 1))),
    ("quadBroadcast(v, 1u)", |w, i| w.lane_value(i, Some(w.members[i].lane & !3 | 1))),
    ("quadSwapX(v)", |w, i| w.lane_value(i, Some(w.members[i].lane ^ 1))),
    ("quadSwapY(v)", |w, i| w.lane_value(i, Some(w.members[i].lane ^ 2))),
    ("quadSwapDiagonal(v)", |w, i| w.lane_value(i, Some(w.members[i].lane ^ 3))),
];

const BITWISE: [Op; 3] = [
    ("subgroupAnd(v)", |w, i| all(w, i).into_iter().reduce(|x, y| x & y)),
    ("subgroupOr(v)", |w, i| all(w, i).into_iter().reduce(|x, y| x | y)),
    ("subgroupXor(v)", |w, i| all(w, i).into_iter().reduce(|x, y| x ^ y)),
];

/// Votes, as 0 or 1, and parts of the ballot's words.
const VOTES: [Op; 5] = [
    ("T(subgroupAny(v == T(3)))", |w, i| Some(all(w, i).contains(&3).into())),
    ("T(subgroupAll(v != T(3)))", |w, i| Some((!all(w, i).contains(&3)).into())),
    ("T(subgroupBallot(v > T(20)).x & 0xffu)", |w, i| Some(ballot(w, i) & 0xff)),
    ("T(subgroupBallot(v > T(20)).x >> 24u)", |w, i| Some(ballot(w, i) >> 24 & 0xff)),
    ("T(countOneBits(subgroupBallot(true).y))", |w, i| {
        Some(w.active_members(i).iter().filter(|it| (32..64).contains(&it.0)).count() as i64)
    }),
];

/// Returns the first word of `subgroupBallot(v > 20)`.
fn ballot(workgroup: &Workgroup, i: usize) -> i64 {
    let voters =
        workgroup.active_members(i).into_iter().filter(|(lane, value)| *lane < 32 && *value > 20);
    voters.map(|(lane, _)| 1 << lane).sum()
}

fn case(ty: Ty, ops: &'static [Op], masked: bool) -> Case {
    let name = ty.name();
    let lines: Vec<String> = (0..)
        .zip(ops)
        .map(|(k, (op, _))| {
            format!("out[i * {}u + {k}u] = {};", ops.len(), op.replace("T(", &format!("{name}(")))
        })
        .collect();
    let condition = if masked { "i % 5u != 2u && i > 1u" } else { "true" };
    let source = format!(
        "{}
        @group(0) @binding(0) var<storage, read> values: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> members: array<vec3<u32>>;
        @group(0) @binding(2) var<storage, read_write> out: array<{name}>;
        @compute @workgroup_size(64)
        fn main(
            @builtin(local_invocation_index) i: u32,
            @builtin(subgroup_size) size: u32,
            @builtin(subgroup_invocation_id) lane: u32,
            @builtin(subgroup_id) subgroup: u32,
        ) {{
            members[i] = vec3(size, lane, subgroup);
            let v = values[i];
            let p = values[64u + i];
            if {condition} {{
                {}
            }}
        }}",
        directives(&[ty]),
        lines.join("\n")
    );
    // Small, so that sums are exact in every type and fit it.
    let values: Vec<i64> = (0..N as i64).map(|i| i * 11 % 29 + 1).collect();
    let factors = values.iter().map(|value| factor(*value));
    let all: Vec<u64> =
        values.iter().copied().chain(factors).map(|v| ty.integer_bits(v as u32)).collect();
    Case::new(format!("{ty:?}, masked {masked}"), source)
        .buffer(Data::values(ty, &all))
        .words(&[&[0; 4 * N]])
        .buffer(Data::values(ty, &vec![ty.integer_bits(99); N * ops.len()]))
        .one_workgroup()
        .skipped_without(Features::SUBGROUPS | ty.feature())
        .expect(move |out| {
            let members = members(out, |i| !masked || i % 5 != 2 && i > 1);
            let got = out.values(2, ty, N * ops.len());
            compare(ty, ops, &Workgroup { members, values: values.clone() }, &got)
        })
}

/// Returns the subgroups and lanes that invocations report in binding 1. `active` says which of
/// them evaluate the operations.
fn members(out: &Outputs, active: impl Fn(usize) -> bool) -> Vec<Member> {
    let member = |(i, row): (usize, &[u32])| Member {
        size: row[0],
        lane: row[1],
        subgroup: row[2],
        active: active(i),
    };
    out.words(1).chunks_exact(4).enumerate().map(member).collect()
}

fn compare(ty: Ty, ops: &[Op], workgroup: &Workgroup, got: &[u64]) -> Result<(), String> {
    for (i, row) in got.chunks(ops.len()).enumerate() {
        let member = workgroup.members[i];
        for ((op, host), got) in ops.iter().zip(row) {
            let want = if member.active { host(workgroup, i) } else { Some(99) };
            if let Some(want) = want {
                let want = ty.integer_bits(want as u32);
                ensure_eq!(*got, want, "{op} of {ty:?}, invocation {i}: {member:?}");
            }
        }
    }
    Ok(())
}

/// Returns the cases of each type, with all invocations active and with some of them.
fn cases(types: &[Ty], ops: &'static [Op]) -> Vec<Case> {
    types.iter().flat_map(|ty| [false, true].map(|masked| case(*ty, ops, masked))).collect()
}

pub(crate) fn reductions_and_scans(_: &DeviceInfo) -> Vec<Case> {
    cases(&NUMBERS, &NUMERIC)
}

pub(crate) fn broadcasts_and_shuffles(_: &DeviceInfo) -> Vec<Case> {
    cases(&NUMBERS, &EXCHANGES)
}

pub(crate) fn bitwise_reductions(_: &DeviceInfo) -> Vec<Case> {
    cases(&[Ty::I32, Ty::U32, Ty::I64, Ty::U64], &BITWISE)
}

pub(crate) fn votes_and_ballots(_: &DeviceInfo) -> Vec<Case> {
    cases(&[Ty::U32, Ty::I32], &VOTES)
}

/// Lanes of a subgroup are numbered without gaps, and subgroups fill the workgroup.
pub(crate) fn lanes_and_subgroups_are_numbered(gpu: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> out: array<vec4<u32>>;
        @compute @workgroup_size(96)
        fn main(
            @builtin(local_invocation_index) i: u32,
            @builtin(subgroup_size) size: u32,
            @builtin(subgroup_invocation_id) lane: u32,
            @builtin(subgroup_id) subgroup: u32,
            @builtin(num_subgroups) count: u32,
        ) {
            out[i] = vec4(size, lane, subgroup, count);
            subgroupBarrier();
        }";
    // wgpu devices compile WGSL, which lacks this barrier.
    let has_barrier = gpu.backend != BackendKind::Wgpu;
    let source = match has_barrier {
        true => source.to_owned(),
        false => source.replace("subgroupBarrier();", ""),
    };
    Case::new("", source)
        .words(&[&[0; 4 * 96]])
        .one_workgroup()
        .skipped_without(Features::SUBGROUPS)
        .expect(|out| {
            let words = out.words(0);
            let rows: Vec<&[u32]> = words.chunks_exact(4).collect();
            let (size, count) = (rows[0][0], rows[0][3]);
            ensure!(size.is_power_of_two() && size <= 128, "{size}");
            ensure_eq!(count, 96u32.div_ceil(size));
            let mut lanes: Vec<[u32; 2]> = rows.iter().map(|row| [row[2], row[1]]).collect();
            lanes.sort_unstable();
            let want: Vec<[u32; 2]> = (0..96).map(|i| [i / size, i % size]).collect();
            ensure_eq!(lanes, want);
            ensure!(rows.iter().all(|row| row[0] == size && row[3] == count));
            Ok(())
        })
}

/// Invocations set flags and read them without synchronisation. Those that read a flag as set count
/// each other.
const RACE: &str = "
    @group(0) @binding(0) var<storage, read_write> flags: array<u32>;
    @group(0) @binding(1) var<storage, read_write> sums: array<vec2<u32>>;
    @compute @workgroup_size(64)
    fn main(
        @builtin(global_invocation_id) id: vec3<u32>,
        @builtin(workgroup_id) group: vec3<u32>,
    ) {
        let flag = group.x / 2u;
        if id.x % 64u == id.x / 64u % 64u { flags[flag] = 1u; }
        var is_set = false;
        if flags[flag] != 0u { is_set = true; }
        var n = 0u;
        for (; n < 4u; n++) {
            if flags[flag] == 0u { break; }
        }
        var sum = vec2(0u);
        if is_set { sum.x = subgroupAdd(1u); }
        if n == 4u { sum.y = subgroupAdd(1u); }
        sums[id.x] = sum;
    }";

/// A kernel must not hang or lose lanes where a condition that depends on a race differs between
/// lanes.
pub(crate) fn racing_conditions_never_hang(_: &DeviceInfo) -> Case {
    const GROUPS: usize = 4096;
    Case::new("", RACE)
        .buffer(Data::zeros(DType::U32, GROUPS / 2))
        .buffer(Data::bytes(vec![0; 8 * 64 * GROUPS]))
        .launch(Launch::invocations(64 * GROUPS))
        .skipped_without(Features::SUBGROUPS)
        .expect_words(0, vec![1; GROUPS / 2])
        .expect(|out| out.words(1).chunks(2 * 64).try_for_each(check_race))
}

/// Checks one workgroup. A count of n comes from n lanes of one subgroup, so the number of
/// invocations that got it must be a multiple of n.
fn check_race(sums: &[u32]) -> Result<(), String> {
    for axis in [0, 1] {
        let mut occurrences = [0; 65];
        for sum in sums.iter().skip(axis).step_by(2) {
            ensure!(*sum <= 64, "{sums:?}");
            occurrences[*sum as usize] += 1;
        }
        for (n, count) in occurrences.iter().enumerate().skip(1) {
            ensure!(count % n == 0, "{count} of 64 got {n}: {sums:?}");
        }
    }
    Ok(())
}
