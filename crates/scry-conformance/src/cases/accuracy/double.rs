//! f64. WGSL does not have it, so its accuracy is unspecified. These tests require 1 ULP where
//! hardware rounds correctly, and a few ULP otherwise.

use scry_gpu::{BackendKind, DType, DeviceInfo, Features, Launch};

use crate::case::{Case, Data, ExpectedValue};
use crate::random::RandomWords;
use crate::ty::Ty;

/// An expression over `a`, `b` and `c`, its reference value, and the permitted absolute error for
/// that value.
type Row = (&'static str, fn([f64; 3]) -> f64, fn([f64; 3], f64) -> f64);

const EXACT: fn([f64; 3], f64) -> f64 = |_, _| 0.0;
const ONE_ULP: fn([f64; 3], f64) -> f64 = |_, want| want.abs() * f64::EPSILON;
const FOUR_ULP: fn([f64; 3], f64) -> f64 = |_, want| 4.0 * want.abs() * f64::EPSILON;
/// For sums of up to three products, which may cancel: 8 ULP of a bound of the products.
const SUM_OF_PRODUCTS: fn([f64; 3], f64) -> f64 =
    |[a, b, c], _| 8.0 * (a.abs() + b.abs() + c.abs() + 1.0).powi(2) * f64::EPSILON;

const ROWS: [Row; 24] = [
    ("a + b", |[a, b, _]| a + b, ONE_ULP),
    ("a - b", |[a, b, _]| a - b, ONE_ULP),
    ("a * b", |[a, b, _]| a * b, ONE_ULP),
    ("a / b", |[a, b, _]| a / b, FOUR_ULP),
    ("-a", |[a, ..]| -a, EXACT),
    ("fma(a, b, c)", |[a, b, c]| a.mul_add(b, c), SUM_OF_PRODUCTS),
    ("abs(a)", |[a, ..]| a.abs(), EXACT),
    ("sign(a)", |[a, ..]| a.signum(), EXACT),
    ("ceil(a)", |[a, ..]| a.ceil(), EXACT),
    ("floor(a)", |[a, ..]| a.floor(), EXACT),
    ("round(a)", |[a, ..]| a.round_ties_even(), EXACT),
    ("trunc(a)", |[a, ..]| a.trunc(), EXACT),
    ("fract(a)", |[a, ..]| a - a.floor(), ONE_ULP),
    ("min(a, b)", |[a, b, _]| a.min(b), EXACT),
    ("max(a, b)", |[a, b, _]| a.max(b), EXACT),
    ("clamp(a, min(b, c), max(b, c))", |[a, b, c]| a.clamp(b.min(c), b.max(c)), EXACT),
    ("step(a, b)", |[a, b, _]| if a <= b { 1.0 } else { 0.0 }, EXACT),
    ("select(a, b, a < b)", |[a, b, _]| a.max(b), EXACT),
    ("sqrt(abs(a))", |[a, ..]| a.abs().sqrt(), FOUR_ULP),
    ("inverseSqrt(abs(a))", |[a, ..]| 1.0 / a.abs().sqrt(), FOUR_ULP),
    ("mix(a, b, 0.25lf)", |[a, b, _]| a * 0.75 + b * 0.25, SUM_OF_PRODUCTS),
    ("dot(vec3(a, b, c), vec3(b, c, a))", |[a, b, c]| a * b + b * c + c * a, SUM_OF_PRODUCTS),
    ("cross(vec3(a, b, c), vec3(b, c, a)).z", |[a, b, c]| a * c - b * b, SUM_OF_PRODUCTS),
    (
        "length(vec3(a, b, c))",
        |[a, b, c]| (a * a + b * b + c * c).sqrt(),
        |_, v| 8.0 * v * f64::EPSILON,
    ),
];

/// Functions that SPIR-V's GLSL.std.450 has for 16 and 32 bits only.
const MISSING_IN_SPIRV: [Row; 18] = [
    ("exp(a)", |[a, ..]| a.exp(), FOUR_ULP),
    ("exp2(a)", |[a, ..]| a.exp2(), FOUR_ULP),
    ("log(abs(a))", |[a, ..]| a.abs().ln(), FOUR_ULP),
    ("log2(abs(a))", |[a, ..]| a.abs().log2(), FOUR_ULP),
    ("pow(abs(a), 1.5lf)", |[a, ..]| a.abs().powf(1.5), FOUR_ULP),
    ("sin(a)", |[a, ..]| a.sin(), FOUR_ULP),
    ("cos(a)", |[a, ..]| a.cos(), FOUR_ULP),
    ("tan(a)", |[a, ..]| a.tan(), FOUR_ULP),
    ("asin(a / 50.0lf)", |[a, ..]| (a / 50.0).asin(), FOUR_ULP),
    ("acos(a / 50.0lf)", |[a, ..]| (a / 50.0).acos(), FOUR_ULP),
    ("atan(a)", |[a, ..]| a.atan(), FOUR_ULP),
    ("atan2(a, b)", |[a, b, _]| a.atan2(b), FOUR_ULP),
    ("sinh(a)", |[a, ..]| a.sinh(), FOUR_ULP),
    ("cosh(a)", |[a, ..]| a.cosh(), FOUR_ULP),
    ("tanh(a)", |[a, ..]| a.tanh(), FOUR_ULP),
    ("asinh(a)", |[a, ..]| a.asinh(), FOUR_ULP),
    ("acosh(abs(a) + 1.0lf)", |[a, ..]| (a.abs() + 1.0).acosh(), FOUR_ULP),
    ("atanh(a / 50.0lf)", |[a, ..]| (a / 50.0).atanh(), FOUR_ULP),
];

fn kernel(rows: &[Row]) -> String {
    let mut source = String::from(
        "@group(0) @binding(0) var<storage, read> numbers: array<f64>;
        @group(0) @binding(1) var<storage, read_write> out: array<f64>;
        @compute @workgroup_size(32)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x >= arrayLength(&numbers) / 3u { return; }
            let a = numbers[id.x * 3u];
            let b = numbers[id.x * 3u + 1u];
            let c = numbers[id.x * 3u + 2u];\n",
    );
    for (i, (wgsl, ..)) in rows.iter().enumerate() {
        source += &format!("out[id.x * {}u + {i}u] = {wgsl};\n", rows.len());
    }
    source + "}"
}

/// Returns triples of numbers from about -40 to 40, most of which f32 does not represent; some are
/// multiples of 0.5.
fn inputs() -> Vec<[f64; 3]> {
    let mut words = RandomWords(12);
    let mut next = || f64::from(words.next().expect("the sequence is infinite"));
    let mut number = |i: u32| {
        let x = (next() / 2f64.powi(31) - 1.0 + next() * 2f64.powi(-60)) * 40.0;
        if i.is_multiple_of(7) { (x * 2.0).trunc() / 2.0 + 0.5 } else { x }
    };
    (0..2000).map(|i| [number(i), number(i + 1), number(i + 2)]).collect()
}

fn case(rows: &'static [Row]) -> Case {
    let inputs: Vec<[f64; 3]> =
        inputs().into_iter().filter(|input| !input.contains(&0.0)).collect();
    let want = |input: &[f64; 3], (_, reference, allowed): &Row| {
        let want = reference(*input);
        ExpectedValue::WithinAbsolute(want, allowed(*input, want))
    };
    let expected = inputs.iter().flat_map(|input| rows.iter().map(move |row| want(input, row)));
    let expected: Vec<ExpectedValue> = expected.collect();
    let bytes = inputs.as_flattened().iter().flat_map(|x| x.to_ne_bytes()).collect();
    Case::new("", kernel(rows))
        .buffer(Data::bytes(bytes).typed(DType::F64))
        .buffer(Data::zeros(DType::F64, expected.len()))
        .launch(Launch::invocations(inputs.len()))
        .skipped_without(Features::F64)
        .expect_approx(1, Ty::F64, expected, move |at| {
            format!("{} of {:?}", rows[at % rows.len()].0, inputs[at / rows.len()])
        })
}

pub(crate) fn f64_operators_and_functions(_: &DeviceInfo) -> Case {
    case(&ROWS)
}

pub(crate) fn f64_functions_missing_in_spirv(gpu: &DeviceInfo) -> Vec<Case> {
    match gpu.backend {
        BackendKind::Vulkan => MISSING_IN_SPIRV.chunks(1).map(rejected_by_name).collect(),
        _ => vec![case(&MISSING_IN_SPIRV)],
    }
}

/// Creates a case of one function, which the device must reject with an error that names it.
fn rejected_by_name(rows: &[Row]) -> Case {
    let (wgsl, ..) = rows[0];
    let name = wgsl.split('(').next().unwrap_or_default();
    let parts = [&format!("`{name}` of 64-bit floats"), "help: "];
    Case::new(name, kernel(rows)).skipped_without(Features::F64).expect_error(&parts)
}
