//! Parameters of the flash form.

use super::super::scalar::wide;
use super::variant::{Engine, Output, Variant};
use crate::typed::{Code, Global, Ptr, Val};

/// Numbers in the order of parameters.
const COUNTS: [&str; 12] = [
    "batch", "heads", "group", "queries", "keys", "head_dim", "column", "pieces", "each",
    "section", "pairs", "units",
];

/// What a launch passes.
#[derive(Debug)]
pub(super) struct Params<'k> {
    pub operands: Operands<'k>,
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
    /// From one number of the bias to the next.
    pub column: Val<'k, u32>,
    pub plan: Deal<'k>,
    /// Factor of scores, times the logarithm that makes powers of 2 of exponentials.
    pub scale: Val<'k, f32>,
}

/// A schedule as values of a kernel.
#[derive(Debug)]
pub(super) struct Deal<'k> {
    pub pieces: Val<'k, u32>,
    pub each: Val<'k, u32>,
    pub section: Val<'k, u32>,
    /// 1 where two tiles are taken at once, else 0.
    pub pairs: Val<'k, u32>,
    pub units: Val<'k, u32>,
}

/// Where queries, keys and values come from.
#[derive(Debug)]
pub(super) enum Operands<'k> {
    /// Tensor maps.
    Maps([Val<'k, u64>; 3]),
    Rows(Box<[Rows<'k>; 3]>),
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
    /// Of the batch, of heads, of rows.
    pub strides: [Val<'k, u64>; 3],
}

impl<'k> Rows<'k> {
    fn new(k: &'k Code, name: &str) -> Self {
        let at = k.pointer(name);
        let strides = ["batch", "head", "row"].map(|axis| k.number(&format!("{name}_{axis}")));
        Self { at, strides }
    }

    /// A row of a head of elements of this many bytes.
    pub fn row(&self, size: u32, at: [Val<'k, u32>; 3]) -> Ptr<'k, Global, u8> {
        let [batch, head, row] = [0, 1, 2].map(|axis| wide(at[axis]) * self.strides[axis]);
        self.at.at_wide((batch + head + row) * u64::from(size))
    }
}

impl<'k> Params<'k> {
    pub fn new(k: &'k Code, variant: &Variant) -> Self {
        let names = ["q", "k", "v"];
        let operands = match variant.engine {
            Engine::Hopper => Operands::Maps(names.map(|name| k.tensor_map(name))),
            Engine::Ampere => Operands::Rows(names.map(|name| Rows::new(k, name)).into()),
        };
        let out = match variant.output {
            Output::Tiles => Out::Tiles(k.tensor_map("out")),
            Output::Rows => Out::Rows(Rows::new(k, "out")),
            Output::Partial => Out::Partial(k.pointer("sums"), k.pointer("extents")),
        };
        let bias = variant.bias.map(|_| Rows::new(k, "bias"));
        let [
            batch,
            heads,
            group,
            queries,
            keys,
            head_dim,
            column,
            pieces,
            each,
            section,
            pairs,
            units,
        ] = COUNTS.map(|name| k.number(name));
        let scale = k.number("scale");
        Self {
            operands,
            out,
            bias,
            batch,
            heads,
            group,
            queries,
            keys,
            head_dim,
            column,
            plan: Deal { pieces, each, section, pairs, units },
            scale,
        }
    }
}
