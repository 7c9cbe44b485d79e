//! Tests that the WGSL emitted for the kernels of the corpus and of scry-gpu computes what their
//! source computes.

use std::path::{Path, PathBuf};

use scry_ir::{Scalar, ScalarKind, ShaderErrorKind, TypeLayout};

use crate::support::{Launch, emit, emitted_matches_source, parse};

/// Returns the WGSL files below a folder of the repository, sorted.
pub fn sources(folder: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "wgsl") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), &mut found);
    found.sort();
    found
}

/// Fills the scalars of a value of type `layout` at byte `at` with small test values.
fn fill(layout: &TypeLayout, at: usize, bytes: &mut [u8]) {
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => write_scalar(*scalar, at, bytes),
        TypeLayout::Vector { len, scalar } => {
            (0..usize::from(*len))
                .for_each(|i| write_scalar(*scalar, at + i * usize::from(scalar.width), bytes));
        }
        TypeLayout::Matrix { columns, rows, scalar, stride } => {
            let column = TypeLayout::Vector { len: *rows, scalar: *scalar };
            (0..usize::from(*columns))
                .for_each(|i| fill(&column, at + i * *stride as usize, bytes));
        }
        TypeLayout::Array { element, len, stride } => {
            let stride = *stride as usize;
            let len = len.map_or((bytes.len() - at) / stride, |len| len as usize);
            (0..len).for_each(|i| fill(element, at + i * stride, bytes));
        }
        TypeLayout::Struct { members, .. } => {
            members
                .iter()
                .for_each(|member| fill(&member.layout, at + member.offset as usize, bytes));
        }
    }
}

/// Writes the test value of a scalar at byte `at`.
fn write_scalar(scalar: Scalar, at: usize, bytes: &mut [u8]) {
    let n = at / usize::from(scalar.width);
    let float = (n % 13) as f32 * 0.25 + 0.5;
    let bits = match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 2) => half::f16::from_f32(float).to_bits().into(),
        (ScalarKind::Float, 4) => float.to_bits().into(),
        (ScalarKind::Float, _) => f64::from(float).to_bits(),
        _ => n as u64 % 7,
    };
    let width = usize::from(scalar.width);
    bytes[at..at + width].copy_from_slice(&bits.to_le_bytes()[..width]);
}

/// Returns the initial bytes of a buffer of type `layout`, whose runtime-sized array, if any, has
/// `elements` elements.
fn buffer_contents(layout: &TypeLayout, elements: u64) -> Vec<u8> {
    let tail = layout.runtime_array().map_or(0, |(_, stride)| stride * elements);
    let size = (layout.fixed_size() + tail).max(layout.min_binding_size()).next_multiple_of(4);
    let mut bytes = vec![0; size as usize];
    fill(layout, 0, &mut bytes);
    bytes
}

/// Returns a launch of a kernel with test values in its buffers.
fn launch_for(source: &str, elements: u64) -> Launch {
    let program = parse(source);
    let interface = program.interface();
    let buffers = interface.bindings.iter();
    let buffers = buffers.map(|binding| buffer_contents(&binding.layout, elements)).collect();
    let immediates = interface.immediates.as_ref();
    let immediates = immediates.map(|block| buffer_contents(&block.layout, 0)).unwrap_or_default();
    let source = source.to_owned();
    Launch { source, buffers, immediates, groups: [2, 1, 1], subgroup_size: 4 }
}

#[test]
fn corpus_kernels_round_trip() {
    let (mut compared, mut rejected) = (0, Vec::new());
    for path in sources("corpus") {
        let source = std::fs::read_to_string(&path).unwrap();
        if let Err(error) = emit(&source) {
            assert!(matches!(error.kind, ShaderErrorKind::UnsupportedFeatures(_)), "{error}");
            rejected.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
            continue;
        }
        for elements in [1, 70, 300] {
            assert!(emitted_matches_source(&launch_for(&source, elements)), "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 90, "{compared}");
    let unsupported = [
        "float_sign_beside_i64_rem",
        "i16_min_widening",
        "negation_by_subtraction",
        "nonterminating",
        "sign_of_complement",
        "widening_signedness",
        "int64",
    ];
    assert_eq!(rejected, unsupported, "these use 64-bit types");
}

/// Kernels of scry-gpu: for each the WGSL files that are concatenated into its source.
pub const SHADERS: [&[&str]; 17] = [
    &["saxpy/saxpy"],
    &["saxpy/saxpy_vec4"],
    &["transpose/transpose"],
    &["backward/reduce_cols"],
    &["backward/tanh", "elementwise/binary"],
    &["backward/sigmoid", "elementwise/binary_vec4"],
    &["elementwise/bias_add"],
    &["elementwise/gelu", "elementwise/unary"],
    &["elementwise/silu", "elementwise/unary_vec4"],
    &["matmul/tiled_16x16"],
    &["matmul/io_scalar", "matmul/coarse_64x64"],
    &["matmul/io_vec4", "matmul/coarse_64x64"],
    &["matmul/io_scalar", "matmul/coarse_8x8"],
    &["matmul/io_vec4", "matmul/coarse_8x8"],
    &["pairwise/io_scalar", "pairwise/euclidean_squared"],
    &["reduce/one", "reduce/sum", "reduce/reduce"],
    &["reduce/two", "reduce/max", "reduce/reduce"],
];

/// Returns the source of a kernel of scry-gpu.
pub fn shader(parts: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scry-gpu/src/shaders");
    let read = |part: &&str| std::fs::read_to_string(folder.join(format!("{part}.wgsl"))).unwrap();
    parts.iter().map(read).collect()
}

#[test]
fn scry_gpu_shaders_round_trip() {
    for parts in SHADERS {
        assert!(emitted_matches_source(&launch_for(&shader(parts), 300)), "{parts:?}");
    }
}
