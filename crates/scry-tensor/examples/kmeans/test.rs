//! Runs the example `kmeans` on every device.
//!
//! `Cargo.toml` names this file as the test `kmeans`, so that the modules are those beside it.

mod clusters;
mod picture;

use std::fs::File;
use std::io::BufReader;

use scry_test_support::{on_each_device, root};

#[test]
fn clusters_are_digits() {
    let digits = clusters::Digits::read(&root().join("examples/data")).expect("the data exists");
    let path = std::env::temp_dir().join(format!("clusters-{}.png", std::process::id()));
    on_each_device(|gpu| {
        let found = clusters::find(gpu, &digits, 10).unwrap_or_else(|error| panic!("{error}"));
        let purity = found.purity(&digits);
        assert!(purity > 0.65 && found.iterations > 3, "{purity} after {}", found.iterations);
        // Each mean is that of its images.
        for cluster in 0..10u32 {
            let own = (0..digits.labels.len()).filter(|n| found.nearest[*n] == cluster);
            let own: Vec<usize> = own.collect();
            let sum: f32 = own.iter().map(|n| digits.images[n * 64 + 20]).sum();
            let mean = sum / own.len() as f32;
            assert!((found.means[cluster as usize * 64 + 20] - mean).abs() < 1e-4);
        }
        picture::write(&path, &digits, &found).expect("the picture is written");
        let decoder = png::Decoder::new(BufReader::new(File::open(&path).expect("it exists")));
        let info = decoder.read_info().expect("it is a picture").info().clone();
        assert_eq!([info.width as usize, info.height as usize], picture::size(10));
    });
    std::fs::remove_file(&path).expect("it exists");
}
