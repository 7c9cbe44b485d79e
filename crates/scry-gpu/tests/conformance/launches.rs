//! Grids of one, two and three dimensions, plain and linearised: each invocation exactly once.

use scry_gpu::{Device, Invocations, Launch};

use crate::harness::{assert_says, on_each_device, refused, succeed};

/// Counts each invocation inside of `size` at its index, and every other one at the end.
pub fn counting(workgroup: [u32; 3]) -> String {
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
            let is_true = all(id == group * workgroup + local)
                && index == local.x + (local.y + local.z * {y}u) * {x}u
                && all(groups == (size.xyz + workgroup - 1u) / workgroup)
                && all(group < groups);
            if !is_true {{ atomicAdd(&wrong, 1u); }}
            let last = arrayLength(&counts) - 1u;
            let inside = all(id < size.xyz);
            atomicAdd(&counts[select(last, id.x + (id.y + id.z * size.y) * size.x, inside)], 1u);
        }}"
    )
}

pub fn check_launch(gpu: &Device, workgroup: [u32; 3], size: [u32; 3], launch: Launch) {
    let kernel = succeed(gpu.compile(&counting(workgroup)));
    let [x, y, z] = size;
    let inside = size.iter().product::<u32>() as usize;
    let bound = succeed(gpu.upload(&[x, y, z, 0]));
    let counts = succeed(gpu.alloc::<u32>(inside + 1));
    let wrong = succeed(gpu.alloc::<u32>(1));
    succeed(gpu.run(&kernel, &[&bound, &counts, &wrong], launch));
    let what = format!("{size:?} in workgroups of {workgroup:?}");
    assert_eq!(succeed(wrong.download()), [0], "{what}: ids");
    let counts = succeed(counts.download());
    assert!(counts[..inside].iter().all(|count| *count == 1), "{what}");
    let whole = |axis: usize| size[axis].next_multiple_of(workgroup[axis]);
    let excess = whole(0) * whole(1) * whole(2) - inside as u32;
    assert_eq!(counts[inside], excess, "{what}: beyond the size");
}

#[test]
fn each_invocation_exactly_once() {
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
    on_each_device(|gpu| {
        for (workgroup, size) in cases {
            check_launch(gpu, workgroup, size, Launch::invocations(size));
        }
    });
}

#[test]
fn every_way_to_set_the_size() {
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
    on_each_device(|gpu| {
        for (given, size) in sizes {
            check_launch(gpu, [4, 2, 1], size, Launch::invocations(given));
        }
    });
}

#[test]
fn zero_axis_runs_nothing() {
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(&counting([4, 1, 1])));
        let bound = succeed(gpu.upload(&[0u32; 4]));
        let counts = succeed(gpu.alloc::<u32>(1));
        let wrong = succeed(gpu.alloc::<u32>(1));
        let launches = [
            Launch::invocations(0),
            Launch::invocations([5, 0]),
            Launch::invocations([5, 5, 0]),
            Launch::workgroups([0, 1, 1]),
            Launch::workgroups([70_000, 1, 0]),
            Launch::workgroups([u32::MAX, 0, u32::MAX]),
        ];
        for launch in launches {
            succeed(gpu.run(&kernel, &[&bound, &counts, &wrong], launch));
        }
        assert_eq!(succeed(counts.download()), [0]);
        assert_eq!(succeed(wrong.download()), [0]);
    });
}

#[test]
fn linearised_launches_keep_every_id() {
    let cases: [([u32; 3], [u32; 3]); 7] = [
        ([1, 1, 1], [70_000, 1, 1]),
        ([1, 1, 1], [1, 70_000, 1]),
        ([1, 1, 1], [1, 1, 70_000]),
        ([1, 1, 1], [3, 65_536, 2]),
        ([1, 1, 1], [65_537, 2, 3]),
        ([2, 1, 1], [131_075, 3, 1]),
        ([1, 2, 2], [2, 131_073, 3]),
    ];
    on_each_device(|gpu| {
        for (workgroup, size) in cases {
            let groups = [0, 1, 2].map(|axis| size[axis].div_ceil(workgroup[axis]));
            check_launch(gpu, workgroup, size, Launch::workgroups(groups));
        }
        check_launch(gpu, [1, 1, 1], [65_536, 3, 1], Launch::invocations([65_536, 3]));
    });
}

/// Excess workgroups return before any side effect, atomics and barriers included.
#[test]
fn linearised_launches_support_workgroup_memory() {
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
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let sums = succeed(gpu.alloc::<u32>(groups as usize));
        let runs = succeed(gpu.alloc::<u32>(1));
        let launch = Launch::workgroups([groups, 1, 1]);
        succeed(gpu.run(&kernel, &[&sums, &runs], launch));
        let want: Vec<u32> = (0..groups).map(|group| 2 * group).collect();
        assert!(succeed(sums.download()) == want);
        assert_eq!(succeed(runs.download()), [groups * 2]);
    });
}

#[test]
fn rejects_invocation_ids_beyond_u32() {
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(&counting([64, 1, 1])));
        let bound = succeed(gpu.upload(&[0u32; 4]));
        let counts = succeed(gpu.alloc::<u32>(1));
        let wrong = succeed(gpu.alloc::<u32>(1));
        let try_it = |launch| refused(gpu.run(&kernel, &[&bound, &counts, &wrong], launch));
        assert_says(
            &try_it(Launch::invocations(u32::MAX)),
            &["4294967295", "4294967296", "along x"],
        );
        assert_says(&try_it(Launch::invocations(1u64 << 40)), &["1099511627776", "along x"]);
        assert_says(&try_it(Launch::invocations(-3)), &["-3", "along x"]);
        assert_says(&try_it(Launch::workgroups([1 << 26, 1, 1])), &["67108864", "along x"]);
        assert_says(&try_it(Launch::invocations([1, u64::MAX])), &["along y"]);
        assert_eq!(succeed(counts.download()), [0]);
    });
}
