//! Splits `f32` operands into three `bf16` terms each, which have 24 significant bits together.

use super::scalar::{Rounding, wide};
use super::shape::{Attention, Strides, refusal};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PlanError, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, Global, Ptr, Val};
use crate::types::PtxType;

/// Terms per element.
const PARTS: u32 = 3;
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
    items: u32,
}

/// Returns the kernels for queries, keys and values.
pub(super) fn all(of: &Attention) -> Result<[Split; 3], PlanError> {
    let buffers = of.buffers()?;
    // TMA coordinates are signed, and the terms extend the batch dimension.
    if u64::from(PARTS) * u64::from(of.batch) >= 1 << 31 {
        let problem = format!("{} in {PARTS} parts", of.batch);
        return Err(refusal("batch", problem, "compute attention in parts"));
    }
    let operand = |nth: usize, strides| {
        let items = lens(of)[nth] / u64::from(PARTS * COLUMNS);
        let items = u32::try_from(items).ok().filter(|n| *n < 1 << 31).ok_or_else(|| {
            let problem = format!("{items} pieces of {COLUMNS} columns");
            refusal(buffers[nth].name, problem, "compute attention in parts")
        })?;
        let (name, len) = (buffers[nth].name, buffers[nth].len);
        let counts = counts(of)[nth];
        Ok(Split { name, len, strides, counts, head_dim: of.head_dim, items })
    };
    Ok([operand(0, of.q)?, operand(1, of.k)?, operand(2, of.v)?])
}

fn counts(of: &Attention) -> [[u32; 3]; 3] {
    let others = [of.batch, of.kv_heads, of.keys];
    [[of.batch, of.heads, of.queries], others, others]
}

/// Returns the elements of each split operand.
pub(super) fn lens(of: &Attention) -> [u64; 3] {
    let columns = u64::from(PARTS * of.head_dim.next_multiple_of(COLUMNS));
    counts(of).map(|counts| counts.into_iter().map(u64::from).fold(columns, u64::saturating_mul))
}

impl Split {
    /// Returns the bytes of the result.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.items) * u64::from(2 * PARTS * COLUMNS)
    }

    /// Whether 8 columns can be loaded as two vectors.
    fn vectors(&self) -> bool {
        let Strides { batch, head, row } = self.strides;
        self.head_dim.is_multiple_of(COLUMNS)
            && [batch, head, row].iter().all(|stride| stride.is_multiple_of(4))
    }
}

impl PtxKernel for Split {
    fn name(&self) -> String {
        Name::new("attention_split3").with_if(!self.vectors(), "unaligned").build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        let vectors = self.vectors();
        typed::kernel(&self.name(), target, [THREADS, 1, 1], |k| split(k, vectors))
    }

    fn launch(&self) -> LaunchShape {
        let blocks = self.items.div_ceil(THREADS);
        LaunchShape { grid: [blocks, 1, 1], block: [THREADS, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let read = BufferAccess::Read;
        let buffers = vec![
            BufferParameter { name: self.name, access: read, element: PtxType::F32, len: self.len },
            BufferParameter {
                name: "parts",
                access: BufferAccess::Write,
                element: PtxType::Bf16,
                len: self.bytes() / 2,
            },
        ];
        let mut parameters = vec![Parameter::Pointer(0), Parameter::Pointer(1)];
        let Strides { batch, head, row } = self.strides;
        parameters.extend([batch, head, row].map(Parameter::U64));
        let [_, heads, rows] = self.counts;
        let numbers = [heads, rows, self.head_dim, self.head_dim.div_ceil(COLUMNS), self.items];
        parameters.extend(numbers.map(Parameter::U32));
        KernelInterface { buffers, parameters }
    }
}

/// Writes the kernel: a thread splits 8 columns of a row.
fn split(k: &Code, vectors: bool) {
    let (from, to) = (k.pointer::<f32>("whole"), k.pointer::<u32>("parts"));
    let strides = ["batch", "head", "row"].map(|name| k.number::<u64>(name));
    let [heads, rows, head_dim, pieces, items] =
        ["heads", "rows", "head_dim", "pieces", "items"].map(|name| k.number::<u32>(name));
    let item = k.block_id(0) * THREADS + k.thread_id();
    k.when(item.lt(items), || {
        let (row, piece) = (item / pieces, item % pieces);
        let (head, row) = (row / rows, row % rows);
        let at = [head / heads, head % heads, row];
        let [batch, head, row] = [0, 1, 2].map(|axis| wide(at[axis]) * strides[axis]);
        let first = piece * COLUMNS;
        let from = from.at_wide(batch + head + row).at(first);
        let numbers = if vectors { vector(from) } else { single(k, from, head_dim - first) };
        store(to, wide(item), wide(items), &numbers);
    });
}

fn vector(from: Ptr<'_, Global, f32>) -> Vec<Val<'_, f32>> {
    [0, 4].into_iter().flat_map(|at: u32| from.at(at).load_constant_vector::<4>()).collect()
}

/// Loads as many elements as are in bounds; the others are 0.
fn single<'k>(k: &'k Code, from: Ptr<'k, Global, f32>, left: Val<'k, u32>) -> Vec<Val<'k, f32>> {
    let number = |nth: u32| {
        let number = k.var(0.0f32);
        k.when(left.gt(nth), || number.set(from.at(nth).load_constant()));
        number.get()
    };
    (0..COLUMNS).map(number).collect()
}

fn store<'k>(
    to: Ptr<'k, Global, u32>,
    item: Val<'k, u64>,
    items: Val<'k, u64>,
    numbers: &[Val<'k, f32>],
) {
    let words = numbers
        .chunks_exact(2)
        .map(|pair| Rounding::to(PtxType::Bf16).words([pair[0], pair[1]], PARTS));
    let words: Vec<_> = words.collect();
    for part in 0..u64::from(PARTS) {
        let at = to.at_wide((items * part + item) * u64::from(COLUMNS / 2));
        at.store_vector([0, 1, 2, 3].map(|nth: usize| words[nth][part as usize]));
    }
}
