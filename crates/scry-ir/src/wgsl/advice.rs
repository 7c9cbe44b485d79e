//! Help for common mistakes, in addition to the compiler's messages.

use crate::wgsl::report::Report;

/// Returns help for a text that is not WGSL.
pub(crate) fn parse(report: &Report, source: &str) -> Option<String> {
    let place = report.labels.first().and_then(|(span, _)| span.to_range());
    let text = place.and_then(|range| source.get(range)).unwrap_or("");
    let help = match text {
        "push_constant" => "`var<push_constant>` is now `var<immediate>`",
        "\u{feff}" => "the text starts with a byte order mark: save it without one",
        "\0" => "the text holds a NUL character: is it a binary file?",
        "double" => "64-bit floats are called f64 in WGSL",
        "float" => "32-bit floats are called f32 in WGSL",
        "int" => "32-bit integers are called i32 in WGSL",
        "uint" | "unsigned" => "unsigned 32-bit integers are called u32 in WGSL",
        "half" => "16-bit floats are called f16 in WGSL, after `enable f16;`",
        _ => other_language(source)?,
    };
    Some(format!("help: {help}"))
}

/// Detects a source of another language by its first thousand bytes.
fn other_language(source: &str) -> Option<&'static str> {
    let end = (0..=source.len().min(1000)).rev().find(|at| source.is_char_boundary(*at))?;
    let start = &source[..end];
    let has = |marks: &[&str]| marks.iter().any(|mark| start.contains(mark));
    Some(if has(&["#version", "layout(local_size", "void main("]) {
        "this looks like GLSL; kernels are written in WGSL"
    } else if has(&["__global__", "#include"]) {
        "this looks like CUDA C++; kernels are written in WGSL"
    } else if has(&["__kernel", "get_global_id"]) {
        "this looks like OpenCL C; kernels are written in WGSL"
    } else if has(&["[numthreads", "RWStructuredBuffer"]) {
        "this looks like HLSL; kernels are written in WGSL"
    } else {
        return None;
    })
}

/// Returns help for an invalid module.
pub(crate) fn validation(message: &str) -> Option<String> {
    let help = if message.contains("Binding decoration is missing") {
        "a storage or uniform variable needs `@group(…) @binding(…)`; other variables have none"
    } else if message.contains("for address space Uniform") {
        "`var<uniform>` requires array elements at multiples of 16 bytes: use `var<storage, \
         read>`, or `array<vec4<…>>`"
    } else if message.contains("valid destination for a store") {
        "a buffer that is written is declared `var<storage, read_write>`"
    } else {
        return None;
    };
    Some(format!("help: {help}"))
}
