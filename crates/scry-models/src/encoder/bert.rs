//! The graph of a BERT encoder.

use scry_tensor::{Attention, DType, Dim, Graph, Tensor};

use super::config::{Activation, Config, Pooling};
use super::pooling;
use crate::error::Result;
use crate::weights::StateDict;

/// A linear layer.
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

/// A layer norm.
struct Norm {
    weight: Tensor,
    bias: Tensor,
}

struct Layer {
    /// The weights of queries, keys and values: `[3, heads, columns, hidden]`.
    attention: Tensor,
    /// `[3, heads, columns]`.
    attention_bias: Tensor,
    /// The weights are `[hidden, heads, columns]`.
    projection: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

/// The weights of a BERT encoder.
pub(super) struct Bert {
    config: Config,
    words: Tensor,
    /// `[positions, hidden]`, with the embedding of the first segment added.
    pub(super) positions: Tensor,
    norm: Norm,
    layers: Vec<Layer>,
}

impl Bert {
    /// Loads the weights as floats of the type of the dictionary.
    pub(super) fn load(config: Config, dict: &StateDict<'_>, dtype: DType) -> Result<Self> {
        let hidden = config.hidden;
        let embeddings = dict.scope("embeddings");
        let words = embeddings.get("word_embeddings.weight", [config.vocabulary, hidden])?;
        // The sum is rounded once.
        let get = |name: &str, rows: usize| embeddings.get_as(name, [rows, hidden], DType::F32);
        let segments = get("token_type_embeddings.weight", config.types)?;
        let positions = get("position_embeddings.weight", config.positions)?;
        let positions = positions.add(&segments.i(0)?)?.cast(dtype)?;
        let norm = Norm::load(&embeddings.scope("LayerNorm"), hidden)?;
        let layer = |n| Layer::load(&config, &dict.scope(&format!("encoder.layer.{n}")));
        let layers = (0..config.layers).map(layer).collect::<Result<_>>()?;
        Ok(Self { words, positions, norm, layers, config })
    }

    /// Returns the vectors `[batch, hidden]`, in `f32`, of tokens `[batch, length]`, for which
    /// there are `positions`. Tokens beyond the vocabulary are padding. `batch` is the graph, and
    /// its dimension of that name.
    pub(super) fn encode(
        &self,
        batch: (&Graph, &Dim),
        tokens: &Tensor,
        positions: &Tensor,
    ) -> Result<Tensor> {
        let config = &self.config;
        let is_token = tokens.lt(config.vocabulary as i64)?;
        let minus_infinity = f64::from(f32::NEG_INFINITY);
        let bias = is_token.where_(0.0, minus_infinity)?.cast(self.words.dtype())?;
        let bias = bias.unsqueeze(1)?.unsqueeze(1)?;
        let embedded = self.words.embedding(tokens)?.add(positions)?;
        let mut x = self.norm.apply(&embedded, config.epsilon)?;
        for layer in &self.layers {
            x = layer.apply(config, &x, &bias)?;
        }
        let pooled = match config.pooling {
            Pooling::First => x.i((.., 0))?.cast(DType::F32)?,
            Pooling::Mean => pooling::mean(batch, tokens, &x, [config.vocabulary, config.hidden])?,
        };
        if !config.is_normalised {
            return Ok(pooled);
        }
        let length = pooled.square()?.sum_keepdim(1)?.sqrt()?;
        Ok(pooled.div(&length.maximum(1e-12)?)?)
    }
}

impl Layer {
    fn load(config: &Config, dict: &StateDict<'_>) -> Result<Self> {
        let Config { hidden, heads, intermediate, .. } = *config;
        let columns = config.head_size();
        let own = dict.scope("attention.self");
        let load = |part| Linear::load(&own.scope(part), [hidden, hidden]);
        let (query, key, value) = (load("query")?, load("key")?, load("value")?);
        let attention = Tensor::concat(&[&query.weight, &key.weight, &value.weight], 0)?;
        let attention = attention.reshape([3, heads, columns, hidden])?;
        let attention_bias = Tensor::concat(&[&query.bias, &key.bias, &value.bias], 0)?;
        let attention_bias = attention_bias.reshape([3, heads as i64, columns as i64])?;
        let output = dict.scope("attention.output");
        let projection = Linear::load(&output.scope("dense"), [hidden, hidden])?;
        let weight = projection.weight.reshape([hidden, heads, columns])?;
        let projection = Linear { weight, ..projection };
        Ok(Self {
            attention,
            attention_bias,
            projection,
            attention_norm: Norm::load(&output.scope("LayerNorm"), hidden)?,
            up: Linear::load(&dict.scope("intermediate.dense"), [intermediate, hidden])?,
            down: Linear::load(&dict.scope("output.dense"), [hidden, intermediate])?,
            norm: Norm::load(&dict.scope("output.LayerNorm"), hidden)?,
        })
    }

    fn apply(&self, config: &Config, x: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let all = x.einsum("blh,sndh->blsnd", &self.attention)?.add(&self.attention_bias)?;
        // Views: attention reads and writes heads in the order of rows.
        let part = |n: i64| all.i((.., .., n))?.transpose(1, 2);
        let masked = Attention { bias: Some(bias), ..Attention::default() };
        let seen = part(0)?.attention(&part(1)?, &part(2)?, &masked)?;
        let seen = seen.einsum("bnld,hnd->blh", &self.projection.weight)?;
        let x = x.add(&seen.add(&self.projection.bias)?)?;
        let x = self.attention_norm.apply(&x, config.epsilon)?;
        let up = self.up.apply(&x)?;
        let up = match config.activation {
            Activation::Gelu => up.gelu()?,
            Activation::GeluTanh => up.gelu_tanh()?,
            Activation::Relu => up.relu()?,
            Activation::Silu => up.silu()?,
        };
        self.norm.apply(&x.add(&self.down.apply(&up)?)?, config.epsilon)
    }
}

impl Linear {
    fn load(dict: &StateDict<'_>, [rows, columns]: [usize; 2]) -> Result<Self> {
        Ok(Self { weight: dict.get("weight", [rows, columns])?, bias: dict.get("bias", [rows])? })
    }

    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.linear(&self.weight, Some(&self.bias))?)
    }
}

impl Norm {
    fn load(dict: &StateDict<'_>, size: usize) -> Result<Self> {
        Ok(Self { weight: dict.get("weight", [size])?, bias: dict.get("bias", [size])? })
    }

    fn apply(&self, x: &Tensor, epsilon: f32) -> Result<Tensor> {
        Ok(x.layer_norm(Some(&self.weight), Some(&self.bias), epsilon)?)
    }
}
