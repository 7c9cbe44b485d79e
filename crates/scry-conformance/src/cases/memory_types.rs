//! Values of every type in every address space: storage, uniform, immediate, workgroup, private,
//! function.

use scry_gpu::{DeviceInfo, Launch};

use crate::case::{Case, Data};
use crate::random::RandomWords;
use crate::ty::{NUMBERS, Ty, directives, pack};

/// Number of invocations, in one workgroup.
const N: usize = 64;

/// Returns random values of a type.
fn values(ty: Ty, len: usize) -> Vec<u64> {
    let random = RandomWords(ty.bits() + 40);
    let value = |(i, word): (usize, u32)| match ty.is_float() {
        true => ty.nearest(f64::from(word % 500 + 1) / 4.0 - f64::from(i as u32)),
        false => ty.wrap(i128::from(word) << 31 | i128::from(word) | 1),
    };
    random.take(len).enumerate().map(value).collect()
}

/// Returns one case for each type, skipped on devices without it.
fn for_each_type(case: impl Fn(Ty) -> Case) -> Vec<Case> {
    NUMBERS.into_iter().map(|ty| case(ty).skipped_without(ty.feature())).collect()
}

/// Creates a case of a kernel with this body, in which TYPE is `ty`. It reads `input` (binding 0)
/// and writes `out` (binding 1).
fn case(ty: Ty, body: &str, input: &[u64], want: &[u64]) -> Case {
    let name = ty.name();
    let source = format!(
        "{}
        @group(0) @binding(0) var<storage, read> input: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> out: array<{name}>;
        var<workgroup> workgroup_data: array<{name}, 64>;
        var<workgroup> wide: array<vec3<{name}>, 64>;
        var<private> own: array<{name}, 8>;
        struct Pair {{ one: {name}, many: array<vec2<{name}>, 3> }}

        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{
            {body}
        }}",
        directives(&[ty])
    );
    let words = (want.len() * ty.bits() as usize / 8).div_ceil(4);
    Case::new(name.clone(), source.replace("TYPE", &name))
        .words(&[&pack(ty, input), &vec![u32::MAX; words]])
        .one_workgroup()
        .expect_values(1, ty, want)
}

pub(crate) fn workgroup_arrays_of_every_type(_: &DeviceInfo) -> Vec<Case> {
    let body = "
        workgroup_data[i] = input[i];
        wide[63u - i] = vec3(input[i], input[(i + 1u) % 64u], input[(i + 2u) % 64u]);
        workgroupBarrier();
        out[i * 3u] = workgroup_data[(i * 5u + 3u) % 64u];
        out[i * 3u + 1u] = wide[i].z;
        out[i * 3u + 2u] = wide[7][i % 3u];";
    for_each_type(|ty| {
        let input = values(ty, N);
        let want = (0..N).flat_map(|i| {
            let [far, seven] = [63 - i, 63 - 7];
            [(i * 5 + 3) % N, (far + 2) % N, (seven + i % 3) % N].map(|index| input[index])
        });
        case(ty, body, &input, &want.collect::<Vec<_>>())
    })
}

pub(crate) fn local_arrays_of_every_type(_: &DeviceInfo) -> Vec<Case> {
    let body = "
        var mine: array<TYPE, 8>;
        for (var n = 0u; n < 8u; n++) {
            mine[(n + i) % 8u] = input[(i + n) % 64u];
            if (n + i) % 3u != 0u { own[7u - n] = input[(i * 7u + n) % 64u]; }
        }
        var v = vec4<TYPE>(input[0], input[1], input[2], input[3]);
        v[i % 4u] = input[i];
        var pair: Pair;
        pair.many[i % 3u].y = input[63u - i];
        pair.one = pair.many[(i + 1u) % 3u].y;
        out[i * 5u] = mine[(i * 3u) % 8u];
        out[i * 5u + 1u] = own[i % 8u];
        out[i * 5u + 2u] = v[(i / 2u) % 4u];
        out[i * 5u + 3u] = pair.many[i % 3u][1];
        out[i * 5u + 4u] = pair.one;";
    for_each_type(|ty| {
        let input = values(ty, N);
        let want = (0..N).flat_map(|i| {
            let n = (i * 3 + 8 * N - i) % 8;
            let from = 7 - i % 8;
            let own = if (from + i) % 3 == 0 { 0 } else { input[(i * 7 + from) % N] };
            let v = i / 2 % 4;
            let v = if v == i % 4 { input[i] } else { input[v] };
            [input[(i + n) % N], own, v, input[63 - i], 0]
        });
        case(ty, body, &input, &want.collect::<Vec<_>>())
    })
}

pub(crate) fn variables_of_every_type(_: &DeviceInfo) -> Vec<Case> {
    let body = "
        var scalar = input[i];
        var other = input[(i + 1u) % 64u];
        for (var n = 0u; n < i % 4u; n++) {
            if (n + i) % 3u == 0u { scalar = input[(i + n) % 64u]; } else { other = scalar; }
        }
        out[i * 2u] = scalar;
        out[i * 2u + 1u] = other;";
    for_each_type(|ty| {
        let input = values(ty, N);
        let want = (0..N).flat_map(|i| {
            let (mut scalar, mut other) = (input[i], input[(i + 1) % N]);
            for n in 0..i % 4 {
                match (n + i) % 3 {
                    0 => scalar = input[(i + n) % N],
                    _ => other = scalar,
                }
            }
            [scalar, other]
        });
        case(ty, body, &input, &want.collect::<Vec<_>>())
    })
}

/// Vectors loaded at indices that are consecutive, equal or scattered over the invocations.
pub(crate) fn vectors_in_storage_of_every_type(_: &DeviceInfo) -> Vec<Case> {
    for_each_type(|ty| {
        let name = ty.name();
        let source = format!(
            "{}
            @group(0) @binding(0) var<storage, read> input: array<vec4<{name}>>;
            @group(0) @binding(1) var<storage, read_write> out: array<vec4<{name}>>;
            @compute @workgroup_size(16)
            fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {{
                let own = input[i];
                let same = input[g.x];
                let far = input[(i * 7u + g.x) % 16u];
                let at = (g.x * 16u + i) * 2u;
                out[at] = vec4(own.xy, same.zw);
                out[at + 1u] = far.wzyx;
                if (i + g.x) % 3u == 0u {{ out[at + 1u] = vec4(same.yyy, far.x); }}
            }}",
            directives(&[ty])
        );
        let input = values(ty, N);
        let len = 3 * 16 * 8;
        let row = |at: usize| <[u64; 4]>::try_from(&input[at * 4..at * 4 + 4]).expect("four");
        let want =
            (0..3usize).flat_map(|g| (0..16usize).map(move |i| (g, i))).flat_map(|(g, i)| {
                let (own, shared, far) = (row(i), row(g), row((i * 7 + g) % 16));
                let second = match (i + g) % 3 {
                    0 => [shared[1], shared[1], shared[1], far[0]],
                    _ => [far[3], far[2], far[1], far[0]],
                };
                [[own[0], own[1], shared[2], shared[3]], second].concat()
            });
        Case::new(name, source)
            .buffer(Data::values(ty, &input))
            .buffer(Data::values(ty, &vec![0; len]))
            .launch(Launch::workgroups([3, 1, 1]))
            .expect_values(1, ty, &want.collect::<Vec<_>>())
    })
}

pub(crate) fn uniform_buffers_of_every_type(_: &DeviceInfo) -> Vec<Case> {
    for_each_type(|ty| {
        let name = ty.name();
        let source = format!(
            "{}
            struct Both {{ v: vec4<{name}>, one: {name} }}
            @group(0) @binding(0) var<uniform> both: Both;
            @group(0) @binding(1) var<storage, read_write> out: array<{name}>;
            @compute @workgroup_size(8)
            fn main(@builtin(local_invocation_index) i: u32) {{
                out[i] = select(both.v[i % 4u], both.one, i >= 4u);
            }}",
            directives(&[ty])
        );
        let input = values(ty, 8);
        let want: Vec<u64> = (0..8).map(|i| input[i.min(4)]).collect();
        Case::new(name, source)
            .buffer(Data::values(ty, &input))
            .buffer(Data::values(ty, &[0; 8]))
            .one_workgroup()
            .expect_values(1, ty, &want)
    })
}

pub(crate) fn immediates_of_32_and_64_bits(_: &DeviceInfo) -> Vec<Case> {
    let case = |ty: Ty| {
        let name = ty.name();
        let source = format!(
            "struct Both {{ v: vec2<{name}>, list: array<{name}, 3> }}
            var<immediate> both: Both;
            @group(0) @binding(0) var<storage, read_write> out: array<{name}>;
            @compute @workgroup_size(8)
            fn main(@builtin(local_invocation_index) i: u32) {{
                out[i] = select(both.list[i % 3u], both.v.y, i % 2u == 1u);
            }}"
        );
        // With the trailing padding that the vector's alignment requires.
        let input = values(ty, 6);
        let bytes: Vec<u8> = pack(ty, &input).iter().flat_map(|w| w.to_ne_bytes()).collect();
        let want = (0..8).map(|i| if i % 2 == 1 { input[1] } else { input[2 + i % 3] });
        Case::new(name, source)
            .buffer(Data::values(ty, &[0; 8]))
            .launch(Launch::workgroups([1, 1, 1]).immediate_bytes(bytes))
            .expect_values(0, ty, &want.collect::<Vec<_>>())
            .skipped_without(ty.feature())
    };
    // The immediate block cannot contain 16-bit types.
    NUMBERS.into_iter().filter(|ty| ty.bits() != 16).map(case).collect()
}

pub(crate) fn bools_in_memory(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<workgroup> workgroup_data: array<bool, 64>;
        var<private> own: array<bool, 8>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {
            workgroup_data[i] = input[i] % 2u == 1u;
            var mine: array<bool, 8>;
            var is_any = false;
            for (var n = 0u; n < 8u; n++) {
                mine[(n + i) % 8u] = input[(i + n) % 64u] % 3u == 0u;
                own[n] = input[(i * n) % 64u] > 1000000000u;
                if n < i % 8u { is_any = is_any || own[n]; }
            }
            var flipped: array<bool, 8>;
            for (var n = 0u; n < 8u; n++) { flipped[(n + 5u) % 8u] = !mine[n]; }
            workgroupBarrier();
            out[i] = u32(workgroup_data[(i * 5u) % 64u]) + 2u * u32(flipped[(i * 3u + 5u) % 8u])
                + 4u * u32(own[i % 8u]) + 8u * u32(is_any);
        }";
    let input: Vec<u32> = RandomWords(60).take(N).collect();
    let want = (0..N).map(|i| {
        let n = (i * 3 + 8 * N - i) % 8;
        let own = |n: usize| input[(i * n) % N] > 1_000_000_000;
        let workgroup_data = input[(i * 5) % N] % 2 == 1;
        let mine = input[(i + n) % N].is_multiple_of(3);
        let is_any = (0..i % 8).any(own);
        u32::from(workgroup_data)
            + 2 * u32::from(!mine)
            + 4 * u32::from(own(i % 8))
            + 8 * u32::from(is_any)
    });
    Case::new("", source).words(&[&input]).output(want.collect()).one_workgroup()
}

/// Bools in vectors, structures and nested arrays in workgroup memory, stored and loaded by member
/// and as a whole.
pub(crate) fn bools_in_workgroup_memory(_: &DeviceInfo) -> Case {
    let source = "
        struct Row { n: u32, flags: vec3<bool>, last: bool, deep: array<vec2<bool>, 2> }
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<workgroup> vectors: array<vec4<bool>, 64>;
        var<workgroup> rows: array<Row, 64>;
        var<workgroup> copies: array<Row, 64>;
        var<workgroup> any_odd: bool;
        var<workgroup> few: array<bool, 4>;
        var<workgroup> untouched: array<Row, 2>;
        fn bit(x: u32, n: u32) -> bool { return (x >> n & 1u) == 1u; }
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {
            let x = input[i];
            vectors[i] = vec4(bit(x, 4u), bit(x, 5u), false, bit(x, 7u));
            vectors[i][2u + x % 1u] = bit(x, 6u);
            rows[i].n = x;
            rows[i].flags = vec3(bit(x, 8u), bit(x, 9u), bit(x, 10u));
            rows[i].last = bit(x, 11u);
            rows[i].deep[i % 2u] = vec2(bit(x, 12u), bit(x, 13u));
            if i == 9u { any_odd = true; few = array<bool, 4>(true, false, bit(x, 14u), true); }
            workgroupBarrier();
            copies[63u - i] = rows[(i + 1u) % 64u];
            let all = few;
            if workgroupUniformLoad(&any_odd) { workgroupBarrier(); }
            let v = vectors[(i * 5u) % 64u];
            let row = copies[(i * 3u) % 64u];
            var sum = u32(v.x) + 2u * u32(v.y) + 4u * u32(v.z) + 8u * u32(v.w);
            sum += 16u * u32(row.flags.x) + 32u * u32(row.flags[1u + row.n % 1u])
                + 64u * u32(row.flags.z) + 128u * u32(row.last);
            for (var n = 0u; n < 2u; n++) {
                sum += (u32(row.deep[n].x) + 2u * u32(row.deep[n].y)) << (8u + 2u * n);
            }
            sum += u32(all[i % 4u]) << 12u;
            sum += u32(any(untouched[i % 2u].flags) || untouched[1].last) << 13u;
            out[i] = sum;
        }";
    let input: Vec<u32> = RandomWords(61).take(N).collect();
    let want = (0..N).map(|i| {
        let far = (63 - (i * 3) % N + 1) % N;
        let (v, row) = (input[(i * 5) % N], input[far]);
        let deep = (row >> 12 & 3) << (8 + 2 * (far % 2));
        let few = [1, 0, input[9] >> 14 & 1, 1][i % 4];
        (v >> 4 & 15) + (row >> 8 & 15) * 16 + deep + (few << 12)
    });
    Case::new("", source).words(&[&input]).output(want.collect()).one_workgroup()
}
