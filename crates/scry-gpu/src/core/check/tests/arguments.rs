//! Tests of the checks of a launch's buffers, with the exact texts of errors.

use scry_ir::{Access, Interface};

use super::*;
use crate::core::check::{
    KernelInterface, arguments as check, bound_size, native_arguments, signature,
};

/// Doubles `input` into `output`.
fn doubling() -> Interface {
    kernel(vec![
        binding(0, "input", Access::Read, f32s()),
        binding(1, "output", Access::ReadWrite, f32s()),
    ])
}

fn rejection(interface: &Interface, arguments: &[Argument<'_>]) -> String {
    check(interface, &device(), arguments).unwrap_err().to_string()
}

#[test]
fn matching_arguments_are_accepted() {
    let [a, b] = memories();
    let arguments = [buffer::<f32>(a, 100), buffer::<[f32; 4]>(b, 25)];
    check(&doubling(), &device(), &arguments).unwrap();
}

/// Fault 16.
#[test]
fn wrong_buffer_count_names_the_expected() {
    let [a, b, c] = memories();
    assert_eq!(
        rejection(&doubling(), &[buffer::<f32>(a, 4)]),
        "kernel `main`, buffers: the kernel uses 2, but 1 was given; help: in order, give `input` \
         at @group(0) @binding(0): array<f32>, read; `output` at @group(0) @binding(1): \
         array<f32>, read_write"
    );
    let three = [a, b, c].map(|memory| buffer::<f32>(memory, 4));
    assert!(rejection(&doubling(), &three).contains("the kernel uses 2, but 3 were given"));
    assert_eq!(
        rejection(&kernel(Vec::new()), &three[..1]),
        "kernel `main`, buffers: the kernel uses 0, but 1 was given; help: give none"
    );
}

/// Fault 16.
#[test]
fn wrong_element_type_is_named() {
    let [a] = memories();
    let interface = kernel(vec![binding(3, "keys", Access::Read, u32s())]);
    let argument = Argument { label: "data", ..buffer::<f32>(a, 4) };
    assert_eq!(
        rejection(&interface, &[argument]),
        "kernel `main`, `keys` at @group(0) @binding(3) (given buffer `data`): the data is f32, \
         but array<u32> is made of u32; help: give data of type u32, or change the declaration"
    );
}

/// Fault 16.
#[test]
fn swapped_buffers_are_recognised() {
    let [a, b] = memories();
    let interface = kernel(vec![
        binding(0, "keys", Access::Read, u32s()),
        binding(1, "values", Access::Read, f32s()),
    ]);
    assert_eq!(
        rejection(&interface, &[buffer::<f32>(a, 4), buffer::<u32>(b, 4)]),
        "kernel `main`, `keys` at @group(0) @binding(0): the data is f32, but array<u32> is made \
         of u32; help: it fits `values`: buffers are given in the order of the bindings"
    );
}

/// Fault 17.
#[test]
fn too_small_buffer_is_rejected() {
    let [a] = memories();
    let interface = kernel(vec![uniform(0, "m", mat(4, 4))]);
    assert_eq!(
        rejection(&interface, &[buffer::<[f32; 4]>(a, 3)]),
        "kernel `main`, `m` at @group(0) @binding(0): 48 bytes were given, but mat4x4<f32> needs \
         at least 64; help: give at least 4 elements of [f32; 4]"
    );
    check(&interface, &device(), &[buffer::<[f32; 4]>(a, 4)]).unwrap();
    check(&interface, &device(), &[buffer::<[f32; 4]>(a, 5)]).unwrap();
}

/// Fault 17.
#[test]
fn runtime_sized_arrays_are_rounded_down() {
    let [a] = memories();
    let pixels = binding(0, "pixels", Access::Read, array(vec(4), 16));
    let interface = kernel(vec![pixels.clone()]);
    check(&interface, &device(), &[buffer::<f32>(a, 6)]).unwrap();
    assert_eq!([16, 24, 31, 32, 47].map(|size| bound_size(&pixels, size)), [16, 16, 16, 32, 32]);
    assert_eq!(
        rejection(&interface, &[buffer::<f32>(a, 3)]),
        "kernel `main`, `pixels` at @group(0) @binding(0): 12 bytes were given, but \
         array<vec4<f32>> needs at least 16; help: give at least 4 elements of f32"
    );
    // A header of 16 bytes, then elements of 12 bytes; the size of the structure itself is rounded
    // up to 32.
    let list = structure("List", 32, &[("head", 0, vec(4)), ("items", 16, array(vec(3), 12))]);
    let list = binding(0, "list", Access::Read, list);
    assert_eq!([32, 39, 40, 51, 52].map(|size| bound_size(&list, size)), [32, 32, 40, 40, 52]);
    let packed = kernel(vec![binding(0, "words", Access::Read, u32s())]);
    check(&packed, &device(), &[buffer::<u8>(a, 7)]).unwrap();
    assert!(rejection(&packed, &[buffer::<u8>(a, 3)]).contains("needs at least 4"));
}

/// Bytes that no kernel accesses do not count as overlap.
#[test]
fn trailing_bytes_never_overlap() {
    let [a] = memories();
    let interface = kernel(vec![
        binding(0, "first", Access::ReadWrite, array(vec(4), 16)),
        binding(1, "second", Access::ReadWrite, array(vec(4), 16)),
    ]);
    let second = Argument { offset: 32, ..buffer::<f32>(a, 4) };
    check(&interface, &device(), &[buffer::<f32>(a, 11), second.clone()]).unwrap();
    let text = rejection(&interface, &[buffer::<f32>(a, 12), second]);
    assert!(text.contains("it shares bytes 32 to 47"), "{text}");
}

/// Fault 17.
#[test]
fn unaligned_slice_is_rejected() {
    let [a, b] = memories();
    let odd = Argument { offset: 8, ..buffer::<f32>(a, 4) };
    assert_eq!(
        rejection(&doubling(), &[odd, buffer::<f32>(b, 4)]),
        "kernel `main`, `input` at @group(0) @binding(0): the slice begins at byte 8 of its \
         memory; help: on Test GPU bindings begin at multiples of 16 bytes; copy the slice to a \
         buffer of its own, or pad the data"
    );
    let even = Argument { offset: 32, ..buffer::<f32>(a, 4) };
    check(&doubling(), &device(), &[even, buffer::<f32>(b, 4)]).unwrap();
}

#[test]
fn empty_buffer_needs_an_empty_launch() {
    let [a, b] = memories();
    let arguments = [buffer::<f32>(a, 0), buffer::<f32>(b, 4)];
    assert_eq!(
        rejection(&doubling(), &arguments),
        "kernel `main`, `input` at @group(0) @binding(0): the buffer is empty, but a binding \
         needs at least one element; help: skip the launch if there is no data, or launch 0 \
         invocations"
    );
    signature(&doubling(), &arguments).unwrap();
}

/// Independent of the limits that a device reports.
#[test]
fn only_native_kernels_bind_4_gib() {
    const BOUNDARY: usize = 1 << 30;
    let mut boundless = device();
    boundless.limits.max_storage_binding_size = u64::MAX;
    boundless.limits.max_uniform_binding_size = u64::MAX;
    let [a, b] = memories();
    let arguments = |len| [buffer::<f32>(a, len), buffer::<f32>(b, 4)];
    check(&doubling(), &boundless, &arguments(BOUNDARY - 1)).unwrap();
    let whole = arguments(BOUNDARY);
    assert_eq!(
        check(&doubling(), &boundless, &whole).unwrap_err().to_string(),
        "kernel `main`, `input` at @group(0) @binding(0) is 4294967296 bytes, but Test GPU is \
         limited to 4294967295 bytes (max_storage_binding_size); help: launch on slices of the \
         buffer, one after the other"
    );
    native_arguments(&doubling(), &boundless, &whole).unwrap();
    native_arguments(&doubling(), &device(), &whole).unwrap();
    let types = [(f32s(), true), (array(fixed(f32s(), 3, 4), 12), true), (vec(4), false)];
    for (layout, rejected) in types {
        let all = kernel(vec![binding(0, "all", Access::ReadWrite, layout)]);
        let given = [buffer::<f32>(a, 3 * BOUNDARY)];
        assert_eq!(check(&all, &boundless, &given).is_err(), rejected);
    }
}

#[test]
fn bindings_beyond_the_limits_are_rejected() {
    let [a, b] = memories();
    let arguments = [buffer::<f32>(a, (1 << 18) + 1), buffer::<f32>(b, 4)];
    assert_eq!(
        rejection(&doubling(), &arguments),
        "kernel `main`, `input` at @group(0) @binding(0) is 1048580 bytes, but Test GPU is limited \
         to 1048576 bytes (max_storage_binding_size); help: launch on slices of the buffer, one \
         after the other"
    );
    let table = kernel(vec![uniform(0, "table", fixed(vec(4), 5000, 16))]);
    let error = rejection(&table, &[buffer::<[f32; 4]>(a, 5000)]);
    assert!(
        error.ends_with("(max_uniform_binding_size); help: declare it as var<storage, read>"),
        "{error}"
    );
}

#[test]
fn fixed_type_limits_the_bound_size() {
    let [a] = memories();
    let params = uniform(0, "params", vec(4));
    assert_eq!(bound_size(&params, 1 << 20), 16);
    assert_eq!(bound_size(&binding(0, "x", Access::Read, f32s()), 400), 400);
    check(&kernel(vec![params]), &device(), &[buffer::<f32>(a, 1 << 18)]).unwrap();
}

/// Fault 18.
#[test]
fn written_buffer_is_bound_only_once() {
    let [a] = memories();
    assert_eq!(
        rejection(&doubling(), &[buffer::<f32>(a, 4), buffer::<f32>(a, 4)]),
        "kernel `main`, `output` at @group(0) @binding(1): it shares bytes 0 to 15 of its memory \
         with `input` at @group(0) @binding(0), and the kernel writes `output`; help: give buffers \
         or slices that do not overlap, or declare one binding for both"
    );
    let reading =
        kernel(vec![binding(0, "a", Access::Read, f32s()), binding(1, "b", Access::Read, f32s())]);
    check(&reading, &device(), &[buffer::<f32>(a, 4), buffer::<f32>(a, 4)]).unwrap();
}

/// Fault 18.
#[test]
fn slices_may_touch_but_not_overlap() {
    let [a] = memories();
    let part = |offset, len| Argument { offset, ..buffer::<f32>(a, len) };
    check(&doubling(), &device(), &[part(0, 16), part(64, 16)]).unwrap();
    check(&doubling(), &device(), &[part(64, 16), part(0, 16)]).unwrap();
    let error = rejection(&doubling(), &[part(64, 16), part(48, 5)]);
    assert!(error.contains("shares bytes 64 to 67 of its memory with `input`"), "{error}");
}

#[test]
fn native_kernels_name_no_wgsl() {
    let [a] = memories();
    let interface = doubling();
    let native = KernelInterface::new(&interface, true);
    let rejection = |arguments: &[Argument<'_>]| {
        native_arguments(native, &device(), arguments).unwrap_err().to_string()
    };
    assert_eq!(
        rejection(&[buffer::<f32>(a, 4)]),
        "kernel `main`, buffers: the kernel uses 2, but 1 was given; help: in order, give buffer \
         `input`: array<f32>, read; buffer `output`: array<f32>, read_write"
    );
    let labelled = Argument { label: "x", ..buffer::<f32>(a, 4) };
    assert_eq!(
        rejection(&[buffer::<f32>(a, 4), labelled]),
        "kernel `main`, buffer `output` (labelled `x`): it shares bytes 0 to 15 of its memory with \
         buffer `input`, and the kernel writes `output`; help: give buffers or slices that do not \
         overlap, or declare one binding for both"
    );
}
