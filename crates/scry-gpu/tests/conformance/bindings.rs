//! Uniforms, groups with gaps, many bindings, slices, and rejected bindings.

use std::fmt::Write as _;

use scry_gpu::{Binding, Buffer, Device, Element};

use crate::harness::{assert_says, on_each_device, refused, succeed};

const ADD_UNIFORM: &str = "
    struct Params { factor: vec4<f32>, offset: vec3<f32>, count: u32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage, read_write> data: array<f32>;

    @compute @workgroup_size(8)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < params.count {
            data[id.x] = data[id.x] * params.factor.w + params.offset.z;
        }
    }";

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Params {
    factor: [f32; 4],
    offset: [f32; 3],
    count: u32,
}

#[test]
fn uniform_structures() {
    on_each_device(|gpu| {
        let params = Params { factor: [1.0, 2.0, 3.0, 4.0], offset: [5.0, 6.0, 7.0], count: 10 };
        let params = succeed(gpu.upload(&[params]));
        let data = succeed(gpu.upload(&[1.0f32; 16]));
        succeed(gpu.dispatch(ADD_UNIFORM, &[&params, &data], 16));
        let mut want = [11.0; 16];
        want[10..].fill(1.0);
        assert_eq!(succeed(data.download()), want);
    });
}

#[test]
fn uniform_scalars_arrays_and_matrices() {
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
    on_each_device(|gpu| {
        let n = succeed(gpu.upload(&[1000u32]));
        let table = succeed(gpu.upload(&(0..12).collect::<Vec<u32>>()));
        let columns = [[1.0f32, 2.0, 3.0, 0.0], [4.0, 5.0, 6.0, 0.0], [7.0, 8.0, 9.0, 0.0]];
        let m = succeed(gpu.upload(&columns));
        let out = succeed(gpu.alloc::<u32>(6));
        succeed(gpu.dispatch(source, &[&n, &table, &m, &out], 1));
        assert_eq!(succeed(out.download()), [1000, 1005, 1010, 2, 5, 8]);
    });
}

#[test]
fn groups_and_numbers_with_gaps() {
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
    on_each_device(|gpu| {
        let a = succeed(gpu.upload(&[1u32, 2]));
        let c = succeed(gpu.upload(&[3u32, 4]));
        let b = succeed(gpu.upload(&[5u32]));
        let out = succeed(gpu.alloc::<u32>(2));
        // By group, then by binding number; bindings that the entry point does not use are omitted.
        succeed(gpu.dispatch(source, &[&a, &c, &b, &out], 2));
        assert_eq!(succeed(out.download()), [10503, 20504]);
    });
}

/// A kernel with these numbers of storage buffers and uniforms, whose last storage buffer is the
/// output, and its launch: the inputs have different contents.
fn check_many(gpu: &Device, storage: u32, uniforms: u32) {
    // A group number above those of the inputs.
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
        .expect("a string");
        write!(sum, " + {}u * s{i}[id.x]", i + 1).expect("a string");
    }
    for i in 0..uniforms {
        writeln!(source, "@group({UNIFORMS}) @binding({i}) var<uniform> u{i}: vec4<u32>;")
            .expect("a string");
        write!(sum, " + {}u * u{i}.y", i + 100).expect("a string");
    }
    write!(
        source,
        "@group({OUTPUT}) @binding(9) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ out[id.x] = {sum}; }}"
    )
    .expect("a string");
    let input = |i: u32| succeed(gpu.upload(&[i * i + 1, i * i + 2]));
    let uniform = |i: u32| succeed(gpu.upload(&[0, i * 3 + 1, 0, 0]));
    let inputs: Vec<Buffer<u32>> =
        (0..storage - 1).map(input).chain((0..uniforms).map(uniform)).collect();
    let out = succeed(gpu.alloc::<u32>(2));
    let mut bindings: Vec<&dyn Binding> = inputs.iter().map(|b| b as &dyn Binding).collect();
    bindings.push(&out);
    succeed(gpu.dispatch(&source, &bindings, 2));
    let want = |at: u32| {
        let storage = (0..storage - 1).map(|i| (i + 1) * (i * i + 1 + at)).sum::<u32>();
        storage + (0..uniforms).map(|i| (i + 100) * (i * 3 + 1)).sum::<u32>()
    };
    assert_eq!(succeed(out.download()), [want(0), want(1)], "{storage} and {uniforms}");
}

/// Up to the device's limit, which on most is above that of push descriptors.
#[test]
fn many_bindings() {
    on_each_device(|gpu| {
        let limits = gpu.info().limits;
        let storage = limits.max_storage_bindings.min(100);
        let uniforms = limits.max_uniform_bindings.min(20);
        check_many(gpu, 21.min(storage), 0);
        check_many(gpu, storage, 1);
        check_many(gpu, storage, uniforms);
    });
}

#[test]
fn rejects_one_binding_too_many() {
    on_each_device(|gpu| {
        let most = gpu.info().limits.max_storage_bindings;
        if most > 1000 {
            eprintln!("skipped: {} supports {most} bindings", gpu.name());
            return;
        }
        let declare = |i| format!("@group(0) @binding({i}) var<storage, read_write> s{i}: u32;\n");
        let mut source: String = (0..=most).map(declare).collect();
        source += "@compute @workgroup_size(1) fn main() {";
        source += &(0..=most).map(|i| format!("s{i} = 1u;")).collect::<String>();
        source += "}";
        let text = refused(gpu.compile(&source));
        assert_says(&text, &["max_storage_bindings", &most.to_string(), &(most + 1).to_string()]);
    });
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

#[test]
fn slices_as_bindings() {
    on_each_device(|gpu| {
        let step = gpu.info().binding_alignment as usize / 4;
        let step = step.max(1);
        let numbers: Vec<u32> = (0..step as u32 * 8).collect();
        let data = succeed(gpu.upload(&numbers));
        let input = succeed(data.slice(step..step * 2 + 3));
        let output = succeed(data.slice(step * 4..step * 6));
        succeed(gpu.dispatch(COPY, &[&input, &output], step * 4));
        let mut want = numbers.clone();
        let len = step + 3;
        for i in 0..len.min(step * 2) {
            want[step * 4 + i] = (step + i + len * 1000) as u32;
        }
        assert_eq!(succeed(data.download()), want);
        assert_eq!(succeed(output.download()), want[step * 4..step * 6]);
    });
}

#[test]
fn rejects_unaligned_slices() {
    on_each_device(|gpu| {
        let alignment = gpu.info().binding_alignment;
        if alignment <= 4 {
            eprintln!("skipped: {} supports the offset of every word", gpu.name());
            return;
        }
        let data = succeed(gpu.upload(&[5u32; 64]));
        let output = succeed(gpu.alloc::<u32>(64));
        let slice = succeed(data.slice(1..9));
        let text = refused(gpu.dispatch(COPY, &[&slice, &output], 8));
        assert_says(&text, &["input", "4", &alignment.to_string()]);
        assert_eq!(succeed(output.download()), [0; 64]);
    });
}

#[test]
fn rejects_bindings_overlapping_written_ones() {
    on_each_device(|gpu| {
        let step = (gpu.info().binding_alignment as usize / 4).max(1);
        let data = succeed(gpu.upload(&vec![5u32; step * 8]));
        let text = refused(gpu.dispatch(COPY, &[&data, &data], 8));
        assert_says(&text, &["input", "output", "share"]);
        let front = succeed(data.slice(..step * 4 + 1));
        let back = succeed(data.slice(step * 4..));
        let text = refused(gpu.dispatch(COPY, &[&front, &back], 8));
        assert_says(&text, &["input", "output"]);
        let text = refused(gpu.dispatch(COPY, &[&back, &front], 8));
        assert_says(&text, &["input", "output"]);
        assert_eq!(succeed(data.download()), vec![5; step * 8]);
        // Adjacent slices are accepted, and so are two readers.
        let front = succeed(data.slice(..step * 4));
        succeed(gpu.dispatch(COPY, &[&front, &back], step * 4));
        let sum = "
            @group(0) @binding(0) var<storage, read> a: array<u32>;
            @group(0) @binding(1) var<storage, read> b: array<u32>;
            @group(0) @binding(2) var<storage, read_write> c: array<u32>;
            @compute @workgroup_size(1) fn main() { c[0] = a[0] + b[0]; }";
        let c = succeed(gpu.alloc::<u32>(1));
        succeed(gpu.dispatch(sum, &[&data, &data, &c], 1));
        assert_eq!(succeed(c.download()), [10]);
    });
}

#[test]
fn rejects_wrong_binding_counts_and_sizes() {
    on_each_device(|gpu| {
        let a = succeed(gpu.upload(&[5u32; 16]));
        let b = succeed(gpu.alloc::<u32>(16));
        assert_says(&refused(gpu.dispatch(COPY, &[&a], 16)), &["1", "2"]);
        assert_says(&refused(gpu.dispatch(COPY, &[&a, &b, &a], 16)), &["3", "2"]);
        let fixed = "
            @group(0) @binding(0) var<storage, read_write> table: array<u32, 20>;
            @compute @workgroup_size(1) fn main() { table[19] = 1u; }";
        let text = refused(gpu.dispatch(fixed, &[&a], 1));
        assert_says(&text, &["table", "64", "80"]);
        let empty = succeed(gpu.alloc::<u32>(0));
        assert_says(&refused(gpu.dispatch(COPY, &[&empty, &b], 16)), &["input"]);
        assert_eq!(succeed(b.download()), [0; 16]);
    });
}
