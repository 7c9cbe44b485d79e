//! Tests of kernels: arguments, resources and the disk cache.

use std::path::{Path, PathBuf};
use std::time::Instant;

use scry_ir::Program;

use super::*;
use crate::backend::cuda::compile::translation::Translation;
use crate::backend::cuda::compile::{self, Kernel};
use crate::backend::tests::{DOUBLE, bytes};
use crate::cache::{DeviceIdentity, DiskCache, KernelKey, Kind, Part, Variant};
use crate::core::driver::CompileJob;
use crate::shaders;

fn key(source: &str) -> KernelKey {
    KernelKey {
        source: source.to_owned(),
        entry: None,
        overrides: Vec::new(),
        checked: true,
        native: None,
    }
}

fn compile_kernel(gpu: &Arc<Gpu>, source: &str, cache: Option<&DiskCache>) -> Kernel {
    with_job(source, cache, |job| compile::compile(gpu, job).unwrap())
}

fn with_job<R>(
    source: &str,
    cache: Option<&DiskCache>,
    work: impl FnOnce(&CompileJob<'_>) -> R,
) -> R {
    let program = Program::parse(source).unwrap();
    let key = key(source);
    work(&CompileJob {
        program: &program,
        grid: GridSource::Native,
        checked: true,
        key: &key,
        cache,
        dump: None,
    })
}

/// Returns the PTX of a WGSL source.
fn ptx(gpu: &Gpu, source: &str) -> String {
    with_job(source, None, |job| {
        let translation = Translation::generate(gpu, job, true).unwrap();
        translation.with_text(gpu, job, true).unwrap().1
    })
}

#[test]
fn bound_range_appears_as_whole_buffer() {
    let Some(driver) = driver() else { return };
    let (src, dst) = (driver.upload(&[3; 1024]), driver.device_memory(4096));
    let kernel = driver.compile_source(DOUBLE, GridSource::Native);
    let fill = Command::Fill { dst: range(dst, 4096), pattern: 9 };
    let part = BufferRange { memory: dst, offset: 16, size: 20 };
    let bindings = [(range(src, 4096), false), (part, true)];
    driver.run_steps(&[run(fill), full_barrier(), dispatch(kernel, &bindings, [16, 1, 1])]);
    let mut expected = vec![9; 1024];
    expected[4..9].fill(6);
    assert_eq!(driver.words(range(dst, 4096)), expected);
    driver.free_kernel(kernel);
}

#[test]
fn passes_uniforms_immediates_and_workgroup_memory() {
    let Some(driver) = driver() else { return };
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
    let kernel = driver.compile_source(source, GridSource::Native);
    let data = driver.upload(&(0..32).collect::<Vec<u32>>());
    let scale = driver.upload(&[10, 1]);
    let bindings = [(range(data, 128), true), (range(scale, 8), false)];
    driver.run_steps(&[dispatch_with(kernel, &bindings, [1, 1, 1], &bytes(&[0, 0, 500]))]);
    let expected: Vec<u32> = (0..32).map(|i| i * 10 + 501).collect();
    assert_eq!(driver.words(range(data, 128)), expected);
}

#[test]
fn workgroup_memory_reaches_the_limit() {
    let Some(driver) = driver() else { return };
    let words = driver.info().limits.max_workgroup_memory / 4;
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        var<workgroup> all: array<u32, {words}>;
        @compute @workgroup_size(256)
        fn main(@builtin(local_invocation_index) i: u32) {{
            for (var at = i; at < {words}u; at += 256u) {{ all[at] += at; }}
            workgroupBarrier();
            for (var at = i; at < {words}u; at += 256u) {{ data[at] = all[{words}u - 1u - at]; }}
        }}"
    );
    let kernel = driver.compile_source(&source, GridSource::Native);
    let size = u64::from(words) * 4;
    let data = driver.device_memory(size);
    driver.run_steps(&[dispatch(kernel, &[(range(data, size), true)], [1, 1, 1])]);
    let expected: Vec<u32> = (0..words).rev().collect();
    assert_eq!(driver.words(range(data, size)), expected);
}

#[test]
fn matmul_keeps_tiles_in_registers() {
    let _access = Access::shared();
    let Some(gpu) = gpu() else { return };
    for source in [shaders::matmul::COARSE_64X64, shaders::matmul::COARSE_8X8] {
        let kernel = compile_kernel(&gpu, source, None);
        assert_eq!(kernel.local_bytes, 0, "{} registers", kernel.registers);
        assert!(kernel.registers >= 32, "loops over tiles must be unrolled: {}", kernel.registers);
    }
}

#[test]
fn unusable_cache_entries_are_recompiled() {
    let _access = Access::shared();
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let identity = DeviceIdentity::from_info(&gpu.info).unwrap();
    let cache = DiskCache::open_in(folder.path(), &identity, 1 << 30).unwrap();
    let source = shaders::matmul::COARSE_8X8;
    let start = Instant::now();
    let fresh = compile_kernel(&gpu, source, Some(&cache));
    let (compile_time, start) = (start.elapsed(), Instant::now());
    let loaded = compile_kernel(&gpu, source, Some(&cache));
    let load_time = start.elapsed();
    assert_eq!((&loaded.params, loaded.block), (&fresh.params, fresh.block));
    assert_eq!(loaded.registers, fresh.registers);
    eprintln!("compiled in {compile_time:?}, loaded in {load_time:?}");
    let (key, ptx) = (key(source), ptx(&gpu, source));
    let variant = Variant { grid: GridSource::Native, part: Part::Compiled(ptx.as_bytes()) };
    let valid = cache.load(&key, variant).unwrap();
    compile_kernel(&gpu, DOUBLE, Some(&cache));
    let double = self::ptx(&gpu, DOUBLE);
    let other = Variant { grid: GridSource::Native, part: Part::Compiled(double.as_bytes()) };
    let other = cache.load(&self::key(DOUBLE), other).unwrap();
    for broken in [other, b"not an image".to_vec()] {
        cache.store(&key, variant, &broken);
        assert_eq!(compile_kernel(&gpu, source, Some(&cache)).registers, fresh.registers);
        assert_eq!(cache.load(&key, variant).unwrap(), valid, "the entry is replaced");
    }
}

#[test]
fn damaged_cache_files_are_replaced() {
    let _access = Access::shared();
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let identity = DeviceIdentity::from_info(&gpu.info).unwrap();
    let cache = DiskCache::open_in(folder.path(), &identity, 1 << 30).unwrap();
    let fresh = compile_kernel(&gpu, DOUBLE, Some(&cache));
    for kind in [Kind::Translation, Kind::Entry] {
        let file = file_of(folder.path(), kind);
        let valid = std::fs::read(&file).unwrap();
        for damaged in [None, Some(&valid[..valid.len() / 2])] {
            match damaged {
                None => std::fs::remove_file(&file).unwrap(),
                Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            }
            let recompiled = compile_kernel(&gpu, DOUBLE, Some(&cache));
            assert_eq!(
                (&recompiled.params, recompiled.registers),
                (&fresh.params, fresh.registers)
            );
            assert_eq!(std::fs::read(&file).unwrap(), valid, "{kind:?} is stored again");
        }
    }
}

/// Returns the only file of a kind in a cache.
fn file_of(folder: &Path, kind: Kind) -> PathBuf {
    let files = crate::cache::list(&folder.join("scry-gpu"));
    let [file] = files.iter().filter(|file| file.kind == kind).collect::<Vec<_>>()[..] else {
        panic!("expected one {kind:?} among {files:?}");
    };
    file.path.clone()
}

#[test]
fn changed_generator_misses_the_cache() {
    let Some(driver) = driver() else { return };
    crate::backend::tests::generators_share_no_kernels(&*driver);
}
