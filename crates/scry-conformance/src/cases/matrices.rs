//! Matrices of every shape and type, constructed and loaded from memory, with dynamically indexed
//! columns and elements.

use scry_gpu::{DeviceInfo, Launch};

use crate::Cases;
use crate::case::{Case, Data, ExpectedValue};
use crate::ty::{FLOATS, Ty, directives};

/// Number of matrices in the buffer, and of workgroups in the launch.
const COUNT: usize = 6;

/// Number of invocations in a workgroup; each has its own matrix.
const LANES: usize = 16;

/// A matrix as columns of small integers, whose products are exact in every type.
type Matrix = Vec<Vec<f64>>;

fn matrix(seed: usize, columns: usize, rows: usize) -> Matrix {
    let element = |c: usize, r: usize| ((seed * 7 + c * 3 + r * 5) % 11) as f64 - 4.0;
    (0..columns).map(|c| (0..rows).map(|r| element(c, r)).collect()).collect()
}

/// Returns the bits of a matrix in a buffer. Columns of three are padded to the stride of four.
fn buffer_layout(ty: Ty, m: &Matrix) -> Vec<u64> {
    let stride = if m[0].len() == 3 { 4 } else { m[0].len() };
    let column = |column: &Vec<f64>| {
        let mut values: Vec<u64> = column.iter().map(|value| ty.nearest(*value)).collect();
        values.resize(stride, ty.nearest(100.0));
        values
    };
    m.iter().flat_map(column).collect()
}

fn source(ty: Ty, columns: usize, rows: usize) -> String {
    let name = ty.name();
    let outputs = 3 * rows + 2 * columns + 3;
    format!(
        "{}
        alias Matrix = mat{columns}x{rows}<{name}>;
        @group(0) @binding(0) var<storage, read> input: array<Matrix>;
        @group(0) @binding(1) var<storage, read_write> out: array<{name}>;
        var<private> next: u32;
        var<workgroup> workgroup_data: array<Matrix, {LANES}>;
        fn emit(value: {name}) {{ out[next] = value; next++; }}

        @compute @workgroup_size({LANES})
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {{
            next = (g.x * {LANES}u + i) * {outputs}u;
            let same = input[g.x];
            var own = input[i % {COUNT}u];
            workgroup_data[i] = own;
            let v = same[i % {columns}u];
            let w = transpose(own)[g.x % {rows}u];
            let matrix_vector = own * transpose(same)[i % {rows}u];
            let vector_matrix = v * own;
            let combined = same * {name}(2) - own + same;
            for (var r = 0u; r < {rows}u; r++) {{
                emit(matrix_vector[r]); emit(v[r]); emit(combined[1][r]);
            }}
            for (var c = 0u; c < {columns}u; c++) {{ emit(vector_matrix[c]); emit(w[c]); }}
            workgroupBarrier();
            own[i % {columns}u][g.x % {rows}u] += {name}(9);
            own[0] = workgroup_data[(i + 1u) % {LANES}u][1];
            emit(own[i % {columns}u][g.x % {rows}u]);
            emit(workgroup_data[{LANES}u - 1u - i][g.x % {columns}u][i % {rows}u]);
            emit((same * transpose(own))[i % {rows}u][g.x % {rows}u]);
        }}",
        directives(&[ty])
    )
}

/// Returns the expected output of invocation `i` of workgroup `g`.
fn reference(matrices: &[Matrix], columns: usize, rows: usize, g: usize, i: usize) -> Vec<f64> {
    let (same, own) = (&matrices[g], &matrices[i % COUNT]);
    let workgroup_data = |lane: usize| &matrices[lane % LANES % COUNT];
    let v = &same[i % columns];
    let mut out = Vec::new();
    for r in 0..rows {
        out.push((0..columns).map(|c| own[c][r] * same[c][i % rows]).sum());
        out.push(v[r]);
        out.push(same[1][r] * 3.0 - own[1][r]);
    }
    for column in own {
        out.push((0..rows).map(|r| v[r] * column[r]).sum());
        out.push(column[g % rows]);
    }
    let mut changed = own.clone();
    changed[i % columns][g % rows] += 9.0;
    changed[0] = workgroup_data(i + 1)[1].clone();
    out.push(changed[i % columns][g % rows]);
    out.push(workgroup_data(LANES - 1 - i)[g % columns][i % rows]);
    out.push((0..columns).map(|c| same[c][g % rows] * changed[c][i % rows]).sum());
    out
}

fn case(ty: Ty, columns: usize, rows: usize) -> Case {
    let matrices: Vec<Matrix> = (0..COUNT).map(|seed| matrix(seed, columns, rows)).collect();
    let bits: Vec<u64> = matrices.iter().flat_map(|m| buffer_layout(ty, m)).collect();
    let invocations = (0..COUNT).flat_map(|g| (0..LANES).map(move |i| (g, i)));
    let want = invocations.flat_map(|(g, i)| reference(&matrices, columns, rows, g, i));
    let want: Vec<ExpectedValue> = want.map(ExpectedValue::Number).collect();
    Case::new(format!("mat{columns}x{rows} of {ty:?}"), source(ty, columns, rows))
        .buffer(Data::values(ty, &bits))
        .buffer(Data::values(ty, &vec![0; want.len()]))
        .launch(Launch::workgroups([COUNT as u32, 1, 1]))
        .skipped_without(ty.feature())
        .expect_approx(1, ty, want, |at| format!("element {at}"))
}

pub(crate) fn every_shape_of_every_type(_: &DeviceInfo) -> Cases {
    let shapes = || (2..=4).flat_map(|columns| (2..=4).map(move |rows| (columns, rows)));
    let cases = move |ty| shapes().map(move |(columns, rows)| case(ty, columns, rows));
    Cases::new(FLOATS.into_iter().flat_map(cases))
}
