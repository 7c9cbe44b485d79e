//! Tests with long chains of declarations, exponential growth, and large sources.

use scry_ir::ShaderErrorKind;

use crate::{KERNEL, compile, compile_error, kernel};

/// Returns `n` declarations, each of which uses the next one; the last is `first`.
fn chain(n: usize, first: &str, next: impl Fn(usize) -> String) -> String {
    let rest = (1..n).rev().map(next).collect::<Vec<_>>().join("\n");
    format!("{rest}\n{first}\n")
}

#[test]
fn long_declaration_chains_are_handled() {
    let n = 10_000;
    let call = |i: usize| format!("fn g{i}(a: f32) -> f32 {{ return g{}(a) + 1.0; }}", i - 1);
    let functions = chain(n, "fn g0(a: f32) -> f32 { return a; }", call);
    compile(&(functions + &kernel("x = g9999(x);"))).unwrap();
    let constants = chain(n, "const c0 = 1;", |i| format!("const c{i} = c{} + 1;", i - 1));
    compile(&(constants + &kernel("i = c9999;"))).unwrap();
    let overrides = chain(n, "override c0 = 1;", |i| format!("override c{i} = c{};", i - 1));
    compile(&(overrides + &kernel("i = c9999;"))).unwrap();
    for (first, next) in [
        ("alias t0 = f32;", "alias tN = array<tP, 1>;"),
        ("struct t0 { x: f32 }", "struct tN { x: tP }"),
        ("struct t0 { x: f32 }", "struct tN { x: tP, y: tP }"),
    ] {
        let next = |i: usize| next.replace('N', &i.to_string()).replace('P', &(i - 1).to_string());
        let types = chain(n, first, next);
        let source = types.clone() + &kernel("var t: t9999;");
        let _ = compile_error(&source);
        let buffer = "@group(0) @binding(1) var<storage> t: t9999;\n";
        let _ = compile_error(&(types + buffer + &kernel("_ = &t;")));
    }
    let many: String = (0..40_000).map(|i| format!("const d{i} = {i};\n")).collect();
    assert_eq!(compile_error(&(many + &kernel(""))).kind, ShaderErrorKind::TooComplex);
    let cycle: String = (0..n).map(|i| format!("fn h{i}() {{ h{}(); }}\n", (i + 1) % n)).collect();
    compile_error(&(cycle + &kernel("h0();")));
}

#[test]
fn exponential_sources_are_rejected() {
    let doubled = |i: usize| format!("const c{i} = array(c{0}, c{0});", i - 1);
    let constants = chain(40, "const c0 = array(1, 1);", doubled);
    let error = compile_error(&(constants + &kernel("let y = c39; x = f32(i);")));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex, "{error}");
    let double = |i: usize| format!("struct s{i} {{ a: s{0}, b: s{0} }}", i - 1);
    let structs = chain(25, "struct s0 { a: u32 }", double);
    let buffer = "@group(0) @binding(1) var<storage> t: s24;\n";
    let error = compile_error(&(structs + buffer + &kernel("_ = &t;")));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex, "{error}");
    let calls = |i: usize| format!("fn g{i}() {{ g{0}(); g{0}(); }}", i - 1);
    compile(&(chain(60, "fn g0() {}", calls) + &kernel("g59();"))).unwrap();
    for zeros in [
        "let z = array<u32, 268435455>(); i = i32(z[0] + z[1] + z[2]);",
        "const N = 1u << 27; i = array<i32, N>()[0];",
    ] {
        assert_eq!(compile_error(&kernel(zeros)).kind, ShaderErrorKind::TooComplex);
    }
    let table = format!("const T = array({});\n", "1.0, ".repeat(4_000));
    let error = compile_error(&(table + &kernel(&"x += T[i];".repeat(10_000))));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex, "{error}");
}

#[test]
fn large_sources_compile_up_to_limits() {
    let functions: String =
        (0..10_000).map(|i| format!("fn g{i}(a: f32) -> f32 {{ return a * {i}.0; }}\n")).collect();
    compile(&(functions.clone() + &kernel("x = g7(x);"))).unwrap();
    let comments = format!("{}\n", "// nothing but words ".repeat(50_000));
    compile(&(comments + KERNEL)).unwrap();
    let error = compile_error(&kernel(&"x = x * 1.5 + 2.0;\n".repeat(100_000)));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex, "{error}");
    compile(&kernel(&"x = x * 1.5 + 2.0;\n".repeat(10_000))).unwrap();
    let live: String = (0..4_000).map(|i| format!("let v{i} = data[{i}u + id.x];\n")).collect();
    let sum: String = (0..4_000).map(|i| format!(" + v{i}")).collect();
    compile(&kernel(&format!("{live} x = 0.0{sum};"))).unwrap();
    assert_eq!(compile_error(&" ".repeat(17 << 20)).kind, ShaderErrorKind::TooComplex);
    assert_eq!(compile_error(&";".repeat(5 << 20)).kind, ShaderErrorKind::TooComplex);
    compile_error(&"é".repeat(1 << 20));
    compile_error(&"const a;\n".repeat(20_000));
}

#[test]
fn long_tokens_are_handled_in_time() {
    let n = 4 << 20;
    for (head, row, tail) in [
        ("const a = ", "1", ";"),
        ("const a = ", "1", ".5e3f;"),
        ("const a = 0x", "f", ";"),
        ("const a = 0x1p", "9", ";"),
        ("const a = 1e", "9", ";"),
        ("const ", "a", " = b;"),
        ("const ", "é", " = b;"),
    ] {
        compile_error(&format!("{head}{}{tail}", row.repeat(n)));
    }
    for row in [
        "a<",
        "a<b;",
        "a<b,",
        "a<(",
        "/**/",
        "//\n",
        "\n",
        "\r",
        "@",
        "@a ",
        "enable a;",
        "enable ",
        "enable f16,",
        "requires b,",
        "diagnostic(off,a);",
        "const a=",
        "fn a(",
        "fn a(){}",
        "fn ",
        "struct a{",
        "struct a{b:c}",
        "struct ",
        "a:",
        "::",
        "!",
        "-",
        "a.",
        ".",
        "\"",
        "\\",
        "\0",
        "else if ",
        "case ",
        "`",
        "¤",
        ">>",
        "=",
        "a=b;",
        "alias a=",
        "const_assert a;",
        "override ",
    ] {
        for head in ["", "fn f() {", "const x = "] {
            let _ = compile(&format!("{head}{}", row.repeat(200_000 / row.len())));
        }
    }
}
