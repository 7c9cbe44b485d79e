//! The block formats.

/// A format of quantised weights: blocks of integers of few bits, with scales.
///
/// | format | a weight is | bits of `q` | bytes of a block |
/// | --- | --- | --- | --- |
/// | `Q4_0` | `d * (q - 8)` | 4 | 2 `d`, 16 `q` |
/// | `Q4_1` | `d * q + m` | 4 | 2 `d`, 2 `m`, 16 `q` |
/// | `Q4K` | `d * scale * q - dmin * offset` | 4 | 2 `d`, 2 `dmin`, 12 scales, 128 `q` |
/// | `Q5K` | the same | 5 | 2 `d`, 2 `dmin`, 12 scales, 32 high bits, 128 low bits |
/// | `Q6K` | `d * scale * (q - 32)` | 6 | 128 low bits, 64 high bits, 16 scales, 2 `d` |
/// | `Q8_0` | `d * q` | 8 | 2 `d`, 32 `q` |
///
/// `d`, `dmin` and `m` are f16. A byte of `Q4_0` and `Q4_1` has weight `i` in its low bits and
/// weight `i + 16` in its high bits. Scales, and offsets with them, are for 32 weights each in
/// `Q4K` and `Q5K` (6 bits), and for 16 in `Q6K` (8 bits, signed). Numbers of several bytes are
/// little-endian. Blocks are stored without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockFormat {
    /// 4.5 bits a weight.
    Q4_0,
    /// 5 bits a weight.
    Q4_1,
    /// 4.5 bits a weight.
    Q4K,
    /// 5.5 bits a weight.
    Q5K,
    /// 6.5625 bits a weight.
    Q6K,
    /// 8.5 bits a weight.
    Q8_0,
}

/// Weights that kernels process together: one block of 256, or 8 of 32.
pub(super) const SPAN: u32 = 256;

impl BlockFormat {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::Q4_0, Self::Q4_1, Self::Q4K, Self::Q5K, Self::Q6K, Self::Q8_0];

    /// Returns the weights per block.
    #[must_use]
    pub const fn block_len(self) -> usize {
        match self {
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
            Self::Q4_0 | Self::Q4_1 | Self::Q8_0 => 32,
        }
    }

    /// Returns the bytes per block.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
            Self::Q8_0 => 34,
        }
    }

    /// Returns the bytes of 256 weights.
    pub(super) const fn span_bytes(self) -> u32 {
        SPAN / self.block_len() as u32 * self.block_bytes() as u32
    }

    /// Whether a kernel of [`MatVec`](super::MatVec) streams the format through shared memory.
    pub(super) const fn is_streamed(self) -> bool {
        !matches!(self, Self::Q4_0 | Self::Q4_1)
    }

    /// Whether blocks are 16-byte aligned; otherwise they are 2-byte aligned.
    pub(super) const fn is_aligned(self) -> bool {
        self.block_bytes().is_multiple_of(16)
    }

    /// Returns its field in kernel names.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Q4_0 => "q40",
            Self::Q4_1 => "q41",
            Self::Q4K => "q4k",
            Self::Q5K => "q5k",
            Self::Q6K => "q6k",
            Self::Q8_0 => "q80",
        }
    }
}
