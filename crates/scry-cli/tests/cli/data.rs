//! Tests of the data of `scry run`: element types, archives, streams, images, generators.

use std::io::Write;
use std::process::{Output, Stdio};

use png::{BitDepth, ColorType};

use crate::support::{Workplace, copy_kernel, floats, npy, read_npy};
use crate::transcript::Transcript;

/// Returns a workplace with `copy.wgsl`, which copies arrays of f32, and without any driver.
fn place() -> Workplace {
    let place = Workplace::without_driver();
    place.write("copy.wgsl", copy_kernel("f32"));
    place
}

/// Returns the arguments of `scry run copy.wgsl`, followed by `arguments`.
fn copy_args<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run", "copy.wgsl"], arguments].concat()
}

/// Returns the arguments that copy `in.npy` to `out.npy`, followed by `arguments`.
fn copy_npy_args<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    copy_args(&[&["--in", "src=in.npy", "--out", "dst=out.npy"], arguments].concat())
}

/// Runs the program with these bytes on standard input.
fn run_with_stdin(place: &Workplace, arguments: &[&str], stdin: &[u8]) -> Output {
    let mut command = place.command(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    // A command that fails early does not read its input.
    let _ = child.stdin.take().expect("piped").write_all(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn narrow_types_are_widened() {
    let place = place();
    let cases: [(&str, &str, &[u8], [f32; 3]); 6] = [
        ("f32", "|u1", &[0, 1, 255], [0.0, 1.0, 255.0]),
        ("f32", "|i1", &[0, 1, 255], [0.0, 1.0, -1.0]),
        ("f32", "<i2", &[1, 0, 0, 1, 255, 255], [1.0, 256.0, -1.0]),
        ("f32", ">u2", &[0, 1, 1, 0, 255, 255], [1.0, 256.0, 65535.0]),
        ("f32", "|b1", &[0, 1, 1], [0.0, 1.0, 1.0]),
        ("f32", "<f2", &[0, 0x3c, 0, 0xc0, 0, 0x38], [1.0, -2.0, 0.5]),
    ];
    for (ty, descr, data, wanted) in cases {
        place.write("in.npy", npy(descr, "(3,)", data));
        place.scry(&copy_npy_args(&[])).exits_with(0);
        let (header, values) = read_npy(&place.read("out.npy"));
        assert!(header.contains("'<f4'") && header.contains("(3,)"), "{header}");
        assert_eq!(values, wanted, "{descr} to {ty}");
    }
    place.write("copy.wgsl", copy_kernel("u32"));
    place.write("in.npy", npy("|b1", "(3,)", &[1, 0, 1]));
    place.scry(&copy_npy_args(&[])).exits_with(0);
    assert_eq!(place.read("out.npy")[128..], [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    place.write("copy.wgsl", copy_kernel("i32"));
    place.write("in.npy", npy("<i2", "(1,)", &[0, 0x80]));
    place.scry(&copy_npy_args(&[])).exits_with(0);
    assert_eq!(place.read("out.npy")[128..], (-32768i32).to_le_bytes());
}

#[test]
fn integers_of_16_bits_are_bound() {
    let place = place();
    for (ty, descr) in [("i16", "<i2"), ("u16", "<u2")] {
        place.write("copy.wgsl", format!("enable wgpu_int16;\n{}", copy_kernel(ty)));
        let file = npy(descr, "(2, 2)", &[1, 0, 255, 127, 0, 1, 7, 0]);
        place.write("in.npy", &file);
        place.scry(&copy_npy_args(&[])).exits_with(0);
        assert_eq!(place.read("out.npy"), file, "{ty}");
        place.write("in.npy", npy("<i4", "(1,)", &[9, 0, 0, 0]));
        let words = ["--in src=in.npy` holds i32", "--cast src="];
        place.scry(&copy_npy_args(&[])).exits_with(2).prints(&words);
        place.scry(&copy_npy_args(&["--cast", &format!("src={ty}")])).exits_with(0);
        assert_eq!(place.read("out.npy"), npy(descr, "(1,)", &[9, 0]), "{ty}");
        let generated = format!("src=ones:{ty}:3");
        let outcome = place.scry(&copy_args(&["--in", &generated, "--out", "dst"])).exits_with(0);
        outcome.prints(&["[1, 1, 1]"]);
    }
}

#[test]
fn casts_convert_inputs_and_outputs() {
    let place = place();
    let doubles: Vec<u8> = [0.1f64, 2.5, -1.0].into_iter().flat_map(f64::to_le_bytes).collect();
    place.write("in.npy", npy("<f8", "(3,)", &doubles));
    place.scry(&copy_npy_args(&[])).exits_with(2).prints(&[
        "f64",
        "--cast src=f32",
        "astype(\"float32\")",
    ]);
    place.scry(&copy_npy_args(&["--cast", "src=f32"])).exits_with(0);
    assert_eq!(read_npy(&place.read("out.npy")).1, [0.1, 2.5, -1.0]);
    // NumPy's type names are accepted too, and floats are truncated to integers.
    let both = ["--cast", "src=float32", "--cast", "dst=int16"];
    place.scry(&copy_npy_args(&both)).exits_with(0).prints(&["-> out.npy as i16"]);
    assert_eq!(place.read("out.npy"), npy("<i2", "(3,)", &[0, 0, 2, 0, 255, 255]));
    let outside = ["--cast", "src=f32", "--cast", "dst=u8"];
    let words = ["--out dst=out.npy with --cast dst=u8", "1 of 3 f32 values", "-1.0 at [2]"];
    place.scry(&copy_npy_args(&outside)).exits_with(1).prints(&words);
    place.write("copy.wgsl", copy_kernel("i32"));
    let words = ["--in src=in.npy", "--cast src=i32"];
    place.scry(&copy_npy_args(&[])).exits_with(2).prints(&words);
    place.write("in.npy", npy("<f8", "(1,)", &3e9f64.to_le_bytes()));
    let words = ["src=in.npy", "1 of 1 f64 values are out of range", "3000000000.0 at [0]"];
    place.scry(&copy_npy_args(&["--cast", "src=i32"])).exits_with(1).prints(&words);
}

#[test]
fn arrays_in_fortran_order_are_transposed() {
    let place = place();
    let file = npy("<f4", "(2, 3)", &floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let at = file.windows(5).position(|part| part == b"False").unwrap();
    let mut fortran = file.clone();
    fortran.splice(at..at + 5, *b"True ");
    place.write("in.npy", fortran);
    place.scry(&copy_npy_args(&[])).exits_with(0);
    let (header, values) = read_npy(&place.read("out.npy"));
    assert!(header.contains("(2, 3)") && header.contains("False"), "{header}");
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn empty_arrays_run_nothing() {
    Workplace::on_each_device(|place| {
        place.write("copy.wgsl", copy_kernel("f32"));
        let empty = npy("<f4", "(0, 4)", &[]);
        place.write("in.npy", &empty);
        place.scry(&copy_npy_args(&[])).exits_with(0).prints(&["0 invocations"]);
        assert_eq!(place.read("out.npy"), empty);
    });
}

#[test]
fn archives_hold_several_arrays() {
    let place = place();
    place.write(
        "two.wgsl",
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @group(0) @binding(2) var<storage, read_write> n: array<u32>;
         @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
             y[id.x] = 2.0 * x[id.x];
             n[id.x] = id.x;
         }",
    );
    let outputs = ["--out", "y=o.npz", "--out", "n=o.npz:count", "--cast", "n=u8"];
    let two = ["run", "two.wgsl", "--in", "x=arange:f32:3"];
    place
        .scry(&[&two[..], &outputs].concat())
        .exits_with(0)
        .prints(&["o.npz:y", "o.npz:count as u8"]);
    place
        .scry(&copy_args(&["--in", "src=o.npz:y", "--out", "dst"]))
        .exits_with(0)
        .prints(&["[0.0, 2.0, 4.0]"]);
    let narrow = copy_args(&["--in", "src=o.npz:count", "--out", "dst"]);
    place.scry(&narrow).exits_with(0).prints(&["[0.0, 1.0, 2.0]"]);
    let unclear = place.scry(&copy_args(&["--in", "src=o.npz", "--out", "dst"])).exits_with(1);
    unclear.prints(&["o.npz: the archive has several arrays", "y, count"]);
    let unknown = place.scry(&copy_args(&["--in", "src=o.npz:z", "--out", "dst"])).exits_with(1);
    unknown.prints(&["o.npz: there is no array `z`, only y, count"]);
    let twice = ["--out", "y=o.npz:a", "--out", "n=o.npz:a"];
    let words = ["o.npz:a is the destination of two outputs"];
    place.scry(&[&two[..], &twice].concat()).exits_with(2).prints(&words);
    // Without a name, the array that is named like the buffer.
    place.scry(&copy_args(&["--in", "src=arange:f32:2", "--out", "dst=p.npz:src"])).exits_with(0);
    place
        .scry(&copy_args(&["--in", "src=p.npz", "--out", "dst"]))
        .exits_with(0)
        .prints(&["[0.0, 1.0]"]);
    place.write("bad.npz", b"PK\x03\x04 and nothing");
    let bad = place.scry(&copy_args(&["--in", "src=bad.npz", "--out", "dst"])).exits_with(1);
    bad.prints(&["bad.npz: it is not an .npz file"]);
}

/// The input is an endless stream.
#[cfg(unix)]
#[test]
fn endless_streams_are_rejected() {
    let place = place();
    let sized = ["--in", "src=bin:/dev/zero", "--shape", "src=16", "--out", "dst"];
    let words = ["`--in src=bin:/dev/zero` has more than the 64 bytes of --shape src=16", "help: "];
    place.scry(&copy_args(&sized)).exits_with(2).prints(&words);
    place.write(
        "fixed.wgsl",
        "@group(0) @binding(0) var<storage, read_write> x: array<f32, 3>;
         @compute @workgroup_size(1) fn main() { x[0] += 1.0; }",
    );
    let fixed = ["run", "fixed.wgsl", "-n", "1", "--inout", "x=bin:-"];
    let mut command = place.command(&fixed);
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    let output = command.stdin(Stdio::from(zeros)).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("more than the 12 bytes of `x: array<f32, 3>`"), "{said}");
    assert!(run_with_stdin(&place, &fixed, &[0; 13]).status.code() == Some(2));
    assert!(run_with_stdin(&place, &fixed, &[0; 12]).status.success());
}

#[test]
fn standard_streams_are_files() {
    let place = place();
    let file = npy("<f4", "(2,)", &floats(&[1.5, -2.0]));
    let piped = run_with_stdin(&place, &copy_args(&["--in", "src=-", "--out", "dst=-"]), &file);
    assert!(piped.status.success(), "{piped:?}");
    assert_eq!(piped.stdout, file);
    let said = String::from_utf8(piped.stderr).unwrap();
    assert!(said.contains("dst  array<f32>  2  -> -"), "{said}");
    let raw = ["--in", "src=bin:-", "--out", "dst=bin:-"];
    let piped = run_with_stdin(&place, &copy_args(&raw), &floats(&[3.0, 4.0]));
    assert_eq!(piped.stdout, floats(&[3.0, 4.0]));
    let archive =
        run_with_stdin(&place, &copy_args(&["--in", "src=-", "--out", "dst=npz:-"]), &file);
    let again = ["--in", "src=npz:-", "--out", "dst=-"];
    assert_eq!(run_with_stdin(&place, &copy_args(&again), &archive.stdout).stdout, file);
    let short =
        run_with_stdin(&place, &copy_args(&["--in", "src=-", "--out", "dst=-"]), &file[..130]);
    assert_eq!((short.status.code(), short.stdout.as_slice()), (Some(1), &[][..]));
    let said = String::from_utf8(short.stderr).unwrap();
    assert!(said.contains("standard input: the file is truncated"), "{said}");
    let json = copy_args(&["--in", "src=ones:f32:1", "--out", "dst=-", "--json"]);
    place.scry(&json).exits_with(2).prints(&["--json both write to standard output"]);
}

#[test]
fn outputs_are_checked_before_reading() {
    let place = place();
    // Neither the kernel nor the data exists.
    let arguments = ["run", "none.wgsl", "--in", "src=none.npy", "--out"];
    let fails = |output: &str, words: &[&str]| {
        let outcome = place.scry(&[&arguments[..], &[output]].concat()).exits_with(1);
        assert!(!outcome.stderr.contains("none."), "{outcome:#?}");
        assert!(!outcome.stderr.contains(".scry-"), "no temporary names: {outcome:#?}");
        outcome.prints(words);
    };
    fails("dst=/nonexistent/x.npy", &["/nonexistent/x.npy: there is no folder /nonexistent"]);
    fails("dst=copy.wgsl/x.npy", &["there is no folder copy.wgsl"]);
    if cfg!(target_os = "linux") {
        fails("dst=/proc/x.npy", &["/proc/x.npy: it cannot be written: "]);
    }
    let long = format!("dst={}.npy", "x".repeat(300));
    fails(&long, &["it cannot be written: "]);
    // A check leaves no file behind.
    place.scry(&[&arguments[..], &["dst=new.npy"]].concat()).exits_with(1);
    assert!(!place.path("new.npy").exists());
}

#[cfg(unix)]
#[test]
fn outputs_are_written_through_links() {
    use std::os::unix::fs::symlink;
    let place = place();
    place.write("real.npy", b"old");
    symlink("real.npy", place.path("link.npy")).unwrap();
    symlink("later.npy", place.path("dangling.npy")).unwrap();
    for (link, real) in [("link.npy", "real.npy"), ("dangling.npy", "later.npy")] {
        let output = format!("dst={link}");
        place.scry(&copy_args(&["--in", "src=ones:f32:1", "--out", &output])).exits_with(0);
        assert!(std::fs::symlink_metadata(place.path(link)).unwrap().is_symlink());
        assert_eq!(place.read(real), npy("<f4", "(1,)", &floats(&[1.0])));
    }
    let read = ["--in", "src=real.npy", "--out", "dst=link.npy"];
    place.scry(&copy_args(&read)).exits_with(2).prints(&["is also an input"]);
}

/// Returns bit depth, colour type and samples of an image.
fn read_png(file: &[u8]) -> (BitDepth, ColorType, Vec<u8>) {
    let decoder = png::Decoder::new(std::io::Cursor::new(file));
    let mut reader = decoder.read_info().expect("it is an image");
    let mut samples = vec![0; reader.output_buffer_size().expect("small")];
    let frame = reader.next_frame(&mut samples).expect("it is whole");
    (frame.bit_depth, frame.color_type, samples)
}

#[test]
fn images_have_8_or_16_bits() {
    let place = place();
    place.write("in.npy", npy("<f4", "(1, 3)", &floats(&[0.0, 0.5, 1.0])));
    let image = ["--in", "src=in.npy", "--out", "dst=o.png"];
    place.scry(&copy_args(&image)).exits_with(0);
    let grey = ColorType::Grayscale;
    assert_eq!(read_png(&place.read("o.png")), (BitDepth::Eight, grey, vec![0, 128, 255]));
    let deep = [&image[..], &["--cast", "dst=u16"]].concat();
    place.scry(&copy_args(&deep)).exits_with(0).prints(&["-> o.png as u16"]);
    let wanted = (BitDepth::Sixteen, grey, vec![0, 0, 128, 0, 255, 255]);
    assert_eq!(read_png(&place.read("o.png")), wanted);
    // 16-bit samples are read with full precision.
    place.scry(&copy_args(&["--in", "src=o.png", "--out", "dst=again.npy"])).exits_with(0);
    assert_eq!(read_npy(&place.read("again.npy")).1, [0.0, 32768.0 / 65535.0, 1.0]);
    let wrong = [&image[..], &["--cast", "dst=f64"]].concat();
    place.scry(&copy_args(&wrong)).exits_with(2).prints(&["samples of u8 or u16, not f64"]);
    place.write("copy.wgsl", copy_kernel("u32"));
    let packed = ["--in", "src=zeros:u32:2x2", "--out", "dst=p.png", "--cast", "dst=u16"];
    place.scry(&copy_args(&packed)).exits_with(2).prints(&["pixels of 8 bits"]);
}

#[test]
fn non_finite_pixels_are_reported() {
    let place = place();
    let values = [0.0, 1.0, 0.5, 2.0, f32::NAN, f32::INFINITY];
    place.write("in.npy", npy("<f4", "(2, 3)", &floats(&values)));
    let image = copy_args(&["--in", "src=in.npy", "--out", "dst=o.png"]);
    let outcome = place.scry(&image).exits_with(0);
    let note = "note: --out dst=o.png: 2 of 6 values are not finite; the first is NaN at column 1, \
                row 1; NaN and -inf are written as 0, inf as 1\n";
    assert_eq!(outcome.stderr, note);
    assert_eq!(read_png(&place.read("o.png")).2, [0, 255, 128, 255, 0, 255]);
    let document = place.scry(&[&image[..], &["--json"]].concat()).exits_with(0).json();
    let non_finite = &document["result"]["outputs"][0]["not_finite"];
    assert_eq!(*non_finite, serde_json::json!({ "count": 2, "first": [1, 1] }));
    place.write("in.npy", npy("<f4", "(1, 1)", &floats(&[2.0])));
    assert_eq!(place.scry(&image).exits_with(0).stderr, "");
}

#[test]
fn data_errors_match_transcript() {
    let mut transcript = Transcript::new("data");
    transcript.place.write("copy.wgsl", copy_kernel("f32"));
    transcript.place.write(
        "fill.wgsl",
        "override src_width: u32;
         @group(0) @binding(0) var<storage, read> src: array<f32>;
         @group(0) @binding(1) var<storage, read_write> dst: array<f32>;
         @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
             dst[id.y * src_width + id.x] = src[0];
         }",
    );
    transcript.place.write("d.npy", npy("<f8", "(2,)", &[0; 16]));
    transcript.place.write("s.npy", npy("|S3", "(2,)", &[0; 6]));
    transcript.place.write("i.png", crate::support::png(3, 2, ColorType::Grayscale, &[0; 6]));
    transcript.run(&["run", "copy.wgsl", "--in", "src=arange:f32:2x3", "--out", "dst"]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=ones:f32:9", "--out", "dst"]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=ones:u8:9", "--out", "dst"]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=arange:f32", "--out", "dst"]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=d.npy", "--out", "dst"]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=d.npy", "--out", "dst", "--cast", "src=u8"]);
    transcript.run(&[
        "run",
        "copy.wgsl",
        "--in",
        "src=d.npy",
        "--out",
        "dst",
        "--cast",
        "src=float",
    ]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=s.npy", "--out", "dst"]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=d.jpg", "--out", "dst"]);
    transcript.run(&["run", "copy.wgsl", "--in", "src=arange:f32:4", "--out", "dst", "-n", "0x10"]);
    transcript.run(&["run", "fill.wgsl", "--in", "src=i.png", "--out", "dst"]);
    transcript.run(&["run", "fill.wgsl", "--in", "scr=i.png", "--out", "dst"]);
    transcript.run(&["run", "fill.wgsl", "--in", "src=i.png", "--out", "dst=no/o.png"]);
    transcript.compare();
}

/// Data for every kernel of a file is read more than once, which a stream does not support.
#[test]
fn streams_are_read_once() {
    let place = place();
    let two = copy_kernel("f32").replace(
        "@compute",
        "@compute @workgroup_size(1) fn other(\
        @builtin(global_invocation_id) id: vec3u) { dst[id.x] = src[id.x]; }\n@compute",
    );
    place.write("two.wgsl", two);
    let file = npy("<f4", "(2,)", &floats(&[1.5, -2.0]));
    let verify = ["verify", "two.wgsl", "--device", "null", "--in", "src=-"];
    let outcome = run_with_stdin(&place, &verify, &file);
    let said = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{said}");
    assert!(said.contains("standard input can be read only once"), "{said}");
}
