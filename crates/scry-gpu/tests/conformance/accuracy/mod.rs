//! Floats: every operator and function by itself, against WGSL's accuracy requirements.
//!
//! The permitted results are a range, computed in f64: by ULP, by an absolute error, or, for an
//! accuracy inherited from an expression, by evaluating that expression over ranges.

mod cases;
mod double;
mod inputs;
mod range;

use cases::Case;
use range::{ANY, F16, F32, Format, Range};
use scry_gpu::{Device, Features, Launch};

use crate::harness::{is_left_out, on_each_device, run_words};

const COUNT: usize = 3000;

/// A kernel that evaluates each expression for the three numbers of its invocation.
fn kernel(format: Format, cases: &[Case]) -> String {
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
    for (i, case) in cases.iter().enumerate() {
        let place = format!("out[id.x * {}u + {i}u]", cases.len());
        source += &format!("{place} = bitcast<u32>(f32({}));\n", case.wgsl);
    }
    source + "}"
}

/// Returns the permitted results for these inputs, each of which may be flushed if it is subnormal.
fn allowed(case: &Case, format: Format, input: [f64; 3]) -> Range {
    let as_given = (case.allowed)(format, input.map(Range::of));
    let subnormal = [0, 1, 2].map(|i| format.is_subnormal(input[i]));
    if subnormal == [false; 3] {
        return as_given;
    }
    let flushed = |which: usize| {
        let flush = |i: usize| if subnormal[i] && which >> i & 1 == 1 { 0.0 } else { input[i] };
        (case.allowed)(format, [0, 1, 2].map(flush).map(Range::of))
    };
    (1..8).map(flushed).fold(as_given, Range::or)
}

fn check_output(case: &Case, format: Format, input: [f64; 3], got: u32, range: Range) {
    let got = f64::from(f32::from_bits(got));
    assert!(
        range.holds(got),
        "{} as {} of {input:?} is {got:e}, and should be from {:e} to {:e}",
        case.wgsl,
        format.name,
        range.low,
        range.high,
    );
}

fn check_on(gpu: &Device, format: Format, cases: &[Case]) {
    let left_out = |case: &&Case| is_left_out(gpu, format.name, case.wgsl);
    let cases: Vec<Case> = cases.iter().filter(|case| !left_out(case)).copied().collect();
    let cases = &cases[..];
    let inputs = inputs::inputs(format, COUNT);
    let words: Vec<u32> = inputs.as_flattened().iter().map(|x| (*x as f32).to_bits()).collect();
    let source = kernel(format, cases);
    let size = inputs.len() * cases.len();
    let got = run_words(gpu, &source, &[&words], size, Launch::invocations(inputs.len()));
    for (i, case) in cases.iter().enumerate() {
        let mut stated = 0;
        for (input, row) in inputs.iter().zip(got.chunks(cases.len())) {
            let range = allowed(case, format, *input);
            stated += usize::from(!range.is_any());
            check_output(case, format, *input, row[i], range);
        }
        assert!(stated > COUNT / 12, "{}: {stated} results have a stated accuracy", case.wgsl);
    }
}

/// Checks `f32` on each device, and `f16` where it is supported.
fn check(cases: &[Case]) {
    on_each_device(|gpu| {
        check_on(gpu, F32, cases);
        match gpu.info().features.contains(Features::F16) {
            true => check_on(gpu, F16, cases),
            false => eprintln!("{}: f16 is skipped: the device does not support it", gpu.name()),
        }
    });
}

#[test]
fn operators() {
    check(&cases::OPERATORS);
}

#[test]
fn rounding_and_choosing() {
    check(&cases::CHOICES);
}

#[test]
fn parts() {
    check(&cases::PARTS);
}

#[test]
fn powers_and_roots() {
    check(&cases::POWERS);
}

#[test]
fn trigonometry() {
    check(&cases::ANGLES);
}

#[test]
fn hyperbolic_functions() {
    check(&cases::HYPERBOLIC);
}

#[test]
fn vectors() {
    check(&cases::VECTORS);
}

#[test]
fn mixtures() {
    check(&cases::MIXTURES);
}

#[test]
fn rounding_to_f16() {
    let case = Case { wgsl: "quantizeToF16(a)", allowed: |_, [a, _, _]| F16.correct(a.low) };
    on_each_device(|gpu| check_on(gpu, F32, &[case]));
}

/// Returns whether results wrong by a factor would pass, for each input.
fn allows_factor(case: &Case, format: Format, factor: f64) -> bool {
    inputs::inputs(format, COUNT).into_iter().all(|input| {
        let range = allowed(case, format, input);
        range.is_any() || range.holds((range.low + range.high) / 2.0 * factor)
    })
}

#[test]
fn wrong_results_are_noticed() {
    let groups: [&[Case]; 8] = [
        &cases::OPERATORS,
        &cases::CHOICES,
        &cases::PARTS,
        &cases::POWERS,
        &cases::ANGLES,
        &cases::HYPERBOLIC,
        &cases::VECTORS,
        &cases::MIXTURES,
    ];
    for case in groups.concat() {
        assert!(!allows_factor(&case, F32, 1.01), "{} as f32 may be off by 1/100", case.wgsl);
        assert!(!allows_factor(&case, F16, 1.1), "{} as f16 may be off by 1/10", case.wgsl);
    }
}

#[test]
fn ranges_are_exactly_the_rules() {
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
    // Fused, and not.
    let factored = [rounded(b * rounded(a + c) + rounded(c * a)), -2.655_153_274_536_133];
    let (x, y) = ([a, b, c].map(Range::of), [b, c, a].map(Range::of));
    let allowed = F32.dot(x, y);
    assert!(factored.into_iter().all(|sum| allowed.holds(sum)), "{allowed:?}");
    assert!(allowed.high - allowed.low < 8.0 * F32.ulp(2.6), "{allowed:?}");
    let products = |y: [Range; 3]| F32.sum([0, 1, 2].map(|i| F32.mul(x[i], y[i])));
    assert!(!products(y).holds(factored[1]));
    // Without a shared factor.
    let apart = [0.3, 0.7, 1.1].map(Range::of);
    assert_eq!(F32.dot(x, apart), products(apart));
}
