//! f32 and f16: every operator and function by itself, against WGSL's accuracy requirements.
//!
//! The permitted results are a range, computed in f64. WGSL states an accuracy in ULP, as an
//! absolute error, or as inherited from an expression, which is then evaluated over ranges.

mod double;
mod inputs;
mod range;
mod rows;

use range::{F16, F32, Format, Range};
use rows::Row;
use scry_gpu::{DeviceInfo, Features, Launch};

pub(crate) use double::{f64_functions_missing_in_spirv, f64_operators_and_functions};

use crate::Cases;
use crate::case::{Case, ExpectedValue};
use crate::ty::Ty;
use crate::typed::{is_skipped, skipped_case};

/// Number of inputs, each of which is three numbers.
const COUNT: usize = 3000;

/// Returns a kernel that evaluates each expression for the three numbers of its invocation.
fn kernel(format: Format, rows: &[Row]) -> String {
    let ty = format.name;
    let mut source = String::from(if format == F16 { "enable f16;\n" } else { "" });
    source += "@group(0) @binding(0) var<storage, read> words: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(32)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x >= arrayLength(&words) / 3u { return; }\n";
    for (i, name) in ["a", "b", "c"].iter().enumerate() {
        source += &format!("let {name} = {ty}(bitcast<f32>(words[id.x * 3u + {i}u]));\n");
    }
    for (i, row) in rows.iter().enumerate() {
        let output = format!("out[id.x * {}u + {i}u]", rows.len());
        source += &format!("{output} = bitcast<u32>(f32({}));\n", row.wgsl);
    }
    source + "}"
}

/// Returns the permitted results for these inputs, each of which may be flushed if it is subnormal.
fn allowed(row: &Row, format: Format, input: [f64; 3]) -> Range {
    let unflushed = (row.allowed)(format, input.map(Range::of));
    let subnormal = [0, 1, 2].map(|i| format.is_subnormal(input[i]));
    if subnormal == [false; 3] {
        return unflushed;
    }
    // Bit `i` of the mask: input `i` is flushed.
    let flushed = |mask: usize| {
        let flush = |i: usize| if subnormal[i] && mask >> i & 1 == 1 { 0.0 } else { input[i] };
        (row.allowed)(format, [0, 1, 2].map(flush).map(Range::of))
    };
    (1..8).map(flushed).fold(unflushed, Range::or)
}

/// Returns one case of all the functions that the device supports, and skipped cases of the others.
fn cases(gpu: &DeviceInfo, format: Format, rows: &[Row]) -> Vec<Case> {
    let (unsupported, rows): (Vec<Row>, Vec<Row>) =
        rows.iter().copied().partition(|row| is_skipped(gpu, format.name, row.wgsl));
    let inputs = inputs::inputs(format, COUNT);
    let words: Vec<u32> = inputs.as_flattened().iter().map(|x| (*x as f32).to_bits()).collect();
    let results = inputs.iter().flat_map(|input| rows.iter().map(|row| want(row, format, *input)));
    let results: Vec<ExpectedValue> = results.collect();
    let (out, source) = (vec![u32::MAX; results.len()], kernel(format, &rows));
    let mut cases: Vec<Case> =
        unsupported.iter().map(|row| skipped_case(format.name, row.wgsl)).collect();
    let case = Case::new(format.name, source)
        .words(&[&words, &out])
        .launch(Launch::invocations(inputs.len()))
        .skipped_without(if format == F16 { Features::F16 } else { Features::empty() })
        .expect_approx(1, Ty::F32, results, move |at| {
            let (input, row) = (inputs[at / rows.len()], &rows[at % rows.len()]);
            format!("{} as {} of {input:?}", row.wgsl, format.name)
        });
    cases.push(case);
    cases
}

fn want(row: &Row, format: Format, input: [f64; 3]) -> ExpectedValue {
    let range = allowed(row, format, input);
    if range.is_any() { ExpectedValue::Any } else { ExpectedValue::Between(range.low, range.high) }
}

/// Returns the cases for `f32`, and for `f16` where it is supported.
fn both(gpu: &DeviceInfo, rows: &'static [Row]) -> Cases {
    let gpu = gpu.clone();
    Cases::new([F32, F16].into_iter().flat_map(move |format| cases(&gpu, format, rows)))
}

pub(crate) fn operators(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::OPERATORS)
}

pub(crate) fn rounding_and_choices(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::ROUNDING_AND_CHOICES)
}

pub(crate) fn parts_of_floats(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::FLOAT_PARTS)
}

pub(crate) fn powers_and_roots(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::POWERS)
}

pub(crate) fn trigonometry(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::TRIGONOMETRY)
}

pub(crate) fn hyperbolic_functions(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::HYPERBOLIC)
}

pub(crate) fn vectors(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::VECTORS)
}

pub(crate) fn interpolation(gpu: &DeviceInfo) -> Cases {
    both(gpu, &rows::INTERPOLATION)
}

/// An f32 function whose result is rounded to f16.
const QUANTIZE: Row =
    Row { wgsl: "quantizeToF16(a)", allowed: |_, [a, _, _]| F16.correctly_rounded(a.low) };

pub(crate) fn rounding_to_f16(gpu: &DeviceInfo) -> Vec<Case> {
    cases(gpu, F32, &[QUANTIZE])
}

#[cfg(test)]
mod tests {
    use super::range::ANY;
    use super::*;

    fn groups() -> [&'static [Row]; 8] {
        [
            &rows::OPERATORS,
            &rows::ROUNDING_AND_CHOICES,
            &rows::FLOAT_PARTS,
            &rows::POWERS,
            &rows::TRIGONOMETRY,
            &rows::HYPERBOLIC,
            &rows::VECTORS,
            &rows::INTERPOLATION,
        ]
    }

    #[test]
    fn every_row_has_specified_accuracies() {
        for row in groups().concat().iter().chain([&QUANTIZE]) {
            for format in [F32, F16] {
                let inputs = inputs::inputs(format, COUNT);
                let ranges = inputs.into_iter().map(|input| allowed(row, format, input));
                let stated = ranges.filter(|range| !range.is_any()).count();
                let (name, ty) = (row.wgsl, format.name);
                assert!(stated > COUNT / 12, "{name} as {ty}: {stated} have a stated accuracy");
            }
        }
    }

    /// Returns whether, for every input, a result wrong by a factor would pass.
    fn allows_factor(row: &Row, format: Format, factor: f64) -> bool {
        inputs::inputs(format, COUNT).into_iter().all(|input| {
            let range = allowed(row, format, input);
            range.is_any() || range.holds((range.low + range.high) / 2.0 * factor)
        })
    }

    #[test]
    fn wrong_results_are_noticed() {
        for row in groups().concat() {
            assert!(!allows_factor(&row, F32, 1.01), "{} as f32 may be off by 1/100", row.wgsl);
            assert!(!allows_factor(&row, F16, 1.1), "{} as f16 may be off by 1/10", row.wgsl);
        }
    }

    #[test]
    fn ranges_match_wgsl_rules() {
        let half = Range::of(0.5);
        assert_eq!(F32.add(Range::of(1.0), half), Range::of(1.5));
        // Both neighbours of a sum that is not representable are included, and nothing else.
        let sum = F32.add(Range::of(1.0), Range::of(1e-30));
        assert_eq!(sum, Range { low: 1.0, high: f64::from(1f32.next_up()) });
        let sum = F16.add(Range::of(2048.0), Range::of(1.0));
        assert_eq!(sum, Range { low: 2048.0, high: 2050.0 });
        assert_eq!(F32.mul(Range::of(1e30), Range::of(1e30)), ANY);
        assert_eq!(F32.div(half, Range::of(0.0)), ANY);
        let third = F32.div(Range::of(1.0), Range::of(3.0));
        assert!(third.holds(f64::from(1f32 / 3.0)) && !third.holds(f64::from(1f32 / 3.0) + 1e-7));
        assert_eq!(F32.ulp(1.0), 2f64.powi(-24));
        assert_eq!(F32.ulp(1.5), 2f64.powi(-23));
        // A subnormal product may be flushed.
        assert!(F16.mul(Range::of(0.001), Range::of(0.001)).holds(0.0));
    }

    #[test]
    fn shared_factors_may_be_factored_out() {
        let numbers = [1.562_661_2, -1.633_787, 1.435_456_9_f32];
        let [a, b, c] = numbers.map(f64::from);
        let rounded = |x: f64| f64::from(x as f32);
        // `b * (a + c) + c * a`, without and with a fused multiply-add.
        let factored = [rounded(b * rounded(a + c) + rounded(c * a)), -2.655_153_274_536_133];
        let (x, y) = ([a, b, c].map(Range::of), [b, c, a].map(Range::of));
        let allowed = F32.dot(x, y);
        assert!(factored.into_iter().all(|sum| allowed.holds(sum)), "{allowed:?}");
        assert!(allowed.high - allowed.low < 8.0 * F32.ulp(2.6), "{allowed:?}");
        let products = |y: [Range; 3]| F32.sum([0, 1, 2].map(|i| F32.mul(x[i], y[i])));
        assert!(!products(y).holds(factored[1]));
        // Without a shared factor.
        let unrelated = [0.3, 0.7, 1.1].map(Range::of);
        assert_eq!(F32.dot(x, unrelated), products(unrelated));
    }
}
