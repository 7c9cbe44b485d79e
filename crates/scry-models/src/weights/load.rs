//! Copying tensors from files to devices, in pieces.

use scry_gpu::UntypedBuffer;
use scry_tensor::{DType, Device, Tensor};

use super::Weights;
use super::convert::{Conversion, OutOfRange};
use super::tensor_info::TensorInfo;
use crate::error::{Error, ErrorKind, Result};

/// Largest piece that is read at once, in bytes.
const PIECE: usize = 16 << 20;

impl Weights {
    /// Copies a tensor to a device. Its type is that of the file if tensors have it: floats of 16
    /// and 32 bits, 32-bit integers, bools and GGUF's quantised weights `q4_0`, `q4_1`, `q8_0`,
    /// `q4_k`,
    /// `q5_k` and `q6_k`. `f64` is rounded to `f32`; other integers become `i32`, and `u64` becomes
    /// `u32`, if all of them are in range.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// let weights = scry_models::Weights::open("model.gguf")?;
    /// let norm = weights.tensor("output_norm.weight", &gpu)?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Keys`] if there is no such tensor; [`ErrorKind::DType`] if its type is not
    /// supported; [`ErrorKind::Value`] for integers out of range; [`ErrorKind::Io`], also if the
    /// file became shorter since it was opened; [`ErrorKind::Tensor`]; [`ErrorKind::Gpu`].
    pub fn tensor(&self, name: &str, device: &Device) -> Result<Tensor> {
        self.load("Weights::tensor", name, None, device)
    }

    /// Copies a tensor to a device, converted to `dtype`: floats and quantised weights to a float
    /// type, rounded once to nearest, ties to even; integers to `i32` or `u32`.
    ///
    /// ```no_run
    /// # let gpu = scry_models::Device::open("cpu")?;
    /// use scry_models::DType;
    ///
    /// let weights = scry_models::Weights::open("model.gguf")?;
    /// let dequantised = weights.tensor_as("token_embd.weight", DType::F16, &gpu)?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Weights::tensor`]; [`ErrorKind::DType`] if there is no such conversion;
    /// [`ErrorKind::Value`] for values beyond the type, such as `1e6` for `f16`.
    pub fn tensor_as(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        self.load("Weights::tensor_as", name, Some(dtype), device)
    }

    /// Copies a tensor, of the type of the file unless another one is requested.
    pub(super) fn load(
        &self,
        call: &'static str,
        name: &str,
        dtype: Option<DType>,
        device: &Device,
    ) -> Result<Tensor> {
        let Some(info) = self.info(name) else { return Err(self.missing(call, name)) };
        let own = info.stored.dtype().ok_or_else(|| self.unsupported(call, info, dtype))?;
        let wanted = dtype.unwrap_or(own);
        let load = Load { weights: self, call, info, device };
        if own.is_quantized() && (wanted.is_float() || wanted == own) {
            return load.named(load.blocks(own)?.cast(wanted));
        }
        let conversion = Conversion::new(info.stored, wanted);
        let conversion = conversion.ok_or_else(|| self.unsupported(call, info, dtype))?;
        if wanted == DType::Bool {
            load.bools(conversion)
        } else {
            load.elements(conversion, wanted)
        }
    }

    /// Returns the error for a name that no tensor has, with the most similar one.
    fn missing(&self, call: &'static str, name: &str) -> Error {
        let problem = format!("the file has no tensor `{name}`");
        let help = match self.similar(name) {
            Some(other) => {
                format!("the most similar name is `{other}`; `scry model info` lists all tensors")
            }
            None => "the file has no tensors".to_owned(),
        };
        Error::new(call, ErrorKind::Keys, problem, help).in_file(&self.files[0].path)
    }

    /// Returns the name that shares the longest end with another name.
    pub(super) fn similar(&self, name: &str) -> Option<&str> {
        let shared = |info: &&TensorInfo| {
            let (a, b) = (info.name.bytes().rev(), name.bytes().rev());
            let end = a.zip(b).take_while(|(a, b)| a == b).count();
            let (a, b) = (info.name.bytes(), name.bytes());
            (end, a.zip(b).take_while(|(a, b)| a == b).count())
        };
        self.tensors.iter().max_by_key(shared).map(TensorInfo::name)
    }

    fn unsupported(&self, call: &'static str, info: &TensorInfo, to: Option<DType>) -> Error {
        let stored = info.stored;
        let (problem, help) = match (stored.dtype(), to) {
            (Some(_), Some(to)) => (
                format!("{stored} cannot be converted to {to} on load"),
                "load it as it is stored, and convert the tensor: `.cast(…)`",
            ),
            _ => (
                format!("the type {stored} is not supported"),
                "convert the model to f32, f16, bf16, q4_0, q4_1, q8_0, q4_k, q5_k or q6_k",
            ),
        };
        let error = Error::new(call, ErrorKind::DType, problem, help);
        error.in_file(&self.files[info.file].path).of_tensor(&info.name).at(info.offset)
    }
}

/// A tensor that is being copied to a device.
struct Load<'w> {
    weights: &'w Weights,
    call: &'static str,
    info: &'w TensorInfo,
    device: &'w Device,
}

impl Load<'_> {
    /// Adds file and tensor to an error.
    fn named<T, E: Into<Error>>(&self, result: Result<T, E>) -> Result<T> {
        result.map_err(|error| {
            let error: Error = error.into();
            error.in_call(self.call).in_file(self.path()).of_tensor(&self.info.name)
        })
    }

    fn path(&self) -> &std::path::Path {
        &self.weights.files[self.info.file].path
    }

    /// Reads the data in pieces of whole words, each with its offset in the data.
    fn pieces(&self, mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let bytes = self.info.bytes as usize;
        for start in (0..bytes).step_by(PIECE) {
            let len = PIECE.min(bytes - start);
            let at = self.info.offset + start as u64;
            let source = &self.weights.files[self.info.file].source;
            let piece = source.read(at, len).map_err(|error| {
                Error::io(self.call, self.path(), error).of_tensor(&self.info.name).at(at)
            })?;
            each(start, &piece)?;
        }
        Ok(())
    }

    /// Copies quantised weights as they are.
    fn blocks(&self, dtype: DType) -> Result<Tensor> {
        let buffer = self.named(self.device.alloc_untyped(None, self.info.bytes as usize))?;
        self.pieces(|start, piece| self.write(&buffer, start, piece))?;
        let shape = self.info.shape.clone();
        self.named(Tensor::from_block_buffer(&buffer, dtype, shape, self.device))
    }

    fn write(&self, buffer: &UntypedBuffer, start: usize, piece: &[u8]) -> Result<()> {
        let slice = buffer.slice(start..start + piece.len());
        self.named(slice.and_then(|slice| slice.write_bytes(piece)))
    }

    /// Copies elements, converted piece by piece.
    fn elements(&self, conversion: Conversion, to: DType) -> Result<Tensor> {
        let each = self.info.stored.block_bytes();
        let size = if matches!(to, DType::F16 | DType::BF16) { 2 } else { 4 };
        let count = self.info.bytes as usize / each;
        // Tensors are whole words.
        let words = count.checked_mul(size).map_or(usize::MAX, |bytes| bytes.div_ceil(4));
        let buffer = self.named(self.device.alloc_untyped(None, words.saturating_mul(4)))?;
        self.pieces(|start, piece| {
            if conversion.is_identity() {
                return self.write(&buffer, start, piece);
            }
            let converted = self.convert(conversion, to, start / each, piece)?;
            self.write(&buffer, start / each * size, &converted)
        })?;
        let dtype = match to {
            DType::F16 => scry_gpu::DType::F16,
            DType::BF16 => scry_gpu::DType::BF16,
            DType::I32 => scry_gpu::DType::I32,
            DType::U32 => scry_gpu::DType::U32,
            _ => scry_gpu::DType::F32,
        };
        let buffer = self.named(buffer.view_as(dtype))?;
        self.named(Tensor::from_buffer(&buffer, self.info.shape.clone(), self.device))
    }

    /// Copies bools, which are in host memory until all are read.
    fn bools(&self, conversion: Conversion) -> Result<Tensor> {
        let mut all: Vec<bool> = Vec::new();
        self.pieces(|start, piece| {
            let bytes = self.convert(conversion, DType::Bool, start, piece)?;
            all.extend(bytes.iter().map(|byte| *byte != 0));
            Ok(())
        })?;
        self.named(Tensor::from_slice(&all, self.info.shape.clone(), self.device))
    }

    /// Converts a piece, whose first element is at a position of the tensor.
    fn convert(
        &self,
        conversion: Conversion,
        to: DType,
        first: usize,
        piece: &[u8],
    ) -> Result<Vec<u8>> {
        conversion.apply(piece).map_err(|OutOfRange { position, value }| {
            let position = first + position;
            let problem = format!("{value} at position {position} is out of range for {to}");
            let help = match to {
                DType::F16 => "load the tensor as bf16 or f32",
                DType::I32 => "load the tensor as u32 if no integer is negative",
                DType::U32 => "load the tensor as i32 if integers are negative",
                _ => "the file is damaged, or the type is not the one that was meant",
            };
            let offset = (position * self.info.stored.block_bytes()) as u64;
            Error::new(self.call, ErrorKind::Value, problem, help)
                .in_file(self.path())
                .of_tensor(&self.info.name)
                .at(self.info.offset + offset)
        })
    }
}
