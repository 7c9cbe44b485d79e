//! Splits `f32` operands into three `bf16` terms each, which have 24 significant bits together.

use super::scalar::{Rounding, to_u64};
use super::shape::{Attention, Strides, argument_error};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PlanError, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, Val};
use crate::types::PtxType;

/// Terms per element.
const TERMS: u32 = 3;
/// Columns per thread: 16 bytes of each term.
const COLUMNS: u32 = 8;
const THREADS: u32 = 256;

/// One split operand: `[term][batch][head][row][columns]`, where columns are padded with zeros to a
/// multiple of 8.
#[derive(Debug)]
pub(super) struct Split {
    name: &'static str,
    len: u64,
    strides: Strides,
    counts: [u32; 3],
    head_dim: u32,
    chunks: u32,
}

/// Returns the kernels for queries, keys and values.
pub(super) fn split_operands(attention: &Attention) -> Result<[Split; 3], PlanError> {
    let buffers = attention.buffers()?;
    // TMA coordinates are signed, and the terms extend the batch dimension.
    if u64::from(TERMS) * u64::from(attention.batch) >= 1 << 31 {
        let problem = format!("{} with {TERMS} terms each", attention.batch);
        return Err(argument_error(
            "batch",
            problem,
            "split the batch, heads or queries over several calls",
        ));
    }
    let operand = |nth: usize, strides| {
        let chunks = split_lens(attention)[nth] / u64::from(TERMS * COLUMNS);
        let chunks = u32::try_from(chunks).ok().filter(|n| *n < 1 << 31).ok_or_else(|| {
            let problem = format!("{chunks} chunks of {COLUMNS} columns");
            argument_error(
                buffers[nth].name,
                problem,
                "split the batch, heads or queries over several calls",
            )
        })?;
        let (name, len) = (buffers[nth].name, buffers[nth].len);
        let counts = counts(attention)[nth];
        Ok(Split { name, len, strides, counts, head_dim: attention.head_dim, chunks })
    };
    Ok([operand(0, attention.q)?, operand(1, attention.k)?, operand(2, attention.v)?])
}

/// Returns batch entries, heads and rows of queries, keys and values.
fn counts(attention: &Attention) -> [[u32; 3]; 3] {
    let kv_counts = [attention.batch, attention.kv_heads, attention.keys];
    [[attention.batch, attention.heads, attention.queries], kv_counts, kv_counts]
}

/// Returns the number of elements of each split operand, over all its terms.
pub(super) fn split_lens(attention: &Attention) -> [u64; 3] {
    let columns = u64::from(TERMS * attention.head_dim.next_multiple_of(COLUMNS));
    counts(attention)
        .map(|counts| counts.into_iter().map(u64::from).fold(columns, u64::saturating_mul))
}

impl Split {
    /// Returns the bytes of the result.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.chunks) * u64::from(2 * TERMS * COLUMNS)
    }

    /// Whether 8 columns can be loaded as two vectors.
    fn is_vectorized(&self) -> bool {
        let Strides { batch, head, row } = self.strides;
        self.head_dim.is_multiple_of(COLUMNS)
            && [batch, head, row].iter().all(|stride| stride.is_multiple_of(4))
    }
}

impl PtxKernel for Split {
    fn name(&self) -> String {
        Name::new("attention_split3").with_if(!self.is_vectorized(), "unaligned").build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        let is_vectorized = self.is_vectorized();
        typed::kernel(&self.name(), target, [THREADS, 1, 1], |k| split(k, is_vectorized))
    }

    fn launch(&self) -> LaunchShape {
        let blocks = self.chunks.div_ceil(THREADS);
        LaunchShape { grid: [blocks, 1, 1], block: [THREADS, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let read = BufferAccess::Read;
        let buffers = vec![
            BufferParameter { name: self.name, access: read, element: PtxType::F32, len: self.len },
            BufferParameter {
                name: "terms",
                access: BufferAccess::Write,
                element: PtxType::Bf16,
                len: self.bytes() / 2,
            },
        ];
        let mut parameters = vec![Parameter::Pointer(0), Parameter::Pointer(1)];
        let Strides { batch, head, row } = self.strides;
        parameters.extend([batch, head, row].map(Parameter::U64));
        let [_, heads, rows] = self.counts;
        let sizes = [heads, rows, self.head_dim, self.head_dim.div_ceil(COLUMNS), self.chunks];
        parameters.extend(sizes.map(Parameter::U32));
        KernelInterface { buffers, parameters }
    }
}

/// Writes the kernel: a thread splits 8 columns of a row.
fn split(k: &KernelBuilder, is_vectorized: bool) {
    let (from, to) = (k.pointer_param::<f32>("operand"), k.pointer_param::<u32>("terms"));
    let strides =
        ["batch_stride", "head_stride", "row_stride"].map(|name| k.scalar_param::<u64>(name));
    let [heads, rows, head_dim, chunks_per_row, chunks] =
        ["heads", "rows", "head_dim", "chunks_per_row", "chunks"]
            .map(|name| k.scalar_param::<u32>(name));
    let chunk = k.block_id(0) * THREADS + k.thread_id();
    k.if_then(chunk.lt(chunks), || {
        let (row, chunk_in_row) = (chunk / chunks_per_row, chunk % chunks_per_row);
        let (head, row) = (row / rows, row % rows);
        let coordinates = [head / heads, head % heads, row];
        let [batch, head, row] = [0, 1, 2].map(|axis| to_u64(coordinates[axis]) * strides[axis]);
        let first = chunk_in_row * COLUMNS;
        let from = from.at_wide(batch + head + row).at(first);
        let values = if is_vectorized {
            load_vectors(from)
        } else {
            load_scalars(k, from, head_dim - first)
        };
        store_terms(to, to_u64(chunk), to_u64(chunks), &values);
    });
}

fn load_vectors(from: Ptr<'_, Global, f32>) -> Vec<Val<'_, f32>> {
    [0, 4].into_iter().flat_map(|offset: u32| from.at(offset).load_constant_vector::<4>()).collect()
}

/// Loads as many elements as are in bounds; the others are 0.
fn load_scalars<'k>(
    k: &'k KernelBuilder,
    from: Ptr<'k, Global, f32>,
    remaining: Val<'k, u32>,
) -> Vec<Val<'k, f32>> {
    let value = |nth: u32| {
        let value = k.var(0.0f32);
        k.if_then(remaining.gt(nth), || value.set(from.at(nth).load_constant()));
        value.get()
    };
    (0..COLUMNS).map(value).collect()
}

fn store_terms<'k>(
    to: Ptr<'k, Global, u32>,
    chunk: Val<'k, u64>,
    chunks: Val<'k, u64>,
    values: &[Val<'k, f32>],
) {
    let terms = values
        .chunks_exact(2)
        .map(|pair| Rounding::new(PtxType::Bf16).pack_terms([pair[0], pair[1]], TERMS));
    let terms: Vec<_> = terms.collect();
    for term in 0..u64::from(TERMS) {
        let to = to.at_wide((chunks * term + chunk) * u64::from(COLUMNS / 2));
        to.store_vector([0, 1, 2, 3].map(|nth: usize| terms[nth][term as usize]));
    }
}
