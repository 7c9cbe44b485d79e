//! Parameters of the flash form, and what a block finds out from them.

use super::super::scalar::wide;
use super::super::shape::Strides;
use super::{Flash, Output, Variant, maps};
use crate::kernels::{Interface, Parameter};
use crate::typed::{Code, Global, Ptr, Val};

/// Numbers in the order of parameters.
const COUNTS: [&str; 10] = [
    "batch", "heads", "group", "queries", "keys", "head_dim", "pieces", "section", "each", "column",
];

/// What a launch passes.
#[derive(Debug)]
pub(super) struct Params<'k> {
    /// Tensor maps of queries, keys and values.
    pub maps: [Val<'k, u64>; 3],
    pub out: Out<'k>,
    pub bias: Option<Rows<'k>>,
    /// Size of the batch.
    pub batch: Val<'k, u32>,
    /// Heads of queries.
    pub heads: Val<'k, u32>,
    /// Of these, as many share keys.
    pub group: Val<'k, u32>,
    pub queries: Val<'k, u32>,
    pub keys: Val<'k, u32>,
    pub head_dim: Val<'k, u32>,
    /// Tiles of rows of a head, or parts that its keys are split in.
    pieces: Val<'k, u32>,
    /// Heads whose blocks are launched alternately.
    section: Val<'k, u32>,
    /// Tiles of keys of each part.
    each: Val<'k, u32>,
    /// From one number of the bias to the next.
    pub column: Val<'k, u32>,
    /// Factor of scores, times the logarithm that makes powers of 2 of exponentials.
    pub scale: Val<'k, f32>,
}

/// Where results go.
#[derive(Debug)]
pub(super) enum Out<'k> {
    /// A tensor map.
    Tiles(Val<'k, u64>),
    Rows(Rows<'k>),
    /// Sums of each row, and its maximum and total.
    Partial(Ptr<'k, Global, f32>, Ptr<'k, Global, f32>),
}

/// Rows in memory.
#[derive(Debug)]
pub(super) struct Rows<'k> {
    at: Ptr<'k, Global, u8>,
    strides: [Val<'k, u64>; 3],
}

impl<'k> Rows<'k> {
    fn new(k: &'k Code, name: &str) -> Self {
        let at = k.pointer(name);
        let strides = ["batch", "head", "row"].map(|axis| k.number(&format!("{name}_{axis}")));
        Self { at, strides }
    }

    /// A row of a head of elements of so many bytes.
    pub fn row(&self, size: u32, at: [Val<'k, u32>; 3]) -> Ptr<'k, Global, u8> {
        let [batch, head, row] = [0, 1, 2].map(|axis| wide(at[axis]) * self.strides[axis]);
        self.at.at_wide((batch + head + row) * u64::from(size))
    }
}

impl<'k> Params<'k> {
    pub fn new(k: &'k Code, variant: &Variant) -> Self {
        let maps = ["q", "k", "v"].map(|name| k.tensor_map(name));
        let out = match variant.output {
            Output::Tiles => Out::Tiles(k.tensor_map("out")),
            Output::Rows => Out::Rows(Rows::new(k, "out")),
            Output::Partial => Out::Partial(k.pointer("sums"), k.pointer("extents")),
        };
        let bias = variant.bias.map(|_| Rows::new(k, "bias"));
        let [batch, heads, group, queries, keys, head_dim, pieces, section, each, column] =
            COUNTS.map(|name| k.number(name));
        let scale = k.number("scale");
        Self {
            maps,
            out,
            bias,
            batch,
            heads,
            group,
            queries,
            keys,
            head_dim,
            pieces,
            section,
            each,
            column,
            scale,
        }
    }

    /// What this block computes.
    pub fn task(&self, k: &'k Code, variant: &Variant) -> Task<'k> {
        if variant.packed() { self.part(k, variant) } else { self.tile(k, variant) }
    }

    /// A tile of rows of a head. Heads take turns in sections, so that those which run together
    /// find their keys in the cache; within one the longest tiles come first.
    fn tile(&self, k: &'k Code, variant: &Variant) -> Task<'k> {
        let all = self.batch * self.heads;
        let per_section = self.section * self.pieces;
        let (section, rest) = divided(k.block_id(0), per_section);
        let before = section * self.section;
        let (nth, head) = divided(rest, self.section.min(all - before));
        let (batch, head) = divided(before + head, self.heads);
        let first_row = (self.pieces - 1 - nth) * (64 * variant.tile.consumers);
        let behind = first_row + 64 * variant.tile.consumers;
        let seen = if variant.causal { self.keys.min(behind) } else { self.keys };
        let end = tiles(seen, variant);
        let begin = k.constant(0u32);
        Task { batch, head, kv_head: head / self.group, first_row, begin, end, part: begin }
    }

    /// All rows of the heads that share keys, and a part of these.
    fn part(&self, k: &'k Code, variant: &Variant) -> Task<'k> {
        let (head, part) = divided(k.block_id(0), self.pieces);
        let (batch, kv_head) = divided(head, self.heads / self.group);
        let begin = part * self.each;
        let end = (begin + self.each).min(tiles(self.keys, variant));
        let first_row = k.constant(0u32);
        Task { batch, head: kv_head * self.group, kv_head, first_row, begin, end, part }
    }
}

/// Quotient and remainder.
fn divided<'k>(a: Val<'k, u32>, b: Val<'k, u32>) -> (Val<'k, u32>, Val<'k, u32>) {
    let quotient = a / b;
    (quotient, a - quotient * b)
}

/// Tiles that so many keys take.
fn tiles<'k>(keys: Val<'k, u32>, variant: &Variant) -> Val<'k, u32> {
    (keys + (variant.tile.keys - 1)) / variant.tile.keys
}

/// What a block computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task<'k> {
    pub batch: Val<'k, u32>,
    /// The head of queries, or the first of those that share keys.
    pub head: Val<'k, u32>,
    pub kv_head: Val<'k, u32>,
    /// The first row of the block.
    pub first_row: Val<'k, u32>,
    /// The first tile of keys.
    pub begin: Val<'k, u32>,
    /// The one behind the last tile of keys, after `begin`.
    pub end: Val<'k, u32>,
    /// Which part of the keys this is.
    pub part: Val<'k, u32>,
}

/// What a launch passes, as data.
pub(super) fn interface(flash: &Flash) -> Interface {
    let (of, variant) = (&flash.of, &flash.variant);
    let (buffers, mut parameters) = maps::buffers(of, variant, flash.pieces);
    if let Some(bias) = of.bias {
        parameters.push(Parameter::Pointer(3));
        parameters.extend(strides(bias.strides));
    }
    let tiles = of.keys.div_ceil(variant.tile.keys);
    let each = tiles.div_ceil(flash.pieces);
    let column = of.bias.map_or(0, |bias| bias.column);
    let counts = [of.batch, of.heads, of.group(), of.queries, of.keys, of.head_dim];
    parameters.extend(counts.map(Parameter::U32));
    parameters.extend([flash.pieces, flash.section, each, column].map(Parameter::U32));
    parameters.push(Parameter::F32(of.scale * std::f32::consts::LOG2_E));
    Interface { buffers, parameters }
}

/// The distances of rows as parameters.
pub(super) fn strides(of: Strides) -> [Parameter; 3] {
    [of.batch, of.head, of.row].map(Parameter::U64)
}
