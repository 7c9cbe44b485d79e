//! Tests of the uniformity analysis: kernels that it accepts, and kernels that it rejects.

use crate::{Program, ShaderError};

const HEAD: &str = "
    enable f16; enable wgpu_cooperative_matrix;
    struct Ids { @builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u }
    struct Params { n: u32, words: array<vec4u, 4> }
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @group(0) @binding(1) var<uniform> params: Params;
    @group(0) @binding(2) var<storage, read> input: array<u32>;
    @group(0) @binding(3) var<storage, read_write> counter: atomic<u32>;
    @group(0) @binding(4) var<storage, read_write> unwritten: array<u32>;
    var<workgroup> word: u32;
    var<workgroup> words: array<u32, 64>;
    var<private> own: u32;
";

/// Compiles a kernel with these functions and this body.
fn compile(functions: &str, body: &str) -> Result<Program, ShaderError> {
    Program::parse(&format!(
        "{HEAD}{functions}
        @compute @workgroup_size(64)
        fn main(
            @builtin(local_invocation_index) i: u32,
            @builtin(global_invocation_id) id: vec3u,
            @builtin(num_workgroups) groups: vec3u,
            @builtin(subgroup_id) s: u32,
            @builtin(subgroup_size) size: u32,
            ids: Ids,
        ) {{
            let g = ids.group;
            atomicStore(&counter, 3u);
            data[i] = word + words[i] + own + size + s + groups.x;
            {body}
        }}"
    ))
}

#[track_caller]
fn assert_accepted_with(functions: &str, body: &str) {
    if let Err(error) = compile(functions, body) {
        panic!("{functions:.400} {body:.400}\n{error}");
    }
}

#[track_caller]
fn assert_rejected_with(functions: &str, body: &str) -> ShaderError {
    let error = compile(functions, body).err();
    let error = error.unwrap_or_else(|| panic!("accepted: {functions:.400} {body:.400}"));
    let messages = [
        "is not in uniform control flow",
        "may differ between the invocations",
        "two pointers to one variable",
    ];
    assert!(messages.iter().any(|text| error.message.contains(text)), "{error}");
    error
}

#[track_caller]
fn assert_accepted(body: &str) {
    assert_accepted_with("", body);
}

#[track_caller]
fn assert_rejected(body: &str) -> ShaderError {
    assert_rejected_with("", body)
}

const BARRIER: &str = "workgroupBarrier();";

#[test]
fn every_barrier_needs_uniform_control_flow() {
    for barrier in [
        "workgroupBarrier();",
        "storageBarrier();",
        "textureBarrier();",
        "data[0] = workgroupUniformLoad(&word);",
    ] {
        let error = assert_rejected(&format!("if i < 10u {{ {barrier} }}"));
        let name = barrier.split('(').next().unwrap().trim_start_matches("data[0] = ");
        assert!(error.message.contains(&format!("`{name}`")), "{error}");
        assert_accepted(&format!("{barrier} if i < 10u {{ data[i] = 1u; }} {barrier}"));
        assert_accepted(&format!("if g.x < 10u {{ {barrier} }}"));
    }
}

#[test]
fn uniform_conditions_are_accepted() {
    for condition in [
        "g.x == 1u",
        "groups.y > 2u",
        "ids.group.x == 3u",
        "size == 32u",
        "params.n > 1u",
        "params.words[g.x % 4u].y > 1u",
        "input[g.x] == 2u",
        "input[0] == 2u && g.y == 1u || params.n == 1u",
        "arrayLength(&data) > 5u",
        "unwritten[3] > 1u",
        "workgroupUniformLoad(&word) == 1u",
        "workgroupUniformLoad(&words[g.x]) == 1u",
        "all(vec2(g.xy) == vec2(0u))",
        "select(g.x, 7u, params.n == 2u) == min(groups.x, 3u)",
        "true",
    ] {
        assert_accepted(&format!("if {condition} {{ {BARRIER} }}"));
    }
}

#[test]
fn non_uniform_conditions_are_rejected() {
    for condition in [
        "i == 0u",
        "id.x < params.n",
        "ids.local.x == 3u",
        "s == 1u",
        "input[i] == 2u",
        "params.words[i % 4u].y > 1u",
        "data[0] == 2u",
        "word == 2u",
        "words[g.x] == 2u",
        "own == 2u",
        "atomicLoad(&counter) == 1u",
        "atomicAdd(&counter, 1u) == 1u",
        "g.x == 0u && i == 1u",
        "i == 0u || g.x == 1u",
        "subgroupAdd(i) == 1u",
        "subgroupShuffle(g.x, 1u) == 1u",
        "select(g.x, 7u, i == 2u) == 3u",
    ] {
        assert_rejected(&format!("if {condition} {{ {BARRIER} }}"));
        assert_rejected(&format!(
            "if g.x == 1u {{}} else if {condition} {{}} else {{ {BARRIER} }}"
        ));
        assert_rejected(&format!("while {condition} {{ {BARRIER} }}"));
        assert_rejected(&format!("if {condition} {{ return; }} {BARRIER}"));
        assert_accepted(&format!(
            "if {condition} {{ data[i] = 1u; }} else {{ data[i] = 2u; }} {BARRIER}"
        ));
    }
}

#[test]
fn last_assignment_decides_uniformity() {
    assert_accepted(&format!("var x = i; x = g.x; if x == 1u {{ {BARRIER} }}"));
    assert_rejected(&format!("var x = g.x; x = i; if x == 1u {{ {BARRIER} }}"));
    assert_rejected(&format!("var x = 0u; if i == 1u {{ x = 1u; }} if x == 1u {{ {BARRIER} }}"));
    assert_accepted(&format!("var x = 0u; if g.x == 1u {{ x = 1u; }} if x == 1u {{ {BARRIER} }}"));
    assert_accepted(&format!(
        "var x = i; if g.x == 1u {{ x = 1u; }} else {{ x = 2u; }} if x == 1u {{ {BARRIER} }}"
    ));
    assert_rejected(&format!("var x = i; if g.x == 1u {{ x = 1u; }} if x == 1u {{ {BARRIER} }}"));
    assert_rejected(&format!("var x = vec2u(); x.y = i; if x.x == 1u {{ {BARRIER} }}"));
    assert_rejected(&format!(
        "var x = array<u32, 4>(); x[i % 4u] = 1u; if x[0] == 1u {{ {BARRIER} }}"
    ));
    assert_rejected(&format!("var x = array<u32, 4>(); if x[i % 4u] == 1u {{ {BARRIER} }}"));
    assert_accepted(&format!(
        "var x = array<u32, 4>(); x[g.x % 4u] = 1u; if x[0] == 1u {{ {BARRIER} }}"
    ));
    assert_rejected(&format!("var x = g.x; let p = &x; *p = i; if x == 1u {{ {BARRIER} }}"));
    assert_accepted(&format!("var x = i; let p = &x; *p = g.x; if *p == 1u {{ {BARRIER} }}"));
}

#[test]
fn early_loop_exits_diverge_inside_loop() {
    assert_accepted(&format!(
        "for (var k = 0u; k < params.n; k++) {{ {BARRIER} data[i] = k; {BARRIER} }}"
    ));
    assert_accepted(&format!(
        "for (var k = 0u; k < 9u; k++) {{ if k == g.x {{ break; }} {BARRIER} }}"
    ));
    assert_accepted(&format!("for (var k = i; k < 900u; k += 64u) {{ data[k] = k; }} {BARRIER}"));
    assert_accepted(&format!("loop {{ if data[i] == 1u {{ break; }} }} {BARRIER}"));
    assert_rejected(&format!("for (var k = i; k < 900u; k += 64u) {{ {BARRIER} }}"));
    assert_rejected(&format!("for (var k = 0u; k < i; k++) {{ {BARRIER} }}"));
    assert_rejected(&format!(
        "for (var k = 0u; k < 9u; k++) {{ {BARRIER} if k == i {{ break; }} }}"
    ));
    assert_rejected(&format!("loop {{ if data[i] == 1u {{ break; }} {BARRIER} }}"));
    assert_rejected(&format!("loop {{ {BARRIER} continuing {{ break if i > 3u; }} }}"));
    assert_accepted(&format!(
        "var k = 0u; loop {{ {BARRIER} k++; continuing {{ break if k > 3u; }} }}"
    ));
    assert_rejected(&format!(
        "for (var k = 0u; k < 9u; k++) {{ if k == i {{ return; }} }} {BARRIER}"
    ));
    assert_rejected(&format!(
        "for (var k = 0u; k < 9u; k++) {{
            for (var l = 0u; l < 9u; l++) {{ if k == i {{ return; }} }}
            {BARRIER}
        }}"
    ));
    // The counter is non-uniform after such a loop.
    assert_rejected(&format!("var k = 0u; while k < i {{ k++; }} if k == 3u {{ {BARRIER} }}"));
    assert_accepted(&format!("var k = 0u; while k < g.x {{ k++; }} if k == 3u {{ {BARRIER} }}"));
    assert_rejected(&format!(
        "var k = 0u; loop {{ k++; if k > i {{ break; }} }} if k == 3u {{ {BARRIER} }}"
    ));
    // An assignment at the end of an iteration is visible in the next one.
    assert_rejected(&format!(
        "var x = 0u; for (var k = 0u; k < 9u; k++) {{ if x == 1u {{ {BARRIER} }} x = i; }}"
    ));
    assert_accepted(&format!(
        "var x = i; for (var k = 0u; k < 9u; k++) {{ x = k; if x == 1u {{ {BARRIER} }} x = i; }}"
    ));
    assert_accepted(&format!(
        "var x = i; loop {{ x = i; x = g.x; if params.n == 1u {{ break; }} }}
        if x == 1u {{ {BARRIER} }}"
    ));
}

#[test]
fn continue_diverges_until_loop_end() {
    assert_rejected(&format!(
        "for (var k = 0u; k < 9u; k++) {{ {BARRIER} if k == i {{ continue; }} data[i] = k; }}"
    ));
    assert_accepted(&format!(
        "for (var k = 0u; k < 9u; k++) {{ {BARRIER} if k == g.x {{ continue; }} data[i] = k; }}"
    ));
    assert_accepted(&format!(
        "for (var k = 0u; k < 9u; k++) {{ if k == i {{ continue; }} data[i] = k; }} {BARRIER}"
    ));
    assert_rejected(&format!(
        "for (var k = 0u; k < 9u; k++) {{ if k == i {{ continue; }} {BARRIER} }}"
    ));
    assert_rejected(&format!(
        "var k = 0u; loop {{
            if k == i {{ continue; }}
            data[i] = k;
            continuing {{ k++; {BARRIER} break if k > 4u; }}
        }}"
    ));
    assert_rejected(&format!(
        "var k = 0u; loop {{
            if k == i {{ continue; }}
            if k == i + 1u {{ break; }}
            continuing {{ k++; {BARRIER} break if k > 4u; }}
        }}"
    ));
    assert_rejected(&format!(
        "var x = 0u;
        for (var k = 0u; k < 9u; k++) {{
            if x == 2u {{ {BARRIER} }}
            x = 1u;
            if k == i {{ continue; }}
            x = 2u;
        }}"
    ));
}

#[test]
fn switches_diverge_inside_cases() {
    assert_accepted(&format!(
        "switch g.x {{ case 1u, 2u: {{ {BARRIER} }} default: {{ {BARRIER} }} }}"
    ));
    assert_rejected(&format!("switch i {{ case 1u, 2u: {{ {BARRIER} }} default: {{}} }}"));
    assert_accepted(&format!(
        "switch i {{ case 1u: {{ break; }} default: {{ data[i] = 1u; }} }} {BARRIER}"
    ));
    assert_rejected(&format!(
        "switch g.x {{ case 1u: {{ if i == 1u {{ break; }} {BARRIER} }} default: {{}} }}"
    ));
    assert_rejected(&format!("switch i {{ case 1u: {{ return; }} default: {{}} }} {BARRIER}"));
    assert_rejected(&format!(
        "for (var k = 0u; k < 9u; k++) {{
            switch i {{ case 1u: {{ continue; }} default: {{}} }}
            {BARRIER}
        }}"
    ));
    assert_rejected(&format!(
        "var x = 0u; switch i {{ case 1u: {{ x = 1u; }} default: {{}} }} if x == 1u {{ {BARRIER} }}"
    ));
    assert_accepted(&format!(
        "var x = i; switch g.x {{ case 1u: {{ x = 1u; break; }} default: {{ x = 2u; }} }}
        if x == 1u {{ {BARRIER} }}"
    ));
}

#[test]
fn barriers_in_callees_constrain_calls() {
    let sync = "fn sync() { workgroupBarrier(); } fn both() { sync(); storageBarrier(); }";
    assert_accepted_with(sync, "both(); if g.x == 1u { both(); } sync();");
    let error = assert_rejected_with(sync, "both();\nif i == 1u {\nboth();\n}");
    assert!(error.rendered.contains("called here"), "{error}");
    assert_rejected_with(sync, "if i == 1u { return; } both();");
    let some = "fn some(n: u32) { if n > 2u { workgroupBarrier(); } }
        fn more(m: u32, n: u32) { data[m] = 1u; some(n + 1u); }";
    assert_accepted_with(some, "some(g.x); more(i, params.n);");
    assert_rejected_with(some, "some(i);");
    assert_rejected_with(some, "more(g.x, i);");
    assert_rejected_with(
        "fn some(n: u32) { if data[n] > 2u { workgroupBarrier(); } }",
        "some(g.x);",
    );
}

#[test]
fn early_returns_reconverge_after_call() {
    let early = "fn early(n: u32) { if n == 1u { return; } data[n] = 1u; }";
    assert_accepted_with(early, &format!("early(i); {BARRIER}"));
    assert_rejected_with(
        "fn early(n: u32) { if n == 1u { return; } workgroupBarrier(); }",
        "early(i);",
    );
    assert_accepted_with(
        "fn early(n: u32) { if n == 1u { return; } workgroupBarrier(); }",
        "early(g.x);",
    );
    let one_of = "fn one_of(n: u32) -> u32 { if n == 1u { return 5u; } return 6u; }
        fn second(m: u32, n: u32) -> u32 { data[m] = 1u; return n + 1u; }
        fn read_data() -> u32 { return data[0]; }";
    assert_rejected_with(one_of, &format!("if one_of(i) == 5u {{ {BARRIER} }}"));
    assert_accepted_with(one_of, &format!("if one_of(g.x) == 5u {{ {BARRIER} }}"));
    assert_accepted_with(one_of, &format!("if second(i, g.x) == 5u {{ {BARRIER} }}"));
    assert_rejected_with(one_of, &format!("if second(g.x, i) == 5u {{ {BARRIER} }}"));
    assert_rejected_with(one_of, &format!("if read_data() == 5u {{ {BARRIER} }}"));
    // A call by some invocations returns a value to some only.
    assert_rejected_with(
        one_of,
        &format!("var x = 0u; if i == 1u {{ x = one_of(1u); }} if x == 5u {{ {BARRIER} }}"),
    );
}

#[test]
fn callees_assign_through_pointers() {
    let put = "fn put(p: ptr<function, u32>, v: u32) { *p = v; }
        fn put_if(p: ptr<function, u32>, v: u32) { if v == 1u { *p = 7u; } }
        fn through(p: ptr<function, u32>, v: u32) { put(p, v); }
        fn test(p: ptr<function, u32>) { if *p == 1u { workgroupBarrier(); } }
        fn mixed(p: ptr<function, u32>, q: ptr<function, u32>, v: u32) {
            *p = v;
            if *q == 1u { workgroupBarrier(); }
        }
        fn own_pointer(p: ptr<private, u32>) { if *p == 1u { workgroupBarrier(); } }";
    assert_accepted_with(put, &format!("var x = i; put(&x, g.x); if x == 1u {{ {BARRIER} }}"));
    assert_rejected_with(put, &format!("var x = g.x; put(&x, i); if x == 1u {{ {BARRIER} }}"));
    assert_rejected_with(put, &format!("var x = g.x; through(&x, i); if x == 1u {{ {BARRIER} }}"));
    assert_rejected_with(put, &format!("var x = g.x; put_if(&x, i); if x == 1u {{ {BARRIER} }}"));
    assert_rejected_with(put, &format!("var x = i; put_if(&x, g.x); if x == 1u {{ {BARRIER} }}"));
    assert_accepted_with(put, &format!("var x = g.y; put_if(&x, g.x); if x == 1u {{ {BARRIER} }}"));
    assert_rejected_with(
        put,
        &format!("var x = g.x; if i == 1u {{ put(&x, 2u); }} if x == 1u {{ {BARRIER} }}"),
    );
    assert_accepted_with(put, "var x = g.x; test(&x);");
    assert_rejected_with(put, "var x = i; test(&x);");
    assert_rejected_with(put, "own_pointer(&own);");
    assert_accepted_with(put, "var x = i; var y = g.x; mixed(&x, &y, i);");
    assert_rejected_with(put, "var x = g.x; mixed(&x, &x, i);");
    assert_rejected_with(
        put,
        "var x = g.x; for (var k = 0u; k < 3u; k++) { test(&x); put(&x, i); }",
    );
}

#[test]
fn uniform_load_needs_uniform_pointer() {
    let error = assert_rejected("data[0] = workgroupUniformLoad(&words[i]);");
    assert!(error.message.contains("the pointer of `workgroupUniformLoad`"), "{error}");
    assert_accepted("data[0] = workgroupUniformLoad(&words[g.x % 64u]);");
    assert_rejected_with(
        "fn at(n: u32) -> u32 { return workgroupUniformLoad(&words[n]); }",
        "data[0] = at(i);",
    );
    assert_accepted_with(
        "fn at(n: u32) -> u32 { return workgroupUniformLoad(&words[n]); }",
        "data[0] = at(g.x);",
    );
}

#[test]
fn subgroup_operations_allow_divergence() {
    for operation in
        ["subgroupAdd(i)", "subgroupBallot(i > 2u).x", "subgroupShuffle(i, 1u)", "quadSwapX(i)"]
    {
        let body = format!("if i < 10u {{ data[i] = {operation}; subgroupBarrier(); }}");
        assert_accepted(&body);
        let asked = "diagnostic(error, subgroup_uniformity);
            @group(0) @binding(0) var<storage, read_write> data: array<u32>;
            @compute @workgroup_size(64)
            fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_id) s: u32) {";
        let error =
            Program::parse(&format!("{asked} {body} }}")).err().expect("uniformity is required");
        assert!(error.message.contains("subgroup operation"), "{error}");
        let error =
            Program::parse(&format!("{asked} if i == 1u {{ subgroupBarrier(); }} }}")).err();
        assert!(error.expect("uniformity is required").message.contains("`subgroupBarrier`"));
        let one = asked
            .replace("diagnostic(error, subgroup_uniformity);", "")
            .replace("@compute", "@diagnostic(error, subgroup_uniformity) @compute");
        assert!(Program::parse(&format!("{one} {body} }}")).is_err());
        for condition in ["s == 1u", "subgroupAny(i == 7u)", "subgroupBroadcastFirst(i) == 1u"] {
            let body = format!("if {condition} {{ data[i] = {operation}; }} }}");
            Program::parse(&format!("{asked} {body}")).unwrap();
            Program::parse(&format!("{asked} {body}").replace("error", "off")).unwrap();
        }
    }
}

#[test]
fn cooperative_matrices_need_a_whole_subgroup() {
    let matrices = "
        alias Tile = coop_mat8x8<f32, C>;
        @group(0) @binding(5) var<storage, read_write> sums: array<f32>;
        fn fetch() -> Tile { return coopLoad<coop_mat8x8<f32, C>>(&sums[0], 8u); }";
    let step = "coopStore(fetch(), &sums[64], 8u);";
    assert_accepted_with(matrices, step);
    assert_accepted_with(matrices, &format!("if s == 1u {{ {step} }}"));
    assert_accepted_with(matrices, &format!("if subgroupAny(i == 7u) {{ {step} }}"));
    assert_accepted_with(matrices, &format!("for (var k = s; k < params.n; k += 2u) {{ {step} }}"));
    assert_rejected_with(matrices, &format!("if s == 1u {{ {step} {BARRIER} }}"));
    let error = assert_rejected_with(matrices, &format!("if i == 1u {{ {step} }}"));
    assert!(error.message.contains("some invocations of a subgroup"), "{error}");
    let error = assert_rejected_with(
        matrices,
        "let c = fetch(); if i == 1u { coopStore(c, &sums[0], 8u); }",
    );
    assert!(error.message.contains("`coopStore`"), "{error}");
    assert_rejected_with(matrices, &format!("if i == 1u {{ return; }} {step}"));
}

#[test]
fn report_locates_barrier_and_condition() {
    let source = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    var limit = 1u;
    if data[0] == 1u { limit = 2u; }
    if limit < 2u {
        return;
    }
    workgroupBarrier();
    data[i] = limit;
}";
    let error = Program::parse(source).err().unwrap();
    assert_eq!(error.location.unwrap().line, 10);
    for line in ["if limit < 2u {", "workgroupBarrier();", "may differ between the invocations"] {
        assert!(error.rendered.contains(line), "{error}");
    }
    assert!(error.rendered.contains("`data` can be written"), "{error}");
}

#[test]
fn work_is_bounded() {
    let many = |count: usize, text: &str| {
        (0..count).map(|at| text.replace('#', &at.to_string())).collect::<String>()
    };
    // Straight-line code is cheap.
    let variables = many(3000, "var v# = g.x + #u; ");
    let tests = many(3000, "if v# == 1u { workgroupBarrier(); v# = g.y; } ");
    assert_accepted(&format!("{variables}{tests}"));
    // Many exits from a loop, each with many changed variables.
    let changes = many(5000, "v# = g.x; if g.y == #u { break; } ");
    let variables = many(5000, "var v# = 0u; ");
    let body = format!("{variables} loop {{ {changes} }} {BARRIER}");
    let start = std::time::Instant::now();
    match compile("", &body) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind, crate::ShaderErrorKind::TooComplex, "{error}"),
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    // Each function calls the one before twice: 2^14 calls of the first if each were analysed.
    let first = "fn f0(x: u32) { if x == 1u { workgroupBarrier(); } } ";
    let chain = (1..14).map(|n| format!("fn f{n}(x: u32) {{ f{0}(x); f{0}(x); }} ", n - 1));
    let chain = format!("{first}{}", chain.collect::<String>());
    let start = std::time::Instant::now();
    match compile(&chain, "f13(g.x);") {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind, crate::ShaderErrorKind::TooComplex, "{error}"),
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    // Two calls use the same summary.
    let calls = many(10, "fn f#(x: u32) { if x == 1u { workgroupBarrier(); } }");
    assert_accepted_with(&calls, "f9(g.x); f9(g.y);");
}

/// Only the entry point has builtin arguments.
#[test]
fn builtin_structures_as_arguments() {
    let function_with =
        |member| format!("fn f(x: Ids) {{ if x.{member}.x == 1u {{ {BARRIER} }} }}");
    assert_rejected_with(&function_with("group"), "f(Ids(vec3u(i), vec3u(0u)));");
    assert_accepted_with(&function_with("local"), "f(Ids(vec3u(0u), vec3u(params.n)));");
    let result = "fn f(x: Ids) -> u32 { return x.group.x; }";
    let body = format!("if f(Ids(vec3u(i), vec3u(0u))) == 1u {{ {BARRIER} }}");
    assert_rejected_with(result, &body);
}

/// The analysis does not see a write through an alias.
#[test]
fn aliased_pointers_to_written_variable() {
    let last = "fn f(p: ptr<function, u32>, q: ptr<function, u32>, v: u32) { *q = 1u; *p = v; }";
    assert_rejected_with(last, &format!("var x = 0u; f(&x, &x, i); if x == 1u {{ {BARRIER} }}"));
    let inside = format!(
        "fn f(p: ptr<function, u32>, q: ptr<function, u32>, v: u32) {{
            *p = 1u; *q = v; if *p == 1u {{ {BARRIER} }}
        }}"
    );
    assert_rejected_with(&inside, "var x = 0u; f(&x, &x, i);");
    let reads = "fn f(p: ptr<function, u32>, q: ptr<function, u32>) -> u32 { return *p + *q; }";
    assert_accepted_with(reads, &format!("var x = 0u; if f(&x, &x) == 0u {{ {BARRIER} }}"));
}

#[test]
fn endless_loops_diverge() {
    assert_rejected(&format!("if i == 0u {{ loop {{ data[0] = 1u; }} }} {BARRIER}"));
    assert_accepted(&format!(
        "if i == 0u {{ loop {{ data[0] += 1u; if data[0] > 9u {{ break; }} }} }} {BARRIER}"
    ));
}
