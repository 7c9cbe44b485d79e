//! The kernels, their operands and launches.

use scry_bench::{data, kernels};
use scry_gpu::{Launch, shaders};

/// A kernel with sizes.
pub struct Case {
    /// Name and sizes.
    pub name: String,
    /// WGSL.
    pub source: &'static str,
    kind: Kind,
}

/// The operation of a kernel, with its sizes.
enum Kind {
    /// A product of two square matrices; each invocation computes `edge` × `edge` elements.
    Gemm { side: usize, edge: usize },
    /// `y = a·x + y`, `width` elements an invocation.
    Saxpy { len: usize, width: usize },
    /// Sums, one for each workgroup.
    Sum { len: usize },
    /// A blur of packed pixels.
    Blur { side: usize },
}

/// Invocations of a workgroup of saxpy.
const WORKGROUP: usize = kernels::WORKGROUP;

/// Maximum workgroups along x of the vec4 saxpy, which numbers workgroups row by row.
const MAX_GROUPS_X: usize = 32768;

/// Elements of a sum for each workgroup, and the maximum number of workgroups.
const ELEMENTS_PER_GROUP: usize = 2048;
const MAX_GROUPS: usize = 1024;

/// Returns all cases.
pub fn all(quick: bool) -> Vec<Case> {
    let sides = if quick { [128, 256] } else { [1024, 4096] };
    let len = if quick { 1 << 16 } else { 1 << 26 };
    let mut cases = Vec::new();
    let mut add = |name: String, source, kind| cases.push(Case { name, source, kind });
    for side in sides {
        let name = |what: &str| format!("gemm {side} {what}");
        add(name("8x8 vec4"), shaders::matmul::COARSE_8X8_VEC4, Kind::Gemm { side, edge: 8 });
        add(name("8x8"), shaders::matmul::COARSE_8X8, Kind::Gemm { side, edge: 8 });
        add(name("4x4 vec4"), shaders::matmul::COARSE_64X64_VEC4, Kind::Gemm { side, edge: 4 });
    }
    add(format!("saxpy {len}"), kernels::SAXPY, Kind::Saxpy { len, width: 1 });
    add(format!("saxpy vec4 {len}"), kernels::SAXPY_VEC4, Kind::Saxpy { len, width: 4 });
    add(format!("sum {len}"), shaders::reduce::SUM, Kind::Sum { len });
    add(format!("sum vec4 {len}"), shaders::reduce::SUM_VEC4, Kind::Sum { len });
    let side = sides[1];
    add(format!("blur {side}"), BLUR, Kind::Blur { side });
    cases
}

const BLUR: &str = include_str!("../../../../corpus/blur.wgsl");

impl Case {
    /// Returns the initial contents of the buffers, the result last.
    pub fn operands(&self) -> Vec<Vec<u8>> {
        let bytes = |words: Vec<u32>| words.into_iter().flat_map(u32::to_ne_bytes).collect();
        self.words().into_iter().map(bytes).collect()
    }

    fn words(&self) -> Vec<Vec<u32>> {
        match self.kind {
            Kind::Gemm { side, .. } => {
                let len = side * side;
                vec![random_bits(1, len), random_bits(2, len), vec![u32::MAX; len]]
            }
            Kind::Saxpy { len, .. } => vec![random_bits(1, len), random_bits(2, len)],
            Kind::Sum { len } => vec![random_bits(1, len), vec![u32::MAX; sum_groups(len)]],
            Kind::Blur { side } => {
                let len = side * side;
                vec![vec![side as u32; 2], random_bits(1, len), vec![0; len]]
            }
        }
    }

    /// Returns the launch.
    pub fn launch(&self) -> Launch {
        match self.kind {
            Kind::Gemm { side, edge } => {
                let invocations = side.div_ceil(edge) as u32;
                Launch::invocations([invocations, invocations, 1]).immediates(&[side as u32; 3])
            }
            Kind::Saxpy { len, width } => {
                let groups = len.div_ceil(width * WORKGROUP);
                let row = if width == 1 { groups } else { groups.min(MAX_GROUPS_X) };
                let [x, y] = [row, groups.div_ceil(row)];
                Launch::workgroups([x as u32, y as u32, 1]).immediates(&1.5f32)
            }
            Kind::Sum { len } => Launch::workgroups([sum_groups(len) as u32, 1, 1]),
            Kind::Blur { side } => Launch::invocations([side as u32, side as u32, 1]),
        }
    }

    /// Formats the rate of a launch of this duration.
    pub fn rate(&self, seconds: f64) -> String {
        let words = match self.kind {
            Kind::Gemm { side, .. } => {
                let operations = 2.0 * (side as f64).powi(3);
                return format!("{:.2} TFLOP/s", operations / seconds / 1e12);
            }
            Kind::Saxpy { len, .. } => 3 * len,
            Kind::Sum { len } => len,
            Kind::Blur { side } => 2 * side * side,
        };
        format!("{:.0} GB/s", 4.0 * words as f64 / seconds / 1e9)
    }
}

/// Returns the number of workgroups of a sum.
fn sum_groups(len: usize) -> usize {
    len.div_ceil(ELEMENTS_PER_GROUP).min(MAX_GROUPS)
}

/// Returns the bits of random numbers.
fn random_bits(seed: u32, len: usize) -> Vec<u32> {
    data::random(seed, len).into_iter().map(f32::to_bits).collect()
}
