//! Runs the examples that are one file, and compares their results with numbers computed here.
//!
//! `Cargo.toml` names this file as the test `examples`, so that the modules are those beside it.

use scry_gpu::Device;
use scry_test_support::on_each_device;

#[expect(dead_code, reason = "`cargo run --example batch` calls `main`")]
mod batch;
#[expect(dead_code, reason = "`cargo run --example custom_kernel` calls `main`")]
mod custom_kernel;
#[expect(dead_code, reason = "`cargo run --example ffn` calls `main`")]
mod ffn;
#[expect(dead_code, reason = "`cargo run --example ops` calls `main`")]
mod ops;

#[test]
fn ops_writes_results() {
    on_each_device(|gpu| {
        let mut out = Vec::new();
        ops::write_all(gpu, &mut out).unwrap_or_else(|error| panic!("{error}"));
        let out = String::from_utf8(out).expect("text");
        // Integers, so that they are the same on every device.
        let expected = [
            "the two largest\n[[4. 2.]\n [9. 3.]]\nat\n[[1 2]\n [2 0]]\n",
            "sums so far\n[[ 1.  5.  7.]\n [ 3.  6. 15.]]\n",
            "einsum ij,kj->ik\n[[ 5. 14.]\n [14. 50.]]\n",
            "max_pool2d\n[[ 5.  7.]\n [13. 15.]]\n",
            "conv2d\n[[1. 1. 1.]\n [1. 1. 1.]\n [1. 1. 1.]\n [1. 1. 1.]]\n",
            "x[[0, 2], [1, -1]] is [ 1 11]\n",
            "x[x % 5 == 0] is [ 0  5 10]\n",
            "rolled and padded\n[[ 0  3  0  1  2  0]\n",
            "[ 0  7  4  5  6  0]\n [ 0 11  8  9 10  0]]\n",
            "joined again\n[[ 4  5  6  7]\n [ 8  9 10 11]\n [ 0  1  2  3]]\n",
            "rows added by index\n[[ 4  6  8 10]\n [ 4  5  6  7]\n [16 18 20 22]]\n",
        ];
        for text in expected {
            assert!(out.contains(text), "{text} is missing in\n{out}");
        }
        let heads = ["softmax\n", "layer norm\n", "distances\n", "attention\n", "dropout\n"];
        assert!(heads.iter().all(|head| out.contains(head)) && !out.contains("NaN"), "{out}");
    });
}

#[test]
fn batch_computes_layers() {
    // Its own device: the example counts the kernels that were compiled on it.
    let gpu = Device::open("cpu").expect("the CPU device is always available");
    let (found, doubled) = batch::layers(&gpu).unwrap_or_else(|error| panic!("{error}"));
    // All rows are equal.
    let mut x = vec![0.5f64; 32];
    let times_weights = |x: &[f64]| -> Vec<f64> {
        let weight = |k: usize, n: usize| (((k * 32 + n) * 7) % 11) as f64 / 88.0;
        (0..32).map(|n| (0..32).map(|k| x[k] * weight(k, n)).sum()).collect()
    };
    let gelu = |x: f64| 0.5 * x * (1.0 + erf(x / 2f64.sqrt()));
    for _ in 0..36 {
        let hidden: Vec<f64> = times_weights(&x).into_iter().map(gelu).collect();
        x = times_weights(&hidden).into_iter().map(|x| x * 0.5).collect();
    }
    assert_eq!((found.len(), doubled.len()), (4 * 32, 4 * 32));
    for (n, (found, doubled)) in found.iter().zip(&doubled).enumerate() {
        let wanted = x[n % 32];
        assert!((f64::from(*found) - wanted).abs() < wanted * 1e-4, "{found} {wanted}");
        assert_eq!(*doubled, found * 2.0);
    }
}

/// Returns the error function of a positive number, by its Taylor series.
fn erf(x: f64) -> f64 {
    if x > 4.0 {
        return 1.0;
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn ffn_agrees_with_numbers_of_host() {
    on_each_device(|gpu| {
        let largest = ffn::compare(gpu).unwrap_or_else(|error| panic!("{error}"));
        let wanted = [1, 5, 32].map(largest_of_layers);
        assert_eq!(largest.len(), 3);
        for (found, wanted) in largest.into_iter().zip(wanted) {
            assert!((f64::from(found) - wanted).abs() < 1e-4 * wanted, "{found} {wanted}");
        }
    });
}

/// Returns the largest magnitude after four layers of the example `ffn`.
fn largest_of_layers(batch: usize) -> f64 {
    let linspace = |n: usize, count: usize| -1.0 + 2.0 * n as f64 / (count - 1) as f64;
    let weight = |n: usize, rows: usize| (linspace(n, 64 * 192) * 40.0).sin() / rows as f64;
    let times = |x: &[f64], columns: usize| -> Vec<f64> {
        let sum = |n| (0..x.len()).map(|k| x[k] * weight(k * columns + n, x.len())).sum();
        (0..columns).map(sum).collect()
    };
    let mut largest = 0f64;
    for row in 0..batch {
        let mut x: Vec<f64> = (0..64).map(|n| linspace(row * 64 + n, batch * 64)).collect();
        for _ in 0..4 {
            // The weights of both products are equal.
            let hidden = times(&x, 192).into_iter().map(|x| x * x / (1.0 + (-x).exp()));
            let hidden: Vec<f64> = hidden.collect();
            x = x.iter().zip(times(&hidden, 64)).map(|(x, y)| x + y).collect();
        }
        largest = x.iter().fold(largest, |largest, x| largest.max(x.abs()));
    }
    largest
}

#[test]
fn custom_kernel_averages_frames() {
    on_each_device(|gpu| {
        let averages = custom_kernel::averages(gpu).unwrap_or_else(|error| panic!("{error}"));
        let image = |y: usize, x: usize| if x == y { 0.25f32 } else { 0.0 };
        let edge = |y: usize, x: usize| match (y, x) {
            (1..5, 1..7) => {
                let around = image(y, x - 1) + image(y, x + 1) + image(y - 1, x) + image(y + 1, x);
                (around - 4.0 * image(y, x)).abs()
            }
            _ => 0.0,
        };
        assert_eq!(averages.len(), 3);
        for (average, part) in averages.iter().zip([0.5, 0.75, 0.875]) {
            // Powers of two: exact on every device.
            let wanted: Vec<f32> = (0..48).map(|n| edge(n / 8, n % 8) * part).collect();
            assert!(wanted.iter().any(|it| *it > 0.0));
            let found = average.to_vec::<f32>().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found, wanted);
        }
    });
}
