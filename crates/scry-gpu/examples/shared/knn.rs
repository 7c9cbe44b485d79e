//! k-nearest-neighbour classification with distances computed on a device.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use npyz::{Deserialize, NpyFile};
use scry_gpu::{Device, Launch, Result, shaders};

/// Images of handwritten digits, and their labels.
pub struct Digits {
    /// Number of values of an image.
    pub dimensions: usize,
    /// The images, one after the other.
    pub images: Vec<f32>,
    /// The digit that each image shows.
    pub labels: Vec<u32>,
}

impl Digits {
    /// Reads `digits_images.npy` and `digits_labels.npy` from a folder.
    pub fn read(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let (shape, images) = read_npy::<f32>(&folder.join("digits_images.npy"))?;
        let (_, labels) = read_npy::<u32>(&folder.join("digits_labels.npy"))?;
        let &[count, dimensions] = shape.as_slice() else {
            return Err("digits_images.npy is not a matrix".into());
        };
        if labels.len() as u64 != count {
            return Err(format!("{count} images, but {} labels", labels.len()).into());
        }
        Ok(Self { dimensions: usize::try_from(dimensions)?, images, labels })
    }
}

/// Reads shape and elements of an array.
fn read_npy<T: Deserialize>(path: &Path) -> Result<(Vec<u64>, Vec<T>), Box<dyn Error>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let array = NpyFile::new(BufReader::new(file))?;
    let shape = array.shape().to_vec();
    Ok((shape, array.into_vec()?))
}

/// Computes the squared distances between all pairs of images, row-major.
pub fn distances(gpu: &Device, digits: &Digits) -> Result<Vec<f32>> {
    let count = digits.labels.len();
    let kernel = gpu.compile(shaders::pairwise::EUCLIDEAN_SQUARED)?;
    let images = gpu.upload(&digits.images)?;
    let distances = gpu.alloc::<f32>(count * count)?;
    // Each invocation computes 4×4 distances.
    let launch = Launch::invocations([count.div_ceil(4), count.div_ceil(4)]).immediates(&[
        count as u32,
        count as u32,
        digits.dimensions as u32,
    ]);
    gpu.run(&kernel, &[&images, &images, &distances], launch)?;
    distances.download()
}

/// Classifies every point by its `k` nearest neighbours. At equal distance the smaller index is
/// nearer; of equally frequent labels, that of the nearest point wins.
pub fn classify(distances: &[f32], labels: &[u32], k: usize) -> Vec<u32> {
    let rows = distances.chunks(labels.len()).enumerate();
    rows.map(|(own, row)| most_frequent(nearest(row, own, k).into_iter().map(|i| labels[i])))
        .collect()
}

/// Returns the `k` points nearest to point `own`, without itself, nearest first.
fn nearest(distances: &[f32], own: usize, k: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::with_capacity(k + 1);
    for (i, distance) in distances.iter().enumerate() {
        // Of equal distances, that of the smaller index comes first.
        let position = found.partition_point(|&other| distances[other] <= *distance);
        if i != own && position < k {
            found.insert(position, i);
            found.truncate(k);
        }
    }
    found
}

/// Returns the most frequent label; of equally frequent ones, that of the nearest point.
fn most_frequent(labels: impl Iterator<Item = u32>) -> u32 {
    let mut counts: Vec<(u32, usize)> = Vec::new();
    for label in labels {
        match counts.iter_mut().find(|(counted, _)| *counted == label) {
            Some((_, count)) => *count += 1,
            None => counts.push((label, 1)),
        }
    }
    let max = counts.iter().map(|(_, count)| *count).max();
    let winner = counts.iter().find(|(_, count)| Some(*count) == max);
    winner.expect("every point has at least one neighbour").0
}
