// Values, not variables, indexed at run time: vectors, matrices, arrays, results of functions.
// Binding 0: index, one i32. Binding 1: out, 8 words. One workgroup of 1.
// With k(last) = min(u32(index), last), the index taken as unsigned:
//   out[0] = 1 + k(2) (vector), out[1] = 10 * k(1) + k(2) (matrix, both indices),
//   out[2] = 5 + k(3) (array), out[3] = 100 + 10 * k(1) + k(2) (array of structures from a
//   function), out[4] = 1 + k(2) (vector, compared in a loop whose copy changes every turn).

struct Row {
    cells: array<u32, 3>,
}

fn rows() -> array<Row, 2> {
    return array(Row(array(100u, 101u, 102u)), Row(array(110u, 111u, 112u)));
}

@group(0) @binding(0) var<storage, read> index: i32;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(1)
fn main() {
    let i = index;
    let vector = vec3u(1u, 2u, 3u);
    out[0] = vector[i];
    let matrix = mat2x3f(0.0, 1.0, 2.0, 10.0, 11.0, 12.0);
    out[1] = u32(matrix[i][i]);
    let list = array(5u, 6u, 7u, 8u);
    out[2] = list[i];
    out[3] = rows()[i].cells[i];
    for (var turn = 0u; turn < 2u; turn++) {
        let changing = array(turn, turn + 1u, turn + 2u);
        if turn == 1u {
            out[4] = changing[i];
        }
    }
}
