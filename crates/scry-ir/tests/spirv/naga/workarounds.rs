//! Rewrites for defects of drivers are applied only on request.

use scry_ir::{SpirvOptions, SpirvWorkarounds};

use crate::support::{CHECKED, parse};

/// A kernel body that each rewrite changes.
const CHANGED: [(SpirvWorkarounds, &str); 6] = [
    (SpirvWorkarounds::EXPAND_MIX, "f[0] = mix(f[1], f[2], f[3]);"),
    (SpirvWorkarounds::WORKGROUP_BOOL_AS_U32, "flags[i] = true; f[0] = f32(flags[i + 1u]);"),
    (
        SpirvWorkarounds::STORE_INITIAL_VECTORS,
        "var m = array(vec2(1.0), vec2(2.0)); m[i].x = 3.0; f[i] = m[1 - i].x;",
    ),
    (SpirvWorkarounds::SPLIT_VECTOR_DIVISIONS, "v[0] = v[1] / vec2(3, 4);"),
    (SpirvWorkarounds::EXPAND_SIGNS, "v[0] = abs(v[1]) + sign(v[2]);"),
    (SpirvWorkarounds::EXPAND_BIT_FIELDS, "v[0] = extractBits(v[1], 3u, 5u);"),
];

fn words(body: &str, workarounds: SpirvWorkarounds) -> Vec<u32> {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> f: array<f32>;
        @group(0) @binding(1) var<storage, read_write> v: array<vec2<i32>>;
        var<workgroup> flags: array<bool, 8>;
        @compute @workgroup_size(1)
        fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
    );
    let program = parse(body, &source);
    program.to_spirv_with_naga(&SpirvOptions { workarounds, ..CHECKED }).unwrap()
}

#[test]
fn rewrites_apply_only_on_demand() {
    let all = SpirvWorkarounds::all()
        - SpirvWorkarounds::EXPAND_TANH
        - SpirvWorkarounds::EXPAND_LOOP_COMPARISONS
        - SpirvWorkarounds::HIDE_LOOP_BOUNDS;
    assert_eq!(CHANGED.iter().fold(SpirvWorkarounds::empty(), |sum, (one, _)| sum | *one), all);
    for (rewrite, body) in CHANGED {
        let plain = words(body, SpirvWorkarounds::empty());
        assert_ne!(words(body, rewrite), plain, "{rewrite:?}");
        assert_eq!(words(body, all - rewrite), plain, "{rewrite:?}");
    }
}

#[test]
fn each_rewrite_has_a_name() {
    let names: Vec<_> = SpirvWorkarounds::all().names().collect();
    assert_eq!(names.len(), SpirvWorkarounds::all().iter().count());
    for rewrite in SpirvWorkarounds::all().iter() {
        let name = rewrite.names().next().unwrap();
        assert_eq!(SpirvWorkarounds::named(name), Some(rewrite));
    }
    assert_eq!(SpirvWorkarounds::named("nothing"), None);
}
