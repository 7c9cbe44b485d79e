//! Vectors and matrices: constructors, swizzles, component-wise operations, products.

use scry_gpu::DeviceInfo;

use crate::case::{Case, ExpectedValue};
use crate::ty::Ty;

/// Creates a case of a kernel whose body passes floats to `out`, with the expected floats.
/// `input(i)` is `i + 1`; `a` and `b` are `vec4`s of 1 to 4 and 5 to 8.
fn case(body: &str, want: &[f32]) -> Case {
    let source = format!(
        "
        @group(0) @binding(0) var<storage, read> words: array<u32>;
        @group(0) @binding(1) var<storage, read_write> bits: array<u32>;
        fn input(i: u32) -> f32 {{ return f32(words[i]); }}
        var<private> next: u32;
        fn out(value: f32) {{ bits[next] = bitcast<u32>(value); next++; }}
        fn out2(v: vec2<f32>) {{ out(v.x); out(v.y); }}
        fn out3(v: vec3<f32>) {{ out(v.x); out(v.y); out(v.z); }}
        fn out4(v: vec4<f32>) {{ out(v.x); out(v.y); out(v.z); out(v.w); }}

        @compute @workgroup_size(1)
        fn main() {{
            let a = vec4(input(0u), input(1u), input(2u), input(3u));
            let b = vec4(input(4u), input(5u), input(6u), input(7u));
            {body}
        }}"
    );
    let input: Vec<u32> = (1..=16).collect();
    let expected = want.iter().map(|want| ExpectedValue::Number((*want).into())).collect();
    Case::new(body, source)
        .words(&[&input, &vec![u32::MAX; want.len()]])
        .one_workgroup()
        .expect_approx(1, Ty::F32, expected, |at| format!("float {at}"))
}

pub(crate) fn constructors_and_swizzles(_: &DeviceInfo) -> Vec<Case> {
    vec![
        case("out4(a.wzyx);", &[4.0, 3.0, 2.0, 1.0]),
        case("out3(a.rrb); out2(b.yw);", &[1.0, 1.0, 3.0, 6.0, 8.0]),
        case("out4(vec4(a.xy, b.zw));", &[1.0, 2.0, 7.0, 8.0]),
        case("out4(vec4(a.x, b.yzw));", &[1.0, 6.0, 7.0, 8.0]),
        case("out3(vec3(a.y)); out2(vec2<f32>());", &[2.0, 2.0, 2.0, 0.0, 0.0]),
        case("var v = a; v.y = 9.0; v[3] = 8.0; out4(v);", &[1.0, 9.0, 3.0, 8.0]),
        case("var v = a.xyz; v.x += v.z; out3(v);", &[4.0, 2.0, 3.0]),
    ]
}

pub(crate) fn component_wise_operations(_: &DeviceInfo) -> Vec<Case> {
    vec![
        case("out4(a + b); out4(b - a);", &[6.0, 8.0, 10.0, 12.0, 4.0, 4.0, 4.0, 4.0]),
        case("out4(a * b); out4(2.0 * a);", &[5.0, 12.0, 21.0, 32.0, 2.0, 4.0, 6.0, 8.0]),
        case("out4(a + 1.0); out4(-a);", &[2.0, 3.0, 4.0, 5.0, -1.0, -2.0, -3.0, -4.0]),
        case(
            "out4(select(a, b, a > vec4(2.5))); out4(min(a, vec4(2.0)));",
            &[1.0, 2.0, 7.0, 8.0, 1.0, 2.0, 2.0, 2.0],
        ),
        case(
            "let less = a < vec4(3.0); out(f32(any(less))); out(f32(all(less))); \
         out(f32(less.x & less.w)); out(f32(all(a == a)));",
            &[1.0, 0.0, 0.0, 1.0],
        ),
    ]
}

pub(crate) fn geometry(_: &DeviceInfo) -> Vec<Case> {
    vec![
        case("out(dot(a, b)); out(dot(a.xy, b.zw));", &[70.0, 23.0]),
        case("out3(cross(a.xyz, b.xyz));", &[-4.0, 8.0, -4.0]),
        case(
            "out(length(vec2(3.0, 4.0) * a.x)); out(distance(b.xx, b.xx + vec2(6.0, 8.0)));",
            &[5.0, 10.0],
        ),
        case("out3(reflect(a.xyz, vec3(0.0, 1.0, 0.0)));", &[1.0, -2.0, 3.0]),
        case("out2(faceForward(a.xy, a.xy, b.xy));", &[-1.0, -2.0]),
        case(
            "out4(mix(a, b, 0.5)); out4(fma(a, b, a));",
            &[3.0, 4.0, 5.0, 6.0, 6.0, 14.0, 24.0, 36.0],
        ),
    ]
}

/// Returns the columns of the matrix whose element in column c and row r is `input(c * rows + r)`.
fn matrix(columns: usize, rows: usize) -> Vec<Vec<f32>> {
    let element = |c: usize, r: usize| (c * rows + r + 1) as f32;
    (0..columns).map(|c| (0..rows).map(|r| element(c, r)).collect()).collect()
}

/// Returns the WGSL statement that defines `m` as the matrix of [`matrix`].
fn matrix_source(columns: usize, rows: usize) -> String {
    let element = |i| format!("input({i}u)");
    let elements: Vec<String> = (0..columns * rows).map(element).collect();
    format!("let m = mat{columns}x{rows}<f32>({});", elements.join(", "))
}

pub(crate) fn matrix_products_of_every_shape(_: &DeviceInfo) -> Vec<Case> {
    let mut cases = Vec::new();
    for columns in 2..=4 {
        for rows in 2..=4 {
            let m = matrix(columns, rows);
            let matrix_vector =
                (0..rows).map(|r| (0..columns).map(|c| m[c][r] * (c + 1) as f32).sum());
            let vector_matrix =
                (0..columns).map(|c| (0..rows).map(|r| m[c][r] * (r + 1) as f32).sum());
            let transposed = (0..rows).flat_map(|r| (0..columns).map(move |c| (c, r)));
            let mut want: Vec<f32> = matrix_vector.collect();
            want.extend(vector_matrix.collect::<Vec<f32>>());
            want.extend(transposed.map(|(c, r)| m[c][r]));
            let names = ["x", "y", "z", "w"];
            let swizzle = |n: usize| names[..n].concat();
            let mut body = matrix_source(columns, rows);
            body += &format!("out{rows}(m * a.{});", swizzle(columns));
            body += &format!("out{columns}(a.{} * m);", swizzle(rows));
            for row in 0..rows {
                body += &format!("out{columns}(transpose(m)[{row}]);");
            }
            cases.push(case(&body, &want));
        }
    }
    cases
}

pub(crate) fn matrix_by_matrix(_: &DeviceInfo) -> Case {
    let (a, b) = (matrix(2, 3), matrix(4, 2));
    let element = |c: usize, r: usize| (0..2).map(|k| a[k][r] * b[c][k]).sum();
    let want: Vec<f32> =
        (0..4).flat_map(|c| (0..3).map(move |r| (c, r))).map(|(c, r)| element(c, r)).collect();
    let body =
        "let m = mat2x3<f32>(input(0u), input(1u), input(2u), input(3u), input(4u), input(5u));
        let n = mat4x2<f32>(a.xy, a.zw, b.xy, b.zw);
        let p = m * n;
        out3(p[0]); out3(p[1]); out3(p[2]); out3(p[3]);";
    case(body, &want)
}

pub(crate) fn matrix_arithmetic(_: &DeviceInfo) -> Vec<Case> {
    let m = "let m = mat2x2<f32>(a.xy, a.zw); let n = mat2x2<f32>(b.xy, b.zw);";
    let body = "let d = mat3x3<f32>(2.0 * a.x, 0.0, 0.0, 0.0, 3.0, 0.0, 1.0, 0.0, 4.0);
        out(determinant(d));";
    vec![
        case(&format!("{m} let s = m + n; out2(s[0]); out2(s[1]);"), &[6.0, 8.0, 10.0, 12.0]),
        case(&format!("{m} let s = n - m; out2(s[0]); out2(s[1]);"), &[4.0; 4]),
        case(&format!("{m} let s = m * 2.0; out2(s[0]); out2(s[1]);"), &[2.0, 4.0, 6.0, 8.0]),
        case(&format!("{m} out(determinant(m)); out(determinant(n));"), &[-2.0, -2.0]),
        case(
            &format!("{m} var v = m; v[1] = b.xy; v[0].y = 9.0; out2(v[0]); out2(v[1]);"),
            &[1.0, 9.0, 5.0, 6.0],
        ),
        case(body, &[24.0]),
    ]
}

pub(crate) fn integer_and_boolean_vectors(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read> words: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;

        @compute @workgroup_size(1)
        fn main() {
            let v = vec4<i32>(i32(words[0]), -i32(words[1]), i32(words[2]), -i32(words[3]));
            let w = abs(v) * vec4(2, 3, 4, 5) - v;
            out[0] = bitcast<u32>(w.y);
            let m = vec3<bool>(v.x > 0, v.y > 0, v.z > 0);
            out[1] = dot(vec3<u32>(m), vec3(1u, 2u, 4u));
            out[2] = dot(vec3<u32>(!m), vec3(1u, 2u, 4u));
            let sel = select(vec3(10u, 20u, 30u), vec3(1u, 2u, 3u), m);
            out[3] = sel.x * 10000u + sel.y * 100u + sel.z;
            out[4] = bitcast<u32>(dot(v, vec4(1, 1, 1, 1)));
            out[5] = (words[3] * vec2(3u, 5u) + 1u).y;
            out[6] = u32(all(v == vec4(1, -2, 3, -4)));
        }";
    let want = vec![8, 0b101, 0b010, 12003, (-2i32) as u32, 21, 1];
    Case::new("", source).words(&[&[1, 2, 3, 4]]).output(want).one_workgroup()
}
