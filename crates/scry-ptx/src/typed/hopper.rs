//! Hopper features (`sm_90`; tensor cores `sm_90a`): mbarriers that count bytes, TMA copies of
//! tiles, clusters, and tensor cores that read shared memory (`wgmma`).

use std::marker::PhantomData;

use super::value::{Arg, Element, Val, Var};
use super::{Code, Policy, Ptr, Shared};
use crate::asm::{self, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// An mbarrier: 8 bytes in shared memory that count arriving threads and bytes of asynchronous
/// copies. A phase is complete when all arrivals and all expected bytes have arrived; then the next
/// one begins with the same number of arrivals. Both counts are at most 2^20 - 1.
#[derive(Debug, Clone, Copy)]
pub struct Barrier<'k> {
    at: Ptr<'k, Shared, u64>,
}

impl<'k> Barrier<'k> {
    /// The barrier at an address, a multiple of 8.
    #[must_use]
    pub fn at(at: Ptr<'k, Shared, u64>) -> Self {
        Self { at }
    }

    fn k(self) -> &'k Code {
        self.at.k
    }

    /// As instructions take it.
    #[must_use]
    pub fn address(self) -> asm::Address {
        self.at.address()
    }

    /// Prepares it: this many arrivals, 1 to 2^20 - 1, complete a phase. One thread does this,
    /// followed by [`Code::fence_barriers`] and a barrier of the block or cluster.
    pub fn init(self, arrivals: u32) {
        let args = [self.at.address().into(), Operand::u32(arrivals).into()];
        self.k().emit(Opcode::new("mbarrier.init.shared::cta.b64"), args);
    }

    /// Arrives, once for this thread. More arrivals in a phase than expected are undefined
    /// behaviour.
    pub fn arrive(self) {
        let args = ["_".into(), self.at.address().into()];
        self.k().emit(Opcode::new("mbarrier.arrive.shared::cta.b64"), args);
    }

    /// Arrives if a condition holds, without a branch.
    pub fn arrive_if(self, condition: Val<'_, bool>) {
        let args = vec!["_".into(), self.at.address().into()];
        let (pred, opcode) = (condition.reg(), Opcode::new("mbarrier.arrive.shared::cta.b64"));
        self.k().edit(|body| body.emit_if(pred, true, opcode, args));
    }

    /// Arrives, and says how many bytes copies will bring before the phase is complete: with those
    /// that others announce less than 2^20. Copies may begin before or after.
    pub fn arrive_expecting(self, bytes: impl Arg<u32>) {
        let args = ["_".into(), self.at.address().into(), bytes.operand().into()];
        self.k().emit(Opcode::new("mbarrier.arrive.expect_tx.shared::cta.b64"), args);
    }

    /// Arrives at the same mbarrier of another block of the cluster, to signal that memory has been
    /// read. It has no release semantics for this thread's stores, which would need an expensive
    /// fence.
    pub fn arrive_in(self, block: impl Arg<u32>) {
        let args = ["_".into(), self.in_block(block)];
        self.k().emit(Opcode::new("mbarrier.arrive.shared::cluster.b64"), args);
    }

    /// The same barrier of another block of the cluster, as instructions take it.
    pub(super) fn in_block(self, block: impl Arg<u32>) -> asm::Arg {
        self.at.in_block(block)
    }

    /// Waits until the phase of this parity (0 for the first one) is complete: the present one, or
    /// the one before it, which is complete. A thread that falls two phases behind waits forever.
    pub fn wait(self, parity: impl Arg<u32>) {
        let done = self.k().edit(|body| body.reg(PtxType::Pred));
        self.k().repeat(|exit| {
            let opcode = Opcode::new("mbarrier.try_wait.parity.shared::cta.b64");
            let args = [done.into(), self.at.address().into(), parity.operand().into()];
            self.k().emit(opcode, args);
            exit.when(self.k().wrap(done));
        });
    }
}

/// Order between threads, and between them and copies.
impl Code {
    /// Makes prepared barriers known to copies and to other blocks.
    pub fn fence_barriers(&self) {
        self.emit(Opcode::new("fence.mbarrier_init.release.cluster"), []);
        self.fence_async();
    }

    /// Orders this thread's accesses to shared memory before those of TMA and tensor cores
    /// (`fence.proxy.async`).
    pub fn fence_async(&self) {
        self.emit(Opcode::new("fence.proxy.async.shared::cta"), []);
    }

    /// Waits for all threads of the cluster.
    pub fn sync_cluster(&self) {
        self.arrive_cluster();
        self.wait_cluster();
    }

    /// Returns the block's rank in its cluster.
    #[must_use]
    pub fn cluster_rank(&self) -> Val<'_, u32> {
        self.special("%cluster_ctarank")
    }

    /// Releases registers (`setmaxnreg.dec`), so that each thread of the warpgroup has `left`: a
    /// multiple of 8 from 24 to 256, at most what it has. All four warps must be active.
    pub fn release_registers(&self, left: u32) {
        let opcode = Opcode::new("setmaxnreg.dec.sync.aligned.u32");
        self.emit(opcode, [Operand::u32(left).into()]);
    }

    /// Waits for registers (`setmaxnreg.inc`), so that each thread of the warpgroup has `wanted`: a
    /// multiple of 8 from 24 to 256, at least what it has. Deadlocks if other warps do not release
    /// enough.
    pub fn claim_registers(&self, wanted: u32) {
        let opcode = Opcode::new("setmaxnreg.inc.sync.aligned.u32");
        self.emit(opcode, [Operand::u32(wanted).into()]);
    }
}

/// Tile copies by TMA. One thread issues each.
impl Code {
    /// Fetches a tensor map that is soon used.
    pub fn prefetch_map(&self, map: Val<'_, u64>) {
        let args = [asm::Address::reg(map.reg(), 0).into()];
        self.emit(Opcode::new("prefetch.tensormap"), args);
    }

    /// Loads a tile of a tensor by TMA into shared memory, aligned to 128 bytes; `at` are its
    /// coordinates in elements, innermost first, one per dimension of the tensor map (2 to 5), and
    /// signed: a tile may begin before the tensor. Out-of-bounds elements are zero, and count
    /// towards the bytes: the mbarrier receives those of a whole tile.
    pub fn fetch_tile<T: Element, const N: usize>(
        &self,
        to: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
        done: Barrier<'_>,
    ) {
        self.emit(tile_fetch(N), [to.address().into(), tile(map, at), done.at.address().into()]);
    }

    /// Loads a tile with an L2 eviction policy.
    pub fn fetch_tile_by<T: Element, const N: usize>(
        &self,
        policy: Policy<'_>,
        to: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
        done: Barrier<'_>,
    ) {
        let (to, done) = (to.address().into(), done.at.address().into());
        let args = [to, tile(map, at), done, policy.operand().into()];
        self.emit(tile_fetch(N).with("L2::cache_hint"), args);
    }

    /// The same, into all blocks of the cluster whose bit is set in `blocks`, at the same place of
    /// their shared memory; each of them is told by its own barrier.
    pub fn fetch_tile_for<T: Element, const N: usize>(
        &self,
        to: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
        done: Barrier<'_>,
        blocks: Val<'_, u16>,
    ) {
        let done = done.at.address().into();
        let args = [to.address().into(), tile(map, at), done, blocks.reg().into()];
        self.emit(tile_fetch(N).with("multicast::cluster"), args);
    }

    /// Stores a tile from shared memory, aligned to 128 bytes, into a tensor by TMA; out-of-bounds
    /// elements are dropped. [`Code::fence_async`] and a barrier must separate it from the stores
    /// of threads.
    pub fn write_tile<T: Element, const N: usize>(
        &self,
        from: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
    ) {
        let opcode = match N {
            2 => "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
            3 => "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group",
            4 => "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group",
            _ => "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group",
        };
        self.emit(Opcode::new(opcode), [tile(map, at), from.address().into()]);
    }

    /// Ends a group of tiles that are written.
    pub fn commit_tiles(&self) {
        self.emit(Opcode::new("cp.async.bulk.commit_group"), []);
    }

    /// Waits until at most this many groups of this thread are still being read from shared memory.
    pub fn wait_tiles(&self, pending: u32) {
        let opcode = Opcode::new("cp.async.bulk.wait_group.read");
        self.emit(opcode, [Operand::u32(pending).into()]);
    }
}

/// The copy of a tile of this many dimensions into shared memory.
fn tile_fetch(dimensions: usize) -> Opcode {
    Opcode::long(match dimensions {
        2 => "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
        3 => "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes",
        4 => "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes",
        _ => "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes",
    })
}

fn tile<const N: usize>(map: Val<'_, u64>, at: [Val<'_, u32>; N]) -> asm::Arg {
    asm::Arg::Tile(map.reg(), at.map(Arg::operand).into())
}

/// How 16-byte pieces of a tile are exchanged in shared memory, so that columns are read without
/// waiting: within this many bytes. Tiles begin at multiples of eight times that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl Swizzle {
    /// Bits 62 and 63 of a descriptor.
    const fn code(self) -> u64 {
        match self {
            Self::None => 0,
            Self::B128 => 1,
            Self::B64 => 2,
            Self::B32 => 3,
        }
    }
}

/// Where tensor cores find a matrix in shared memory: `leading` and `stride` are the distances in
/// bytes between its 8-row, 16-byte cores along each direction, as the manual defines them for
/// this swizzle and major-ness; both are multiples of 16.
#[must_use]
pub fn descriptor<'k, T: Element>(
    at: Ptr<'k, Shared, T>,
    leading: u32,
    stride: u32,
    swizzle: Swizzle,
) -> Val<'k, u64> {
    let fixed = u64::from(leading >> 4) << 16 | u64::from(stride >> 4) << 32;
    let address: Val<'_, u64> = ((at.to_bits() & 0x3ffff) >> 4).convert("");
    address | (fixed | swizzle.code() << 62)
}

/// A matrix in shared memory that is the operand of several MMAs.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'k> {
    /// The address and the leading distance, as descriptors have them.
    low: Val<'k, u32>,
    high: u32,
}

impl<'k> Matrix<'k> {
    /// The matrix at an address; distances are those of [`descriptor`].
    #[must_use]
    pub fn new<T: Element>(
        at: Ptr<'k, Shared, T>,
        leading: u32,
        stride: u32,
        swizzle: Swizzle,
    ) -> Self {
        let address = (at.to_bits() & 0x3ffff) >> 4;
        let high = stride >> 4 | (swizzle.code() as u32) << 30;
        Self { low: address | (leading >> 4) << 16, high }
    }

    /// Returns the matrix descriptor at a byte offset, a multiple of 16.
    #[must_use]
    pub fn at(self, bytes: u32) -> Val<'k, u64> {
        let k = self.low.code();
        let words = vec![(self.low + (bytes >> 4)).operand(), Operand::u32(self.high)];
        let whole = k.edit(|body| body.reg(PtxType::U64));
        k.emit(Opcode::new("mov.b64"), [whole.into(), asm::Arg::Vector(words)]);
        k.wrap(whole)
    }
}

/// The sums of a warpgroup's matrix of 64 rows and `columns` columns. Thread `t` holds, for each
/// pair of 8 columns `c`, at `[4 * c ..]`: row `16 * (t / 32) + t % 32 / 4`, columns
/// `8 * c + 2 * (t % 4)` and the next one; then the same, 8 rows further down.
#[derive(Debug, Clone)]
pub struct Accumulators<'k> {
    k: &'k Code,
    regs: Vec<Reg>,
}

/// The operand types of an MMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MmaType {
    /// f16.
    F16,
    /// Bfloat16.
    Bf16,
    /// `f32`, of which the upper 19 bits are used (TF32).
    Tf32,
}

impl MmaType {
    /// K of one instruction.
    #[must_use]
    pub const fn k_dim(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 => 8,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
        }
    }
}

/// The left operand of an MMA.
#[derive(Debug, Clone, Copy)]
pub enum Left<'k> {
    /// In shared memory, by its descriptor.
    Shared(Val<'k, u64>),
    /// In registers: two 16-bit floats in each of the first two rows of 8 columns, then of the next
    /// 8.
    Registers([Val<'k, u32>; 4]),
}

/// Which of two operands in shared memory are not K-major; 16-bit floats only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transposed {
    /// The left one.
    pub left: bool,
    /// The right one.
    pub right: bool,
}

impl<'k> Accumulators<'k> {
    /// Sums of 64 rows and a multiple of 8 columns (8 to 256), which hold nothing yet.
    #[must_use]
    pub fn new(k: &'k Code, columns: u32) -> Self {
        let regs = k.edit(|body| (0..columns / 2).map(|_| body.reg(PtxType::F32)).collect());
        Self { k, regs }
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> u32 {
        2 * self.regs.len() as u32
    }

    /// The sum in the `nth` register.
    #[must_use]
    pub fn get(&self, nth: usize) -> Val<'k, f32> {
        self.k.wrap(self.regs[nth])
    }

    /// Assigns the sum in the `nth` register.
    pub fn set(&self, nth: usize, value: impl Arg<f32>) {
        self.k.edit(|body| body.assign(self.regs[nth], value.operand()));
    }

    /// The variables of the `nth` 8 columns.
    #[must_use]
    pub fn tile(&self, nth: usize) -> [Var<'k, f32>; 4] {
        [0, 1, 2, 3].map(|part: usize| {
            let reg = self.regs[4 * nth + part];
            Var { k: self.k, reg, element: PhantomData }
        })
    }

    /// Adds a product of the depth of one instruction, or replaces the sums by it where `added`
    /// does not hold. Between [`Code::begin_products`] and [`Code::commit_products`].
    pub fn multiply(
        &self,
        mma_type: MmaType,
        left: Left<'_>,
        right: Val<'_, u64>,
        added: Val<'_, bool>,
        transposed: Transposed,
    ) {
        let shape = format!("m64n{}k{}", self.columns(), mma_type.k_dim());
        let name = mma_type.name();
        let opcode = Opcode::new("wgmma.mma_async.sync.aligned").with(&shape).with("f32");
        let accumulators = self.regs.iter().map(|reg| (*reg).into()).collect();
        let mut args = vec![asm::Arg::Vector(accumulators), left.arg(), right.reg().into()];
        args.extend([added.reg().into(), Operand::s32(1).into(), Operand::s32(1).into()]);
        if mma_type != MmaType::Tf32 {
            if matches!(left, Left::Shared(_)) {
                args.push(Operand::u32(transposed.left.into()).into());
            }
            args.push(Operand::u32(transposed.right.into()).into());
        }
        self.k.edit(|body| body.emit(opcode.with(name).with(name), args));
    }
}

impl Left<'_> {
    fn arg(self) -> asm::Arg {
        match self {
            Self::Shared(descriptor) => descriptor.reg().into(),
            Self::Registers(values) => asm::Arg::Vector(values.map(Arg::operand).into()),
        }
    }
}

/// Products of a warpgroup.
impl Code {
    /// Orders registers and shared memory before the products that follow.
    pub fn begin_products(&self) {
        self.emit(Opcode::new("wgmma.fence.sync.aligned"), []);
    }

    /// Ends a group of products.
    pub fn commit_products(&self) {
        self.emit(Opcode::new("wgmma.commit_group.sync.aligned"), []);
    }

    /// Waits until at most this many groups of products are pending.
    pub fn wait_products(&self, pending: u32) {
        let opcode = Opcode::new("wgmma.wait_group.sync.aligned");
        self.emit(opcode, [Operand::u32(pending).into()]);
    }

    /// Stores four 8 × 8 matrices of 16-bit floats in the register layout of accumulators
    /// (`stmatrix`): each lane passes the address of one row.
    pub fn store_matrices<T: Element>(&self, row: Ptr<'_, Shared, T>, matrices: [Val<'_, u32>; 4]) {
        let values = asm::Arg::Vector(matrices.map(Arg::operand).into());
        let opcode = Opcode::new("stmatrix.sync.aligned.m8n8.x4.shared.b16");
        self.emit(opcode, [row.address().into(), values]);
    }
}
