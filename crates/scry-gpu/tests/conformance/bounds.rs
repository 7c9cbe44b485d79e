//! Indices out of bounds: what is read is a value of the same variable or zero, what is written
//! stays in the same variable or is dropped, and nothing else changes.

use crate::guarded::{all_indices, run_guarded, wrong_indices};
use crate::harness::{assert_says, on_each_device, refused, succeed};

/// One place that an index selects: in a fresh kernel with `index`, a statement that writes
/// 0xffff there, and an expression that reads it.
struct Place {
    /// Declarations; storage at group 0, binding 0 is `data`.
    declarations: &'static str,
    /// Statements before, such as those that fill a variable with the words of `data`.
    before: &'static str,
    write: &'static str,
    read: &'static str,
    /// Statements that copy a variable back to `data`.
    after: &'static str,
    /// Words of `data`.
    words: u32,
    /// Number of elements that the index selects from.
    len: u32,
    /// The word of `data` that holds element `i`.
    word_of: fn(u32) -> u32,
}

impl Place {
    fn kernel(&self) -> String {
        let Self { declarations, before, write, read, after, .. } = self;
        format!(
            "{declarations}
            @group(0) @binding(1) var<storage, read> indices: array<u32>;
            @group(0) @binding(2) var<storage, read_write> out: array<u32>;

            @compute @workgroup_size(1)
            fn main() {{
                var index = indices[0];
                var signed = bitcast<i32>(index);
                {before}
                out[0] = {read};
                {write}
                out[1] = {read};
                {after}
            }}"
        )
    }

    /// Word `i` of `data` is `1000 + i` before.
    fn check(&self) {
        let source = self.kernel();
        let data: Vec<u32> = (0..self.words).map(|i| 1000 + i).collect();
        on_each_device(|gpu| {
            for index in all_indices(self.len) {
                let after = run_guarded(gpu, &source, &[&data, &[index], &[7, 7]]);
                let what = format!("`{}` with index {index:#x}: {after:?}", self.write);
                self.check_one(index, &data, &after[0], &after[2], &what);
            }
        });
    }

    fn check_one(&self, index: u32, before: &[u32], after: &[u32], out: &[u32], what: &str) {
        let differ = |i: &usize| before[*i] != after[*i];
        let changed: Vec<usize> = (0..before.len()).filter(differ).collect();
        assert!(changed.iter().all(|place| after[*place] == 0xffff), "{what}");
        if index < self.len {
            let place = (self.word_of)(index);
            assert_eq!(changed, [place as usize], "{what}");
            assert_eq!(out, [1000 + place, 0xffff], "{what}");
        } else {
            assert!(changed.len() <= 1, "{what}");
            let mut known: Vec<u32> = (0..self.len).map(|i| 1000 + (self.word_of)(i)).collect();
            known.push(0);
            assert!(known.contains(&out[0]), "{what}");
            known.push(0xffff);
            assert!(known.contains(&out[1]), "{what}");
            let elements: Vec<usize> = (0..self.len).map(|i| (self.word_of)(i) as usize).collect();
            assert!(changed.iter().all(|place| elements.contains(place)), "{what}");
        }
    }
}

const PLAIN: Place = Place {
    declarations: "@group(0) @binding(0) var<storage, read_write> data: array<u32>;",
    before: "",
    write: "data[index] = 0xffffu;",
    read: "data[index]",
    after: "",
    words: 8,
    len: 8,
    word_of: |i| i,
};

#[test]
fn fault_21_runtime_arrays_of_scalars() {
    PLAIN.check();
    Place { write: "data[signed] = 0xffffu;", read: "data[signed]", ..PLAIN }.check();
    Place { write: "let p = &data[index]; *p = 0xffffu;", read: "*(&data[index])", ..PLAIN }
        .check();
    Place { write: "data[index] += 0xffffu - data[index];", ..PLAIN }.check();
}

#[test]
fn fault_21_runtime_arrays_of_vectors() {
    let vectors = Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;",
        write: "data[index].z = 0xffffu;",
        read: "data[index].z",
        words: 16,
        len: 4,
        word_of: |i| 4 * i + 2,
        ..PLAIN
    };
    vectors.check();
    // The component, in the second and in the last vector.
    Place {
        write: "data[1][index] = 0xffffu;",
        read: "data[1][index]",
        word_of: |i| 4 + i,
        ..vectors
    }
    .check();
    Place {
        write: "data[3][signed] = 0xffffu;",
        read: "data[3][signed]",
        word_of: |i| 12 + i,
        ..vectors
    }
    .check();
    // Twelve of the sixteen bytes of each element belong to it.
    Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec3<u32>>;",
        write: "data[index] = select(data[index], vec3(0xffffu), vec3(false, true, false));",
        read: "data[index].y",
        word_of: |i| 4 * i + 1,
        ..vectors
    }
    .check();
    Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<vec3<u32>>;",
        write: "data[3][index] = 0xffffu;",
        read: "data[3][index]",
        len: 3,
        word_of: |i| 12 + i,
        ..vectors
    }
    .check();
}

#[test]
fn fault_21_runtime_arrays_of_structures_and_arrays() {
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
    rows.check();
    Place {
        write: "data[2].cells[index].x = 0xffffu;",
        read: "data[2].cells[index].x",
        word_of: |i| 18 + 2 * i,
        ..rows
    }
    .check();
    Place {
        write: "data[1].cells[2][index] = 0xffffu;",
        read: "data[1].cells[2][index]",
        len: 2,
        word_of: |i| 14 + i,
        ..rows
    }
    .check();
    // A whole structure out and in again.
    Place {
        write: "var row = data[index]; row.head = 0xffffu; data[index] = row;",
        read: "data[index].head",
        word_of: |i| 8 * i,
        ..rows
    }
    .check_reads_only();
}

impl Place {
    /// Where the write copies more than one word, from perhaps another element.
    fn check_reads_only(&self) {
        let source = self.kernel();
        let data: Vec<u32> = (0..self.words).map(|i| 1000 + i).collect();
        on_each_device(|gpu| {
            for index in all_indices(self.len) {
                let after = run_guarded(gpu, &source, &[&data, &[index], &[7, 7]]);
                let is_known = |word: &u32| data.contains(word) || [0, 0xffff].contains(word);
                assert!(after[0].iter().all(is_known), "index {index}: {after:?}");
                assert!(is_known(&after[2][0]) && is_known(&after[2][1]), "index {index}");
            }
        });
    }
}

#[test]
fn fault_22_fixed_arrays_and_vectors_in_buffers() {
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
    fixed.check();
    Place {
        write: "data.v[index] = 0xffffu;",
        read: "data.v[index]",
        len: 2,
        word_of: |i| 6 + i,
        ..fixed
    }
    .check();
    Place {
        write: "let p = &data.w; (*p)[index] = 0xffffu;",
        read: "data.w[index]",
        word_of: |i| 8 + i,
        ..fixed
    }
    .check();
}

#[test]
fn fault_22_matrices_in_buffers() {
    let matrix = Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: mat3x4<f32>;",
        write: "data[index][2] = bitcast<f32>(0xffffu);",
        read: "bitcast<u32>(data[index][2])",
        words: 12,
        len: 3,
        word_of: |i| 4 * i + 2,
        ..PLAIN
    };
    matrix.check();
    Place {
        write: "data[1][index] = bitcast<f32>(0xffffu);",
        read: "bitcast<u32>(data[1][index])",
        len: 4,
        word_of: |i| 4 + i,
        ..matrix
    }
    .check();
    // The rows of a 2-row matrix in a structure, with something behind it.
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
    .check();
}

/// A place in a variable that is filled from `data` and copied back.
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

#[test]
fn fault_22_variables_of_every_space() {
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
        in_variable(declarations, before).check();
    }
}

#[test]
fn fault_22_matrices_in_variables() {
    const DATA: &str = "@group(0) @binding(0) var<storage, read_write> data: array<u32, 4>;
        fn f(x: u32) -> f32 { return f32(x); }
        var<private> p: mat2x2<f32>;
        var<workgroup> w: mat2x2<f32>;";
    let copy = |name: &str| {
        let after =
            format!("for (var i = 0u; i < 4u; i++) {{ data[i] = u32({name}[i / 2u][i % 2u]); }}");
        let before = format!(
            "{name}[0] = vec2(f(data[0]), f(data[1])); {name}[1] = vec2(f(data[2]), f(data[3]));"
        );
        let write = format!("{name}[index][1] = 65535.0;");
        let read = format!("u32({name}[index][1])");
        [before, write, read, after].map(|text| &*text.leak())
    };
    for name in ["p", "w", "m"] {
        let [before, write, read, after] = copy(name);
        let local = format!("var m: mat2x2<f32>; {before}").leak();
        Place {
            declarations: DATA,
            before: if name == "m" { local } else { before },
            write,
            read,
            after,
            words: 4,
            len: 2,
            word_of: |i| 2 * i + 1,
        }
        .check();
    }
}

#[test]
fn fault_22_atomics_in_structures_and_nested_arrays() {
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
    .check();
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
    .check();
    Place {
        declarations: "@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;",
        write: "let r = atomicCompareExchangeWeak(&data[index], atomicLoad(&data[index]), 0xffffu);
            if !r.exchanged { atomicMax(&data[index], 0xffffu); }",
        read: "atomicMin(&data[index], 0xffffffffu)",
        ..PLAIN
    }
    .check();
}

/// A compiler may take a `let` of a literal for a constant, or an index that it knows for checked.
#[test]
fn fault_22_constant_indices_past_a_runtime_array() {
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
        let source = place.kernel();
        let data: Vec<u32> = (0..8).map(|i| 1000 + i).collect();
        on_each_device(|gpu| {
            let after = run_guarded(gpu, &source, &[&data, &[0], &[7, 7]]);
            let what = format!("`{write}`: {after:?}");
            place.check_one(u32::MAX, &data, &after[0], &after[2], &what);
        });
    }
}

#[test]
fn fault_21_uniform_arrays_and_immediates_of_words() {
    let source = "
        struct Table { rows: array<vec4<u32>, 3>, m: mat2x4<f32> }
        @group(0) @binding(0) var<uniform> table: Table;
        @group(0) @binding(1) var<storage, read> indices: array<u32>;
        @group(0) @binding(2) var<storage, read_write> out: array<u32>;

        @compute @workgroup_size(1)
        fn main() {
            let i = indices[0];
            out[0] = table.rows[i].y;
            out[1] = table.rows[2][i];
            out[2] = u32(table.m[i].z);
            out[3] = u32(table.m[1][i]);
            out[4] = table.rows[i][i];
        }";
    let mut table: Vec<u32> = (100..112).collect();
    table.extend((0..8u8).map(|i| f32::from(200 + i).to_bits()));
    on_each_device(|gpu| {
        for index in all_indices(2) {
            let after = run_guarded(gpu, source, &[&table, &[index], &[7; 5]]);
            let out = &after[2];
            assert!([101, 105, 109, 0].contains(&out[0]), "{index}: {out:?}");
            assert!((108..112).contains(&out[1]) || out[1] == 0, "{index}: {out:?}");
            assert!([202, 206, 0].contains(&out[2]), "{index}: {out:?}");
            assert!((204..208).contains(&out[3]) || out[3] == 0, "{index}: {out:?}");
            assert!((100..112).contains(&out[4]) || out[4] == 0, "{index}: {out:?}");
            if index < 2 {
                let i = index;
                assert_eq!(out[..], [101 + 4 * i, 108 + i, 202 + 4 * i, 204 + i, 100 + 5 * i]);
            }
        }
    });
}

/// A binding that ends within an element would leave the rest of it to chance.
#[test]
fn fault_17_bindings_that_end_within_an_element_are_refused() {
    let kernel = |ty: &str, list: &str| {
        format!(
            "struct Data {{ head: vec4<u32>, list: array<vec4<u32>> }}
            @group(0) @binding(0) var<storage, read_write> data: {ty};
            @compute @workgroup_size(1)
            fn main() {{ {list}[2] = vec4(9u); }}"
        )
    };
    on_each_device(|gpu| {
        let data = succeed(gpu.upload(&[5u32; 11]));
        for (ty, list) in [("array<vec4<u32>>", "data"), ("Data", "data.list")] {
            let text = refused(gpu.dispatch(&kernel(ty, list), &[&data], 1));
            assert_says(&text, &["`data`", "44 bytes", "16"]);
        }
        assert_eq!(succeed(data.download()), [5; 11]);
    });
}

/// Invocations far past the data, as every launch of whole workgroups has some.
#[test]
fn fault_21_many_invocations_past_the_end() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @group(0) @binding(1) var<storage, read> indices: array<u32>;
        @group(0) @binding(2) var<storage, read_write> out: array<atomic<u32>>;
        @compute @workgroup_size(256)
        fn main(@builtin(local_invocation_index) local: u32) {
            let far = local * indices[1] + indices[0];
            atomicAdd(&out[far], 1u);
            data[far] = 0xffffu;
        }";
    on_each_device(|gpu| {
        for index in wrong_indices(16) {
            let after = run_guarded(gpu, source, &[&[5; 16], &[index, 0x0101_0101], &[0; 16]]);
            assert!(after[0].iter().all(|word| [5, 0xffff].contains(word)), "{index}: {after:?}");
            assert!(after[2].iter().sum::<u32>() <= 256, "{index}: {after:?}");
        }
    });
}
