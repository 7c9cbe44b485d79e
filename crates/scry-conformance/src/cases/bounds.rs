//! Out-of-bounds indices: reads return a value of the same variable or zero, writes stay in the
//! same variable or are dropped, and nothing else changes.

use scry_gpu::{DeviceInfo, Features};

use crate::bounds_test::{PLAIN, Place};
use crate::case::Case;
use crate::check::ensure;
use crate::guarded::guarded;

pub(crate) fn fault_21_runtime_arrays_of_scalars(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(PLAIN.check(gpu));
    cases.extend(
        Place { write: "data[signed] = 0xffffu;", read: "data[signed]", ..PLAIN }.check(gpu),
    );
    cases.extend(
        Place { write: "let p = &data[index]; *p = 0xffffu;", read: "*(&data[index])", ..PLAIN }
            .check(gpu),
    );
    cases.extend(Place { write: "data[index] += 0xffffu - data[index];", ..PLAIN }.check(gpu));
    cases
}

pub(crate) fn fault_21_runtime_arrays_of_vectors(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let vectors = Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;",
        write: "data[index].z = 0xffffu;",
        read: "data[index].z",
        words: 16,
        len: 4,
        word_of: |i| 4 * i + 2,
        ..PLAIN
    };
    cases.extend(vectors.check(gpu));
    // The component, in the second and in the last vector.
    cases.extend(
        Place {
            write: "data[1][index] = 0xffffu;",
            read: "data[1][index]",
            word_of: |i| 4 + i,
            ..vectors
        }
        .check(gpu),
    );
    cases.extend(
        Place {
            write: "data[3][signed] = 0xffffu;",
            read: "data[3][signed]",
            word_of: |i| 12 + i,
            ..vectors
        }
        .check(gpu),
    );
    // Twelve of the sixteen bytes of each element are used.
    cases.extend(
        Place {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec3<u32>>;",
            write: "data[index] = select(data[index], vec3(0xffffu), vec3(false, true, false));",
            read: "data[index].y",
            word_of: |i| 4 * i + 1,
            ..vectors
        }
        .check(gpu),
    );
    cases.extend(
        Place {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec3<u32>>;",
            write: "data[3][index] = 0xffffu;",
            read: "data[3][index]",
            len: 3,
            word_of: |i| 12 + i,
            ..vectors
        }
        .check(gpu),
    );
    cases
}

pub(crate) fn fault_21_runtime_arrays_of_structures_and_arrays(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let rows = Place {
        declarations: "struct Row { head: u32, cells: array<vec2<u32>, 3> }
            @group(0) @binding(0) var<storage, read_write> data: array<Row>;",
        write: "data[index].cells[1].y = 0xffffu;",
        read: "data[index].cells[1].y",
        words: 24,
        len: 3,
        word_of: |i| 8 * i + 5,
        ..PLAIN
    };
    cases.extend(rows.check(gpu));
    cases.extend(
        Place {
            write: "data[2].cells[index].x = 0xffffu;",
            read: "data[2].cells[index].x",
            word_of: |i| 18 + 2 * i,
            ..rows
        }
        .check(gpu),
    );
    cases.extend(
        Place {
            write: "data[1].cells[2][index] = 0xffffu;",
            read: "data[1].cells[2][index]",
            len: 2,
            word_of: |i| 14 + i,
            ..rows
        }
        .check(gpu),
    );
    // Loads and stores a whole structure.
    cases.extend(
        Place {
            write: "var row = data[index]; row.head = 0xffffu; data[index] = row;",
            read: "data[index].head",
            word_of: |i| 8 * i,
            ..rows
        }
        .check_known(gpu),
    );
    cases
}

pub(crate) fn fault_22_fixed_arrays_and_vectors_in_buffers(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let fixed = Place {
        declarations:
            "struct Data { head: vec2<u32>, list: array<u32, 4>, v: vec2<u32>, w: vec4<u32> }
            @group(0) @binding(0) var<storage, read_write> data: Data;",
        write: "data.list[index] = 0xffffu;",
        read: "data.list[index]",
        words: 12,
        len: 4,
        word_of: |i| 2 + i,
        ..PLAIN
    };
    cases.extend(fixed.check(gpu));
    cases.extend(
        Place {
            write: "data.v[index] = 0xffffu;",
            read: "data.v[index]",
            len: 2,
            word_of: |i| 6 + i,
            ..fixed
        }
        .check(gpu),
    );
    cases.extend(
        Place {
            write: "let p = &data.w; (*p)[index] = 0xffffu;",
            read: "data.w[index]",
            word_of: |i| 8 + i,
            ..fixed
        }
        .check(gpu),
    );
    cases
}

pub(crate) fn fault_22_matrices_in_buffers(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    let matrix = Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: mat3x4<f32>;",
        write: "data[index][2] = bitcast<f32>(0xffffu);",
        read: "bitcast<u32>(data[index][2])",
        words: 12,
        len: 3,
        word_of: |i| 4 * i + 2,
        ..PLAIN
    };
    cases.extend(matrix.check(gpu));
    cases.extend(
        Place {
            write: "data[1][index] = bitcast<f32>(0xffffu);",
            read: "bitcast<u32>(data[1][index])",
            len: 4,
            word_of: |i| 4 + i,
            ..matrix
        }
        .check(gpu),
    );
    // The rows of a 2-row matrix in a structure, followed by another member.
    cases.extend(
        Place {
            declarations: "struct Data { a: vec2<u32>, m: mat2x2<f32>, b: vec2<u32> }
            @group(0) @binding(0) var<storage, read_write> data: Data;",
            write: "data.m[signed][1] = bitcast<f32>(0xffffu);",
            read: "bitcast<u32>(data.m[signed][1])",
            words: 8,
            len: 2,
            word_of: |i| 3 + 2 * i,
            ..matrix
        }
        .check(gpu),
    );
    cases
}

/// An element of a variable that is filled from `data` and copied back.
fn in_variable(declarations: &'static str, before: &'static str) -> Place {
    Place {
        declarations,
        before,
        write: "v[index] = 0xffffu;",
        read: "v[index]",
        after: "for (var i = 0u; i < 4u; i++) { data[i] = v[i]; }",
        words: 4,
        len: 4,
        word_of: |i| i,
    }
}

pub(crate) fn fault_22_variables_of_every_space(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    const FILL: &str = "for (var i = 0u; i < 4u; i++) { v[i] = data[i]; }";
    const LOCAL: &str = "var guard_a = 5u; var v: array<u32, 4>; var guard_b = 6u;
        for (var i = 0u; i < 4u; i++) { v[i] = data[i]; }";
    const VECTOR: &str = "var v: vec4<u32>; for (var i = 0u; i < 4u; i++) { v[i] = data[i]; }";
    let spaces = [
        (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
            var<private> before: u32; var<private> v: array<u32, 4>; var<private> behind: u32;",
            FILL,
        ),
        (
            "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
            var<workgroup> before: u32; var<workgroup> v: array<u32, 4>;
            var<workgroup> behind: u32;",
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
    for (declarations, before) in spaces {
        cases.extend(in_variable(declarations, before).check(gpu));
    }
    cases
}

/// A column of a matrix that is filled from `data` and copied back, after its declaration.
macro_rules! matrix {
    ($declaration:literal, $name:literal) => {
        Place {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
                fn f(x: u32) -> f32 { return f32(x); }
                var<private> p: mat2x2<f32>;
                var<workgroup> w: mat2x2<f32>;",
            before: concat!(
                $declaration,
                $name,
                "[0] = vec2(f(data[0]), f(data[1])); ",
                $name,
                "[1] = vec2(f(data[2]), f(data[3]));"
            ),
            write: concat!($name, "[index][1] = 65535.0;"),
            read: concat!("u32(", $name, "[index][1])"),
            after: concat!(
                "for (var i = 0u; i < 4u; i++) { data[i] = u32(",
                $name,
                "[i / 2u][i % 2u]); }"
            ),
            words: 4,
            len: 2,
            word_of: |i| 2 * i + 1,
        }
    };
}

pub(crate) fn fault_22_matrices_in_variables(gpu: &DeviceInfo) -> Vec<Case> {
    let places = [matrix!("", "p"), matrix!("", "w"), matrix!("var m: mat2x2<f32>; ", "m")];
    places.into_iter().flat_map(|place| place.check(gpu)).collect()
}

pub(crate) fn fault_22_atomics_in_structures_and_nested_arrays(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(
        Place {
            declarations: "struct Cell { id: u32, counts: array<atomic<u32>, 3> }
            @group(0) @binding(0) var<storage, read_write> data: array<Cell>;",
            write: "atomicStore(&data[1].counts[index], 0xffffu);",
            read: "atomicLoad(&data[1].counts[index])",
            words: 12,
            len: 3,
            word_of: |i| 5 + i,
            ..PLAIN
        }
        .check(gpu),
    );
    cases.extend(
        Place {
            declarations: "struct Cell { id: u32, counts: array<atomic<u32>, 3> }
            @group(0) @binding(0) var<storage, read_write> data: array<Cell>;",
            write: "atomicExchange(&data[index].counts[2], 0xffffu);",
            read: "atomicOr(&data[index].counts[2], 0u)",
            words: 12,
            len: 3,
            word_of: |i| 4 * i + 3,
            ..PLAIN
        }
        .check(gpu),
    );
    cases.extend(Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;",
        write: "let r = atomicCompareExchangeWeak(&data[index], atomicLoad(&data[index]), 0xffffu);
            if !r.exchanged { atomicMax(&data[index], 0xffffu); }",
        read: "atomicMin(&data[index], 0xffffffffu)",
        ..PLAIN
    }.check(gpu));
    cases
}

/// A compiler may fold a `let` of a literal, or treat a constant index as checked.
pub(crate) fn fault_22_constant_indices_past_a_runtime_array(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    const DATA: &str = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        const FAR = 1000u;";
    let lines = [
        ("let far = 9; data[far] = 0xffffu;", "data[9]"),
        ("data[1000] = 0xffffu;", "data[FAR]"),
        ("data[FAR] = 0xffffu;", "data[FAR * 4000000u]"),
        ("let far = FAR + 7u; let p = &data[far]; *p = 0xffffu;", "data[268435457]"),
        ("data[1073741824] = 0xffffu;", "data[2147483647]"),
    ];
    for (write, read) in lines {
        let place = Place { declarations: DATA, write, read, ..PLAIN };
        let case = place.case(gpu, 0);
        cases.push(case.expect(move |out| place.check_one(u32::MAX, &out.words(0), &out.words(2))));
    }
    cases
}

/// Elements of eight bytes, and of two, where the device supports them.
pub(crate) fn fault_21_other_widths(gpu: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(
        Place {
            declarations: "@group(0) @binding(0) var<storage, read_write> data: array<u64>;",
            write: "data[index] = (data[index] & 0xffffffff00000000lu) | 0xfffflu;",
            read: "u32(data[index] & 0xfffffffflu)",
            words: 16,
            word_of: |i| 2 * i,
            ..PLAIN
        }
        .check_where(gpu, Features::I64),
    );
    cases.extend(
        Place {
            declarations: "enable wgpu_int16;
            @group(0) @binding(0) var<storage, read_write> data: array<vec2<u16>>;",
            write: "data[index].x = u16(0xffffu);",
            read: "u32(data[index].x)",
            ..PLAIN
        }
        .check_where(gpu, Features::I16),
    );
    cases
}

/// The loop's test makes the clamps of these stores redundant only if it is evaluated in every
/// iteration: the counter is set from a copy made in an earlier iteration of another loop.
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
        let kept: Vec<u32> = (0..8).map(|i| 1000 + i).collect();
        let case = guarded(gpu, format!("`{body}`"), &source, &[&kept, &[1]]);
        cases.push(case.expect(move |out| {
            let after = out.words(0);
            let wrong = after.iter().zip(&kept).any(|(word, old)| ![*old, 0xffff].contains(word));
            ensure!(!wrong, "{after:?}");
            Ok(())
        }));
    }
    cases
}
