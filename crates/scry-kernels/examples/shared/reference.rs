//! Reference implementation of attention on the CPU, in f64.

/// Returns one row of `softmax(q kᵀ / √columns) v`; keys and values have as many columns as `q`.
pub fn attention_row(q: &[f32], k: &[f32], v: &[f32]) -> Vec<f64> {
    let columns = q.len();
    let scale = 1.0 / (columns as f64).sqrt();
    let dot = |key: &[f32]| -> f64 {
        q.iter().zip(key).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() * scale
    };
    let scores: Vec<f64> = k.chunks_exact(columns).map(dot).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
    let mut out = vec![0.0; columns];
    for (score, values) in scores.iter().zip(v.chunks_exact(columns)) {
        let weight = (score - max).exp() / sum;
        out.iter_mut().zip(values).for_each(|(out, value)| *out += weight * f64::from(*value));
    }
    out
}
