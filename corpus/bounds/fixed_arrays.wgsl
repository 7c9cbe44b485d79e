// Fixed arrays, nested, inside a buffer, in private, workgroup and function memory, and as values.
// Binding 0: grid, array<array<u32, 3>, 2> holding 0..6. Binding 1: index, vec2<i32>.
// Binding 2: out, 16 words. One workgroup of 1.
// With a = min(u32(index.x), 1) and b = min(u32(index.y), 2), the index taken as unsigned:
//   out[0] = 3a + b (buffer), out[1] the same (value copied from it), out[2] = 10 + b (private),
//   out[3] = 20 + b (workgroup), out[4] = 30 + b (function), out[5] = 40 + b (constant array),
//   out[6] = 50 + b (through a function that takes a pointer and an index).
// Afterwards grid[a][b] = 99 and nothing else of grid changed.

@group(0) @binding(0) var<storage, read_write> grid: array<array<u32, 3>, 2>;
@group(0) @binding(1) var<storage, read> index: vec2i;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

const TABLE = array(40u, 41u, 42u);

var<private> own: array<u32, 3>;
var<workgroup> shared_words: array<u32, 3>;

fn pick(words: ptr<function, array<u32, 3>>, at: i32) -> u32 {
    return (*words)[at];
}

@compute @workgroup_size(1)
fn main() {
    let x = index.x;
    let y = index.y;
    let copy = grid;
    out[0] = grid[x][y];
    out[1] = copy[x][y];
    for (var i = 0; i < 3; i++) {
        own[i] = 10u + u32(i);
        shared_words[i] = 20u + u32(i);
    }
    out[2] = own[y];
    out[3] = shared_words[y];
    var local = array(30u, 31u, 32u);
    out[4] = local[y];
    out[5] = TABLE[y];
    local = array(50u, 51u, 52u);
    out[6] = pick(&local, y);
    grid[x][y] = 99u;
}
