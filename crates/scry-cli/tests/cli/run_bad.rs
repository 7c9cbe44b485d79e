//! Tests of errors of `scry run`, before the kernel is launched.

use png::ColorType;

use crate::support::{Workplace, floats, npy, png};

const KERNEL: &str = "\
struct Params { a: f32, n: u32 }
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < params.n { y[id.x] = params.a * x[id.x]; }
}
";

/// Valid arguments, to which a test adds an invalid one.
const X: [&str; 2] = ["--in", "x=zeros:f32:8"];
const Y: [&str; 2] = ["--out", "y"];
const IMMEDIATES: [&str; 4] = ["--immediate", "a=1", "--immediate", "n=8"];

fn place() -> Workplace {
    let place = Workplace::without_driver();
    place.write("k.wgsl", KERNEL);
    place
}

/// Runs the kernel with these groups of arguments, and asserts a usage error with these words.
#[track_caller]
fn assert_usage_error(place: &Workplace, arguments: &[&[&str]], words: &[&str]) {
    let arguments = [&[&["run", "k.wgsl"][..]], arguments].concat().concat();
    place.scry(&arguments).exits_with(2).prints(words);
}

#[test]
fn missing_buffers_are_listed() {
    let words = ["`y`", "@binding(0)", "array<f32>", "--in x=zeros:f32:8", "missing: --out y="];
    assert_usage_error(&place(), &[&X, &IMMEDIATES], &words);
    assert_usage_error(&place(), &[&IMMEDIATES], &["`x`, `y`", "missing: --in x=SOURCE"]);
}

#[test]
fn unknown_names_list_valid_names() {
    let place = place();
    assert_usage_error(
        &place,
        &[&X, &Y, &IMMEDIATES, &["--in", "z=zeros:f32:8"]],
        &["--in z", "x ", "y "],
    );
    assert_usage_error(&place, &[&X, &Y, &IMMEDIATES, &["--out", "z"]], &["--out z"]);
    assert_usage_error(&place, &[&X, &Y, &IMMEDIATES, &["--shape", "z=1"]], &["--shape z"]);
    assert_usage_error(
        &place,
        &[&X, &Y, &IMMEDIATES, &["--immediate", "b=1"]],
        &["--immediate b", "`a` (f32), `n` (u32)"],
    );
    assert_usage_error(&place, &[&X, &Y, &["--immediate", "a=1"]], &["`n` (u32)"]);
    assert_usage_error(
        &place,
        &[&X, &Y, &["--immediate", "a=1", "--immediate", "n=-1"]],
        &["`-1`", "u32"],
    );
    let large = ["--immediate", "a=1e999", "--immediate", "n=1"];
    assert_usage_error(
        &place,
        &[&X, &Y, &large],
        &["--immediate a=1e999: `1e999` is not a finite f32"],
    );
    assert_usage_error(
        &place,
        &[&X, &Y, &IMMEDIATES, &["--cast", "z=f32"]],
        &["--cast z", "x ", "y "],
    );
    let words = ["--cast x=u8", "array<f32>", "--cast x=f32"];
    assert_usage_error(&place, &[&X, &Y, &IMMEDIATES, &["--cast", "x=u8"]], &words);
    assert_usage_error(
        &place,
        &[&X, &Y, &IMMEDIATES, &["--cast", "x=byte"]],
        &["--cast x=byte", "u16"],
    );
    assert_usage_error(&place, &[&X, &Y, &IMMEDIATES, &["--set", "N=1"]], &["`N`", "--set"]);
    assert_usage_error(
        &place,
        &[&X, &Y, &IMMEDIATES, &["--entry", "other"]],
        &["`other`", "--entry", "main"],
    );
}

#[test]
fn other_data_types_are_rejected() {
    let place = place();
    place.write("x.npy", npy("<f8", "(8,)", &[0; 64]));
    let words = ["x=x.npy", "f64", "array<f32>", "astype(\"float32\")"];
    assert_usage_error(&place, &[&["--in", "x=x.npy"], &Y, &IMMEDIATES], &words);
    let words = ["u32", "array<f32>", "x=rand:f32:8"];
    assert_usage_error(&place, &[&["--in", "x=rand:u32:8"], &Y, &IMMEDIATES], &words);
    assert_usage_error(&place, &[&["--in", "x=rand:f32"], &Y, &IMMEDIATES], &["zeros:u32:1000x10"]);
    assert_usage_error(&place, &[&["--in", "x=x.jpg"], &Y, &IMMEDIATES], &["x.jpg", ".png"]);
    place.write("x.bin", [0; 7]);
    assert_usage_error(&place, &[&["--in", "x=x.bin"], &Y, &IMMEDIATES], &["7 bytes"]);
    let empty = ["--in", "x=zeros:f32:0", "-n", "8"];
    assert_usage_error(&place, &[&empty, &Y, &IMMEDIATES], &["the buffer is empty"]);
    let words = ["--shape x", "has its own shape"];
    assert_usage_error(&place, &[&X, &Y, &IMMEDIATES, &["--shape", "x=2x4"]], &words);
}

#[test]
fn images_need_pixel_types() {
    let place = place();
    place.write("i.png", png(2, 2, ColorType::Grayscale, &[0; 4]));
    let source =
        KERNEL.replace("x: array<f32>", "x: array<vec2f>").replace("x[id.x];", "x[id.x].x;");
    place.write("k.wgsl", source);
    assert_usage_error(
        &place,
        &[&["--in", "x=i.png"], &Y, &IMMEDIATES],
        &["array<vec2<f32>>", "array<u32>"],
    );
    place.write("k.wgsl", KERNEL);
    assert_usage_error(
        &place,
        &[&X, &["--out", "y=o.png"], &IMMEDIATES],
        &["two dimensions", "--shape y="],
    );
}

#[test]
fn directions_are_not_mixed_up() {
    let place = place();
    assert_usage_error(
        &place,
        &[&["--out", "x", "--shape", "x=8"], &Y, &IMMEDIATES],
        &["does not write `x`"],
    );
    assert_usage_error(
        &place,
        &[&X, &["--in", "y=zeros:f32:8"], &IMMEDIATES],
        &["writes `y`", "--inout"],
    );
    assert_usage_error(&place, &[&X, &X, &Y, &IMMEDIATES], &["buffer `x` has two inputs"]);
    assert_usage_error(&place, &[&X, &Y, &Y, &IMMEDIATES], &["--out y is repeated"]);
}

#[test]
fn streams_hold_one_array() {
    let place = place();
    let words = ["`x`, `y`", "standard input"];
    assert_usage_error(&place, &[&["--in", "x=-", "--inout", "y=bin:-"], &IMMEDIATES], &words);
    place.write(
        "k.wgsl",
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn main() { x[0] = 1; y[0] = 2; }",
    );
    let outputs = ["--out", "x=-", "--out", "y=bin:-", "--shape", "x=1", "--shape", "y=1"];
    assert_usage_error(&place, &[&outputs], &["only one output can go to standard output"]);
    let outputs =
        ["--out", "x=o.npz:a", "--out", "y=./o.npz:a", "--shape", "x=1", "--shape", "y=1"];
    let words = ["./o.npz:a is the destination of two outputs", "FILE.npz:NAME"];
    assert_usage_error(&place, &[&outputs], &words);
}

#[test]
fn inputs_are_never_overwritten() {
    let place = place();
    let file = npy("<f4", "(2,)", &floats(&[1.0, 2.0]));
    place.write("x.npy", &file);
    place.write("y.npy", &file);
    let x = ["--in", "x=x.npy"];
    for output in ["y=x.npy", "y=./x.npy"] {
        assert_usage_error(&place, &[&x, &["--out", output], &IMMEDIATES], &["is also an input"]);
    }
    let inout = ["--inout", "y=y.npy", "--out", "y=y.npy"];
    assert_usage_error(&place, &[&x, &inout, &IMMEDIATES], &["is also an input"]);
    assert_eq!((place.read("x.npy"), place.read("y.npy")), (file.clone(), file));
    place.write(
        "k2.wgsl",
        KERNEL.replace("read> x", "read_write> x").replace("y[id.x] =", "x[id.x] = 1.0; y[id.x] ="),
    );
    let both = ["run", "k2.wgsl", "--out", "x=o.bin", "--out", "y=./o.bin", "--shape", "x=1"];
    place
        .scry(&[&both[..], &["--shape", "y=1"], &IMMEDIATES].concat())
        .exits_with(2)
        .prints(&["write to the same file"]);
}

#[test]
fn failing_files_are_named() {
    let place = place();
    let assert_fails = |arguments: &[&[&str]], words: &[&str]| {
        let arguments = [&[&["run", "k.wgsl"][..]], arguments].concat().concat();
        place.scry(&arguments).exits_with(1).prints(words);
    };
    assert_fails(&[&["--in", "x=none.npy"], &Y, &IMMEDIATES], &["none.npy"]);
    place.write("x.npy", b"nonsense");
    assert_fails(&[&["--in", "x=x.npy"], &Y, &IMMEDIATES], &["x.npy", "magic number"]);
    place.write("x.png", b"nonsense");
    assert_fails(&[&["--in", "x=x.png"], &Y, &IMMEDIATES], &["x.png"]);
    // The header of an image of 30000x30000 pixels, and no pixels.
    let mut image = png(1, 1, ColorType::Rgba, &[0; 4]);
    image.splice(16..24, [0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    image.splice(29..33, [0x66, 0x27, 0xf8, 0xba]);
    place.write("large.png", image);
    assert_fails(
        &[&["--in", "x=large.png"], &Y, &IMMEDIATES],
        &["large.png", "30000x30000 pixels", "help: "],
    );
    let many = "x=rand:f32:99999999999999";
    assert_fails(&[&["--in", many], &Y, &IMMEDIATES], &["399999999999996 bytes", "help: "]);
    assert_fails(&[&X, &["--out", "y=no/y.npy"], &IMMEDIATES], &["no/y.npy", "no folder"]);
    std::fs::create_dir(place.path("d.npy")).unwrap();
    assert_fails(&[&X, &["--out", "y=d.npy"], &IMMEDIATES], &["d.npy", "folder"]);
    assert_fails(&[&["--in", "x=d.npy"], &Y, &IMMEDIATES], &["d.npy", "folder"]);
    place.scry(&["run", "none.wgsl"]).exits_with(1).prints(&["none.wgsl"]);
    place.write("bad.wgsl", "fn main( {}");
    place.scry(&["run", "bad.wgsl"]).exits_with(1).prints(&["bad.wgsl:1:", "┌─ bad.wgsl:1:"]);
}

#[test]
fn unclear_invocation_counts_are_rejected() {
    let place = place();
    let source = KERNEL.replace("y: array<f32>", "y: array<f32, 8>");
    place.write("k.wgsl", &source);
    assert_usage_error(
        &place,
        &[&X, &Y, &IMMEDIATES],
        &["cannot infer the number of invocations: no output is a runtime-sized array", "-n"],
    );
    let source = KERNEL.replace("@workgroup_size(64)", "@workgroup_size(8, 8)");
    place.write("k.wgsl", source);
    assert_usage_error(&place, &[&X, &Y, &IMMEDIATES], &["2-D", "-n WIDTHxHEIGHT"]);
    let alone = KERNEL.replace("params.a * x[id.x]", "params.a");
    place.write("k.wgsl", alone);
    let words = ["its shape cannot be inferred", "no input other than uniform", "--shape y="];
    assert_usage_error(&place, &[&Y, &IMMEDIATES], &words);
    place.write("k.wgsl", KERNEL.replace("<storage, read> x: array<f32>", "<uniform> x: vec4f"));
    assert_usage_error(&place, &[&["--in", "x=zeros:f32:4"], &Y, &IMMEDIATES], &words);
}

#[test]
fn json_option_applies_to_errors() {
    let place = place();
    let outcome = place.scry(&["run", "k.wgsl", "--json"]).exits_with(2);
    let document = outcome.json();
    assert_eq!(document["command"], "run");
    assert_eq!(document["error"]["kind"], "usage");
    assert!(document["error"]["message"].as_str().unwrap().contains("`x`, `y`"));
    assert_eq!(outcome.stderr, "", "the document has the message");
    let document = place.scry(&["run", "none.wgsl", "--json"]).exits_with(1).json();
    assert_eq!(document["error"]["kind"], "runtime");
}
