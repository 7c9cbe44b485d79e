//! Tests of batched workgroups of several rows, with interleaved lanes: many shapes, in grids whose
//! width may not be a power of two, with images that may not fill them.

use scry_ir::Program;
use scry_ir::kir::{
    Access, AddressSpace, BinaryOp, Builder, Builtin, Kir, KirOptions, Place, Type,
};

use super::mul_adds::small;
use super::random_kernels::Random;
use super::support::{BuilderExt, TestLaunch, bytes, noise};
use crate::Code;

const SHAPES: [[u32; 3]; 9] = [
    [8, 8, 1],
    [16, 16, 1],
    [4, 4, 4],
    [2, 8, 4],
    [1, 32, 1],
    [32, 2, 1],
    [64, 1, 2],
    [16, 2, 2],
    [8, 2, 1],
];
const GROUPS: [[u32; 3]; 5] = [[1, 2, 1], [2, 1, 2], [7, 2, 1], [19, 1, 1], [5, 2, 2]];

/// Returns a kernel with this body. Each invocation has two words of `out`, from `own` on; `data`
/// starts with an image of `w` by `h` pixels.
fn kernel(shape: [u32; 3], body: &str) -> Kir {
    let [x, y, z] = shape;
    let source = format!(
        "struct Size {{ w: u32, h: u32 }}
         @group(0) @binding(0) var<storage, read> data: array<u32>;
         @group(0) @binding(1) var<storage, read_write> out: array<u32>;
         @group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>>;
         var<immediate> size: Size;
         @compute @workgroup_size({x}, {y}, {z})
         fn main(
             @builtin(global_invocation_id) id: vec3u,
             @builtin(local_invocation_id) local: vec3u,
             @builtin(workgroup_id) group: vec3u,
             @builtin(local_invocation_index) index: u32,
             @builtin(num_workgroups) groups: vec3u,
         ) {{
             let w = size.w;
             let h = size.h;
             let all = groups * vec3u({x}, {y}, {z});
             let own = 2 * ((id.z * all.y + id.y) * all.x + id.x);
             // Keeps all buffers in the interface.
             if h == 0 {{ out[0] = data[0] + atomicLoad(&counts[0]); }}
             {body}
         }}"
    );
    let program = Program::parse(&source).unwrap();
    program.to_kir(&KirOptions { checked: true }).unwrap()
}

/// Asserts that a kernel computes the results of the reference interpreter in all shapes, with
/// images that fill the grid and images that do not.
fn assert_agrees(body: &str) {
    for shape in SHAPES {
        let kir = kernel(shape, body);
        for groups in GROUPS {
            let [width, height, depth] = [0, 1, 2].map(|axis| shape[axis] * groups[axis]);
            for (w, h) in [(width, height), (width - 1, height), (width.div_ceil(2), height + 3)] {
                let data = bytes(&noise((w * h) as usize));
                let out = bytes(&vec![7; (2 * width * height * depth) as usize]);
                let mut launch = TestLaunch::new(groups, &[data, out, bytes(&[0; 64])]);
                launch.immediates = bytes(&[w, h]);
                launch.assert_agrees(&kir);
            }
        }
    }
}

#[test]
fn small_two_dimensional_workgroups_are_interleaved() {
    for shape in SHAPES {
        let layout = Code::compile(&kernel(shape, "out[own] = index;")).unwrap().lane_layout;
        assert!(layout.interleaved && layout.batch > 1, "{shape:?}: {layout:?}");
    }
}

#[test]
fn builtins_and_values_derived_from_them() {
    assert_agrees(
        "out[own] = index * 31 + local.x * 5 + local.y * 7 + local.z; out[own + 1] = group.x;",
    );
    assert_agrees("out[own] = id.x ^ id.y; out[own + 1] = (id.z << 16) + group.y * id.x;");
    assert_agrees("out[own] = min(id.x, local.y * 3); out[own + 1] = max(id.y + 4, id.x) * id.x;");
}

#[test]
fn loads_along_and_across_rows() {
    for index in [
        "id.y * w + id.x",
        "id.x * h + id.y",
        "w * h - 1 - (id.y * w + id.x)",
        "id.y * w + 2 * id.x",
        "local.y * 3 + local.x",
        "group.x * 9 + local.y",
        "group.x",
        "index",
        "id.y * w - id.x",
        "id.x + id.y + id.z",
        "(id.x * 7) ^ id.y",
    ] {
        assert_agrees(&format!("out[own] = data[{index}]; out[own + 1] = data[({index}) - 1];"));
    }
}

#[test]
fn typical_border_conditions() {
    let sum = "out[own] = data[i] + data[i - 1] + data[i + 1] + 3 * data[i - w] + data[i + w];";
    let inside = "id.x > 0 && id.y > 0 && id.x < w - 1 && id.y < h - 1";
    let border = "id.x == 0 || id.y == 0 || id.x == w - 1 || id.y == h - 1";
    assert_agrees(&format!(
        "let i = id.y * w + id.x; if {inside} {{ {sum} }} else {{ out[own] = i; }}"
    ));
    assert_agrees(&format!(
        "if id.x >= w || id.y >= h {{ return; }}
         let i = id.y * w + id.x;
         if {border} {{ out[own + 1] = data[i]; return; }}
         {sum}"
    ));
    assert_agrees(
        "if id.x >= w || id.y >= h { return; }
         let at = id.y * w;
         out[own] = data[at + max(id.x, 1) - 1] + data[at + min(id.x + 1, w - 1)];
         out[own + 1] = data[max(id.y, 1) * w - w + id.x] - data[min(id.y + 1, h - 1) * w + id.x];",
    );
    assert_agrees(
        "let i = id.y * w + id.x;
         var sum = 0u;
         if id.x > 0 { sum += data[i - 1]; } else { sum += 5; }
         if id.x < w - 1 { sum *= data[i + 1]; }
         if id.y > 0 && id.z == 0 { sum -= data[select(i - w, i, id.x == 3)]; }
         out[own] = sum;",
    );
}

#[test]
fn masks_that_end_within_a_vector() {
    for active in [
        "(id.x + 3 * id.y) % 5 != 0",
        "id.x > 2 && id.x % 16 < 13",
        "id.y > 1 && id.x + 1 < w",
        "index % 7 < 5",
        "id.x == 0 || id.x >= w - 1",
    ] {
        assert_agrees(&format!("if {active} {{ out[own / 2] = data[id.x] + id.y; }}"));
        assert_agrees(&format!(
            "if {active} {{ out[own / 2 + 3] = id.x; }} else {{ out[own / 2 + 3] = 9; }}"
        ));
    }
}

#[test]
fn indices_wrap_only_in_inactive_rows() {
    for (above, below) in [(1, 0), (3, 0), (0, 2), (2, 5)] {
        let i = "let i = id.y * w + id.x;";
        let rows = format!("id.y >= {above} && id.y + {below} < h");
        let sum = format!(
            "out[own] = data[i - {above} * w] + data[i + {below} * w];
             out[own + 1] = u32(max(i32(id.y) - {above}, 0)) + select(7u, 9u, id.y > {above});"
        );
        assert_agrees(&format!("if !({rows}) {{ return; }} {i} {sum}"));
        assert_agrees(&format!("{i} if {rows} {{ {sum} }} out[own] += data[i - {above} * w];"));
        assert_agrees(&format!(
            "{i} var at = i;
             if {rows} {{ at = min(i - {above} * w, i); }}
             out[own] = data[at]; out[own + 1] = at + min(id.y, {above});"
        ));
    }
}

/// Returns a kernel that stores `a * b + c` to an element of each invocation, with operands at
/// random indices.
fn multiply_add(shape: [u32; 3], random: &mut Random) -> Kir {
    let mut b = Builder::new("sum", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let (number, x, row) = (b.global_index(), b.global_x(), b.builtin(Builtin::GroupId(1)));
    let [height, width, last, three] = [shape[1], 37, 60, 3].map(|word| b.u32(word));
    let (above, y) = (b.mul(row, height), b.local_id(1));
    let y = b.add(above, y);
    let rows = b.mul(y, width);
    let pixel = b.add(rows, x);
    let before = b.binary(BinaryOp::Sub, pixel, three);
    let reverse = b.binary(BinaryOp::Sub, last, x);
    let strided = b.mul(pixel, three);
    let clamped = b.clamped(pixel, input, 0, 4);
    let [a, c, d] = [(); 3].map(|()| {
        let index = random.pick(&[number, x, y, pixel, before, reverse, strided, clamped]);
        b.load(Type::F32, Place::new(AddressSpace::Binding(input), Some(index), 4, 0), 1)[0]
    });
    let sum = b.fma(a, c, d);
    b.store(Place::new(AddressSpace::Binding(out), Some(number), 4, 0), vec![sum]);
    b.finish()
}

#[test]
fn multiply_adds_with_memory_operands() {
    let mut random = Random { state: 5 };
    for shape in SHAPES {
        for round in 0..40 {
            let groups = GROUPS[round % GROUPS.len()];
            let size = shape.iter().chain(&groups).product::<u32>() as usize;
            let launch = TestLaunch::new(groups, &[small(1, 37 * 20), small(2, size)]);
            launch.assert_agrees(&multiply_add(shape, &mut random));
        }
    }
}

#[test]
fn stores_and_atomics_to_shared_elements() {
    assert_agrees(
        "out[own] = id.x; out[own] = 3 * out[own] + out[own + 1]; out[own + 1] = out[own];",
    );
    assert_agrees(
        "if id.x % 3 == 1 { return; }
         atomicAdd(&counts[(id.x + id.y) & 63], id.x);
         atomicAdd(&counts[local.y & 3], id.y);
         out[own + (id.x & 1)] = 1;",
    );
    // All invocations write, and each row of workgroups overwrites the previous one.
    assert_agrees("if id.x < w { out[id.x] = id.x; } out[all.x] = all.y;");
    // Unaligned rows.
    assert_agrees("out[id.x + 1] = out[id.x + 1] * 0 + id.x;");
}
