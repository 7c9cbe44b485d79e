//! Attention and rotary position embedding.

use super::reference::{Array, Case, Draw};
use super::{Apply, KernelSource, Operation};
use crate::dtype::{DType, FLOATS, INTEGERS};
use crate::error::{Call, Result};
use crate::op::{Attend, Library, Op, Rotate};
use crate::tensor::{Tensor, apply};

/// The options of [`Tensor::attention`].
///
/// ```
/// let options = scry_tensor::Attention { is_causal: true, ..Default::default() };
/// assert!(options.scale.is_none());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Attention<'a> {
    /// Attention mask or bias (PyTorch's `attn_mask`): added to the scores; minus infinity masks a
    /// key. Of the element type of the queries. It expands to `[batch, heads, queries, keys]`.
    pub bias: Option<&'a Tensor>,
    /// Causal mask: query `i` attends to keys 0 to `i`.
    pub is_causal: bool,
    /// Scale of the scores; `None` for `1 / sqrt(head_dim)`.
    pub scale: Option<f32>,
}

/// Attention.
impl Tensor {
    /// Returns scaled dot-product attention (PyTorch's `scaled_dot_product_attention`) of queries
    /// `[batch, heads, queries, head_dim]` to keys and values `[batch, kv_heads, keys, head_dim]`:
    /// `softmax(q · kᵀ * scale + bias) · v`. `kv_heads` must divide `heads`: adjacent heads share
    /// keys and values (grouped-query attention). `head_dim` is at most 256. Scores are computed in
    /// `f32` and are not stored (flash attention). A query that sees no key becomes 0. Operands may
    /// be strided views, such as `x.transpose(1, 2)?` of `[batch, queries, heads, head_dim]`, or
    /// the first rows of a longer KV cache. The result is such a view, too:
    /// `y.transpose(1, 2)?.reshape([batch, queries, heads * head_dim])?` copies nothing.
    ///
    /// ```
    /// use scry_tensor::{Attention, DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(4, DType::F32, &gpu)?.reshape([1, 1, 2, 2])?;
    /// let causal = Attention { is_causal: true, ..Default::default() };
    /// let y = x.attention(&x, &x, &causal)?;
    /// assert_eq!(y.i((0, 0, 0))?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if the shapes do not match, or `head_dim` is
    /// more than 256; [`ErrorKind::DType`](crate::ErrorKind::DType) if the types differ, or are not
    /// floats; [`ErrorKind::Device`](crate::ErrorKind::Device);
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) if the device supports no variant of the kernel
    /// library.
    #[doc(alias("scaled_dot_product_attention", "sdpa", "flash_attention"))]
    #[track_caller]
    pub fn attention(&self, keys: &Self, values: &Self, options: &Attention<'_>) -> Result<Self> {
        let call = Call::new("Tensor::attention");
        call.check_dtype(self.dtype(), FLOATS)?;
        let operands: Vec<&Self> = [self, keys, values].into_iter().chain(options.bias).collect();
        operands.iter().try_for_each(|other| self.check_same_type(call, other))?;
        let (is_causal, scale) = (options.is_causal, options.scale.map(Into::into));
        let op = Op::Library(Library::Attend(Attend { is_causal, scale }));
        apply(call, op, &operands)?.transpose(1, 2)
    }

    /// Returns rotary position embedding of heads, `[…, heads, head_dim]`, as in GPT-NeoX and
    /// Llama: elements `i` and `i + head_dim / 2` are rotated by the angle
    /// `position * theta^(-2 i / head_dim)`. `positions`, of `i32` or `u32`, has the shape of the
    /// tensor without its last two axes, or expands to it; `theta` is usually 10,000. Operands of
    /// [`attention`](Self::attention), `[batch, heads, seq_len, head_dim]`, have other axes: rotate
    /// `q.transpose(1, 2)?`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[[1.0f32, 0.0]], [[1.0, 0.0]]], &gpu)?; // 2 rows, 1 head
    /// let y = x.rope(&Tensor::new([0u32, 2], &gpu)?, 10_000.0)?.to_vec::<f32>()?;
    /// assert!(y[..2] == [1.0, 0.0] && (y[2] - 2f32.cos()).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if there are fewer than 2 axes, `head_dim` is
    /// odd, or positions do not fit; [`ErrorKind::DType`](crate::ErrorKind::DType);
    /// [`ErrorKind::Device`](crate::ErrorKind::Device); [`ErrorKind::Gpu`](crate::ErrorKind::Gpu),
    /// also if `theta` is not positive and finite.
    #[track_caller]
    pub fn rope(&self, positions: &Self, theta: f32) -> Result<Self> {
        self.rotated(Call::new("Tensor::rope"), positions, theta, false)
    }

    /// Returns rotary position embedding as in GPT-J: elements `2 i` and `2 i + 1` are rotated.
    /// Otherwise as [`rope`](Self::rope).
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::ones([3, 1, 4], DType::F32, &gpu)?;
    /// let positions = Tensor::zeros([3], DType::U32, &gpu)?;
    /// assert_eq!(x.rope_interleaved(&positions, 10_000.0)?.to_vec::<f32>()?, [1.0; 12]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`rope`](Self::rope).
    #[track_caller]
    pub fn rope_interleaved(&self, positions: &Self, theta: f32) -> Result<Self> {
        self.rotated(Call::new("Tensor::rope_interleaved"), positions, theta, true)
    }

    fn rotated(
        &self,
        call: Call,
        positions: &Self,
        theta: f32,
        is_interleaved: bool,
    ) -> Result<Self> {
        call.check_dtype(self.dtype(), FLOATS)?;
        call.check_dtype(positions.dtype(), INTEGERS)?;
        let rotate = Rotate { theta: theta.into(), is_interleaved };
        apply(call, Op::Library(Library::Rotate(rotate)), &[self, positions])
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "attention",
        summary: "scaled dot-product attention",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("attention"),
        apply: Apply::Case(attention_case),
    },
    Operation {
        name: "rope",
        summary: "rotary position embedding, GPT-NeoX and Llama layout",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("rope"),
        apply: Apply::Case(|draw, dtype| rope_case(draw, dtype, false)),
    },
    Operation {
        name: "rope_interleaved",
        summary: "rotary position embedding, GPT-J layout",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("rope"),
        apply: Apply::Case(|draw, dtype| rope_case(draw, dtype, true)),
    },
];

fn attention_case(draw: &mut Draw, dtype: DType) -> Case {
    let [batch, kv_heads, group] = [(); 3].map(|()| draw.from_to(1, 2));
    let [rows, keys, columns] = [(); 3].map(|()| draw.from_to(1, 6));
    let heads = kv_heads * group;
    let q = draw.numbers(dtype, &[batch, heads, rows, columns]);
    let mut other = || draw.numbers(dtype, &[batch, kv_heads, keys, columns]);
    let (k, v) = (other(), other());
    let bias = draw.numbers(dtype, &[heads, 1, keys]);
    let (is_causal, has_bias) = (draw.below(2) == 0, draw.below(2) == 0);
    let wanted = q.like(&q.shape, |at| {
        let [z, head, row, column] = [at[0], at[1], at[2], at[3]];
        let score = |key: usize| {
            let product =
                (0..columns).map(|l| q.at(&[z, head, row, l]) * k.at(&[z, head / group, key, l]));
            let bias = if has_bias { bias.at(&[head, 0, key]) } else { 0.0 };
            (product.sum::<f64>() * 0.5 + bias).exp()
        };
        let seen = if is_causal { keys.min(row + 1) } else { keys };
        let sum: f64 = (0..seen).map(score).sum();
        (0..seen).map(|key| score(key) / sum * v.at(&[z, head / group, key, column])).sum()
    });
    Case::new(vec![q, k, v, bias], wanted, move |it| {
        let bias = has_bias.then_some(&it[3]);
        it[0].attention(&it[1], &it[2], &Attention { bias, is_causal, scale: Some(0.5) })
    })
}

fn rope_case(draw: &mut Draw, dtype: DType, is_interleaved: bool) -> Case {
    let (rows, half) = (draw.shape(0, 2), draw.from_to(1, 3));
    let shape = [&rows[..], &[draw.from_to(1, 3), 2 * half]].concat();
    let x = draw.numbers(dtype, &shape);
    let positions = Array::build(DType::U32, &rows, |_| draw.below(50) as f64);
    let last = shape.len() - 1;
    let wanted = x.like(&shape, |at| {
        let column = at[last];
        let (pair, is_second) = if is_interleaved {
            (column / 2, column % 2 == 1)
        } else {
            (column % half, column >= half)
        };
        let place = |is_second: bool| {
            let step = usize::from(is_second);
            let column = if is_interleaved { 2 * pair + step } else { pair + step * half };
            x.at(&[&at[..last], &[column]].concat())
        };
        let angle = positions.at(&at[..rows.len()]) * 100f64.powf(-(pair as f64) / half as f64);
        let (a, b) = (place(false), place(true));
        if is_second {
            b * angle.cos() + a * angle.sin()
        } else {
            a * angle.cos() - b * angle.sin()
        }
    });
    Case::new(vec![x, positions], wanted, move |it| match is_interleaved {
        true => it[0].rope_interleaved(&it[1], 100.0),
        false => it[0].rope(&it[1], 100.0),
    })
}
