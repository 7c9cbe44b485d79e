//! The naive kernel: each warp computes one row, key by key, in registers.

use super::scalar::{load_element, store_element, to_u64};
use super::shape::{Attention, Strides, argument_error};
use crate::kernels::name::Name;
use crate::kernels::{KernelInterface, LaunchShape, Parameter, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, Val, Var};

/// Rows per block, one per warp.
const ROWS_PER_BLOCK: u32 = 4;
/// Indices in [`Writer::counts`].
const HEAD_DIM: usize = 5;
const BIAS_COLUMN_STRIDE: usize = 6;
const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// One warp per row. Lane `l` has the columns `l`, `l + 32`, ….
#[derive(Debug)]
pub(super) struct Naive {
    attention: Attention,
    blocks: u32,
}

impl Naive {
    pub(super) fn new(attention: Attention) -> Result<Self, PlanError> {
        let rows = u128::from(attention.batch)
            * u128::from(attention.heads)
            * u128::from(attention.queries);
        let blocks =
            u32::try_from(rows.div_ceil(ROWS_PER_BLOCK.into())).ok().filter(|n| *n < 1 << 29);
        let too_many = || {
            argument_error(
                "queries",
                format!("{rows} rows in all, above the limit of a launch"),
                "split the batch, heads or queries over several calls",
            )
        };
        Ok(Self { attention, blocks: blocks.ok_or_else(too_many)? })
    }

    /// Registers per lane for the columns of a row.
    fn lane_columns(&self) -> u32 {
        self.attention.head_dim.div_ceil(32)
    }
}

impl PtxKernel for Naive {
    fn name(&self) -> String {
        let element = self.attention.element.name();
        let name = Name::new("attention_naive").with(element);
        let name = name.with(format_args!("d{}", 32 * self.lane_columns()));
        let name = name.with_if(self.attention.causal, "causal");
        match &self.attention.bias {
            Some(bias) => name.with(format_args!("bias{}", bias.element.name())).build(),
            None => name.build(),
        }
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [32 * ROWS_PER_BLOCK, 1, 1], |k| {
            Writer::new(k, self).row()
        })
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape {
            grid: [self.blocks, 1, 1],
            block: [32 * ROWS_PER_BLOCK, 1, 1],
            dynamic_shared: 0,
        }
    }

    fn interface(&self) -> KernelInterface {
        let attention = &self.attention;
        let buffers = attention.buffers().expect("it was checked when the plan was made");
        let mut parameters: Vec<_> = (0..buffers.len()).map(Parameter::Pointer).collect();
        let operands = [
            Some(attention.q),
            Some(attention.k),
            Some(attention.v),
            attention.bias.map(|b| b.strides),
            Some(attention.out),
        ];
        for Strides { batch, head, row } in operands.into_iter().flatten() {
            parameters.extend([batch, head, row].map(Parameter::U64));
        }
        let bias_column_stride = attention.bias.map_or(0, |bias| bias.column_stride);
        let counts = [
            attention.batch,
            attention.heads,
            attention.group_size(),
            attention.queries,
            attention.keys,
            attention.head_dim,
            bias_column_stride,
        ];
        parameters.extend(counts.map(Parameter::U32));
        parameters.push(Parameter::F32(attention.scale));
        KernelInterface { buffers, parameters }
    }
}

/// An operand: base address and strides.
struct Operand<'k> {
    at: Ptr<'k, Global, u8>,
    strides: [Val<'k, u64>; 3],
}

impl<'k> Operand<'k> {
    /// Returns the element offset of a row.
    fn index(&self, at: [Val<'k, u32>; 3]) -> Val<'k, u64> {
        let [batch, head, row] = [0, 1, 2].map(|axis| to_u64(at[axis]) * self.strides[axis]);
        batch + head + row
    }
}

/// Writes the kernel's code.
struct Writer<'k, 'a> {
    k: &'k KernelBuilder,
    attention: &'a Attention,
    lane_columns: u32,
    /// `q`, `k`, `v`, the bias if there is one, and `out`.
    operands: Vec<Operand<'k>>,
    /// The `u32` parameters, in the order of the interface; strides are `u64`.
    counts: [Val<'k, u32>; 7],
    scale: Val<'k, f32>,
    lane: Val<'k, u32>,
}

impl<'k, 'a> Writer<'k, 'a> {
    fn new(k: &'k KernelBuilder, kernel: &'a Naive) -> Self {
        let mut names = vec!["q", "k", "v", "bias", "out"];
        names.retain(|name| *name != "bias" || kernel.attention.bias.is_some());
        let pointers: Vec<_> = names.iter().map(|name| k.pointer_param::<u8>(name)).collect();
        let stride =
            |name: &str, axis: &str| k.scalar_param::<u64>(&format!("{name}_{axis}_stride"));
        let strides = |name: &str| ["batch", "head", "row"].map(|axis| stride(name, axis));
        let operand = |(at, name): (_, &&str)| Operand { at, strides: strides(name) };
        let operands = pointers.into_iter().zip(&names).map(operand).collect();
        let counts =
            ["batch", "heads", "group_size", "queries", "keys", "head_dim", "bias_column_stride"];
        let counts = counts.map(|name| k.scalar_param(name));
        let (scale, lane) = (k.scalar_param("scale"), k.lane());
        Self {
            k,
            attention: &kernel.attention,
            lane_columns: kernel.lane_columns(),
            operands,
            counts,
            scale,
            lane,
        }
    }

    fn row(&self) {
        let [batch, heads, _, queries, ..] = self.counts;
        let row = self.k.block_id(0) * ROWS_PER_BLOCK + self.k.warp();
        let (head, query) = (row / queries, row % queries);
        let in_bounds = (head / heads).lt(batch);
        self.k.if_then(in_bounds, || self.attend([head / heads, head % heads, query]));
    }

    /// Loads this lane's columns of a row; 0 beyond the last one.
    fn columns(&self, operand: &Operand<'k>, row: [Val<'k, u32>; 3]) -> Vec<Val<'k, f32>> {
        let first = operand.index(row);
        let column = |nth: u32| {
            let column = self.lane + 32 * nth;
            let value = self.k.var(0.0f32);
            self.k.if_then(column.lt(self.counts[HEAD_DIM]), || {
                value.set(load_element(self.attention.element, operand.at, first + to_u64(column)));
            });
            value.get()
        };
        (0..self.lane_columns).map(column).collect()
    }

    /// Computes one row with online softmax: running maximum, sum of weights and weighted sum of
    /// values.
    fn attend(&self, row: [Val<'k, u32>; 3]) {
        let k = self.k;
        let query = self.columns(&self.operands[0], row);
        let (max, total) = (k.var(f32::NEG_INFINITY), k.var(0.0f32));
        let accumulators: Vec<Var<'k, f32>> =
            (0..self.lane_columns).map(|_| k.var(0.0f32)).collect();
        let [_, _, group, _, keys, ..] = self.counts;
        let visible_keys = if self.attention.causal { (row[2] + 1).min(keys) } else { keys };
        k.for_range(0, visible_keys, 1, |key| {
            let key_row = [row[0], row[1] / group, key];
            let score = self.score(&query, row, key_row);
            let new_max = max.get().max(score);
            let is_masked = new_max.eq(f32::NEG_INFINITY);
            let shift = is_masked.select::<f32>(0.0, new_max);
            let (rescale, weight) = ((max.get() - shift).exp2(), (score - shift).exp2());
            total.set(total.get().mul_add(rescale, weight));
            let values = self.columns(&self.operands[2], key_row);
            for (sum, value) in accumulators.iter().zip(values) {
                sum.set(sum.get().mul_add(rescale, value * weight));
            }
            max.set(new_max);
        });
        self.store_row(row, total.get(), &accumulators);
    }

    /// Returns the score of a key times log2(e), so that exponentials become powers of 2.
    fn score(
        &self,
        query: &[Val<'k, f32>],
        row: [Val<'k, u32>; 3],
        key_row: [Val<'k, u32>; 3],
    ) -> Val<'k, f32> {
        let key = self.columns(&self.operands[1], key_row);
        let zero = self.k.constant(0.0f32).copied();
        let product = query.iter().zip(&key).fold(zero, |sum, (q, k)| q.mul_add(*k, sum));
        let score = self.k.reduce_warp(product, 32, |a, b| a + b) * self.scale;
        let Some(bias) = self.attention.bias else { return score * LOG2_E };
        let operand = &self.operands[3];
        let index = operand.index(row) + to_u64(key_row[2] * self.counts[BIAS_COLUMN_STRIDE]);
        (score + load_element(bias.element, operand.at, index)) * LOG2_E
    }

    fn store_row(
        &self,
        row: [Val<'k, u32>; 3],
        total: Val<'k, f32>,
        accumulators: &[Var<'k, f32>],
    ) {
        let out = &self.operands[self.operands.len() - 1];
        let first = out.index(row);
        let is_empty = total.eq(0.0);
        for (nth, sum) in accumulators.iter().enumerate() {
            let column = self.lane + 32 * nth as u32;
            let result = is_empty.select::<f32>(0.0, sum.get() / total);
            self.k.if_then(column.lt(self.counts[HEAD_DIM]), || {
                store_element(self.attention.element, out.at, first + to_u64(column), result);
            });
        }
    }
}
