//! Attention on the CPU device: two products for each head, and a softmax between them.

use scry_gpu::{DType, HostArguments, HostThreads, PreparedLaunch, Result};
use scry_ptx::kernels::attention::{Attention, Strides};

use super::Attend;
use crate::host::{HostNumbers, write_as_f32};
use crate::host_gemm::{HostStrides, host_gemm};
use crate::operation::Preparation;
use crate::ptx;

/// Rows of scores that are in memory at the same time.
const ROWS: usize = 256;

/// Products of a query and a key for which another thread is worth it.
const MIN_PRODUCTS: usize = 1 << 15;

pub(super) fn prepare(it: &Attend, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let attention = it.attention;
    preparation.host("host_attention", it.arguments.clone(), move |arguments| {
        attend(&attention, arguments);
    })
}

/// The operands of all heads.
struct Operands<'o> {
    attention: &'o Attention,
    q: &'o [f32],
    k: &'o [f32],
    v: &'o [f32],
    bias: Option<&'o [f32]>,
}

fn attend(attention: &Attention, arguments: &mut HostArguments<'_>) {
    let element = ptx::dtype(attention.element);
    let [q, k, v] = [0, 1, 2].map(|binding| HostNumbers::read(arguments, binding, element));
    let bias_type = attention.bias.map(|bias| ptx::dtype(bias.element));
    let bias = bias_type.map(|dtype: DType| HostNumbers::read(arguments, 3, dtype));
    let operands = Operands {
        attention,
        q: q.as_slice(),
        k: k.as_slice(),
        v: v.as_slice(),
        bias: bias.as_ref().map(HostNumbers::as_slice),
    };
    let out = 3 + usize::from(bias_type.is_some());
    let threads = arguments.threads();
    write_as_f32(arguments, out, element, |out| match is_one_contiguous_row(attention) {
        true => operands.heads_on_threads(threads, out),
        false => {
            for batch in 0..u64::from(attention.batch) {
                for head in 0..u64::from(attention.heads) {
                    let start = batch * attention.out.batch + head * attention.out.head;
                    let out = out.get_mut(start as usize..).unwrap_or_default();
                    operands.head(Some(threads), [batch, head], out);
                }
            }
        }
    });
}

/// Returns whether there is one query for each head, and the results of all are contiguous. For
/// more queries, the products of a head use several threads.
fn is_one_contiguous_row(attention: &Attention) -> bool {
    let Attention { batch, queries, heads, head_dim, out, .. } = *attention;
    let [heads, head_dim] = [heads, head_dim].map(u64::from);
    queries == 1 && out.head == head_dim && (batch == 1 || out.batch == heads * head_dim)
}

/// Returns the rows of a head from `row` on, which are `strides.row` apart.
fn rows_of(numbers: &[f32], strides: Strides, [batch, head, row]: [u64; 3]) -> &[f32] {
    let start = batch * strides.batch + head * strides.head + row * strides.row;
    numbers.get(start as usize..).unwrap_or_default()
}

impl Operands<'_> {
    /// Computes the results of all heads, each a row of `out`, on several threads if there are
    /// enough keys.
    fn heads_on_threads(&self, threads: HostThreads<'_>, out: &mut [f32]) {
        let Attention { batch, keys, heads, head_dim, .. } = *self.attention;
        let [batch, keys, heads, head_dim] = [batch, keys, heads, head_dim].map(|it| it as usize);
        if head_dim == 0 {
            return;
        }
        let heads_of_chunk = (MIN_PRODUCTS / (head_dim * keys).max(1)).max(1);
        let out = &mut out[..batch * heads * head_dim];
        threads.for_each_chunk(out, heads_of_chunk * head_dim, |start, out| {
            for (nth, out) in (start / head_dim..).zip(out.chunks_exact_mut(head_dim)) {
                self.head(None, [nth / heads, nth % heads].map(|it| it as u64), out);
            }
        });
    }

    /// Computes the results of a head, which start at the first element of `out`: on some threads,
    /// or on the caller's.
    fn head(&self, threads: Option<HostThreads<'_>>, [batch, head]: [u64; 2], out: &mut [f32]) {
        let Attention { queries, keys, heads, kv_heads, head_dim, causal, .. } = *self.attention;
        let kv_head = head / u64::from(heads / kv_heads);
        let [queries, keys, head_dim] = [queries, keys, head_dim].map(|size| size as usize);
        let mut scores = vec![0.0; ROWS.min(queries) * keys];
        for first in (0..queries).step_by(ROWS) {
            let rows = ROWS.min(queries - first);
            // Later keys are masked for all of these rows.
            let keys = if causal { keys.min(first + rows) } else { keys };
            let scores = &mut scores[..rows * keys];
            let packed = HostStrides { rows: keys, columns: 1 };
            let row_strides =
                |strides: Strides| HostStrides { rows: strides.row as usize, columns: 1 };
            let q = rows_of(self.q, self.attention.q, [batch, head, first as u64]);
            let k = rows_of(self.k, self.attention.k, [batch, kv_head, 0]);
            let transposed = HostStrides { rows: 1, columns: self.attention.k.row as usize };
            host_gemm(
                threads,
                [rows, keys, head_dim],
                [self.attention.scale, 0.0],
                (q, row_strides(self.attention.q)),
                (k, transposed),
                (scores, packed),
            );
            for (row, scores) in (first..).zip(scores.chunks_mut(keys.max(1))) {
                self.weigh([batch, head, row as u64], scores);
            }
            let v = rows_of(self.v, self.attention.v, [batch, kv_head, 0]);
            let strides = self.attention.out;
            let start = first as u64 * strides.row;
            host_gemm(
                threads,
                [rows, head_dim, keys],
                [1.0, 0.0],
                (scores, packed),
                (v, row_strides(self.attention.v)),
                (&mut out[start as usize..], row_strides(strides)),
            );
        }
    }

    /// Turns the scores of a query into weights, whose sum is 1, or 0 if it sees no key.
    fn weigh(&self, [batch, head, query]: [u64; 3], scores: &mut [f32]) {
        if let Some((layout, bias)) = self.attention.bias.zip(self.bias) {
            let row = rows_of(bias, layout.strides, [batch, head, query]);
            for (key, score) in scores.iter_mut().enumerate() {
                *score += row[key * layout.column_stride as usize];
            }
        }
        let visible = match self.attention.causal {
            true => scores.len().min(query as usize + 1),
            false => scores.len(),
        };
        let (scores, masked) = scores.split_at_mut(visible);
        masked.fill(0.0);
        // -infinity - -infinity would be NaN.
        let largest = scores.iter().copied().fold(f32::MIN, f32::max);
        let mut sum = 0.0;
        for score in scores.iter_mut() {
            *score = (*score - largest).exp();
            sum += *score;
        }
        let scale = if sum == 0.0 { 0.0 } else { 1.0 / sum };
        scores.iter_mut().for_each(|score| *score *= scale);
    }
}
