//! Grids of one, two and three dimensions, plain and linearised: each invocation runs exactly once.

use scry_gpu::{DType, DeviceInfo, Invocations, Launch};

use crate::case::{Case, Data};
use crate::check::{ensure, ensure_eq};

/// Returns a kernel that counts each invocation within `size` at its index, and all others in the
/// last element. `wrong` counts invocations whose built-in values contradict each other.
fn counting_kernel(workgroup: [u32; 3]) -> String {
    let [x, y, z] = workgroup;
    format!(
        "
        @group(0) @binding(0) var<storage, read> size: vec4<u32>;
        @group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
        @group(0) @binding(2) var<storage, read_write> wrong: atomic<u32>;

        @compute @workgroup_size({x}, {y}, {z})
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(local_invocation_id) local: vec3<u32>,
            @builtin(local_invocation_index) index: u32,
            @builtin(num_workgroups) groups: vec3<u32>,
        ) {{
            let workgroup = vec3({x}u, {y}u, {z}u);
            let is_consistent = all(id == group * workgroup + local)
                && index == local.x + (local.y + local.z * {y}u) * {x}u
                && all(groups == (size.xyz + workgroup - 1u) / workgroup)
                && all(group < groups);
            if !is_consistent {{ atomicAdd(&wrong, 1u); }}
            let last = arrayLength(&counts) - 1u;
            let in_bounds = all(id < size.xyz);
            atomicAdd(&counts[select(last, id.x + (id.y + id.z * size.y) * size.x, in_bounds)], 1u);
        }}"
    )
}

/// Creates a case that counts the invocations of a launch of `size`, rounded up to whole
/// workgroups. The caller adds the launch.
pub(crate) fn counting_case(workgroup: [u32; 3], size: [u32; 3]) -> Case {
    let [x, y, z] = size;
    let len = size.iter().product::<u32>() as usize;
    let name = format!("{size:?} in workgroups of {workgroup:?}");
    let case = Case::new(name, counting_kernel(workgroup))
        .buffer(Data::words(&[x, y, z, 0]).typed(DType::U32))
        .buffer(Data::zeros(DType::U32, len + 1))
        .buffer(Data::zeros(DType::U32, 1));
    case.expect_words(2, vec![0]).expect(move |out| {
        let counts = out.words(1);
        ensure!(counts[..len].iter().all(|count| *count == 1), "not each exactly once");
        let rounded = |axis: usize| size[axis].next_multiple_of(workgroup[axis]);
        let excess = rounded(0) * rounded(1) * rounded(2) - len as u32;
        ensure_eq!(counts[len], excess, "beyond the size");
        Ok(())
    })
}

pub(crate) fn each_invocation_exactly_once(_: &DeviceInfo) -> Vec<Case> {
    let cases: [([u32; 3], [u32; 3]); 12] = [
        ([1, 1, 1], [1, 1, 1]),
        ([64, 1, 1], [1, 1, 1]),
        ([64, 1, 1], [64, 1, 1]),
        ([64, 1, 1], [65, 1, 1]),
        ([64, 1, 1], [100_003, 1, 1]),
        ([7, 1, 1], [1001, 1, 1]),
        ([8, 8, 1], [17, 33, 1]),
        ([16, 4, 1], [1, 101, 1]),
        ([1, 64, 1], [3, 130, 1]),
        ([4, 4, 4], [5, 6, 7]),
        ([3, 5, 2], [31, 29, 11]),
        ([1, 1, 64], [2, 3, 129]),
    ];
    let case = |(workgroup, size)| counting_case(workgroup, size).launch(Launch::invocations(size));
    cases.map(case).into()
}

pub(crate) fn every_way_to_set_the_size(_: &DeviceInfo) -> Vec<Case> {
    let sizes: [(Invocations, [u32; 3]); 9] = [
        (5.into(), [5, 1, 1]),
        (5u32.into(), [5, 1, 1]),
        (5u64.into(), [5, 1, 1]),
        (5usize.into(), [5, 1, 1]),
        ([5].into(), [5, 1, 1]),
        ([5, 6].into(), [5, 6, 1]),
        ([5usize, 6, 7].into(), [5, 6, 7]),
        ((5, 6).into(), [5, 6, 1]),
        ((5u32, 6u32, 7u32).into(), [5, 6, 7]),
    ];
    let case = |(invocations, size)| {
        counting_case([4, 2, 1], size).launch(Launch::invocations(invocations))
    };
    sizes.map(case).into()
}

/// Creates a case of [`counting_kernel`] in which no invocation may run.
fn no_invocations(name: &str, workgroup: [u32; 3]) -> Case {
    Case::new(name, counting_kernel(workgroup))
        .words(&[&[0; 4]])
        .buffer(Data::zeros(DType::U32, 1))
        .buffer(Data::zeros(DType::U32, 1))
        .expect_words(1, vec![0])
        .expect_words(2, vec![0])
}

pub(crate) fn zero_axis_runs_nothing(_: &DeviceInfo) -> Case {
    let launches = [
        Launch::invocations(0),
        Launch::invocations([5, 0]),
        Launch::invocations([5, 5, 0]),
        Launch::workgroups([0, 1, 1]),
        Launch::workgroups([70_000, 1, 0]),
        Launch::workgroups([u32::MAX, 0, u32::MAX]),
    ];
    launches.into_iter().fold(no_invocations("", [4, 1, 1]), Case::launch)
}

pub(crate) fn linearised_launches_keep_every_id(_: &DeviceInfo) -> Vec<Case> {
    let cases: [([u32; 3], [u32; 3]); 7] = [
        ([1, 1, 1], [70_000, 1, 1]),
        ([1, 1, 1], [1, 70_000, 1]),
        ([1, 1, 1], [1, 1, 70_000]),
        ([1, 1, 1], [3, 65_536, 2]),
        ([1, 1, 1], [65_537, 2, 3]),
        ([2, 1, 1], [131_075, 3, 1]),
        ([1, 2, 2], [2, 131_073, 3]),
    ];
    let case = |(workgroup, size): ([u32; 3], [u32; 3])| {
        let groups = [0, 1, 2].map(|axis| size[axis].div_ceil(workgroup[axis]));
        counting_case(workgroup, size).launch(Launch::workgroups(groups))
    };
    let last = counting_case([1, 1, 1], [65_536, 3, 1]).launch(Launch::invocations([65_536, 3]));
    cases.into_iter().map(case).chain([last]).collect()
}

/// Excess workgroups return before any side effect, atomics and barriers included.
pub(crate) fn linearised_launches_support_workgroup_memory(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> sums: array<u32>;
        @group(0) @binding(1) var<storage, read_write> runs: atomic<u32>;
        var<workgroup> words: array<atomic<u32>, 2>;
        var<private> calls: u32;

        fn count(id: vec3<u32>) { calls++; atomicAdd(&words[id.x % 2u], id.x / 2u); }

        @compute @workgroup_size(2)
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(local_invocation_index) local: u32,
            @builtin(workgroup_id) group: vec3<u32>,
        ) {
            count(id);
            atomicAdd(&runs, calls);
            workgroupBarrier();
            if local == 0u { sums[group.x] = atomicLoad(&words[0]) + atomicLoad(&words[1]); }
        }";
    let groups = 65_537u32;
    Case::new("", source)
        .buffer(Data::zeros(DType::U32, groups as usize))
        .buffer(Data::zeros(DType::U32, 1))
        .launch(Launch::workgroups([groups, 1, 1]))
        .expect_words(0, (0..groups).map(|group| 2 * group).collect())
        .expect_words(1, vec![groups * 2])
}

pub(crate) fn rejects_more_invocations_than_u32_counts(_: &DeviceInfo) -> Vec<Case> {
    let rejected: [(Launch, &[&str]); 5] = [
        (Launch::invocations(u32::MAX), &["4294967295", "4294967296", "along x"]),
        (Launch::invocations(1u64 << 40), &["1099511627776", "along x"]),
        (Launch::invocations(-3), &["-3", "along x"]),
        (Launch::workgroups([1 << 26, 1, 1]), &["67108864", "along x"]),
        (Launch::invocations([1, u64::MAX]), &["along y"]),
    ];
    let case = |(launch, parts): (Launch, &[&str])| {
        no_invocations(&format!("{launch:?}"), [64, 1, 1]).launch(launch).expect_error(parts)
    };
    rejected.map(case).into()
}
