//! Contractions: linear layers, inner products, einsum, distances.

use super::reference::{Array, Case, Draw};
use super::{Apply, Binary, KernelSource, Operation};
use crate::dtype::{DType, FLOATS, NUMBERS};
use crate::error::{Call, ErrorKind, Result};
use crate::op::{Contraction, Distance, Library, Op, Pairwise, QuantizedProduct, View};
use crate::shape::Axes;
use crate::tensor::{Tensor, apply};

/// How [`Tensor::pairwise_distances`] measures.
///
/// ```
/// use scry_tensor::{Device, Metric, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([[0.0f32, 0.0]], &gpu)?;
/// let y = Tensor::new([[3.0f32, -4.0]], &gpu)?;
/// let distance = |metric| x.pairwise_distances(&y, metric)?.item::<f32>();
/// assert_eq!(distance(Metric::Euclidean)?, 5.0);
/// assert_eq!(distance(Metric::SquaredEuclidean)?, 25.0);
/// assert_eq!(distance(Metric::Manhattan)?, 7.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// The sum of the squares of the differences.
    SquaredEuclidean,
    /// The square root of the sum of the squares of the differences.
    Euclidean,
    /// The sum of the absolute differences.
    Manhattan,
    /// 1 minus the cosine of the angle between the points as vectors; 1 if one of them is zero.
    Cosine,
}

/// Products.
impl Tensor {
    /// Returns the product with the transposed weights of a linear layer, and the sum with its
    /// bias, as PyTorch's `linear`: `[…, k]` and weights `[n, k]` are `[…, n]`. Weights may be
    /// quantised: they are dequantised by the kernel of the product, or by a kernel before it,
    /// whichever is faster on the device.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu)?;
    /// let (w, b) = (Tensor::new([[10.0f32, 1.0]], &gpu)?, Tensor::new([0.5f32], &gpu)?);
    /// assert_eq!(x.linear(&w, Some(&b))?.to_vec::<f32>()?, [12.5, 34.5]);
    ///
    /// let blocks = Tensor::from_blocks(&[0; 34], DType::Q8_0, [1, 32], &gpu)?;
    /// let x = Tensor::ones([3, 32], DType::F32, &gpu)?;
    /// assert_eq!(x.linear(&blocks, None)?.to_vec::<f32>()?, [0.0; 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the shapes do not fit; [`ErrorKind::DType`] if the types differ, or
    /// are not floats; [`ErrorKind::Device`]; [`ErrorKind::Gpu`] if the device supports no variant
    /// of the kernel library.
    #[track_caller]
    pub fn linear(&self, weight: &Self, bias: Option<&Self>) -> Result<Self> {
        let call = Call::new("Tensor::linear");
        Self::scoped(&[self], call.check_dtype(self.dtype(), FLOATS))?;
        let product = match weight.dtype().is_quantized() {
            true => {
                let product = Library::QuantizedProduct(QuantizedProduct::default());
                apply(call, Op::Library(product), &[self, weight])?
            }
            false => {
                self.check_same_type(call, weight)?;
                let contraction = linear(call, self, weight)?;
                apply(call, Op::Library(Library::Contraction(contraction)), &[self, weight])?
            }
        };
        let Some(bias) = bias else { return Ok(product) };
        let bias = &product.checked_vector(call, bias, "bias")?;
        Binary::ADD.apply(call, &product.into(), &bias.into())
    }

    /// Returns the inner product of two vectors. 16-bit floats accumulate in `f32`, integers wrap.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1, 2, 3], &gpu)?;
    /// assert_eq!(x.dot(&x)?.item::<i32>()?, 14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if they are not vectors of one size; [`ErrorKind::DType`] if the types
    /// differ, or are not numbers; [`ErrorKind::Device`]; [`ErrorKind::Gpu`].
    #[doc(alias("vdot", "inner"))]
    #[track_caller]
    pub fn dot(&self, other: &Self) -> Result<Self> {
        let call = Call::new("Tensor::dot");
        Self::in_scope_of(&[self, other], || {
            if self.rank() != 1 || self.shape() != other.shape() {
                let (a, b) = (self.shape(), other.shape());
                let problem = format!("{a} and {b} are not the shapes of two vectors of one size");
                return Err(call.shape_error(&[a, b], problem, "multiply matrices with `matmul`"));
            }
            if self.dtype().is_float() {
                self.check_same_type(call, other)?;
                let contraction =
                    Contraction { summed: [vec![0], vec![0]], ..Contraction::default() };
                let product = Library::Contraction(contraction);
                return apply(call, Op::Library(product), &[self, other]);
            }
            let other = other.same_size(call, 0, self, 0)?;
            let product = Binary::MUL.apply(call, &self.into(), &(&other).into())?;
            product.summed(call, &Axes::from(0))
        })
    }

    /// Returns a sum of products of two tensors (Einstein summation), as NumPy's `einsum`: in the
    /// subscripts `"bij,bjk->bik"`, each letter is an axis; letters that the result lacks are
    /// summed over.
    ///
    /// Where letters of both operands are summed over, floats are multiplied as matrices, and
    /// 16-bit floats accumulate in `f32`; integers are multiplied and then added.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu)?;
    /// assert_eq!(x.einsum("ij,kj->ik", &x)?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// assert_eq!(x.einsum("ij,ij->", &x)?.item::<f32>()?, 30.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for other subscripts, a letter that occurs twice in an operand, and one
    /// of the result that no operand has; [`ErrorKind::Shape`] if the letters do not fit the
    /// shapes; [`ErrorKind::DType`] if the types differ, or are not numbers;
    /// [`ErrorKind::Device`]; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn einsum(&self, subscripts: &str, other: &Self) -> Result<Self> {
        let call = Call::new("Tensor::einsum");
        Self::in_scope_of(&[self, other], || {
            call.check_dtype(self.dtype(), NUMBERS)?;
            self.check_same_type(call, other)?;
            let [mut a, mut b, result] = parse(call, subscripts)?;
            for (axes, tensor) in [(&a, self), (&b, other)] {
                if axes.len() != tensor.rank() {
                    let (shape, count) = (tensor.shape(), axes.len());
                    let problem = format!("{count} letters of `{subscripts}` do not fit {shape}");
                    return Err(call.shape_error(&[shape], problem, "use a letter for each axis"));
                }
            }
            let is_alone = |own: &[char], other: &[char]| {
                own.iter().any(|letter| !other.contains(letter) && !result.contains(letter))
            };
            let mut operands = [self.clone(), other.clone()];
            if is_alone(&a, &b) || is_alone(&b, &a) {
                // Sums of one operand are not rounded to 16 bits before they are multiplied.
                operands = [self.accumulated(call)?, other.accumulated(call)?];
            }
            let x = operands[0].without_alone(call, &mut a, &b, &result)?;
            let y = operands[1].without_alone(call, &mut b, &a, &result)?;
            let is_summed = |letter: &&char| b.contains(*letter) && !result.contains(*letter);
            let summed: Vec<char> = a.iter().filter(is_summed).copied().collect();
            let (product, axes) = match self.dtype().is_float() && !summed.is_empty() {
                true => contracted(call, [&x, &y], [&a, &b], &summed, &result)?,
                false => multiplied(call, [&x, &y], [&a, &b], &summed, &result)?,
            };
            let order = result.iter().filter_map(|letter| axes.iter().position(|it| it == letter));
            product.view(call, View::Permute(order.collect()))?.narrowed(call, self.dtype())
        })
    }

    /// Returns the sum over axes whose letters neither the other operand nor the result has.
    fn without_alone(
        &self,
        call: Call,
        own: &mut Vec<char>,
        other: &[char],
        result: &[char],
    ) -> Result<Self> {
        let is_kept = |letter: &char| other.contains(letter) || result.contains(letter);
        let alone = own.iter().enumerate().filter(|(_, letter)| !is_kept(letter));
        let alone: Vec<i64> = alone.map(|(axis, _)| axis as i64).collect();
        own.retain(is_kept);
        if alone.is_empty() { Ok(self.clone()) } else { self.summed(call, &alone.into()) }
    }

    /// Returns the distances between all points, which are rows, of two matrices: element `[i, j]`
    /// is that of row `i` and row `j` of the other, in `f32`.
    ///
    /// ```
    /// use scry_tensor::{Device, Metric, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (Tensor::new([[0.0f32, 0.0]], &gpu)?, Tensor::new([[3.0f32, 4.0]], &gpu)?);
    /// assert_eq!(x.pairwise_distances(&y, Metric::Euclidean)?.item::<f32>()?, 5.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the tensors are not matrices with the same number of columns;
    /// [`ErrorKind::DType`] if the types differ, or are not floats; [`ErrorKind::Device`];
    /// [`ErrorKind::Gpu`].
    #[doc(alias = "cdist")]
    #[track_caller]
    pub fn pairwise_distances(&self, other: &Self, metric: Metric) -> Result<Self> {
        let call = Call::new("Tensor::pairwise_distances");
        Self::in_scope_of(&[self, other], || {
            call.check_dtype(self.dtype(), FLOATS)?;
            self.check_same_type(call, other)?;
            let distance = match metric {
                Metric::SquaredEuclidean | Metric::Euclidean => Distance::SquaredEuclidean,
                Metric::Manhattan => Distance::Manhattan,
                Metric::Cosine => Distance::Cosine,
            };
            let pairwise = Op::Library(Library::Pairwise(Pairwise(distance)));
            let distances = apply(call, pairwise, &[self, other])?;
            match metric {
                Metric::Euclidean => super::Unary::SQRT.apply(call, &distances),
                _ => Ok(distances),
            }
        })
    }
}

/// Returns the axes of the product of rows with transposed weights.
fn linear(call: Call, x: &Tensor, weight: &Tensor) -> Result<Contraction> {
    if x.rank() == 0 || weight.rank() != 2 {
        let (a, b) = (x.shape(), weight.shape());
        let problem = format!("{a} and weights of {b} do not multiply");
        let help = "weights are a matrix with a row for each output";
        return Err(call.shape_error(&[a, b], problem, help));
    }
    let last = x.rank() - 1;
    let (rows, summed) = ((0..last).collect(), [vec![last], vec![1]]);
    Ok(Contraction { rows, columns: vec![0], summed, ..Contraction::default() })
}

/// Returns the letters of both operands and of the result.
fn parse(call: Call, letters: &str) -> Result<[Vec<char>; 3]> {
    let error = |problem: String, help: &str| Err(call.error(ErrorKind::Index, problem, help));
    let parts = letters.split_once("->").and_then(|(operands, result)| {
        let (a, b) = operands.split_once(',')?;
        Some([a, b, result].map(|it| it.chars().filter(|it| *it != ' ').collect::<Vec<char>>()))
    });
    let is_letters = |part: &Vec<char>| part.iter().all(char::is_ascii_alphabetic);
    let Some(parts) = parts.filter(|parts| parts.iter().all(is_letters)) else {
        let problem = format!("`{letters}` does not describe two operands and a result");
        return error(problem, "write letters for the axes, as in \"ij,jk->ik\"");
    };
    for part in &parts {
        if let Some(twice) = (1..part.len()).find(|n| part[..*n].contains(&part[*n])) {
            let problem = format!("`{}` occurs twice in a part of `{letters}`", part[twice]);
            return error(problem, "use a letter for each axis");
        }
    }
    let is_known = |letter: &&char| parts[0].contains(letter) || parts[1].contains(letter);
    match parts[2].iter().find(|letter| !is_known(letter)) {
        None => Ok(parts),
        Some(letter) => {
            error(format!("no operand of `{letters}` has `{letter}`"), "list only letters of them")
        }
    }
}

fn positions(letters: &[char], wanted: &[char]) -> Vec<usize> {
    wanted.iter().filter_map(|it| letters.iter().position(|letter| letter == it)).collect()
}

/// Returns the product as one of stacks of matrices, and the letters of its axes.
fn contracted(
    call: Call,
    [x, y]: [&Tensor; 2],
    [a, b]: [&[char]; 2],
    summed: &[char],
    result: &[char],
) -> Result<(Tensor, Vec<char>)> {
    let of = |other: &[char], is_common: bool| -> Vec<char> {
        let own = a.iter().chain(b).filter(|it| result.contains(it));
        own.filter(|it| other.contains(it) == is_common).copied().collect()
    };
    let batch: Vec<char> =
        a.iter().filter(|it| b.contains(it) && result.contains(it)).copied().collect();
    let (rows, columns) = (of(b, false), of(a, false));
    let contraction = Contraction {
        batch: [positions(a, &batch), positions(b, &batch)],
        rows: positions(a, &rows),
        columns: positions(b, &columns),
        summed: [positions(a, summed), positions(b, summed)],
    };
    let product = apply(call, Op::Library(Library::Contraction(contraction)), &[x, y])?;
    Ok((product, [batch, rows, columns].concat()))
}

/// Returns the product of broadcast operands, summed over letters, and the letters of its axes.
fn multiplied(
    call: Call,
    operands: [&Tensor; 2],
    letters: [&[char]; 2],
    summed: &[char],
    result: &[char],
) -> Result<(Tensor, Vec<char>)> {
    let all = [result, summed].concat();
    let mut views = Vec::new();
    for (tensor, own) in operands.into_iter().zip(letters) {
        let mut view = tensor.view(call, View::Permute(positions(own, &all)))?;
        for (axis, _) in all.iter().enumerate().filter(|(_, letter)| !own.contains(letter)) {
            view = view.view(call, View::Unsqueeze(axis))?;
        }
        views.push(view);
    }
    // Axes of the same letter are not broadcast.
    let sizes = |n: usize, letter: &char| {
        positions(letters[n], &[*letter]).first().map(|axis| operands[n].shape()[*axis])
    };
    let differs =
        |letter: &&char| sizes(0, letter).zip(sizes(1, letter)).is_some_and(|(a, b)| a != b);
    if let Some(letter) = all.iter().find(differs) {
        let (a, b) = (operands[0].shape(), operands[1].shape());
        let problem = format!("`{letter}` has different sizes in {a} and {b}");
        return Err(call.shape_error(&[a, b], problem, "check the letters and the shapes"));
    }
    for (axis, letter) in all.iter().enumerate() {
        if letters.iter().all(|own| own.contains(letter)) {
            views[1] = views[1].same_size(call, axis, &views[0], axis)?;
        }
    }
    let product = Binary::MUL.apply(call, &(&views[0]).into(), &(&views[1]).into())?;
    let axes: Vec<i64> = (result.len()..all.len()).map(|axis| axis as i64).collect();
    let product = if axes.is_empty() { product } else { product.summed(call, &axes.into())? };
    Ok((product, result.to_vec()))
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "matmul",
        summary: "matrix product, batched and broadcast",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("gemm"),
        apply: Apply::Case(matmul_case),
    },
    Operation {
        name: "linear",
        summary: "linear layer: `x · wᵀ + bias`; weights may be quantised",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("gemm"),
        apply: Apply::Case(linear_case),
    },
    Operation {
        name: "dot",
        summary: "inner product of vectors",
        types: NUMBERS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("gemm"),
        apply: Apply::Case(|draw, dtype| {
            let size = draw.below(70);
            let (x, y) = (draw.numbers(dtype, &[size]), draw.numbers(dtype, &[size]));
            let sum = x.values.iter().zip(&y.values).map(|(a, b)| a * b).sum();
            let wanted = Array::build(dtype, &[], |_| sum);
            Case::new(vec![x, y], wanted, |it| it[0].dot(&it[1]))
        }),
    },
    Operation {
        name: "einsum",
        summary: "Einstein summation of two tensors",
        types: NUMBERS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("gemm"),
        apply: Apply::Case(einsum_case),
    },
    Operation {
        name: "pairwise_distances",
        summary: "distances between all rows of two matrices",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("pairwise_distances"),
        apply: Apply::Case(distances_case),
    },
];

fn matmul_case(draw: &mut Draw, dtype: DType) -> Case {
    let [batch, m, n, k] = [(); 4].map(|()| draw.from_to(1, 6));
    let x = draw.numbers(dtype, &[batch, m, k]);
    let y = draw.numbers(dtype, &[1, k, n]);
    let wanted = x.like(&[batch, m, n], |at| {
        (0..k).map(|l| x.at(&[at[0], at[1], l]) * y.at(&[0, l, at[2]])).sum()
    });
    Case::new(vec![x, y], wanted, |it| it[0].matmul(&it[1]))
}

fn linear_case(draw: &mut Draw, dtype: DType) -> Case {
    let mut shape = draw.shape(1, 3);
    let (n, k) = (draw.from_to(1, 6), shape[shape.len() - 1]);
    let (x, w) = (draw.numbers(dtype, &shape), draw.numbers(dtype, &[n, k]));
    let bias = draw.numbers(dtype, &[n]);
    let last = shape.len() - 1;
    shape[last] = n;
    let wanted = x.like(&shape, |at| {
        let mut own = at.to_vec();
        let products = (0..k).map(|l| {
            own[last] = l;
            x.at(&own) * w.at(&[at[last], l])
        });
        products.sum::<f64>() + bias.values[at[last]]
    });
    Case::new(vec![x, w, bias], wanted, |it| it[0].linear(&it[1], Some(&it[2])))
}

fn einsum_case(draw: &mut Draw, dtype: DType) -> Case {
    const TEXTS: [&str; 9] = [
        "ij,jk->ik",
        "bij,bjk->bik",
        "ij,ij->",
        "i,j->ij",
        "ijk,kj->i",
        "bhqd,bhkd->bqhk",
        "ij,ij->ji",
        "aij,ja->ai",
        "ij,k->j",
    ];
    let text = TEXTS[draw.below(TEXTS.len())];
    let sizes: Vec<usize> = (0..26).map(|_| draw.from_to(1, 4)).collect();
    let size = |letter: char| sizes[letter as usize - 'a' as usize];
    let (operands, result) = text.split_once("->").unwrap_or((text, ""));
    let (a, b) = operands.split_once(',').unwrap_or((operands, ""));
    let shape = |part: &str| part.chars().map(size).collect::<Vec<usize>>();
    let (x, y) = (draw.numbers(dtype, &shape(a)), draw.numbers(dtype, &shape(b)));
    let mut all: Vec<char> = result.chars().collect();
    all.extend(a.chars().chain(b.chars()).filter(|it| !result.contains(*it)));
    all.dedup();
    let mut unique = Vec::new();
    all.into_iter().for_each(|it| {
        if !unique.contains(&it) {
            unique.push(it)
        }
    });
    let sizes: Vec<usize> = unique.iter().map(|it| size(*it)).collect();
    let mut wanted = x.like(&shape(result), |_| 0.0);
    let _ = x.like(&sizes, |at| {
        let of = |part: &str| -> Vec<usize> {
            let place = |it| unique.iter().position(|letter| *letter == it).map_or(0, |n| at[n]);
            part.chars().map(place).collect()
        };
        let places = of(result).into_iter().zip(&wanted.shape);
        let place = places.fold(0, |sum, (at, size)| sum * size + at);
        wanted.values[place] += x.at(&of(a)) * y.at(&of(b));
        0.0
    });
    Case::new(vec![x, y], wanted, move |it| it[0].einsum(text, &it[1]))
}

fn distances_case(draw: &mut Draw, dtype: DType) -> Case {
    const METRICS: [Metric; 4] =
        [Metric::SquaredEuclidean, Metric::Euclidean, Metric::Manhattan, Metric::Cosine];
    let metric = METRICS[draw.below(4)];
    let [m, n, dim] = [(); 3].map(|()| draw.from_to(1, 7));
    let (x, y) = (draw.numbers(dtype, &[m, dim]), draw.numbers(dtype, &[n, dim]));
    let wanted = Array::build(DType::F32, &[m, n], |at| {
        let pairs = || (0..dim).map(|l| (x.at(&[at[0], l]), y.at(&[at[1], l])));
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|a| a * a).sum::<f64>();
        let squares = square(&mut pairs().map(|(a, b)| a - b));
        match metric {
            Metric::SquaredEuclidean => squares,
            Metric::Euclidean => squares.sqrt(),
            Metric::Manhattan => pairs().map(|(a, b)| (a - b).abs()).sum(),
            Metric::Cosine => {
                let lengths =
                    square(&mut pairs().map(|it| it.0)) * square(&mut pairs().map(|it| it.1));
                let product: f64 = pairs().map(|(a, b)| a * b).sum();
                if lengths == 0.0 { 1.0 } else { 1.0 - product / lengths.sqrt() }
            }
        }
    });
    Case::new(vec![x, y], wanted, move |it| it[0].pairwise_distances(&it[1], metric))
}
