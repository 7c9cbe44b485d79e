//! Tests: the cases of scry-conformance on every available device, and tests of their runners.

use scry_conformance::{
    Case, Data, ExpectedValue, Mismatch, Report, Ty, find, run, run_async, tests,
};
use scry_gpu::testing::{FaultPlan, open_with_faults};
use scry_gpu::{BackendKind, Device, Launch};
use scry_test_support::on_each_device;

/// The name of a runner, and the runner.
type Runner = (&'static str, fn(&Device, &Case) -> Result<Report, Mismatch>);

/// The runner with blocking calls, and the one with awaited calls.
const RUNNERS: [Runner; 2] =
    [("run", run), ("run_async", |gpu, case| pollster::block_on(run_async(gpu, case)))];

/// Runs the cases of a test with both runners on every device; prints those that are skipped.
fn check(topic: &str, name: &str) {
    let test = find(topic, name).expect("it is in the list");
    on_each_device(|gpu| {
        let cases: Vec<Case> = (test.cases)(gpu.info()).collect();
        assert!(!cases.is_empty(), "{topic}::{name} has no cases");
        for (runner, run) in RUNNERS {
            for case in &cases {
                let report = run(gpu, case);
                let report =
                    report.unwrap_or_else(|mismatch| panic!("{runner} of {name}: {mismatch}"));
                for skipped in report.skipped {
                    eprintln!("{runner} of {topic}::{name} skips on {}: {skipped}", gpu.name());
                }
            }
        }
    });
}

macro_rules! declare {
    ($($topic:ident: $($name:ident)+;)+) => {
        $(mod $topic {
            $(#[test]
            fn $name() {
                super::check(stringify!($topic), stringify!($name));
            })+
        })+
    };
}

scry_conformance::each_test!(declare);

/// Returns a case without a launch: a kernel that doubles words, and a buffer of 1, 2 and 3.
fn double_words() -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2u; }";
    Case::new("doubled", source).buffer(Data::words(&[1, 2, 3]))
}

/// Checks that both runners report a mismatch with this text on every device.
fn assert_mismatch(case: &Case, text: &str) {
    on_each_device(|gpu| {
        for (runner, run) in RUNNERS {
            let mismatch = run(gpu, case).expect_err(runner).to_string();
            assert!(mismatch.contains(text), "{runner}: `{text}` is missing in: {mismatch}");
        }
    });
}

/// Checks that both runners accept the case on every device.
fn assert_passes(case: &Case) {
    on_each_device(|gpu| {
        for (runner, run) in RUNNERS {
            assert!(run(gpu, case).expect(runner).skipped.is_empty(), "{runner}");
        }
    });
}

#[test]
fn runners_notice_wrong_words() {
    let case = || double_words().launch(Launch::invocations(3));
    assert_passes(&case().expect_words(0, vec![2, 4, 6]));
    assert_mismatch(&case().expect_words(0, vec![2, 4, 7]), "has [6] from element 2 on, not [7]");
    assert_mismatch(&case().expect_words(0, vec![2, 4]), "from element 2 on");
    // The launch has no invocation for the last word.
    let short = double_words().launch(Launch::invocations(2)).expect_words(0, vec![2, 4, 6]);
    assert_mismatch(&short, "has [3]");
}

#[test]
fn runners_notice_values_beyond_tolerance() {
    let case = |want: ExpectedValue| {
        let source = "
            @group(0) @binding(0) var<storage, read_write> x: array<f32>;
            @compute @workgroup_size(1) fn main() { x[0] *= 2.0; }";
        let case = Case::new("a float", source).buffer(Data::floats(&[1.0])).one_workgroup();
        case.expect_approx(0, Ty::F32, vec![want], |at| format!("float {at}"))
    };
    let next = f64::from(2f32.next_up());
    let bits = u64::from(2f32.to_bits());
    for want in [
        ExpectedValue::Bits(bits),
        ExpectedValue::Number(2.0),
        ExpectedValue::WithinUlps(next, 1.0),
        ExpectedValue::BitsWithin(bits + 2, 2),
        ExpectedValue::Between(2.0, 3.0),
        ExpectedValue::WithinAbsolute(2.5, 0.5),
        ExpectedValue::Any,
    ] {
        assert_passes(&case(want));
    }
    for want in [
        ExpectedValue::Bits(bits + 1),
        ExpectedValue::Number(next),
        ExpectedValue::WithinUlps(next, 0.5),
        ExpectedValue::BitsWithin(bits + 2, 1),
        ExpectedValue::Between(next, 3.0),
        ExpectedValue::WithinAbsolute(2.5, 0.25),
    ] {
        assert_mismatch(&case(want), "float 0 is 0x40000000 (2e0)");
    }
}

#[test]
fn runners_notice_wrong_properties() {
    let case = double_words().launch(Launch::invocations(3)).expect(|out| {
        let words = out.words(0);
        if words.iter().sum::<u32>() == 13 { Ok(()) } else { Err(format!("{words:?}")) }
    });
    assert_mismatch(&case, "[2, 4, 6]");
}

#[test]
fn runners_notice_missing_and_wrong_errors() {
    let accepted = double_words().launch(Launch::invocations(3)).expect_error(&["x"]);
    assert_mismatch(&accepted, "the kernel was accepted");
    let missing =
        Case::new("nothing is bound", double_words().source).launch(Launch::invocations(3));
    assert_mismatch(&missing, "the kernel uses 1, but none was given");
    let other = Case::new("another reason", missing.source).expect_error(&["no such text"]);
    assert_mismatch(&other.launch(Launch::invocations(3)), "`no such text` is missing in");
}

/// On a device whose driver panics if it is asked to block, as a browser's thread must not.
#[test]
fn cases_pass_without_blocking() {
    on_each_device(|gpu| {
        if gpu.backend_kind() == BackendKind::Cuda {
            eprintln!("skipped on {}: every thread of a CUDA program may wait", gpu.name());
            return;
        }
        let selector = format!("{}:{}", gpu.backend_kind(), gpu.info().index);
        let gpu = open_with_faults(&selector, &FaultPlan::cannot_block()).unwrap();
        for test in tests() {
            for case in (test.cases)(gpu.info()).take(1) {
                let awaited = pollster::block_on(run_async(&gpu, &case));
                awaited
                    .unwrap_or_else(|mismatch| panic!("{}::{}: {mismatch}", test.topic, test.name));
            }
        }
    });
}
