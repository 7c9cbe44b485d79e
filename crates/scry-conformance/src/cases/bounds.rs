//! Out-of-bounds indices: reads return a value of the same variable or zero, writes stay in the
//! same variable or are dropped, and nothing else changes.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use scry_gpu::{DeviceInfo, Features};

use crate::bounds_test::{BoundsTest, U32_ARRAY};
use crate::case::Case;
use crate::check::ensure;
use crate::guarded::guarded;

pub(crate) fn fault_21_runtime_arrays_of_scalars(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(U32_ARRAY.cases(gpu));
    cases.extend(
        BoundsTest { write: "data[signed] = 0xffffu;", read: "data[signed]", ..U32_ARRAY }
            .cases(gpu),
    );
    cases.extend(
        BoundsTest {
            write: "let p = &data[index]; *p = 0xffffu;",
            read: "*(&data[index])",
            ..U32_ARRAY
        }
        .cases(gpu),
    );
    cases.extend(
        BoundsTest { write: "data[index] += 0xffffu - data[index];", ..U32_ARRAY }.cases(gpu),
    );
    cases
}

pub(crate) fn fault_21_runtime_arrays_of_vectors(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let vectors = BoundsTest {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;",
        write: "data[index].z = 0xffffu;",
        read: "data[index].z",
        words: 16,
        len: 4,
        word_index: |i| 4 * i + 2,
        ..U32_ARRAY
    };
    cases.extend(vectors.cases(gpu));
    // The index selects a component of the second and of the last vector.
    cases.extend(
        BoundsTest {
            write: "data[1][index] = 0xffffu;",
            read: "data[1][index]",
            word_index: |i| 4 + i,
            ..vectors
        }
        .cases(gpu),
    );
    cases.extend(
        BoundsTest {
            write: "data[3][signed] = 0xffffu;",
            read: "data[3][signed]",
            word_index: |i| 12 + i,
            ..vectors
        }
        .cases(gpu),
    );
    // `vec3<u32>` has a size of 12 bytes, and the array a stride of 16.
    cases.extend(
        BoundsTest {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec3<u32>>;",
            write: "data[index] = select(data[index], vec3(0xffffu), vec3(false, true, false));",
            read: "data[index].y",
            word_index: |i| 4 * i + 1,
            ..vectors
        }
        .cases(gpu),
    );
    cases.extend(
        BoundsTest {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec3<u32>>;",
            write: "data[3][index] = 0xffffu;",
            read: "data[3][index]",
            len: 3,
            word_index: |i| 12 + i,
            ..vectors
        }
        .cases(gpu),
    );
    cases
}

pub(crate) fn fault_21_runtime_arrays_of_structures_and_arrays(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let rows = BoundsTest {
        declarations: "struct Row { head: u32, cells: array<vec2<u32>, 3> }
            @group(0) @binding(0) var<storage, read_write> data: array<Row>;",
        write: "data[index].cells[1].y = 0xffffu;",
        read: "data[index].cells[1].y",
        words: 24,
        len: 3,
        word_index: |i| 8 * i + 5,
        ..U32_ARRAY
    };
    cases.extend(rows.cases(gpu));
    cases.extend(
        BoundsTest {
            write: "data[2].cells[index].x = 0xffffu;",
            read: "data[2].cells[index].x",
            word_index: |i| 18 + 2 * i,
            ..rows
        }
        .cases(gpu),
    );
    cases.extend(
        BoundsTest {
            write: "data[1].cells[2][index] = 0xffffu;",
            read: "data[1].cells[2][index]",
            len: 2,
            word_index: |i| 14 + i,
            ..rows
        }
        .cases(gpu),
    );
    // Loads and stores a whole structure.
    cases.extend(
        BoundsTest {
            write: "var row = data[index]; row.head = 0xffffu; data[index] = row;",
            read: "data[index].head",
            word_index: |i| 8 * i,
            ..rows
        }
        .whole_element_cases(gpu),
    );
    cases
}

pub(crate) fn fault_22_fixed_arrays_and_vectors_in_buffers(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let fixed = BoundsTest {
        declarations:
            "struct Data { head: vec2<u32>, list: array<u32, 4>, v: vec2<u32>, w: vec4<u32> }
            @group(0) @binding(0) var<storage, read_write> data: Data;",
        write: "data.list[index] = 0xffffu;",
        read: "data.list[index]",
        words: 12,
        len: 4,
        word_index: |i| 2 + i,
        ..U32_ARRAY
    };
    cases.extend(fixed.cases(gpu));
    cases.extend(
        BoundsTest {
            write: "data.v[index] = 0xffffu;",
            read: "data.v[index]",
            len: 2,
            word_index: |i| 6 + i,
            ..fixed
        }
        .cases(gpu),
    );
    cases.extend(
        BoundsTest {
            write: "let p = &data.w; (*p)[index] = 0xffffu;",
            read: "data.w[index]",
            word_index: |i| 8 + i,
            ..fixed
        }
        .cases(gpu),
    );
    cases
}

pub(crate) fn fault_22_matrices_in_buffers(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let matrix = BoundsTest {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: mat3x4<f32>;",
        write: "data[index][2] = bitcast<f32>(0xffffu);",
        read: "bitcast<u32>(data[index][2])",
        words: 12,
        len: 3,
        word_index: |i| 4 * i + 2,
        ..U32_ARRAY
    };
    cases.extend(matrix.cases(gpu));
    cases.extend(
        BoundsTest {
            write: "data[1][index] = bitcast<f32>(0xffffu);",
            read: "bitcast<u32>(data[1][index])",
            len: 4,
            word_index: |i| 4 + i,
            ..matrix
        }
        .cases(gpu),
    );
    // The columns of a matrix in a structure, followed by another member.
    cases.extend(
        BoundsTest {
            declarations: "struct Data { a: vec2<u32>, m: mat2x2<f32>, b: vec2<u32> }
            @group(0) @binding(0) var<storage, read_write> data: Data;",
            write: "data.m[signed][1] = bitcast<f32>(0xffffu);",
            read: "bitcast<u32>(data.m[signed][1])",
            words: 8,
            len: 2,
            word_index: |i| 3 + 2 * i,
            ..matrix
        }
        .cases(gpu),
    );
    cases
}

/// Tests an array or vector `v` of four words, which `prologue` fills from `data`; it is copied
/// back at the end.
fn in_variable(declarations: &'static str, prologue: &'static str) -> BoundsTest {
    BoundsTest {
        declarations,
        prologue,
        write: "v[index] = 0xffffu;",
        read: "v[index]",
        epilogue: "for (var i = 0u; i < 4u; i++) { data[i] = v[i]; }",
        words: 4,
        len: 4,
        word_index: |i| i,
    }
}

pub(crate) fn fault_22_variables_of_every_address_space(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    const FILL: &str = "for (var i = 0u; i < 4u; i++) { v[i] = data[i]; }";
    const LOCAL: &str = "var guard_a = 5u; var v: array<u32, 4>; var guard_b = 6u;
        for (var i = 0u; i < 4u; i++) { v[i] = data[i]; }";
    const VECTOR: &str = "var v: vec4<u32>; for (var i = 0u; i < 4u; i++) { v[i] = data[i]; }";
    let spaces = [
        (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
            var<private> guard_a: u32; var<private> v: array<u32, 4>; var<private> guard_b: u32;",
            FILL,
        ),
        (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
            var<workgroup> guard_a: u32; var<workgroup> v: array<u32, 4>;
            var<workgroup> guard_b: u32;",
            FILL,
        ),
        (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
            var<private> v: vec4<u32>;",
            FILL,
        ),
        (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
            var<workgroup> v: vec4<u32>;",
            FILL,
        ),
        ("@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;", LOCAL),
        ("@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;", VECTOR),
    ];
    for (declarations, prologue) in spaces {
        cases.extend(in_variable(declarations, prologue).cases(gpu));
    }
    cases
}

/// Tests column indices of the matrix `$name`, which is filled from `data` and copied back.
/// `$declaration` declares it, and is empty for the module-scope variables `p` and `w`.
macro_rules! matrix {
    ($declaration:literal, $name:literal) => {
        BoundsTest {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
                fn f(x: u32) -> f32 { return f32(x); }
                var<private> p: mat2x2<f32>;
                var<workgroup> w: mat2x2<f32>;",
            prologue: concat!(
                $declaration,
                $name,
                "[0] = vec2(f(data[0]), f(data[1])); ",
                $name,
                "[1] = vec2(f(data[2]), f(data[3]));"
            ),
            write: concat!($name, "[index][1] = 65535.0;"),
            read: concat!("u32(", $name, "[index][1])"),
            epilogue: concat!(
                "for (var i = 0u; i < 4u; i++) { data[i] = u32(",
                $name,
                "[i / 2u][i % 2u]); }"
            ),
            words: 4,
            len: 2,
            word_index: |i| 2 * i + 1,
        }
    };
}

pub(crate) fn fault_22_matrices_in_variables(gpu: &DeviceInfo) -> Vec<Case> {
    let tests = [matrix!("", "p"), matrix!("", "w"), matrix!("var m: mat2x2<f32>; ", "m")];
    tests.into_iter().flat_map(|test| test.cases(gpu)).collect()
}

pub(crate) fn fault_22_atomics_in_structures_and_nested_arrays(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(
        BoundsTest {
            declarations: "struct Cell { id: u32, counts: array<atomic<u32>, 3> }
            @group(0) @binding(0) var<storage, read_write> data: array<Cell>;",
            write: "atomicStore(&data[1].counts[index], 0xffffu);",
            read: "atomicLoad(&data[1].counts[index])",
            words: 12,
            len: 3,
            word_index: |i| 5 + i,
            ..U32_ARRAY
        }
        .cases(gpu),
    );
    cases.extend(
        BoundsTest {
            declarations: "struct Cell { id: u32, counts: array<atomic<u32>, 3> }
            @group(0) @binding(0) var<storage, read_write> data: array<Cell>;",
            write: "atomicExchange(&data[index].counts[2], 0xffffu);",
            read: "atomicOr(&data[index].counts[2], 0u)",
            words: 12,
            len: 3,
            word_index: |i| 4 * i + 3,
            ..U32_ARRAY
        }
        .cases(gpu),
    );
    cases.extend(BoundsTest {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;",
        write: "let r = atomicCompareExchangeWeak(&data[index], atomicLoad(&data[index]), 0xffffu);
            if !r.exchanged { atomicMax(&data[index], 0xffffu); }",
        read: "atomicMin(&data[index], 0xffffffffu)",
        ..U32_ARRAY
    }.cases(gpu));
    cases
}

/// Constant indices, which a compiler may fold, or not check.
pub(crate) fn fault_22_constant_indices_past_a_runtime_array(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    const DATA: &str = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        const FAR = 1000u;";
    let accesses = [
        ("let far = 9; data[far] = 0xffffu;", "data[9]"),
        ("data[1000] = 0xffffu;", "data[FAR]"),
        ("data[FAR] = 0xffffu;", "data[FAR * 4000000u]"),
        ("let far = FAR + 7u; let p = &data[far]; *p = 0xffffu;", "data[268435457]"),
        ("data[1073741824] = 0xffffu;", "data[2147483647]"),
    ];
    for (write, read) in accesses {
        let test = BoundsTest { declarations: DATA, write, read, ..U32_ARRAY };
        // The index in `indices` is not used: all accesses are out of bounds.
        let case = test.case(gpu, 0);
        cases.push(
            case.expect(move |out| test.check_result(u32::MAX, &out.words(0), &out.words(2))),
        );
    }
    cases
}

/// 64-bit and 16-bit elements, where the device supports them.
pub(crate) fn fault_21_other_widths(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(
        BoundsTest {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<u64>;",
            write: "data[index] = (data[index] & 0xffffffff00000000lu) | 0xfffflu;",
            read: "u32(data[index] & 0xfffffffflu)",
            words: 16,
            word_index: |i| 2 * i,
            ..U32_ARRAY
        }
        .cases_with(gpu, Features::I64),
    );
    cases.extend(
        BoundsTest {
            declarations: "enable wgpu_int16;
            @group(0) @binding(0) var<storage, read_write> data: array<vec2<u16>>;",
            write: "data[index].x = u16(0xffffu);",
            read: "u32(data[index].x)",
            ..U32_ARRAY
        }
        .cases_with(gpu, Features::I16),
    );
    cases
}

/// A compiler may drop the bounds check of a store only if the loop condition bounds the index that
/// the store uses. `saved` is an older copy of the index: the index is set from it at the end of
/// the body, after the condition; or the condition tests `saved` instead of the index.
pub(crate) fn fault_21_counters_set_from_stale_copies(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    const LOOPS: [&str; 3] = [
        "var i = 5u;
        while i <= 7u {
            let saved = i;
            i = 0u;
            while i <= 5u { data[i] = 0xffffu; i = saved + 1u; }
            i = saved + 1u;
        }",
        "var i = 5u;
        while i != 9u {
            let saved = i;
            i = 0u;
            while i < 4u { data[i] = 0xffffu; i = saved + next; }
            i = 9u;
        }",
        "var i = 5u;
        while i != 9u {
            let saved = i;
            i = 0u;
            loop {
                if saved < 4u {} else { break; }
                data[i] = 0xffffu;
                i += next;
            }
            i = 9u;
        }",
    ];
    for body in LOOPS {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32, 8>;
            @group(0) @binding(1) var<storage, read> next_of: array<u32>;
            @compute @workgroup_size(1) fn main() {{ let next = next_of[0]; {body} }}"
        );
        let initial: Vec<u32> = (0..8).map(|i| 1000 + i).collect();
        let case = guarded(gpu, format!("`{body}`"), &source, &[&initial, &[1]]);
        cases.push(case.expect(move |out| {
            let after = out.words(0);
            let wrong =
                after.iter().zip(&initial).any(|(word, old)| ![*old, 0xffff].contains(word));
            ensure!(!wrong, "{after:?}");
            Ok(())
        }));
    }
    cases
}
