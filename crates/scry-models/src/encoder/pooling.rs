//! The mean of the vectors of a text's tokens.

use scry_gpu::Features;
use scry_tensor::{DType, Dim, Graph, Tensor};

use crate::error::Result;

/// Each invocation computes one element of a text's mean. A kernel of its own, since it is one
/// kernel for all numbers and lengths of texts; products and reductions have several. `HIDDEN` and
/// `VOCABULARY` are the sizes of the model, `Element` is the type of the vectors.
const MEAN: &str = "
@group(0) @binding(0) var<storage, read> tokens: array<u32>;
@group(0) @binding(1) var<storage, read> vectors: array<Element>;
@group(0) @binding(2) var<storage, read_write> means: array<f32>;

@compute @workgroup_size(64)
fn mean_of_tokens(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&means) { return; }
    let length = arrayLength(&tokens) / (arrayLength(&means) / HIDDEN);
    let first = id.x / HIDDEN * length;
    let column = id.x % HIDDEN;
    var sum = 0.0;
    var count = 0u;
    var at = first;
    // Four tokens at a time, and padding, too, so that no load waits for another one.
    for (; at + 4 <= first + length; at += 4u) {
        let is_token = vec4(tokens[at], tokens[at + 1], tokens[at + 2], tokens[at + 3])
            < vec4(VOCABULARY);
        let start = at * HIDDEN + column;
        let values = vec4f(vec4(vectors[start], vectors[start + HIDDEN],
            vectors[start + 2 * HIDDEN], vectors[start + 3 * HIDDEN]));
        let seen = select(vec4f(), values, is_token);
        sum += (seen.x + seen.y) + (seen.z + seen.w);
        count += dot(select(vec4u(), vec4u(1), is_token), vec4u(1));
    }
    for (; at < first + length; at++) {
        let is_token = tokens[at] < VOCABULARY;
        sum += select(0.0, f32(vectors[at * HIDDEN + column]), is_token);
        count += select(0u, 1u, is_token);
    }
    means[id.x] = sum / f32(max(count, 1u));
}
";

/// Returns the means `[batch, hidden]`, in `f32`, of the vectors `[batch, length, hidden]` of the
/// tokens `[batch, length]`. Tokens beyond the vocabulary are padding, and do not count; the mean
/// of nothing else is 0.
pub(super) fn mean(
    (g, batch): (&Graph, &Dim),
    tokens: &Tensor,
    vectors: &Tensor,
    [vocabulary, hidden]: [usize; 2],
) -> Result<Tensor> {
    let has_f16 = g.device().info().features.contains(Features::F16);
    let (enable, element, dtype) = match vectors.dtype() {
        DType::F16 if has_f16 => ("enable f16;\n", "f16", DType::F16),
        _ => ("", "f32", DType::F32),
    };
    let vectors = vectors.cast(dtype)?;
    let wgsl = format!(
        "{enable}alias Element = {element};\nconst HIDDEN = {hidden}u;\n\
         const VOCABULARY = {vocabulary}u;\n{MEAN}"
    );
    let means = ((batch, hidden).into(), DType::F32);
    Ok(g.kernel(&wgsl, &[tokens, &vectors], &[means])?.remove(0))
}
