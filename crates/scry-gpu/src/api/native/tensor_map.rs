//! Tensor maps: descriptions of buffers for TMA.

/// The element type of a tensor, as TMA distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorElement {
    /// Bytes.
    U8,
    /// IEEE 754 half precision.
    F16,
    /// Bfloat16.
    Bf16,
    /// IEEE 754 single precision.
    F32,
}

impl TensorElement {
    const ALL: [Self; 4] = [Self::U8, Self::F16, Self::Bf16, Self::F32];

    /// Returns the size in bytes.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// The swizzle mode of a tile in shared memory, by its span in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorSwizzle {
    /// No swizzle.
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl TensorSwizzle {
    const ALL: [Self; 4] = [Self::None, Self::B32, Self::B64, Self::B128];

    /// Returns the maximum size of a tile along the first dimension in bytes.
    const fn max_row_bytes(self) -> u64 {
        match self {
            Self::None => u64::MAX,
            Self::B32 => 32,
            Self::B64 => 64,
            Self::B128 => 128,
        }
    }
}

/// A tensor map (`CUtensorMap`), with which TMA copies tiles of a buffer: a tensor of 2 to 5
/// dimensions, innermost first, on GPUs of compute capability 9.0 and newer. Out-of-bounds elements
/// of a tile read as zero and are not stored, except that stores of a row are rounded up to
/// 16-byte chunks; the last chunk is padded with zeros.
///
/// It contains no address: each launch encodes it for the buffer that is bound, and rejects a
/// tensor that exceeds the limits below, or the buffer, with
/// [`GpuError::Argument`](crate::GpuError::Argument), which names the value and its limit.
///
/// ```
/// use scry_gpu::{
///     Device, Launch, NativeBinding, NativeInterface, NativeParameter, Scalar, TensorElement,
///     TensorMap, TensorSwizzle,
/// };
///
/// // A row-major matrix of 256 rows and 128 columns, in tiles of 16 rows and 32 columns.
/// let map = TensorMap {
///     element: TensorElement::F32,
///     offset: 0,
///     dims: vec![128, 256],
///     strides: vec![128 * 4],
///     tile: vec![32, 16],
///     swizzle: TensorSwizzle::B128,
/// };
/// // .visible .entry sum(.param .align 64 .b8 x[128])
/// let interface = NativeInterface::new([NativeBinding::read("x", Scalar::F32)], [128, 1, 1])
///     .with_parameters([NativeParameter::TensorMap(0)]);
/// let gpu = Device::open("null")?;
/// # let ptx = "";
/// // SAFETY: the null device executes no kernels.
/// let sum = unsafe { gpu.compile_ptx(ptx, "sum", &interface)? };
/// let launch = Launch::workgroups([16, 4, 1]).immediate_bytes(map.to_bytes());
/// gpu.run(&sum, &[&gpu.alloc::<f32>(256 * 128)?], launch.clone())?;
/// // The tensor exceeds this buffer.
/// assert!(gpu.run(&sum, &[&gpu.alloc::<f32>(255 * 128)?], launch).is_err());
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// The element type.
    pub element: TensorElement,
    /// Offset from the start of the buffer in bytes, a multiple of 16.
    pub offset: u64,
    /// Elements along each dimension, 1 to 2^32.
    pub dims: Vec<u64>,
    /// Strides of all dimensions but the first in bytes: multiples of 16, below 2^40.
    pub strides: Vec<u64>,
    /// Elements of a tile along each dimension, 1 to 256. Along the first dimension they are a
    /// multiple of 16 bytes, and at most the span of the swizzle.
    pub tile: Vec<u32>,
    /// The layout of a tile in shared memory.
    pub swizzle: TensorSwizzle,
}

impl TensorMap {
    /// Size of the encoding in bytes.
    pub(crate) const BYTES: usize = 128;

    /// Encodes the map for the immediates of a launch. Omits dimensions beyond the fifth, which the
    /// launch rejects.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 128] {
        let code = |index: Option<usize>| index.unwrap_or(usize::MAX) as u64;
        // All larger counts are rejected as too large.
        let count = |len: usize| len.min(0xff) as u64;
        let mut words = [0u64; 16];
        words[0] = count(self.dims.len())
            | code(TensorElement::ALL.iter().position(|it| *it == self.element)) << 8
            | code(TensorSwizzle::ALL.iter().position(|it| *it == self.swizzle)) << 16
            | count(self.strides.len()) << 24
            | count(self.tile.len()) << 32;
        words[1] = self.offset;
        self.dims.iter().zip(&mut words[2..7]).for_each(|(from, to)| *to = *from);
        self.strides.iter().zip(&mut words[7..11]).for_each(|(from, to)| *to = *from);
        self.tile.iter().zip(&mut words[11..]).for_each(|(from, to)| *to = u64::from(*from));
        let mut bytes = [0; Self::BYTES];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        bytes
    }

    /// Decodes the bytes of [`TensorMap::to_bytes`]; `None` for invalid bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (chunks, _) = bytes.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(chunks[at]);
        let [rank, element, swizzle, strides, tile, rest @ ..] = word(0).to_le_bytes();
        let rank = usize::from(rank);
        let counts = [usize::from(strides) + 1, usize::from(tile)];
        if !(2..=5).contains(&rank) || counts != [rank; 2] || rest != [0; 3] {
            return None;
        }
        let tile = (11..11 + rank).map(|at| u32::try_from(word(at)).ok());
        Some(Self {
            element: *TensorElement::ALL.get(usize::from(element))?,
            offset: word(1),
            dims: (2..2 + rank).map(word).collect(),
            strides: (7..6 + rank).map(word).collect(),
            tile: tile.collect::<Option<_>>()?,
            swizzle: *TensorSwizzle::ALL.get(usize::from(swizzle))?,
        })
    }

    /// Checks the requirements of TMA, and the bounds of a buffer of the given number of bytes.
    /// Stores are whole 16-byte chunks, with zeros after the last element of a row.
    pub(crate) fn check(&self, size: u64, writes: bool) -> Result<(), String> {
        self.check_shape()?;
        let outer = self.dims[1..].iter().zip(&self.strides);
        let last_row = outer.map(|(count, stride)| u128::from(count - 1) * u128::from(*stride));
        let row = u128::from(self.dims[0]) * u128::from(self.element.size());
        let row = if writes { row.next_multiple_of(16) } else { row };
        let end = u128::from(self.offset) + last_row.sum::<u128>() + row;
        match (end > u128::from(size), writes) {
            (false, _) => Ok(()),
            (true, false) => Err(format!("it ends at byte {end} of a buffer of {size}")),
            (true, true) => Err(format!(
                "it ends at byte {end}, in 16-byte chunks, of a buffer of {size} that is \
                 written"
            )),
        }
    }

    fn check_shape(&self) -> Result<(), String> {
        let require =
            |ok: bool, problem: &dyn Fn() -> String| if ok { Ok(()) } else { Err(problem()) };
        let Self { offset, dims, strides, tile, .. } = self;
        require(offset.is_multiple_of(16), &|| {
            format!("it begins at byte {offset}, which is not a multiple of 16")
        })?;
        require(dims.iter().all(|n| (1..=1 << 32).contains(n)), &|| {
            format!("it has {dims:?} elements along its dimensions, each of 1 to 2^32")
        })?;
        require(strides.iter().all(|n| n.is_multiple_of(16) && *n < 1 << 40), &|| {
            format!("its strides are {strides:?} bytes, each a multiple of 16 below 2^40")
        })?;
        require(tile.iter().all(|n| (1..=256).contains(n)), &|| {
            format!("a tile has {tile:?} elements along its dimensions, each of 1 to 256")
        })?;
        let row = u64::from(tile[0]) * self.element.size();
        require(row.is_multiple_of(16) && row <= self.swizzle.max_row_bytes(), &|| {
            let limit = match self.swizzle {
                TensorSwizzle::None => String::new(),
                swizzle => {
                    format!(" up to the {} of the swizzle {swizzle:?}", swizzle.max_row_bytes())
                }
            };
            format!("a tile has rows of {row} bytes, which is not a multiple of 16{limit}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            element: TensorElement::Bf16,
            offset: 32,
            dims: vec![100, 7, 3],
            strides: vec![208, 208 * 7],
            tile: vec![64, 4, 1],
            swizzle: TensorSwizzle::B128,
        }
    }

    #[test]
    fn encoding_is_reversible() {
        assert_eq!(TensorMap::from_bytes(&map().to_bytes()), Some(map()));
        let flat = TensorMap { dims: vec![9, 5], strides: vec![16], tile: vec![8, 1], ..map() };
        assert_eq!(TensorMap::from_bytes(&flat.to_bytes()), Some(flat));
        for (element, swizzle) in TensorElement::ALL.into_iter().zip(TensorSwizzle::ALL) {
            let other = TensorMap { element, swizzle, ..map() };
            assert_eq!(TensorMap::from_bytes(&other.to_bytes()), Some(other));
        }
    }

    #[test]
    fn invalid_encodings_are_rejected() {
        assert_eq!(TensorMap::from_bytes(&[0; 128]), None);
        assert_eq!(TensorMap::from_bytes(&[0xff; 128]), None);
        assert_eq!(TensorMap::from_bytes(&map().to_bytes()[1..]), None);
        for invalid in [
            TensorMap { dims: vec![4], strides: vec![], tile: vec![16], ..map() },
            TensorMap { dims: vec![4; 6], strides: vec![16; 5], tile: vec![16; 6], ..map() },
            TensorMap { strides: vec![208], ..map() },
            TensorMap { tile: vec![64, 4], ..map() },
            // Counts that truncate to 3, 2 and 3 in a byte.
            TensorMap { dims: vec![4; 259], strides: vec![16; 258], tile: vec![16; 259], ..map() },
            TensorMap { dims: vec![4; 259], strides: vec![16; 2], tile: vec![16; 3], ..map() },
        ] {
            assert_eq!(TensorMap::from_bytes(&invalid.to_bytes()), None, "{invalid:?}");
        }
    }

    #[test]
    fn bounds_end_at_last_element() {
        let end = 32 + 6 * 208 + 2 * 208 * 7 + 200;
        assert_eq!(map().check(end, false), Ok(()));
        let beyond = map().check(end - 1, false).unwrap_err();
        assert_eq!(beyond, format!("it ends at byte {end} of a buffer of {}", end - 1));
        assert_eq!(map().check(end + 8, true), Ok(()), "200 bytes are 12.5 chunks");
        let text = map().check(end + 7, true).unwrap_err();
        assert!(
            text.starts_with(&format!("it ends at byte {}, in 16-byte chunks", end + 8)),
            "{text}"
        );
        let huge = TensorMap { dims: vec![1 << 32; 3], strides: vec![(1 << 40) - 16; 2], ..map() };
        assert!(
            huge.check(u64::MAX, false).unwrap_err().contains("it ends at byte"),
            "the end overflowed"
        );
    }

    #[test]
    fn invalid_tensor_maps_are_rejected() {
        let error = |map: TensorMap| map.check(1 << 20, false).unwrap_err();
        assert!(error(TensorMap { offset: 8, ..map() }).contains("begins at byte 8"));
        assert!(error(TensorMap { dims: vec![100, 0, 3], ..map() }).contains("[100, 0, 3]"));
        assert!(error(TensorMap { strides: vec![200, 1456], ..map() }).contains("[200, 1456]"));
        assert!(error(TensorMap { tile: vec![64, 257, 1], ..map() }).contains("[64, 257, 1]"));
        assert!(error(TensorMap { tile: vec![128, 4, 1], ..map() }).contains(
            "rows of 256 bytes, which is not a multiple of 16 up to the 128 of the swizzle B128"
        ));
        assert!(error(TensorMap { tile: vec![60, 4, 1], ..map() }).contains("120 bytes"));
        let odd = TensorMap { tile: vec![60, 4, 1], swizzle: TensorSwizzle::None, ..map() };
        assert!(error(odd).ends_with("120 bytes, which is not a multiple of 16"));
        let flat = TensorMap { tile: vec![128, 4, 1], swizzle: TensorSwizzle::None, ..map() };
        assert_eq!(flat.check(1 << 20, true), Ok(()));
    }
}
