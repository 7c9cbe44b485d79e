//! Tests of what the documentation says of every source (limits, features, bindings), without a
//! device.

use scry_gpu::Features;
use scry_gpu::shaders::{backward, elementwise, matmul, pairwise, reduce, saxpy, transpose};
use scry_ir::kir::{KirOptions, verify};
use scry_ir::{Access, Options, Program, ScalarKind, TypeLayout};
use scry_test_support::root;

/// Every source of the library, with the path of its constant; except those with cooperative
/// matrices, which need features.
const SOURCES: [(&str, &str); 51] = [
    ("matmul::TILED_16X16", matmul::TILED_16X16),
    ("matmul::COARSE_64X64", matmul::COARSE_64X64),
    ("matmul::COARSE_64X64_VEC4", matmul::COARSE_64X64_VEC4),
    ("matmul::COARSE_8X8", matmul::COARSE_8X8),
    ("matmul::COARSE_8X8_VEC4", matmul::COARSE_8X8_VEC4),
    ("pairwise::EUCLIDEAN_SQUARED", pairwise::EUCLIDEAN_SQUARED),
    ("pairwise::EUCLIDEAN_SQUARED_VEC4", pairwise::EUCLIDEAN_SQUARED_VEC4),
    ("transpose::TRANSPOSE", transpose::TRANSPOSE),
    ("saxpy::SAXPY", saxpy::SAXPY),
    ("saxpy::SAXPY_VEC4", saxpy::SAXPY_VEC4),
    ("reduce::SUM", reduce::SUM),
    ("reduce::MAX", reduce::MAX),
    ("reduce::MIN", reduce::MIN),
    ("reduce::DOT", reduce::DOT),
    ("reduce::SUM_VEC4", reduce::SUM_VEC4),
    ("reduce::MAX_VEC4", reduce::MAX_VEC4),
    ("reduce::MIN_VEC4", reduce::MIN_VEC4),
    ("backward::RELU_BACKWARD", backward::RELU_BACKWARD),
    ("backward::SIGMOID_BACKWARD", backward::SIGMOID_BACKWARD),
    ("backward::TANH_BACKWARD", backward::TANH_BACKWARD),
    ("backward::REDUCE_COLS", backward::REDUCE_COLS),
    ("backward::vec4::RELU_BACKWARD", backward::vec4::RELU_BACKWARD),
    ("backward::vec4::SIGMOID_BACKWARD", backward::vec4::SIGMOID_BACKWARD),
    ("backward::vec4::TANH_BACKWARD", backward::vec4::TANH_BACKWARD),
    ("elementwise::RELU", elementwise::RELU),
    ("elementwise::SIGMOID", elementwise::SIGMOID),
    ("elementwise::TANH", elementwise::TANH),
    ("elementwise::SILU", elementwise::SILU),
    ("elementwise::GELU", elementwise::GELU),
    ("elementwise::SCALE", elementwise::SCALE),
    ("elementwise::LEAKY_RELU", elementwise::LEAKY_RELU),
    ("elementwise::ELU", elementwise::ELU),
    ("elementwise::CLAMP", elementwise::CLAMP),
    ("elementwise::ADD", elementwise::ADD),
    ("elementwise::SUB", elementwise::SUB),
    ("elementwise::MUL", elementwise::MUL),
    ("elementwise::DIV", elementwise::DIV),
    ("elementwise::BIAS_ADD", elementwise::BIAS_ADD),
    ("elementwise::vec4::RELU", elementwise::vec4::RELU),
    ("elementwise::vec4::SIGMOID", elementwise::vec4::SIGMOID),
    ("elementwise::vec4::TANH", elementwise::vec4::TANH),
    ("elementwise::vec4::SILU", elementwise::vec4::SILU),
    ("elementwise::vec4::GELU", elementwise::vec4::GELU),
    ("elementwise::vec4::SCALE", elementwise::vec4::SCALE),
    ("elementwise::vec4::LEAKY_RELU", elementwise::vec4::LEAKY_RELU),
    ("elementwise::vec4::ELU", elementwise::vec4::ELU),
    ("elementwise::vec4::CLAMP", elementwise::vec4::CLAMP),
    ("elementwise::vec4::ADD", elementwise::vec4::ADD),
    ("elementwise::vec4::SUB", elementwise::vec4::SUB),
    ("elementwise::vec4::MUL", elementwise::vec4::MUL),
    ("elementwise::vec4::DIV", elementwise::vec4::DIV),
];

#[test]
fn sources_need_only_core_webgpu() {
    for (name, source) in SOURCES {
        let program = Program::parse(source).unwrap_or_else(|error| panic!("{name}:\n{error}"));
        let interface = program.interface();
        assert_eq!(interface.entry_point, "main", "{name}");
        assert!(interface.workgroup_size.iter().product::<u32>() <= 256, "{name}");
        assert!(interface.workgroup_memory <= 16 << 10, "{name}: {}", interface.workgroup_memory);
        assert_eq!(interface.features, Features::empty(), "{name}");
    }
}

#[test]
fn sources_lower_to_valid_kir() {
    for (name, source) in SOURCES {
        let program = Program::parse(source).unwrap_or_else(|error| panic!("{name}:\n{error}"));
        for checked in [true, false] {
            let kir = program.to_kir(&KirOptions { checked });
            let kir = kir.unwrap_or_else(|error| panic!("{name}: {error}"));
            verify(&kir).unwrap_or_else(|error| panic!("{name}: {error}\n{kir}"));
            assert!(kir.buffers.last().is_some_and(|output| output.writable), "{name}");
        }
    }
}

#[test]
fn sources_write_only_last_binding() {
    for (name, source) in SOURCES {
        let program = Program::parse(source).unwrap_or_else(|error| panic!("{name}:\n{error}"));
        let bindings = &program.interface().bindings;
        for (i, binding) in bindings.iter().enumerate() {
            assert_eq!((binding.group, binding.binding as usize), (0, i), "{name}");
            let is_last = i + 1 == bindings.len();
            assert_eq!(binding.access == Access::ReadWrite, is_last, "{name}: {}", binding.name);
        }
    }
}

#[test]
fn example_kernels_have_expected_interface() {
    let read = |name: &str| {
        let path = root().join("examples/kernels").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    // `scry run` passes the size of the image `src` as overrides.
    let overrides = vec![("src_width".into(), 640.into()), ("src_height".into(), 480.into())];
    let options = Options { overrides, ..Options::default() };
    let program = Program::with_options(&read("edges.wgsl"), &options).unwrap();
    let edges = program.interface();
    let names: Vec<&str> = edges.bindings.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, ["src", "dst"]);
    assert!(edges.workgroup_size[1] > 1);
    let radius = edges.overrides.iter().find(|o| o.name == "RADIUS").expect("the override RADIUS");
    assert_eq!((radius.ty.as_str(), radius.value), ("u32", Some(1.0)));

    let program = Program::parse(&read("saxpy.wgsl")).unwrap();
    let factor = program.interface().immediates.as_ref().expect("the immediate `a`");
    assert_eq!(factor.name, "a");
    assert!(matches!(factor.layout, TypeLayout::Scalar(s) if s.kind == ScalarKind::Float));
}
