//! Tests of the edge detection example, against references in plain Rust.

use scry_test_support::{devices, random_f32, root};

use crate::edges;
use crate::image::{self, Image};

/// Returns the gradient magnitude by the Sobel operator with clamped borders, divided by 4 and
/// clamped to 1.
fn sobel(photo: &Image) -> Vec<f64> {
    let (width, height) = (photo.width as i64, photo.height as i64);
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
        f64::from(photo.pixels[(y * width + x) as usize])
    };
    let mut out = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let mut gradient = [0.0, 0.0];
            for (i, weight) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                gradient[0] += weight * (at(x + 1, y + i) - at(x - 1, y + i));
                gradient[1] += weight * (at(x + i, y + 1) - at(x + i, y - 1));
            }
            out.push((gradient[0].hypot(gradient[1]) / 4.0).min(1.0));
        }
    }
    out
}

/// Returns the gradient magnitude over a window of `2 * radius + 1` pixels squared, with the
/// weights `dx / (dx² + dy²)` that the kernel documents.
fn gradient_magnitude(photo: &Image, radius: i64) -> Vec<f64> {
    let (width, height) = (photo.width as i64, photo.height as i64);
    let taps = || (-radius..=radius).flat_map(|dy| (-radius..=radius).map(move |dx| (dx, dy)));
    let weight = |dx: i64, dy: i64| dx as f64 / ((dx * dx + dy * dy).max(1) as f64);
    let total: f64 = taps().map(|(dx, dy)| weight(dx, dy).max(0.0)).sum();
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
        f64::from(photo.pixels[(y * width + x) as usize])
    };
    let mut out = Vec::new();
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        let along_x: f64 = taps().map(|(dx, dy)| weight(dx, dy) * at(x + dx, y + dy)).sum();
        let along_y: f64 = taps().map(|(dx, dy)| weight(dy, dx) * at(x + dx, y + dy)).sum();
        out.push((along_x.hypot(along_y) / total).min(1.0));
    }
    out
}

fn assert_edges(edges: &Image, photo: &Image, expected: &[f64]) {
    assert_eq!((edges.width, edges.height), (photo.width, photo.height));
    for (i, (pixel, expected)) in edges.pixels.iter().zip(expected).enumerate() {
        let is_close = (f64::from(*pixel) - expected).abs() < 1e-5;
        assert!(is_close, "pixel {i} is {pixel}, not {expected}");
    }
}

#[test]
fn radius_one_is_the_sobel_operator() {
    let photo = image::read(&root().join("examples/data/camera.png")).unwrap();
    assert_eq!((photo.width, photo.height), (512, 512));
    for gpu in devices() {
        assert_edges(&edges::find(&gpu, &photo, 1).unwrap(), &photo, &sobel(&photo));
    }
}

#[test]
fn odd_sizes_match_sobel() {
    for gpu in devices() {
        for (width, height) in [(1, 1), (1, 33), (33, 1), (17, 31)] {
            let pixels = random_f32(5, (width * height) as usize);
            let pixels = pixels.iter().map(|pixel| pixel.abs()).collect();
            let photo = Image { width, height, pixels };
            assert_edges(&edges::find(&gpu, &photo, 1).unwrap(), &photo, &sobel(&photo));
        }
    }
}

#[test]
fn larger_radii_match_reference() {
    for gpu in devices() {
        let pixels = random_f32(6, 19 * 23).iter().map(|pixel| pixel.abs()).collect();
        let photo = Image { width: 19, height: 23, pixels };
        for radius in [2, 3, 5] {
            let edges = edges::find(&gpu, &photo, radius).unwrap();
            assert_edges(&edges, &photo, &gradient_magnitude(&photo, i64::from(radius)));
        }
    }
}

#[test]
fn flat_images_have_no_edges() {
    for gpu in devices() {
        let flat = Image { width: 20, height: 20, pixels: vec![0.625; 400] };
        let edges = edges::find(&gpu, &flat, 3).unwrap();
        assert!(edges.pixels.iter().all(|&pixel| pixel < 1e-6));
    }
}

#[test]
fn png_round_trip() {
    let path = std::env::temp_dir().join(format!("scry-gpu-{}.png", std::process::id()));
    let pixels = (0..=255).map(|grey| grey as f32 / 255.0).collect();
    image::write(&path, &Image { width: 32, height: 8, pixels }).unwrap();
    let image = image::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((image.width, image.height), (32, 8));
    let expected = (0..=255).map(|grey| grey as f32 / 255.0);
    assert!(image.pixels.iter().copied().eq(expected));
}
