//! Overrides and immediates.

use scry_gpu::{CompileOptions, DType, DeviceInfo, Launch};

use crate::case::{Case, Data};
use crate::check::ensure_eq;

const OVERRIDES: &str = "
    override COUNT: u32 = 3u;
    @id(7) override SCALE: f32;
    @id(12) override FLAG: bool = true;
    override OFFSET: i32 = -2;
    override DOUBLED = COUNT * 2u;
    override WIDTH: u32 = 4u;
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> words: array<u32, COUNT + 1>;

    @compute @workgroup_size(WIDTH, 2)
    fn main(@builtin(local_invocation_index) local: u32) {
        if local == 0u { words[COUNT] = 9u; }
        workgroupBarrier();
        if local == 0u {
            out[0] = COUNT;
            out[1] = u32(SCALE * 10.0);
            out[2] = u32(FLAG);
            out[3] = bitcast<u32>(OFFSET);
            out[4] = DOUBLED;
            out[5] = words[COUNT];
        }
        out[6u + local] = 1u;
    }";

/// Creates a case that checks the overrides' values and the workgroup size, `size`.
fn overridden(options: CompileOptions, want: [i32; 6], size: [u32; 3]) -> Case {
    let mut case = Case::new(format!("{options:?}"), OVERRIDES)
        .buffer(Data::zeros(DType::U32, 6 + 64))
        .one_workgroup()
        .expect(move |out| {
            ensure_eq!(out.words(0)[..6], want.map(|word| word as u32));
            ensure_eq!(out.words(0)[6..].iter().sum::<u32>(), size.iter().product::<u32>());
            Ok(())
        });
    case.options = options;
    case.workgroup_size = Some(size);
    case
}

pub(crate) fn overrides_by_name_and_by_id(_: &DeviceInfo) -> Vec<Case> {
    let options = CompileOptions::new;
    let doubles = options()
        .set("COUNT", 100.0)
        .set("7", 0.5)
        .set("12", 0.0)
        .set("OFFSET", -2_147_483_648.0)
        .set("WIDTH", 16.0);
    let typed = options()
        .set("COUNT", u32::MAX / (1 << 20))
        .set("SCALE", 2.5f32)
        .set("FLAG", false)
        .set("OFFSET", i32::MIN)
        .set("WIDTH", 8);
    let named = options().set("SCALE", 1.0).set("FLAG", 0.0).set("DOUBLED", 1.0);
    vec![
        overridden(options().set("7", 2.5), [3, 25, 1, -2, 6, 9], [4, 2, 1]),
        overridden(doubles, [100, 5, 0, i32::MIN, 200, 9], [16, 2, 1]),
        overridden(named, [3, 10, 0, -2, 1, 9], [4, 2, 1]),
        overridden(typed, [4095, 25, 0, i32::MIN, 8190, 9], [8, 2, 1]),
    ]
}

pub(crate) fn override_errors_name_their_cause(_: &DeviceInfo) -> Vec<Case> {
    let scale = || CompileOptions::new().set("SCALE", 1.0);
    let cases: [(CompileOptions, &[&str]); 12] = [
        (CompileOptions::new(), &["SCALE"]),
        (scale().set("MISSING", 1.0), &["MISSING"]),
        (scale().set("13", 1.0), &["13"]),
        (scale().set("OFSET", 1), &["no override `OFSET`", "`DOUBLED`", "mean `OFFSET`?"]),
        (scale().set("COUNT", true), &["`COUNT` of type u32 cannot be true: give a number"]),
        (scale().set("FLAG", 2), &["`FLAG` (@id(12)) of type bool cannot be 2: give true or"]),
        (scale().set("COUNT", -1.0), &["COUNT", "-1"]),
        (scale().set("COUNT", 1.5), &["COUNT", "1.5"]),
        (scale().set("COUNT", 4_294_967_296.0), &["COUNT", "4294967296"]),
        (scale().set("OFFSET", f64::NAN), &["OFFSET", "NaN"]),
        (scale().set("WIDTH", 0.0), &["@workgroup_size", "zero"]),
        (scale().set("WIDTH", 1e6), &["@workgroup_size", "16384"]),
    ];
    let case = |(options, parts): (CompileOptions, &[&str])| {
        let case = Case::new(format!("{options:?}"), OVERRIDES).expect_error(parts);
        Case { options, ..case }
    };
    cases.map(case).into()
}

pub(crate) fn scalar_immediates(_: &DeviceInfo) -> Vec<Case> {
    let source = "
        var<immediate> factor: f32;
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(4)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= factor; }";
    let case = |name: &str| Case::new(name, source).buffer(Data::floats(&[1.0, 2.0, 3.0, 4.0]));
    let launch = || Launch::invocations(4);
    let floats = |floats: [f32; 4]| floats.map(f32::to_bits).into();
    let rejected = |launch: Launch, parts: &[&str]| {
        let initial = floats([1.0, 2.0, 3.0, 4.0]);
        case(&parts.join(", ")).launch(launch).expect_error(parts).expect_words(0, initial)
    };
    vec![
        // Three launches in sequence, each with its own value.
        [2.0f32, 10.0, 0.5]
            .iter()
            .fold(case("in sequence"), |case, factor| case.launch(launch().immediates(factor)))
            .expect_words(0, floats([10.0, 20.0, 30.0, 40.0])),
        rejected(launch(), &["factor"]),
        rejected(launch().immediates(&7u32), &["factor", "u32", "f32"]),
        rejected(launch().immediates(&[1.0f32; 2]), &["factor", "8", "4"]),
        rejected(launch().immediate_bytes(vec![0; 3]), &["factor", "3", "4"]),
        case("bytes")
            .launch(launch().immediate_bytes(2.0f32.to_ne_bytes()))
            .expect_words(0, floats([2.0, 4.0, 6.0, 8.0])),
    ]
}

pub(crate) fn rejects_undeclared_immediates(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1) fn main() { out[0] = 1u; }";
    Case::new("", source)
        .buffer(Data::zeros(DType::U32, 1))
        .launch(Launch::invocations(1).immediates(&5u32))
        .expect_error(&["main", "immediate"])
        .expect_words(0, vec![0])
}

/// Returns a kernel with an immediate block of `words` words. Each workgroup writes their weighted
/// sum plus its index.
fn immediate_block(words: usize) -> String {
    format!(
        "struct Block {{ words: array<u32, {words}> }}
        var<immediate> block: Block;
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main(@builtin(workgroup_id) group: vec3<u32>) {{
            var sum = 0u;
            for (var i = 0u; i < {words}u; i++) {{ sum += block.words[i] * (i + 1u); }}
            out[group.x] = sum + group.x;
        }}"
    )
}

pub(crate) fn full_immediates_with_linearised_launch(gpu: &DeviceInfo) -> Vec<Case> {
    let words = gpu.limits.max_immediates as usize / 4;
    let block: Vec<u32> = (0..words as u32).map(|i| i * i + 5).collect();
    let sum: u32 = (1..).zip(&block).map(|(i, word)| i * word).sum();
    let bytes: Vec<u8> = block.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let case = |groups: u32| {
        Case::new(format!("{groups} workgroups"), immediate_block(words))
            .buffer(Data::zeros(DType::U32, groups as usize))
            .launch(Launch::workgroups([groups, 1, 1]).immediate_bytes(bytes.clone()))
            .expect_words(0, (0..groups).map(|group| sum + group).collect())
    };
    let max = (words * 4).to_string();
    let beyond = Case::new("one word more", immediate_block(words + 1));
    vec![case(3), case(70_001), beyond.expect_error(&["max_immediates", &max])]
}
