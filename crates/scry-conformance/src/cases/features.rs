//! Optional features: right results where the device has them; otherwise the kernel is rejected
//! with an error that names them. Also the limits of workgroups.

use scry_gpu::{BackendKind, DType, DeviceInfo, Features, Launch, f16};

use crate::case::{Case, Data, ExpectedValue};
use crate::check::{ensure, ensure_eq};
use crate::ty::{Ty, nearest_f16};

const F16: &str = "enable f16;
    struct Row { a: f16, v: vec3<f16>, m: mat2x2<f16> }
    @group(0) @binding(0) var<storage, read_write> row: Row;
    @group(0) @binding(1) var<storage, read_write> out: array<f16>;
    @group(0) @binding(2) var<storage, read_write> words: array<u32>;

    @compute @workgroup_size(1)
    fn main() {
        out[0] = row.a + 1.5h;
        out[1] = row.v.z * row.v.y;
        out[2] = row.m[1].x;
        out[3] = f16(words[0]) / 4.0h;
        words[1] = u32(row.v.x);
        words[2] = bitcast<u32>(f32(row.v.y));
        // 2048 + 1 is half-way between two f16 values, and rounds to even.
        out[4] = f16(f32(words[3]) + 2048.0);
        row.v = row.v.zyx;
    }";

pub(crate) fn half_precision_floats(_: &DeviceInfo) -> Case {
    let bits = |numbers: &[f32]| -> Vec<u64> {
        numbers.iter().map(|x| f16::from_f32(*x).to_bits().into()).collect()
    };
    let row = bits(&[1.0, 0.0, 0.0, 0.0, 2.0, 3.0, 4.0, 9.0, 5.0, 6.0, 7.0, 8.0]);
    Case::new("", F16)
        .buffer(Data::values(Ty::F16, &row))
        .buffer(Data::zeros(DType::F16, 6))
        .buffer(Data::words(&[10, 0, 0, 1]).typed(DType::U32))
        .launch(Launch::invocations(1))
        .rejected_without(Features::F16)
        .expect_values(1, Ty::F16, &bits(&[2.5, 12.0, 7.0, 2.5, 2048.0, 0.0]))
        .expect_words(2, vec![10, 2, 3.0f32.to_bits(), 1])
        .expect(|out| {
            ensure_eq!(out.floats(0, Ty::F16, 8)[4..], [4.0, 3.0, 2.0, 9.0]);
            Ok(())
        })
}

const I16: &str = "enable wgpu_int16;
    @group(0) @binding(0) var<storage, read> a: array<i16>;
    @group(0) @binding(1) var<storage, read> b: array<u16>;
    @group(0) @binding(2) var<storage, read_write> out: array<u32>;

    @compute @workgroup_size(1)
    fn main() {
        out[0] = u32(b[0] + b[1]);
        out[1] = u32(b[0] * b[1]);
        out[2] = bitcast<u32>(i32(a[0] + a[1]));
        out[3] = bitcast<u32>(i32(a[0] - a[2]));
        out[4] = bitcast<u32>(i32(a[2]));
        out[5] = u32(u16(out[7]));
        out[6] = u32(a[0] < a[1]);
    }";

pub(crate) fn integers_of_16_bits_wrap(_: &DeviceInfo) -> Case {
    let bytes = |values: &[u16]| Data::bytes(values.iter().flat_map(|x| x.to_ne_bytes()).collect());
    Case::new("", I16)
        .buffer(bytes(&[0x8000, 0xffff, 5]).typed(DType::I16))
        .buffer(bytes(&[65535, 3]).typed(DType::U16))
        .buffer(Data::words(&[0, 0, 0, 0, 0, 0, 0, 0x1234_5678]).typed(DType::U32))
        .launch(Launch::invocations(1))
        .rejected_without(Features::I16)
        .expect_words(2, vec![2, 65533, 32767, 32763, 5, 0x5678, 1, 0x1234_5678])
}

const I64: &str = "
    @group(0) @binding(0) var<storage, read> a: array<i64>;
    @group(0) @binding(1) var<storage, read> b: array<u64>;
    @group(0) @binding(2) var<storage, read_write> signed: array<i64>;
    @group(0) @binding(3) var<storage, read_write> unsigned: array<u64>;

    @compute @workgroup_size(1)
    fn main() {
        signed[0] = a[0] + a[1];
        signed[1] = a[0] * a[1];
        signed[2] = a[2] / a[1];
        signed[3] = a[2] % 1000li;
        signed[4] = a[2] >> 3u;
        signed[5] = abs(a[1]);
        signed[6] = i64(-5i) + select(0li, 1li, a[0] < a[1]);
        signed[7] = a[0] / a[3];
        signed[8] = a[0] % a[3];
        signed[9] = a[0] / a[1];
        unsigned[0] = b[0] + b[1];
        unsigned[1] = b[0] / b[1];
        unsigned[2] = b[0] << 40u;
        unsigned[3] = u64(u32(b[0])) * b[1];
        unsigned[4] = max(b[0], b[1]);
        unsigned[5] = b[0] ^ 0xfflu;
        unsigned[6] = b[0] / b[2];
        unsigned[7] = b[0] % b[2];
    }";

pub(crate) fn integers_of_64_bits(_: &DeviceInfo) -> Case {
    let a = [i64::MIN, -1, -123_456_789_012_345, 0];
    let b = [0xffff_ffff_ffff_fff0u64, 0x1_0000_0001, 0];
    let signed = [
        a[0].wrapping_add(a[1]),
        a[0].wrapping_mul(a[1]),
        -a[2],
        a[2] % 1000,
        a[2] >> 3,
        1,
        -4,
        i64::MIN,
        0,
        i64::MIN,
    ];
    let low = b[0] & 0xffff_ffff;
    let unsigned = [
        b[0].wrapping_add(b[1]),
        b[0] / b[1],
        b[0] << 40,
        low.wrapping_mul(b[1]),
        b[0],
        b[0] ^ 0xff,
        b[0],
        0,
    ];

    Case::new("", I64)
        .buffer(Data::values(Ty::I64, &a.map(i64::cast_unsigned)).typed(DType::I64))
        .buffer(Data::values(Ty::U64, &b).typed(DType::U64))
        .buffer(Data::zeros(DType::I64, 10))
        .buffer(Data::zeros(DType::U64, 8))
        .launch(Launch::invocations(1))
        .rejected_without(Features::I64)
        .expect_values(2, Ty::I64, &signed.map(i64::cast_unsigned))
        .expect_values(3, Ty::U64, &unsigned)
}

const F64: &str = "
    @group(0) @binding(0) var<storage, read> a: array<f64>;
    @group(0) @binding(1) var<storage, read_write> out: array<f64>;

    @compute @workgroup_size(1)
    fn main() {
        out[0] = a[0] + a[1];
        out[1] = a[0] * a[1] + 0.1lf;
        out[2] = a[0] / 4.0lf;
        out[3] = f64(i32(a[0]));
        out[4] = floor(a[1]);
        out[5] = f64(f32(a[0]));
        out[6] = dot(vec2(a[0], a[1]), vec2(1.0lf, 2.0lf));
    }";

/// The operands of [`double_precision_floats`].
const F64_OPERANDS: [f64; 2] = [1e15 + 0.5, 0.123_456_789_012_345];

/// Returns the expected value of `a[0] * a[1] + 0.1`. The multiplication and the addition may be
/// fused. Two ULP: the spacing of f64 near 1e14 is 2^-6, and a missing addition is off by six.
fn product_plus_tenth() -> ExpectedValue {
    let a = F64_OPERANDS;
    ExpectedValue::WithinAbsolute(a[0].mul_add(a[1], 0.1), 2f64.powi(-5))
}

pub(crate) fn double_precision_floats(_: &DeviceInfo) -> Case {
    let a = F64_OPERANDS;
    let expected = vec![
        ExpectedValue::Number(a[0] + a[1]),
        product_plus_tenth(),
        ExpectedValue::Number(a[0] / 4.0),
        ExpectedValue::Number(2_147_483_647.0),
        ExpectedValue::Number(0.0),
        ExpectedValue::Number(f64::from(a[0] as f32)),
        // Two ULP: the spacing of f64 near 1e15 is 0.125.
        ExpectedValue::WithinAbsolute(2f64.mul_add(a[1], a[0]), 0.25),
    ];
    Case::new("", F64)
        .buffer(Data::values(Ty::F64, &a.map(f64::to_bits)).typed(DType::F64))
        .buffer(Data::zeros(DType::F64, 7))
        .launch(Launch::invocations(1))
        .rejected_without(Features::F64)
        .expect_approx(1, Ty::F64, expected, |at| format!("out[{at}]"))
}

/// Converts each number to f16, and the f16 to f32.
const F64_TO_F16: &str = "
    enable f16;
    @group(0) @binding(0) var<storage, read> a: array<f64>;
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;

    @compute @workgroup_size(32)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&a) { out[id.x] = f32(f16(a[id.x])); }
    }";

/// Returns middles between two f16 values, and numbers slightly above and below them. The three are
/// equal as f32, so rounding to f32 first gives a wrong f16 for one of them. Also returns some
/// other numbers, and the negative of each.
fn near_middles() -> Vec<f64> {
    let half = 2f64.powi(-11);
    let middles = [1.0 + half, 1.0 + 3.0 * half, 2051.0, 2f64.powi(-10) * (1.0 + half)];
    let around = |x: f64| [x, x * (1.0 + 2f64.powi(-40)), x * (1.0 - 2f64.powi(-40))];
    let mut numbers: Vec<f64> = middles.into_iter().flat_map(around).collect();
    numbers.extend([0.0, 1.0, 0.1, 65504.0, 65503.9]);
    numbers.extend(numbers.clone().iter().map(|x| -x));
    numbers
}

/// Scry's own compilers round to nearest even; a driver may round to the other neighbour.
pub(crate) fn f64_to_f16_rounds_once(gpu: &DeviceInfo) -> Case {
    let numbers = near_middles();
    let is_compiled_by_us = matches!(gpu.backend, BackendKind::Cpu | BackendKind::Cuda);
    let want = |x: &f64| match is_compiled_by_us {
        true => ExpectedValue::Number(nearest_f16(*x).to_f64()),
        false if *x == 0.0 => ExpectedValue::Number(0.0),
        false => ExpectedValue::WithinAbsolute(*x, (x.abs() * 2f64.powi(-10)).next_down()),
    };
    let expected = numbers.iter().map(want).collect();
    let bits: Vec<u64> = numbers.iter().map(|x| x.to_bits()).collect();
    Case::new("", F64_TO_F16)
        .buffer(Data::values(Ty::F64, &bits).typed(DType::F64))
        .buffer(Data::zeros(DType::F32, numbers.len()))
        .launch(Launch::invocations(numbers.len()))
        .rejected_without(Features::F64 | Features::F16)
        .expect_approx(1, Ty::F32, expected, move |at| format!("{:e}", numbers[at]))
}

const F32_ATOMICS: &str = "
    @group(0) @binding(0) var<storage, read_write> sums: array<atomic<f32>, 3>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        atomicAdd(&sums[0], 0.5);
        atomicSub(&sums[1], 1.0);
        if atomicExchange(&sums[2], 2.0) == 7.0 { atomicAdd(&sums[0], 100.0); }
    }";

pub(crate) fn atomic_floats(_: &DeviceInfo) -> Case {
    // Multiples of 0.5 below 2^23: no sum is rounded, in any order.
    let expected = [1700.0, -3200.0, 2.0].map(ExpectedValue::Number).into();
    Case::new("", F32_ATOMICS)
        .buffer(Data::floats(&[0.0, 0.0, 7.0]))
        .launch(Launch::invocations(64 * 50))
        .rejected_without(Features::F32_ATOMICS)
        .expect_approx(0, Ty::F32, expected, |at| format!("sum {at}"))
}

const I64_ATOMICS: &str = "
    @group(0) @binding(0) var<storage, read_write> sums: array<atomic<u64>, 3>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        atomicAdd(&sums[0], 0x100000001lu);
        atomicMax(&sums[1], u64(id.x) << 33u);
        atomicOr(&sums[2], 1lu << (id.x % 64u));
    }";

pub(crate) fn atomic_integers_of_64_bits(_: &DeviceInfo) -> Case {
    Case::new("", I64_ATOMICS)
        .buffer(Data::zeros(DType::U64, 3))
        .launch(Launch::invocations(6400))
        .rejected_without(Features::I64_ATOMICS)
        .expect_values(0, Ty::U64, &[6400 * 0x1_0000_0001, 6399 << 33, u64::MAX])
}

const SUBGROUPS: &str = "enable subgroups;
    @group(0) @binding(0) var<storage, read_write> out: array<array<u32, 12>>;

    @compute @workgroup_size(64)
    fn main(
        @builtin(local_invocation_index) local: u32,
        @builtin(subgroup_size) size: u32,
        @builtin(subgroup_invocation_id) lane: u32,
        @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32,
    ) {
        let word = local + 1u;
        out[local][0] = size;
        out[local][1] = lane;
        out[local][2] = subgroup;
        out[local][3] = subgroups;
        out[local][4] = subgroupAdd(word);
        out[local][5] = subgroupExclusiveAdd(word);
        out[local][6] = subgroupMax(word ^ 5u);
        out[local][7] = subgroupBroadcastFirst(word);
        out[local][8] = subgroupShuffleXor(word, 1u);
        out[local][9] = countOneBits(subgroupBallot(local % 2u == 0u).x);
        out[local][10] = u32(subgroupAny(local == 3u)) + 2u * u32(subgroupAll(local < 64u));
        out[local][11] = subgroupInclusiveMul(lane % 2u + 1u);
    }";

/// Returns the expected row of an invocation, from the members of its subgroup.
fn subgroup_row(rows: &[Vec<u32>], local: usize) -> Vec<u32> {
    let [size, lane, subgroup, subgroups] = rows[local][..4] else {
        panic!("a row has at least four words")
    };
    let is_member = |row: &&Vec<u32>| row[2] == subgroup;
    let mut mates: Vec<(u32, u32)> = (0..)
        .zip(rows)
        .filter(|(_, row)| is_member(row))
        .map(|(local, row)| (row[1], local))
        .collect();
    mates.sort_unstable();
    let words = || mates.iter().map(|(_, local)| local + 1);
    let before = mates.iter().filter(|(other, _)| *other < lane);
    let partner = mates.iter().find(|(other, _)| *other == lane ^ 1);
    vec![
        size,
        lane,
        subgroup,
        subgroups,
        words().sum(),
        before.map(|(_, local)| local + 1).sum(),
        words().map(|word| word ^ 5).max().expect("not empty"),
        mates[0].1 + 1,
        partner.map_or(rows[local][8], |(_, local)| local + 1),
        mates.iter().filter(|(other, local)| local % 2 == 0 && *other < 32).count() as u32,
        u32::from(mates.iter().any(|(_, local)| *local == 3)) + 2,
        mates
            .iter()
            .filter(|(other, _)| *other <= lane)
            .fold(1, |product: u32, (other, _)| product.wrapping_mul(other % 2 + 1)),
    ]
}

pub(crate) fn subgroup_operations(gpu: &DeviceInfo) -> Case {
    let size = gpu.subgroup_size;
    Case::new("", SUBGROUPS)
        .words(&[&[u32::MAX; 64 * 12]])
        .one_workgroup()
        .rejected_without(Features::SUBGROUPS)
        .expect(move |out| {
            let rows: Vec<Vec<u32>> = out.words(0).chunks(12).map(<[u32]>::to_vec).collect();
            for (local, row) in rows.iter().enumerate() {
                ensure!(row[0] >= 1 && row[1] < row[0] && row[2] < row[3], "{row:?}");
                ensure_eq!(row[3], 64u32.div_ceil(row[0]));
                ensure!(row[0] <= 128 && size >= 1, "{row:?}");
                ensure_eq!(*row, subgroup_row(&rows, local), "invocation {local}");
            }
            Ok(())
        })
}

pub(crate) fn rejects_workgroups_beyond_limits(gpu: &DeviceInfo) -> Vec<Case> {
    let limits = gpu.limits;
    let kernel = |size: [u32; 3], words: u32| {
        let [x, y, z] = size;
        format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
            var<workgroup> words: array<u32, {words}>;
            @compute @workgroup_size({x}, {y}, {z})
            fn main(@builtin(local_invocation_index) i: u32) {{
                words[i % {words}u] = i;
                workgroupBarrier();
                out[i] = words[i % {words}u];
            }}"
        )
    };
    let [x, y, _] = limits.max_workgroup_size;
    let max = x.min(limits.max_workgroup_invocations);
    let words = limits.max_workgroup_memory / 4;
    let (wide, many) = ((x + 1).to_string(), (max * 2).to_string());
    let memory = limits.max_workgroup_memory.to_string();
    let mut cases = vec![
        Case::new("the largest", kernel([max, 1, 1], words))
            .output((0..max).collect())
            .one_workgroup(),
        Case::new("too wide", kernel([x + 1, 1, 1], 1)).expect_error(&["max_workgroup", &wide]),
        Case::new("too much memory", kernel([1, 1, 1], words + 1))
            .expect_error(&["max_workgroup_memory", &memory]),
    ];
    // Only the number of invocations is too large.
    if y >= 2 && 2 * max > limits.max_workgroup_invocations {
        cases.push(
            Case::new("too many invocations", kernel([max, 2, 1], 1))
                .expect_error(&["max_workgroup_invocations", &many]),
        );
    }
    cases
}

#[cfg(test)]
mod tests {
    use scry_gpu::Device;

    use super::*;

    #[test]
    fn rounding_twice_differs_at_each_middle() {
        let numbers = near_middles();
        let twice = |x: &f64| f16::from_f32(*x as f32);
        for around in numbers[..12].chunks(3) {
            assert!(around.iter().any(|x| nearest_f16(*x) != twice(x)), "{around:?}");
        }
    }

    #[test]
    fn missing_additions_are_noticed() {
        let accepts = |x: f64| product_plus_tenth().accepts(Ty::F64, x.to_bits());
        let [a, b] = F64_OPERANDS;
        assert!(accepts(a * b + 0.1) && accepts(a.mul_add(b, 0.1)));
        assert!(!accepts(a * b));
    }

    #[test]
    fn invalid_workgroups_exceed_a_limit() {
        let mut gpu = Device::open("cpu").expect("the CPU device is built in").info().clone();
        let names = |gpu: &DeviceInfo| -> Vec<String> {
            rejects_workgroups_beyond_limits(gpu).into_iter().map(|case| case.name).collect()
        };
        assert!(names(&gpu).contains(&"too many invocations".to_owned()));
        let invocations = gpu.limits.max_workgroup_invocations;
        gpu.limits.max_workgroup_size = [invocations / 2; 3];
        assert!(!names(&gpu).contains(&"too many invocations".to_owned()), "they are allowed");
        gpu.limits.max_workgroup_size = [invocations, 1, 1];
        assert!(!names(&gpu).contains(&"too many invocations".to_owned()), "y is too large");
    }
}
