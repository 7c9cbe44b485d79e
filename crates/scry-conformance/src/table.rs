//! Cases that evaluate a list of expressions for a list of pairs of words, all in one kernel.

use std::fmt::Write as _;

use scry_gpu::Launch;

use crate::case::{Case, ExpectedValue};
use crate::ty::Ty;

/// A WGSL expression of type `u32`, and its value on the host for the words `x` and `y`.
pub type Row = (&'static str, fn(u32, u32) -> u32);

/// The permitted difference from the word computed on the host.
#[derive(Debug, Clone, Copy)]
pub enum Tolerance {
    /// No difference.
    Exact,
    /// At most this difference of the words, as integers.
    BitsWithin(u64),
    /// The words are `f32` values; zeros of either sign are equal.
    SameFloat,
}

impl Tolerance {
    /// Returns the type by which words are compared.
    fn ty(self) -> Ty {
        if let Self::SameFloat = self { Ty::F32 } else { Ty::U32 }
    }

    fn want(self, word: u32) -> ExpectedValue {
        match self {
            Self::Exact => ExpectedValue::Bits(word.into()),
            Self::BitsWithin(distance) => ExpectedValue::BitsWithin(word.into(), distance),
            Self::SameFloat => ExpectedValue::Number(f32::from_bits(word).into()),
        }
    }
}

/// Returns cases that evaluate every expression for every pair of words `x` and `y`. `prelude` has
/// WGSL statements before the expressions, which may define other operands from `x` and `y`.
pub fn table<S: AsRef<str>>(
    prelude: &str,
    rows: &[(S, impl Fn(u32, u32) -> u32)],
    pairs: &[[u32; 2]],
) -> Vec<Case> {
    cases("", prelude, rows, pairs, Tolerance::Exact)
}

/// Like [`table`], with a tolerance.
pub fn table_within<S: AsRef<str>>(
    tolerance: Tolerance,
    prelude: &str,
    rows: &[(S, impl Fn(u32, u32) -> u32)],
    pairs: &[[u32; 2]],
) -> Vec<Case> {
    cases("", prelude, rows, pairs, tolerance)
}

/// Returns cases that evaluate every expression for every pair of words `x` and `y`. The
/// expressions may call `functions`.
pub fn function_table(functions: &str, rows: &[Row], pairs: &[[u32; 2]]) -> Vec<Case> {
    cases(functions, "", rows, pairs, Tolerance::Exact)
}

/// Returns the same evaluation with each [`Assignment`] of pairs to invocations.
fn cases<S: AsRef<str>>(
    declarations: &str,
    prelude: &str,
    rows: &[(S, impl Fn(u32, u32) -> u32)],
    pairs: &[[u32; 2]],
    tolerance: Tolerance,
) -> Vec<Case> {
    let case = |assignment: Assignment| {
        let names = rows.iter().map(|(expression, _)| expression.as_ref().to_owned());
        let (names, pairs_of): (Vec<String>, _) = (names.collect(), pairs.to_vec());
        let values = |(index, pair): (usize, &[u32; 2])| {
            let [x, y] = *pair;
            let expected = rows.iter().map(|(_, host)| host);
            expected
                .map(|host| assignment.want(index, tolerance, || host(x, y)))
                .collect::<Vec<_>>()
        };
        let expected = pairs.iter().enumerate().flat_map(values).collect();
        let words = vec![u32::MAX; pairs.len() * rows.len()];
        Case::new(format!("{assignment:?}"), kernel(assignment, declarations, prelude, rows))
            .words(&[pairs.as_flattened(), &words])
            .launch(assignment.launch(pairs.len()))
            .expect_approx(1, tolerance.ty(), expected, move |at| {
                let (row, column) = (at / names.len(), at % names.len());
                format!("{} of {:x?}", names[column], pairs_of[row])
            })
    };
    [Assignment::Varying, Assignment::Uniform, Assignment::Masked].map(case).into()
}

/// How pairs are assigned to invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assignment {
    /// A different pair for each invocation.
    Varying,
    /// The same pair for all invocations of a workgroup.
    Uniform,
    /// A different pair for each invocation; two of five invocations are inactive.
    Masked,
}

impl Assignment {
    /// Returns the expected value for the pair at `index`: the buffer's initial word if its
    /// invocation is inactive.
    fn want(self, index: usize, tolerance: Tolerance, host: impl Fn() -> u32) -> ExpectedValue {
        match self == Self::Masked && index % 5 >= 3 {
            true => ExpectedValue::Bits(u32::MAX.into()),
            false => tolerance.want(host()),
        }
    }

    fn launch(self, pairs: usize) -> Launch {
        match self {
            Self::Uniform => Launch::workgroups([pairs as u32, 1, 1]),
            _ => Launch::invocations(pairs),
        }
    }

    /// Returns WGSL for the workgroup size, the index of the pair, and the condition under which an
    /// invocation is active.
    fn parts(self) -> [&'static str; 3] {
        match self {
            Self::Varying => ["32", "id.x", "true"],
            // Every invocation writes the same words.
            Self::Uniform => ["4", "group.x", "true"],
            Self::Masked => ["32", "id.x", "row % 5u < 3u"],
        }
    }
}

/// Returns a kernel that evaluates each expression for the pair of words of its invocation.
fn kernel<S: AsRef<str>, H>(
    assignment: Assignment,
    declarations: &str,
    prelude: &str,
    rows: &[(S, H)],
) -> String {
    let [size, row, condition] = assignment.parts();
    let mut source = format!(
        "{declarations}
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
        rows.len()
    );
    for (index, (expression, _)) in rows.iter().enumerate() {
        let expression = expression.as_ref();
        writeln!(source, "            out[base + {index}u] = {expression};")
            .expect("writing to a String cannot fail");
    }
    source.push_str("            }\n        }\n");
    source
}
