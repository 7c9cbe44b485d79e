//! Tests of the interfaces that are reported for kernels.

use scry_ir::{
    Access, BufferBindingType, Features, Options, Program, Scalar, ShaderErrorKind, TypeLayout,
};

fn options(overrides: &[(&str, f64)]) -> Options {
    Options {
        overrides: overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).into())).collect(),
        ..Options::default()
    }
}

#[test]
fn used_bindings_are_listed_in_order() {
    let source = "
        @group(3) @binding(7) var<storage, read_write> out: array<f32>;
        @group(0) @binding(9) var<storage, read> unused: array<f32>;
        @group(0) @binding(5) var<uniform> params: vec4<u32>;
        @group(3) @binding(2) var<storage, read_write> read_only_really: array<f32>;
        @compute @workgroup_size(8, 4)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            out[id.x] = read_only_really[id.x] + f32(params.x);
        }";
    let program = Program::parse(source).unwrap();
    let interface = program.interface();
    assert_eq!(interface.entry_point, "main");
    assert_eq!(interface.workgroup_size, [8, 4, 1]);
    let found: Vec<_> = interface
        .bindings
        .iter()
        .map(|b| (b.group, b.binding, b.name.as_str(), b.ty, b.access))
        .collect();
    assert_eq!(
        found,
        [
            (0, 5, "params", BufferBindingType::Uniform, Access::Read),
            (3, 2, "read_only_really", BufferBindingType::Storage, Access::Read),
            (3, 7, "out", BufferBindingType::Storage, Access::ReadWrite),
        ]
    );
    let floats = TypeLayout::Array {
        element: Box::new(TypeLayout::Scalar(Scalar::F32)),
        len: None,
        stride: 4,
    };
    assert_eq!(interface.bindings[2].layout, floats);
    assert_eq!(interface.features, Features::empty());
}

#[test]
fn overrides_size_workgroup_and_memory() {
    let source = "
        @id(3) override TILE: u32 = 16;
        override FLAG: bool = false;
        override UNUSED: f32;
        var<workgroup> tile: array<f32, TILE * 2>;
        @group(0) @binding(0) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(TILE)
        fn main(@builtin(local_invocation_index) i: u32) {
            if FLAG { tile[i] = 1.0; }
            out[i] = tile[i];
        }";
    let plain = Program::parse(source).unwrap();
    assert_eq!(plain.interface().workgroup_size, [16, 1, 1]);
    assert_eq!(plain.interface().workgroup_memory, 128);
    let overrides = &plain.interface().overrides;
    let values: Vec<_> = overrides.iter().map(|o| (o.name.as_str(), o.id, o.value)).collect();
    assert_eq!(
        values,
        [("TILE", Some(3), Some(16.0)), ("FLAG", None, Some(0.0)), ("UNUSED", None, None)]
    );
    for key in ["TILE", "3"] {
        let set = Program::with_options(source, &options(&[(key, 32.0), ("FLAG", 1.0)])).unwrap();
        assert_eq!(set.interface().workgroup_size, [32, 1, 1]);
        assert_eq!(set.interface().workgroup_memory, 256);
        assert_eq!(set.interface().overrides[0].value, Some(32.0));
    }
    for (key, value) in [
        ("TILE", f64::NAN),
        ("TILE", 0.0),
        ("TILE", -1.0),
        ("TILE", 1.5),
        ("TILE", 4294967296.0),
        ("FLAG", 2.0),
        ("MISSING", 1.0),
        ("4", 1.0),
        ("UNUSED", 1e39),
    ] {
        let error = Program::with_options(source, &options(&[(key, value)])).err().unwrap();
        assert_eq!(error.kind, ShaderErrorKind::Override, "{key} = {value}: {error}");
    }
}

/// Returns the offsets and the size of the struct that is the element type of `data`.
fn offsets(structs: &str) -> Result<(Vec<u32>, u32), ShaderErrorKind> {
    let source = format!(
        "{structs}
        @group(0) @binding(0) var<storage, read_write> data: array<S>;
        @compute @workgroup_size(1) fn main() {{ data[0] = data[1]; }}"
    );
    let program = Program::parse(&source).map_err(|error| error.kind)?;
    let TypeLayout::Array { element, stride, .. } = &program.interface().bindings[0].layout else {
        panic!("an array");
    };
    let TypeLayout::Struct { members, size, .. } = &**element else {
        panic!("of structs");
    };
    assert_eq!(stride, size);
    Ok((members.iter().map(|member| member.offset).collect(), *size))
}

#[test]
fn struct_layouts_follow_wgsl() {
    for (structs, expected, size) in [
        ("struct S { a: f32, b: vec3<f32>, c: f32, d: vec2<f32> }", vec![0, 16, 28, 32], 48),
        ("struct S { a: f32, b: array<vec3<f32>, 2>, c: mat3x3<f32> }", vec![0, 16, 48], 96),
        (
            "struct S { a: f32, @align(32) b: f32, @size(20) c: u32, d: u32 }",
            vec![0, 32, 36, 56],
            64,
        ),
        ("enable f16; struct S { a: f16, b: vec3<f16>, c: mat2x3<f16> }", vec![0, 8, 16], 32),
        ("struct I { x: vec3<f32> } struct S { a: f32, i: I, b: f32 }", vec![0, 16, 32], 48),
        ("struct S { a: i32, b: i64, c: vec3<u64> }", vec![0, 8, 32], 64),
    ] {
        assert_eq!(offsets(structs), Ok((expected, size)), "{structs}");
    }
}

#[test]
fn nested_align_is_honoured_or_rejected() {
    // By the rules of WGSL, I has alignment 64 and size 64.
    let inner = "struct I { @align(64) x: u32 }";
    for (outer, expected) in [
        ("struct S { x: u32, y: I }", Err(ShaderErrorKind::Validation)),
        ("struct S { y: I, x: u32 }", Err(ShaderErrorKind::Validation)),
        ("struct S { x: u32, y: array<I, 2> }", Err(ShaderErrorKind::Validation)),
        ("struct M { x: u32, y: I } struct S { m: M }", Err(ShaderErrorKind::Validation)),
        ("struct S { y: I, @align(64) x: u32 }", Ok((vec![0, 64], 128))),
        ("struct S { x: u32, @align(64) y: I }", Ok((vec![0, 64], 128))),
        ("struct S { y: I }", Ok((vec![0], 64))),
        ("struct S { @size(64) x: u32, y: I }", Ok((vec![0, 64], 128))),
    ] {
        assert_eq!(offsets(&format!("{inner} {outer}")), expected, "{outer}");
    }
    let by_name = "const A = 0x40u; struct I { @align(A) x: u32 } struct S { x: u32, y: I }";
    assert_eq!(offsets(by_name), Err(ShaderErrorKind::Validation));
    let unknown = "struct I { @align(32 * 2) x: u32 } struct S { x: u32, @align(64) y: I }";
    assert_eq!(offsets(unknown), Err(ShaderErrorKind::Validation));
}

#[test]
fn features_are_those_of_reachable_code() {
    let cases = [
        ("enable f16;", "out[0] = f32(f16(out[1]));", Features::F16),
        ("", "out[0] = f32(f64(out[1]) * 2.0lf);", Features::F64),
        ("", "out[0] = f32(i64(out[1]));", Features::I64),
        ("", "var k = 5li; out[0] = f32(k);", Features::I64),
        ("enable wgpu_int16;", "out[0] = f32(i16(out[1]));", Features::I16),
        ("enable subgroups;", "", Features::SUBGROUPS),
        ("", "out[0] = subgroupMax(out[1]);", Features::SUBGROUPS),
        ("", "subgroupBarrier();", Features::SUBGROUPS),
        (
            "@group(0) @binding(1) var<storage, read_write> f: atomic<f32>;",
            "atomicAdd(&f, 1.0);",
            Features::F32_ATOMICS,
        ),
        (
            "@group(0) @binding(1) var<storage, read_write> f: array<atomic<u64>>;",
            "_ = atomicXor(&f[3], 1lu);",
            Features::I64_ATOMICS.union(Features::I64),
        ),
        ("fn unused() -> f64 { return 1.0lf; }", "", Features::empty()),
        ("@group(0) @binding(1) var<storage> f: array<i64>;", "", Features::empty()),
    ];
    for (head, body, features) in cases {
        let source = format!(
            "{head}
            @group(0) @binding(0) var<storage, read_write> out: array<f32>;
            @compute @workgroup_size(32) fn main() {{ out[0] = 1.0; {body} }}"
        );
        let program = Program::parse(&source).unwrap_or_else(|e| panic!("{source}\n{e}"));
        assert_eq!(program.interface().features, features, "{source}");
        let options_for = |features: Features| Options { features, ..Options::default() };
        let allowed = Program::with_options(&source, &options_for(features));
        assert!(allowed.is_ok(), "{source}\n{}", allowed.err().unwrap());
        for missing in features.iter() {
            let options = options_for(Features::all().difference(missing));
            let error = Program::with_options(&source, &options).err().unwrap();
            assert_eq!(error.kind, ShaderErrorKind::UnsupportedFeatures(missing), "{error}");
            assert!(error.location.is_some(), "{error}");
        }
    }
}

#[test]
fn non_buffer_bindings_are_named() {
    for (head, name, what, body) in [
        (
            "@group(0) @binding(0) var tex: texture_2d<f32>;",
            "tex",
            "texture_2d",
            "_ = textureDimensions(tex);",
        ),
        (
            "@group(0) @binding(0) var tex: texture_storage_2d<r32float, write>;",
            "tex",
            "storage texture",
            "textureStore(tex, vec2(0), vec4(1.0));",
        ),
        ("@group(0) @binding(0) var smp: sampler;", "smp", "sampler", "_ = smp;"),
        (
            "@group(0) @binding(0) var tex: texture_external;",
            "tex",
            "external texture",
            "_ = textureDimensions(tex);",
        ),
        (
            "enable wgpu_ray_query; @group(0) @binding(0) var acc: acceleration_structure;",
            "q",
            "ray_query",
            "var q: ray_query;",
        ),
        (
            "enable wgpu_binding_array; struct B { x: u32 }
             @group(0) @binding(0) var<storage> many: binding_array<B, 4>;",
            "many",
            "binding_array",
            "_ = many[1].x;",
        ),
    ] {
        let source = format!("{head} @compute @workgroup_size(1) fn main() {{ {body} }}");
        let error = Program::parse(&source).err().unwrap_or_else(|| panic!("{source}"));
        assert_eq!(error.kind, ShaderErrorKind::UnsupportedConstruct, "{source}\n{error}");
        assert!(error.message.contains(&format!("`{name}` is a {what}")), "{error}");
    }
    // Features that only a fragment entry point of the same source uses are ignored.
    let source = "@group(0) @binding(0) var tex: texture_2d<f32>;
        @fragment fn fs() -> @location(0) vec4<f32> { return textureLoad(tex, vec2(0), 0); }
        @compute @workgroup_size(1) fn main() {}";
    assert!(Program::parse(source).unwrap().interface().bindings.is_empty());
}

#[test]
fn reports_immediates_access_and_workgroup_memory() {
    let source = "
        struct Params { scale: f32, count: u32 }
        var<immediate> params: Params;
        var<workgroup> a: array<vec3<f32>, 4>;
        var<workgroup> b: u32;
        var<workgroup> c: array<bool, 5>;
        var<workgroup> unused: array<u32, 1000>;
        @group(0) @binding(0) var<storage, read_write> counter: atomic<u32>;
        @group(0) @binding(1) var<storage, read_write> loaded: atomic<u32>;
        @group(0) @binding(2) var<storage, read_write> only_len: array<u32>;
        fn deep() { b = u32(params.scale); c[1] = true; atomicAdd(&counter, atomicLoad(&loaded)); }
        @compute @workgroup_size(4)
        fn main() { a[0].x = f32(arrayLength(&only_len)); deep(); }";
    let program = Program::parse(source).unwrap();
    let interface = program.interface();
    assert_eq!(interface.workgroup_memory, 64 + 16 + 32);
    let immediates = interface.immediates.as_ref().unwrap();
    assert_eq!((immediates.name.as_str(), immediates.layout.fixed_size()), ("params", 8));
    let access: Vec<_> = interface.bindings.iter().map(|b| b.access).collect();
    assert_eq!(access, [Access::ReadWrite, Access::Read, Access::Read]);
}

#[test]
fn huge_workgroup_memory_does_not_wrap() {
    let source = "
        override N: u32 = 4294967295;
        var<workgroup> a: array<vec4<u32>, N>;
        @compute @workgroup_size(1) fn main() { a[1].x = 2u; }";
    match Program::parse(source) {
        Ok(program) => assert_eq!(program.interface().workgroup_memory, u32::MAX),
        Err(error) => assert_ne!(error.kind, ShaderErrorKind::Compiler, "{error}"),
    }
}
