//! The kernels of the corpus and of scry-gpu.

use std::path::{Path, PathBuf};

use scry_ir::{Scalar, ScalarKind, ShaderErrorKind, TypeLayout};

use crate::support::{Launch, computes_the_same, emitted, parsed};

/// The WGSL files under a folder of the repository.
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

/// Writes small numbers to the scalars of a type.
fn fill(layout: &TypeLayout, at: usize, bytes: &mut [u8]) {
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => put(*scalar, at, bytes),
        TypeLayout::Vector { len, scalar } => {
            (0..usize::from(*len))
                .for_each(|nth| put(*scalar, at + nth * usize::from(scalar.width), bytes));
        }
        TypeLayout::Matrix { columns, rows, scalar, stride } => {
            let column = TypeLayout::Vector { len: *rows, scalar: *scalar };
            (0..usize::from(*columns))
                .for_each(|nth| fill(&column, at + nth * *stride as usize, bytes));
        }
        TypeLayout::Array { element, len, stride } => {
            let stride = *stride as usize;
            let len = len.map_or((bytes.len() - at) / stride, |len| len as usize);
            (0..len).for_each(|nth| fill(element, at + nth * stride, bytes));
        }
        TypeLayout::Struct { members, .. } => {
            members
                .iter()
                .for_each(|member| fill(&member.layout, at + member.offset as usize, bytes));
        }
    }
}

fn put(scalar: Scalar, at: usize, bytes: &mut [u8]) {
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

/// Bytes of a type, with this many elements of a runtime-sized array.
fn content(layout: &TypeLayout, elements: u64) -> Vec<u8> {
    let tail = layout.runtime_array().map_or(0, |(_, stride)| stride * elements);
    let size = (layout.fixed_size() + tail).max(layout.min_binding_size()).next_multiple_of(4);
    let mut bytes = vec![0; size as usize];
    fill(layout, 0, &mut bytes);
    bytes
}

fn launch(source: &str, elements: u64) -> Launch {
    let program = parsed(source);
    let interface = program.interface();
    let buffers = interface.bindings.iter();
    let buffers = buffers.map(|binding| content(&binding.layout, elements)).collect();
    let immediates = interface.immediates.as_ref();
    let immediates = immediates.map(|block| content(&block.layout, 0)).unwrap_or_default();
    let source = source.to_owned();
    Launch { source, buffers, immediates, groups: [2, 1, 1], subgroup_size: 4 }
}

#[test]
fn corpus_kernels_compute_the_same() {
    let (mut compared, mut refused) = (0, Vec::new());
    for path in sources("corpus") {
        let source = std::fs::read_to_string(&path).unwrap();
        if let Err(error) = emitted(&source) {
            assert!(matches!(error.kind, ShaderErrorKind::Unsupported(_)), "{error}");
            refused.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
            continue;
        }
        for elements in [1, 70, 300] {
            assert!(computes_the_same(&launch(&source, elements)), "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 90, "{compared}");
    let wide = ["bounds", "least", "less", "negated", "orders", "signs", "sizes", "widen", "wide"];
    assert_eq!(refused, wide, "these use 64-bit types or 16-bit integers");
}

/// Parts of scry-gpu's kernels, which make one source each.
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

/// The source of a kernel of scry-gpu.
pub fn shader(parts: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scry-gpu/src/shaders");
    let read = |part: &&str| std::fs::read_to_string(folder.join(format!("{part}.wgsl"))).unwrap();
    parts.iter().map(read).collect()
}

#[test]
fn shaders_of_scry_gpu_compute_the_same() {
    for parts in SHADERS {
        assert!(computes_the_same(&launch(&shader(parts), 300)), "{parts:?}");
    }
}
