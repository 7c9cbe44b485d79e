//! Tests of attention.

use scry_gpu::Binding;
use scry_kernels::{Attention, AttentionBias, Kernels, PtxType, Strides};
use scry_test_support::succeed;

use crate::support::{Float, assert_close, each_variant, poisoned, random, supported};

/// Operands as f32, and the attention of them.
struct Case {
    attention: Attention,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    bias: Option<Vec<f32>>,
}

impl Case {
    fn new<T: Float>(attention: Attention) -> Self {
        let buffers = attention.buffers().expect("the tests' attention is valid");
        let len = |name: &str| buffers.iter().find(|it| it.name == name).map(|it| it.len as usize);
        let operand = |seed, name| {
            let rounded = random::<T>(seed, len(name).unwrap_or(0)).into_iter();
            rounded.map(|x| x.wide() as f32).collect()
        };
        let masked = |x: f32| if x > 0.8 { f32::NEG_INFINITY } else { x };
        Self {
            attention,
            q: operand(1, "q"),
            k: operand(2, "k"),
            v: operand(3, "v"),
            bias: len("bias").map(|len| random::<f32>(4, len).into_iter().map(masked).collect()),
        }
    }

    /// Returns a row of the result in f64.
    fn row(&self, batch: u64, head: u64, row: u64) -> Vec<f64> {
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
            let product: f64 = q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum();
            let bias = self.attention.bias.zip(self.bias.as_ref()).map_or(0.0, |(layout, bias)| {
                let column = key * u64::from(layout.column_stride);
                f64::from(bias[at(layout.strides, head, row) + column as usize])
            });
            product * f64::from(scale) + bias
        };
        let scores: Vec<f64> = (0..visible).map(score).collect();
        let largest = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut out = vec![0.0; dim];
        if sum == 0.0 {
            return out;
        }
        for (key, weight) in (0..).zip(&weights) {
            let v = &self.v[at(self.attention.v, kv_head, key)..][..dim];
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight / sum * f64::from(*v));
        }
        out
    }

    /// Runs it, and compares every row. Returns whether the variant is supported.
    fn check<T: Float>(&self, kernels: &Kernels, what: &str) -> bool {
        let (gpu, attention) = (kernels.device(), &self.attention);
        let upload = |data: &Vec<f32>| {
            succeed(gpu.upload(&data.iter().map(|x| T::round(*x)).collect::<Vec<T>>()))
        };
        let inputs = [&self.q, &self.k, &self.v].map(upload);
        let bias = self.bias.as_ref().map(|bias| succeed(gpu.upload(bias)));
        let out = poisoned::<T>(gpu, self.q.len() + 1);
        let mut buffers: Vec<&dyn Binding> = inputs.iter().map(|it| it as _).collect();
        buffers.extend(bias.iter().map(|it| it as &dyn Binding));
        buffers.push(&out);
        let Some(op) = supported(kernels.attention(attention, &buffers)) else { return false };
        succeed(op.run());
        let (out, dim) = (succeed(out.download()), attention.head_dim as usize);
        assert!(out[self.q.len()].wide().is_nan(), "{what}: wrote beyond the results");
        let Attention { batch, heads, queries, .. } = *attention;
        for batch in 0..u64::from(batch) {
            for head in 0..u64::from(heads) {
                for row in 0..u64::from(queries) {
                    let strides = attention.out;
                    let start = batch * strides.batch + head * strides.head + row * strides.row;
                    let what = format!("{what}, row {row} of {attention:?}");
                    let expected = self.row(batch, head, row);
                    assert_close(&what, 64.0, 1.0, &out[start as usize..][..dim], &expected);
                }
            }
        }
        true
    }
}

/// Batch and heads, queries, keys, `head_dim`.
const SHAPES: [([u32; 2], u32, u32, u32); 8] = [
    ([1, 1], 1, 1, 1),
    ([2, 3], 7, 33, 64),
    ([1, 2], 17, 65, 128),
    ([1, 1], 9, 20, 256),
    ([1, 2], 33, 65, 40),
    ([2, 1], 130, 7, 16),
    ([1, 1], 5, 0, 8),
    ([3, 2], 1, 257, 80),
];

fn check_shapes<T: Float>(element: PtxType, kernels: &Kernels, what: &str) {
    for (heads, queries, keys, head_dim) in SHAPES {
        let plain = Attention::new(heads, queries, keys, head_dim, element);
        for attention in [plain, plain.causal()] {
            if !Case::new::<T>(attention).check::<T>(kernels, what) {
                return;
            }
        }
    }
}

#[test]
fn attention_matches_reference() {
    each_variant("attention", |kernels, what| {
        check_shapes::<f32>(PtxType::F32, kernels, what);
        check_shapes::<scry_gpu::f16>(PtxType::F16, kernels, what);
        check_shapes::<scry_gpu::bf16>(PtxType::Bf16, kernels, what);
    });
}

#[test]
fn special_queries_stay_in_their_rows() {
    each_variant("attention", |kernels, what| {
        let attention = Attention::new([1, 2], 17, 65, 40, PtxType::F32);
        let mut case = Case::new::<f32>(attention);
        // Of the second head, the fourth row and the last one.
        (case.q[(17 + 3) * 40 + 5], case.q[(17 + 16) * 40]) = (f32::NAN, f32::INFINITY);
        case.check::<f32>(kernels, what);
    });
}

#[test]
fn grouped_heads_and_masks_match_reference() {
    let (heads, queries, keys) = (6, 35, 70);
    each_variant("attention", |kernels, what| {
        let bias = |column_stride, batch| AttentionBias {
            element: PtxType::F32,
            strides: Strides { batch, ..Strides::packed(heads, queries, keys) },
            column_stride,
        };
        let plain = Attention::new([2, heads], queries, keys, 32, PtxType::F32);
        // Keys and values in a cache of 100 rows.
        let mut cached = plain.grouped(3);
        (cached.k, cached.v) = (Strides::packed(3, 100, 32), Strides::packed(3, 100, 32));
        let all = [
            plain.grouped(2),
            plain.biased(bias(1, 0)),
            plain.grouped(1).causal(),
            plain.biased(bias(1, u64::from(heads * queries * keys))).causal(),
            plain.biased(bias(0, 0)),
            cached,
        ];
        all.iter().all(|attention| Case::new::<f32>(*attention).check::<f32>(kernels, what));
    });
}
