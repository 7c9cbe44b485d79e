//! The graph of a Llama model.

use scry_tensor::{Attention, DType, Graph, State, Tensor};

use super::config::Config;
use crate::error::Result;
use crate::weights::{FileFormat, StateDict};

/// Weights that share an input (fused QKV, gate and up): one matrix, or several if they are of
/// different types.
struct Joined(Vec<Tensor>);

struct Layer {
    attention_norm: Tensor,
    /// Queries, keys and values.
    attention: Joined,
    projection: Tensor,
    norm: Tensor,
    /// Gate and up.
    up: Joined,
    down: Tensor,
}

/// The weights of a Llama model.
pub(super) struct Llama {
    pub(super) config: Config,
    /// The embeddings of tokens, quantised as the file has them, or of `f32`.
    embeddings: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    output: Tensor,
    /// The cosines and sines of positions, `[context, columns / 2, 1]` or `[context, 1, columns /
    /// 2]`, and signed ones.
    cosines: Tensor,
    sines: Tensor,
    /// The numbers of all positions.
    positions: Tensor,
}

/// The names of weights: those of GGUF files, and of PyTorch.
struct Names {
    embeddings: &'static str,
    layers: &'static str,
    attention_norm: &'static str,
    attention: [&'static str; 3],
    projection: &'static str,
    norm: &'static str,
    up: [&'static str; 2],
    down: &'static str,
    final_norm: &'static str,
    output: &'static str,
}

/// The divisors of RoPE's frequencies, in GGUF files of Llama 3.
const FREQUENCIES: &str = "rope_freqs.weight";

const GGUF: Names = Names {
    embeddings: "token_embd.weight",
    layers: "blk",
    attention_norm: "attn_norm.weight",
    attention: ["attn_q.weight", "attn_k.weight", "attn_v.weight"],
    projection: "attn_output.weight",
    norm: "ffn_norm.weight",
    up: ["ffn_gate.weight", "ffn_up.weight"],
    down: "ffn_down.weight",
    final_norm: "output_norm.weight",
    output: "output.weight",
};

const PYTORCH: Names = Names {
    embeddings: "model.embed_tokens.weight",
    layers: "model.layers",
    attention_norm: "input_layernorm.weight",
    attention: ["self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"],
    projection: "self_attn.o_proj.weight",
    norm: "post_attention_layernorm.weight",
    up: ["mlp.gate_proj.weight", "mlp.up_proj.weight"],
    down: "mlp.down_proj.weight",
    final_norm: "model.norm.weight",
    output: "lm_head.weight",
};

/// Returns whether the LM head has weights of its own.
fn has_head(config: &Config, names: &Names, dict: &StateDict<'_>) -> bool {
    match config.is_tied {
        Some(is_tied) => !is_tied,
        None => dict.info(names.output).is_some(),
    }
}

impl Llama {
    /// Checks the names and shapes of all weights, before memory is allocated for any.
    pub(super) fn check(config: &Config, format: FileFormat, dict: StateDict<'_>) -> Result<()> {
        let names = if format == FileFormat::Gguf { &GGUF } else { &PYTORCH };
        let Config { hidden, heads, kv_heads, columns, intermediate, .. } = *config;
        let table = [config.vocabulary, hidden];
        dict.expect(names.embeddings, table);
        if has_head(config, names, &dict) {
            dict.expect(names.output, table);
        } else {
            // Some files have the shared table twice.
            dict.ignore(names.output);
        }
        dict.expect(names.final_norm, [hidden]);
        if dict.info(FREQUENCIES).is_some() {
            dict.expect(FREQUENCIES, [columns / 2]);
        }
        let [q, kv] = [heads, kv_heads].map(|heads| heads * columns);
        for layer in 0..config.layers {
            let dict = dict.scope(&format!("{}.{layer}", names.layers));
            for (name, rows) in names.attention.into_iter().zip([q, kv, kv]) {
                dict.expect(name, [rows, hidden]);
            }
            dict.expect(names.projection, [hidden, q]);
            names.up.into_iter().for_each(|name| dict.expect(name, [intermediate, hidden]));
            dict.expect(names.down, [hidden, intermediate]);
            for norm in [names.attention_norm, names.norm] {
                dict.expect(norm, [hidden]);
            }
            // Computed, in files of old versions.
            dict.ignore("self_attn.rotary_emb.inv_freq");
        }
        dict.finish()
    }

    /// Loads the weights, which [`check`](Self::check) has checked: quantised ones as they are,
    /// others as `f32`. There are positions for `capacity` tokens.
    pub(super) fn load(
        config: Config,
        format: FileFormat,
        dict: &StateDict<'_>,
        capacity: usize,
    ) -> Result<Self> {
        let names = if format == FileFormat::Gguf { &GGUF } else { &PYTORCH };
        let (hidden, table) = (config.hidden, [config.vocabulary, config.hidden]);
        let embeddings = dict.get(names.embeddings, table)?;
        let output = match has_head(&config, names, dict) {
            true => dict.get(names.output, table)?,
            false => embeddings.clone(),
        };
        let layer = |n| {
            let dict = dict.scope(&format!("{}.{n}", names.layers));
            Layer::load(&config, names, &dict)
        };
        let layers = (0..config.layers).map(layer).collect::<Result<_>>()?;
        let norm = dict.get(names.final_norm, [hidden])?;
        let factors = dict.find(FREQUENCIES, [config.columns / 2])?;
        let factors = factors.map(|it| it.to_vec::<f32>()).transpose()?;
        let [cosines, sines] = rotations(&config, capacity, factors.as_deref());
        let half = config.columns / 2;
        let shapes = match config.is_interleaved {
            true => [[capacity, half, 1], [capacity, half, 2]],
            false => [[capacity, 1, half], [capacity, 2, half]],
        };
        let device = dict.device();
        Ok(Self {
            embeddings,
            layers,
            norm,
            output,
            cosines: Tensor::from_slice(&cosines, shapes[0], device)?,
            sines: Tensor::from_slice(&sines, shapes[1], device)?,
            positions: Tensor::arange(capacity as i64, DType::U32, device)?,
            config,
        })
    }

    /// Returns the numbers from 0 on, as many as there are rows.
    pub(super) fn offsets(&self, rows: usize) -> Result<Tensor> {
        Ok(self.positions.i(..rows as i64)?)
    }

    /// Returns the hidden rows of tokens at positions, one for each, after the last layer. Keys and
    /// values are written to the caches, of which the first `context` rows are read.
    pub(super) fn hidden(
        &self,
        g: &Graph,
        tokens: &Tensor,
        positions: &Tensor,
        caches: &[State],
        context: usize,
    ) -> Result<Tensor> {
        let dtype = caches[0].read().dtype();
        let rotation = [
            self.cosines.index_select(0, positions)?.unsqueeze(1)?,
            self.sines.index_select(0, positions)?.unsqueeze(1)?,
        ];
        let keys = self.positions.i(..context as i64)?;
        let is_seen = positions.unsqueeze(1)?.ge(&keys)?;
        let bias = is_seen.where_(0.0, f64::from(f32::NEG_INFINITY))?.cast(dtype)?;
        let bias = bias.unsqueeze(0)?.unsqueeze(0)?;
        let step = Step { config: &self.config, positions, rotation, bias, context };
        let mut x = self.embeddings.embedding(tokens)?;
        for (n, (layer, cache)) in self.layers.iter().zip(caches).enumerate() {
            let _scope = g.scope(&format!("layer.{n}"));
            x = layer.apply(&step, &x, cache)?;
        }
        Ok(x)
    }

    /// Returns the logits of the next token, `[1, vocabulary]`, after the last row.
    pub(super) fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        let last = normalised(&hidden.i(-1..)?, &self.norm, self.config.epsilon)?;
        Ok(last.linear(&self.output, None)?)
    }
}

/// What the layers of a step share.
struct Step<'s> {
    config: &'s Config,
    positions: &'s Tensor,
    rotation: [Tensor; 2],
    bias: Tensor,
    context: usize,
}

impl Layer {
    fn load(config: &Config, names: &Names, dict: &StateDict<'_>) -> Result<Self> {
        let Config { hidden, heads, kv_heads, columns, intermediate, .. } = *config;
        let rows = [heads * columns, kv_heads * columns, kv_heads * columns];
        let attention = Joined::load(dict, names.attention.into_iter().zip(rows), hidden)?;
        let up = names.up.into_iter().map(|name| (name, intermediate));
        Ok(Self {
            attention_norm: dict.get(names.attention_norm, [hidden])?,
            attention,
            projection: dict.get(names.projection, [hidden, heads * columns])?,
            norm: dict.get(names.norm, [hidden])?,
            up: Joined::load(dict, up, hidden)?,
            down: dict.get(names.down, [hidden, intermediate])?,
        })
    }

    fn apply(&self, step: &Step<'_>, x: &Tensor, cache: &State) -> Result<Tensor> {
        let Config { heads, kv_heads, columns, intermediate, epsilon, .. } = *step.config;
        let normed = normalised(x, &self.attention_norm, epsilon)?;
        let rows = self.attention.apply(&normed)?;
        let (q, kv) = (heads * columns, kv_heads * columns);
        let [q, k, v] = [0..q, q..q + kv, q + kv..q + 2 * kv].map(|range| {
            let part = rows.i((.., range.start as i64..range.end as i64));
            part.and_then(|it| it.reshape([-1, (range.len() / columns) as i64, columns as i64]))
        });
        let dtype = cache.read().dtype();
        let shape = [-1, heads as i64, columns as i64];
        let q = step.rotate(&q?)?.cast(dtype)?.reshape(shape)?;
        // Pairs remain apart, as in the cache, so that one kernel rotates and joins.
        let new = [step.rotate(&k?)?, step.pairs(&v?)?];
        cache.write_rows(step.positions, &Tensor::stack(&[&new[0], &new[1]], 1)?.cast(dtype)?)?;
        let shape = [step.context, 2, kv_heads, columns].map(|size| size as i64);
        let cached = cache.read().i(..step.context as i64)?.reshape(shape)?;
        // Rows of heads become heads of rows.
        let heads_first = |it: Tensor| it.transpose(0, 1)?.unsqueeze(0);
        let (k, v) = (heads_first(cached.i((.., 0))?)?, heads_first(cached.i((.., 1))?)?);
        let masked = Attention { bias: Some(&step.bias), ..Attention::default() };
        let seen = heads_first(q)?.attention(&k, &v, &masked)?;
        let seen = seen.squeeze(0)?.transpose(0, 1)?.reshape([-1, (heads * columns) as i64])?;
        let x = x.add(&seen.cast(DType::F32)?.linear(&self.projection, None)?)?;
        let normed = normalised(&x, &self.norm, epsilon)?;
        let both = self.up.apply(&normed)?;
        let gate = both.i((.., ..intermediate as i64))?.silu()?;
        let gated = gate.mul(&both.i((.., intermediate as i64..))?)?;
        Ok(x.add(&gated.linear(&self.down, None)?)?)
    }
}

impl Step<'_> {
    /// Applies RoPE to `[rows, heads, columns]`: rotates pairs of columns by the angles of
    /// positions.
    fn rotate(&self, x: &Tensor) -> Result<Tensor> {
        let pairs = self.pairs(x)?;
        let axis = if self.config.is_interleaved { -1 } else { -2 };
        let [cosines, sines] = &self.rotation;
        Ok(pairs.mul(cosines)?.add(&pairs.flip(axis)?.mul(sines)?)?)
    }

    /// Returns heads `[rows, heads, columns]` with the columns of a pair along an axis of their
    /// own.
    fn pairs(&self, x: &Tensor) -> Result<Tensor> {
        let [first, second] = self.config.pairs();
        let heads = x.shape()[1] as i64;
        Ok(x.reshape([-1, heads, first as i64, second as i64])?)
    }
}

impl Joined {
    /// Loads weights with names and numbers of rows. They are joined if they have one type.
    fn load(
        dict: &StateDict<'_>,
        parts: impl Iterator<Item = (&'static str, usize)>,
        columns: usize,
    ) -> Result<Self> {
        let parts = parts.map(|(name, rows)| dict.get(name, [rows, columns]));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let dtype = parts[0].dtype();
        // Blocks are copied in whole words. Rows of 2 mod 4 bytes are aligned in even numbers.
        let is_aligned = |part: &Tensor| !dtype.is_quantized() || part.shape()[0].is_multiple_of(2);
        let can_join = parts.iter().all(|part| part.dtype() == dtype && is_aligned(part));
        match can_join {
            true => Ok(Self(vec![Tensor::concat(&parts.iter().collect::<Vec<_>>(), 0)?])),
            false => Ok(Self(parts)),
        }
    }

    /// Returns the products with all weights, side by side.
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let products = self.0.iter().map(|weight| x.linear(weight, None));
        let mut products = products.collect::<scry_tensor::Result<Vec<_>>>()?;
        if products.len() == 1 {
            return Ok(products.remove(0));
        }
        Ok(Tensor::concat(&products.iter().collect::<Vec<_>>(), 1)?)
    }
}

/// Returns the RMS norm of rows, as operations that are fused with the sum before it. One of the
/// kernel library is a kernel of its own.
fn normalised(x: &Tensor, weight: &Tensor, epsilon: f32) -> Result<Tensor> {
    let mean = x.square()?.mean_keepdim(-1)?;
    let scale = mean.add(f64::from(epsilon))?.rsqrt()?;
    Ok(x.mul(&scale)?.mul(weight)?)
}

/// Returns the cosines and the signed sines of RoPE at all positions. Factors divide the
/// frequencies, as in Llama 3.
fn rotations(config: &Config, capacity: usize, factors: Option<&[f32]>) -> [Vec<f32>; 2] {
    let half = config.columns / 2;
    let frequency = |pair: usize| {
        let factor = factors.map_or(1.0, |factors| f64::from(factors[pair]));
        config.theta.powf(-(pair as f64) / half as f64) / factor
    };
    let frequencies: Vec<f64> = (0..half).map(frequency).collect();
    let (mut cosines, mut sines) = (Vec::new(), Vec::new());
    for position in 0..capacity {
        let angles = frequencies.iter().map(|frequency| position as f64 * frequency);
        let angles: Vec<f64> = angles.collect();
        cosines.extend(angles.iter().map(|angle| angle.cos() as f32));
        let sine = |angle: &f64| angle.sin() as f32;
        match config.is_interleaved {
            true => sines.extend(angles.iter().flat_map(|angle| [-sine(angle), sine(angle)])),
            false => {
                sines.extend(angles.iter().map(|angle| -sine(angle)));
                sines.extend(angles.iter().map(sine));
            }
        }
    }
    [cosines, sines]
}
