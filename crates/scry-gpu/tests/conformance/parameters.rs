//! Overrides and immediates.

use scry_gpu::{CompileOptions, Device, Element, Launch};

use crate::harness::{assert_says, on_each_device, refused, succeed};

const OVERRIDES: &str = "
    override COUNT: u32 = 3u;
    @id(7) override SCALE: f32;
    @id(12) override FLAG: bool = true;
    override OFFSET: i32 = -2;
    override DOUBLED = COUNT * 2u;
    override WIDTH: u32 = 4u;
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> words: array<u32, COUNT + 1>;

    @compute @workgroup_size(WIDTH, 2)
    fn main(@builtin(local_invocation_index) local: u32) {
        if local == 0u { words[COUNT] = 9u; }
        workgroupBarrier();
        if local == 0u {
            out[0] = COUNT;
            out[1] = u32(SCALE * 10.0);
            out[2] = u32(FLAG);
            out[3] = bitcast<u32>(OFFSET);
            out[4] = DOUBLED;
            out[5] = words[COUNT];
        }
        out[6u + local] = 1u;
    }";

fn check_overrides(gpu: &Device, options: &CompileOptions, want: [i32; 6], size: [u32; 3]) {
    let kernel = succeed(gpu.compile_with(OVERRIDES, options));
    assert_eq!(kernel.workgroup_size(), size);
    let out = succeed(gpu.alloc::<u32>(6 + 64));
    succeed(gpu.run(&kernel, &[&out], Launch::workgroups([1, 1, 1])));
    let got = succeed(out.download());
    assert_eq!(got[..6], want.map(|word| word as u32));
    assert_eq!(got[6..].iter().sum::<u32>(), size.iter().product());
}

#[test]
fn overrides_by_name_and_by_id() {
    on_each_device(|gpu| {
        let options = CompileOptions::new().set("7", 2.5);
        check_overrides(gpu, &options, [3, 25, 1, -2, 6, 9], [4, 2, 1]);
        let options = CompileOptions::new()
            .set("COUNT", 100.0)
            .set("7", 0.5)
            .set("12", 0.0)
            .set("OFFSET", -2_147_483_648.0)
            .set("WIDTH", 16.0);
        check_overrides(gpu, &options, [100, 5, 0, i32::MIN, 200, 9], [16, 2, 1]);
        let options = CompileOptions::new().set("SCALE", 1.0).set("FLAG", 0.0).set("DOUBLED", 1.0);
        check_overrides(gpu, &options, [3, 10, 0, -2, 1, 9], [4, 2, 1]);
        let options = CompileOptions::new()
            .set("COUNT", u32::MAX / (1 << 20))
            .set("SCALE", 2.5f32)
            .set("FLAG", false)
            .set("OFFSET", i32::MIN)
            .set("WIDTH", 8);
        check_overrides(gpu, &options, [4095, 25, 0, i32::MIN, 8190, 9], [8, 2, 1]);
    });
}

#[test]
fn override_errors_name_the_override() {
    let scale = || CompileOptions::new().set("SCALE", 1.0);
    let cases: [(CompileOptions, &[&str]); 12] = [
        (CompileOptions::new(), &["SCALE"]),
        (scale().set("MISSING", 1.0), &["MISSING"]),
        (scale().set("13", 1.0), &["13"]),
        (scale().set("OFSET", 1), &["no override `OFSET`", "`DOUBLED`", "mean `OFFSET`?"]),
        (scale().set("COUNT", true), &["`COUNT` of type u32 cannot be true: give a number"]),
        (scale().set("FLAG", 2), &["`FLAG` (@id(12)) of type bool cannot be 2: give true or"]),
        (scale().set("COUNT", -1.0), &["COUNT", "-1"]),
        (scale().set("COUNT", 1.5), &["COUNT", "1.5"]),
        (scale().set("COUNT", 4_294_967_296.0), &["COUNT", "4294967296"]),
        (scale().set("OFFSET", f64::NAN), &["OFFSET", "NaN"]),
        (scale().set("WIDTH", 0.0), &["@workgroup_size", "zero"]),
        (scale().set("WIDTH", 1e6), &["@workgroup_size", "16384"]),
    ];
    on_each_device(|gpu| {
        for (options, parts) in &cases {
            assert_says(&refused(gpu.compile_with(OVERRIDES, options)), parts);
        }
    });
}

/// Kernels that differ only in the label are cached as one; each error has its own label.
#[test]
fn labels_name_the_source_in_errors() {
    let wrong = "@compute @workgroup_size(1)\nfn main() { let x = y; }";
    let labelled = |label: &str| CompileOptions::new().label(label);
    on_each_device(|gpu| {
        for label in ["blur.wgsl", "kernels/edges.wgsl", "a\nb"] {
            let text = refused(gpu.compile_with(wrong, &labelled(label)));
            let place = format!("┌─ {}:2:21\n", label.replace('\n', " "));
            assert_says(&text, &[&place, "no definition in scope for identifier: `y`"]);
        }
        assert_says(&refused(gpu.compile(wrong)), &["┌─ wgsl:2:21\n"]);
        let text = refused(gpu.compile_with(OVERRIDES, &labelled("blur.wgsl").set("MISSING", 1)));
        assert!(text.starts_with("blur.wgsl: no override `MISSING`: "), "{text}");
        let options = |label| labelled(label).set("SCALE", 1.0);
        succeed(gpu.compile_with(OVERRIDES, &options("a.wgsl")));
        check_overrides(gpu, &options("b.wgsl"), [3, 10, 1, -2, 6, 9], [4, 2, 1]);
    });
}

#[test]
fn scalar_immediates() {
    let source = "
        var<immediate> factor: f32;
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(4)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= factor; }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let data = succeed(gpu.upload(&[1.0f32, 2.0, 3.0, 4.0]));
        // In sequence, each with its own value.
        for factor in [2.0f32, 10.0, 0.5] {
            succeed(gpu.run_with_immediates(&kernel, &[&data], 4, &factor));
        }
        assert_eq!(succeed(data.download()), [10.0, 20.0, 30.0, 40.0]);
        assert_says(&refused(gpu.run(&kernel, &[&data], 4)), &["factor"]);
        let text = refused(gpu.run_with_immediates(&kernel, &[&data], 4, &7u32));
        assert_says(&text, &["factor", "u32", "f32"]);
        let text = refused(gpu.run_with_immediates(&kernel, &[&data], 4, &[1.0f32; 2]));
        assert_says(&text, &["factor", "8", "4"]);
        let launch = Launch::invocations(4).immediate_bytes(vec![0; 3]);
        assert_says(&refused(gpu.run(&kernel, &[&data], launch)), &["factor", "3", "4"]);
        let launch = Launch::invocations(4).immediate_bytes(2.0f32.to_ne_bytes());
        succeed(gpu.run(&kernel, &[&data], launch));
        assert_eq!(succeed(data.download()), [20.0, 40.0, 60.0, 80.0]);
    });
}

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Step {
    direction: [f32; 3],
    count: u32,
    bounds: [[i32; 2]; 2],
}

#[test]
fn immediate_structures() {
    let source = "
        struct Step { direction: vec3<f32>, count: u32, bounds: array<vec2<i32>, 2> }
        var<immediate> step: Step;
        @group(0) @binding(0) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(1)
        fn main() {
            out[0] = step.direction.z;
            out[1] = f32(step.count);
            for (var i = 0; i < 2; i++) {
                out[2 + i] = f32(step.bounds[i].x * 10 + step.bounds[i].y);
            }
        }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let out = succeed(gpu.alloc::<f32>(4));
        let step = Step { direction: [1.0, 2.0, 3.0], count: 4, bounds: [[5, -6], [-7, 8]] };
        succeed(gpu.run_with_immediates(&kernel, &[&out], 1, &step));
        assert_eq!(succeed(out.download()), [3.0, 4.0, 44.0, -62.0]);
    });
}

#[test]
fn rejects_undeclared_immediates() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1) fn main() { out[0] = 1u; }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let out = succeed(gpu.alloc::<u32>(1));
        let text = refused(gpu.run_with_immediates(&kernel, &[&out], 1, &5u32));
        assert_says(&text, &["main", "immediate"]);
        assert_eq!(succeed(out.download()), [0]);
    });
}

/// A kernel with an immediate block of `words` words, which writes their sum for its workgroup.
fn full_block(words: usize) -> String {
    format!(
        "struct Block {{ words: array<u32, {words}> }}
        var<immediate> block: Block;
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1)
        fn main(@builtin(workgroup_id) group: vec3<u32>) {{
            var sum = 0u;
            for (var i = 0u; i < {words}u; i++) {{ sum += block.words[i] * (i + 1u); }}
            out[group.x] = sum + group.x;
        }}"
    )
}

#[test]
fn full_immediates_with_linearised_launch() {
    on_each_device(|gpu| {
        let words = gpu.info().limits.max_immediates as usize / 4;
        let kernel = succeed(gpu.compile(&full_block(words)));
        let block: Vec<u32> = (0..words as u32).map(|i| i * i + 5).collect();
        let sum: u32 = (1..).zip(&block).map(|(i, word)| i * word).sum();
        let bytes: Vec<u8> = block.iter().flat_map(|word| word.to_ne_bytes()).collect();
        for groups in [3, 70_001] {
            let out = succeed(gpu.alloc::<u32>(groups as usize));
            let launch = Launch::workgroups([groups, 1, 1]).immediate_bytes(bytes.clone());
            succeed(gpu.run(&kernel, &[&out], launch));
            let want: Vec<u32> = (0..groups).map(|group| sum + group).collect();
            assert!(succeed(out.download()) == want, "{groups} workgroups");
        }
        let text = refused(gpu.compile(&full_block(words + 1)));
        assert_says(&text, &["max_immediates", &(words * 4).to_string()]);
    });
}
