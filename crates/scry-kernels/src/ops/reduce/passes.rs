//! The launches of a reduction: one pass, or two if there are few results and many elements.

use scry_gpu::{DType, PreparedLaunch, Result, UntypedBuffer};

use super::{Axis, Reduce, Reduction};
use crate::elements;
use crate::occupancy::{power_of_4, resident_workgroups};
use crate::operation::Preparation;
use crate::wgsl::{Immediates, WgslLaunch};

/// Invocations of a workgroup.
const WORKGROUP: u64 = 256;

/// Columns of a workgroup, at most: 256 bytes of `f32`.
const MAX_LANES: u64 = 64;

/// Words of a state between passes.
const STATE_WORDS: u64 = 4;

/// The fewest results of a plain kernel, and the most elements of each: errors of sums grow with a
/// 2048th of them.
const MIN_PLAIN_RESULTS: u64 = 64;
const MAX_PLAIN_LENGTH: u64 = 1 << 14;

/// Elements of a block of a plain kernel, as in its source.
const PLAIN_BLOCK: u64 = 128;

/// The fewest elements for which a second plain pass is worth its launch.
const MIN_PLAIN_SEGMENTS: u64 = 1 << 17;

/// The fewest tiles for which a second pass is worth its launch: a workgroup waits for memory once
/// for each tile, and a launch takes about as long as three tiles.
const MIN_TILES: u64 = 5;

const PARAMETERS: &str = "struct Parameters {
    rows: u32,
    length: u32,
    segments: u32,
    divisor: f32,
    tail: u32,
}

var<immediate> parameters: Parameters;

// A value near the elements of the result that an invocation computes.
var<private> reference: Computed;
";

const PUT_RESULT: &str = "@group(0) @binding(2) var<storage, read_write> results: array<Output>;
fn put(at: u32, state: State) { results[at] = finish(state); }
";

const PUT_STATE: &str = "@group(0) @binding(2) var<storage, read_write> states: array<vec4<u32>>;
fn put(at: u32, state: State) { states[at] = encode(state); }
";

/// A launch of rows.wgsl or columns.wgsl.
struct Pass {
    is_of_columns: bool,
    results: u64,
    /// Loads per result.
    length: u64,
    /// Elements per load.
    width: u64,
    /// Invocations per result in a workgroup.
    threads: u64,
    /// Loads of an invocation in a tile.
    loads: u64,
    /// Workgroups per result.
    segments: u64,
    /// Whether tiles are not loaded into private arrays.
    is_plain: bool,
}

impl Pass {
    /// Chooses few different constants, so that few kernels are compiled.
    fn new(is_of_columns: bool, results: u64, length: u64, width: u64, workgroups: u64) -> Self {
        let threads = if is_of_columns {
            WORKGROUP / if results <= 8 { 8 } else { MAX_LANES }
        } else if results == 1 {
            WORKGROUP
        } else {
            power_of_4(length.div_ceil(4)).min(WORKGROUP)
        };
        let loads = if threads < WORKGROUP && !is_of_columns { 4 } else { 8 };
        let mut pass = Self {
            is_of_columns,
            results,
            length,
            width,
            threads,
            loads,
            segments: 1,
            is_plain: false,
        };
        let tiles = length.div_ceil(threads * loads);
        if tiles >= MIN_TILES {
            pass.segments = (workgroups / pass.workgroups()).clamp(1, tiles);
        }
        pass
    }

    /// Returns the workgroups of one segment of every result.
    fn workgroups(&self) -> u64 {
        self.results.div_ceil(WORKGROUP / self.threads)
    }

    /// Returns the constants of the shader.
    fn constants(&self) -> String {
        let Self { threads, loads, .. } = *self;
        let lanes = WORKGROUP / threads;
        format!("const LANES = {lanes}u;\nconst THREADS = {threads}u;\nconst LOADS = {loads}u;\n")
    }
}

/// Prepares plain kernels: an invocation for each of many results; of few results, passes whose
/// tiles are not loaded into arrays.
pub(super) fn plain(it: &Reduce, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let (results, length) = (it.results(), it.length());
    let has_many_results = (results >= 8 && length <= 1024) || results >= MIN_PLAIN_RESULTS;
    if !has_many_results || length > MAX_PLAIN_LENGTH {
        return in_passes(it, preparation, true);
    }
    let (out, inputs) = preparation.buffers.split_last().expect("the last buffer is the output");
    let mut buffers = preparation.without_empty(&inputs.iter().collect::<Vec<_>>())?;
    buffers.push(out.clone());
    let loads = match it.has_factors {
        true => include_str!("../../shaders/reduce/load_products.wgsl"),
        false => include_str!("../../shaders/reduce/load_elements.wgsl"),
    };
    let constants = format!(
        "const OF_COLUMNS = {};\nconst IS_SHORT = {};\n",
        it.axis == Axis::Column,
        length <= PLAIN_BLOCK,
    );
    let mut source = vec![elements::prelude(it.dtype), output_elements(it), PARAMETERS];
    source.extend(it.reduction.state(it.dtype));
    let kernel = include_str!("../../shaders/plain/reduce.wgsl");
    source.extend([loads, PUT_RESULT, &constants, kernel]);
    let immediates = Immediates::default()
        .u32(results as u32)
        .u32(length as u32)
        .u32(1)
        .f32(it.reduction.divisor(length))
        .u32(0);
    let buffers: Vec<_> = buffers.iter().collect();
    Ok(vec![preparation.plain(&source, &buffers, immediates, results)?])
}

/// Prepares the launches.
pub(super) fn prepare(it: &Reduce, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    in_passes(it, preparation, false)
}

fn in_passes(
    it: &Reduce,
    preparation: &Preparation<'_>,
    is_plain: bool,
) -> Result<Vec<PreparedLaunch>> {
    let (out, inputs) = preparation.buffers.split_last().expect("the last buffer is the output");
    let inputs = preparation.without_empty(&inputs.iter().collect::<Vec<_>>())?;
    // A single column is contiguous.
    let is_of_columns = it.axis == Axis::Column && it.columns > 1;
    let (results, length) = (it.results(), it.length());
    // Neighbouring invocations of plain kernels load neighbouring elements.
    let width = if is_of_columns || is_plain { 1 } else { load_width(results, length) };
    let workgroups = resident_workgroups(preparation.kernels, 4);
    let mut first = Pass::new(is_of_columns, results, length / width, width, workgroups);
    first.is_plain = is_plain;
    if is_plain && results * length < MIN_PLAIN_SEGMENTS {
        first.segments = 1;
    }
    let input = Input::Elements(&inputs);
    if first.segments == 1 {
        return Ok(vec![launch(it, preparation, &first, (input, Output::Results(out)))?]);
    }
    let words = results * first.segments * STATE_WORDS;
    let states = preparation.kernels.scratch_of(0, DType::U32, words)?;
    let second = Pass::new(is_of_columns, results, first.segments, 1, 0);
    let second = Pass { is_plain, ..second };
    Ok(vec![
        launch(it, preparation, &first, (input, Output::States(&states)))?,
        launch(it, preparation, &second, (Input::States(&states), Output::Results(out)))?,
    ])
}

/// Returns how many elements of a row are loaded at once. The last ones of a single long row are
/// loaded one by one.
fn load_width(rows: u64, columns: u64) -> u64 {
    let is_long = rows == 1 && columns >= 4 * WORKGROUP;
    if is_long || (columns > 0 && columns.is_multiple_of(4)) { 4 } else { 1 }
}

/// What a pass reads.
#[derive(Clone, Copy)]
enum Input<'i> {
    Elements(&'i [UntypedBuffer]),
    States(&'i UntypedBuffer),
}

/// What a pass writes.
#[derive(Clone, Copy)]
enum Output<'o> {
    Results(&'o UntypedBuffer),
    States(&'o UntypedBuffer),
}

/// Prepares a pass.
fn launch(
    it: &Reduce,
    preparation: &Preparation<'_>,
    pass: &Pass,
    (input, output): (Input<'_>, Output<'_>),
) -> Result<PreparedLaunch> {
    let mut buffers: Vec<_> = match input {
        Input::Elements(inputs) => inputs.iter().collect(),
        Input::States(states) => vec![states],
    };
    let has_tail = pass.results == 1 && pass.width > 1;
    let (results, put) = match output {
        Output::Results(out) => (out, PUT_RESULT),
        Output::States(states) => (states, PUT_STATE),
    };
    buffers.push(results);
    if let (true, Input::Elements(inputs)) = (has_tail, input) {
        buffers.extend(inputs);
    }
    let mut source = vec![elements::prelude(it.dtype), output_elements(it), PARAMETERS];
    source.extend(it.reduction.state(it.dtype));
    source.push(loads(it, pass, input));
    let (constants, tail_state) = (pass.constants(), tail_state(it, has_tail));
    let tile = match pass.is_plain {
        true => include_str!("../../shaders/plain/tile.wgsl"),
        false => include_str!("../../shaders/reduce/tile.wgsl"),
    };
    source.extend([&constants, tile, put, &tail_state]);
    source.push(match pass.is_of_columns {
        true => include_str!("../../shaders/reduce/columns.wgsl"),
        false => include_str!("../../shaders/reduce/rows.wgsl"),
    });
    preparation.wgsl(&WgslLaunch {
        source: &source,
        buffers: &buffers,
        immediates: Immediates::default()
            .u32(pass.results as u32)
            .u32(pass.length as u32)
            .u32(pass.segments as u32)
            .f32(it.reduction.divisor(it.length()))
            .u32((it.length() % pass.width) as u32),
        workgroups: [pass.workgroups() as u32, pass.segments as u32, 1],
    })
}

/// Returns the shader that loads what a pass reads.
fn loads(it: &Reduce, pass: &Pass, input: Input<'_>) -> &'static str {
    match (input, it.has_factors, pass.width) {
        (Input::States(_), ..) => include_str!("../../shaders/reduce/load_states.wgsl"),
        (_, false, 4) => include_str!("../../shaders/reduce/load_vectors.wgsl"),
        (_, false, _) => include_str!("../../shaders/reduce/load_elements.wgsl"),
        (_, true, 4) => include_str!("../../shaders/reduce/load_product_vectors.wgsl"),
        (_, true, _) => include_str!("../../shaders/reduce/load_products.wgsl"),
    }
}

/// Returns the definitions of `Output` and, unless results are positions, `narrow_output`.
fn output_elements(it: &Reduce) -> &'static str {
    match (it.reduction, it.output == it.dtype) {
        (Reduction::ArgMin | Reduction::ArgMax, _) => "alias Output = u32;\n",
        (_, true) => {
            "alias Output = Stored;\n\
             fn narrow_output(value: Computed) -> Output { return narrow(value); }\n"
        }
        (_, false) => {
            "alias Output = f32;\n\
             fn narrow_output(value: Computed) -> Output { return value; }\n"
        }
    }
}

/// Returns the function for the elements after the last whole load of a single row.
fn tail_state(it: &Reduce, has_tail: bool) -> String {
    if !has_tail {
        return "fn tail_state(segment: u32, thread: u32) -> State { return neutral(); }\n"
            .to_owned();
    }
    let (declaration, element) = match it.has_factors {
        true => (
            "@group(0) @binding(4) var<storage, read> other_tail: array<Stored>;\n",
            "widen(x_tail[position]) * widen(other_tail[position])",
        ),
        false => ("", "widen(x_tail[position])"),
    };
    format!(
        "@group(0) @binding(3) var<storage, read> x_tail: array<Stored>;\n\
         {declaration}\
         fn tail_state(segment: u32, thread: u32) -> State {{\n\
             let position = parameters.length * WIDTH + thread;\n\
             if segment == 0u && thread < parameters.tail {{\n\
                 return lift({element}, position);\n\
             }}\n\
             return neutral();\n\
         }}\n"
    )
}
