//! Kernels with hidden bindings compute what their source computes.

use scry_ir::{LinearisedGrid, Program, ShaderError, WgslKernel, WgslOptions};

use super::support::{Launch, check_with_tint, execute, lower, parse};
use scry_ir::kir::{Access, AddressSpace, Builder, Builtin, Place, Type};

/// Emits a kernel for a device; returns it and the program of its text.
fn emit(source: &str, options: WgslOptions) -> (WgslKernel, Program) {
    let emitted = parse(source).to_wgsl_for(true, |_| Ok::<_, ShaderError>(options));
    let kernel = emitted.unwrap_or_else(|error| panic!("{error}\n{source}"));
    check_with_tint(&kernel.source);
    let program = parse(&kernel.source);
    (kernel, program)
}

/// Interprets a program with trusted indices; returns its buffers.
fn run(program: &Program, groups: [u32; 3], buffers: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let launch =
        Launch { source: String::new(), buffers, immediates: vec![], groups, subgroup_size: 1 };
    execute(&lower(program, false), &launch).unwrap_or_else(|error| panic!("{error}"))
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

const IDS: &str = "
    @group(3) @binding(5) var<storage, read_write> out: array<u32>;
    @compute @workgroup_size(2)
    fn ids(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) count: vec3u,
           @builtin(local_invocation_index) local: u32) {
        let i = ((id.z * count.y + id.y) * count.x + id.x) * 2 + local;
        workgroupBarrier();
        out[i] = 1000 * id.z + 100 * id.y + 10 * id.x + local + 1;
    }";

#[test]
fn linearised_grids_have_logical_ids() {
    let groups = [5, 3, 2];
    let size = vec![0; 5 * 3 * 2 * 2 * 4];
    let expected = run(&parse(IDS), groups, vec![size.clone()]);
    let options = WgslOptions { linearised: true, ..WgslOptions::default() };
    let (_, program) = emit(IDS, options);
    // 30 workgroups in rows of 8, two of which are stacked along y.
    let grid = LinearisedGrid { groups, width: 8, height: 2, rows: 4, last_row_len: 6, padding: 0 };
    let found = run(&program, [8, 2, 3], vec![size, grid.to_bytes().to_vec()]);
    assert_eq!(found[0], expected[0]);
}

#[test]
fn complete_loops_report_nothing() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
            if id.x == 1 { return; }
            while x[0] < x[1] { x[0] += 1; }
        }";
    let options = WgslOptions { reports_aborted_loops: true, ..WgslOptions::default() };
    let (kernel, program) = emit(source, options);
    assert!(!kernel.is_finite);
    let found = run(&program, [2, 1, 1], vec![bytes(&[0, 9]), vec![0; 16]]);
    assert_eq!(found, [bytes(&[9, 9]), vec![0; 16]]);
    // Words that make the last loop end early, as a driver would.
    let found = run(&program, [1, 1, 1], vec![bytes(&[0, 9]), bytes(&[0, 0, 1, 0])]);
    assert_eq!(found[1][0], 1, "the report");
}

#[test]
fn immediates_are_read_from_uniforms() {
    let source = "
        struct Parameters { a: u32, b: vec3f, c: array<u32, 3> }
        var<immediate> parameters: Parameters;
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
            x[id.x] = parameters.a + u32(parameters.b.z) + parameters.c[id.x];
        }";
    let options = WgslOptions { immediates_in_uniform: true, ..WgslOptions::default() };
    let (kernel, program) = emit(source, options);
    let block = kernel.launch_block.expect("the kernel has immediates");
    assert_eq!((block.immediates_offset, block.size()), (0, 48));
    let mut words = [0; 12];
    (words[0], words[6]) = (100, 20.0f32.to_bits());
    words[7..10].copy_from_slice(&[1, 2, 3]);
    let found = run(&program, [3, 1, 1], vec![bytes(&[0; 3]), bytes(&words)]);
    assert_eq!(found[0], bytes(&[121, 122, 123]));
}

#[test]
fn loop_bounds_can_be_hidden() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main() {
            for (var i = 250u; i != 7u; i += 3u) { if x[0] > 900 { break; } x[0] += i; }
        }";
    let options = WgslOptions { hides_loop_bounds: true, ..WgslOptions::default() };
    let (kernel, program) = emit(source, options);
    assert!(kernel.source.contains("num_workgroups.x != 0u)"), "{}", kernel.source);
    let expected = run(&parse(source), [1; 3], vec![bytes(&[1])]);
    assert_eq!(run(&program, [1; 3], vec![bytes(&[1])]), expected);
}

#[test]
fn bounds_of_short_loops_stay_visible() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main() {
            for (var i = 1u; i < 9u; i += 3u) { if x[0] > 900 { break; } x[0] += i; }
        }";
    let options = WgslOptions { hides_loop_bounds: true, ..WgslOptions::default() };
    let (kernel, program) = emit(source, options);
    // The loop may be unrolled; the other comparison in it is hidden.
    assert_eq!(kernel.source.matches("select(").count(), 1, "{}", kernel.source);
    assert!(kernel.source.contains(" < 9u;"), "{}", kernel.source);
    let expected = run(&parse(source), [1; 3], vec![bytes(&[1])]);
    assert_eq!(run(&program, [1; 3], vec![bytes(&[1])]), expected);
}

#[test]
fn short_loops_are_unrolled_where_bounds_are_hidden() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main() {
            var words: array<u32, 4>;
            for (var i = 0u; i < 4u; i++) {
                for (var j = 1u; j < 3u; j++) { words[(i + j) & x[j]] = 0u; words[i] += x[j] * i; }
            }
            x[0] = words[x[0] & 3u] + words[3];
        }";
    let options = WgslOptions { hides_loop_bounds: true, ..WgslOptions::default() };
    let (kernel, program) = emit(source, options);
    assert!(!kernel.source.contains("loop {"), "{}", kernel.source);
    for first in [1, 2, 3] {
        let words: Vec<u32> = (0..8).map(|i| (i * 5 + first) % 4).collect();
        let expected = run(&parse(source), [1; 3], vec![bytes(&words)]);
        assert_eq!(run(&program, [1; 3], vec![bytes(&words)]), expected, "{}", kernel.source);
    }
    let visible = emit(source, WgslOptions::default()).0.source;
    assert_eq!(visible.matches("loop {").count(), 2, "{visible}");
}

#[test]
fn only_comparisons_that_end_loops_are_hidden() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main() {
            var sum = 0u;
            for (var i = 0u; i < x[0]; i++) {
                switch x[i] & 3u {
                    case 0u: { sum += 5u; }
                    case 1u: { continue; }
                    default: { for (var j = i; j < 9u; j++) { sum ^= j; } }
                }
                if sum != 3u { if sum > 100u { return; } }
                if x[i] > 20u && sum > 7u { break; }
            }
            x[0] = sum;
        }";
    let options = WgslOptions { hides_loop_bounds: true, ..WgslOptions::default() };
    let (kernel, program) = emit(source, options);
    let text = &kernel.source;
    for visible in [" == 0u;", " == 1u;"] {
        assert!(text.contains(visible), "{visible} is not in\n{text}");
    }
    for bound in ["3u", "100u", "9u", "20u", "7u"] {
        assert!(text.contains(&format!(", {bound}, num_workgroups")), "{bound} in\n{text}");
    }
    for first in [4, 7, 9] {
        let words: Vec<u32> = (0..16).map(|i| if i == 0 { first } else { i * 5 % 23 }).collect();
        let expected = run(&parse(source), [1; 3], vec![bytes(&words)]);
        assert_eq!(run(&program, [1; 3], vec![bytes(&words)]), expected);
    }
}

#[test]
fn operands_of_tanh_can_be_clamped() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn main() { x[0] = tanh(x[0]); x[1] = tanh(x[1]); }";
    let options = WgslOptions { clamps_tanh: true, ..WgslOptions::default() };
    let (kernel, program) = emit(source, options);
    assert_eq!(kernel.source.matches("select(tanh(clamp(").count(), 2, "{}", kernel.source);
    let nan = run(&program, [1; 3], vec![bytes(&[f32::NAN.to_bits(), 0])]);
    let first = u32::from_le_bytes(nan[0][..4].try_into().unwrap());
    assert!(f32::from_bits(first).is_nan(), "{first:#x}");
    let words = bytes(&[1e30f32.to_bits(), 0.5f32.to_bits()]);
    let expected = run(&parse(source), [1; 3], vec![words.clone()]);
    assert_eq!(run(&program, [1; 3], vec![words]), expected);
}

#[test]
fn built_kernels_have_untyped_immediates() {
    let mut b = Builder::new("built", [1, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    b.immediates(6);
    let a = b.load(Type::F32, Place::new(AddressSpace::Immediate, None, 0, 0), 1)[0];
    let half = b.load(Type::F16, Place::new(AddressSpace::Immediate, None, 0, 4), 1)[0];
    let half = b.convert(Type::F32, half);
    let sum = b.binary(scry_ir::kir::BinaryOp::Add, a, half);
    let group = b.builtin(Builtin::GroupId(0));
    let (place, sum) = (b.element(out, group), b.bitcast(Type::U32, sum));
    b.store(place, vec![sum]);
    let program = Program::from_kir(&b.finish()).unwrap_or_else(|error| panic!("{error}"));
    let options = WgslOptions { immediates_in_uniform: true, ..WgslOptions::default() };
    for options in [WgslOptions::default(), options] {
        let kernel = program.to_wgsl_for(true, |_| Ok::<_, ShaderError>(options));
        let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.launch_block.is_some(), options.immediates_in_uniform);
        parse(&kernel.source);
        if options.immediates_in_uniform {
            // 1.5, and 2.0 as an f16.
            let words = bytes(&[1.5f32.to_bits(), 0x4000, 0, 0]);
            let found = run(&parse(&kernel.source), [1; 3], vec![bytes(&[0]), words]);
            assert_eq!(found[0], bytes(&[3.5f32.to_bits()]));
        }
    }
}

#[test]
fn odd_lengths_come_from_host() {
    let source = "
        enable f16;
        @group(0) @binding(0) var<storage, read> halves: array<f16>;
        @group(0) @binding(1) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main() {
            x[0] = arrayLength(&halves);
            x[1] = arrayLength(&x);
        }";
    let (kernel, program) = emit(source, WgslOptions::default());
    let block = kernel.launch_block.expect("the length of `halves` is hidden");
    let [length] = block.lengths[..] else { panic!("{block:?}") };
    assert_eq!((length.binding, length.offset, length.stride), (0, 0, 2));
    let buffers = vec![vec![0; 8], bytes(&[0; 2]), bytes(&[3, 0, 0, 0])];
    assert_eq!(run(&program, [1; 3], buffers)[1], bytes(&[3, 2]));
}
