//! Tests of the checks of kernels and immediates, with the exact texts of errors.

use scry_ir::{Access, Features, Interface};

use super::*;
use crate::api::element::{ElementLayout, bytes_of};
use crate::core::check::{KernelInterface, immediates, kernel_limits};

fn rejection(interface: &Interface) -> String {
    kernel_limits(interface, &device(), |_| unreachable!("nothing is unsupported"))
        .unwrap_err()
        .to_string()
}

fn give<T: Element>(interface: &Interface, value: T) -> Result<Vec<u8>, String> {
    let given = (&T::LAYOUT, std::any::type_name::<T>(), bytes_of(std::slice::from_ref(&value)));
    immediates(interface, Some(given)).map_err(|error| error.to_string())
}

/// Fault 11.
#[test]
fn workgroups_beyond_the_limits_are_rejected() {
    let sized = |size| rejection(&Interface { workgroup_size: size, ..kernel(Vec::new()) });
    assert_eq!(
        sized([1, 1, 65]),
        "kernel `main`, @workgroup_size along z is 65, but Test GPU is limited to 64 \
         (max_workgroup_size); help: use smaller workgroups"
    );
    assert_eq!(
        sized([64, 32, 1]),
        "kernel `main`, @workgroup_size(64, 32, 1) is 2048 invocations, but Test GPU is limited to \
         1024 invocations (max_workgroup_invocations); help: use smaller workgroups"
    );
    assert_eq!(
        sized([64, 0, 1]),
        "kernel `main`, @workgroup_size: 0 invocations along y; help: give each axis at least 1"
    );
    assert!(sized([u32::MAX; 3]).contains("along x is 4294967295"));
    let mut boundless = device();
    boundless.limits.max_workgroup_size = [u32::MAX; 3];
    let huge = Interface { workgroup_size: [u32::MAX; 3], ..kernel(Vec::new()) };
    let error = kernel_limits(&huge, &boundless, |_| String::new()).unwrap_err().to_string();
    assert!(error.contains("79228162458924105385300197375 invocations"), "{error}");
}

/// Fault 11.
#[test]
fn too_much_workgroup_memory_is_rejected() {
    assert_eq!(
        rejection(&Interface { workgroup_memory: 40_000, ..kernel(Vec::new()) }),
        "kernel `main`, workgroup memory is 40000 bytes, but Test GPU is limited to 32768 bytes \
         (max_workgroup_memory); help: make its var<workgroup> arrays smaller"
    );
}

#[test]
fn excessive_bindings_are_rejected() {
    let storage = (0..9).map(|i| binding(i, "x", Access::Read, f32s())).collect();
    assert_eq!(
        rejection(&kernel(storage)),
        "kernel `main`, number of var<storage> bindings is 9, but Test GPU is limited to 8 \
         (max_storage_bindings); help: put several arrays into one buffer"
    );
    let uniforms = (0..5).map(|i| uniform(i, "x", vec(4))).collect();
    assert!(rejection(&kernel(uniforms)).contains("number of var<uniform> bindings is 5"));
    assert_eq!(
        rejection(&kernel(vec![uniform(0, "table", fixed(vec(4), 4097, 16))])),
        "kernel `main`, `table` at @group(0) @binding(0) is 65552 bytes, but Test GPU is limited \
         to 65536 bytes (max_uniform_binding_size); help: declare it as var<storage, read>"
    );
}

#[test]
fn types_of_4_gib_are_rejected() {
    let mut boundless = device();
    boundless.limits.max_storage_binding_size = u64::MAX;
    let check_len = |len| {
        let layout = fixed(vec(4), len, 16);
        kernel_limits(&kernel(vec![binding(0, "x", Access::Read, layout)]), &boundless, |_| {
            unreachable!("nothing is unsupported")
        })
    };
    check_len((1 << 28) - 1).unwrap();
    let error = check_len(1 << 28).unwrap_err().to_string();
    assert!(
        error.contains("is 4294967296 bytes, but Test GPU is limited to 4294967295"),
        "{error}"
    );
}

#[test]
fn large_immediates_are_rejected() {
    let block = fixed(vec(4), 9, 16);
    assert_eq!(
        rejection(&kernel_with_immediates("params", block)),
        "kernel `main`, `params` (var<immediate>) is 144 bytes, but Test GPU is limited to 128 \
         bytes (max_immediates); help: move parameters to a var<uniform> buffer"
    );
}

#[test]
fn native_kernels_name_what_they_declare() {
    let rejection = |interface: &Interface| {
        kernel_limits(KernelInterface::new(interface, true), &device(), |_| String::new())
            .unwrap_err()
            .to_string()
    };
    let sized = |size| rejection(&Interface { workgroup_size: size, ..kernel(Vec::new()) });
    let texts = [
        sized([1, 1, 65]),
        sized([64, 32, 1]),
        sized([64, 0, 1]),
        rejection(&Interface { workgroup_memory: 40_000, ..kernel(Vec::new()) }),
        rejection(&kernel((0..9).map(|i| binding(i, "x", Access::Read, f32s())).collect())),
        rejection(&kernel_with_immediates("immediates", fixed(vec(4), 9, 16))),
    ];
    let parts = [
        "block along z is 65, but",
        "block (64, 32, 1) is 2048 threads, but",
        "block: 0 threads along y;",
        "help: declare less with NativeInterface::dynamic_shared",
        "number of buffers is 9, but",
        "immediates is 144 bytes, but",
    ];
    for (text, part) in texts.iter().zip(parts) {
        assert!(text.contains(part), "{text}");
        assert!(!text.contains("var<") && !text.contains('@'), "{text}");
    }
}

/// Fault 10.
#[test]
fn missing_features_are_named_with_help() {
    let needs = Features::F16 | Features::SUBGROUPS;
    let interface = Interface { features: needs, ..kernel(Vec::new()) };
    let mut device = device();
    device.features = Features::SUBGROUPS;
    let help = |missing: Features| format!("vulkan:1 has {missing}");
    assert_eq!(
        kernel_limits(&interface, &device, help).unwrap_err().to_string(),
        "kernel `main` needs f16, which Test GPU does not have; help: vulkan:1 has f16"
    );
    device.features |= Features::F16;
    kernel_limits(&interface, &device, help).unwrap();
}

#[test]
fn immediates_must_match_the_declaration() {
    let scale = TypeLayout::Scalar(Scalar::F32);
    let error = immediates(&kernel_with_immediates("scale", scale), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `main`, `scale`: the kernel needs a value of its var<immediate>, f32; help: launch \
         with run_with_immediates, or set them on the Launch"
    );
    assert_eq!(
        give(&kernel(Vec::new()), 1.0f32).unwrap_err(),
        "kernel `main`, immediates: 4 bytes were given, but the kernel uses no \
         var<immediate>; help: declare `var<immediate> params: Params;` and use it, or launch \
         without"
    );
    assert_eq!(immediates(&kernel(Vec::new()), None).unwrap(), [0u8; 0]);
}

#[test]
fn immediates_are_checked_like_buffers() {
    let scale = kernel_with_immediates("scale", TypeLayout::Scalar(Scalar::F32));
    assert_eq!(give(&scale, 1.0f32).unwrap(), 1.0f32.to_le_bytes());
    assert_eq!(
        give(&scale, 1u32).unwrap_err(),
        "kernel `main`, `scale` (var<immediate>): the data is u32, but f32 is made of f32; help: \
         give data of type f32, or change the declaration"
    );
    assert_eq!(
        give(&scale, [1.0f32, 2.0]).unwrap_err(),
        "kernel `main`, `scale` (var<immediate>): 8 bytes were given, but f32 has 4; help: give \
         data of type f32"
    );
}

#[test]
fn scalar_for_vector_names_the_vector() {
    let kernel = |layout| kernel_with_immediates("p", layout);
    assert_eq!(
        give(&kernel(vec(4)), 1.0f32).unwrap_err(),
        "kernel `main`, `p` (var<immediate>): the data is f32, 4 bytes, but vec4<f32> has 16; \
         help: give data of type [f32; 4], or change the declaration"
    );
    assert_eq!(
        give(&kernel(vec(2)), 1u32).unwrap_err(),
        "kernel `main`, `p` (var<immediate>): the data is u32, but vec2<f32> is made of f32; help: \
         give data of type [f32; 2], or change the declaration"
    );
    assert_eq!(
        give(&kernel(mat(2, 4)), [0.0f32; 4]).unwrap_err(),
        "kernel `main`, `p` (var<immediate>): the data is [f32; 4], 16 bytes, but mat2x4<f32> has \
         32; help: give data of type [[f32; 4]; 2], or change the declaration"
    );
    assert_eq!(
        give(&kernel(vec(4)), [0.0f32; 5]).unwrap_err(),
        "kernel `main`, `p` (var<immediate>): 20 bytes were given, but vec4<f32> has 16; help: \
         give data of type [f32; 4]"
    );
    assert!(give(&kernel(vec(4)), [0.0f32; 4]).is_ok());
}

#[test]
fn data_that_ends_early_says_where() {
    let float = TypeLayout::Scalar(Scalar::F32);
    let members = [("a", 0, float.clone()), ("b", 4, float)];
    let kernel = kernel_with_immediates("params", structure("Params", 8, &members));
    assert_eq!(
        give(&kernel, 1.0f32).unwrap_err(),
        "kernel `main`, `params` (var<immediate>): in Rust f32 ends at byte 4, in WGSL `b` at byte \
         4 is f32; help: declare the same fields on both sides, in the same order"
    );
}

#[test]
fn immediates_may_omit_trailing_padding() {
    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Short {
        at: [f32; 2],
        scale: f32,
    }
    let members = [("at", 0, vec(2)), ("scale", 8, TypeLayout::Scalar(Scalar::F32))];
    let kernel = kernel_with_immediates("params", structure("Params", 16, &members));
    let block = give(&kernel, Short { at: [1.0, 2.0], scale: 3.0 }).unwrap();
    assert_eq!((block.len(), &block[8..]), (16, &[0, 0, 64, 64, 0, 0, 0, 0][..]));
    assert_eq!(give(&kernel, [1.0f32, 2.0, 3.0, 0.0]).unwrap().len(), 16);
    let raw = |bytes: &[u8]| immediates(&kernel, Some((&ElementLayout::Opaque, "bytes", bytes)));
    assert_eq!(raw(&[1; 12]).unwrap().len(), 16);
    assert_eq!(
        raw(&[1; 13]).unwrap_err().to_string(),
        "kernel `main`, `params` (var<immediate>): 13 bytes were given, but Params has 16, or 12 \
         without the unused bytes at its end; help: give a #[repr(C)] struct with the same fields"
    );
    assert!(raw(&[]).is_err());
}
