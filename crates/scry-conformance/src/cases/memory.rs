//! Zero initialisation of workgroup memory, private and function variables.

use scry_gpu::{DeviceInfo, Launch};

use crate::case::Case;

/// Fills workgroup memory, private and function variables with non-zero data.
const FILL: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> words: array<u32, 1024>;
    var<private> own: array<u32, 64>;

    @compute @workgroup_size(64)
    fn main(
        @builtin(local_invocation_index) local: u32,
        @builtin(global_invocation_id) id: vec3<u32>,
    ) {
        var mine: array<u32, 64>;
        for (var i = 0u; i < 16u; i++) { words[local * 16u + i] = 0xdeadbeefu; }
        for (var i = 0u; i < 64u; i++) { own[i] = 0xdeadbeefu; mine[i] = 0xdeadbeefu; }
        workgroupBarrier();
        out[id.x] = words[(local * 17u) % 1024u] & own[local] & mine[63u - local];
    }";

/// Reads all three before any write, and writes the bitwise OR of all words.
const READ: &str = "
    struct Cell { flag: u32, counter: atomic<u32>, v: vec3<u32> }
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> words: array<u32, 1024>;
    var<workgroup> cells: array<Cell, 8>;
    var<workgroup> single: u32;
    var<private> own: array<u32, 64>;
    var<private> vector: vec4<f32>;

    @compute @workgroup_size(64)
    fn main(
        @builtin(local_invocation_index) local: u32,
        @builtin(global_invocation_id) id: vec3<u32>,
    ) {
        var mine: array<u32, 64>;
        var m: mat3x3<f32>;
        var bits = single | bitcast<u32>(vector[local % 4u]) | bitcast<u32>(m[local % 3u].y);
        for (var i = 0u; i < 16u; i++) { bits |= words[local * 16u + i]; }
        for (var i = 0u; i < 64u; i++) { bits |= own[i] | mine[i]; }
        let cell = local % 8u;
        bits |= cells[cell].flag | atomicLoad(&cells[cell].counter) | cells[cell].v[local % 3u];
        out[id.x] = bits;
    }";

/// Alternates the two kernels, so that data of the first would be left for the second.
pub(crate) fn variables_are_zero_initialised(_: &DeviceInfo) -> Vec<Case> {
    let case = |name: &str, source: &str, word: u32| {
        let launch = Launch::workgroups([40, 1, 1]);
        Case::new(name, source).output(vec![word; 40 * 64]).launch(launch)
    };
    let both = |_| [case("fill", FILL, 0xdead_beef), case("read", READ, 0)];
    (0..3).flat_map(both).collect()
}

/// A declaration in a loop initialises the variable in each iteration.
pub(crate) fn loop_variables_are_reinitialised(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main() {
            for (var i = 0u; i < 4u; i++) {
                var n: u32;
                var list: array<u32, 2>;
                n += i;
                list[i % 2u] += i;
                out[i] = n * 100u + list[0] * 10u + list[1];
            }
        }";
    Case::new("", source).output(vec![0, 101, 220, 303]).one_workgroup()
}
