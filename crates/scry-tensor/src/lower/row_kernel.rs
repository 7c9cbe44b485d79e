//! Builds row kernels.
//!
//! All reductions of elements that need the same earlier ones are one pass over the row. Each
//! invocation reduces every `threads`th word of its row; then the states of a thread group merge,
//! and all invocations have the result. Rows after the last one are computed like it, and not
//! stored.
//!
//! An invocation holds few words in registers: all their operands are loaded at the start, so that
//! the loads overlap, and each element is computed once. Of more words, each pass loads and
//! computes what it needs again.

use std::collections::HashMap;

use scry_gpu::kir::{Access as Buffer, BinaryOp, Builder, Builtin, Kir, Type, Value};

use super::elements_per_word;
use super::memory::{Conversions, decode, encode, round};
use super::reductions::States;
use super::rows::{RowKey, RowProgram, RowSource, RowStep, WORKGROUP};
use super::steps::{Context, Parameters, stored};
use super::thread_group::{Exchange, ThreadGroup};
use crate::dtype::DType;
use crate::expr::{Map, Scalar};

/// Builds the kernel. Its buffers are the results, the last step's first, the operands, and the
/// parameters if they are in a buffer.
pub(crate) fn build_rows(
    key: &RowKey,
    parameters: usize,
    conversions: Conversions,
    exchange: Exchange,
) -> Kir {
    let program = &key.program;
    let mut b = Builder::new("rows", [WORKGROUP, 1, 1]);
    let mut outputs = vec![b.named_buffer("result", Type::U32, Buffer::ReadWrite)];
    for n in 0..program.stored.len() {
        outputs.push(b.named_buffer(&format!("stored{n}"), Type::U32, Buffer::ReadWrite));
    }
    let buffers = program.operands.iter().enumerate();
    let buffers = buffers
        .map(|(n, dtype)| b.named_buffer(&format!("operand{n}"), stored(*dtype), Buffer::Read));
    let buffers = buffers.collect();
    let mut parameters = Parameters::declare(&mut b, parameters, key.in_buffer);
    let sizes = Sizes::new(&mut b, &mut parameters, program);
    let group = ThreadGroup::new(&mut b, exchange, program.threads);
    let mut lowering = Lowering {
        program,
        buffers,
        group,
        sizes,
        results: HashMap::new(),
        row_loads: HashMap::new(),
        held: Vec::new(),
        elements: Vec::new(),
        conversions,
    };
    lowering.load_parameters(&mut b, &mut parameters);
    lowering.hold(&mut b);
    lowering.build(&mut b, &outputs);
    b.finish()
}

/// Words of a row that an invocation loads at a time.
const UNROLL: u32 = 4;

/// Values that all steps use.
struct Sizes {
    rows: Value,
    /// Words of a row.
    words: Value,
    /// Elements of a row.
    columns: Value,
    /// The invocation in its thread group.
    thread: Value,
    /// The row; beyond the last one for some invocations.
    row: Value,
    /// The row, or the last one.
    valid_row: Value,
    accesses: Vec<Strides>,
    arguments: Vec<Vec<Value>>,
    zero: Option<Value>,
}

/// The strides of an access.
struct Strides {
    /// The position of the first element of the row.
    start: Value,
    columns: Vec<[Value; 2]>,
}

impl Sizes {
    fn new(b: &mut Builder, parameters: &mut Parameters, program: &RowProgram) -> Self {
        let (rows, words) = (parameters.read(b), parameters.read(b));
        let columns = times(b, words, program.width);
        let (local, group) = (b.builtin(Builtin::LocalId(0)), b.builtin(Builtin::GroupId(0)));
        let thread = binary(b, BinaryOp::And, local, program.threads - 1);
        let nth = binary(b, BinaryOp::Shr, local, program.threads.ilog2());
        let first = times(b, group, program.rows_per_workgroup());
        let row = b.binary(BinaryOp::Add, first, nth);
        let last = binary(b, BinaryOp::Sub, rows, 1);
        let valid_row = b.binary(BinaryOp::Min, row, last);
        let (accesses, arguments) = (Vec::new(), Vec::new());
        let zero = None;
        Self { rows, words, columns, thread, row, valid_row, accesses, arguments, zero }
    }
}

/// The values of one element in a block.
#[derive(Clone, Default)]
struct Element {
    /// By step, as they are after they were stored.
    steps: HashMap<u32, Value>,
    /// Those in memory, by access.
    loads: HashMap<u32, Value>,
}

/// A word of the row that an invocation computes.
#[derive(Clone, Copy)]
struct Word {
    index: Value,
    /// Whether the row has the word; true if there is no value. The index is that of the last word
    /// otherwise.
    is_inside: Option<Value>,
}

struct Lowering<'k> {
    program: &'k RowProgram,
    buffers: Vec<u32>,
    group: ThreadGroup,
    sizes: Sizes,
    /// The results of rows, by step, as they are after they were stored.
    results: HashMap<u32, Value>,
    /// Elements in memory that a whole row has in common, by access, if they were loaded.
    row_loads: HashMap<u32, Value>,
    /// The words in registers, and their elements.
    held: Vec<Word>,
    elements: Vec<Element>,
    conversions: Conversions,
}

impl Lowering<'_> {
    fn load_parameters(&mut self, b: &mut Builder, parameters: &mut Parameters) {
        for access in &self.program.accesses {
            let offset = parameters.read(b);
            let mut pairs = |count: u32| -> Vec<[Value; 2]> {
                (0..count).map(|_| [parameters.read(b), parameters.read(b)]).collect()
            };
            let (rows, columns) = (pairs(access.row_rank), pairs(access.column_rank));
            let distance = distance(b, self.sizes.valid_row, &rows);
            let start = match distance {
                Some(distance) => b.binary(BinaryOp::Add, offset, distance),
                None => offset,
            };
            self.sizes.accesses.push(Strides { start, columns });
        }
        for step in &self.program.steps {
            let count = step.map().map_or(0, |map| map.arguments);
            self.sizes.arguments.push(parameters.read_many(b, count));
        }
        self.sizes.zero = Some(parameters.read(b));
    }

    /// Loads what this invocation holds in registers.
    fn hold(&mut self, b: &mut Builder) {
        let RowProgram { held, threads, width, ref accesses, .. } = *self.program;
        let last = binary(b, BinaryOp::Sub, self.sizes.words, 1);
        for nth in 0..held {
            let index = binary(b, BinaryOp::Add, self.sizes.thread, nth * threads);
            self.held.push(match nth < RowProgram::least_words(held) {
                true => Word { index, is_inside: None },
                false => Word {
                    index: b.binary(BinaryOp::Min, index, last),
                    is_inside: Some(b.binary(BinaryOp::Lt, index, self.sizes.words)),
                },
            });
        }
        self.elements = vec![Element::default(); (held * width) as usize];
        let varies = |access: &u32| accesses[*access as usize].column_rank > 0;
        let all = 0..if held == 0 { 0 } else { accesses.len() as u32 };
        for access in all.clone().filter(|access| !varies(access)) {
            let loaded = self.load(b, access, None);
            self.row_loads.insert(access, loaded);
        }
        for access in all.filter(varies) {
            for nth in 0..self.elements.len() {
                let column = self.column(b, self.held[nth / width as usize], nth as u32 % width);
                let loaded = self.load(b, access, Some(column));
                self.elements[nth].loads.insert(access, loaded);
            }
        }
    }

    fn build(&mut self, b: &mut Builder, outputs: &[u32]) {
        let levels = self.program.levels();
        let last = levels.len() - 1;
        for level in 0..=levels[last] {
            let is_reduction = |n: &usize| {
                levels[*n] == level && matches!(self.program.steps[*n], RowStep::Reduce(..))
            };
            let reductions: Vec<usize> = (0..levels.len()).filter(is_reduction).collect();
            self.reduce(b, &reductions);
            for (n, step) in self.program.steps.iter().enumerate() {
                if let (RowStep::Row(map, sources), true) = (step, levels[n] == level) {
                    let value = self.map(b, n, map, sources, &mut None);
                    let value = if n == last { value } else { self.stored(b, map, value) };
                    self.results.insert(n as u32, value);
                }
            }
        }
        let stored = self.program.stored.iter().map(|step| *step as usize);
        let mut elements: Vec<(usize, u32)> = stored.zip(outputs[1..].iter().copied()).collect();
        match &self.program.steps[last] {
            // After those that it may need.
            RowStep::Elements(..) => elements.push((last, outputs[0])),
            step => self.store_row(b, outputs[0], last as u32, step.dtype()),
        }
        if elements.is_empty() {
            return;
        }
        let is_row = b.binary(BinaryOp::Lt, self.sizes.row, self.sizes.rows);
        b.open();
        let width = self.program.width as usize;
        self.for_words(b, |this, b, words, known| {
            let words = words.iter().zip(known.chunks_mut(width));
            let compute =
                |(word, known): (&Word, _)| (*word, this.words(b, &elements, *word, known));
            let values: Vec<(Word, Vec<Vec<Value>>)> = words.map(compute).collect();
            for (word, values) in values {
                let store = |b: &mut Builder| {
                    for ((_, output), values) in elements.iter().zip(values) {
                        this.store_words(b, *output, word.index, values);
                    }
                };
                match word.is_inside {
                    Some(is_inside) => b.if_then(is_inside, store),
                    None => store(b),
                }
            }
        });
        let block = b.close();
        b.if_then(is_row, |b| block.into_iter().for_each(|stmt| b.push(stmt)));
    }

    /// Adds what is computed of the words of an invocation, with the values of their elements: once
    /// if all are held, else in loops: [`UNROLL`] words at a time, so that their loads overlap, and
    /// the others one by one.
    fn for_words(
        &mut self,
        b: &mut Builder,
        body: impl Fn(&Self, &mut Builder, &[Word], &mut [Element]),
    ) {
        if !self.held.is_empty() {
            let mut elements = std::mem::take(&mut self.elements);
            body(self, b, &self.held, &mut elements);
            self.elements = elements;
            return;
        }
        let body = |b: &mut Builder, words: &[Value]| {
            let words: Vec<Word> =
                words.iter().map(|index| Word { index: *index, is_inside: None }).collect();
            let count = self.program.width as usize * words.len();
            body(self, b, &words, &mut vec![Element::default(); count]);
        };
        let threads = self.program.threads;
        let zero = b.u32(0);
        let rounded = binary(b, BinaryOp::Add, self.sizes.words, threads - 1);
        let count = binary(b, BinaryOp::Shr, rounded, threads.ilog2());
        let whole = binary(b, BinaryOp::Shr, self.sizes.words, (threads * UNROLL).ilog2());
        b.for_range(zero, whole, |b, nth, _| {
            let first = times(b, nth, threads * UNROLL);
            let mut words = vec![b.binary(BinaryOp::Add, first, self.sizes.thread)];
            for nth in 1..UNROLL {
                words.push(binary(b, BinaryOp::Add, words[0], nth * threads));
            }
            body(b, &words);
        });
        let done = times(b, whole, UNROLL);
        b.for_range(done, count, |b, nth, _| {
            let first = times(b, nth, threads);
            let word = b.binary(BinaryOp::Add, first, self.sizes.thread);
            let is_inside = b.binary(BinaryOp::Lt, word, self.sizes.words);
            b.if_then(is_inside, |b| body(b, &[word]));
        });
    }

    /// Adds a pass over the row for reductions, by position of their steps.
    fn reduce(&mut self, b: &mut Builder, reductions: &[usize]) {
        let states: Vec<(u32, States, DType, RowSource)> = reductions
            .iter()
            .filter_map(|n| match &self.program.steps[*n] {
                RowStep::Reduce(reduction, dtype, source) => {
                    let states = States { reduction: *reduction, ty: dtype.computed() };
                    Some((*n as u32, states, *dtype, *source))
                }
                _ => None,
            })
            .collect();
        if states.is_empty() {
            return;
        }
        let mut accumulators = Vec::new();
        for (_, states, ..) in &states {
            let accumulator = b.var(states.state_type());
            let neutral = states.neutral(b);
            b.set(accumulator, neutral);
            accumulators.push(accumulator);
        }
        self.for_words(b, |this, b, words, elements| {
            let width = this.program.width as usize;
            for ((_, states, _, source), accumulator) in states.iter().zip(&accumulators) {
                let lanes: Vec<Value> = elements
                    .iter_mut()
                    .enumerate()
                    .map(|(nth, known)| {
                        let word = words[nth / width];
                        let column = this.column(b, word, (nth % width) as u32);
                        let element = this.element(b, *source, &mut Some((column, known)));
                        let state = states.lift(b, element);
                        let Some(is_inside) = word.is_inside else { return state };
                        let neutral = states.neutral(b);
                        b.select(is_inside, state, neutral)
                    })
                    .collect();
                let mut state = b.get(*accumulator);
                for lanes in lanes.chunks(width) {
                    let lanes = merge_pairs(b, *states, lanes.to_vec());
                    state = states.merge(b, state, lanes);
                }
                b.set(*accumulator, state);
            }
        });
        for ((n, states, dtype, _), accumulator) in states.iter().zip(&accumulators) {
            let own = b.get(*accumulator);
            let state = self.group.merge(b, own, |b, x, y| states.merge(b, x, y));
            let result = states.finish(b, state, self.sizes.columns);
            let result = round(b, self.conversions, *dtype, result);
            // A quotient is not combined with what follows.
            let result = if *dtype == DType::F32 { self.opaque(b, result) } else { result };
            self.results.insert(*n, result);
        }
    }

    /// Returns the column of an element of a word.
    fn column(&self, b: &mut Builder, word: Word, lane: u32) -> Value {
        let first = times(b, word.index, self.program.width);
        if lane == 0 { first } else { binary(b, BinaryOp::Add, first, lane) }
    }

    /// Returns an operand of a step as it is after it was stored: at a column, with the elements
    /// that are known there, or of the row.
    fn element(
        &self,
        b: &mut Builder,
        source: RowSource,
        at: &mut Option<(Value, &mut Element)>,
    ) -> Value {
        let step = match source {
            RowSource::Memory(access) => {
                let known = at.as_ref().and_then(|(_, known)| known.loads.get(&access));
                if let Some(known) = self.row_loads.get(&access).or(known) {
                    return *known;
                }
                let loaded = self.load(b, access, at.as_ref().map(|(column, _)| *column));
                if let Some((_, known)) = at {
                    known.loads.insert(access, loaded);
                }
                return loaded;
            }
            RowSource::Step(step) => step,
        };
        let known = at.as_ref().and_then(|(_, known)| known.steps.get(&step));
        let known = self.results.get(&step).or(known);
        if let Some(known) = known {
            return *known;
        }
        let RowStep::Elements(map, sources) = &self.program.steps[step as usize] else {
            return self.sizes.row;
        };
        let value = self.map(b, step as usize, map, sources, at);
        let value = self.stored(b, map, value);
        if let Some((_, known)) = at {
            known.steps.insert(step, value);
        }
        value
    }

    /// Computes a map.
    fn map(
        &self,
        b: &mut Builder,
        step: usize,
        map: &Map,
        sources: &[RowSource],
        at: &mut Option<(Value, &mut Element)>,
    ) -> Value {
        let (arguments, conversions) = (&self.sizes.arguments[step], self.conversions);
        let context = Context { arguments, zero: self.sizes.zero, conversions };
        let mut values: Vec<Value> = Vec::with_capacity(map.scalars.len());
        for scalar in &map.scalars {
            let value = match scalar.0 {
                Scalar::Load(n) => self.element(b, sources[n as usize], at),
                _ => context.step(b, scalar, &values).unwrap_or(self.sizes.row),
            };
            values.push(value);
        }
        values[map.result.index()]
    }

    /// Returns the result of a map as it is after it was stored, for other steps: see
    /// [`Expression::round`](crate::expr::Expression::round).
    fn stored(&self, b: &mut Builder, map: &Map, value: Value) -> Value {
        match map.output {
            DType::F16 | DType::BF16 => round(b, self.conversions, map.output, value),
            DType::F32 if map.may_contract() => self.opaque(b, value),
            _ => value,
        }
    }

    fn opaque(&self, b: &mut Builder, value: Value) -> Value {
        let (zero, conversions) = (self.sizes.zero, self.conversions);
        Context { arguments: &[], zero, conversions }.opaque(b, value)
    }

    /// Loads an element of an operand in memory, at a column or of the row.
    fn load(&self, b: &mut Builder, access: u32, column: Option<Value>) -> Value {
        let RowProgram { accesses, operands, .. } = self.program;
        let (class, strides) = (accesses[access as usize], &self.sizes.accesses[access as usize]);
        let distance = match column {
            Some(column) if class.is_packed => Some(column),
            Some(column) => distance(b, column, &strides.columns),
            None => None,
        };
        let position = match distance {
            Some(distance) => b.binary(BinaryOp::Add, strides.start, distance),
            None => strides.start,
        };
        let operand = class.operand as usize;
        decode(b, self.conversions, self.buffers[operand], operands[operand], position)
    }

    /// Computes the words of results, maps of elements, that belong to a word of the row.
    fn words(
        &self,
        b: &mut Builder,
        steps: &[(usize, u32)],
        word: Word,
        elements: &mut [Element],
    ) -> Vec<Vec<Value>> {
        let mut words: Vec<Vec<Value>> = vec![Vec::new(); steps.len()];
        for (lane, known) in (0..).zip(elements) {
            let column = self.column(b, word, lane);
            for ((step, _), words) in steps.iter().zip(&mut words) {
                let RowStep::Elements(map, sources) = &self.program.steps[*step] else { continue };
                let value = match known.steps.get(&(*step as u32)) {
                    // It is encoded to the bits that it was decoded from.
                    Some(stored) => *stored,
                    None => self.map(b, *step, map, sources, &mut Some((column, known))),
                };
                if steps.len() > 1 && !known.steps.contains_key(&(*step as u32)) {
                    let stored = self.stored(b, map, value);
                    known.steps.insert(*step as u32, stored);
                }
                let per_word = elements_per_word(map.output);
                let bits = encode(b, self.conversions, map.output, value);
                match words.last_mut().filter(|_| lane % per_word != 0) {
                    None => words.push(bits),
                    Some(others) => {
                        let bits = binary(b, BinaryOp::Shl, bits, lane % per_word * 32 / per_word);
                        *others = b.binary(BinaryOp::Or, *others, bits);
                    }
                }
            }
        }
        words
    }

    /// Stores the words of the result that belong to a word of the row.
    fn store_words(&self, b: &mut Builder, output: u32, word: Value, words: Vec<Value>) {
        let first = b.binary(BinaryOp::Mul, self.sizes.row, self.sizes.words);
        let at = b.binary(BinaryOp::Add, first, word);
        let count = words.len() as u32;
        let at = times(b, at, count);
        for (n, bits) in words.into_iter().enumerate() {
            let at = if n == 0 { at } else { binary(b, BinaryOp::Add, at, n as u32) };
            b.store(b.element(output, at), vec![bits]);
        }
    }

    /// Stores the result of the row, an element of 4 bytes.
    fn store_row(&self, b: &mut Builder, output: u32, step: u32, dtype: DType) {
        let value = self.results[&step];
        let bits = encode(b, self.conversions, dtype, value);
        let is_row = b.binary(BinaryOp::Lt, self.sizes.row, self.sizes.rows);
        let zero = b.u32(0);
        let is_first = b.binary(BinaryOp::Eq, self.sizes.thread, zero);
        let stores = b.binary(BinaryOp::And, is_row, is_first);
        let place = b.element(output, self.sizes.row);
        b.if_then(stores, |b| b.store(place, vec![bits]));
    }
}

/// Merges adjacent states, pairwise.
fn merge_pairs(b: &mut Builder, states: States, mut lanes: Vec<Value>) -> Value {
    while lanes.len() > 1 {
        let pairs = lanes.chunks(2);
        lanes = pairs
            .map(|pair| match pair {
                [first, second] => states.merge(b, *first, *second),
                _ => pair[0],
            })
            .collect();
    }
    lanes[0]
}

/// Returns the distance of an index along axes with sizes and strides; `None` without axes.
fn distance(b: &mut Builder, index: Value, axes: &[[Value; 2]]) -> Option<Value> {
    let mut rest = index;
    let mut sum = None;
    for (axis, [size, stride]) in axes.iter().enumerate().rev() {
        let coordinate = if axis == 0 { rest } else { b.binary(BinaryOp::Rem, rest, *size) };
        let term = b.binary(BinaryOp::Mul, coordinate, *stride);
        sum = Some(match sum {
            None => term,
            Some(sum) => b.binary(BinaryOp::Add, sum, term),
        });
        if axis > 0 {
            rest = b.binary(BinaryOp::Div, rest, *size);
        }
    }
    sum
}

/// Adds an operation with a constant.
fn binary(b: &mut Builder, op: BinaryOp, a: Value, constant: u32) -> Value {
    let constant = b.u32(constant);
    b.binary(op, a, constant)
}

/// Multiplies with a constant.
fn times(b: &mut Builder, a: Value, factor: u32) -> Value {
    if factor == 1 { a } else { binary(b, BinaryOp::Mul, a, factor) }
}
