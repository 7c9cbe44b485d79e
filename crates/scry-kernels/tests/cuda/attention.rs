//! Tests of attention.

use scry_gpu::{Binding, Buffer, bf16, f16};
use scry_kernels::{Attention, AttentionBias, Kernels, PtxType, Strides};
use scry_test_support::succeed;

use crate::harness::{TestElement, assert_close, having_variant, kernels, poisoned, random};

/// An attention operation with its operands.
struct Case<T> {
    attention: Attention,
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    bias: Option<Vec<f32>>,
}

impl<T: TestElement> Case<T> {
    fn new(attention: Attention) -> Self {
        let buffers = attention.buffers().expect("the tests' attention is well defined");
        let len = |name: &str| buffers.iter().find(|it| it.name == name).map(|it| it.len as usize);
        let operand = |seed, name| random::<T>(seed, len(name).unwrap_or(0));
        Self {
            attention,
            q: operand(1, "q"),
            k: operand(2, "k"),
            v: operand(3, "v"),
            bias: len("bias").map(|len| random::<f32>(4, len)),
        }
    }

    /// Computes a row of the result in f64.
    fn reference_row(&self, batch: u64, head: u64, row: u64) -> Vec<f64> {
        let Attention { head_dim, keys, causal, scale, heads, kv_heads, .. } = self.attention;
        let at = |strides: Strides, head: u64, row: u64| {
            (batch * strides.batch + head * strides.head + row * strides.row) as usize
        };
        let dim = head_dim as usize;
        let kv_head = head / u64::from(heads / kv_heads);
        let visible = if causal { (row + 1).min(keys.into()) } else { keys.into() };
        let q = &self.q[at(self.attention.q, head, row)..][..dim];
        let score = |key: u64| {
            let k = &self.k[at(self.attention.k, kv_head, key)..][..dim];
            let product: f64 = q.iter().zip(k).map(|(q, k)| q.to_f64() * k.to_f64()).sum();
            let bias = self.attention.bias.zip(self.bias.as_ref()).map_or(0.0, |(layout, bias)| {
                let column = key * u64::from(layout.column_stride);
                f64::from(bias[at(layout.strides, head, row) + column as usize])
            });
            product * f64::from(scale) + bias
        };
        let scores: Vec<f64> = (0..visible).map(score).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut out = vec![0.0; dim];
        for (key, weight) in (0..).zip(&weights) {
            let v = &self.v[at(self.attention.v, kv_head, key)..][..dim];
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight / sum * v.to_f64());
        }
        out
    }

    /// Returns about 60 rows of the result, the last two among them: batch, head and query of each.
    fn sample_rows(&self) -> Vec<[u64; 3]> {
        let Attention { batch, heads, queries, .. } = self.attention;
        let [heads, queries] = [heads, queries].map(u64::from);
        let count = u64::from(batch) * heads * queries;
        let step = count.div_ceil(60) as usize | 1;
        let position = |row: u64| [row / queries / heads, row / queries % heads, row % queries];
        (0..count).step_by(step).chain(count.saturating_sub(2)..count).map(position).collect()
    }

    /// Runs attention, and compares rows with the reference.
    fn check(&self, kernels: &Kernels) {
        let (gpu, attention) = (kernels.device(), &self.attention);
        let inputs = [&self.q, &self.k, &self.v].map(|data| succeed(gpu.upload(data)));
        let bias: Option<Buffer<f32>> = self.bias.as_ref().map(|bias| succeed(gpu.upload(bias)));
        let out = poisoned::<T>(gpu, self.q.len());
        let mut buffers: Vec<&dyn Binding> = inputs.iter().map(|it| it as _).collect();
        buffers.extend(bias.iter().map(|it| it as &dyn Binding));
        buffers.push(&out);
        let op = succeed(kernels.attention(attention, &buffers));
        succeed(op.run());
        let (out, dim) = (succeed(out.download()), attention.head_dim as usize);
        for [batch, head, row] in self.sample_rows() {
            let strides = attention.out;
            let start = batch * strides.batch + head * strides.head + row * strides.row;
            let results = &out[start as usize..][..dim];
            let expected = self.reference_row(batch, head, row);
            let results: Vec<_> = results.iter().copied().zip(expected).collect();
            let element = std::any::type_name::<T>();
            assert_close(
                &format!("{element}, {}, row {row} of {attention:?}", op.explain().variant()),
                1.0,
                &results,
            );
        }
    }
}

/// Batch and heads, queries, keys, `head_dim`.
const SHAPES: [([u32; 2], u32, u32, u32); 9] = [
    ([1, 1], 1, 1, 64),
    ([2, 3], 7, 33, 64),
    ([1, 2], 127, 129, 128),
    ([2, 2], 65, 1023, 64),
    ([1, 1], 300, 300, 256),
    ([1, 2], 33, 65, 40),
    ([3, 8], 1, 4097, 128),
    ([1, 4], 5, 2049, 64),
    ([1, 1], 1023, 7, 128),
];

fn check_all<T: TestElement>(element: PtxType) {
    for kernels in kernels() {
        for (heads, queries, keys, head_dim) in SHAPES {
            let plain = Attention::new(heads, queries, keys, head_dim, element);
            for attention in [plain, plain.causal()] {
                let case = Case::<T>::new(attention);
                case.check(&kernels);
                if u64::from(queries) * u64::from(keys) < 20_000 {
                    case.check(&having_variant(&kernels, "ptx-naive"));
                }
            }
        }
    }
}

#[test]
fn f16_attention_matches_reference() {
    check_all::<f16>(PtxType::F16);
}

#[test]
fn bf16_attention_matches_reference() {
    check_all::<bf16>(PtxType::Bf16);
}

#[test]
fn f32_attention_matches_reference() {
    check_all::<f32>(PtxType::F32);
}

#[test]
fn grouped_heads_and_bias_match_reference() {
    for kernels in kernels() {
        let (heads, queries, keys) = (6, 65, 131);
        for element in [PtxType::F16, PtxType::F32] {
            let bias = AttentionBias {
                element: PtxType::F32,
                strides: Strides { batch: 0, ..Strides::packed(heads, queries, keys) },
                column_stride: 1,
            };
            let plain = Attention::new([2, heads], queries, keys, 64, element);
            for attention in [plain.grouped(2), plain.biased(bias), plain.grouped(1).causal()] {
                match element {
                    PtxType::F16 => Case::<f16>::new(attention).check(&kernels),
                    _ => Case::<f32>::new(attention).check(&kernels),
                }
            }
        }
    }
}
