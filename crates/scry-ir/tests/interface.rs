//! What the host is told of a kernel.

use scry_ir::{Access, Features, Options, Program, Scalar, ShaderErrorKind, Space, TypeLayout};

fn options(overrides: &[(&str, f64)]) -> Options {
    Options {
        overrides: overrides
            .iter()
            .map(|(k, v)| ((*k).to_owned(), *v))
            .collect(),
        ..Options::default()
    }
}

#[test]
fn bindings_are_the_used_ones_in_order() {
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
        .map(|b| (b.group, b.binding, b.name.as_str(), b.space, b.access))
        .collect();
    assert_eq!(
        found,
        [
            (0, 5, "params", Space::Uniform, Access::Read),
            (3, 2, "read_only_really", Space::Storage, Access::Read),
            (3, 7, "out", Space::Storage, Access::ReadWrite),
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
fn overrides_size_the_workgroup_and_its_memory() {
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
    let values: Vec<_> = overrides
        .iter()
        .map(|o| (o.name.as_str(), o.id, o.value))
        .collect();
    assert_eq!(
        values,
        [
            ("TILE", Some(3), Some(16.0)),
            ("FLAG", None, Some(0.0)),
            ("UNUSED", None, None)
        ]
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
        let error = Program::with_options(source, &options(&[(key, value)]))
            .err()
            .unwrap();
        assert_eq!(
            error.kind,
            ShaderErrorKind::Override,
            "{key} = {value}: {error}"
        );
    }
}
