// Pointers to parts of variables as arguments: elements, members, components of nested arrays.
// Binding 0: index, one u32. Binding 1: out, 12 words. One workgroup of 1.
// With k = min(index, 3): out[0..4] are 1, 2, 3, 4 but out[k] = k + 11; out[4] = 17 and out[5] = 6;
// out[6..10] are 0 but out[6 + k] = 10; out[10] = 10 (what `bump` returned for the private array).

struct Pair {
    first: u32,
    second: u32,
}

@group(0) @binding(0) var<storage, read> index: u32;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

var<private> own: array<u32, 4>;

fn add_ten(word: ptr<function, u32>) {
    *word += 10u;
}

fn bump(word: ptr<private, u32>) -> u32 {
    *word += 10u;
    return *word;
}

@compute @workgroup_size(1)
fn main() {
    var words = array(1u, 2u, 3u, 4u);
    add_ten(&words[index]);
    for (var i = 0; i < 4; i++) {
        out[i] = words[i];
    }
    var pair = Pair(7u, 6u);
    add_ten(&pair.first);
    out[4] = pair.first;
    out[5] = pair.second;
    let result = bump(&own[index]);
    for (var i = 0; i < 4; i++) {
        out[6 + i] = own[i];
    }
    out[10] = result;
}
