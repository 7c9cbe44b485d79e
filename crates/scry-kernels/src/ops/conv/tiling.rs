//! Tiles of convolutions: their sizes, and the code of the products of an input channel, which is
//! generated because its loops have to be unrolled.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Conv2d;

/// How a workgroup computes a convolution. Pairs are of x and y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiling {
    kernel: [u64; 2],
    stride: [u64; 2],
    dilation: [u64; 2],
    /// Invocations.
    lanes: [u64; 2],
    /// Positions of an invocation: along x they are `lanes[0]` apart.
    points: [u64; 2],
    /// Output channels of a workgroup.
    channels: u64,
    /// Input channels that are in workgroup memory together.
    depth: u64,
}

/// Invocations of a workgroup.
const WORKGROUP: u64 = 256;

/// Words of workgroup memory: 16 KiB.
const WORDS: u64 = 4096;

/// Most sums of an invocation.
const SUMS: u64 = 32;

/// Most products in the code of a column of a kernel.
const PRODUCTS: u64 = 512;

/// Workgroups below which invocations compute fewer positions: two for each multiprocessor of a
/// large GPU.
const FEW_WORKGROUPS: u64 = 264;

impl Tiling {
    /// Returns the tiling of a convolution that has results; `None` if its input does not fit in
    /// workgroup memory.
    pub(super) fn of(conv: &Conv2d) -> Option<Self> {
        let xy = |[height, width]: [usize; 2]| [width as u64, height as u64];
        let out = xy(conv.output_size());
        let lanes_x = out[0].next_power_of_two().clamp(8, 64);
        let lanes_y = out[1].next_power_of_two().min(WORKGROUP / lanes_x);
        let lanes = [WORKGROUP / lanes_y, lanes_y];
        let channels = channels((conv.out_channels / conv.groups) as u64);
        let wanted = |axis: usize| out[axis].div_ceil(lanes[axis]).next_power_of_two();
        let points_y = wanted(1).min(SUMS / channels).min(8);
        let points_x = wanted(0).min(SUMS / channels / points_y).min(4);
        let mut it = Self {
            kernel: xy(conv.kernel),
            stride: xy(conv.stride),
            dilation: xy(conv.dilation),
            lanes,
            points: [points_x, points_y],
            channels,
            depth: 1,
        };
        while it.words() > WORDS || it.products() > PRODUCTS {
            it = it.smaller()?;
        }
        while it.workgroups(conv).iter().map(|groups| u64::from(*groups)).product::<u64>()
            < FEW_WORKGROUPS
            && it.points != [1, 1]
        {
            it = it.smaller()?;
        }
        let in_channels = (conv.in_channels / conv.groups) as u64;
        it.depth = (WORDS / it.words()).min(in_channels).clamp(1, 4);
        Some(it)
    }

    /// Returns the next smaller tiling, if any.
    fn smaller(self) -> Option<Self> {
        let Self { lanes: [lanes_x, lanes_y], points: [points_x, points_y], channels, .. } = self;
        if points_x > 1 {
            Some(Self { points: [points_x / 2, points_y], ..self })
        } else if points_y > 1 {
            Some(Self { points: [1, points_y / 2], ..self })
        } else if channels > 1 {
            Some(Self { channels: channels / 2, ..self })
        } else if lanes_x > 16 {
            Some(Self { lanes: [lanes_x / 2, lanes_y * 2], ..self })
        } else {
            None
        }
    }

    /// Returns columns and rows of the input of a tile.
    fn tile(&self) -> [u64; 2] {
        [0, 1].map(|axis| {
            let outputs = self.lanes[axis] * self.points[axis];
            let steps = (outputs - 1).saturating_mul(self.stride[axis]);
            let span = (self.kernel[axis] - 1).saturating_mul(self.dilation[axis]);
            steps.saturating_add(span).saturating_add(1)
        })
    }

    /// Returns the quads of weights of a column of the kernel.
    fn quads(&self) -> u64 {
        self.kernel[1].saturating_mul(self.channels).div_ceil(4)
    }

    /// Returns the words of workgroup memory for an input channel.
    fn words(&self) -> u64 {
        let [columns, rows] = self.tile();
        let weights = self.quads().saturating_mul(4).saturating_mul(self.kernel[0]);
        columns.saturating_mul(rows).saturating_add(weights)
    }

    /// Returns the products in the code of a column of the kernel.
    fn products(&self) -> u64 {
        let sums = self.channels * self.points[0] * self.points[1];
        self.kernel[1].saturating_mul(sums)
    }

    /// Returns the blocks of output channels of a group.
    pub(super) fn blocks(&self, conv: &Conv2d) -> u64 {
        ((conv.out_channels / conv.groups) as u64).div_ceil(self.channels)
    }

    /// Returns the workgroups along x, y and z.
    pub(super) fn workgroups(&self, conv: &Conv2d) -> [u32; 3] {
        let [height, width] = conv.output_size();
        let along = |axis: usize, size: usize| {
            (size as u64).div_ceil(self.lanes[axis] * self.points[axis]) as u32
        };
        let planes = (conv.batch * conv.groups) as u64 * self.blocks(conv);
        [along(0, width), along(1, height), planes as u32]
    }

    /// Returns what precedes `conv_tiles.wgsl`.
    pub(super) fn declarations(&self) -> String {
        let pair =
            |name: &str, [x, y]: [u64; 2]| format!("const {name} = vec2<u32>({x}u, {y}u);\n");
        let mut text = [
            pair("KERNEL", self.kernel),
            pair("STRIDE", self.stride),
            pair("DILATION", self.dilation),
            pair("LANES", self.lanes),
            pair("POINTS", self.points),
            pair("TILE", self.tile()),
        ]
        .concat();
        let Self { channels, depth, .. } = self;
        let quads = self.quads();
        text += &format!(
            "const CHANNELS = {channels}u;\nconst DEPTH = {depth}u;\nconst QUADS = {quads}u;\n\n"
        );
        for sum in self.sums() {
            text += &format!("var<private> {}: f32;\n", sum.name());
        }
        text + &self.accumulate() + &self.store_sums()
    }

    /// Returns the sums of an invocation.
    fn sums(&self) -> Vec<Sum> {
        let mut sums = Vec::new();
        for channel in 0..self.channels {
            for x in 0..self.points[0] {
                sums.extend((0..self.points[1]).map(|y| Sum { channel, x, y }));
            }
        }
        sums
    }

    /// Returns the function that adds the products of an input channel, column by column of the
    /// kernel: the rows of the input are loaded once for all rows of the kernel.
    fn accumulate(&self) -> String {
        let mut text = String::from(
            "\nfn accumulate(tile_at: u32, weights_at: u32) {\n    \
             for (var column = 0u; column < KERNEL.x; column++) {\n        \
             let weights_of_column = weights_at + column * QUADS;\n",
        );
        let weight = |at: u64| format!("w{}.{}", at / 4, ["x", "y", "z", "w"][(at % 4) as usize]);
        for quad in 0..self.quads() {
            let _ =
                writeln!(text, "        let w{quad} = tile_weights[weights_of_column + {quad}u];");
        }
        let row_of = |y: u64, kernel_row: u64| y * self.stride[1] + kernel_row * self.dilation[1];
        let mut rows = BTreeSet::new();
        for y in 0..self.points[1] {
            rows.extend((0..self.kernel[1]).map(|kernel_row| row_of(y, kernel_row)));
        }
        for x in 0..self.points[0] {
            let offset = x * self.lanes[0] * self.stride[0];
            let _ = writeln!(
                text,
                "        {{\n            let at = tile_at + column * DILATION.x + {offset}u;"
            );
            for row in &rows {
                let offset = row * self.tile()[0];
                let _ = writeln!(text, "            let c{row} = tile[at + {offset}u];");
            }
            for kernel_row in 0..self.kernel[1] {
                for sum in self.sums().iter().filter(|sum| sum.x == x) {
                    let (name, row) = (sum.name(), row_of(sum.y, kernel_row));
                    let weight = weight(kernel_row * self.channels + sum.channel);
                    let _ = writeln!(text, "            {name} = fma({weight}, c{row}, {name});");
                }
            }
            text += "        }\n";
        }
        text + "    }\n}\n"
    }

    /// Returns the function that stores the sums.
    fn store_sums(&self) -> String {
        let mut text =
            String::from("\nfn store_sums(image: u32, group: u32, first: vec3<u32>) {\n");
        for sum in self.sums() {
            let Sum { channel, x, y } = sum;
            let (name, column) = (sum.name(), x * self.lanes[0]);
            let _ = writeln!(
                text,
                "    store(image, group, first + vec3<u32>({channel}u, {y}u, {column}u), {name});"
            );
        }
        text + "}\n\n"
    }
}

/// The sum of an output channel at one of the positions of an invocation.
#[derive(Debug, Clone, Copy)]
struct Sum {
    channel: u64,
    x: u64,
    y: u64,
}

impl Sum {
    fn name(&self) -> String {
        format!("sum_{}_{}_{}", self.channel, self.x, self.y)
    }
}

/// Returns the output channels of a workgroup, of this many in a group: many share the loads of the
/// input, but the last block should be full.
fn channels(of_group: u64) -> u64 {
    // The estimated time of a product.
    let costs = [(8, 1.0), (4, 1.1), (2, 1.4), (1, 1.8)];
    let cost = |(channels, cost): (u64, f64)| of_group.next_multiple_of(channels) as f64 * cost;
    let fastest = costs.into_iter().min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
    fastest.map_or(1, |(channels, _)| channels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_fill_blocks() {
        let found = [1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 64, 100].map(channels);
        assert_eq!(found, [1, 2, 4, 4, 8, 8, 8, 4, 4, 8, 8, 8]);
    }

    #[test]
    fn tiles_fit_in_workgroup_memory() {
        for kernel in 1..40 {
            for (stride, dilation) in [(1, 1), (2, 1), (1, 3), (5, 2)] {
                let mut conv = Conv2d::new([32, 32], [1000, 1000], [kernel, kernel]);
                (conv.stride, conv.dilation) = ([stride; 2], [dilation; 2]);
                let Some(it) = Tiling::of(&conv) else {
                    // The inputs of 16 × 16 results are too many.
                    assert!(kernel * dilation > 15 || stride > 3, "{kernel} {stride} {dilation}");
                    continue;
                };
                assert!(it.words() * it.depth <= WORDS && it.products() <= PRODUCTS, "{it:?}");
                assert_eq!(it.lanes[0] * it.lanes[1], WORKGROUP, "{it:?}");
            }
        }
    }

    #[test]
    fn sizes_suit_outputs() {
        let tiling = |channels, size, kernel| {
            let it = Tiling::of(&Conv2d::new(channels, size, kernel)).expect("it fits");
            (it.lanes, it.points, it.channels, it.depth)
        };
        assert_eq!(tiling([1, 1], [4096, 4096], [7, 7]), ([64, 4], [1, 8], 1, 1));
        assert_eq!(tiling([3, 8], [1080, 1920], [5, 5]), ([64, 4], [1, 4], 8, 2));
        assert_eq!(tiling([64, 64], [1, 1_000_000], [1, 3]), ([256, 1], [4, 1], 8, 3));
        assert_eq!(tiling([64, 64], [16, 16], [3, 3]), ([16, 16], [1, 1], 8, 4));
    }
}
