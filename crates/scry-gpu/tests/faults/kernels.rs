//! Tests of faults 8 to 14: sources that are invalid, above a limit, or huge, on each device.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use scry_gpu::testing::{null_info, observed};
use scry_gpu::{CompileOptions, Device, Features, GpuError};
use scry_ir::ShaderErrorKind;
use scry_test_support::{STEP, devices, null, root};

use super::devices::{check_works, devices_and_null};

/// Returns the error with which `gpu` rejects the source.
fn compile_error(gpu: &Device, source: &str, options: &CompileOptions) -> GpuError {
    match gpu.compile_with(source, options) {
        Err(error) => error,
        Ok(kernel) => panic!("{gpu:?} compiles {kernel:?} from {source}"),
    }
}

/// Checks that all devices reject the source with the same error of this kind; returns its text.
fn assert_rejected_alike(source: &str, options: &CompileOptions, kind: &ShaderErrorKind) -> String {
    let mut messages = Vec::new();
    for gpu in devices_and_null() {
        let error = compile_error(&gpu, source, options);
        let GpuError::Shader(shader) = &error else {
            panic!("{gpu:?}: {error:?}");
        };
        assert_eq!(&shader.kind, kind, "{error}");
        messages.push(error.to_string());
    }
    assert!(messages.iter().all(|message| message == &messages[0]), "{messages:?}");
    messages.swap_remove(0)
}

fn default_options() -> CompileOptions {
    CompileOptions::new()
}

/// Checks that an error has a line and a column, unless the source lacks an entry point.
fn assert_located(source: &str, error: &GpuError) {
    let GpuError::Shader(shader) = error else { panic!("{source:?}: {error:?}") };
    let needs_location = shader.kind != ShaderErrorKind::EntryPoint;
    assert!(shader.location.is_some() || !needs_location, "{source:?}: {error}");
}

#[test]
fn fault_08_malformed_sources_have_located_errors() {
    let gpu = null();
    let file = root().join("examples/kernels/saxpy.wgsl");
    let source = fs::read_to_string(file).unwrap();
    let ends = source.char_indices().map(|(at, _)| at);
    for end in ends.clone().step_by(7) {
        if let Err(error) = gpu.compile(&source[..end]) {
            assert_located(&source[..end], &error);
        }
    }
    for at in ends.step_by(5).filter(|at| source.as_bytes()[*at].is_ascii()) {
        let mut flipped = source.clone().into_bytes();
        flipped[at] ^= 0x10;
        let flipped = String::from_utf8(flipped).unwrap();
        if let Err(error) = gpu.compile(&flipped) {
            assert_located(&flipped, &error);
        }
    }
    for source in ["\0", "\u{feff}", "\u{feff}fn", "(((((((", "\u{202e}", "/*"] {
        assert_located(source, &compile_error(&gpu, source, &default_options()));
    }
    let depth = 100_000;
    let nested = format!("const x = {}1{};", "(".repeat(depth), ")".repeat(depth));
    let error = compile_error(&gpu, &nested, &default_options());
    assert_located(&nested[..20], &error);
    check_works(&gpu);
}

#[test]
fn fault_09_missing_or_ambiguous_entry_point() {
    let entry = ShaderErrorKind::EntryPoint;
    assert_rejected_alike("fn helper() {}", &default_options(), &entry);
    assert_rejected_alike("", &default_options(), &entry);
    let two = "@compute @workgroup_size(1) fn one() {} @compute @workgroup_size(1) fn two() {}";
    let message = assert_rejected_alike(two, &default_options(), &entry);
    assert!(message.contains("one") && message.contains("two"), "{message}");
    let message = assert_rejected_alike(two, &default_options().entry("three"), &entry);
    assert!(message.contains("three") && message.contains("one"), "{message}");
    let vertex = "@vertex fn corner() -> @builtin(position) vec4<f32> { return vec4<f32>(); }";
    assert_rejected_alike(vertex, &default_options(), &entry);
    for gpu in devices_and_null() {
        assert_eq!(gpu.compile_named(two, "two").unwrap().entry_point(), "two");
    }
}

#[test]
fn fault_10_graphics_constructs_are_rejected() {
    let texture = "
        @group(0) @binding(0) var picture: texture_2d<f32>;
        @compute @workgroup_size(1) fn look() { let size = textureDimensions(picture); }";
    let message =
        assert_rejected_alike(texture, &default_options(), &ShaderErrorKind::UnsupportedConstruct);
    assert!(message.contains("texture"), "{message}");
}

/// Returns the source of a kernel that uses the feature.
fn kernel_using(feature: Features) -> String {
    let (enable, statement) = if feature == Features::F16 {
        ("enable f16;", "x[0] = u32(f16(x[1]) * 2h);")
    } else if feature == Features::F64 {
        ("", "x[0] = u32(f64(x[1]) * 2.5lf);")
    } else if feature == Features::I64 {
        ("", "x[0] = u32(u64(x[1]) * 5lu);")
    } else {
        ("enable subgroups;", "x[0] = subgroupAdd(x[1]);")
    };
    format!(
        "{enable} @group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(32) fn use_it() {{ {statement} }}"
    )
}

#[test]
fn fault_10_missing_features_are_named() {
    let mut info = null_info();
    info.features = Features::empty();
    let mut all = devices();
    all.push(observed(info).0);
    all.push(null());
    for gpu in all {
        let features = [Features::F16, Features::F64, Features::I64, Features::SUBGROUPS];
        for feature in features {
            let source = kernel_using(feature);
            if gpu.info().features.contains(feature) {
                gpu.compile(&source).unwrap();
                continue;
            }
            match compile_error(&gpu, &source, &default_options()) {
                GpuError::Unsupported(error) => {
                    assert_eq!((error.kernel(), error.features()), ("use_it", feature));
                    assert!(!error.help().is_empty());
                }
                other => panic!("{gpu:?}, {feature}: {other}"),
            }
        }
        check_works(&gpu);
    }
}

#[test]
fn fault_11_invalid_workgroup_sizes() {
    let sized = |size: &str| format!("@compute @workgroup_size({size}) fn sized() {{}}");
    for gpu in devices_and_null() {
        for size in ["0", "1, 0", "4, 4, 0"] {
            let error = compile_error(&gpu, &sized(size), &default_options());
            assert!(matches!(error, GpuError::Shader(_)), "{gpu:?}, {size}: {error}");
        }
        let limits = gpu.info().limits;
        let [x, y, z] = limits.max_workgroup_size.map(u64::from);
        let max = u64::from(limits.max_workgroup_invocations);
        let limit_of = |size: &str| match compile_error(&gpu, &sized(size), &default_options()) {
            GpuError::TooLarge(error) => error.limit_name(),
            other => panic!("{gpu:?}, {size}: {other}"),
        };
        for size in [format!("{}", x + 1), format!("1, {}", y + 1), format!("1, 1, {}", z + 1)] {
            let name = limit_of(&size);
            assert!(name.starts_with("max_workgroup_"), "{size}: {name}");
        }
        if x * y > max {
            assert_eq!(limit_of(&format!("{x}, {y}")), "max_workgroup_invocations");
        }
    }
}

#[test]
fn fault_11_workgroup_memory_beyond_the_limit() {
    let source = "
        override WORDS: u32 = 16;
        var<workgroup> words: array<u32, WORDS>;
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn keep() { words[x[0]] = x[1]; x[2] = words[x[3]]; }";
    for gpu in devices_and_null() {
        let max = gpu.info().limits.max_workgroup_memory;
        gpu.compile(source).unwrap();
        let too_many = default_options().set("WORDS", f64::from(max / 4 + 1));
        match compile_error(&gpu, source, &too_many) {
            GpuError::TooLarge(error) => assert_eq!(error.limit_name(), "max_workgroup_memory"),
            other => panic!("{gpu:?}: {other}"),
        }
        let none = compile_error(&gpu, source, &default_options().set("WORDS", 0.0));
        assert!(matches!(none, GpuError::Shader(_)), "{none}");
    }
}

#[test]
fn fault_12_invalid_overrides() {
    let source = "
        override count: u32;
        override factor: f32 = 1.0;
        @id(7) override flag: bool = true;
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn choose() {
            if flag { x[0] = f32(count) * factor; }
        }";
    let kind = ShaderErrorKind::Override;
    let options_with =
        |name: &str, value: f64| default_options().set("count", 1.0).set(name, value);
    let message = assert_rejected_alike(source, &default_options(), &kind);
    assert!(message.contains("count"), "{message}");
    let message = assert_rejected_alike(source, &options_with("conut", 2.0), &kind);
    assert!(message.contains("conut"), "{message}");
    for (name, value) in [
        ("count", -1.0),
        ("count", 1.5),
        ("count", 4_294_967_296.0),
        ("count", f64::NAN),
        ("count", f64::INFINITY),
        ("factor", f64::NAN),
        ("factor", f64::NEG_INFINITY),
        ("factor", 1e300),
        ("7", 2.0),
        ("7", f64::NAN),
        ("8", 1.0),
    ] {
        let options = match name {
            "count" => default_options().set(name, value),
            _ => options_with(name, value),
        };
        let message = assert_rejected_alike(source, &options, &kind);
        assert!(message.contains(name) || message.contains("flag"), "{name} = {value}: {message}");
    }
    for gpu in devices_and_null() {
        gpu.compile_with(source, &options_with("factor", -0.5).set("7", 0.0)).unwrap();
    }
}

#[test]
fn fault_13_invalid_arithmetic_is_defined() {
    let source = "
        @group(0) @binding(0) var<storage, read> i: array<i32>;
        @group(0) @binding(1) var<storage, read> f: array<f32>;
        @group(0) @binding(2) var<storage, read_write> o: array<i32>;
        @compute @workgroup_size(1) fn odd() {
            o[0] = i[0] / i[1];
            o[1] = i[0] % i[1];
            o[2] = i[2] / i[3];
            o[3] = i[2] % i[3];
            o[4] = i32(u32(i[0]) / u32(i[1]));
            o[5] = i32(u32(i[0]) % u32(i[1]));
            o[6] = i[4] << u32(i[5]);
            o[7] = i[2] >> u32(i[5]);
            o[8] = i32(f[0]);
            o[9] = i32(f[1]);
            o[10] = i32(u32(f[1]));
            o[11] = i32(u32(f[2]));
            o[12] = i32(f[3]);
            o[13] = i32(u32(f[3]));
            o[14] = abs(i[2]);
            o[15] = -i[2];
        }";
    let integers = [17, 0, i32::MIN, -1, 3, 33];
    let floats = [f32::INFINITY, 1e30, f32::NEG_INFINITY, f32::NAN];
    for gpu in devices() {
        let (i, f) = (gpu.upload(&integers).unwrap(), gpu.upload(&floats).unwrap());
        let o = gpu.upload(&[77i32; 16]).unwrap();
        gpu.dispatch(source, &[&i, &f, &o], 1).unwrap();
        let o = o.download().unwrap();
        assert_eq!(o[..6], [17, 0, i32::MIN, 0, 17, 0], "{gpu:?}");
        assert_eq!(o[6..8], [6, i32::MIN >> 1], "{gpu:?}");
        // The largest value of the type, or the largest that `f32` represents.
        let largest = |x: i32| x == i32::MAX || x == 2_147_483_520;
        assert!(largest(o[8]) && largest(o[9]), "{gpu:?}: {o:?}");
        assert!([u32::MAX, 4_294_967_040].contains(&(o[10] as u32)), "{gpu:?}: {o:?}");
        assert_eq!(o[11], 0, "{gpu:?}: {o:?}");
        // `o[12]` and `o[13]` may be anything: WGSL leaves the conversion of NaN undefined.
        assert_eq!(o[14..], [i32::MIN, i32::MIN], "{gpu:?}");
        check_works(&gpu);
    }
}

/// Maximum duration of a compilation, with a margin for a busy machine.
const MAX_COMPILATION: Duration = Duration::from_secs(60);

/// Checks that the source compiles or is rejected as too complex, within [`MAX_COMPILATION`].
fn assert_finishes(gpu: &Device, what: &str, source: &str) {
    let start = Instant::now();
    match gpu.compile(source) {
        Ok(_) => {}
        Err(GpuError::Shader(error)) if error.kind == ShaderErrorKind::TooComplex => {}
        Err(error) => panic!("{gpu:?}, {what}: {:.300}", error.to_string()),
    }
    let took = start.elapsed();
    println!("{gpu:?}, {what}: {took:?}");
    assert!(took < MAX_COMPILATION, "{gpu:?}, {what}: {took:?}");
}

/// Returns the source of a kernel with these module-scope items and statements.
fn kernel(items: &str, body: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n{items}
         @compute @workgroup_size(1) fn large() {{\n{body}\n}}"
    )
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for i in 0..count {
        writeln!(all, "{}", line(i)).expect("writing to a string succeeds");
    }
    all
}

#[test]
fn fault_14_huge_sources_finish_in_time() {
    // Without `SCRY_SOAK` the sources are a tenth of the size.
    let divisor = if std::env::var_os("SCRY_SOAK").is_some() { 1 } else { 10 };
    let gpu = null();
    let comments = format!("/*{}*/", "x".repeat(1 << 20));
    assert_finishes(&gpu, "a comment of 1 MiB", &kernel(&comments, "x[0] = 1u;"));
    let functions =
        lines(10_000 / divisor, |i| format!("fn f{i}(x: u32) -> u32 {{ return x + {i}u; }}"));
    assert_finishes(&gpu, "functions", &kernel(&functions, "x[0] = f7(x[1]);"));
    let calls = lines(1000 / divisor, |i| match i {
        0 => "fn f0(x: u32) -> u32 { return x; }".to_owned(),
        i => format!("fn f{i}(x: u32) -> u32 {{ return f{0}(x) + f{0}(x + 1u); }}", i - 1),
    });
    for gpu in devices_and_null() {
        gpu.compile(&kernel(&calls, "x[0] = f9(x[1]);")).unwrap();
        // Drivers would inline 2^99 calls.
        match compile_error(&gpu, &kernel(&calls, "x[0] = f99(x[1]);"), &default_options()) {
            GpuError::Shader(error) => assert_eq!(error.kind, ShaderErrorKind::TooComplex),
            other => panic!("{gpu:?}: {other}"),
        }
    }
    let statements = lines(100_000 / divisor, |i| format!("x[{}u] = x[{}u] + 1u;", i % 97, i % 89));
    assert_finishes(&gpu, "statements", &kernel("", &statements));
    let live = lines(4000 / divisor, |i| format!("let v{i} = x[{i}u] * {i}u;"));
    let sum = lines(4000 / divisor, |i| format!("x[{i}u] = v{i};"));
    let live = kernel("", &(live + &sum));
    assert_finishes(&gpu, "live values", &live);
    for gpu in devices() {
        assert_finishes(&gpu, "live values", &live);
        check_works(&gpu);
    }
    assert!(gpu.compile(STEP).is_ok());
}
