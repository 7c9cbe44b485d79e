//! What is fixed in the text of a kernel: types, the tile, and how results are written.

use crate::kernels::TensorMapElement;
use crate::kernels::gemm::{Activation, Epilogue, Order};
use crate::kernels::name::Name;
use crate::typed::hopper::Factors;
use crate::types::PtxType;

/// Bytes of shared memory that a block can have.
const SHARED: u32 = 227 * 1024;
/// Bytes of sums from others that a block has memory of its own for.
const INBOX: u32 = 32 * 1024;
/// Columns of a tile whose results threads write one by one.
const ALONE: u32 = 64;
/// Threads of a warpgroup.
pub(super) const WARPGROUP: u32 = 128;
/// Rows that a warpgroup multiplies with one instruction.
pub(super) const GROUP_ROWS: u32 = 64;
/// Bytes of a line of a tile in shared memory, within which it is swizzled.
pub(super) const LINE: u32 = 128;
/// Rows of results that a warp holds.
pub(super) const WARP_ROWS: u32 = 16;
/// Bytes that a warp arranges results in, before they are written.
pub(super) const STAGING: u32 = WARP_ROWS * LINE;
/// Places of that size, in turn, that each warp has.
pub(super) const STAGINGS: u32 = 2;

/// How an operand lies in memory: which of its neighbours are next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Major {
    /// Those along K.
    Inner,
    /// Those along the rows or columns of the result; only halves can be read so.
    Outer,
}

/// What a block computes at a time, and with how many hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Warpgroups that multiply 64 rows each: 1 to 3.
    pub groups: u32,
    /// Columns: a multiple of 8, at most 256; of 64 where `b` lies along them.
    pub columns: u32,
    /// Neighbours down the rows that share what they read of `b`: 1 or 2.
    pub cluster: u32,
    /// Blocks that share the work on a tile, each on a part of K, and add up
    /// what they have: 1, 2, 4 or 8, if the cluster is 1.
    pub team: u32,
}

impl Tile {
    /// A tile.
    #[must_use]
    pub const fn new(groups: u32, columns: u32, cluster: u32) -> Self {
        Self { groups, columns, cluster, team: 1 }
    }

    /// A tile that several blocks share the work on.
    #[must_use]
    pub const fn shared(groups: u32, columns: u32, team: u32) -> Self {
        Self { groups, columns, cluster: 1, team }
    }

    /// Blocks that run together.
    pub(super) const fn blocks(&self) -> u32 {
        self.cluster * self.team
    }

    /// Rows.
    #[must_use]
    pub const fn rows(&self) -> u32 {
        self.groups * GROUP_ROWS
    }
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Store {
    /// As tiles, by TMA: lines begin at multiples of 16 bytes.
    Tiles,
    /// By each lane: lines begin anywhere, and what was there may be read.
    Lanes,
    /// By all threads, after the blocks of a split-K cluster have added up what they have; the
    /// results lie in this order.
    Team(Order),
}

/// What the sums of a kernel are followed by, as far as the text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Finish {
    /// Whether what was there is read.
    pub reads: bool,
    /// Along what there is a bias.
    pub bias: Bias,
    /// What is applied last.
    pub activation: Activation,
}

/// Along what there is a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bias {
    /// There is none.
    None,
    /// One for each column.
    Columns,
    /// One for each row.
    Rows,
}

/// Which operands are read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Once {
    /// Whether `a` is: there is one tile along the columns.
    pub a: bool,
    /// Whether `b` is: there is one cluster of tiles down the rows.
    pub b: bool,
}

/// Which operand is brought before the launch before this one is done, if that does not write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Early {
    /// None.
    None,
    /// The one on the left.
    A,
    /// The one on the right.
    B,
}

impl Early {
    /// For a product of these sizes: the operand that is most of what is read, since it will be
    /// weights. The other one will be what the launch before has made.
    pub(in crate::kernels::gemm) fn of([m, n, k]: [u64; 3]) -> Self {
        /// How many times as large as the other one it is.
        const MOST: u64 = 8;
        /// Shorter lines are rather activations.
        const DEEP: u64 = 512;
        match (m / MOST >= n, n / MOST >= m) {
            _ if k < DEEP => Self::None,
            (true, _) => Self::A,
            (_, true) => Self::B,
            _ => Self::None,
        }
    }

    /// Appends to the name of a kernel which operand it prefetches before it waits.
    fn named(self, name: Name) -> Name {
        match self {
            Self::None => name,
            Self::A => name.with("pdla"),
            Self::B => name.with("pdlb"),
        }
    }
}

/// All that is fixed in the text of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Type of the operands.
    pub element: PtxType,
    /// Parts that numbers are sums of: 1, or 2 of which the products are added up, but for the
    /// one of the small parts.
    pub parts: u32,
    /// Type of the results.
    pub output: PtxType,
    /// How `a` lies.
    pub a: Major,
    /// How `b` lies.
    pub b: Major,
    /// What a block computes at a time.
    pub tile: Tile,
    /// Which operands are read once, each part of them by one block: the cache is not to keep
    /// them in place of others. A product knows ([`super::HopperGemm::new`]).
    pub once: Once,
    /// How results are written.
    pub store: Store,
    /// What the sums are followed by.
    pub finish: Finish,
    /// What is brought early.
    pub early: Early,
}

impl Finish {
    /// The sums as they are.
    pub const NONE: Self = Self { reads: false, bias: Bias::None, activation: Activation::None };

    /// What an epilogue takes, its bias lying along the columns or, of a transposed product, rows.
    #[must_use]
    pub fn of(epilogue: &Epilogue, flipped: bool) -> Self {
        let bias = match (epilogue.bias, flipped) {
            (false, _) => Bias::None,
            (true, false) => Bias::Columns,
            (true, true) => Bias::Rows,
        };
        Self { reads: epilogue.reads(), bias, activation: epilogue.activation }
    }

    /// Appends to the name of a kernel what is in its text.
    fn named(&self, name: Name) -> Name {
        let bias = match self.bias {
            Bias::None => None,
            Bias::Columns => Some('n'),
            Bias::Rows => Some('m'),
        };
        name.epilogue(self.reads, bias, self.activation)
    }
}

impl Variant {
    /// What tensor cores are told.
    pub(super) const fn factors(&self) -> Factors {
        match self.element {
            PtxType::F16 => Factors::F16,
            PtxType::Bf16 => Factors::Bf16,
            _ => Factors::Tf32,
        }
    }

    /// Elements of K in a stage.
    #[must_use]
    pub const fn depth(&self) -> u32 {
        LINE / self.element.size()
    }

    /// Bytes of `a` in a stage.
    pub(super) const fn a_bytes(&self) -> u32 {
        self.parts * self.a_part()
    }

    /// Bytes of a part of `a` in a stage.
    pub(super) const fn a_part(&self) -> u32 {
        self.tile.rows() * LINE
    }

    /// Bytes of a part of `b` in a stage. What copies bring begins at multiples of 1024.
    pub(super) const fn b_part(&self) -> u32 {
        (self.tile.columns * LINE).next_multiple_of(1024)
    }

    /// Bytes of a stage.
    pub(super) const fn stage_bytes(&self) -> u32 {
        self.a_bytes() + self.parts * self.b_part()
    }

    /// Bytes that copies bring for a stage.
    pub(super) const fn copied_bytes(&self) -> u32 {
        self.parts * (self.a_part() + self.tile.columns * LINE)
    }

    /// Bytes for results on their way out.
    const fn staging_bytes(&self) -> u32 {
        match self.store {
            Store::Team(_) if self.has_inbox() => self.inbox_bytes(),
            Store::Team(_) => 0,
            _ => self.tile.groups * 4 * STAGING * STAGINGS,
        }
    }

    /// Bytes of the sums that a block of a split-K cluster gets.
    pub(super) const fn inbox_bytes(&self) -> u32 {
        self.tile.rows() * self.tile.columns * 4
    }

    /// Whether threads write the few sums that they have: no other thread adds to them.
    pub(super) const fn is_alone(&self) -> bool {
        self.tile.team == 1 && self.tile.columns <= ALONE
    }

    /// Whether the blocks of a split-K cluster send each other sums, each into memory of its own
    /// for them.
    pub(super) const fn has_inbox(&self) -> bool {
        self.tile.team > 1 && self.inbox_bytes() <= INBOX
    }

    /// As many stages as fit, but no more than help.
    pub(super) const fn stages(&self) -> u32 {
        let fit = (SHARED - self.staging_bytes() - 256) / self.stage_bytes();
        if fit < 20 { fit } else { 20 }
    }

    /// Where the results on their way out lie.
    pub(super) const fn staging_at(&self) -> u32 {
        self.stages() * self.stage_bytes()
    }

    /// Where the barriers lie.
    pub(super) const fn barriers_at(&self) -> u32 {
        self.staging_at() + self.staging_bytes()
    }

    /// Where the barrier lies that tells a block of a split-K cluster that it has got sums.
    pub(super) const fn inbox_barrier_at(&self) -> u32 {
        self.barriers_at() + 16 * self.stages()
    }

    /// Bytes of shared memory.
    pub(super) const fn shared_bytes(&self) -> u32 {
        self.inbox_barrier_at() + if self.has_inbox() { 8 } else { 0 }
    }

    /// Threads of a block: those that multiply, and a warpgroup that has operands copied.
    pub(super) const fn threads(&self) -> u32 {
        (self.tile.groups + 1) * WARPGROUP
    }

    /// Columns of results that a warp arranges at a time.
    pub(super) const fn staged_columns(&self) -> u32 {
        match self.store {
            Store::Tiles => LINE / self.output.size(),
            _ if self.writes_words() => LINE / self.output.size(),
            _ => LINE / 4,
        }
    }

    /// Whether lanes write words of two halves.
    pub(super) const fn writes_words(&self) -> bool {
        let halves = matches!(self.output, PtxType::F16 | PtxType::Bf16);
        halves && !self.finish.reads && self.tile.columns.is_multiple_of(64)
    }

    /// The name of the kernel.
    pub(super) fn name(&self) -> String {
        let Self { element, parts, output, a, b, tile, once, store, finish, early } = self;
        let operands = match (element, parts) {
            (PtxType::F32, 2) => "tf32x3",
            (PtxType::F32, _) => "tf32",
            _ => element.name(),
        };
        let name = Name::new("gemm_sm90").with(operands);
        let name = name.with_if(output != element, output.name());
        let name = name.layout(*a == Major::Inner, *b == Major::Inner);
        let name = name.with(format_args!("{}x{}", tile.rows(), tile.columns));
        let name = name.with_if(tile.cluster > 1, format_args!("cluster{}", tile.cluster));
        let name = match store {
            Store::Tiles => name,
            Store::Lanes => name.with("unaligned"),
            Store::Team(Order::Rows) => name.with(format_args!("splitk{}", tile.team)).with("row"),
            Store::Team(Order::Columns) => {
                name.with(format_args!("splitk{}", tile.team)).with("col")
            }
        };
        let name = name.with_if(once.a, "evicta").with_if(once.b, "evictb");
        early.named(finish.named(name)).build()
    }
}

/// The element of a tensor map.
pub(super) const fn tensor_element(ty: PtxType) -> TensorMapElement {
    match ty {
        PtxType::F16 => TensorMapElement::F16,
        PtxType::Bf16 => TensorMapElement::Bf16,
        _ => TensorMapElement::F32,
    }
}
