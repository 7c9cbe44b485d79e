//! Tests of fills and copies that WebGPU has no commands for.

use super::*;
use crate::api::error::GpuError;

/// Returns bytes that differ from their neighbours.
fn pattern(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(37).wrapping_add(salt)).collect()
}

fn upload_bytes(driver: &WgpuDriver, bytes: &[u8]) -> crate::core::driver::MemoryId {
    let memory = driver.allocate(MemoryKind::Upload, bytes.len() as u64, "bytes").unwrap();
    Driver::write(driver, memory, 0, bytes).unwrap();
    memory
}

fn download(driver: &WgpuDriver, src: BufferRange) -> Vec<u8> {
    let out = driver.allocate(MemoryKind::Readback, src.size, "out").unwrap();
    driver.run_steps(&[full_barrier(), copy(src, range(out, src.size)), full_barrier()]);
    let mut bytes = vec![0; src.size as usize];
    Driver::read(driver, out, 0, &mut bytes).unwrap();
    driver.free(out);
    bytes
}

#[test]
fn bytes_are_copied_at_every_alignment() {
    let Some(driver) = driver() else { return };
    let source = pattern(64, 1);
    let src = upload_bytes(&driver, &source);
    for (from, to, size) in (0..5u64)
        .flat_map(|from| (0..5u64).map(move |to| (from, to)))
        .flat_map(|(from, to)| [1u64, 2, 3, 4, 5, 8, 31].map(|size| (from, to, size)))
    {
        let mut expected = pattern(48, 200);
        let dst = upload_bytes(&driver, &expected);
        let part = |memory, offset| BufferRange { memory, offset, size };
        driver.run_steps(&[copy(part(src, from), part(dst, to))]);
        expected[to as usize..(to + size) as usize]
            .copy_from_slice(&source[from as usize..(from + size) as usize]);
        assert_eq!(download(&driver, range(dst, 48)), expected, "{size} bytes, {from} to {to}");
        let part = BufferRange { memory: dst, offset: to, size };
        let bytes = download(&driver, part);
        assert_eq!(bytes, expected[to as usize..(to + size) as usize], "a part is read");
        driver.free(dst);
    }
}

#[test]
fn copies_within_a_buffer_work() {
    let Some(driver) = driver() else { return };
    for (from, to, size) in [(0u64, 64u64, 64u64), (64, 0, 60), (3, 70, 13), (70, 1, 33)] {
        let mut expected = pattern(128, 9);
        let data = upload_bytes(&driver, &expected);
        let part = |offset| BufferRange { memory: data, offset, size };
        driver.run_steps(&[copy(part(from), part(to))]);
        expected.copy_within(from as usize..(from + size) as usize, to as usize);
        assert_eq!(download(&driver, range(data, 128)), expected, "{size} bytes, {from} to {to}");
        driver.free(data);
    }
}

#[test]
fn large_copies_are_split() {
    let Some(driver) = driver() else { return };
    let half = super::super::queue::word_kernels::MAX_BYTES + 4096;
    let data = driver.device_memory(2 * half);
    let (lower, upper) = (
        BufferRange { memory: data, offset: 0, size: half },
        BufferRange { memory: data, offset: half, size: half },
    );
    let fill = |dst, pattern| run(Command::Fill { dst, pattern });
    driver.run_steps(&[fill(lower, 0x0102_0304), fill(upper, 0), copy(lower, upper)]);
    let bytes = download(&driver, upper);
    assert!(bytes.chunks_exact(4).all(|word| word == [4, 3, 2, 1]));
    // One byte further, so that every byte moves to another position of its word.
    let moved = BufferRange { memory: data, offset: 1, size: half - 1 };
    let to = BufferRange { memory: data, offset: half, size: half - 1 };
    driver.run_steps(&[copy(moved, to)]);
    let bytes = download(&driver, to);
    let expected = [3, 2, 1, 4].into_iter().cycle();
    assert!(bytes.iter().zip(expected).all(|(byte, expected)| *byte == expected));
}

#[test]
fn fills_repeat_their_pattern() {
    let Some(driver) = driver() else { return };
    let data = driver.upload(&[1; 16]);
    let fill = |offset, size, pattern| {
        run(Command::Fill { dst: BufferRange { memory: data, offset, size }, pattern })
    };
    driver.run_steps(&[fill(4, 8, 0xdead_beef), fill(20, 12, 0), fill(60, 4, 7)]);
    let expected = [1, 0xdead_beef, 0xdead_beef, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 7];
    assert_eq!(driver.words(range(data, 64)), expected);
}

#[test]
fn host_accesses_are_checked() {
    let Some(driver) = driver() else { return };
    let (upload, device) = (driver.upload(&[1; 4]), driver.device_memory(16));
    let readback = driver.allocate(MemoryKind::Readback, 16, "").unwrap();
    let refused = |result: crate::api::error::Result<()>| match result {
        Err(GpuError::Driver(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let text = refused(Driver::write(&driver, device, 0, &[0; 4]));
    assert!(text.contains("write needs Upload memory, but the allocation is Device"), "{text}");
    let text = refused(Driver::write(&driver, upload, 8, &[0; 12]));
    assert!(text.contains("12 bytes at 8 are not in Upload memory of 16 bytes"), "{text}");
    let text = refused(Driver::read(&driver, readback, 15, &mut [0; 2]));
    assert!(text.contains("2 bytes at 15 are not in Readback memory of 16 bytes"), "{text}");
}

#[test]
fn excessive_allocations_are_out_of_memory() {
    let Some(driver) = driver() else { return };
    let error = driver.allocate(MemoryKind::Device, u64::MAX / 2, "all").unwrap_err();
    assert!(matches!(&error, GpuError::OutOfMemory(_)), "{error}");
    assert!(error.to_string().contains("requested for `all`"), "{error}");
}
