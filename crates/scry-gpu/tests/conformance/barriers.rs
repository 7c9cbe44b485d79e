//! Barriers: in workgroups of every size, in loops, around conditions, and workgroupUniformLoad.

use scry_gpu::Launch;

use crate::harness::{
    Words, assert_says, download_words, on_each_device, refused, run_words, succeed, upload_words,
};
use crate::typed::{NUMBERS, directives, pack, unpack};

/// A tree reduction in a workgroup of `size`; half of the active invocations stop at each level.
fn tree(size: u32) -> String {
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

#[test]
fn sums_of_workgroups_of_every_size() {
    on_each_device(|gpu| {
        let most = gpu.info().limits.max_workgroup_invocations;
        for size in [1, 2, 7, 64, 100, 255, 256, 257, 300, 512, 1000, 1024] {
            if size > most {
                eprintln!("skipped: {} has workgroups of at most {most}, not {size}", gpu.name());
                continue;
            }
            let input: Vec<u32> = Words(size).take(3 * size as usize).collect();
            let sum = |group: &[u32]| group.iter().fold(0u32, |sum, word| sum.wrapping_add(*word));
            let want: Vec<u32> = input.chunks(size as usize).map(sum).collect();
            let launch = Launch::workgroups([3, 1, 1]);
            assert_eq!(run_words(gpu, &tree(size), &[&input], 3, launch), want, "size {size}");
        }
    });
}

/// Every invocation reads the last one's output, and the reverse: a missing barrier shows for the
/// first or the last invocation.
#[test]
fn barriers_order_first_and_last_invocation() {
    on_each_device(|gpu| {
        let size = gpu.info().limits.max_workgroup_invocations.min(1024);
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
            var<workgroup> words: array<u32, {size}>;
            @compute @workgroup_size({size})
            fn main(@builtin(local_invocation_index) i: u32) {{
                var seen = 0u;
                for (var turn = 1u; turn <= 5u; turn++) {{
                    words[i] = i * turn;
                    workgroupBarrier();
                    seen = seen * 3u + words[{size}u - 1u - i];
                    workgroupBarrier();
                }}
                out[i] = seen;
            }}"
        );
        let got = run_words(gpu, &source, &[], size as usize, Launch::workgroups([1, 1, 1]));
        let seen = |i: u32| {
            let other = size - 1 - i;
            (1..=5u32).fold(0u32, |seen, turn| seen.wrapping_mul(3).wrapping_add(other * turn))
        };
        assert_eq!(got, (0..size).map(seen).collect::<Vec<_>>());
    });
}

/// Barriers under uniform conditions and in uniform loops, on three axes.
#[test]
fn barriers_within_uniform_control_flow() {
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
                for (var turn = 0u; turn < input[g.x]; turn++) {
                    let next = words[(i + 1u) % 60u];
                    workgroupBarrier();
                    words[i] = next;
                    workgroupBarrier();
                    if turn == 6u { break; }
                    if turn % 2u == 0u { continue; }
                    sum += words[59u - i];
                }
            }
            out[g.x * 60u + i] = sum * 1000u + words[i];
        }";
    let turns = [0, 1, 2, 5, 9];
    let place = |i: u32| i % 5 + i / 5 % 4 * 10 + i / 20 * 100;
    let want = turns.iter().flat_map(|turns| {
        (0..60).map(move |i| {
            if turns % 2 == 0 {
                return place(i);
            }
            // The sixth turn is the last that goes on after its barriers.
            let sums = (0..*turns.min(&6)).filter(|turn| turn % 2 == 1);
            let sum: u32 = sums.map(|turn| place((59 - i + turn + 1) % 60)).sum();
            sum * 1000 + place((i + turns.min(&7)) % 60)
        })
    });
    let want: Vec<u32> = want.collect();
    on_each_device(|gpu| {
        let launch = Launch::workgroups([turns.len() as u32, 1, 1]);
        assert_eq!(run_words(gpu, source, &[&turns], want.len(), launch), want);
    });
}

#[test]
fn uniform_loads_of_every_type() {
    on_each_device(|gpu| {
        for ty in NUMBERS {
            if !gpu.info().features.contains(ty.feature()) {
                eprintln!("skipped: {}: {} has no {}", ty.name(), gpu.name(), ty.feature());
                continue;
            }
            let name = ty.name();
            let source = format!(
                "{}
                @group(0) @binding(0) var<storage, read> input: array<{name}>;
                @group(0) @binding(1) var<storage, read_write> out: array<{name}>;
                var<workgroup> one: {name};
                var<workgroup> many: array<vec2<{name}>, 2>;
                @compute @workgroup_size(64)
                fn main(@builtin(local_invocation_index) i: u32) {{
                    for (var turn = 0u; turn < 3u; turn++) {{
                        if i == turn * 31u {{ one = input[turn]; }}
                        let all = workgroupUniformLoad(&one);
                        many[turn % 2u].y = all;
                        let both = workgroupUniformLoad(&many[turn % 2u]);
                        out[i * 3u + turn] = both.y;
                    }}
                }}",
                directives(&[ty])
            );
            let values: Vec<u64> = [3, 1, 2].map(|value| ty.whole(value)).into();
            let input = upload_words(gpu, &pack(ty, &[&values[..], &values[..1]].concat()));
            let out = upload_words(gpu, &pack(ty, &[0; 192]));
            let kernel = succeed(gpu.compile(&source));
            let launch = Launch::workgroups([1, 1, 1]);
            succeed(gpu.run(&kernel, &[&input, &out], launch));
            let got = unpack(ty, &download_words(&out), 192);
            assert_eq!(got, values.repeat(64), "{ty:?}");
        }
    });
}

#[test]
fn workgroups_after_an_early_end() {
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
    let input: Vec<u32> = Words(31).take(4 * 96).collect();
    let want = input.chunks(96).flat_map(|words| {
        (0..96usize).map(|i| {
            let read = || (0..words[i] as usize % 10).map(|n| words[(i + n) % 96]);
            let ends = words[i].is_multiple_of(3) || read().any(|word| word.is_multiple_of(7));
            if ends { u32::MAX } else { read().map(|word| word % 100).sum() }
        })
    });
    let want: Vec<u32> = want.collect();
    on_each_device(|gpu| {
        let launch = Launch::workgroups([4, 1, 1]);
        assert_eq!(run_words(gpu, source, &[&input], want.len(), launch), want);
    });
}

/// Kernels that differ only in a barrier's place: those in non-uniform control flow are rejected.
#[test]
fn rejects_barriers_in_divergent_control_flow() {
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
    on_each_device(|gpu| {
        for (wrong, right) in pairs {
            assert_says(&refused(gpu.compile(&source(wrong))), &["uniform control flow", wrong]);
            succeed(gpu.compile(&source(right)));
        }
    });
}
