//! Optional features: correct where the device has them, an error that names them otherwise.

use scry_gpu::{BackendKind, Device, Features, GpuError, Launch, f16};

use crate::harness::{assert_says, on_each_device, one_workgroup, refused, run_words, succeed};

/// Runs a test where a device has a feature, and checks the error otherwise.
fn where_present(feature: Features, source: &str, test: impl Fn(&Device)) {
    on_each_device(|gpu| {
        if gpu.info().features.contains(feature) {
            succeed(gpu.compile(source));
            return test(gpu);
        }
        eprintln!("{} has no {feature}: the error is tested", gpu.name());
        check_refusal(gpu, feature, source);
    });
}

fn check_refusal(gpu: &Device, feature: Features, source: &str) {
    let error = gpu.compile(source).expect_err("the device lacks the feature");
    assert_says(&error.to_string(), &["main", &feature.to_string(), gpu.name()]);
    let GpuError::Unsupported(error) = error else {
        panic!("not a capability error: {error}");
    };
    assert!(error.features().contains(feature));
}

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

#[test]
fn half_precision_floats() {
    where_present(Features::F16, F16, |gpu| {
        let row = [1.0, 0.0, 0.0, 0.0, 2.0, 3.0, 4.0, 9.0, 5.0, 6.0, 7.0, 8.0].map(f16::from_f32);
        let row = succeed(succeed(gpu.upload(&row)).untyped().view_as(None));
        let out = succeed(gpu.alloc::<f16>(6));
        let words = succeed(gpu.upload(&[10u32, 0, 0, 1]));
        succeed(gpu.dispatch(F16, &[&row, &out, &words], 1));
        let got: Vec<f32> = succeed(out.download()).iter().map(|half| half.to_f32()).collect();
        assert_eq!(got, [2.5, 12.0, 7.0, 2.5, 2048.0, 0.0]);
        assert_eq!(succeed(words.download())[1..3], [2, 3.0f32.to_bits()]);
        let row: Vec<u32> = crate::harness::download_words(&row);
        let halves = |at: usize| {
            [row[at] as u16, (row[at] >> 16) as u16].map(f16::from_bits).map(f16::to_f32)
        };
        assert_eq!([halves(2), halves(3)], [[4.0, 3.0], [2.0, 9.0]]);
    });
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

#[test]
fn integers_of_16_bits_wrap() {
    where_present(Features::I16, I16, |gpu| {
        let a = succeed(gpu.upload(&[-32768i16, -1, 5]));
        let b = succeed(gpu.upload(&[65535u16, 3]));
        let out = succeed(gpu.upload(&[0u32, 0, 0, 0, 0, 0, 0, 0x1234_5678]));
        succeed(gpu.dispatch(I16, &[&a, &b, &out], 1));
        let want = [2, 65533, 32767, 32763, 5, 0x5678, 1, 0x1234_5678];
        assert_eq!(succeed(out.download()), want);
    });
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

#[test]
fn integers_of_64_bits() {
    where_present(Features::I64, I64, |gpu| {
        let a = [i64::MIN, -1, -123_456_789_012_345, 0];
        let b = [0xffff_ffff_ffff_fff0u64, 0x1_0000_0001, 0];
        let buffers = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
        let signed = succeed(gpu.alloc::<i64>(10));
        let unsigned = succeed(gpu.alloc::<u64>(8));
        succeed(gpu.dispatch(I64, &[&buffers.0, &buffers.1, &signed, &unsigned], 1));
        let want = [
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
        assert_eq!(succeed(signed.download()), want);
        let low = b[0] & 0xffff_ffff;
        let want = [
            b[0].wrapping_add(b[1]),
            b[0] / b[1],
            b[0] << 40,
            low.wrapping_mul(b[1]),
            b[0],
            b[0] ^ 0xff,
            b[0],
            0,
        ];
        assert_eq!(succeed(unsigned.download()), want);
    });
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

#[test]
fn double_precision_floats() {
    where_present(Features::F64, F64, |gpu| {
        let a = [1e15 + 0.5, 0.123_456_789_012_345];
        let input = succeed(gpu.upload(&a));
        let out = succeed(gpu.alloc::<f64>(7));
        succeed(gpu.dispatch(F64, &[&input, &out], 1));
        let got = succeed(out.download());
        let exact = [
            a[0] + a[1],
            f64::NAN,
            a[0] / 4.0,
            2_147_483_647.0,
            0.0,
            f64::from(a[0] as f32),
            f64::NAN,
        ];
        for (i, (got, want)) in got.iter().zip(exact).enumerate() {
            assert!(want.is_nan() || *got == want, "out[{i}] is {got}, not {want}");
        }
        // A product and a sum may be fused, or not.
        assert!((got[1] - a[0].mul_add(a[1], 0.1)).abs() < 0.1);
        assert!((got[6] - 2f64.mul_add(a[1], a[0])).abs() <= 0.25);
    });
}

/// Converts each number to f16, and that to f32.
const F64_TO_F16: &str = "
    enable f16;
    @group(0) @binding(0) var<storage, read> a: array<f64>;
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;

    @compute @workgroup_size(32)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&a) { out[id.x] = f32(f16(a[id.x])); }
    }";

/// Returns the nearest f16, ties to even, by its distance.
fn nearest_half(x: f64) -> f64 {
    let about = f16::from_f32(x as f32).to_bits();
    let around = [about.saturating_sub(1), about, about + 1];
    let distance = |bits: &u16| (f16::from_bits(*bits).to_f64() - x).abs();
    let nearer = |a: &u16, b: &u16| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)));
    let nearest = around.into_iter().min_by(nearer).expect("there are three");
    f16::from_bits(nearest).to_f64()
}

/// Scry's own compilers round to nearest even; a driver may round to the other neighbour.
#[test]
fn f64_to_f16_rounds_once() {
    // Slightly above and below the middle between two f16 values: f32 cannot distinguish these.
    let middles = [1.0 + 2f64.powi(-11), 1.0 + 3.0 * 2f64.powi(-11), 4101.0 / 2.0, 1e-3];
    let near = |x: f64| [x, x * (1.0 + 2f64.powi(-40)), x * (1.0 - 2f64.powi(-40))];
    let mut numbers: Vec<f64> = middles.into_iter().flat_map(near).collect();
    numbers.extend([0.0, 1.0, 0.1, 65504.0, 65503.9]);
    numbers.extend(numbers.clone().iter().map(|x| -x));
    let want: Vec<f64> = numbers.iter().copied().map(nearest_half).collect();
    let twice = numbers.iter().map(|x| f16::from_f32(*x as f32).to_f64());
    assert_ne!(want, twice.collect::<Vec<f64>>());
    where_present(Features::F64 | Features::F16, F64_TO_F16, |gpu| {
        let input = succeed(gpu.upload(&numbers));
        let out = succeed(gpu.alloc::<f32>(numbers.len()));
        succeed(gpu.dispatch(F64_TO_F16, &[&input, &out], numbers.len()));
        for ((x, got), want) in numbers.iter().zip(succeed(out.download())).zip(&want) {
            let got = f64::from(got);
            let is_near = (got - x).abs() < x.abs() * 2f64.powi(-10);
            let is_right = if is_compiled_by_us(gpu) { got == *want } else { is_near || got == *x };
            assert!(is_right, "{x:e} is {got:e}, not {want:e}");
        }
    });
}

fn is_compiled_by_us(gpu: &Device) -> bool {
    matches!(gpu.backend_kind(), BackendKind::Cpu | BackendKind::Cuda)
}

const F32_ATOMICS: &str = "
    @group(0) @binding(0) var<storage, read_write> sums: array<atomic<f32>, 3>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        atomicAdd(&sums[0], 0.5);
        atomicSub(&sums[1], 1.0);
        if atomicExchange(&sums[2], 2.0) == 7.0 { atomicAdd(&sums[0], 100.0); }
    }";

#[test]
fn atomic_floats() {
    where_present(Features::F32_ATOMICS, F32_ATOMICS, |gpu| {
        let sums = succeed(gpu.upload(&[0.0f32, 0.0, 7.0]));
        succeed(gpu.dispatch(F32_ATOMICS, &[&sums], 64 * 50));
        // Multiples of 0.5 below 2^23: no sum is rounded, in any order.
        assert_eq!(succeed(sums.download()), [1700.0, -3200.0, 2.0]);
    });
}

const I64_ATOMICS: &str = "
    @group(0) @binding(0) var<storage, read_write> sums: array<atomic<u64>, 3>;

    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        atomicAdd(&sums[0], 0x100000001lu);
        atomicMax(&sums[1], u64(id.x) << 33u);
        atomicOr(&sums[2], 1lu << (id.x % 64u));
    }";

#[test]
fn atomic_integers_of_64_bits() {
    where_present(Features::I64_ATOMICS, I64_ATOMICS, |gpu| {
        let sums = succeed(gpu.alloc::<u64>(3));
        succeed(gpu.dispatch(I64_ATOMICS, &[&sums], 6400));
        let want = [6400 * 0x1_0000_0001, 6399 << 33, u64::MAX];
        assert_eq!(succeed(sums.download()), want);
    });
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
        panic!("a row has twelve words")
    };
    let members = |row: &&Vec<u32>| row[2] == subgroup;
    let mut mates: Vec<(u32, u32)> = (0..)
        .zip(rows)
        .filter(|(_, row)| members(row))
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

#[test]
fn subgroup_operations() {
    where_present(Features::SUBGROUPS, SUBGROUPS, |gpu| {
        let words = run_words(gpu, SUBGROUPS, &[], 64 * 12, one_workgroup());
        let rows: Vec<Vec<u32>> = words.chunks(12).map(<[u32]>::to_vec).collect();
        let size = gpu.subgroup_size();
        for (local, row) in rows.iter().enumerate() {
            assert!(row[0] >= 1 && row[1] < row[0] && row[2] < row[3], "{row:?}");
            assert_eq!(row[3], 64u32.div_ceil(row[0]));
            assert!(row[0] <= 128 && size >= 1);
            assert_eq!(*row, subgroup_row(&rows, local), "invocation {local}");
        }
    });
}

/// The null device has exactly the features it is configured with: other features are rejected here
/// even if all present devices have them.
#[test]
fn missing_features_are_named() {
    let mut info = scry_gpu::testing::null_info();
    info.features = Features::empty();
    let (gpu, _) = scry_gpu::testing::observed(info);
    for (feature, source) in [
        (Features::F16, F16),
        (Features::I16, I16),
        (Features::I64, I64),
        (Features::F64, F64),
        (Features::F32_ATOMICS, F32_ATOMICS),
        (Features::I64_ATOMICS, I64_ATOMICS),
        (Features::SUBGROUPS, SUBGROUPS),
    ] {
        check_refusal(&gpu, feature, source);
    }
}

#[test]
fn rejects_workgroups_beyond_limits() {
    on_each_device(|gpu| {
        let limits = gpu.info().limits;
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
        let [x, ..] = limits.max_workgroup_size;
        let all = limits.max_workgroup_invocations;
        let most = [x.min(all), 1, 1];
        let words = limits.max_workgroup_memory / 4;
        let got =
            run_words(gpu, &kernel(most, words), &[], most[0] as usize, Launch::workgroups([1; 3]));
        let want: Vec<u32> = (0..most[0]).collect();
        assert_eq!(got, want);
        let text = refused(gpu.compile(&kernel([x + 1, 1, 1], 1)));
        assert_says(&text, &["max_workgroup", &(x + 1).to_string()]);
        let text = refused(gpu.compile(&kernel([x.min(all), 2, 1], 1)));
        assert_says(&text, &["max_workgroup_invocations", &(x.min(all) * 2).to_string()]);
        let text = refused(gpu.compile(&kernel([1, 1, 1], words + 1)));
        assert_says(&text, &["max_workgroup_memory", &limits.max_workgroup_memory.to_string()]);
    });
}
