//! Runs kernels on words, and compares with the host's results.

use std::fmt::Write as _;

use scry_gpu::{BackendKind, Binding, Device, Launch, Result, UntypedBuffer};

/// Uploads words as a buffer that binds to every WGSL type.
#[track_caller]
pub fn upload_words(gpu: &Device, words: &[u32]) -> UntypedBuffer {
    succeed(succeed(gpu.upload(words)).untyped().view_as(None))
}

/// Reads the words of a buffer.
#[track_caller]
pub fn download_words(buffer: &UntypedBuffer) -> Vec<u32> {
    succeed(succeed(buffer.typed::<u32>()).download())
}

/// Returns whether a device skips a case: `frexp` of 16- and 64-bit floats, for which naga writes
/// an exponent type that SPIR-V does not allow.
pub fn is_left_out(gpu: &Device, ty: &str, expression: &str) -> bool {
    let left_out =
        gpu.backend_kind() == BackendKind::Vulkan && ty != "f32" && expression.contains("frexp(");
    if left_out {
        eprintln!(
            "{}: {expression} of {ty} is skipped: naga's SPIR-V of it is invalid",
            gpu.name()
        );
    }
    left_out
}

/// Runs a test on every device, naming each.
pub fn on_each_device(test: impl Fn(&Device)) {
    for gpu in crate::support::devices() {
        eprintln!("on {} ({})", gpu.name(), gpu.backend_kind());
        test(&gpu);
    }
}

/// The value, or a panic that shows the error as users see it.
#[track_caller]
pub fn succeed<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the text of an error; panics on success.
#[track_caller]
pub fn refused<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("this should have been rejected"),
        Err(error) => error.to_string(),
    }
}

/// Asserts that a text contains each part.
#[track_caller]
pub fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
}

/// Runs a kernel whose last binding is an output of words, initially all ones, and returns it.
#[track_caller]
pub fn run_words(
    gpu: &Device,
    source: &str,
    inputs: &[&[u32]],
    output: usize,
    launch: Launch,
) -> Vec<u32> {
    let output = succeed(gpu.upload(&vec![u32::MAX; output]));
    let inputs: Vec<_> = inputs.iter().map(|data| upload_words(gpu, data)).collect();
    let mut bindings: Vec<&dyn Binding> = inputs.iter().map(|b| b as &dyn Binding).collect();
    bindings.push(&output);
    let kernel = succeed(gpu.compile(source));
    succeed(gpu.run(&kernel, &bindings, launch));
    succeed(output.download())
}

/// A launch of one workgroup.
pub fn one_workgroup() -> Launch {
    Launch::workgroups([1, 1, 1])
}

/// An expression over `a` and `b` of type `u32`, and its value on the host.
pub type Case = (&'static str, fn(u32, u32) -> u32);

/// Evaluates every expression for every pair of words. `prelude` defines `a` and `b` by the words
/// `x` and `y`.
#[track_caller]
pub fn check_table<S: AsRef<str>>(
    prelude: &str,
    cases: &[(S, impl Fn(u32, u32) -> u32)],
    pairs: &[[u32; 2]],
) {
    check_table_by(prelude, cases, pairs, |got, want| got == want);
}

/// As [`check_table`], with a comparison of the device's and the host's word.
#[track_caller]
pub fn check_table_by<S: AsRef<str>>(
    prelude: &str,
    cases: &[(S, impl Fn(u32, u32) -> u32)],
    pairs: &[[u32; 2]],
    is_right: impl Fn(u32, u32) -> bool,
) {
    check_in_all_ways("", prelude, cases, pairs, is_right);
}

/// Evaluates every expression, which may call `functions`, for every pair of words `x` and `y`.
#[track_caller]
pub fn check_functions(functions: &str, cases: &[Case], pairs: &[[u32; 2]]) {
    check_in_all_ways(functions, "", cases, pairs, |got, want| got == want);
}

#[track_caller]
fn check_in_all_ways<S: AsRef<str>>(
    declarations: &str,
    prelude: &str,
    cases: &[(S, impl Fn(u32, u32) -> u32)],
    pairs: &[[u32; 2]],
    is_right: impl Fn(u32, u32) -> bool,
) {
    for way in [Way::Varying, Way::Uniform, Way::Masked] {
        let source = table_kernel(way, declarations, prelude, cases);
        on_each_device(|gpu| {
            let got = way.run(gpu, &source, pairs, cases.len());
            for (index, (pair, row)) in pairs.iter().zip(got.chunks(cases.len())).enumerate() {
                for ((expression, host), got) in cases.iter().zip(row) {
                    let what = || format!("{} of {pair:x?}, {way:?}", expression.as_ref());
                    check_word(*got, way.want(index, || host(pair[0], pair[1])), &is_right, what);
                }
            }
        });
    }
}

/// Compares a word with the expected one, if any.
#[track_caller]
fn check_word(
    got: u32,
    want: Option<u32>,
    is_right: impl Fn(u32, u32) -> bool,
    what: impl Fn() -> String,
) {
    let Some(want) = want else {
        assert_eq!(got, u32::MAX, "{} is written, and should not have been", what());
        return;
    };
    assert!(
        is_right(got, want),
        "{} is {got:#x} ({}), not {want:#x} ({})",
        what(),
        f32::from_bits(got),
        f32::from_bits(want),
    );
}

/// How pairs are assigned to invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A different pair for each invocation.
    Varying,
    /// The same pair for all invocations of a workgroup.
    Uniform,
    /// A different pair for each invocation; two of five are inactive.
    Masked,
}

impl Way {
    /// Returns the expected value of a row; `None` if it is not written.
    fn want(self, index: usize, host: impl Fn() -> u32) -> Option<u32> {
        (self != Self::Masked || index % 5 < 3).then(host)
    }

    fn run(self, gpu: &Device, source: &str, pairs: &[[u32; 2]], columns: usize) -> Vec<u32> {
        let launch = match self {
            Self::Uniform => Launch::workgroups([pairs.len() as u32, 1, 1]),
            _ => Launch::invocations(pairs.len()),
        };
        run_words(gpu, source, &[pairs.as_flattened()], pairs.len() * columns, launch)
    }

    /// Returns the workgroup size, the index of the pair, and the condition of active invocations.
    fn parts(self) -> [&'static str; 3] {
        match self {
            Self::Varying => ["32", "id.x", "true"],
            // Every invocation writes the same words.
            Self::Uniform => ["4", "group.x", "true"],
            Self::Masked => ["32", "id.x", "row % 5u < 3u"],
        }
    }
}

/// A kernel that evaluates each expression for the pair of words of its invocation.
fn table_kernel<S: AsRef<str>, H>(
    way: Way,
    directives: &str,
    prelude: &str,
    cases: &[(S, H)],
) -> String {
    let [size, row, condition] = way.parts();
    let mut source = format!(
        "{directives}
        @group(0) @binding(0) var<storage, read> pairs: array<vec2<u32>>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;

        @compute @workgroup_size({size})
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(workgroup_id) group: vec3<u32>,
        ) {{
            let row = {row};
            if row >= arrayLength(&pairs) {{ return; }}
            let x = pairs[row].x;
            let y = pairs[row].y;
            let base = row * {}u;
            if {condition} {{
            {prelude}\n",
        cases.len()
    );
    for (index, (expression, _)) in cases.iter().enumerate() {
        let expression = expression.as_ref();
        writeln!(source, "            out[base + {index}u] = {expression};").expect("a string");
    }
    source.push_str("            }\n        }\n");
    source
}

/// Returns all pairs of words.
pub fn all_pairs(words: &[u32]) -> Vec<[u32; 2]> {
    let pair = |x: &u32| words.iter().map(|y| [*x, *y]).collect::<Vec<_>>();
    words.iter().flat_map(pair).collect()
}

/// Words, the same for the same seed.
pub struct Words(pub u32);

impl Iterator for Words {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        // A Weyl sequence through a mixer.
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut word = self.0;
        word = (word ^ (word >> 16)).wrapping_mul(0x21f0_aaad);
        word = (word ^ (word >> 15)).wrapping_mul(0x735a_2d97);
        Some(word ^ (word >> 15))
    }
}
