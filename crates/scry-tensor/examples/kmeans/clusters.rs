//! k-means as a plan: the means are a state, and each run moves them.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use npyz::{Deserialize, NpyFile};
use scry_tensor::{DType, Device, Graph, Metric, Result, Tensor, step};

/// Images of handwritten digits, of 8 × 8 numbers from 0 to 16, and their labels.
pub struct Digits {
    /// The images, one after the other.
    pub images: Vec<f32>,
    /// The digit that each image shows.
    pub labels: Vec<u32>,
}

impl Digits {
    /// Reads `digits_images.npy` and `digits_labels.npy` from a folder.
    pub fn read(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let images = read_npy::<f32>(&folder.join("digits_images.npy"))?;
        let labels = read_npy::<u32>(&folder.join("digits_labels.npy"))?;
        if images.len() != labels.len() * 64 {
            return Err(format!("{} numbers for {} labels", images.len(), labels.len()).into());
        }
        Ok(Self { images, labels })
    }
}

fn read_npy<T: Deserialize>(path: &Path) -> Result<Vec<T>, Box<dyn Error>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(NpyFile::new(BufReader::new(file))?.into_vec()?)
}

/// The result of k-means.
pub struct Clusters {
    /// The means, one after the other.
    pub means: Vec<f32>,
    /// The cluster of each image.
    pub nearest: Vec<u32>,
    /// How often the means were moved.
    pub iterations: usize,
}

impl Clusters {
    /// Returns the digit that most images of each cluster show.
    pub fn digits(&self, digits: &Digits) -> Vec<u32> {
        let most = |cluster| {
            let count = |digit: &u32| {
                let pairs = self.nearest.iter().zip(&digits.labels);
                pairs.filter(|(own, label)| **own == cluster && *label == digit).count()
            };
            (0..10).max_by_key(count).unwrap_or(0)
        };
        (0..self.means.len() as u32 / 64).map(most).collect()
    }

    /// Returns the part of the images that show the digit of their cluster.
    pub fn purity(&self, digits: &Digits) -> f64 {
        let of_clusters = self.digits(digits);
        let pairs = self.nearest.iter().zip(&digits.labels);
        let right = pairs.filter(|(own, label)| of_clusters[**own as usize] == **label).count();
        right as f64 / digits.labels.len() as f64
    }
}

/// Returns the means of the images that are nearest to each mean; a mean without images stays.
fn moved(images: &Tensor, means: &Tensor, nearest: &Tensor) -> Result<Tensor> {
    let zeros = (means * 0.0)?;
    let sums = zeros.index_add(0, nearest, images)?;
    let ones = (images.i((.., 0..1))? * 0.0)?.add(1.0)?;
    let counts = zeros.i((.., 0..1))?.index_add(0, nearest, &ones)?;
    counts.gt(0.0)?.where_((sums / counts.maximum(1.0)?)?, means)
}

/// Finds `k` clusters: moves the means until no image changes its cluster.
pub fn find(gpu: &Device, digits: &Digits, k: usize) -> Result<Clusters> {
    let count = digits.labels.len();
    let images = Tensor::from_slice(&digits.images, [count, 64], gpu)?;
    let g = Graph::new(gpu)?;
    let (state, is_first) =
        (g.state("means", [k, 64])?, g.input_with_dtype("first", [1], DType::Bool)?);
    // The first means are images at equal distances.
    let first = images.i((step(.., count as i64 / k as i64), ..))?.i(0..k as i64)?;
    let means = is_first.where_(&first, state.read())?;
    let nearest = images.pairwise_distances(&means, Metric::SquaredEuclidean)?.argmin(1)?;
    state.write(.., &moved(&images, &means, &nearest)?)?;
    let plan = g.compile(&[nearest])?;

    let mut nearest: Vec<u32> = Vec::new();
    for iterations in 0..100 {
        let is_first = Tensor::new([iterations == 0], gpu)?;
        let found = plan.run(&[("first", &is_first)])?[0].to_vec::<u32>()?;
        if found == nearest {
            return Ok(Clusters { means: plan.state("means")?.to_vec()?, nearest, iterations });
        }
        nearest = found;
    }
    Ok(Clusters { means: plan.state("means")?.to_vec()?, nearest, iterations: 100 })
}
