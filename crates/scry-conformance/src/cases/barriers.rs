//! Barriers in workgroups of many sizes, in uniform loops and conditions, and workgroupUniformLoad.

use scry_gpu::{DeviceInfo, Launch};

use crate::case::{Case, Data};
use crate::random::RandomWords;
use crate::ty::{NUMBERS, Ty, directives};

/// Returns a tree reduction in workgroups of `size` invocations.
fn tree_reduction(size: u32) -> String {
    format!(
        "const SIZE = {size}u;
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<workgroup> sums: array<u32, SIZE>;
        @compute @workgroup_size(SIZE)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {{
            sums[i] = input[g.x * SIZE + i];
            var width = SIZE;
            while width > 1u {{
                workgroupBarrier();
                let half = (width + 1u) / 2u;
                if i + half < width {{ sums[i] += sums[i + half]; }}
                width = half;
            }}
            if i == 0u {{ out[g.x] = sums[0]; }}
        }}"
    )
}

pub(crate) fn sums_of_workgroups_of_many_sizes(gpu: &DeviceInfo) -> Vec<Case> {
    let max = gpu.limits.max_workgroup_invocations;
    let case = |size: u32| {
        let name = format!("size {size}");
        if size > max {
            return Case::skipped(name, format!("workgroups have at most {max} invocations"));
        }
        let input: Vec<u32> = RandomWords(size).take(3 * size as usize).collect();
        let sum = |group: &[u32]| group.iter().fold(0u32, |sum, word| sum.wrapping_add(*word));
        let want = input.chunks(size as usize).map(sum).collect();
        let launch = Launch::workgroups([3, 1, 1]);
        Case::new(name, tree_reduction(size)).words(&[&input]).output(want).launch(launch)
    };
    [1, 2, 7, 64, 100, 255, 256, 257, 300, 512, 1000, 1024].map(case).into()
}

/// Each invocation reads the word of the mirrored one: the first reads the last, and the reverse.
/// In whichever order the invocations run, one of the two reads too early without a barrier.
pub(crate) fn barriers_order_first_and_last_invocation(gpu: &DeviceInfo) -> Case {
    let size = gpu.limits.max_workgroup_invocations.min(1024);
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
            var<workgroup> words: array<u32, {size}>;
            @compute @workgroup_size({size})
            fn main(@builtin(local_invocation_index) i: u32) {{
                var digest = 0u;
                for (var n = 1u; n <= 5u; n++) {{
                    words[i] = i * n;
                    workgroupBarrier();
                    digest = digest * 3u + words[{size}u - 1u - i];
                    workgroupBarrier();
                }}
                out[i] = digest;
            }}"
    );
    let digest = move |i: u32| {
        let other = size - 1 - i;
        (1..=5u32).fold(0u32, |digest, n| digest.wrapping_mul(3).wrapping_add(other * n))
    };
    Case::new("", source).output((0..size).map(digest).collect()).one_workgroup()
}

/// Barriers under uniform conditions and in uniform loops, on three axes.
pub(crate) fn barriers_within_uniform_control_flow(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<workgroup> words: array<u32, 60>;
        @compute @workgroup_size(5, 4, 3)
        fn main(
            @builtin(local_invocation_index) i: u32,
            @builtin(local_invocation_id) id: vec3<u32>,
            @builtin(workgroup_id) g: vec3<u32>,
        ) {
            words[i] = id.x + id.y * 10u + id.z * 100u;
            var sum = 0u;
            if input[g.x] % 2u == 1u {
                workgroupBarrier();
                for (var n = 0u; n < input[g.x]; n++) {
                    let next = words[(i + 1u) % 60u];
                    workgroupBarrier();
                    words[i] = next;
                    workgroupBarrier();
                    if n == 6u { break; }
                    if n % 2u == 0u { continue; }
                    sum += words[59u - i];
                }
            }
            out[g.x * 60u + i] = sum * 1000u + words[i];
        }";
    let counts = [0, 1, 2, 5, 9];
    let word = |i: u32| i % 5 + i / 5 % 4 * 10 + i / 20 * 100;
    let want = counts.iter().flat_map(|count| {
        (0..60).map(move |i| {
            if count % 2 == 0 {
                return word(i);
            }
            // The seventh iteration ends at the break, before its sum.
            let summing = (0..*count.min(&6)).filter(|n| n % 2 == 1);
            let sum: u32 = summing.map(|n| word((59 - i + n + 1) % 60)).sum();
            sum * 1000 + word((i + count.min(&7)) % 60)
        })
    });
    let launch = Launch::workgroups([counts.len() as u32, 1, 1]);
    Case::new("", source).words(&[&counts]).output(want.collect()).launch(launch)
}

pub(crate) fn uniform_loads_of_every_type(_: &DeviceInfo) -> Vec<Case> {
    let case = |ty: Ty| {
        let name = ty.name();
        let source = format!(
            "{}
                @group(0) @binding(0) var<storage, read> input: array<{name}>;
                @group(0) @binding(1) var<storage, read_write> out: array<{name}>;
                var<workgroup> one: {name};
                var<workgroup> many: array<vec2<{name}>, 2>;
                @compute @workgroup_size(64)
                fn main(@builtin(local_invocation_index) i: u32) {{
                    for (var n = 0u; n < 3u; n++) {{
                        if i == n * 31u {{ one = input[n]; }}
                        let all = workgroupUniformLoad(&one);
                        many[n % 2u].y = all;
                        let both = workgroupUniformLoad(&many[n % 2u]);
                        out[i * 3u + n] = both.y;
                    }}
                }}",
            directives(&[ty])
        );
        let values: Vec<u64> = [3, 1, 2].map(|value| ty.integer_bits(value)).into();
        Case::new(name, source)
            .buffer(Data::values(ty, &[&values[..], &values[..1]].concat()))
            .buffer(Data::values(ty, &[0; 192]))
            .one_workgroup()
            .skipped_without(ty.feature())
            .expect_values(1, ty, &values.repeat(64))
    };
    NUMBERS.map(case).into()
}

pub(crate) fn workgroups_after_early_returns(_: &DeviceInfo) -> Case {
    // Some invocations return before the others continue: no barrier follows.
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<workgroup> words: array<u32, 96>;
        @compute @workgroup_size(96)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
            let word = input[g.x * 96u + i];
            words[i] = word;
            workgroupBarrier();
            if word % 3u == 0u { return; }
            var sum = 0u;
            for (var n = 0u; n < word % 10u; n++) {
                if words[(i + n) % 96u] % 7u == 0u { return; }
                sum += words[(i + n) % 96u] % 100u;
            }
            out[g.x * 96u + i] = sum;
        }";
    let input: Vec<u32> = RandomWords(31).take(4 * 96).collect();
    let want = input.chunks(96).flat_map(|words| {
        (0..96usize).map(|i| {
            let read = || (0..words[i] as usize % 10).map(|n| words[(i + n) % 96]);
            let ends = words[i].is_multiple_of(3) || read().any(|word| word.is_multiple_of(7));
            if ends { u32::MAX } else { read().map(|word| word % 100).sum() }
        })
    });
    let launch = Launch::workgroups([4, 1, 1]);
    Case::new("", source).words(&[&input]).output(want.collect()).launch(launch)
}

/// Pairs of kernels: with a barrier in non-uniform control flow, which is rejected, and a similar
/// kernel without, which is accepted.
pub(crate) fn rejects_barriers_in_divergent_control_flow(_: &DeviceInfo) -> Vec<Case> {
    let source = |body: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read> input: array<u32>;
            @group(0) @binding(1) var<storage, read_write> out: array<u32>;
            var<workgroup> word: u32;
            fn sync(n: u32) {{ if n > 2u {{ return; }} workgroupBarrier(); }}
            @compute @workgroup_size(64)
            fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {{
                if i == 0u {{ word = g.x; }}
                {body}
                out[g.x * 64u + i] = word;
            }}"
        )
    };
    let pairs = [
        ("if i < 10u { workgroupBarrier(); }", "if g.x < 10u { workgroupBarrier(); }"),
        ("if input[i] == 1u { return; } storageBarrier();", "if i == 65u { return; }"),
        ("for (var n = 0u; n < i; n++) { workgroupBarrier(); }", "workgroupBarrier();"),
        ("sync(i);", "sync(g.x);"),
        (
            "if i < 10u { out[0] = workgroupUniformLoad(&word); }",
            "word = workgroupUniformLoad(&word);",
        ),
        ("switch out[0] { case 1u: { textureBarrier(); } default: {} }", "textureBarrier();"),
    ];
    let cases = |(wrong, right): (&str, &str)| {
        let rejected =
            Case::new(wrong, source(wrong)).expect_error(&["uniform control flow", wrong]);
        [rejected, Case::new(right, source(right))]
    };
    pairs.into_iter().flat_map(cases).collect()
}
