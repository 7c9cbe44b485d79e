//! Tests of kernels: bindings, immediates, grids, and what WGSL or WebGPU lacks.

use scry_ir::{Features, Program};

use super::*;
use crate::cache::KernelKey;
use crate::core::driver::CompileJob;

#[test]
fn immediates_are_native_or_in_uniforms() {
    let source = "
        struct Scale { by: u32, add: u32 }
        @group(3) @binding(7) var<uniform> scale: Scale;
        @group(1) @binding(2) var<storage, read_write> data: array<u32>;
        var<immediate> offset: vec3<u32>;
        var<workgroup> seen: array<u32, 64>;
        @compute @workgroup_size(32)
        fn main(@builtin(local_invocation_index) i: u32) {
            let zeroed = seen[i] + seen[63 - i];
            data[i] = data[i] * scale.by + scale.add + offset.z + zeroed;
        }";
    let drivers = drivers();
    for driver in &drivers {
        let kernel = driver.compile_source(source, GridSource::Native);
        let data = driver.upload(&(0..32).collect::<Vec<u32>>());
        let scale = driver.upload(&[10, 1]);
        let bindings = [(range(data, 128), true), (range(scale, 8), false)];
        driver.run_steps(&[dispatch_with(kernel, &bindings, [1; 3], &bytes(&[0, 0, 500]))]);
        let expected: Vec<u32> = (0..32).map(|i| i * 10 + 501).collect();
        assert_eq!(driver.words(range(data, 128)), expected);
    }
    if let [_, without] = &drivers[..] {
        assert!(!without.0.gpu.has_immediates);
        assert_eq!(without.info().limits.max_immediates, 256);
    }
}

#[test]
fn linearised_kernels_see_the_requested_grid() {
    for driver in drivers() {
        let kernel = driver.compile_source(DOUBLE, GridSource::Linearised);
        // 10 workgroups as rows of 4: two full rows, and 2 in the last.
        let params = driver.upload(&[10, 1, 1, 4, 3, 3, 2, 0]);
        let words: Vec<u32> = (0..640).collect();
        let (src, dst) = (driver.upload(&words), driver.device_memory(2560));
        let bindings =
            [(range(src, 2560), false), (range(dst, 2560), true), (range(params, 32), false)];
        driver.run_steps(&[dispatch(kernel, &bindings, [4, 3, 1])]);
        let doubled: Vec<u32> = words.iter().map(|word| 2 * word).collect();
        assert_eq!(driver.words(range(dst, 2560)), doubled);
    }
}

#[test]
fn one_buffer_may_be_read_and_written() {
    for driver in drivers() {
        let kernel = driver.compile_source(DOUBLE, GridSource::Native);
        let offset = driver.info().binding_alignment.max(64);
        let words = offset as usize / 4;
        let data = driver.upload(&vec![5; words + 16]);
        let upper = BufferRange { memory: data, offset, size: 64 };
        let steps = [
            dispatch(kernel, &[(range(data, 64), false), (upper, true)], [1; 3]),
            compute_barrier(),
            dispatch(kernel, &[(upper, false), (range(data, 64), true)], [1; 3]),
        ];
        driver.run_steps(&steps);
        assert_eq!(driver.words(upper), [10; 16]);
        assert_eq!(driver.words(range(data, 64)), [20; 16]);
    }
}

#[test]
fn odd_lengths_of_16_bit_arrays_are_exact() {
    let source = "
        enable f16;
        @group(0) @binding(0) var<storage, read_write> halves: array<f16>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(8)
        fn main(@builtin(local_invocation_index) i: u32) {
            out[0] = arrayLength(&halves);
            if i < arrayLength(&halves) { halves[i] = 1.0h; }
        }";
    for driver in drivers() {
        if !driver.info().features.contains(Features::F16) {
            eprintln!("SKIPPED, {} has no f16", driver.info().name);
            continue;
        }
        let kernel = driver.compile_source(source, GridSource::Native);
        let (halves, out) = (driver.upload(&[0; 4]), driver.upload(&[0; 4]));
        let bindings = [(range(halves, 6), true), (range(out, 16), true)];
        driver.run_steps(&[dispatch(kernel, &bindings, [1; 3])]);
        assert_eq!(driver.words(range(out, 16)), [3, 0, 0, 0]);
        assert_eq!(driver.words(range(halves, 16)), [0x3c00_3c00, 0x3c00, 0, 0]);
    }
}

/// Compiles a source; returns the error's text.
fn compile_error(driver: &WgpuDriver, source: &str) -> String {
    let key = KernelKey {
        source: source.to_owned(),
        entry: None,
        overrides: Vec::new(),
        checked: true,
        native: None,
    };
    let program = Program::parse(source).unwrap();
    let job = CompileJob {
        program: &program,
        grid: GridSource::Native,
        checked: true,
        key: &key,
        cache: None,
        dump: None,
    };
    driver.compile(&job).unwrap_err().to_string()
}

#[test]
fn what_wgsl_lacks_is_refused_by_name() {
    let Some(driver) = driver() else { return };
    let error =
        compile_error(&driver, "@compute @workgroup_size(8) fn main() { subgroupBarrier(); }");
    assert!(error.contains("WGSL has no subgroup barriers; help: "), "{error}");
    let error = compile_error(
        &driver,
        "@group(0) @binding(0) var<storage, read_write> data: array<u64>;
         @compute @workgroup_size(1) fn main() { data[0] *= 2lu; }",
    );
    assert!(error.contains("WGSL has no 64-bit integers"), "{error}");
}

#[test]
fn dispatch_must_match_its_kernel() {
    let Some(driver) = driver() else { return };
    bodies::dispatch_must_match_its_kernel(&driver);
}
