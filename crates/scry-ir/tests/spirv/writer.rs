//! Tests of the effects of `SpirvOptions`.

use rspirv::binary::Disassemble;
use rspirv::spirv::{ExecutionModel, Op};
use scry_ir::{Features, Options, Program, ShaderErrorKind, SpirvOptions, SpirvWorkarounds};

use crate::support::{
    CHECKED, code, corpus, every_option, have_validator, load, parse, sources, validate,
};

const UNCHECKED: SpirvOptions = SpirvOptions { checked: false, ..CHECKED };

fn text(program: &Program, options: &SpirvOptions) -> String {
    load(&program.to_spirv(options).unwrap()).disassemble()
}

#[test]
fn entry_point_keeps_name_and_size() {
    for (name, source) in sources(&corpus("")) {
        let program = parse(&name, &source);
        for options in every_option() {
            let module = load(&program.to_spirv(&options).unwrap());
            assert_eq!(module.entry_points.len(), 1);
            let entry = &module.entry_points[0];
            assert_eq!(entry.operands[0].unwrap_execution_model(), ExecutionModel::GLCompute);
            assert_eq!(entry.operands[2].unwrap_literal_string(), program.interface().entry_point);
            let size = &module.execution_modes[0].operands[2..];
            let size: Vec<_> = size.iter().map(|o| o.unwrap_literal_bit32()).collect();
            assert_eq!(size, program.interface().workgroup_size);
            let (major, minor) = module.header.as_ref().unwrap().version();
            assert_eq!((major, minor), options.version);
        }
    }
}

#[test]
fn workgroup_memory_is_zeroed() {
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        var<workgroup> tile: array<u32, 8>;
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
            data[i] = tile[i];
        }";
    let program = parse("zeroing", source);
    for linearised in [false, true] {
        let native = SpirvOptions { linearised, ..CHECKED };
        let emulated = SpirvOptions { native_workgroup_zeroing: false, ..native };
        let barriers = |options| {
            let module = load(&program.to_spirv(options).unwrap());
            code(&module).filter(|i| i.class.opcode == Op::ControlBarrier).count()
        };
        assert_eq!((barriers(&native), barriers(&emulated)), (0, 1));
    }
}

#[test]
fn division_is_guarded_even_unchecked() {
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(1) fn main() { data[0] = data[1] / data[2]; }";
    let module = load(&parse("division", source).to_spirv(&UNCHECKED).unwrap());
    assert!(code(&module).any(|i| i.class.opcode == Op::Select));
}

/// With the workaround, unsigned comparisons in loops beside a private array become maxima; others,
/// and those after the loop, stay.
#[test]
fn loop_comparisons_become_maxima() {
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(1) fn main() {
            var own: array<u32, 4>;
            var x = data[0];
            while x >= data[1] { own[x & 3u] += 1u; x += data[2]; }
            if x > data[3] { data[0] = own[data[1] & 3u]; }
        }";
    let without_array = source.replace("own[x & 3u] += 1u;", "").replace("own[data[1] & 3u]", "x");
    let workarounds = SpirvWorkarounds::EXPAND_LOOP_COMPARISONS;
    let comparisons = |source: &str, options: &SpirvOptions| {
        let module = load(&parse("loop", source).to_spirv(options).unwrap());
        let count = |op| code(&module).filter(|i| i.class.opcode == op).count();
        [count(Op::UGreaterThanEqual), count(Op::UGreaterThan)]
    };
    let expanding = SpirvOptions { workarounds, ..UNCHECKED };
    assert_eq!(comparisons(source, &UNCHECKED), [1, 1]);
    assert_eq!(comparisons(source, &expanding), [0, 1]);
    assert_eq!(comparisons(&without_array, &expanding), [1, 1]);
}

/// With the workaround, comparisons in loops have a selected operand; others, and those of loops
/// that are unrolled, stay.
#[test]
fn loop_bounds_are_hidden() {
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(1) fn main() {
            for (var i = 1u; i < 4u; i++) { data[i] += 1u; }
            if data[0] > 5u { data[1] = 0u; }
            for (var i = 0u; i < 4000u; i++) { if data[i] == 7u { break; } data[i] += 2u; }
        }";
    let selects = |workarounds| {
        let options = SpirvOptions { workarounds, ..UNCHECKED };
        let module = load(&parse("loop", source).to_spirv(&options).unwrap());
        code(&module).filter(|i| i.class.opcode == Op::Select).count()
    };
    assert_eq!(selects(SpirvWorkarounds::empty()), 0);
    assert_eq!(selects(SpirvWorkarounds::HIDE_LOOP_BOUNDS), 2);
}

#[test]
fn output_is_deterministic() {
    for (name, source) in sources(&corpus("")) {
        let words = || parse(&name, &source).to_spirv(&CHECKED).unwrap();
        assert_eq!(words(), words(), "{name}");
    }
}

pub const COOPERATIVE: &str = "enable wgpu_cooperative_matrix; enable f16;
    @group(0) @binding(0) var<storage> a: array<f16>;
    @group(0) @binding(1) var<storage, read_write> c: array<f32>;
    @compute @workgroup_size(32) fn main(@builtin(workgroup_id) g: vec3u) {
        let x = coopLoad<coop_mat16x16<f16, A>>(&a[g.x * 16u], g.y + 1u);
        let y = coopLoad<coop_mat16x16<f16, B>>(&a[g.x * 16u + 1u], 64u);
        var s = coopLoad<coop_mat16x16<f32, C>>(&c[g.x * 8u], 64u);
        s = coopMultiplyAdd(x, y, s);
        if g.x > 1u { coopStore(s, &c[g.x * 8u + 1u], 64u + g.x * 2u); }
        coopStore(s, &c[3], 64u);
    }";

#[test]
fn cooperative_matrices_are_rejected() {
    for options in [CHECKED, UNCHECKED] {
        let error = parse("cooperative", COOPERATIVE).to_spirv(&options).unwrap_err();
        assert_eq!(error.kind, ShaderErrorKind::UnsupportedFeatures(Features::COOPERATIVE_MATRIX));
        assert!(error.message.contains("help: "), "{error}");
    }
}

#[test]
fn unused_bindings_have_no_slot() {
    let source = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> never: array<u32>;
        @group(2) @binding(1) var<uniform> b: u32;
        fn lost() { never[0] = 1u; }
        @compute @workgroup_size(1) fn one() { a[0] = b; }
        @compute @workgroup_size(1) fn two() { lost(); }";
    let options = Options { entry: Some("one".into()), ..Options::default() };
    let program = Program::with_options(source, &options).unwrap();
    let text = text(&program, &CHECKED);
    assert!(text.contains("Binding 1") && !text.contains("Binding 2"), "{text}");
    assert!(!text.contains("\"never\"") && !text.contains("DescriptorSet 2"), "{text}");
}

#[test]
fn writing_time_is_linear_in_length() {
    let body = "data[i] += data[i + 1u] << (data[i] & 7u); if data[i] > 3u { data[i] = 1u; }\n";
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64) fn main() {{
            for (var i = 0u; i < 64u; i++) {{ {} while data[i] > 1u {{ data[i] -= 1u; }} }}
        }}",
        body.repeat(3000)
    );
    let program = Program::parse(&source).unwrap();
    let begin = std::time::Instant::now();
    program.to_spirv(&CHECKED).unwrap();
    // Far above the usual time, far below that of a quadratic pass.
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[test]
fn aborted_loop_report_is_last_binding() {
    let validates = have_validator("aborted_loop_report_is_last_binding");
    for (name, source) in sources(&corpus("")) {
        let program = parse(&name, &source);
        for linearised in [false, true] {
            let words_with = |reports_aborted_loops| {
                let options = SpirvOptions { linearised, reports_aborted_loops, ..CHECKED };
                program.to_spirv(&options).unwrap()
            };
            let (plain, reporting) = (words_with(false), words_with(true));
            if validates {
                validate(&reporting).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            let [plain, reporting] = [plain, reporting].map(|words| load(&words));
            let slots = |module| bindings(module).into_iter().max().map_or(0, |last| last + 1);
            let others = program.interface().bindings.len() as u32 + u32::from(linearised);
            assert_eq!((slots(&reporting), slots(&plain)), (others + 1, others), "{name}");
            let loops = |module| code(module).filter(|i| i.class.opcode == Op::LoopMerge).count();
            assert_eq!(loops(&reporting), loops(&plain) + 1, "{name}");
        }
    }
}

#[test]
fn only_loops_without_proof_poll() {
    let validates = have_validator("only_loops_without_proof_poll");
    let mut polling = 0;
    for (name, source) in sources(&corpus("")) {
        let program = parse(&name, &source);
        for reports_aborted_loops in [false, true] {
            let words_with = |polls| {
                let options = SpirvOptions { reports_aborted_loops, polls, ..CHECKED };
                program.to_spirv(&options).unwrap()
            };
            let (plain, polled) = (words_with(false), words_with(true));
            if validates {
                validate(&polled).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            if !program.control_flow().unwrap().may_not_end {
                assert!(plain == polled, "{name}: its loops are proven to end");
                continue;
            }
            polling += 1;
            let stop = bindings(&load(&polled));
            let expected = program.interface().bindings.len() + usize::from(reports_aborted_loops);
            assert_eq!(stop.iter().max(), Some(&(expected as u32)), "{name}");
        }
    }
    assert!(polling > 0, "the corpus has kernels with such loops");
}

#[test]
fn loops_with_barriers_are_left_together() {
    let source = |barrier: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read> limit: array<u32>;
             @compute @workgroup_size(64)
             fn main() {{ for (var i = 0u; i != limit[0]; i += 3u) {{ {barrier} }} }}"
        )
    };
    let count = |source: &str, op: Op| {
        let options = SpirvOptions { polls: true, ..CHECKED };
        let words = parse("polls", source).to_spirv(&options).unwrap();
        code(&load(&words)).filter(|i| i.class.opcode == op).count()
    };
    let [plain, with_barrier] = [source(""), source("workgroupBarrier();")];
    let subgroup = format!("enable subgroups; {}", source("subgroupBarrier();"));
    assert_eq!([Op::ControlBarrier, Op::AtomicLoad].map(|op| count(&plain, op)), [0, 1]);
    // Two more barriers, between which the invocations agree.
    assert_eq!([Op::ControlBarrier, Op::AtomicLoad].map(|op| count(&with_barrier, op)), [3, 2]);
    // Other subgroups may not be in the loop: they must not be waited for.
    let ops = [Op::ControlBarrier, Op::AtomicLoad, Op::GroupNonUniformBroadcastFirst];
    assert_eq!(ops.map(|op| count(&subgroup, op)), [1, 1, 1]);
}

/// Returns the bindings that a module declares.
fn bindings(module: &rspirv::dr::Module) -> Vec<u32> {
    let bindings = module.annotations.iter().filter_map(|it| match it.operands.get(1) {
        Some(rspirv::dr::Operand::Decoration(spirv::Decoration::Binding)) => {
            Some(it.operands[2].unwrap_literal_bit32())
        }
        _ => None,
    });
    bindings.collect()
}
