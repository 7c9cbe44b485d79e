//! How the next token is chosen, and when generation ends.

use scry_tensor::{DType, Seed, Tensor};

use super::plans::Head;
use crate::error::{Error, ErrorKind, Result};

/// The maximum number of candidates among which a token is sampled.
pub(super) const MAX_CANDIDATES: usize = 1024;

/// The minimum number of candidates that a plan selects.
const MIN_CANDIDATES: usize = 64;

/// Options of generation: how tokens are chosen, and when it ends. By default it is greedy
/// decoding: the most likely token is chosen.
///
/// Tokens are sampled on the device, in the order of the library transformers: repetition penalty;
/// `top_k`; temperature and softmax; `top_p`; `min_p`. The same seed produces the same tokens on
/// every device if the logits are equal.
///
/// ```
/// use scry_models::Sampling;
///
/// let greedy = Sampling::new().max_tokens(100);
/// let creative = Sampling::new().temperature(0.8).top_p(0.95).seed(7).stop("\n\n");
/// assert_ne!(greedy, creative);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "pass the options to `Decoder::generate_with`"]
pub struct Sampling {
    pub(super) temperature: f32,
    pub(super) top_k: usize,
    pub(super) top_p: f32,
    pub(super) min_p: f32,
    pub(super) penalty: f32,
    pub(super) window: u32,
    pub(super) seed: u32,
    pub(super) max_tokens: usize,
    pub(super) stops: Vec<String>,
    pub(super) ignores_end: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 40,
            top_p: 1.0,
            min_p: 0.0,
            penalty: 1.0,
            window: 64,
            seed: 0,
            max_tokens: usize::MAX,
            stops: Vec::new(),
            ignores_end: false,
        }
    }
}

impl Sampling {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the temperature. 0, the default, is greedy decoding; 1 samples from the probabilities
    /// of the model; higher values flatten the distribution.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets top-k: only the `k` most likely tokens are candidates. Default: 40. At most 1024; 0
    /// stands for 1024.
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = k;
        self
    }

    /// Sets top-p (nucleus sampling): the smallest set of most likely tokens whose probabilities
    /// add up to at least `p` is kept. Default: 1, which keeps all.
    pub fn top_p(mut self, p: f32) -> Self {
        self.top_p = p;
        self
    }

    /// Sets min-p: tokens less likely than `p` times the most likely token are dropped. Default: 0,
    /// which keeps all.
    pub fn min_p(mut self, p: f32) -> Self {
        self.min_p = p;
        self
    }

    /// Sets the repetition penalty: positive logits of the last
    /// [`penalty_window`](Self::penalty_window) tokens, prompt included, are divided by it,
    /// negative ones multiplied. Default: 1, which changes nothing.
    pub fn repetition_penalty(mut self, penalty: f32) -> Self {
        self.penalty = penalty;
        self
    }

    /// Sets how many recent tokens are penalised (llama.cpp's `repeat_last_n`). Default: 64.
    pub fn penalty_window(mut self, tokens: u32) -> Self {
        self.window = tokens;
        self
    }

    /// Sets the seed of the random number generator. Default: 0.
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = seed;
        self
    }

    /// Continues after tokens that end text, such as `<|im_end|>`, if it is true: to measure
    /// speed. They are no part of the text, but of [`Decoder::context`](crate::Decoder::context).
    pub fn ignore_eos(mut self, ignores: bool) -> Self {
        self.ignores_end = ignores;
        self
    }

    /// Sets the most tokens that are generated; by default the context is the limit.
    pub fn max_tokens(mut self, tokens: usize) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Adds a stop string: generation ends before it. An empty one is ignored.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stops.push(text.into());
        self
    }

    pub(super) fn check(&self, call: &'static str) -> Result<()> {
        let error = |name: &str, value: String, help: &str| {
            let problem = format!("`{name}` is {value}");
            Err(Error::new(call, ErrorKind::Value, problem, help))
        };
        let is_valid = |value: f32, least: f32| value.is_finite() && value >= least;
        if !is_valid(self.temperature, 0.0) {
            let help = "use a finite number of at least 0";
            return error("temperature", self.temperature.to_string(), help);
        }
        if self.top_k > MAX_CANDIDATES {
            return error("top_k", self.top_k.to_string(), "use at most 1024 candidates");
        }
        if !is_valid(self.top_p, 0.0) || self.top_p > 1.0 {
            return error("top_p", self.top_p.to_string(), "use a number from 0 to 1");
        }
        if !is_valid(self.min_p, 0.0) || self.min_p > 1.0 {
            return error("min_p", self.min_p.to_string(), "use a number from 0 to 1");
        }
        if !is_valid(self.penalty, f32::MIN_POSITIVE) {
            return error("repetition_penalty", self.penalty.to_string(), "use a positive number");
        }
        Ok(())
    }

    /// Returns how a plan chooses tokens.
    pub(super) fn head(&self, vocabulary: usize) -> Head {
        let is_penalised = self.penalty != 1.0;
        match self.temperature {
            0.0 => Head::Greedy { is_penalised },
            // Few plans serve all numbers of candidates: the first `top_k` of them remain.
            _ => {
                let candidates = self.candidates().next_power_of_two().max(MIN_CANDIDATES);
                Head::Sample { candidates: candidates.min(vocabulary), is_penalised }
            }
        }
    }

    /// Returns the numbers that plans read from the device.
    pub(super) fn numbers(&self) -> [f32; 5] {
        // Logits divided by less would be infinite.
        let temperature = self.temperature.max(1e-6);
        [temperature, self.top_p, self.min_p, self.penalty, self.candidates() as f32]
    }

    /// Returns the number of candidates.
    fn candidates(&self) -> usize {
        if self.top_k == 0 { MAX_CANDIDATES } else { self.top_k }
    }
}

/// Returns logits with those of recent tokens divided by a penalty, or multiplied if they are
/// negative. `seen` has for each token of the vocabulary the position after its last one, 0 for
/// none; of `count` tokens the last `window` are recent.
pub(super) fn penalised(
    logits: &Tensor,
    seen: &Tensor,
    [count, window]: [&Tensor; 2],
    penalty: &Tensor,
) -> Result<Tensor> {
    // Not below 0: integers are unsigned.
    let first = count.sub(&count.minimum(window)?)?;
    let is_recent = seen.gt(&first)?.logical_and(&seen.le(count)?)?;
    let smaller = logits.gt(0.0)?.where_(&logits.div(penalty)?, &logits.mul(penalty)?)?;
    Ok(is_recent.where_(&smaller, logits)?)
}

/// Returns a sampled token, of shape `[1]`, from logits of shape `[1, vocabulary]`. The options are
/// `[temperature, top_p, min_p, penalty, top_k]`; `ranks` are the numbers from 0 on, as many as
/// there are candidates.
pub(super) fn sampled(
    logits: &Tensor,
    candidates: usize,
    options: &Tensor,
    ranks: &Tensor,
    seed: &Tensor,
) -> Result<Tensor> {
    let option = |n: i64| options.i(n..n + 1);
    let (logits, tokens) = logits.topk(candidates, -1)?;
    let is_candidate = ranks.lt(&option(4)?)?;
    let logits = is_candidate.where_(&logits, f64::from(f32::NEG_INFINITY))?;
    // The largest is 0, so that small temperatures do not overflow.
    let logits = logits.sub(&logits.i((.., 0..1))?)?;
    let probabilities = logits.div(&option(0)?)?.softmax(-1)?;
    let before = probabilities.cumsum(-1)?.sub(&probabilities)?;
    let largest = probabilities.i((.., 0..1))?;
    let is_likely = probabilities.ge(&largest.mul(&option(2)?)?)?;
    // The first candidate remains in any case.
    let is_first = probabilities.eq(&largest)?.logical_and(&before.le(0.0)?)?;
    let is_kept = before.lt(&option(1)?)?.logical_and(&is_likely)?.logical_or(&is_first)?;
    let is_kept = is_kept.logical_and(&is_candidate)?;
    let sums = probabilities.mul(&is_kept.cast(DType::F32)?)?.cumsum(-1)?;
    let uniform = sums.i((.., -1..))?.rand_like(Seed::Tensor(seed.clone()))?;
    let point = uniform.mul(&sums.i((.., -1..))?)?;
    // Candidates that remain are the first ones: the number of sums up to the point is a position.
    let place = sums.le(&point)?.cast(DType::U32)?.sum_keepdim(-1)?;
    let last = is_kept.cast(DType::U32)?.sum_keepdim(-1)?.sub(1)?;
    Ok(tokens.gather(1, &place.minimum(&last)?)?.reshape([1])?)
}
