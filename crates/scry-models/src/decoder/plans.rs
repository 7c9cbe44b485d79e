//! Plans of a decoder: for the rows of a prompt and for one token, for each size of the part of the
//! cache that they read. All of them share one cache.

use std::pin::Pin;
use std::sync::Arc;

use scry_tensor::{BoundPlan, DType, Device, Graph, Plan, State, Tensor};

use super::llama::Llama;
use super::recent::Recent;
use super::sampling::{MAX_CANDIDATES, penalised, sampled};
use crate::error::Result;
use crate::waiting::{Waiting, bind, compile_sharing, run, upload};

/// The maximum number of rows of a prompt in one run.
pub(super) const MAX_ROWS: usize = 256;

/// The minimum number of rows of the cache that a plan reads.
const MIN_CONTEXT: usize = 64;

/// The most plans that are kept, of prompts and steps, and the most recordings of steps: those of
/// a few ways of sampling, up to a context of 2^17 tokens.
const MAX_PLANS: usize = 48;
const MAX_STEPS: usize = 24;

/// Rows of the cache that are set to zero at a time.
const WIPED_ROWS: usize = 64;

/// The elements of the state `control`.
#[derive(Debug, Clone, Copy)]
enum Control {
    /// The last token, which is not in the cache yet.
    Token,
    Seed,
    /// The number of tokens in the cache.
    Position,
    /// How many tokens are recent.
    Window,
}

/// What a plan computes after the last layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Head {
    /// Nothing: more rows of the prompt follow.
    None,
    /// The logits of all tokens.
    Logits,
    /// The most likely token.
    Greedy { is_penalised: bool },
    /// A random token.
    Sample { candidates: usize, is_penalised: bool },
}

impl Head {
    fn is_penalised(self) -> bool {
        match self {
            Self::None | Self::Logits => false,
            Self::Greedy { is_penalised } | Self::Sample { is_penalised, .. } => is_penalised,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Whether rows of a prompt are inputs.
    is_prompt: bool,
    head: Head,
    context: usize,
}

/// A part of a generation, which owns what it needs. It submits at most once, in the poll in which
/// it completes, so that one that was dropped can be repeated.
pub(super) type Task = Pin<Box<dyn Future<Output = Result<Progress>> + Send>>;

/// What a part of a generation has done.
pub(super) enum Progress {
    /// Compiled and recorded the plan of steps.
    Compiled(Key, Arc<Plan>, BoundPlan),
    /// Submitted a number of steps.
    Submitted(usize),
    /// Submitted a copy of the tokens that were chosen so far.
    Copied(Tensor),
    /// Read tokens.
    Read(Vec<u32>),
}

/// The plans of a model that were used so far.
pub(super) struct Plans {
    model: Llama,
    device: Device,
    capacity: usize,
    cache: DType,
    plans: Recent<Key, Arc<Plan>>,
    /// Recordings of the plans of steps, which have no inputs.
    steps: Recent<Key, Arc<BoundPlan>>,
    /// Sets rows of the cache to zero.
    wipe: Option<Plan>,
    /// Rows from this one on are zero in all caches.
    written: usize,
    /// The plan that all others share their states with.
    first: Arc<Plan>,
    /// The numbers of candidates.
    ranks: Tensor,
}

struct States {
    caches: Vec<State>,
    control: State,
    options: State,
    seen: State,
    /// The token after each number of tokens in the cache.
    tokens: State,
}

/// Returns the rows from `first` to `end`, for each run that sets some to zero; rows beyond the
/// capacity are dropped by it.
fn wiped_rows(first: usize, end: usize) -> impl Iterator<Item = Vec<u32>> {
    let starts = (first..end).step_by(WIPED_ROWS);
    starts.map(|start| (start as u32..(start + WIPED_ROWS) as u32).collect())
}

impl Plans {
    pub(super) fn new(
        model: Llama,
        device: &Device,
        capacity: usize,
        cache: DType,
    ) -> Result<Self> {
        // Owns the states, and is never run.
        let g = Graph::new(device)?;
        let states = States::new(&g, &model, capacity, cache)?;
        let caches = states.caches.iter().map(|cache| cache.read().i(..0));
        let mut outputs = caches.collect::<scry_tensor::Result<Vec<_>>>()?;
        let others = [&states.control, &states.options, &states.seen, &states.tokens];
        outputs.extend(others.map(State::read));
        let first = Arc::new(g.compile(&outputs)?);
        let (plans, steps) = (Recent::new(MAX_PLANS), Recent::new(MAX_STEPS));
        let ranks = Tensor::arange(MAX_CANDIDATES as i64, DType::F32, device)?;
        let device = device.clone();
        let (wipe, written) = (None, 0);
        Ok(Self { model, device, capacity, cache, plans, steps, wipe, written, first, ranks })
    }

    pub(super) fn model(&self) -> &Llama {
        &self.model
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets the cache to zero.
    pub(super) async fn clear(&mut self, waiting: Waiting) -> Result<()> {
        waiting.submit_once(&self.device, || self.first.reset_states()).await?;
        self.written = 0;
        Ok(())
    }

    /// Sets the rows of caches from `first` on to zero. Rows of earlier prompts are masked, but
    /// plans multiply them by 0, and NaN and infinity would remain.
    async fn wipe(&mut self, first: usize, waiting: Waiting) -> Result<()> {
        let plan = match self.wipe.take() {
            Some(plan) => plan,
            None => compile_sharing(waiting, self.record_wipe()?, &self.first).await?,
        };
        let plan = self.wipe.insert(plan);
        for rows in wiped_rows(first, self.written) {
            let rows = upload(waiting, &rows, [WIPED_ROWS], &self.device).await?;
            run(waiting, plan, &[("rows", &rows)]).await?;
        }
        self.written = first;
        Ok(())
    }

    /// Records the graph that sets some rows of the caches to zero.
    fn record_wipe(&self) -> Result<(Graph, Tensor)> {
        let g = Graph::new(&self.device)?;
        let states = States::new(&g, &self.model, self.capacity, self.cache)?;
        let rows = g.input_with_dtype("rows", [WIPED_ROWS], DType::U32)?;
        for cache in &states.caches {
            let mut shape = cache.read().shape().to_vec();
            shape[0] = WIPED_ROWS;
            cache.write_rows(&rows, &g.full(shape, 0.0, self.cache)?)?;
        }
        let output = rows.i(..1)?.add(1)?;
        Ok((g, output))
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Sets what steps read: the last token, the number of tokens in the cache, and the options.
    pub(super) async fn set_control(
        &self,
        [token, seed, position, window]: [u32; 4],
        options: [f32; 5],
        waiting: Waiting,
    ) -> Result<()> {
        let mut control = [0; 4];
        control[Control::Token as usize] = token;
        control[Control::Seed as usize] = seed;
        control[Control::Position as usize] = position;
        control[Control::Window as usize] = window;
        let control = upload(waiting, &control, [control.len()], &self.device).await?;
        self.set_state("control", &control, waiting).await?;
        let options = upload(waiting, &options, [options.len()], &self.device).await?;
        self.set_state("options", &options, waiting).await
    }

    /// Sets where each token of the vocabulary was last, as if these tokens were in the cache.
    pub(super) async fn set_seen(&self, tokens: &[u32], waiting: Waiting) -> Result<()> {
        let mut seen = vec![0u32; self.model.config.vocabulary];
        (1u32..).zip(tokens).for_each(|(position, token)| seen[*token as usize] = position);
        let seen = upload(waiting, &seen, [seen.len(), 1], &self.device).await?;
        self.set_state("seen", &seen, waiting).await
    }

    async fn set_state(&self, name: &str, tensor: &Tensor, waiting: Waiting) -> Result<()> {
        let set = || self.first.set_state(name, tensor);
        Ok(waiting.submit_once(&self.device, set).await?)
    }

    /// Submits rows of a prompt after `position` tokens, and returns the result of the head.
    pub(super) async fn prompt(
        &mut self,
        head: Head,
        position: usize,
        tokens: &[u32],
        waiting: Waiting,
    ) -> Result<Option<Tensor>> {
        let end = position + tokens.len();
        if self.written > end {
            self.wipe(end, waiting).await?;
        }
        self.written = end;
        let key = Key { is_prompt: true, head, context: self.context(end) };
        let rows = upload(waiting, tokens, [tokens.len()], &self.device).await?;
        let offsets = self.model.offsets(tokens.len())?;
        let plan = self.plan(key, waiting).await?;
        let mut out = run(waiting, plan, &[("tokens", &rows), ("offsets", &offsets)]).await?;
        Ok((head != Head::None).then(|| out.remove(0)))
    }

    /// Returns the submission of steps after `position` tokens, each of which adds the token before
    /// it to the cache and chooses the next one: up to `count`, as many as read the same part of
    /// the cache. Returns the compilation of their plan instead if it is missing.
    pub(super) fn steps(
        &mut self,
        head: Head,
        position: usize,
        count: usize,
        waiting: Waiting,
    ) -> Result<Task> {
        let context = self.context(position + 1);
        let key = Key { is_prompt: false, head, context };
        if !self.steps.touch(&key) {
            return self.compile_steps(key, waiting);
        }
        let count = count.min(context - position);
        self.written = self.written.max(position + count);
        let (device, bound) = (self.device.clone(), self.steps.latest().clone());
        Ok(Box::pin(async move {
            waiting.submit_once(&device, || bound.run_times(count)).await?;
            Ok(Progress::Submitted(count))
        }))
    }

    /// Returns the compilation and recording of a plan for steps.
    fn compile_steps(&mut self, key: Key, waiting: Waiting) -> Result<Task> {
        // A plan, or the graph that it is compiled from.
        let source = match self.plans.touch(&key) {
            true => Ok(self.plans.latest().clone()),
            false => Err(self.record(key)?),
        };
        let first = self.first.clone();
        Ok(Box::pin(async move {
            let plan = match source {
                Ok(plan) => plan,
                Err(recorded) => Arc::new(compile_sharing(waiting, recorded, &first).await?),
            };
            let bound = bind(waiting, &plan).await?;
            Ok(Progress::Compiled(key, plan, bound))
        }))
    }

    /// Keeps a plan for steps.
    pub(super) fn keep_steps(&mut self, key: Key, plan: Arc<Plan>, bound: BoundPlan) {
        if !self.plans.contains(&key) {
            self.plans.insert(key, plan);
        }
        if !self.steps.contains(&key) {
            self.steps.insert(key, Arc::new(bound));
        }
    }

    /// Returns the submission of a copy of the token after each number of tokens, as of all steps
    /// so far.
    pub(super) fn copy_tokens(&self, waiting: Waiting) -> Task {
        let (device, first) = (self.device.clone(), self.first.clone());
        Box::pin(async move {
            let tokens = waiting.submit_once(&device, || first.state("tokens")).await?;
            Ok(Progress::Copied(tokens))
        })
    }

    /// Returns how many rows of the cache a plan reads that needs at least `rows`.
    fn context(&self, rows: usize) -> usize {
        rows.next_power_of_two().max(MIN_CONTEXT).min(self.capacity)
    }

    /// Returns the plan of a step, for reports.
    pub(super) async fn step_plan(
        &mut self,
        head: Head,
        position: usize,
        waiting: Waiting,
    ) -> Result<&Plan> {
        let context = self.context(position + 1);
        self.plan(Key { is_prompt: false, head, context }, waiting).await
    }

    async fn plan(&mut self, key: Key, waiting: Waiting) -> Result<&Plan> {
        if !self.plans.touch(&key) {
            let plan = compile_sharing(waiting, self.record(key)?, &self.first).await?;
            self.plans.insert(key, Arc::new(plan));
        }
        Ok(self.plans.latest())
    }

    /// Records the graph of a plan, and returns it with its output.
    fn record(&self, key: Key) -> Result<(Graph, Tensor)> {
        let g = Graph::new(&self.device)?;
        let model = &self.model;
        let States { caches, control, options, seen, tokens: chosen } =
            States::new(&g, model, self.capacity, self.cache)?;
        let before = control.read();
        let element = |of: &Tensor, which: Control| {
            let at = which as i64;
            of.i(at..at + 1)
        };
        // Computed, not a view of the state: indices that are read from a state are copied before
        // each write.
        let last = self.capacity as i64 - 1;
        let first = element(&before, Control::Position)?.minimum(last)?;
        let (tokens, positions, count) = match key.is_prompt {
            true => {
                let rows = g.dim("rows", 1..=MAX_ROWS.min(self.capacity));
                let tokens = g.input_with_dtype("tokens", (&rows,), DType::U32)?;
                let offsets = g.input_with_dtype("offsets", (&rows,), DType::U32)?;
                let positions = first.add(&offsets)?;
                let count = positions.i(-1..)?.add(1)?;
                (tokens, positions, count)
            }
            false => (element(&before, Control::Token)?, first.clone(), first.add(1)?),
        };
        let hidden = model.hidden(&g, &tokens, &positions, &caches, key.context)?;
        let at = |which: Control| which as i64..which as i64 + 1;
        control.write(at(Control::Position), &count)?;
        if key.head == Head::None {
            // Rows without results are computed for the cache alone.
            return Ok((g, count));
        }
        let scope = g.scope("head");
        let mut logits = model.logits(&hidden)?;
        if key.head.is_penalised() {
            if !key.is_prompt {
                seen.write_rows(&tokens, &count.reshape([1, 1])?)?;
            }
            let seen = seen.read().reshape([1, -1])?;
            let window = element(&before, Control::Window)?;
            logits = penalised(&logits, &seen, [&count, &window], &options.read().i(3..4)?)?;
        }
        let next = match key.head {
            Head::None | Head::Logits => logits,
            Head::Greedy { .. } => logits.argmax(-1)?,
            Head::Sample { candidates, .. } => {
                let seed = [element(&before, Control::Seed)?, count.clone()];
                let seed = Tensor::concat(&[&seed[0], &seed[1]], 0)?;
                let ranks = self.ranks.i(..candidates as i64)?;
                sampled(&logits, candidates, &options.read(), &ranks, &seed)?
            }
        };
        if key.head != Head::Logits {
            control.write(at(Control::Token), &next)?;
            chosen.write_rows(&count, &next.reshape([1, 1])?)?;
        }
        drop(scope);
        Ok((g, next))
    }
}

impl States {
    fn new(g: &Graph, model: &Llama, capacity: usize, cache: DType) -> Result<Self> {
        let config = &model.config;
        let [first, second] = config.pairs();
        let shape = [capacity, 2, config.kv_heads, first, second];
        let caches = (0..config.layers)
            .map(|layer| g.state_with_dtype(&format!("layer.{layer}.cache"), shape, cache));
        Ok(Self {
            caches: caches.collect::<scry_tensor::Result<_>>()?,
            control: g.state_with_dtype("control", [4], DType::U32)?,
            options: g.state("options", [5])?,
            seen: g.state_with_dtype("seen", [config.vocabulary, 1], DType::U32)?,
            tokens: g.state_with_dtype("tokens", [capacity + 1, 1], DType::U32)?,
        })
    }
}
