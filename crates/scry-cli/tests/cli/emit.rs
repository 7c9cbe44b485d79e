//! Tests of `scry emit`.

use crate::support::{Workplace, repository};

const MAGIC: [u8; 4] = 0x0723_0203u32.to_le_bytes();

#[test]
fn spirv_goes_to_file_or_stdout() {
    let place = Workplace::without_driver();
    let kernel = repository("examples/kernels/saxpy.wgsl");
    let kernel = kernel.to_str().unwrap();
    place
        .scry(&["emit", "--target", "spirv", kernel, "-o", "k.spv"])
        .exits_with(0)
        .prints(&["k.spv"]);
    let file = place.read("k.spv");
    assert_eq!(file[..4], MAGIC);
    assert_eq!(file[4..8], [0, 3, 1, 0], "SPIR-V 1.3");
    let piped = place.command(&["emit", kernel, "-o", "-"]).output().unwrap();
    assert!(piped.status.success());
    assert_eq!(piped.stdout, file);

    let document = place.scry(&["emit", kernel, "-o", "j.spv", "--json"]).exits_with(0).json();
    assert_eq!(document["result"]["bytes"], file.len());
    place.write(
        "index.wgsl",
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(1) fn main() { x[x[0]] = 1u; }",
    );
    place.scry(&["emit", "index.wgsl", "-o", "c.spv"]).exits_with(0);
    place.scry(&["emit", "index.wgsl", "-o", "u.spv", "--unchecked"]).exits_with(0);
    assert!(place.read("u.spv").len() < place.read("c.spv").len(), "unchecked code is shorter");
}

#[test]
fn invalid_requests_are_rejected() {
    let place = Workplace::without_driver();
    let two = "@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}";
    place.write("two.wgsl", two);
    place.write("set.wgsl", "override N: u32; @compute @workgroup_size(N) fn a() {}");
    place.scry(&["emit", "two.wgsl", "-o", "o"]).exits_with(2).prints(&["--entry", "a, b"]);
    place
        .scry(&["emit", "two.wgsl", "-o", "o", "--entry", "c"])
        .exits_with(2)
        .prints(&["`c`", "a, b"]);
    place.scry(&["emit", "set.wgsl", "-o", "o"]).exits_with(2).prints(&["`N`", "--set"]);
    place.scry(&["emit", "set.wgsl", "-o", "o", "--set", "N=2"]).exits_with(0);
    place.scry(&["emit", "none.wgsl", "-o", "o"]).exits_with(1).prints(&["none.wgsl"]);
    place.scry(&["emit", "two.wgsl"]).exits_with(2).prints(&["--output"]);
    place.scry(&["emit", "two.wgsl", "--target", "elf", "-o", "o"]).exits_with(2).prints(&["ptx"]);
    let both = place.scry(&["emit", "two.wgsl", "--entry", "a", "-o", "-", "--json"]).exits_with(2);
    assert_eq!(both.json()["error"]["kind"], "usage");
    place.scry(&["emit", "two.wgsl", "--entry", "a", "-o", "./two.wgsl"]).exits_with(2);
    assert_eq!(place.read("two.wgsl"), two.as_bytes(), "the source is as it was");
    place
        .scry(&["emit", "two.wgsl", "--entry", "a", "-o", "no/o"])
        .exits_with(1)
        .prints(&["no folder"]);
}

#[test]
fn ptx_targets_the_given_architecture() {
    let place = Workplace::without_driver();
    let kernel = repository("examples/kernels/saxpy.wgsl");
    let kernel = kernel.to_str().unwrap();
    let piped = place.command(&["emit", "--target", "ptx", "--sm", "90", kernel]).output().unwrap();
    assert!(piped.status.success());
    let text = String::from_utf8(piped.stdout).unwrap();
    assert!(text.starts_with(".version 7.8\n.target sm_90\n"), "{text}");
    assert!(text.contains(".visible .entry"), "{text}");
    let file = ["emit", "--target", "ptx", kernel, "-o", "k.ptx"];
    place.scry(&file).exits_with(0).prints(&["k.ptx", "PTX 6.3 for sm_75"]);
    assert!(place.read("k.ptx").starts_with(b".version 6.3\n"));
    let old = ["emit", "--target", "ptx", "--sm", "61", kernel];
    place.scry(&old).exits_with(2).prints(&["`61` is not a target", "90a"]);
    place
        .scry(&["emit", "--target", "ptx", "--json", kernel])
        .exits_with(2)
        .prints(&["standard output"]);
}

#[test]
fn emitted_wgsl_is_valid() {
    let place = Workplace::without_driver();
    let source = "@group(1) @binding(2) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3<u32>) {
            data[id.x] *= 2.0;
        }";
    place.write("double.wgsl", source);
    let piped = place.command(&["emit", "--target", "wgsl", "double.wgsl"]).output().unwrap();
    assert!(piped.status.success());
    let text = String::from_utf8(piped.stdout).unwrap();
    assert!(text.contains("fn double(") && text.contains("min("), "indices are checked: {text}");
    place.write("again.wgsl", &text);
    place.scry(&["check", "again.wgsl"]).exits_with(0);
    place.scry(&["reflect", "again.wgsl"]).exits_with(0).prints(&["double", "data", "array<f32>"]);

    let unchecked = ["emit", "--target", "wgsl", "--unchecked", "double.wgsl", "-o", "u.wgsl"];
    place.scry(&unchecked).exits_with(0).prints(&["u.wgsl", "bytes of WGSL"]);
    assert!(place.read("u.wgsl").len() < text.len(), "without checks there is less");
}

#[test]
fn kernel_ir_has_source_lines() {
    let place = Workplace::without_driver();
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    data[id.x] *= 2.0;
}";
    place.write("double.wgsl", source);
    let piped = place.command(&["emit", "--target", "kir", "double.wgsl"]).output().unwrap();
    assert!(piped.status.success());
    let text = String::from_utf8(piped.stdout).unwrap();
    assert!(text.starts_with("kernel double [64, 1, 1]\nsource double.wgsl\n"), "{text}");
    assert!(text.contains("load binding0[") && text.contains(" @3:"), "{text}");
    let file = ["emit", "--target", "kir", "double.wgsl", "-o", "double.kir"];
    place.scry(&file).exits_with(0).prints(&["double.kir", "bytes of kernel IR"]);
    assert_eq!(place.read("double.kir"), text.as_bytes());
}

#[test]
fn wgsl_lacks_64_bit_types() {
    let place = Workplace::without_driver();
    let source = "@group(0) @binding(0) var<storage, read_write> sums: array<f64>;
        @compute @workgroup_size(1) fn main() { sums[0] *= 2.0lf; }";
    place.write("wide.wgsl", source);
    let rejected = place.scry(&["emit", "--target", "wgsl", "wide.wgsl"]).exits_with(1);
    rejected.prints(&["wide.wgsl", "WGSL has no 64-bit floats (f64)", "help: "]);
}
