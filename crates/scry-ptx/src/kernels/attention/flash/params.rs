//! Launch parameters.

use super::super::scalar::to_u64;
use super::variant::{Engine, Output, Variant};
use crate::typed::{Global, KernelBuilder, Ptr, Val};

/// Names of the integer parameters, in order.
const COUNTS: [&str; 12] = [
    "batch",
    "heads",
    "group_size",
    "queries",
    "keys",
    "head_dim",
    "bias_column_stride",
    "tasks_per_head",
    "tiles_per_slice",
    "interleaved_heads",
    "pair_shift",
    "work_items",
];

/// The parameters as values of a kernel.
#[derive(Debug)]
pub(super) struct Params<'k> {
    pub operands: Operands<'k>,
    pub out: Out<'k>,
    pub bias: Option<Rows<'k>>,
    /// Size of the batch.
    pub batch: Val<'k, u32>,
    /// Heads of queries.
    pub heads: Val<'k, u32>,
    /// Heads of queries that share a head of keys.
    pub group_size: Val<'k, u32>,
    pub queries: Val<'k, u32>,
    pub keys: Val<'k, u32>,
    pub head_dim: Val<'k, u32>,
    /// Column stride of the bias, in elements.
    pub bias_column_stride: Val<'k, u32>,
    pub schedule: ScheduleParams<'k>,
    /// Scale of the scores times log2(e), so that exponentials become powers of 2.
    pub scale: Val<'k, f32>,
}

/// A schedule as values of a kernel.
#[derive(Debug)]
pub(super) struct ScheduleParams<'k> {
    /// Tasks per head: tiles of its rows, or slices of its keys.
    pub tasks_per_head: Val<'k, u32>,
    /// Tiles of keys per slice.
    pub tiles_per_slice: Val<'k, u32>,
    /// Heads whose tiles are interleaved.
    pub interleaved_heads: Val<'k, u32>,
    /// 1 where tasks are pairs of tiles, else 0.
    pub pair_shift: Val<'k, u32>,
    /// Number of tasks, or of pairs of tasks, over all heads.
    pub work_items: Val<'k, u32>,
}

/// The sources of queries, keys and values.
#[derive(Debug)]
pub(super) enum Operands<'k> {
    /// Tensor maps (TMA).
    Maps([Val<'k, u64>; 3]),
    /// Addresses and strides.
    Rows(Box<[Rows<'k>; 3]>),
}

/// The destination of results.
#[derive(Debug)]
pub(super) enum Out<'k> {
    /// A tensor map (TMA).
    Tiles(Val<'k, u64>),
    Rows(Rows<'k>),
    /// Partial results of each row: its accumulators; its maximum and total.
    Partial(Ptr<'k, Global, f32>, Ptr<'k, Global, f32>),
}

/// Rows in global memory.
#[derive(Debug)]
pub(super) struct Rows<'k> {
    base: Ptr<'k, Global, u8>,
    /// Strides of the batch, of heads and of rows.
    pub strides: [Val<'k, u64>; 3],
}

impl<'k> Rows<'k> {
    fn new(k: &'k KernelBuilder, name: &str) -> Self {
        let base = k.pointer_param(name);
        let strides =
            ["batch", "head", "row"].map(|axis| k.scalar_param(&format!("{name}_{axis}_stride")));
        Self { base, strides }
    }

    /// Returns the address of a row, given by batch entry, head and row, for elements of `size`
    /// bytes.
    pub fn row_address(&self, size: u32, coordinates: [Val<'k, u32>; 3]) -> Ptr<'k, Global, u8> {
        let [batch, head, row] =
            [0, 1, 2].map(|axis| to_u64(coordinates[axis]) * self.strides[axis]);
        self.base.at_wide((batch + head + row) * u64::from(size))
    }
}

impl<'k> Params<'k> {
    pub fn new(k: &'k KernelBuilder, variant: &Variant) -> Self {
        let names = ["q", "k", "v"];
        let operands = match variant.engine {
            Engine::Hopper => Operands::Maps(names.map(|name| k.tensor_map_param(name))),
            Engine::Ampere => Operands::Rows(names.map(|name| Rows::new(k, name)).into()),
        };
        let out = match variant.output {
            Output::Tiles => Out::Tiles(k.tensor_map_param("out")),
            Output::Rows => Out::Rows(Rows::new(k, "out")),
            Output::Partial => {
                Out::Partial(k.pointer_param("accumulators"), k.pointer_param("stats"))
            }
        };
        let bias = variant.bias.map(|_| Rows::new(k, "bias"));
        let [
            batch,
            heads,
            group_size,
            queries,
            keys,
            head_dim,
            bias_column_stride,
            tasks_per_head,
            tiles_per_slice,
            interleaved_heads,
            pair_shift,
            work_items,
        ] = COUNTS.map(|name| k.scalar_param(name));
        let scale = k.scalar_param("scale");
        Self {
            operands,
            out,
            bias,
            batch,
            heads,
            group_size,
            queries,
            keys,
            head_dim,
            bias_column_stride,
            schedule: ScheduleParams {
                tasks_per_head,
                tiles_per_slice,
                interleaved_heads,
                pair_shift,
                work_items,
            },
            scale,
        }
    }
}
