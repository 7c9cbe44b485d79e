//! Rows of quantised weights that indices select, such as the lookup of embeddings.

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, bf16, f16};
use scry_ptx::kernels::quant::{self, BlockFormat};

use super::shaders;
use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::host;
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::ops::gather::IndexedRows;

impl Kernels {
    /// Prepares the dequantisation of rows that indices select, such as the lookup of embeddings:
    /// row i of `y` is row `indices[i]` of the weights in `blocks`, a row-major matrix of rows ×
    /// columns. `y` is one of count × columns, of `f32`, `f16` or `bf16`; `indices` are `u32` or
    /// `i32`. Buffers may be longer.
    ///
    /// The elements are those of [`Kernels::dequantize`], but for the signs of zeros. An index that
    /// is negative, or at least `rows`, selects a row of zeros.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{BlockFormat, Kernels};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let kernels = Kernels::new(&gpu)?;
    /// // 3 × 32; a block of Q8_0 has 34 bytes.
    /// let weights: Vec<f32> = (0..3).flat_map(|row| [(row * 127) as f32; 32]).collect();
    /// let (weights, blocks) = (gpu.upload(&weights)?, gpu.alloc::<u8>(3 * 34 + 2)?);
    /// let format = BlockFormat::Q8_0;
    /// kernels.quantize(format, &weights, &blocks, 3 * 32)?.run()?;
    /// let (indices, y) = (gpu.upload(&[2u32, 0])?, gpu.alloc::<f32>(2 * 32)?);
    /// kernels.dequantize_rows(format, &blocks, &indices, &y, [3, 32], 2)?.run()?;
    /// assert_eq!(y.download()?, [[254.0f32; 32], [0.0; 32]].concat());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for rows with partial blocks, and
    /// buffers that are too short, of another type, or that overlap with `y`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no variant
    /// for the types and the sizes.
    pub fn dequantize_rows(
        &self,
        format: BlockFormat,
        blocks: &dyn Binding,
        indices: &dyn Binding,
        y: &dyn Binding,
        [rows, columns]: [usize; 2],
        count: usize,
    ) -> Result<Op> {
        const FUNCTION: &str = "Kernels::dequantize_rows";
        let dtype = Call::new(FUNCTION).dtype("y", y, &FLOATS)?;
        super::check_blocks(FUNCTION, "columns", columns, format)?;
        let rows = IndexedRows::new(FUNCTION, indices, [rows, columns, count])?;
        self.op(DequantizeRows { format, dtype, rows }, &[blocks, indices, y])
    }
}

/// Dequantisation of rows that indices select.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ops) struct DequantizeRows {
    pub(super) format: BlockFormat,
    pub(super) dtype: DType,
    pub(super) rows: IndexedRows,
}

impl Operation for DequantizeRows {
    fn function(&self) -> &'static str {
        "Kernels::dequantize_rows"
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        self.rows.sizes()
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![
            super::blocks("blocks", self.format, self.rows.table_len(), false),
            arguments::read("indices", self.rows.index, self.rows.count),
            arguments::write("y", self.dtype, self.rows.selected_len()),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                host::variant(prepare),
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: shaders::dequantize_rows_obstacle,
                    suits: |_, _| true,
                    prepare: shaders::dequantize_rows,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.rows.selected_len() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}

/// Prepares the function of the CPU device.
fn prepare(it: &DequantizeRows, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let it = it.clone();
    preparation.host("host_dequantize_rows", it.arguments(), move |arguments| {
        let (blocks, indices) = (arguments.read::<u8>(0), arguments.read::<u32>(1));
        match it.dtype {
            DType::F16 => it.decode(blocks, indices, arguments.write(2), f16::from_f32),
            DType::BF16 => it.decode(blocks, indices, arguments.write(2), bf16::from_f32),
            _ => it.decode(blocks, indices, arguments.write(2), |weight| weight),
        }
    })
}

impl DequantizeRows {
    fn decode<T: Clone + Send>(
        &self,
        blocks: &[u8],
        indices: &[u32],
        y: &mut [T],
        round: impl Fn(f32) -> T + Send + Sync,
    ) {
        let columns = self.rows.columns as usize;
        let bytes = super::block_bytes(self.format, self.rows.columns) as usize;
        let y = &mut y[..self.rows.selected_len() as usize];
        let part_len = (host::MIN_PART / columns).max(1) * columns;
        host::for_each_part(y, part_len, |start, y| {
            let indices = &indices[start / columns..];
            for (y, index) in y.chunks_exact_mut(columns).zip(indices) {
                if u64::from(*index) >= self.rows.rows {
                    y.fill(round(0.0));
                    continue;
                }
                let row = &blocks[*index as usize * bytes..][..bytes];
                let weights = quant::dequantize(self.format, row).expect("rows are whole blocks");
                y.iter_mut().zip(weights).for_each(|(y, weight)| *y = round(weight));
            }
        });
    }
}
