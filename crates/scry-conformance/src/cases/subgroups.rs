//! Subgroup operations: all of them on all types. The expected results are computed from the lanes
//! and subgroups that the invocations report.

use scry_gpu::{DType, DeviceInfo, Features, Launch};

use crate::case::{Case, Data};
use crate::check::{ensure, ensure_eq};
use crate::outputs::Outputs;
use crate::ty::{NUMBERS, Ty, directives};

const N: usize = 64;

/// An invocation's place in its subgroup.
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
    /// The active members of an invocation's subgroup in lane order: lane and value.
    fn mates(&self, i: usize) -> Vec<(u32, i64)> {
        let own = self.members[i].subgroup;
        let pairs = self.members.iter().zip(&self.values);
        let mut mates: Vec<(u32, i64)> = pairs
            .filter(|(member, _)| member.subgroup == own && member.active)
            .map(|(member, value)| (member.lane, *value))
            .collect();
        mates.sort_unstable();
        mates
    }

    /// The value of an active lane of an invocation's subgroup; `None` if WGSL leaves it undefined.
    fn at(&self, i: usize, lane: Option<u32>) -> Option<i64> {
        self.mates(i).into_iter().find(|mate| Some(mate.0) == lane).map(|mate| mate.1)
    }
}

/// An operation on `v`, and the result of invocation `i`; `None` where WGSL leaves it undefined.
type Op = (&'static str, fn(&Workgroup, usize) -> Option<i64>);

fn up_to(workgroup: &Workgroup, i: usize, own: bool) -> Vec<i64> {
    let lane = workgroup.members[i].lane;
    let mates = workgroup.mates(i).into_iter();
    mates.filter(|mate| mate.0 < lane || own && mate.0 == lane).map(|mate| mate.1).collect()
}

fn all(workgroup: &Workgroup, i: usize) -> Vec<i64> {
    workgroup.mates(i).into_iter().map(|mate| mate.1).collect()
}

/// Products stay small, because most values are 1 or -1.
fn sign(value: i64) -> i64 {
    if value % 7 == 3 { 2 } else { 1 }
}

const NUMERIC: [Op; 8] = [
    ("subgroupAdd(v)", |w, i| Some(all(w, i).iter().sum())),
    ("subgroupInclusiveAdd(v)", |w, i| Some(up_to(w, i, true).iter().sum())),
    ("subgroupExclusiveAdd(v)", |w, i| Some(up_to(w, i, false).iter().sum())),
    ("subgroupMul(p)", |w, i| Some(all(w, i).into_iter().map(sign).product())),
    ("subgroupInclusiveMul(p)", |w, i| Some(up_to(w, i, true).into_iter().map(sign).product())),
    ("subgroupExclusiveMul(p)", |w, i| Some(up_to(w, i, false).into_iter().map(sign).product())),
    ("subgroupMin(v)", |w, i| all(w, i).into_iter().min()),
    ("subgroupMax(v)", |w, i| all(w, i).into_iter().max()),
];

const EXCHANGES: [Op; 11] = [
    ("subgroupBroadcastFirst(v)", |w, i| all(w, i).first().copied()),
    ("subgroupBroadcast(v, 2u)", |w, i| w.at(i, Some(2))),
    ("subgroupShuffle(v, (lane * 3u + 1u) % size)", |w, i| {
        let Member { size, lane, .. } = w.members[i];
        w.at(i, Some((lane * 3 + 1) % size))
    }),
    ("subgroupShuffle(v, 1u)", |w, i| w.at(i, Some(1))),
    ("subgroupShuffleXor(v, 3u)", |w, i| w.at(i, Some(w.members[i].lane ^ 3))),
    ("subgroupShuffleUp(v, 2u)", |w, i| w.at(i, w.members[i].lane.checked_sub(2))),
    ("subgroupShuffleDown(v, 1u)", |w, i| w.at(i, Some(w.members[i].lane + 1))),
    ("quadBroadcast(v, 1u)", |w, i| w.at(i, Some(w.members[i].lane & !3 | 1))),
    ("quadSwapX(v)", |w, i| w.at(i, Some(w.members[i].lane ^ 1))),
    ("quadSwapY(v)", |w, i| w.at(i, Some(w.members[i].lane ^ 2))),
    ("quadSwapDiagonal(v)", |w, i| w.at(i, Some(w.members[i].lane ^ 3))),
];

const BITWISE: [Op; 3] = [
    ("subgroupAnd(v)", |w, i| all(w, i).into_iter().reduce(|x, y| x & y)),
    ("subgroupOr(v)", |w, i| all(w, i).into_iter().reduce(|x, y| x | y)),
    ("subgroupXor(v)", |w, i| all(w, i).into_iter().reduce(|x, y| x ^ y)),
];

/// Results of type bool, as 0 or 1; the ballot's words one by one.
const QUESTIONS: [Op; 5] = [
    ("T(subgroupAny(v == T(3)))", |w, i| Some(all(w, i).contains(&3).into())),
    ("T(subgroupAll(v != T(3)))", |w, i| Some((!all(w, i).contains(&3)).into())),
    ("T(subgroupBallot(v > T(20)).x & 0xffu)", |w, i| Some(ballot(w, i) & 0xff)),
    ("T(subgroupBallot(v > T(20)).x >> 24u)", |w, i| Some(ballot(w, i) >> 24 & 0xff)),
    ("T(countOneBits(subgroupBallot(true).y))", |w, i| {
        Some(w.mates(i).iter().filter(|mate| (32..64).contains(&mate.0)).count() as i64)
    }),
];

/// The first word.
fn ballot(workgroup: &Workgroup, i: usize) -> i64 {
    let yes = workgroup.mates(i).into_iter().filter(|(lane, value)| *lane < 32 && *value > 20);
    yes.map(|(lane, _)| 1 << lane).sum()
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
        @group(0) @binding(1) var<storage, read_write> who: array<vec3<u32>>;
        @group(0) @binding(2) var<storage, read_write> out: array<{name}>;
        @compute @workgroup_size(64)
        fn main(
            @builtin(local_invocation_index) i: u32,
            @builtin(subgroup_size) size: u32,
            @builtin(subgroup_invocation_id) lane: u32,
            @builtin(subgroup_id) subgroup: u32,
        ) {{
            who[i] = vec3(size, lane, subgroup);
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
    let factors = values.iter().map(|value| sign(*value));
    let all: Vec<u64> = values.iter().copied().chain(factors).map(|v| ty.whole(v as u32)).collect();
    Case::new(format!("{ty:?}, masked {masked}"), source)
        .buffer(Data::values(ty, &all))
        .words(&[&[0; 4 * N]])
        .buffer(Data::values(ty, &vec![ty.whole(99); N * ops.len()]))
        .one_workgroup()
        .needs(Features::SUBGROUPS | ty.feature())
        .expect(move |out| {
            let members = members(out, |i| !masked || i % 5 != 2 && i > 1);
            let got = out.values(2, ty, N * ops.len());
            compare(ty, ops, &Workgroup { members, values: values.clone() }, &got)
        })
}

/// The places that invocations report, in words of binding 1.
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
                let want = ty.whole(want as u32);
                ensure_eq!(*got, want, "{op} of {ty:?}, invocation {i}: {member:?}");
            }
        }
    }
    Ok(())
}

/// For each type, with and without a condition.
fn cases(types: &[Ty], ops: &'static [Op]) -> Vec<Case> {
    types.iter().flat_map(|ty| [false, true].map(|masked| case(*ty, ops, masked))).collect()
}

pub(crate) fn reductions_and_scans(_: &DeviceInfo) -> Vec<Case> {
    cases(&NUMBERS, &NUMERIC)
}

pub(crate) fn exchanges(_: &DeviceInfo) -> Vec<Case> {
    cases(&NUMBERS, &EXCHANGES)
}

pub(crate) fn bitwise_reductions(_: &DeviceInfo) -> Vec<Case> {
    cases(&[Ty::I32, Ty::U32, Ty::I64, Ty::U64], &BITWISE)
}

pub(crate) fn votes_and_ballots(_: &DeviceInfo) -> Vec<Case> {
    cases(&[Ty::U32, Ty::I32], &QUESTIONS)
}

/// Lanes of a subgroup are numbered without gaps, and subgroups fill the workgroup.
pub(crate) fn lanes_and_subgroups_are_numbered(_: &DeviceInfo) -> Case {
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
    Case::new("", source).words(&[&[0; 4 * 96]]).one_workgroup().needs(Features::SUBGROUPS).expect(
        |out| {
            let words = out.words(0);
            let rows: Vec<&[u32]> = words.chunks_exact(4).collect();
            let (size, count) = (rows[0][0], rows[0][3]);
            ensure!(size.is_power_of_two() && size <= 128, "{size}");
            ensure_eq!(count, 96u32.div_ceil(size));
            let mut places: Vec<[u32; 2]> = rows.iter().map(|row| [row[2], row[1]]).collect();
            places.sort_unstable();
            let want: Vec<[u32; 2]> = (0..96).map(|i| [i / size, i % size]).collect();
            ensure_eq!(places, want);
            ensure!(rows.iter().all(|row| row[0] == size && row[3] == count));
            Ok(())
        },
    )
}

/// Invocations race to set a flag; those that read it as set are added up.
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
        var turns = 0u;
        for (; turns < 4u; turns++) {
            if flags[flag] == 0u { break; }
        }
        var sum = vec2(0u);
        if is_set { sum.x = subgroupAdd(1u); }
        if turns == 4u { sum.y = subgroupAdd(1u); }
        sums[id.x] = sum;
    }";

/// A kernel must not hang or lose lanes if a racing condition differs between them.
pub(crate) fn racing_conditions_never_hang(_: &DeviceInfo) -> Case {
    const GROUPS: usize = 4096;
    Case::new("", RACE)
        .buffer(Data::zeros(DType::U32, GROUPS / 2))
        .buffer(Data::bytes(vec![0; 8 * 64 * GROUPS]))
        .launch(Launch::invocations(64 * GROUPS))
        .needs(Features::SUBGROUPS)
        .expect_words(0, vec![1; GROUPS / 2])
        .expect(|out| out.words(1).chunks(2 * 64).try_for_each(group_of_race))
}

/// A sum of n is read by a multiple of n invocations of a workgroup.
fn group_of_race(sums: &[u32]) -> Result<(), String> {
    for axis in [0, 1] {
        let mut readers = [0; 65];
        for sum in sums.iter().skip(axis).step_by(2) {
            ensure!(*sum <= 64, "{sums:?}");
            readers[*sum as usize] += 1;
        }
        for (n, with) in readers.iter().enumerate().skip(1) {
            ensure!(with % n == 0, "{with} of 64 got {n}: {sums:?}");
        }
    }
    Ok(())
}
