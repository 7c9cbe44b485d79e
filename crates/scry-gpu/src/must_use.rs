//! Doc tests that the compiler warns about unused values of `#[must_use]` types.

/// The first lines of each doc test.
macro_rules! preamble {
    () => {
        "#![deny(unused_must_use)]\n\
         use scry_gpu::*;\n\
         # fn main() {}\n\
         fn example(gpu: &Device, kernel: &Kernel, x: &Buffer<f32>) -> Result<()> {\n\
         let mut batch = gpu.batch();\n\
         let recording = batch.fill(x, 1.0)?.record()?;\n"
    };
}

/// Defines two doc tests per expression: as a statement it must not compile, bound to a name it
/// must.
macro_rules! must_use {
    ($($name:ident: $value:literal;)*) => {
        $(
            #[doc = concat!("```compile_fail\n", preamble!(), $value, ";\nOk(())\n}\n```\n")]
            #[doc = concat!("```\n", preamble!(), "let _used = ", $value, ";\nOk(())\n}\n```\n")]
            struct $name;
        )*
    };
}

must_use! {
    Ticket: "batch.submit_async()?";
    Replayed: "recording.replay()?";
    Recording: "batch.record()?";
    Batch: "gpu.batch()";
    Download: "batch.download(x)?";
    Inputs: "recording.replay_with()";
    Launch: "Launch::workgroups([1, 1, 1])";
    LaunchWithImmediates: "Launch::invocations(4).immediates(&1.0f32)";
    BoundBuffer: "kernel.bind().set(\"x\", x)";
    PreparedLaunch: "kernel.prepare(&[x], 4)?";
    Options: "CompileOptions::new().entry(\"a\")";
    Slice: "x.slice(..)?";
    Labelled: "x.clone().with_label(\"x\")";
}
