//! The naive kernel: each warp computes one row, key by key, in registers.

use super::scalar::{read, wide, write};
use super::shape::{Attention, Strides, refusal};
use crate::kernels::name::Name;
use crate::kernels::{KernelInterface, LaunchShape, Parameter, PlanError, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, Global, Ptr, Val, Var};

/// Rows per block: one per warp.
const ROWS: u32 = 4;
const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// One warp per row. Lane `l` has the columns `l`, `l + 32`, ….
#[derive(Debug)]
pub(super) struct Naive {
    of: Attention,
    blocks: u32,
}

impl Naive {
    pub(super) fn new(of: Attention) -> Result<Self, PlanError> {
        let rows = u128::from(of.batch) * u128::from(of.heads) * u128::from(of.queries);
        let blocks = u32::try_from(rows.div_ceil(ROWS.into())).ok().filter(|n| *n < 1 << 29);
        let too_many = || refusal("queries", format!("{rows} rows in all"), "compute it in parts");
        Ok(Self { of, blocks: blocks.ok_or_else(too_many)? })
    }

    /// Registers per lane for the columns of a row.
    fn lane_columns(&self) -> u32 {
        self.of.head_dim.div_ceil(32)
    }
}

impl PtxKernel for Naive {
    fn name(&self) -> String {
        let element = self.of.element.name();
        let name = Name::new("attention_naive").with(element);
        let name = name.with(format_args!("d{}", 32 * self.lane_columns()));
        let name = name.with_if(self.of.causal, "causal");
        match &self.of.bias {
            Some(bias) => name.with(format_args!("bias{}", bias.element.name())).build(),
            None => name.build(),
        }
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [32 * ROWS, 1, 1], |k| Writer::new(k, self).row())
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape { grid: [self.blocks, 1, 1], block: [32 * ROWS, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let of = &self.of;
        let buffers = of.buffers().expect("it was checked when the plan was made");
        let mut parameters: Vec<_> = (0..buffers.len()).map(Parameter::Pointer).collect();
        let operands =
            [Some(of.q), Some(of.k), Some(of.v), of.bias.map(|b| b.strides), Some(of.out)];
        for Strides { batch, head, row } in operands.into_iter().flatten() {
            parameters.extend([batch, head, row].map(Parameter::U64));
        }
        let column = of.bias.map_or(0, |bias| bias.column);
        let counts = [of.batch, of.heads, of.group(), of.queries, of.keys, of.head_dim, column];
        parameters.extend(counts.map(Parameter::U32));
        parameters.push(Parameter::F32(of.scale));
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
        let [batch, head, row] = [0, 1, 2].map(|axis| wide(at[axis]) * self.strides[axis]);
        batch + head + row
    }
}

struct Writer<'k, 'a> {
    k: &'k Code,
    of: &'a Attention,
    lane_columns: u32,
    operands: Vec<Operand<'k>>,
    counts: [Val<'k, u32>; 7],
    scale: Val<'k, f32>,
    lane: Val<'k, u32>,
}

impl<'k, 'a> Writer<'k, 'a> {
    fn new(k: &'k Code, kernel: &'a Naive) -> Self {
        let mut names = vec!["q", "k", "v", "bias", "out"];
        names.retain(|name| *name != "bias" || kernel.of.bias.is_some());
        let pointers: Vec<_> = names.iter().map(|name| k.pointer::<u8>(name)).collect();
        let stride = |name: &str, axis: &str| k.number::<u64>(&format!("{name}_{axis}"));
        let strides = |name: &str| ["batch", "head", "row"].map(|axis| stride(name, axis));
        let operand = |(at, name): (_, &&str)| Operand { at, strides: strides(name) };
        let operands = pointers.into_iter().zip(&names).map(operand).collect();
        let counts = ["batch", "heads", "group", "queries", "keys", "head_dim", "column"];
        let counts = counts.map(|name| k.number(name));
        let (scale, lane) = (k.number("scale"), k.lane());
        Self {
            k,
            of: &kernel.of,
            lane_columns: kernel.lane_columns(),
            operands,
            counts,
            scale,
            lane,
        }
    }

    fn row(&self) {
        let [batch, heads, _, queries, ..] = self.counts;
        let row = self.k.block_id(0) * ROWS + self.k.warp();
        let (head, query) = (row / queries, row % queries);
        let inside = (head / heads).lt(batch);
        self.k.when(inside, || self.attend([head / heads, head % heads, query]));
    }

    /// Loads this lane's columns of a row; 0 beyond the last one.
    fn columns(&self, operand: &Operand<'k>, row: [Val<'k, u32>; 3]) -> Vec<Val<'k, f32>> {
        let first = operand.index(row);
        let column = |nth: u32| {
            let column = self.lane + 32 * nth;
            let value = self.k.var(0.0f32);
            self.k.when(column.lt(self.counts[5]), || {
                value.set(read(self.of.element, operand.at, first + wide(column)));
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
        let (most, total) = (k.var(f32::NEG_INFINITY), k.var(0.0f32));
        let accumulators: Vec<Var<'k, f32>> =
            (0..self.lane_columns).map(|_| k.var(0.0f32)).collect();
        let [_, _, group, _, keys, ..] = self.counts;
        let seen = if self.of.causal { (row[2] + 1).min(keys) } else { keys };
        k.for_range(0, seen, 1, |key| {
            let other = [row[0], row[1] / group, key];
            let score = self.score(&query, row, other);
            let greater = most.get().max(score);
            let hidden = greater.equals(f32::NEG_INFINITY);
            let shift = hidden.select::<f32>(0.0, greater);
            let (shrink, weight) = ((most.get() - shift).exp2(), (score - shift).exp2());
            total.set(total.get().mul_add(shrink, weight));
            let values = self.columns(&self.operands[2], other);
            for (sum, value) in accumulators.iter().zip(values) {
                sum.set(sum.get().mul_add(shrink, value * weight));
            }
            most.set(greater);
        });
        self.finish(row, total.get(), &accumulators);
    }

    /// Returns the score of a key times log2(e), so that exponentials become powers of 2.
    fn score(
        &self,
        query: &[Val<'k, f32>],
        row: [Val<'k, u32>; 3],
        other: [Val<'k, u32>; 3],
    ) -> Val<'k, f32> {
        let key = self.columns(&self.operands[1], other);
        let zero = self.k.constant(0.0f32).copied();
        let product = query.iter().zip(&key).fold(zero, |sum, (q, k)| q.mul_add(*k, sum));
        let score = self.k.reduce_warp(product, 32, |a, b| a + b) * self.scale;
        let Some(bias) = self.of.bias else { return score * LOG2_E };
        let operand = &self.operands[3];
        let index = operand.index(row) + wide(other[2] * self.counts[6]);
        (score + read(bias.element, operand.at, index)) * LOG2_E
    }

    fn finish(&self, row: [Val<'k, u32>; 3], total: Val<'k, f32>, accumulators: &[Var<'k, f32>]) {
        let out = &self.operands[self.operands.len() - 1];
        let first = out.index(row);
        let none = total.equals(0.0);
        for (nth, sum) in accumulators.iter().enumerate() {
            let column = self.lane + 32 * nth as u32;
            let result = none.select::<f32>(0.0, sum.get() / total);
            self.k.when(column.lt(self.counts[5]), || {
                write(self.of.element, out.at, first + wide(column), result);
            });
        }
    }
}
