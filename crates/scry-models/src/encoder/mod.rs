//! Text embeddings by models of the BERT family.

mod bert;
mod config;
mod futures;
mod options;
mod pooling;

use std::fmt;
use std::path::Path;

use scry_gpu::BackendKind;
use scry_tensor::{DType, Device, Graph, Plan, Tensor};

use self::bert::Bert;
use self::config::Config;
pub use self::options::EncoderOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::{EncodeOptions, Tokenizer};
use crate::waiting::{Waiting, download, now, run, upload};
use crate::weights::Weights;

/// The maximum number of texts of a batch.
const MAX_BATCH: usize = 64;

/// The maximum number of tokens of a batch, with padding.
const MAX_TOKENS: usize = 1 << 14;

/// Returns the number to whose multiples lengths of batches are rounded up, so that few differ: on
/// GPUs, rows are aligned to 16 bytes of 16-bit floats; the processor multiplies 4 rows at a time.
fn length_step(device: &Device) -> usize {
    match device.backend_kind() {
        BackendKind::Cpu => 4,
        _ => 8,
    }
}

/// A text embedding model (sentence encoder) of the BERT family, such as all-MiniLM-L6-v2.
///
/// It maps each text to a vector, its embedding, such that texts with similar meanings have similar
/// vectors. Embeddings equal those of sentence-transformers: mean or `[CLS]` pooling, then L2
/// normalisation if `modules.json` has it. Padding does not affect results. Texts longer than
/// [`max_length`](Self::max_length) tokens are truncated.
///
/// Texts are computed in batches of up to 64, sorted by length. A batch is one submission, and all
/// batches share their kernels, whatever their sizes.
///
/// ```no_run
/// use scry_models::{Device, Encoder};
///
/// let gpu = Device::auto()?;
/// let encoder = Encoder::load("models/all-MiniLM-L6-v2", &gpu)?;
/// let vectors = encoder.embed(&["a cat", "a kitten", "the stock market"])?;
/// let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
/// assert!(dot(&vectors[0], &vectors[1]) > dot(&vectors[0], &vectors[2]));
/// # Ok::<(), scry_models::Error>(())
/// ```
pub struct Encoder {
    tokenizer: Tokenizer,
    config: Config,
    plan: Plan,
    /// The embeddings of positions, an input of the plan.
    positions: Tensor,
    max_batch: usize,
}

impl Encoder {
    /// Loads an encoder from a folder with `config.json`, `tokenizer.json` and weights, and the
    /// files of sentence-transformers if there are any. It computes with `f32`:
    /// see [`Encoder::options`] for 16-bit floats.
    ///
    /// ```no_run
    /// use scry_models::{Device, Encoder};
    ///
    /// let encoder = Encoder::load("models/all-MiniLM-L6-v2", &Device::auto()?)?;
    /// assert_eq!(encoder.dimensions(), 384);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be read; [`ErrorKind::Format`] for another model than
    /// BERT; [`ErrorKind::Keys`] and [`ErrorKind::Shape`] if the weights do not fit
    /// `config.json`; [`ErrorKind::Tokenizer`]; [`ErrorKind::Gpu`].
    pub fn load(folder: impl AsRef<Path>, device: &Device) -> Result<Self> {
        Self::options().load(folder, device)
    }

    /// Returns options for loading: the element type, and the maximum length.
    ///
    /// ```no_run
    /// use scry_models::{DType, Device, Encoder};
    ///
    /// let options = Encoder::options().dtype(DType::F16).max_length(128);
    /// let encoder = options.load("models/all-MiniLM-L6-v2", &Device::auto()?)?;
    /// assert_eq!(encoder.max_length(), 128);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn options() -> EncoderOptions {
        EncoderOptions::default()
    }

    fn new(folder: &Path, device: &Device, options: EncoderOptions) -> Result<Self> {
        let mut config = Config::read(folder)?;
        if let Some(length) = options.max_length {
            if !(2..=config.positions).contains(&length) {
                let problem = format!("`max_length` is {length}, the model has positions for");
                let problem = format!("{problem} {} tokens", config.positions);
                let help = "texts have two tokens at least, [CLS] and [SEP]";
                return Err(Error::new("Encoder::load", ErrorKind::Value, problem, help));
            }
            config.max_length = length;
        }
        let tokenizer = Tokenizer::from_file(folder)?;
        let weights = Weights::open(folder)?;
        let is_nested = weights.info("bert.embeddings.word_embeddings.weight").is_some();
        let dict = || {
            let dict = weights.state_dict(device).with_float_dtype(options.dtype);
            let dict = if is_nested { dict.scope("bert") } else { dict };
            for other in ["pooler", "embeddings.position_ids"] {
                dict.ignore(other);
            }
            dict
        };
        // All names and shapes, before any memory is allocated.
        config.check_layers(folder, weights.tensors().len())?;
        let names = dict();
        for (name, shape) in config.tensors() {
            names.expect(&name, shape);
        }
        names.finish()?;
        let dict = dict();
        let bert = Bert::load(config.clone(), &dict, options.dtype)?;
        dict.finish()?;
        let max_batch = (MAX_TOKENS / config.max_length).clamp(1, MAX_BATCH);
        let g = Graph::new(device)?;
        let lengths = length_step(device).min(config.max_length)..=config.max_length;
        let (batch, length) = (g.dim("batch", 1..=max_batch), g.dim("length", lengths));
        let tokens = g.input_with_dtype("tokens", (&batch, &length), DType::U32)?;
        let positions = g.input_with_dtype("positions", (length, config.hidden), options.dtype)?;
        let plan = g.compile(&[bert.encode((&g, &batch), &tokens, &positions)?])?;
        Ok(Self { tokenizer, config, plan, positions: bert.positions, max_batch })
    }

    /// Returns the embedding of each text: [`dimensions`](Self::dimensions) elements of `f32`.
    /// Blocks until they are computed. This is `encode` of sentence-transformers.
    ///
    /// ```no_run
    /// use scry_models::{Device, Encoder};
    ///
    /// let encoder = Encoder::load("models/all-MiniLM-L6-v2", &Device::auto()?)?;
    /// let lines = std::fs::read_to_string("notes.txt").expect("a text");
    /// let lines: Vec<&str> = lines.lines().collect();
    /// assert_eq!(encoder.embed(&lines)?.len(), lines.len());
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`]; [`ErrorKind::Gpu`].
    pub fn embed<T: AsRef<str>>(&self, texts: &[T]) -> Result<Vec<Vec<f32>>> {
        now(self.embed_by("Encoder::embed", texts, Waiting::Blocking))
    }

    async fn embed_by<T: AsRef<str>>(
        &self,
        call: &'static str,
        texts: &[T],
        waiting: Waiting,
    ) -> Result<Vec<Vec<f32>>> {
        let all = self.embed_tensor_by(call, texts, waiting).await?;
        let all = download::<f32>(waiting, &all).await;
        let all = all.map_err(|error| Error::from(error).in_call(call))?;
        Ok(all.chunks_exact(self.dimensions()).map(<[f32]>::to_vec).collect())
    }

    /// Returns the embeddings as a tensor of `f32`, shape `[texts, dimensions]`, on the device,
    /// without waiting.
    ///
    /// ```no_run
    /// use scry_models::{Device, Encoder};
    ///
    /// let encoder = Encoder::load("models/all-MiniLM-L6-v2", &Device::auto()?)?;
    /// let texts = encoder.embed_tensor(&["a cat", "a kitten", "the stock market"])?;
    /// let query = encoder.embed_tensor(&["a young cat"])?;
    /// let similarities = texts.matmul(query.t()?)?; // [3, 1]
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Encoder::embed`].
    pub fn embed_tensor<T: AsRef<str>>(&self, texts: &[T]) -> Result<Tensor> {
        now(self.embed_tensor_by("Encoder::embed_tensor", texts, Waiting::Blocking))
    }

    async fn embed_tensor_by<T: AsRef<str>>(
        &self,
        call: &'static str,
        texts: &[T],
        waiting: Waiting,
    ) -> Result<Tensor> {
        let tokens: Result<Vec<_>> = texts.iter().map(|text| self.tokens(text.as_ref())).collect();
        let tokens = tokens.map_err(|error| error.for_call(call))?;
        self.embed_tokens_by(call, &tokens, waiting).await
    }

    /// Returns the embeddings of tokenized texts, as a tensor of `f32`, shape
    /// `[texts, dimensions]`: of token ids with special tokens, as [`tokens`](Self::tokens) returns
    /// them.
    ///
    /// ```no_run
    /// use scry_models::{Device, Encoder};
    ///
    /// let encoder = Encoder::load("models/all-MiniLM-L6-v2", &Device::auto()?)?;
    /// let tokens = encoder.tokens("a cat")?; // [CLS] a cat [SEP]
    /// assert_eq!(*encoder.embed_tokens(&[tokens])?.shape(), [1, 384]);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a text without tokens, with more than
    /// [`max_length`](Self::max_length), or with one beyond the vocabulary; [`ErrorKind::Gpu`].
    pub fn embed_tokens<T: AsRef<[u32]>>(&self, texts: &[T]) -> Result<Tensor> {
        now(self.embed_tokens_by("Encoder::embed_tokens", texts, Waiting::Blocking))
    }

    async fn embed_tokens_by<T: AsRef<[u32]>>(
        &self,
        call: &'static str,
        texts: &[T],
        waiting: Waiting,
    ) -> Result<Tensor> {
        let texts: Vec<&[u32]> = texts.iter().map(AsRef::as_ref).collect();
        for (position, text) in texts.iter().enumerate() {
            self.check_tokens(call, position, text)?;
        }
        self.run(&texts, waiting).await.map_err(|error| error.in_call(call))
    }

    async fn run(&self, texts: &[&[u32]], waiting: Waiting) -> Result<Tensor> {
        let device = self.plan.device();
        if texts.is_empty() {
            let shape = [0, self.dimensions()];
            return Ok(upload::<f32>(waiting, &[], shape, device).await?);
        }
        if texts.len() <= self.max_batch {
            return self.batch(texts, waiting).await;
        }
        let (order, sorted) = by_length(texts);
        let mut batches = Vec::new();
        for texts in sorted.chunks(self.max_batch) {
            batches.push(self.batch(texts, waiting).await?);
        }
        let places = places(&order);
        let places = upload(waiting, &places, [places.len()], device).await?;
        // Kernels of few rows are compiled at their first use.
        let arrange = move || {
            Tensor::concat(&batches.iter().collect::<Vec<_>>(), 0)?.index_select(0, &places)
        };
        Ok(waiting.offload(device, arrange).await?)
    }

    /// Submits a batch, and returns its vectors.
    async fn batch(&self, texts: &[&[u32]], waiting: Waiting) -> Result<Tensor> {
        let (tokens, length) = self.padded(texts);
        let shape = [texts.len(), length];
        let tokens = upload(waiting, &tokens, shape, self.plan.device()).await?;
        let positions = self.positions.i(..length as i64)?;
        let inputs = [("tokens", &tokens), ("positions", &positions)];
        Ok(run(waiting, &self.plan, &inputs).await?.remove(0))
    }

    /// Returns the tokens of a batch as rows of a length, which is returned, too.
    fn padded(&self, texts: &[&[u32]]) -> (Vec<u32>, usize) {
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or(1);
        let step = length_step(self.plan.device());
        let length = longest.next_multiple_of(step).min(self.config.max_length);
        // Beyond the vocabulary: padding.
        let mut tokens = vec![u32::MAX; texts.len() * length];
        for (row, text) in tokens.chunks_exact_mut(length).zip(texts) {
            row[..text.len()].copy_from_slice(text);
        }
        (tokens, length)
    }

    fn check_tokens(&self, call: &'static str, position: usize, text: &[u32]) -> Result<()> {
        let error = |problem, help| Err(Error::new(call, ErrorKind::Value, problem, help));
        let (count, limit) = (text.len(), self.config.max_length);
        if !(1..=limit).contains(&count) {
            let problem = format!("text {position} has {count} tokens, not 1 to {limit}");
            return error(problem, "use the tokens of `Encoder::tokens`, which truncates");
        }
        let vocabulary = self.config.vocabulary;
        if let Some(token) = text.iter().find(|token| **token as usize >= vocabulary) {
            let problem =
                format!("text {position} has token {token}, of a vocabulary of {vocabulary}");
            return error(problem, "use the tokens of this model's tokenizer");
        }
        Ok(())
    }

    /// Tokenizes a text: returns token ids, with `[CLS]` and `[SEP]`, truncated to
    /// [`max_length`](Self::max_length).
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`].
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>> {
        let options = EncodeOptions::new().max_length(self.config.max_length);
        let tokens = self.tokenizer.encode_with(text, options);
        tokens.map_err(|error| error.for_call("Encoder::tokens"))
    }

    /// Returns the number of elements of an embedding.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.config.hidden
    }

    /// Returns the maximum number of tokens of a text, special tokens included.
    #[must_use]
    pub fn max_length(&self) -> usize {
        self.config.max_length
    }

    /// Returns the tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.plan.device()
    }

    /// Returns the compiled graph, for reports of its kernels and memory.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Returns the positions of texts in the order of their lengths, and the texts: those of similar
/// lengths share a batch.
fn by_length<'t>(texts: &[&'t [u32]]) -> (Vec<usize>, Vec<&'t [u32]>) {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|position| texts[*position].len());
    let sorted = order.iter().map(|position| texts[*position]).collect();
    (order, sorted)
}

/// Returns where each text is in an order.
fn places(order: &[usize]) -> Vec<u32> {
    let mut places = vec![0u32; order.len()];
    (0u32..).zip(order).for_each(|(place, position)| places[*position] = place);
    places
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("dimensions", &self.dimensions())
            .field("layers", &self.config.layers)
            .field("max_length", &self.max_length())
            .field("device", &self.device().name())
            .finish_non_exhaustive()
    }
}
