//! Tests of the k-nearest-neighbours example, against a brute-force search in plain Rust.

use scry_test_support::{devices, random_f32, root};

use crate::knn::{self, Digits};

/// Classifies each image by its `k` nearest others, sorted by distance and index. Of the most
/// frequent labels the one with the nearest image wins.
fn brute_force(digits: &Digits, k: usize) -> Vec<u32> {
    let points: Vec<&[f32]> = digits.images.chunks(digits.dimensions).collect();
    let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
    (0..points.len())
        .map(|image| {
            let others = (0..points.len()).filter(|&other| other != image);
            let mut ranked: Vec<(f64, usize)> = others
                .map(|other| (points[image].iter().zip(points[other]).map(square).sum(), other))
                .collect();
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            majority(ranked[..k].iter().map(|&(_, other)| digits.labels[other]).collect())
        })
        .collect()
}

/// Returns the most frequent label; of several, the first in the list.
fn majority(nearest: Vec<u32>) -> u32 {
    let count = |label: u32| nearest.iter().filter(|&&other| other == label).count();
    let position = |label: u32| nearest.iter().position(|&other| other == label);
    let best =
        nearest.iter().max_by_key(|&&label| (count(label), std::cmp::Reverse(position(label))));
    *best.expect("k is at least 1")
}

/// Returns every fourth image, so that debug builds finish quickly.
fn sample(digits: &Digits) -> Digits {
    let images = digits.images.chunks(digits.dimensions).step_by(4).flatten().copied().collect();
    let labels = digits.labels.iter().step_by(4).copied().collect();
    Digits { dimensions: digits.dimensions, images, labels }
}

fn count_correct(predicted: &[u32], labels: &[u32]) -> usize {
    predicted.iter().zip(labels).filter(|(a, b)| a == b).count()
}

#[test]
fn labels_match_brute_force() {
    let all = Digits::read(&root().join("examples/data")).unwrap();
    assert_eq!((all.labels.len(), all.dimensions, all.images.len()), (1797, 64, 1797 * 64));
    let digits = sample(&all);
    for gpu in devices() {
        let distances = knn::distances(&gpu, &digits).unwrap();
        for k in [1, 3, 4, 5] {
            let predicted = knn::classify(&distances, &digits.labels, k);
            assert_eq!(predicted, brute_force(&digits, k), "k = {k} on {}", gpu.name());
        }
    }
}

#[test]
fn digit_accuracy_matches_recorded_counts() {
    let digits = Digits::read(&root().join("examples/data")).unwrap();
    for gpu in devices() {
        let distances = knn::distances(&gpu, &digits).unwrap();
        for (k, expected) in [(1, 1776), (3, 1777), (5, 1775)] {
            let predicted = knn::classify(&distances, &digits.labels, k);
            let correct = count_correct(&predicted, &digits.labels);
            assert_eq!(correct, expected, "k = {k} on {}", gpu.name());
        }
    }
}

#[test]
fn ties_prefer_near_then_small_index() {
    // The points 0 to 3 are at distances 2, 1, 1, 2 from the point 4.
    let row = |point: usize| {
        let mut row = vec![9.0f32; 5];
        row[point] = 0.0;
        row
    };
    let mut distances: Vec<f32> = (0..4).flat_map(row).collect();
    distances.extend([2.0, 1.0, 1.0, 2.0, 0.0]);
    let labels = [7, 3, 7, 3, 0];
    let label = |k| knn::classify(&distances, &labels, k)[4];
    assert_eq!(label(1), 3, "at equal distance the smaller index is nearer");
    assert_eq!(label(2), 3, "one each: the nearest decides");
    assert_eq!(label(3), 7, "label 7 occurs twice, label 3 once");
    assert_eq!(label(4), 3, "two each: the nearest decides");
}

#[test]
fn random_labels_match_brute_force() {
    let images = random_f32(9, 60 * 3);
    let labels: Vec<u32> = random_f32(10, 60).iter().map(|x| u32::from(*x > 0.0)).collect();
    let digits = Digits { dimensions: 3, images, labels };
    for gpu in devices() {
        let distances = knn::distances(&gpu, &digits).unwrap();
        for k in 1..=59 {
            let predicted = knn::classify(&distances, &digits.labels, k);
            assert_eq!(predicted, brute_force(&digits, k), "k = {k} on {}", gpu.name());
        }
    }
}
