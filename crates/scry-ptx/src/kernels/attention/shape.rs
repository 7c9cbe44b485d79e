//! The problem description: sizes, types and memory layout.

use crate::kernels::{BufferAccess, BufferParameter, PlanError};
use crate::types::PtxType;

/// The strides of an operand, in elements. The columns of a row are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Strides {
    /// From one entry of the batch to the next.
    pub batch: u64,
    /// From one head to the next.
    pub head: u64,
    /// From one row to the next.
    pub row: u64,
}

impl Strides {
    /// Returns the strides of an operand of shape `[batch, heads, rows, columns]` without gaps.
    #[must_use]
    pub const fn packed(heads: u32, rows: u32, columns: u32) -> Self {
        let row = columns as u64;
        let head = row * rows as u64;
        Self { batch: head.saturating_mul(heads as u64), head, row }
    }

    /// Returns the number of elements from the first to the last one, for `counts` batch entries,
    /// heads and rows; `None` beyond 64 bits.
    fn extent(&self, counts: [u32; 3], columns: u32) -> Option<u64> {
        if counts.contains(&0) || columns == 0 {
            return Some(0);
        }
        let last = counts.map(|count| u64::from(count) - 1);
        let batch = self.batch.checked_mul(last[0])?;
        let head = self.head.checked_mul(last[1])?;
        let row = self.row.checked_mul(last[2])?;
        batch.checked_add(head)?.checked_add(row)?.checked_add(columns.into())
    }
}

/// A bias that is added to the scores, minus infinity to mask a key. A stride of 0 broadcasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttentionBias {
    /// `F32`, or the type of the operands.
    pub element: PtxType,
    /// Its strides.
    pub strides: Strides,
    /// The column stride (from one key to the next), in elements: 0 or 1.
    pub column_stride: u32,
}

/// Attention of a batch of heads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Number of batch entries.
    pub batch: u32,
    /// Heads of queries.
    pub heads: u32,
    /// Heads of keys and values: a divisor of `heads`.
    pub kv_heads: u32,
    /// Queries per head.
    pub queries: u32,
    /// Keys and values per head.
    pub keys: u32,
    /// Columns per row: 1 to 256.
    pub head_dim: u32,
    /// Type of all operands: `F16`, `Bf16` or `F32`.
    pub element: PtxType,
    /// Whether row `i` sees the keys `0 ..= i` only.
    pub causal: bool,
    /// Scale of the scores.
    pub scale: f32,
    /// The bias of the scores.
    pub bias: Option<AttentionBias>,
    /// Strides of queries.
    pub q: Strides,
    /// Strides of keys.
    pub k: Strides,
    /// Strides of values.
    pub v: Strides,
    /// Strides of results, which have the shape of queries.
    pub out: Strides,
}

/// Maximum of each size: TMA coordinates are signed 32-bit integers.
const MAX_COUNT: u32 = (1 << 31) - 1024;

impl Attention {
    /// Returns attention of operands without gaps, with as many heads of keys as of queries, scaled
    /// by `1 / sqrt(head_dim)`.
    #[must_use]
    pub fn new(
        [batch, heads]: [u32; 2],
        queries: u32,
        keys: u32,
        head_dim: u32,
        element: PtxType,
    ) -> Self {
        let (q_shape, kv_shape) =
            (Strides::packed(heads, queries, head_dim), Strides::packed(heads, keys, head_dim));
        Self {
            batch,
            heads,
            kv_heads: heads,
            queries,
            keys,
            head_dim,
            element,
            causal: false,
            scale: 1.0 / (head_dim as f32).sqrt(),
            bias: None,
            q: q_shape,
            k: kv_shape,
            v: kv_shape,
            out: q_shape,
        }
    }

    /// Returns the same with this many heads of keys and values (grouped-query attention); keys and
    /// values have no gaps.
    #[must_use]
    pub const fn grouped(mut self, kv_heads: u32) -> Self {
        self.kv_heads = kv_heads;
        self.k = Strides::packed(kv_heads, self.keys, self.head_dim);
        self.v = self.k;
        self
    }

    /// Returns the same with a causal mask: row `i` sees the keys `0 ..= i` only.
    #[must_use]
    pub const fn causal(mut self) -> Self {
        self.causal = true;
        self
    }

    /// Returns the same with a bias.
    #[must_use]
    pub const fn biased(mut self, bias: AttentionBias) -> Self {
        self.bias = Some(bias);
        self
    }

    /// Returns the number of heads of queries that share a head of keys.
    pub(super) const fn group_size(&self) -> u32 {
        self.heads / self.kv_heads
    }

    /// Whether there are no results.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.batch == 0 || self.heads == 0 || self.queries == 0
    }

    /// Returns the buffers that kernels bind, in order: `q`, `k`, `v`, `bias` if there is one,
    /// `out`; with the minimum number of elements.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if an argument is invalid or a size out of range.
    pub fn buffers(&self) -> Result<Vec<BufferParameter>, PlanError> {
        self.check()?;
        let Self { batch, heads, kv_heads, queries, keys, head_dim, element, .. } = *self;
        let read = BufferAccess::Read;
        let (q_shape, kv_shape) = ([batch, heads, queries], [batch, kv_heads, keys]);
        let mut buffers = vec![
            buffer("q", read, element, self.q.extent(q_shape, head_dim))?,
            buffer("k", read, element, self.k.extent(kv_shape, head_dim))?,
            buffer("v", read, element, self.v.extent(kv_shape, head_dim))?,
        ];
        if let Some(bias) = self.bias {
            let columns = if keys == 0 { 0 } else { bias.column_stride * (keys - 1) + 1 };
            let extent = bias.strides.extent(q_shape, columns);
            buffers.push(buffer("bias", read, bias.element, extent)?);
        }
        buffers.push(buffer(
            "out",
            BufferAccess::Write,
            element,
            self.out.extent(q_shape, head_dim),
        )?);
        Ok(buffers)
    }

    fn check(&self) -> Result<(), PlanError> {
        self.check_types()?;
        self.check_counts()?;
        if self.is_empty() || self.results_are_disjoint() {
            return Ok(());
        }
        let problem = format!("of {:?}, where results overlap", self.out);
        Err(argument_error("out", problem, "no two results may overlap"))
    }

    fn check_types(&self) -> Result<(), PlanError> {
        if !matches!(self.element, PtxType::F16 | PtxType::Bf16 | PtxType::F32) {
            let problem = self.element.name().to_owned();
            return Err(argument_error("element", problem, "operands hold f16, bf16 or f32"));
        }
        let Some(bias) = self.bias else { return Ok(()) };
        if bias.element != self.element && bias.element != PtxType::F32 {
            let problem =
                format!("{} with operands of {}", bias.element.name(), self.element.name());
            return Err(argument_error(
                "bias.element",
                problem,
                "use that of the operands, or f32",
            ));
        }
        if bias.column_stride > 1 {
            let problem = bias.column_stride.to_string();
            return Err(argument_error(
                "bias.column_stride",
                problem,
                "use 1, or 0 to broadcast along the keys",
            ));
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), PlanError> {
        let Self { batch, heads, kv_heads, queries, keys, head_dim, .. } = *self;
        if !(1..=256).contains(&head_dim) {
            return Err(argument_error("head_dim", head_dim.to_string(), "use 1 to 256"));
        }
        if heads > 0 && (kv_heads == 0 || !heads.is_multiple_of(kv_heads)) {
            let problem = format!("{kv_heads}, which does not divide {heads} heads");
            return Err(argument_error("kv_heads", problem, "use a divisor of heads"));
        }
        if !self.scale.is_finite() {
            return Err(argument_error("scale", self.scale.to_string(), "use a finite number"));
        }
        let counts = [("batch", batch), ("heads", heads), ("queries", queries), ("keys", keys)];
        match counts.into_iter().find(|(_, count)| *count > MAX_COUNT) {
            Some((name, count)) => {
                let problem = format!("{count}, beyond {MAX_COUNT}");
                let help = if name == "keys" {
                    "pass fewer keys"
                } else {
                    "split the batch, heads or queries over several calls"
                };
                Err(argument_error(name, problem, help))
            }
            None => Ok(()),
        }
    }

    /// Whether no two results overlap: each stride is at least the extent of the axes with smaller
    /// strides.
    fn results_are_disjoint(&self) -> bool {
        let Strides { batch, head, row } = self.out;
        let mut axes = [(row, self.queries), (head, self.heads), (batch, self.batch)];
        axes.sort_unstable();
        let mut extent = u64::from(self.head_dim);
        axes.into_iter().filter(|(_, count)| *count > 1).all(|(stride, count)| {
            let is_disjoint = stride >= extent;
            extent = stride.saturating_mul(u64::from(count) - 1).saturating_add(extent);
            is_disjoint
        })
    }
}

fn buffer(
    name: &'static str,
    access: BufferAccess,
    element: PtxType,
    extent: Option<u64>,
) -> Result<BufferParameter, PlanError> {
    match extent.filter(|len| *len < 1 << 60) {
        Some(len) => Ok(BufferParameter { name, access, element, len }),
        None => {
            let problem = "with strides that exceed 64-bit addresses".to_owned();
            Err(argument_error(name, problem, "reduce its strides"))
        }
    }
}

/// Returns the error for unsupported arguments. `problem` completes the sentence
/// "`argument` is".
pub(super) fn argument_error(
    argument: &'static str,
    problem: String,
    help: &'static str,
) -> PlanError {
    PlanError::Argument {
        kernel: "attention".to_owned(),
        argument,
        problem: format!("is {problem}"),
        help,
    }
}
