//! Tests of the scalarisation of composite values.

use super::run;

#[test]
fn vectors_and_matrices_compose_and_decompose() {
    let body = "
        let v = vec4(data[0], vec2(data[1], 3u), 4u);
        let w = v.wzyx + vec4(10u);
        var s = vec3(v.xz, w.x);
        s.y = w.w; s[0] += 1u;
        out[0] = s.x * 10000u + s.y * 100u + s.z;
        let m = mat3x2f(vec2(1.0, 2.0), vec2(3.0), vec2f());
        out[1] = u32(transpose(m)[1].y * 10.0 + (m * vec3(1.0, 2.0, 5.0)).y);
        var n = m; n[2] = n[0]; n[0][1] = 9.0;
        out[2] = u32(n[2].y * 10.0 + n[0].y);";
    assert_eq!(run("", body, &[1, 2]), [21_114, 38, 29]);
}

#[test]
fn structure_members_keep_their_order() {
    let declarations = "
        struct Inner { a: u32, b: vec3u, c: array<u32, 2> }
        struct Outer { x: Inner, y: array<Inner, 2>, z: u32 }
        fn make(n: u32) -> Inner {
            return Inner(n, vec3(n + 1u, n + 2u, n + 3u), array(n + 4u, n + 5u));
        }";
    let body = "
        let o = Outer(make(0u), array(make(10u), make(20u)), 30u);
        out[0] = o.x.b.z * 100u + o.y[0].c[1];
        out[1] = o.y[1].a * 100u + o.z;
        let whole = modf(2.75); let parts = frexp(12.0);
        out[2] = u32(whole.fract * 100.0 + whole.whole * 1000.0);
        out[3] = u32(parts.exp) * 10u + u32(parts.fract * 8.0);";
    assert_eq!(run(declarations, body, &[0]), [315, 2030, 2075, 46]);
}
