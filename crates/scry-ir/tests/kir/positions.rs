//! Tests of source positions: those of optimised kernels, in the text format, and in errors.

use scry_ir::kir::{AddressSpace, BinaryOp, Inst, Kir, Stmt, UnaryOp, for_each_stmt, verify};
use scry_ir::{Location, Program};

use crate::{lowered, sources};

/// Returns words of which a source line must contain one, if the statement was lowered from it.
/// Empty if the statement may come from any line.
fn expected_words(kir: &Kir, stmt: &Stmt) -> Vec<String> {
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
    match stmt {
        Stmt::Loop { .. } => words(&["for", "while", "loop"]),
        Stmt::Barrier(..) => words(&["Barrier"]),
        Stmt::If { .. } => words(&["if", "for", "while", "switch", "&&", "||", "break"]),
        Stmt::Store { place, .. } => match place.space {
            AddressSpace::Binding(nth) => vec![kir.buffers[nth as usize].name.clone()],
            _ => Vec::new(),
        },
        Stmt::Let(value) => match kir.inst(*value) {
            Inst::Load { place, .. } | Inst::Atomic { place, .. } => match place.space {
                AddressSpace::Binding(nth) => vec![kir.buffers[nth as usize].name.clone()],
                _ => Vec::new(),
            },
            Inst::WorkgroupUniformLoad { .. } => words(&["workgroupUniformLoad"]),
            Inst::Subgroup(_) => words(&["subgroup", "quad"]),
            Inst::Unary(UnaryOp::Sqrt, _) => words(&["sqrt", "length", "distance"]),
            Inst::Unary(UnaryOp::InverseSqrt, _) => words(&["inverseSqrt", "normalize"]),
            Inst::Unary(UnaryOp::Exp, _) => words(&["exp"]),
            Inst::Binary(BinaryOp::Shr | BinaryOp::Shl, ..) => {
                words(&["<<", ">>", "*", "/", "[", "pack"])
            }
            Inst::Fma(..) => words(&["fma", "pack"]),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whether a value may lack a position, since no expression of the source computes it.
fn may_lack_position(inst: &Inst) -> bool {
    matches!(inst, Inst::Const(_) | Inst::Builtin(_) | Inst::ArrayLength { .. })
}

#[test]
fn optimised_kernels_keep_positions() {
    let (mut positions, mut compared) = (0, 0);
    let kernels = ["saxpy", "matmul", "blur", "reduce", "histogram", "scan", "subgroups"];
    let paths = sources("corpus");
    for name in kernels {
        let path = paths.iter().find(|path| path.ends_with(format!("corpus/{name}.wgsl"))).unwrap();
        let source = std::fs::read_to_string(path).unwrap();
        let lines: Vec<_> = source.lines().collect();
        for checked in [true, false] {
            let kir = lowered(&Program::parse(&source).unwrap(), checked);
            let shown = kir.with_positions().to_string();
            for_each_stmt(&kir.body, &mut |stmt| {
                let at = kir.position(stmt);
                match stmt {
                    Stmt::Let(value) if at.is_none() => {
                        assert!(may_lack_position(kir.inst(*value)), "{name}: {value}\n{shown}");
                    }
                    Stmt::Loop { label, .. } => assert!(at.is_some(), "{name}: {label}\n{shown}"),
                    Stmt::Store { .. } | Stmt::If { .. } | Stmt::Barrier(..) => {
                        assert!(at.is_some(), "{name}: {stmt:?}\n{shown}");
                    }
                    _ => {}
                }
                let Some(Location { line, column }) = at else { return };
                let text = lines[line as usize - 1];
                assert!((column as usize) <= text.chars().count(), "{name}: {line}:{column}");
                let expected = expected_words(&kir, stmt);
                let found = expected.iter().any(|word| text.contains(word));
                assert!(found || expected.is_empty(), "{name}: {stmt:?} at `{text}`\n{shown}");
                positions += 1;
                compared += usize::from(found);
            });
        }
    }
    assert!(compared > 80 && positions > 4 * compared / 3, "{compared} of {positions}");
}

#[test]
fn inlined_code_keeps_its_positions() {
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
fn root(x: f32) -> f32 {
    return sqrt(
        x + 1.0);
}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var n = 0u; n < id.x; n++) {
        data[id.x] = /* é */ root(data[id.x]);
    }
}";
    let kir = lowered(&Program::parse(source).unwrap(), true);
    let mut found = Vec::new();
    for_each_stmt(&kir.body, &mut |stmt| {
        let at = kir.position(stmt).map(|Location { line, column }| (line, column));
        match stmt {
            Stmt::Loop { .. } => found.push(("loop", at)),
            Stmt::Store { .. } => found.push(("store", at)),
            Stmt::Let(value) => match kir.inst(*value) {
                Inst::Unary(UnaryOp::Sqrt, _) => found.push(("sqrt", at)),
                Inst::Binary(BinaryOp::Add, ..) if kir.ty(*value).is_float() => {
                    found.push(("add", at));
                }
                Inst::Load { .. } => found.push(("load", at)),
                _ => {}
            },
            _ => {}
        }
    });
    let expected = [
        ("loop", Some((7, 5))),
        ("load", Some((8, 35))),
        ("add", Some((4, 9))),
        ("sqrt", Some((3, 12))),
        ("store", Some((8, 9))),
    ];
    assert_eq!(found, expected, "{}", kir.with_positions());
}

#[test]
fn positions_parse_back() {
    for path in sources("corpus") {
        let source = std::fs::read_to_string(&path).unwrap();
        let mut kir = lowered(&Program::parse(&source).unwrap(), true);
        kir.source.name = Some("kernel.wgsl".to_owned());
        let text = kir.with_positions().to_string();
        let parsed: Kir = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(parsed.with_positions().to_string(), text);
        assert_eq!(parsed.to_string(), kir.to_string());
    }
    let huge = "kernel k [1, 1, 1]\nL4294967294: loop @1:1 {\n}";
    assert!(verify(&huge.parse().unwrap()).is_err());
    for (line, error) in [
        ("%0: u32 = 1 @x", "expected a number in range, found `x`"),
        ("break kernel @1:2", "assignments and exits have no positions"),
    ] {
        let error = format!("line 2: {error}");
        let found = format!("kernel k [1, 1, 1]\n{line}").parse::<Kir>().unwrap_err();
        assert_eq!(found.to_string(), error);
    }
}

#[test]
fn verifier_errors_name_the_position() {
    let text = "kernel k [1, 1, 1]\n%0: f32 = 1.0 @4:9\n%1: u32 = not %0 @5:13\n";
    let error = verify(&text.parse().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel k, line 5, column 13: `%1: u32 = not %0`: `Not` is not defined for (f32) -> u32"
    );
    assert_eq!(error.location, Some(Location { line: 5, column: 13 }));
    let named: Kir = text.replace("]\n", "]\nsource script.txt\n").parse().unwrap();
    let error = verify(&named).unwrap_err();
    assert!(error.to_string().starts_with("kernel k, script.txt:5:13: `%1"), "{error}");
}

#[test]
fn errors_of_built_kernels_have_positions() {
    let kernel = |position: &str| -> Kir {
        let body = "%0: u32 = local_id.x\n%1: u32 = 5\n";
        format!("kernel k [64, 1, 1]\nsource query.sql\n{body}{position}").parse().unwrap()
    };
    let rejected = |kir: &Kir| Program::from_kir(kir).err().unwrap().with_label("generated");
    let error = rejected(&kernel("%2: f32 = not %1 @3:7\n"));
    assert_eq!(error.location, Some(Location { line: 3, column: 7 }));
    let shown = error.to_string();
    assert!(shown.starts_with("generated: kernel k, query.sql:3:7: `%2: f32 = not"), "{shown}");
    let diverging = "%2: bool = lt %0, %1 @8:2\nif %2 {\nbarrier workgroup @9:4\n}\n";
    let shown = rejected(&kernel(diverging)).to_string();
    assert!(shown.contains("`barrier workgroup` (query.sql:9:4) is in control"), "{shown}");
    assert!(shown.contains("`%2: bool = lt %0, %1` (query.sql:8:2) may differ"), "{shown}");
}

/// Checks errors that only lowering finds: they have a position and show the line.
#[test]
fn lowering_errors_name_the_position() {
    let source = "enable f16; enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> m: array<f32>;
        @group(0) @binding(1) var<storage, read_write> v: array<vec4<f32>>;
        @compute @workgroup_size(64) fn main() {
            m[1] = 2.0;
            coopStore(coopLoad<coop_mat8x8<f32, C>>(&v[1]), &m[0]);
        }";
    let options = scry_ir::kir::KirOptions { checked: true };
    let error = Program::parse(source).unwrap().to_kir(&options).expect_err("it is rejected");
    assert_eq!(error.location.map(|at| at.line), Some(6), "{error}");
    let shown = error.with_label("gemm.wgsl").to_string();
    assert!(shown.contains("gemm.wgsl:6:") && shown.contains("&v[1]"), "{shown}");
}

/// Checks that each branch has the position of its `if` or `switch`, not that of the code before
/// it.
#[test]
fn branches_have_positions() {
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    if data[i] > 7u {
        data[i] = 1u;
        if data[i + 1u] > 8u { data[i] = 2u; } else { data[i] = 3u; }
    }
    switch data[i] {
        case 1u: { data[i] = 10u; }
        case 2u: { data[i + 2u] = 20u; }
        default: { data[i + 3u] = 30u; }
    }
}";
    let kir = lowered(&Program::parse(source).unwrap(), true);
    let (mut branches, mut stores) = (Vec::new(), Vec::new());
    for_each_stmt(&kir.body, &mut |stmt| {
        let at = kir.position(stmt).map(|at| (at.line, at.column));
        match stmt {
            Stmt::If { .. } => branches.push(at),
            Stmt::Store { .. } => stores.push(at),
            _ => {}
        }
    });
    let expected = [Some((3, 5)), Some((5, 9)), Some((7, 5)), Some((7, 5))];
    assert_eq!(branches, expected, "{}", kir.with_positions());
    let lines: Vec<_> = stores.iter().flatten().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5, 5, 8, 9, 10], "{}", kir.with_positions());
}
