//! Uniforms, groups with gaps, many bindings, slices, and rejected bindings.

use std::fmt::Write as _;
use std::ops::Range;

use scry_gpu::{DType, DeviceInfo, Launch};

use crate::case::{BufferBinding, Case, Data};
use crate::ty::Ty;

/// Returns a buffer of element type `u32`, which can be bound only to types of `u32`.
fn words(words: &[u32]) -> Data {
    Data::words(words).typed(DType::U32)
}

/// Creates a case that launches `size` invocations on buffers.
fn dispatch(name: &str, source: &str, buffers: Vec<Data>, size: usize) -> Case {
    let case = Case::new(name, source).launch(Launch::invocations(size));
    buffers.into_iter().fold(case, Case::buffer)
}

pub(crate) fn uniform_scalars_arrays_and_matrices(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<uniform> n: u32;
        @group(0) @binding(1) var<uniform> table: array<vec4<u32>, 3>;
        @group(0) @binding(2) var<uniform> m: mat3x3<f32>;
        @group(0) @binding(3) var<storage, read_write> out: array<u32>;

        @compute @workgroup_size(1)
        fn main() {
            for (var i = 0u; i < 3u; i++) {
                out[i] = n + table[i][i];
                out[3u + i] = u32(m[i].y);
            }
        }";
    // Columns of three are padded to four.
    let m = [1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0].map(|x| Ty::F32.integer_bits(x));
    let table: Vec<u32> = (0..12).collect();
    let out = Data::zeros(DType::U32, 6);
    let buffers = vec![words(&[1000]), words(&table), Data::values(Ty::F32, &m), out];
    dispatch("", source, buffers, 1).expect_words(3, vec![1000, 1005, 1010, 2, 5, 8])
}

/// The order of arguments is by group, then by binding number. Bindings that the entry point does
/// not use have no argument.
pub(crate) fn groups_and_numbers_with_gaps(_: &DeviceInfo) -> Case {
    let source = "
        @group(3) @binding(7) var<storage, read_write> out: array<u32>;
        @group(1) @binding(90) var<uniform> b: u32;
        @group(0) @binding(5) var<storage, read> a: array<u32>;
        @group(0) @binding(1000) var<storage, read> unused: array<u32>;
        @group(1) @binding(2) var<storage, read> c: array<u32>;

        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            out[id.x] = a[id.x] * 10000u + b * 100u + c[id.x];
        }";
    let out = Data::zeros(DType::U32, 2);
    let buffers = vec![words(&[1, 2]), words(&[3, 4]), words(&[5]), out];
    dispatch("", source, buffers, 2).expect_words(3, vec![10503, 20504])
}

/// Creates a case with this many storage buffers and uniforms. The last storage buffer is the
/// output; the inputs differ in their contents.
fn many(storage: u32, uniforms: u32) -> Case {
    // The uniforms' group, above those of the storage buffers.
    const UNIFORMS: u32 = 1 << 20;
    const OUTPUT: u32 = UNIFORMS + 1;
    let mut source = String::new();
    let mut sum = String::from("0u");
    for i in 0..storage - 1 {
        writeln!(
            source,
            "@group({}) @binding({}) var<storage, read> s{i}: array<u32>;",
            i / 8,
            i % 8 * 3
        )
        .expect("writing to a String cannot fail");
        write!(sum, " + {}u * s{i}[id.x]", i + 1).expect("writing to a String cannot fail");
    }
    for i in 0..uniforms {
        writeln!(source, "@group({UNIFORMS}) @binding({i}) var<uniform> u{i}: vec4<u32>;")
            .expect("writing to a String cannot fail");
        write!(sum, " + {}u * u{i}.y", i + 100).expect("writing to a String cannot fail");
    }
    write!(
        source,
        "@group({OUTPUT}) @binding(9) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ out[id.x] = {sum}; }}"
    )
    .expect("writing to a String cannot fail");
    let inputs = (0..storage - 1).map(|i| words(&[i * i + 1, i * i + 2]));
    let uniform = (0..uniforms).map(|i| words(&[0, i * 3 + 1, 0, 0]));
    let out = Data::zeros(DType::U32, 2);
    let want = |at: u32| {
        let storage = (0..storage - 1).map(|i| (i + 1) * (i * i + 1 + at)).sum::<u32>();
        storage + (0..uniforms).map(|i| (i + 100) * (i * 3 + 1)).sum::<u32>()
    };
    let buffers = inputs.chain(uniform).chain([out]).collect();
    let last = (storage + uniforms) as usize - 1;
    dispatch(&format!("{storage} and {uniforms}"), &source, buffers, 2)
        .expect_words(last, vec![want(0), want(1)])
}

/// Up to the device's limits, but at most 100 storage buffers and 20 uniform buffers: on most
/// devices more than the maximum number of push descriptors.
pub(crate) fn many_bindings(gpu: &DeviceInfo) -> Vec<Case> {
    let storage = gpu.limits.max_storage_bindings.min(100);
    let uniforms = gpu.limits.max_uniform_bindings.min(20);
    vec![many(21.min(storage), 0), many(storage, 1), many(storage, uniforms)]
}

pub(crate) fn rejects_one_binding_too_many(gpu: &DeviceInfo) -> Case {
    let max = gpu.limits.max_storage_bindings;
    if max > 1000 {
        return Case::skipped("", format!("the device supports {max} bindings"));
    }
    let declare = |i| format!("@group(0) @binding({i}) var<storage, read_write> s{i}: u32;\n");
    let mut source: String = (0..=max).map(declare).collect();
    source += "@compute @workgroup_size(1) fn main() {";
    source += &(0..=max).map(|i| format!("s{i} = 1u;")).collect::<String>();
    source += "}";
    let says = ["max_storage_bindings", &max.to_string(), &(max + 1).to_string()];
    Case::new("", source).expect_error(&says)
}

const COPY: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;

    @compute @workgroup_size(16)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < min(arrayLength(&input), arrayLength(&output)) {
            output[id.x] = input[id.x] + arrayLength(&input) * 1000u;
        }
    }";

/// Creates a case of [`COPY`] from one part of a buffer to another; the parts are in words.
fn copy(name: &str, words: &[u32], parts: [Range<usize>; 2], size: usize) -> Case {
    let mut case = dispatch(name, COPY, vec![self::words(words)], size);
    case.bindings = parts.map(|part| BufferBinding::part(0, 4 * part.start..4 * part.end)).into();
    case
}

/// Returns the required alignment of slices, in words.
fn alignment(gpu: &DeviceInfo) -> usize {
    (gpu.binding_alignment as usize / 4).max(1)
}

pub(crate) fn slices_as_bindings(gpu: &DeviceInfo) -> Case {
    let align = alignment(gpu);
    let numbers: Vec<u32> = (0..align as u32 * 8).collect();
    let (input, output) = (align..align * 2 + 3, align * 4..align * 6);
    let mut want = numbers[output.clone()].to_vec();
    let len = align + 3;
    for (i, word) in want.iter_mut().enumerate().take(len) {
        *word = (align + i + len * 1000) as u32;
    }
    copy("", &numbers, [input.clone(), output], align * 4)
        .expect_words(0, numbers[input].to_vec())
        .expect_words(1, want)
}

pub(crate) fn rejects_unaligned_slices(gpu: &DeviceInfo) -> Case {
    let alignment = gpu.binding_alignment;
    if alignment <= 4 {
        return Case::skipped("", "the device supports the offset of every word");
    }
    let buffers = vec![words(&[5; 64]), Data::zeros(DType::U32, 64)];
    let mut case = dispatch("", COPY, buffers, 8);
    case.bindings[0] = BufferBinding::part(0, 4..36);
    case.expect_error(&["input", "4", &alignment.to_string()]).expect_words(1, vec![0; 64])
}

pub(crate) fn rejects_bindings_overlapping_written_ones(gpu: &DeviceInfo) -> Vec<Case> {
    let align = alignment(gpu);
    let fives = vec![5; align * 8];
    // `front` and `back` overlap by one word.
    let (whole, front, back) = (0..align * 8, 0..align * 4 + 1, align * 4..align * 8);
    let rejected = |name: &str, parts: [Range<usize>; 2], says: &[&str]| {
        let initial = [&fives[parts[0].clone()], &fives[parts[1].clone()]].map(<[u32]>::to_vec);
        let [first, second] = initial;
        copy(name, &fives, parts, 8)
            .expect_error(says)
            .expect_words(0, first)
            .expect_words(1, second)
    };
    let sum = "
        @group(0) @binding(0) var<storage, read> a: array<u32>;
        @group(0) @binding(1) var<storage, read> b: array<u32>;
        @group(0) @binding(2) var<storage, read_write> c: array<u32>;
        @compute @workgroup_size(1) fn main() { c[0] = a[0] + b[0]; }";
    let mut readers = dispatch("readers", sum, vec![words(&fives), Data::zeros(DType::U32, 1)], 1);
    readers.bindings = [0, 0, 1].map(BufferBinding::whole).into();
    let adjacent = [0..align * 4, back.clone()];
    let copied = 5 + align as u32 * 4 * 1000;
    vec![
        rejected("the same", [whole.clone(), whole], &["input", "output", "share"]),
        rejected("front and back", [front.clone(), back.clone()], &["input", "output"]),
        rejected("back and front", [back, front], &["input", "output"]),
        // Adjacent slices are accepted, and so are two readers.
        copy("adjacent", &fives, adjacent, align * 4).expect_words(1, vec![copied; align * 4]),
        readers.expect_words(2, vec![10]),
    ]
}

pub(crate) fn rejects_wrong_binding_counts_and_sizes(_: &DeviceInfo) -> Vec<Case> {
    let (a, b) = (|| words(&[5; 16]), || Data::zeros(DType::U32, 16));
    let rejected = |name: &str, buffers: Vec<Data>, says: &[&str]| {
        dispatch(name, COPY, buffers, 16).expect_error(says)
    };
    let fixed = "
        @group(0) @binding(0) var<storage, read_write> table: array<u32, 20>;
        @compute @workgroup_size(1) fn main() { table[19] = 1u; }";
    let empty = Data::zeros(DType::U32, 0);
    vec![
        rejected("one", vec![a()], &["1", "2"]),
        rejected("three", vec![a(), b(), a()], &["3", "2"]).expect_words(1, vec![0; 16]),
        dispatch("short", fixed, vec![a()], 1).expect_error(&["table", "64", "80"]),
        rejected("empty", vec![empty, b()], &["input"]).expect_words(1, vec![0; 16]),
    ]
}
