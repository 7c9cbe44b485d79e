//! The compile-time parameters of a kernel: types, the tile shape, and how results are stored.

use crate::kernels::TensorMapElement;
use crate::kernels::gemm::{Activation, Epilogue, Layout};
use crate::kernels::name::Name;
use crate::typed::hopper::MmaType;
use crate::types::PtxType;

/// Maximum bytes of shared memory per block.
const MAX_SHARED_BYTES: u32 = 227 * 1024;
/// Maximum bytes of a split-K receive buffer that is not shared with the pipeline stages.
const MAX_RECEIVE_BYTES: u32 = 32 * 1024;
/// Maximum columns of a tile whose results threads store one by one.
const MAX_DIRECT_COLUMNS: u32 = 64;
/// Maximum number of stages: more are not useful.
const MAX_STAGES: u32 = 20;
/// Threads per warpgroup.
pub(super) const WARPGROUP: u32 = 128;
/// Rows per `wgmma` instruction.
pub(super) const GROUP_ROWS: u32 = 64;
/// Bytes per row of a tile in shared memory (the swizzle width).
pub(super) const ROW_BYTES: u32 = 128;
/// Rows of accumulators per warp.
pub(super) const WARP_ROWS: u32 = 16;
/// Bytes of a warp's staging buffer.
pub(super) const STAGING_BYTES: u32 = WARP_ROWS * ROW_BYTES;
/// Staging buffers per warp (double buffering).
pub(super) const STAGING_BUFFERS: u32 = 2;

/// The contiguous dimension of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Major {
    /// K-major.
    K,
    /// M-major or N-major; only 16-bit operands support it.
    Mn,
}

/// The tile of a block, and how many warpgroups and blocks compute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HopperTile {
    /// Consumer warpgroups of 64 rows each: 1 to 3.
    pub warpgroups: u32,
    /// Columns: a multiple of 16, or of 64 where `b` is N-major; at most 256, 192 with three
    /// warpgroups, 128 in TF32x3.
    pub columns: u32,
    /// Blocks along M that share `b` by multicast: 1 or 2.
    pub cluster_m: u32,
    /// Blocks of a cluster that split K for a tile: 1, 2, 4 or 8. More than 1 requires `cluster_m`
    /// to be 1.
    pub split_k: u32,
}

impl HopperTile {
    /// Creates a tile.
    #[must_use]
    pub const fn new(warpgroups: u32, columns: u32, cluster_m: u32) -> Self {
        Self { warpgroups, columns, cluster_m, split_k: 1 }
    }

    /// Creates a tile whose K is split over a cluster.
    #[must_use]
    pub const fn split(warpgroups: u32, columns: u32, split_k: u32) -> Self {
        Self { warpgroups, columns, cluster_m: 1, split_k }
    }

    /// Returns the blocks per cluster.
    pub(super) const fn blocks(&self) -> u32 {
        self.cluster_m * self.split_k
    }

    /// Returns the rows of a block.
    #[must_use]
    pub const fn rows(&self) -> u32 {
        self.warpgroups * GROUP_ROWS
    }
}

/// How results are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Store {
    /// Through TMA: rows start at multiples of 16 bytes.
    Tiles,
    /// By each lane: rows may be unaligned, and `out` may be read.
    Lanes,
    /// By the consumers of a cluster, after the reduction of its slices of K, into this layout. The
    /// cluster may be a single block.
    Cluster(Layout),
}

/// The compile-time part of the epilogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EpilogueKind {
    /// Whether the previous content of `out` is read.
    pub reads_out: bool,
    /// The dimension of the bias.
    pub bias: BiasAxis,
    /// The activation, applied last.
    pub activation: Activation,
}

/// The dimension of the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BiasAxis {
    /// No bias.
    None,
    /// One element per column.
    Columns,
    /// One element per row.
    Rows,
}

/// Which operands are streamed: read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Streamed {
    /// Whether `a` is: there is one tile along N.
    pub a: bool,
    /// Whether `b` is: there is one cluster of tiles along M.
    pub b: bool,
}

/// Which operand is prefetched before the preceding launch has finished (PDL). That launch must not
/// write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PdlPrefetch {
    /// None.
    None,
    /// `a`.
    A,
    /// `b`.
    B,
}

impl PdlPrefetch {
    /// Chooses for a GEMM of these sizes: the operand that dominates the traffic, since that is the
    /// weights. The other one is the output of the preceding launch.
    pub(in crate::kernels::gemm) fn for_sizes([m, n, k]: [u64; 3]) -> Self {
        /// Minimum ratio of the operands' sizes.
        const MIN_RATIO: u64 = 8;
        /// Minimum K: shorter rows are more likely activations.
        const MIN_K: u64 = 512;
        match (m / MIN_RATIO >= n, n / MIN_RATIO >= m) {
            _ if k < MIN_K => Self::None,
            (true, _) => Self::A,
            (_, true) => Self::B,
            _ => Self::None,
        }
    }

    /// Appends the prefetched operand to a kernel's name.
    fn append_to(self, name: Name) -> Name {
        match self {
            Self::None => name,
            Self::A => name.with("pdla"),
            Self::B => name.with("pdlb"),
        }
    }
}

/// The compile-time parameters of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Type of the operands.
    pub element: PtxType,
    /// TF32 terms per operand element: 1; or 2, of which all products but that of the low terms are
    /// accumulated.
    pub terms: u32,
    /// Type of the results.
    pub output: PtxType,
    /// Layout of `a`.
    pub a: Major,
    /// Layout of `b`.
    pub b: Major,
    /// The tile shape.
    pub tile: HopperTile,
    /// Which operands are read once, by one block each, so that L2 should evict them first.
    /// [`super::HopperGemm::new`] sets it.
    pub streamed: Streamed,
    /// How results are stored.
    pub store: Store,
    /// The epilogue.
    pub epilogue: EpilogueKind,
    /// Which operand is prefetched.
    pub pdl: PdlPrefetch,
}

impl EpilogueKind {
    /// Stores the accumulators unchanged.
    pub const NONE: Self =
        Self { reads_out: false, bias: BiasAxis::None, activation: Activation::None };

    /// Returns the compile-time part of an epilogue; with `transposed`, the bias is per row.
    #[must_use]
    pub fn of(epilogue: &Epilogue, transposed: bool) -> Self {
        let bias = match (epilogue.bias, transposed) {
            (false, _) => BiasAxis::None,
            (true, false) => BiasAxis::Columns,
            (true, true) => BiasAxis::Rows,
        };
        Self { reads_out: epilogue.reads_out(), bias, activation: epilogue.activation }
    }

    /// Appends the epilogue to a kernel's name.
    fn append_to(&self, name: Name) -> Name {
        let bias = match self.bias {
            BiasAxis::None => None,
            BiasAxis::Columns => Some('n'),
            BiasAxis::Rows => Some('m'),
        };
        name.epilogue(self.reads_out, bias, self.activation)
    }
}

impl Variant {
    /// Returns the operand type of the MMA instructions.
    pub(super) const fn mma_type(&self) -> MmaType {
        match self.element {
            PtxType::F16 => MmaType::F16,
            PtxType::Bf16 => MmaType::Bf16,
            _ => MmaType::Tf32,
        }
    }

    /// Elements along K per stage.
    #[must_use]
    pub const fn k_dim(&self) -> u32 {
        ROW_BYTES / self.element.size()
    }

    /// Bytes of `a` per stage.
    pub(super) const fn a_bytes(&self) -> u32 {
        self.terms * self.a_term_bytes()
    }

    /// Bytes of one term of `a` per stage.
    pub(super) const fn a_term_bytes(&self) -> u32 {
        self.tile.rows() * ROW_BYTES
    }

    /// Bytes of one term of `b` per stage. Destinations of TMA loads start at multiples of 1024.
    pub(super) const fn b_term_bytes(&self) -> u32 {
        (self.tile.columns * ROW_BYTES).next_multiple_of(1024)
    }

    /// Bytes per stage.
    pub(super) const fn stage_bytes(&self) -> u32 {
        self.a_bytes() + self.terms * self.b_term_bytes()
    }

    /// Bytes that TMA loads per stage, without the padding of `b`.
    pub(super) const fn copied_bytes(&self) -> u32 {
        self.terms * (self.a_term_bytes() + self.tile.columns * ROW_BYTES)
    }

    /// Bytes of the staging buffers.
    const fn staging_bytes(&self) -> u32 {
        match self.store {
            Store::Cluster(_) if self.has_receive_buffer() => self.receive_bytes(),
            Store::Cluster(_) => 0,
            _ => self.tile.warpgroups * 4 * STAGING_BYTES * STAGING_BUFFERS,
        }
    }

    /// Bytes of the split-K receive buffer.
    pub(super) const fn receive_bytes(&self) -> u32 {
        self.tile.rows() * self.tile.columns * 4
    }

    /// Whether the threads of a [`Store::Cluster`] block store their results directly: K is not
    /// split, and there are few results.
    pub(super) const fn stores_directly(&self) -> bool {
        self.tile.split_k == 1 && self.tile.columns <= MAX_DIRECT_COLUMNS
    }

    /// Whether the blocks of a split-K cluster send their sums to receive buffers.
    pub(super) const fn has_receive_buffer(&self) -> bool {
        self.tile.split_k > 1 && self.receive_bytes() <= MAX_RECEIVE_BYTES
    }

    /// Number of stages: as many as fit and are useful.
    pub(super) const fn stages(&self) -> u32 {
        // All sizes but that of the mbarriers are multiples of 1024, so that at least 1024 bytes
        // remain: enough for the mbarriers.
        let fit = (MAX_SHARED_BYTES - self.staging_bytes() - 256) / self.stage_bytes();
        if fit < MAX_STAGES { fit } else { MAX_STAGES }
    }

    /// Byte offset of the staging buffers.
    pub(super) const fn staging_at(&self) -> u32 {
        self.stages() * self.stage_bytes()
    }

    /// Byte offset of the mbarriers.
    pub(super) const fn barriers_at(&self) -> u32 {
        self.staging_at() + self.staging_bytes()
    }

    /// Byte offset of the receive buffer's mbarrier.
    pub(super) const fn receive_barrier_at(&self) -> u32 {
        self.barriers_at() + 16 * self.stages()
    }

    /// Bytes of shared memory.
    pub(super) const fn shared_bytes(&self) -> u32 {
        self.receive_barrier_at() + if self.has_receive_buffer() { 8 } else { 0 }
    }

    /// Threads per block: the consumers, and a producer warpgroup.
    pub(super) const fn threads(&self) -> u32 {
        (self.tile.warpgroups + 1) * WARPGROUP
    }

    /// Columns of results that a warp stages at a time.
    pub(super) const fn staged_columns(&self) -> u32 {
        match self.store {
            Store::Tiles => ROW_BYTES / self.output.size(),
            _ if self.writes_words() => ROW_BYTES / self.output.size(),
            _ => ROW_BYTES / 4,
        }
    }

    /// Whether lanes store words of two 16-bit results.
    pub(super) const fn writes_words(&self) -> bool {
        let is_16bit = matches!(self.output, PtxType::F16 | PtxType::Bf16);
        is_16bit && !self.epilogue.reads_out && self.tile.columns.is_multiple_of(64)
    }

    /// Returns the kernel's name.
    pub(super) fn name(&self) -> String {
        let Self { element, terms, output, a, b, tile, streamed, store, epilogue, pdl } = self;
        let operands = match (element, terms) {
            (PtxType::F32, 2) => "tf32x3",
            (PtxType::F32, _) => "tf32",
            _ => element.name(),
        };
        let name = Name::new("gemm_sm90").with(operands);
        let name = name.with_if(output != element, output.name());
        let name = name.layout(*a == Major::K, *b == Major::K);
        let name = name.with(format_args!("{}x{}", tile.rows(), tile.columns));
        let name = name.with_if(tile.cluster_m > 1, format_args!("cluster{}", tile.cluster_m));
        let name = match store {
            Store::Tiles => name,
            Store::Lanes => name.with("unaligned"),
            Store::Cluster(Layout::RowMajor) => {
                name.with(format_args!("splitk{}", tile.split_k)).with("row")
            }
            Store::Cluster(Layout::ColMajor) => {
                name.with(format_args!("splitk{}", tile.split_k)).with("col")
            }
        };
        let name = name.with_if(streamed.a, "evicta").with_if(streamed.b, "evictb");
        pdl.append_to(epilogue.append_to(name)).build()
    }
}

/// Returns the element type of a tensor map.
pub(super) const fn tensor_element(ty: PtxType) -> TensorMapElement {
    match ty {
        PtxType::F16 => TensorMapElement::F16,
        PtxType::Bf16 => TensorMapElement::Bf16,
        _ => TensorMapElement::F32,
    }
}
