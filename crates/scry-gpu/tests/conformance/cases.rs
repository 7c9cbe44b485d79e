//! The cases of scry-conformance on every present device, with both runners.

use scry_conformance::{Case, Data, Mismatch, Report, find, run, run_async};
use scry_gpu::Device;

use crate::harness::on_each_device;

/// Runs the cases with both runners on every device; prints those that are skipped.
fn check(topic: &str, name: &str) {
    let test = find(topic, name).expect("it is in the list");
    on_each_device(|gpu| {
        for case in (test.cases)(gpu.info()) {
            for (runner, result) in both(gpu, &case) {
                let report = result.unwrap_or_else(|wrong| panic!("{runner}: {wrong}"));
                for skipped in report.skipped {
                    eprintln!("{runner}: skipped on {}: {skipped}", gpu.name());
                }
            }
        }
    });
}

/// Runs a case with calls that block, and with calls that are awaited.
fn both(gpu: &Device, case: &Case) -> [(&'static str, Result<Report, Mismatch>); 2] {
    let awaited = || pollster::block_on(run_async(gpu, case));
    [("run", run(gpu, case)), ("run_async", awaited())]
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

/// A kernel that doubles, with this output expected for the inputs 1, 2 and 3.
fn doubled(expected: &[u32]) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(4)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&x) { x[id.x] *= 2u; }
        }";
    let case = Case::new("doubled", source).buffer(Data::words(&[1, 2, 3]));
    case.one_workgroup().expect_words(0, expected.to_vec())
}

#[test]
fn runners_notice_wrong_words() {
    on_each_device(|gpu| {
        for (runner, result) in both(gpu, &doubled(&[2, 4, 6])) {
            assert!(result.is_ok(), "{runner}");
        }
        for (runner, result) in both(gpu, &doubled(&[2, 4, 7])) {
            let text = result.expect_err(runner).to_string();
            assert!(text.contains("[6]") && text.contains("[7]"), "{runner}: {text}");
        }
    });
}
