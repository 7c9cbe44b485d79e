//! Tests of `scry run` on every device.

use png::ColorType;

use crate::support::{
    Workplace, copy_kernel, floats, npy, png, read_floats, read_npy, read_png, repository,
};

fn example(path: &str) -> String {
    repository(path).to_str().expect("the repository has a plain path").to_owned()
}

#[test]
fn saxpy_reads_and_writes_npy() {
    Workplace::on_each_device(|place| {
        let kernel = example("examples/kernels/saxpy.wgsl");
        let y = npy("<f4", "(3,)", &floats(&[10.0, 20.0, 30.0]));
        place.write("x.npy", npy("<f4", "(3,)", &floats(&[1.0, 2.0, 3.0])));
        place.write("y.npy", &y);
        let arguments =
            ["run", &kernel, "--in", "x=x.npy", "--inout", "y=y.npy", "--immediate", "a=2.0"];
        let with_output = [&arguments[..], &["--out", "y=out.npy", "-n", "3"]].concat();
        place.scry(&with_output).exits_with(0).prints(&["-> out.npy", "3 invocations"]);
        let (header, values) = read_npy(&place.read("out.npy"));
        assert!(header.contains("'<f4'") && header.contains("(3,)"), "{header}");
        assert_eq!(values, [12.0, 24.0, 36.0]);
        assert_eq!(place.read("y.npy"), y, "the source is never written");
        // Without a file the result is shown, and without -n there is one invocation per element.
        place.scry(&arguments).exits_with(0).prints(&["3 invocations", "[12.0, 24.0, 36.0]"]);
    });
}

#[test]
fn edges_kernel_processes_an_image() {
    Workplace::on_each_device(|place| {
        // 6 wide and 4 high, black on the left and white on the right.
        let samples: Vec<u8> = (0..24).map(|i| if i % 6 < 3 { 0 } else { 255 }).collect();
        place.write("step.png", png(6, 4, ColorType::Grayscale, &samples));
        let kernel = example("examples/kernels/edges.wgsl");
        let arguments =
            ["run", &kernel, "--in", "src=step.png", "--out", "dst=edges.png", "--time", "--json"];
        let outcome = place.scry(&arguments).exits_with(0);
        for part in ["compile", "upload", "gpu", "download"] {
            assert!(outcome.stderr.contains(part), "{outcome:#?}");
            assert!(outcome.json()["result"]["seconds"][part].as_f64().unwrap() >= 0.0);
        }
        assert_eq!(outcome.json()["result"]["invocations"], serde_json::json!([6, 4, 1]));
        let (width, height, edges) = read_png(&place.path("edges.png"));
        assert_eq!((width, height), (6, 4));
        for row in edges.chunks(6) {
            assert_eq!((row[0], row[5]), (0, 0), "flat at the sides: {row:?}");
            assert!(row[2] > 100 && row[2] == row[3], "steep in the middle: {row:?}");
        }
        // --set takes precedence over the image's size.
        let narrow = [&arguments[..6], &["--set", "src_width=3"]].concat();
        place.scry(&narrow).exits_with(0);
        assert_ne!(read_png(&place.path("edges.png")).2, edges);
    });
}

#[test]
fn every_element_type_round_trips() {
    Workplace::on_each_device(|place| {
        let document = place.scry(&["devices", "--device", place.device(), "--json"]).json();
        let features = document["result"]["devices"][0]["features"].as_array().unwrap().clone();
        let types = [
            ("f32", "<f4", 4, ""),
            ("i32", "<i4", 4, ""),
            ("u32", "<u4", 4, ""),
            ("f16", "<f2", 2, "f16"),
            ("f64", "<f8", 8, "f64"),
            ("i64", "<i8", 8, "i64"),
            ("u64", "<u8", 8, "i64"),
        ];
        for (ty, descr, size, feature) in types {
            if !feature.is_empty() && !features.contains(&feature.into()) {
                eprintln!("skipped {ty}: {} lacks {feature}", place.device());
                continue;
            }
            let enable = if ty == "f16" { "enable f16;" } else { "" };
            place.write("copy.wgsl", format!("{enable}{}", copy_kernel(ty)));
            // As floats, normal numbers: hardware may change the bits of NaN and of subnormals.
            let data: Vec<u8> =
                (0..6 * size).map(|i| if i % size >= size - 2 { 0x30 } else { i as u8 }).collect();
            let file = npy(descr, "(2, 3)", &data);
            place.write("in.npy", &file);
            let arguments = ["run", "copy.wgsl", "--in", "src=in.npy", "--out", "dst=out.npy"];
            place.scry(&arguments).exits_with(0);
            assert_eq!(place.read("out.npy"), file, "{ty}: the files are alike to the byte");
        }
    });
}

#[test]
fn pixels_have_red_in_low_byte() {
    Workplace::on_each_device(|place| {
        place.write("copy.wgsl", copy_kernel("u32"));
        let pixels =
            [1, 2, 3, 4, 250, 251, 252, 253, 0, 0, 0, 255, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2];
        place.write("in.png", png(3, 2, ColorType::Rgba, &pixels));
        let arguments = ["run", "copy.wgsl", "--in", "src=in.png", "--out"];
        place.scry(&[&arguments[..], &["dst=out.bin"]].concat()).exits_with(0);
        assert_eq!(place.read("out.bin"), pixels);
        place.scry(&[&arguments[..], &["dst=out.png"]].concat()).exits_with(0);
        assert_eq!(read_png(&place.path("out.png")), (3, 2, pixels.to_vec()));
        place.write("copy.wgsl", copy_kernel("vec4f"));
        place.scry(&[&arguments[..], &["dst=out.npy"]].concat()).exits_with(0);
        let (header, values) = read_npy(&place.read("out.npy"));
        assert!(header.contains("(2, 3, 4)"), "{header}");
        let wanted: Vec<f32> = pixels.iter().map(|sample| f32::from(*sample) / 255.0).collect();
        assert_eq!(values, wanted);
    });
}

#[test]
fn structures_and_uniforms_use_raw_bytes() {
    Workplace::on_each_device(|place| {
        place.write(
            "k.wgsl",
            "struct Particle { position: vec3f, id: u32 }
         struct Params { scale: f32, shift: f32 }
         @group(0) @binding(0) var<uniform> params: Params;
         @group(1) @binding(2) var<storage, read_write> particles: array<Particle>;
         @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&particles) {
                 particles[id.x].position *= params.scale;
                 particles[id.x].position += params.shift;
                 particles[id.x].id += 1u;
             }
         }",
        );
        let particle = |p: f32, id: u32| [floats(&[p, p, p]), id.to_le_bytes().to_vec()].concat();
        place.write("p.bin", [particle(1.0, 10), particle(2.0, 20)].concat());
        place.write("params.npy", npy("<f4", "(2,)", &floats(&[3.0, 0.5])));
        let arguments =
            ["run", "k.wgsl", "--in", "params=params.npy", "--inout", "particles=p.bin"];
        place.scry(&[&arguments[..], &["--out", "particles=o.bin"]].concat()).exits_with(0);
        assert_eq!(place.read("o.bin"), [particle(3.5, 11), particle(6.5, 21)].concat());
        let rejected =
            place.scry(&[&arguments[..], &["--out", "particles=o.npy"]].concat()).exits_with(2);
        rejected.prints(&["array<Particle>", ".bin"]);
    });
}

#[test]
fn output_shapes_are_inferred() {
    Workplace::on_each_device(|place| {
        place.write(
            "k.wgsl",
            "@group(0) @binding(0) var<storage, read> x: array<u32>;
         @group(0) @binding(1) var<storage, read_write> histogram: array<atomic<u32>, 16>;
         @group(0) @binding(2) var<storage, read_write> pairs: array<vec2f>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&x) {
                 atomicAdd(&histogram[x[id.x] >> 28u], 1u);
                 pairs[id.x] = vec2f(f32(id.x), 1.0);
             }
         }",
        );
        let arguments = ["run", "k.wgsl", "--in", "x=rand:u32:10x30", "--seed", "7", "--out"];
        let arguments = [&arguments[..], &["histogram=h.npy", "--out", "pairs=p.npy"]].concat();
        let document = place.scry(&[&arguments[..], &["--json"]].concat()).exits_with(0).json();
        // The histogram has its own length; the other output has the length of the input.
        assert_eq!(document["result"]["outputs"][0]["shape"], serde_json::json!([16]));
        assert_eq!(document["result"]["outputs"][1]["shape"], serde_json::json!([10, 30, 2]));
        assert_eq!(document["result"]["invocations"], serde_json::json!([300, 1, 1]));
        let counts = place.read("h.npy");
        let counts: u32 = counts[counts.len() - 64..].chunks(4).map(|c| u32::from(c[0])).sum();
        assert_eq!(counts, 300);
        let (_, pairs) = read_npy(&place.read("p.npy"));
        assert_eq!(pairs[598..], [299.0, 1.0]);
        // The seed determines the numbers.
        let first = place.read("h.npy");
        place.scry(&arguments).exits_with(0);
        assert_eq!(place.read("h.npy"), first);
        let other: Vec<&str> = arguments.iter().map(|a| if *a == "7" { "8" } else { a }).collect();
        place.scry(&other).exits_with(0);
        assert_ne!(place.read("h.npy"), first);
    });
}

#[test]
fn shape_option_sets_output_shape() {
    Workplace::on_each_device(|place| {
        place.write(
            "k.wgsl",
            "override WIDTH: u32;
         @group(0) @binding(0) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
             let at = id.y * WIDTH + id.x;
             if id.x < WIDTH && at < arrayLength(&out) {
                 out[at] = f32(id.x) / f32(WIDTH - 1u);
             }
         }",
        );
        let arguments = ["run", "k.wgsl", "--set", "WIDTH=5", "--out", "out=ramp.png"];
        place
            .scry(&[&arguments[..], &["--shape", "out=3x5"]].concat())
            .exits_with(0)
            .prints(&["5 wide × 3 high = 15 invocations"]);
        let (width, height, samples) = read_png(&place.path("ramp.png"));
        assert_eq!((width, height), (5, 3));
        assert_eq!(samples[10..], [0, 64, 128, 191, 255]);
        let flat =
            ["run", "k.wgsl", "--set", "WIDTH=5", "--out", "out=ramp.bin", "--shape", "out=15"];
        place.scry(&flat).exits_with(2).prints(&["-n WIDTHxHEIGHT"]);
        place.scry(&[&flat[..], &["-n", "5x3"]].concat()).exits_with(0);
        assert_eq!(read_floats(&place.read("ramp.bin"))[5..10], [0.0, 0.25, 0.5, 0.75, 1.0]);
    });
}

#[test]
fn launches_beyond_65535_workgroups_are_complete() {
    Workplace::on_each_device(|place| {
        place.write(
            "k.wgsl",
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&out) { out[id.x] = id.x + 1u; }
         }",
        );
        place.scry(&["run", "k.wgsl", "--out", "out=o.bin", "--shape", "out=70000"]).exits_with(0);
        let bytes = place.read("o.bin");
        let numbers = bytes.chunks_exact(4).map(|n| u32::from_le_bytes(n.try_into().unwrap()));
        assert!(numbers.eq(1..=70_000));
    });
}
