//! Executes the attention of few rows with few keys, and compares it with the host.

use half::{bf16, f16};
use scry_ptx::kernels::attention::{Attention, AttentionBias, Strides};
use scry_ptx::kernels::{GpuSpec, Plan};
use scry_ptx::{PtxType, Target};

use super::plans::{execute, numbers};

const HOPPER: GpuSpec =
    GpuSpec { target: Target::SM_90A, multiprocessors: 132, shared_memory: 227 << 10 };

/// An operand: the bytes of its elements, and their values.
struct Operand {
    bytes: Vec<u8>,
    values: Vec<f64>,
}

impl Operand {
    /// Rounds numbers to a type.
    fn new(element: PtxType, numbers: &[f32]) -> Self {
        let encode = |number: &f32| match element {
            PtxType::F32 => number.to_le_bytes().to_vec(),
            PtxType::F16 => f16::from_f32(*number).to_le_bytes().to_vec(),
            _ => bf16::from_f32(*number).to_le_bytes().to_vec(),
        };
        let bytes: Vec<u8> = numbers.iter().flat_map(encode).collect();
        Self { values: decode(element, &bytes), bytes }
    }
}

fn decode(element: PtxType, bytes: &[u8]) -> Vec<f64> {
    let decode = |bytes: &[u8]| match element {
        PtxType::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        PtxType::F16 => f16::from_le_bytes(bytes.try_into().unwrap()).into(),
        _ => bf16::from_le_bytes(bytes.try_into().unwrap()).into(),
    };
    bytes.chunks(element.size() as usize).map(decode).collect()
}

/// Returns the position of the first element of a row.
fn start(strides: Strides, [batch, head, row]: [u32; 3]) -> usize {
    let [batch, head, row] = [batch, head, row].map(u64::from);
    (batch * strides.batch + head * strides.head + row * strides.row) as usize
}

/// Computes a row with 64-bit floats.
fn reference(it: &Attention, operands: &[Operand], at: [u32; 3]) -> Vec<f64> {
    let [q, k, v] = [0, 1, 2].map(|nth: usize| &operands[nth].values);
    let [batch, head, row] = at;
    let key_row = |key| [batch, head / (it.heads / it.kv_heads), key];
    let columns = 0..it.head_dim as usize;
    let score = |key: u32| {
        let (q_start, k_start) = (start(it.q, at), start(it.k, key_row(key)));
        let products = columns.clone().map(|c| q[q_start + c] * k[k_start + c]);
        let bias = it.bias.map_or(0.0, |bias| {
            let at = start(bias.strides, [batch, head, row]);
            operands[3].values[at + (key * bias.column_stride) as usize]
        });
        products.sum::<f64>() * f64::from(it.scale) + bias
    };
    let scores: Vec<f64> = (0..it.keys).map(score).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return vec![0.0; it.head_dim as usize];
    }
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    let value = |column: usize| {
        let rows = (0..).zip(&weights);
        let sum: f64 = rows.map(|(key, w)| w * v[start(it.v, key_row(key)) + column]).sum();
        sum / total
    };
    columns.map(value).collect()
}

fn check(it: &Attention, biases: &[f32]) {
    let plan: Plan = it.plan(HOPPER).unwrap();
    let names: Vec<String> = plan.steps.iter().map(|step| step.kernel.name()).collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    assert!(name.starts_with("attention_decode"), "{name}");
    let lens: Vec<usize> = plan.arguments.iter().map(|it| it.len as usize).collect();
    let mut operands: Vec<Operand> = (0..3)
        .map(|nth| {
            let numbers: Vec<f32> =
                numbers(lens[nth] + nth)[nth..].iter().map(|x| x * 3.0).collect();
            Operand::new(it.element, &numbers)
        })
        .collect();
    operands.extend(it.bias.map(|bias| Operand::new(bias.element, &biases[..lens[3]])));
    let last = lens.len() - 1;
    let mut arguments: Vec<Vec<u8>> = operands.iter().map(|it| it.bytes.clone()).collect();
    arguments.push(vec![0xa5; lens[last] * it.element.size() as usize]);
    let found = decode(it.element, &execute(&plan, &arguments));
    let tolerance = if it.element == PtxType::F16 { 1e-3 } else { 8e-3 };
    for batch in 0..it.batch {
        for head in 0..it.heads {
            for row in 0..it.queries {
                let at = [batch, head, row];
                let found = &found[start(it.out, at)..][..it.head_dim as usize];
                for (found, wanted) in found.iter().zip(reference(it, &operands, at)) {
                    let error = (found - wanted).abs();
                    assert!(error <= tolerance * (1.0 + wanted.abs()), "{it:?}: {found} {wanted}");
                }
            }
        }
    }
}

#[test]
fn decoding_agrees_with_the_host() {
    // Of the last two, some warps have two passes.
    for (keys, head_dim) in [(1, 64), (77, 8), (45, 72), (257, 64), (300, 128), (530, 64)] {
        check(&Attention::new([1, 1], 1, keys, head_dim, PtxType::F16), &[]);
    }
    check(&Attention::new([1, 2], 2, 40, 40, PtxType::F16), &[]);
}

/// As in a decoder: heads that share keys, which alternate with values in memory, and a mask.
#[test]
fn decoding_reads_strided_heads_and_biases() {
    const KEYS: u32 = 70;
    for element in [PtxType::F32, PtxType::F16] {
        let heads = Attention::new([2, 4], 1, KEYS, 64, PtxType::F16).grouped(2);
        let keys = Strides { batch: 2 * 2 * 64 * u64::from(KEYS), head: 64, row: 2 * 2 * 64 };
        let strides = Strides { batch: 0, head: 0, row: KEYS.into() };
        let bias = AttentionBias { element, strides, column_stride: 1 };
        let it = Attention { k: keys, v: keys, bias: Some(bias), ..heads };
        let visible = |count: usize| {
            let masked = |(nth, bias)| if nth < count { bias } else { f32::NEG_INFINITY };
            numbers(KEYS as usize).into_iter().enumerate().map(masked).collect::<Vec<f32>>()
        };
        check(&it, &visible(KEYS as usize));
        check(&it, &visible(33));
        check(&it, &visible(1));
        // A row that sees no key is 0.
        check(&it, &visible(0));
    }
}
