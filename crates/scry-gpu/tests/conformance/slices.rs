//! Tests of transfers with slices in place of buffers, at any alignment.

use scry_gpu::{Buffer, Device};
use scry_test_support::{on_each_device, succeed};

const N: usize = 1000;

/// Uploads `N` bytes, each of which is its index modulo 256.
fn bytes(gpu: &Device) -> Buffer<u8> {
    let data: Vec<u8> = (0..N).map(|i| i as u8).collect();
    succeed(gpu.upload(&data))
}

/// Returns the contents of [`bytes`] after writes, each an offset and its data.
fn bytes_after(writes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut expected: Vec<u8> = (0..N).map(|i| i as u8).collect();
    for (start, data) in writes {
        expected[*start..start + data.len()].copy_from_slice(data);
    }
    expected
}

#[test]
fn batches_accept_slices_and_buffers() {
    on_each_device(|gpu| {
        let (a, b) = (bytes(gpu), succeed(gpu.upload(&[7u8; 5])));
        let part = succeed(a.slice(3..8));
        let mut batch = gpu.batch();
        succeed(batch.copy(&b, part));
        succeed(batch.fill(succeed(a.slice(11..11 + 299)), 9));
        succeed(batch.write(succeed(a.slice(999..)), &[1]));
        let middle = succeed(batch.download(succeed(a.slice(1..13))));
        succeed(batch.copy(succeed(a.slice(10..15)), &b));
        for part in &[part, succeed(a.slice(5..6))] {
            succeed(batch.fill(part, 0));
        }
        succeed(batch.submit());
        let nines = [9; 299];
        let expected = bytes_after(&[(3, &[7; 5]), (11, &nines), (999, &[1])]);
        assert_eq!(succeed(middle.get()), expected[1..13]);
        assert_eq!(succeed(b.download()), expected[10..15]);
        let expected = bytes_after(&[(3, &[0; 5]), (11, &nines), (999, &[1])]);
        assert_eq!(succeed(a.download()), expected);
    });
}

#[test]
fn copies_accept_slices_and_buffers() {
    on_each_device(|gpu| {
        let (a, b) = (bytes(gpu), succeed(gpu.alloc::<u8>(5)));
        succeed(gpu.copy_buffer(succeed(a.slice(1..6)), &b));
        succeed(b.copy_to(succeed(a.slice(7..12))));
        succeed(succeed(b.slice(..2)).copy_to(succeed(a.slice(20..22))));
        assert_eq!(succeed(a.download()), bytes_after(&[(7, &[1, 2, 3, 4, 5]), (20, &[1, 2])]));
        succeed(succeed(a.slice(995..)).copy_to(&b));
        assert_eq!(succeed(b.download()), [995, 996, 997, 998, 999].map(|i| i as u8));
    });
}
