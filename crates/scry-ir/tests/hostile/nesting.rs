//! Tests with nested brackets, operators and statements, far beyond the limits and just below them.

use crate::{compile, compile_error, kernel};

#[test]
fn many_unbalanced_brackets_are_rejected() {
    for one in ["(", "[", "{", ")", "]", "}", "<", "array<", "((]", "/*", "a(", "@a("] {
        compile_error(&one.repeat(10_000_000 / one.len()));
    }
}

#[test]
fn deep_nesting_is_rejected() {
    let n = 100_000;
    let wrap = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(n), close.repeat(n))
    };
    for body in [
        format!("x = {};", wrap("(", "x", ")")),
        format!("x = {};", wrap("sin(", "x", ")")),
        format!("x = {};", wrap("-", "x", "")),
        format!("x = {};", wrap("- ", "x", "")),
        format!("b = {};", wrap("!", "b", "")),
        format!("x = {};", wrap("&*", "x", "")),
        format!("{} = 1.0;", wrap("*&", "x", "")),
        format!("i = {};", wrap("~", "i", "")),
        format!("x = {};", wrap("x + ", "x", "")),
        format!("x = {};", wrap("", "x", " * x")),
        format!("b = {};", wrap("b && ", "b", "")),
        format!("b = {};", wrap("x < 1.0 || ", "b", "")),
        format!("x = vec4(x){}.x;", ".xyzw".repeat(n)),
        format!("x = data{}.x;", "[0]".repeat(n)),
        format!("x = {};", wrap("data[u32(", "x", ")]")),
        format!("var a: {};", wrap("array<", "f32", ", 2>")),
        format!("var a = {};", wrap("vec2<f32>(", "x", ")")),
        wrap("{", "", "}"),
        wrap("if b {", "", "}"),
        wrap("if b { x += 1.0; } else ", "{}", ""),
        wrap("if b {} else {", "", "}"),
        wrap("loop {", "", "}"),
        wrap("loop { continuing {", "", "}}"),
        wrap("for (;;) {", "", "}"),
        wrap("while b {", "", "}"),
        wrap("switch i { default {", "", "}}"),
        wrap("switch i { case 0: {", "", "}}"),
    ] {
        compile_error(&kernel(&body));
    }
}

#[test]
fn nesting_near_limits_does_not_panic() {
    for n in [20, 60, 90, 120, 125, 150, 170, 178] {
        for (open, middle, close) in [
            ("x = (", "x;", ""),
            ("{", "", "}"),
            ("if b {", "", "}"),
            ("for (;b;) {", "", "}"),
            ("switch i { default {", "", "}}"),
            ("loop { if b { break; } continuing {", "", "}}"),
        ] {
            let _ = compile(&kernel(&format!("{}{middle}{}", open.repeat(n), close.repeat(n))));
        }
        for (open, close) in [("(", ")"), ("sin(", ")"), ("-(", ")"), ("vec2(", ").x"), ("- ", "")]
        {
            let body = format!("x = {}x{};", open.repeat(n), close.repeat(n));
            let error = compile(&kernel(&body)).err();
            assert!(n > 160 || error.is_none(), "{n} × {open}: {error:?}");
        }
    }
    for body in [
        format!("x = x{};", " + x".repeat(8_000)),
        format!("x = vec4(x){}.x;", ".xyzw".repeat(8_000)),
        format!("if b {{}} {}", "else if x < 1.0 && b { x += 1.0; } ".repeat(500)),
        "for (;b;) {".repeat(120)
            + &format!("x = {}x{};", "sin(".repeat(40), ")".repeat(40))
            + &"}".repeat(120),
    ] {
        compile(&kernel(&body)).unwrap();
    }
}
