//! Hopper features (`sm_90`; tensor cores `sm_90a`): mbarriers that count bytes, TMA copies of
//! tiles, clusters, and tensor cores that read shared memory (`wgmma`).

use std::marker::PhantomData;

use super::value::{Element, ToOperand, Val, Var};
use super::{KernelBuilder, Policy, Ptr, Shared};
use crate::asm::{self, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// An mbarrier: 8 bytes in shared memory that count arriving threads and bytes of asynchronous
/// copies. A phase is complete when all arrivals and all expected bytes have arrived; then the next
/// one begins with the same number of arrivals. Both counts are at most 2^20 - 1.
#[derive(Debug, Clone, Copy)]
pub struct MBarrier<'k> {
    at: Ptr<'k, Shared, u64>,
}

impl<'k> MBarrier<'k> {
    /// Returns the mbarrier at an address, a multiple of 8.
    #[must_use]
    pub fn at(at: Ptr<'k, Shared, u64>) -> Self {
        Self { at }
    }

    fn k(self) -> &'k KernelBuilder {
        self.at.k
    }

    /// Returns its address as an operand.
    #[must_use]
    pub fn address(self) -> asm::Address {
        self.at.address()
    }

    /// Initialises it: this many arrivals, 1 to 2^20 - 1, complete a phase. One thread does this;
    /// [`KernelBuilder::fence_mbarrier_init`] and a barrier of the block or cluster must follow.
    pub fn init(self, arrivals: u32) {
        let args = [self.at.address().into(), Operand::u32(arrivals).into()];
        self.k().emit(Opcode::new("mbarrier.init.shared::cta.b64"), args);
    }

    /// Arrives once. More arrivals in a phase than [`MBarrier::init`] sets are undefined behaviour.
    pub fn arrive(self) {
        let args = ["_".into(), self.at.address().into()];
        self.k().emit(Opcode::new("mbarrier.arrive.shared::cta.b64"), args);
    }

    /// Arrives under a predicate.
    pub fn arrive_if(self, condition: Val<'_, bool>) {
        let args = vec!["_".into(), self.at.address().into()];
        let (pred, opcode) = (condition.reg(), Opcode::new("mbarrier.arrive.shared::cta.b64"));
        self.k().edit(|body| body.emit_if(pred, true, opcode, args));
    }

    /// Arrives, and adds to the bytes that copies must deliver in this phase
    /// (`mbarrier.arrive.expect_tx`): fewer than 2^20 over all threads. Copies may start before or
    /// after.
    pub fn arrive_expect_tx(self, bytes: impl ToOperand<u32>) {
        self.k().edit(|body| body.require(8, 0));
        let args = ["_".into(), self.at.address().into(), bytes.operand().into()];
        self.k().emit(Opcode::new("mbarrier.arrive.expect_tx.shared::cta.b64"), args);
    }

    /// Arrives at the same mbarrier of another block of the cluster, to signal that memory has been
    /// read. Its release semantics are those of scope `cta`: for other blocks it does not order
    /// this thread's stores, which would need an expensive fence.
    pub fn arrive_in(self, block: impl ToOperand<u32>) {
        self.k().edit(|body| body.require(8, 0));
        let args = ["_".into(), self.in_block(block)];
        self.k().emit(Opcode::new("mbarrier.arrive.shared::cluster.b64"), args);
    }

    /// Returns the same mbarrier of another block of the cluster, as an argument.
    pub(super) fn in_block(self, block: impl ToOperand<u32>) -> asm::Arg {
        self.at.in_block(block)
    }

    /// Waits until the phase of this parity (0 for the first phase) is complete. That is the
    /// current phase, or the preceding one, which is complete already. A thread that falls two
    /// phases behind waits for the current phase instead, which may never be complete.
    pub fn wait(self, parity: impl ToOperand<u32>) {
        let done = self.k().edit(|body| body.reg(PtxType::Pred));
        self.k().loop_(|exit| {
            let opcode = Opcode::new("mbarrier.try_wait.parity.shared::cta.b64");
            let args = [done.into(), self.at.address().into(), parity.operand().into()];
            self.k().emit(opcode, args);
            exit.break_if(self.k().wrap(done));
        });
    }
}

/// Fences, cluster barriers and register reallocation.
impl KernelBuilder {
    /// Makes initialised mbarriers visible to asynchronous copies and to other blocks
    /// (`fence.mbarrier_init`).
    pub fn fence_mbarrier_init(&self) {
        self.edit(|body| body.require(8, 0));
        self.emit(Opcode::new("fence.mbarrier_init.release.cluster"), []);
        self.fence_proxy_async();
    }

    /// Orders this thread's accesses to shared memory before those of TMA and tensor cores
    /// (`fence.proxy.async`).
    pub fn fence_proxy_async(&self) {
        self.edit(|body| body.require(8, 0));
        self.emit(Opcode::new("fence.proxy.async.shared::cta"), []);
    }

    /// Waits for all threads of the cluster; all lanes of a warp must execute it together.
    pub fn sync_cluster(&self) {
        self.arrive_cluster();
        self.wait_cluster();
    }

    /// Returns the block's rank in its cluster.
    #[must_use]
    pub fn cluster_rank(&self) -> Val<'_, u32> {
        self.special("%cluster_ctarank")
    }

    /// Releases registers (`setmaxnreg.dec`), so that each thread of the warpgroup keeps `count`: a
    /// multiple of 8 from 24 to 256, at most what it has. All four warps must be active.
    pub fn setmaxnreg_dec(&self, count: u32) {
        let opcode = Opcode::new("setmaxnreg.dec.sync.aligned.u32");
        self.emit(opcode, [Operand::u32(count).into()]);
    }

    /// Waits for registers (`setmaxnreg.inc`), so that each thread of the warpgroup has `count`: a
    /// multiple of 8 from 24 to 256, at least what it has. Deadlocks if other warps do not release
    /// enough.
    pub fn setmaxnreg_inc(&self, count: u32) {
        let opcode = Opcode::new("setmaxnreg.inc.sync.aligned.u32");
        self.emit(opcode, [Operand::u32(count).into()]);
    }
}

/// Tile copies by TMA, each issued by one thread.
impl KernelBuilder {
    /// Prefetches a tensor map (`prefetch.tensormap`).
    pub fn prefetch_tensor_map(&self, map: Val<'_, u64>) {
        self.edit(|body| body.require(8, 0));
        let args = [asm::Address::reg(map.reg(), 0).into()];
        self.emit(Opcode::new("prefetch.tensormap"), args);
    }

    /// Loads a tile of a tensor by TMA into shared memory, aligned to 128 bytes. `at` are its
    /// coordinates in elements, innermost first, one per dimension of the tensor map (2 to 5). They
    /// are signed: a tile may begin before the tensor. Out-of-bounds elements are zero. The
    /// mbarrier counts the bytes of the whole tile, including those.
    pub fn tma_load<T: Element, const N: usize>(
        &self,
        to: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
        done: MBarrier<'_>,
    ) {
        self.edit(|body| body.require(8, 0));
        self.emit(
            tma_load_opcode(N),
            [to.address().into(), tile(map, at), done.at.address().into()],
        );
    }

    /// Loads a tile with an L2 eviction policy.
    pub fn tma_load_with_policy<T: Element, const N: usize>(
        &self,
        policy: Policy<'_>,
        to: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
        done: MBarrier<'_>,
    ) {
        self.edit(|body| body.require(8, 0));
        let (to, done) = (to.address().into(), done.at.address().into());
        let args = [to, tile(map, at), done, policy.operand().into()];
        self.emit(tma_load_opcode(N).with("L2::cache_hint"), args);
    }

    /// Multicasts a tile to all blocks of the cluster whose bit is set in `blocks`, at the same
    /// offset of their shared memory; each block's own mbarrier counts the bytes.
    pub fn tma_load_multicast<T: Element, const N: usize>(
        &self,
        to: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
        done: MBarrier<'_>,
        blocks: Val<'_, u16>,
    ) {
        self.edit(|body| body.require(8, 0));
        let done = done.at.address().into();
        let args = [to.address().into(), tile(map, at), done, blocks.reg().into()];
        self.emit(tma_load_opcode(N).with("multicast::cluster"), args);
    }

    /// Stores a tile from shared memory, aligned to 128 bytes, into a tensor by TMA; out-of-bounds
    /// elements are dropped. [`KernelBuilder::fence_proxy_async`] and a barrier must separate
    /// it from the stores of threads.
    pub fn tma_store<T: Element, const N: usize>(
        &self,
        from: Ptr<'_, Shared, T>,
        map: Val<'_, u64>,
        at: [Val<'_, u32>; N],
    ) {
        self.edit(|body| body.require(8, 0));
        let opcode = match N {
            2 => "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
            3 => "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group",
            4 => "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group",
            _ => "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group",
        };
        self.emit(Opcode::new(opcode), [tile(map, at), from.address().into()]);
    }

    /// Commits this thread's tile stores as a group (`cp.async.bulk.commit_group`).
    pub fn bulk_commit_group(&self) {
        self.edit(|body| body.require(8, 0));
        self.emit(Opcode::new("cp.async.bulk.commit_group"), []);
    }

    /// Waits until TMA has read the shared memory of this thread's groups, except for the `pending`
    /// most recent ones (`cp.async.bulk.wait_group.read`).
    pub fn bulk_wait_group_read(&self, pending: u32) {
        self.edit(|body| body.require(8, 0));
        let opcode = Opcode::new("cp.async.bulk.wait_group.read");
        self.emit(opcode, [Operand::u32(pending).into()]);
    }
}

/// Returns the opcode of a TMA load of a tile of this many dimensions.
fn tma_load_opcode(dimensions: usize) -> Opcode {
    Opcode::long(match dimensions {
        2 => "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
        3 => "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes",
        4 => "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes",
        _ => "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes",
    })
}

fn tile<const N: usize>(map: Val<'_, u64>, at: [Val<'_, u32>; N]) -> asm::Arg {
    asm::Arg::TensorTile(map.reg(), at.map(ToOperand::operand).into())
}

/// The swizzle mode of a tile: 16-byte chunks are permuted within this many bytes, so that reads of
/// columns have no bank conflicts. Tiles must be aligned to eight times that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// No swizzle.
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl Swizzle {
    /// Returns bits 62 and 63 of a descriptor.
    const fn code(self) -> u64 {
        match self {
            Self::None => 0,
            Self::B128 => 1,
            Self::B64 => 2,
            Self::B32 => 3,
        }
    }
}

/// Returns the `wgmma` descriptor of a matrix in shared memory: `leading` and `stride` are the byte
/// offsets between core matrices (8 rows of 16 bytes) along each dimension, as the PTX ISA defines
/// them for this swizzle and major-ness; both are multiples of 16.
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
    /// The lower half of its descriptor: address and leading byte offset.
    low: Val<'k, u32>,
    /// The upper half: stride byte offset and swizzle mode.
    high: u32,
}

impl<'k> Matrix<'k> {
    /// Returns the matrix at an address; byte offsets are those of [`descriptor`].
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
        let k = self.low.builder();
        let words = vec![(self.low + (bytes >> 4)).operand(), Operand::u32(self.high)];
        let descriptor_bits = k.edit(|body| body.reg(PtxType::U64));
        k.emit(Opcode::new("mov.b64"), [descriptor_bits.into(), asm::Arg::Vector(words)]);
        k.wrap(descriptor_bits)
    }
}

/// The accumulators of a warpgroup for 64 rows and `columns` columns. Thread `t` holds, for the
/// `c`-th group of 8 columns, in registers `4 * c ..`: row `16 * (t / 32) + t % 32 / 4`, columns
/// `8 * c + 2 * (t % 4)` and the next one; then the same columns of the row 8 below.
#[derive(Debug, Clone)]
pub struct Accumulators<'k> {
    k: &'k KernelBuilder,
    regs: Vec<Reg>,
}

/// The operand types of an MMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MmaType {
    /// f16.
    F16,
    /// Bfloat16.
    Bf16,
    /// TF32: the upper 19 bits of an `f32`.
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

/// Operand `a` of an MMA.
#[derive(Debug, Clone, Copy)]
pub enum OperandA<'k> {
    /// In shared memory, by its descriptor.
    Shared(Val<'k, u64>),
    /// In registers, a pair of 16-bit floats each: those of this thread's columns (see
    /// [`Accumulators`]) in the first half of K, of its row and of the row 8 below; then the same
    /// in the second half of K.
    Registers([Val<'k, u32>; 4]),
}

/// Which operands in shared memory are not K-major; only supported for 16-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transposed {
    /// Whether `a` is MN-major.
    pub a: bool,
    /// Whether `b` is MN-major.
    pub b: bool,
}

impl<'k> Accumulators<'k> {
    /// Declares accumulators of 64 rows and a multiple of 8 columns (8 to 256), uninitialised.
    #[must_use]
    pub fn new(k: &'k KernelBuilder, columns: u32) -> Self {
        let regs = k.edit(|body| (0..columns / 2).map(|_| body.reg(PtxType::F32)).collect());
        Self { k, regs }
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> u32 {
        2 * self.regs.len() as u32
    }

    /// Returns the accumulator in the `nth` register.
    #[must_use]
    pub fn get(&self, nth: usize) -> Val<'k, f32> {
        self.k.wrap(self.regs[nth])
    }

    /// Assigns the accumulator in the `nth` register.
    pub fn set(&self, nth: usize, value: impl ToOperand<f32>) {
        self.k.edit(|body| body.assign(self.regs[nth], value.operand()));
    }

    /// Returns the accumulators of the `nth` group of 8 columns, as variables.
    #[must_use]
    pub fn tile(&self, nth: usize) -> [Var<'k, f32>; 4] {
        [0, 1, 2, 3].map(|part: usize| {
            let reg = self.regs[4 * nth + part];
            Var { k: self.k, reg, element: PhantomData }
        })
    }

    /// Issues one `wgmma.mma_async`, which adds to the accumulators, or overwrites them if
    /// `accumulate` is false. Must be between [`KernelBuilder::wgmma_fence`] and
    /// [`KernelBuilder::wgmma_commit_group`].
    pub fn multiply(
        &self,
        mma_type: MmaType,
        a: OperandA<'_>,
        b: Val<'_, u64>,
        accumulate: Val<'_, bool>,
        transposed: Transposed,
    ) {
        let shape = format!("m64n{}k{}", self.columns(), mma_type.k_dim());
        let name = mma_type.name();
        let opcode = Opcode::new("wgmma.mma_async.sync.aligned").with(&shape).with("f32");
        let accumulators = self.regs.iter().map(|reg| (*reg).into()).collect();
        let mut args = vec![asm::Arg::Vector(accumulators), a.arg(), b.reg().into()];
        args.extend([accumulate.reg().into(), Operand::s32(1).into(), Operand::s32(1).into()]);
        if mma_type != MmaType::Tf32 {
            if matches!(a, OperandA::Shared(_)) {
                args.push(Operand::u32(transposed.a.into()).into());
            }
            args.push(Operand::u32(transposed.b.into()).into());
        }
        self.k.edit(|body| body.emit(opcode.with(name).with(name), args));
    }
}

impl OperandA<'_> {
    fn arg(self) -> asm::Arg {
        match self {
            Self::Shared(descriptor) => descriptor.reg().into(),
            Self::Registers(values) => asm::Arg::Vector(values.map(ToOperand::operand).into()),
        }
    }
}

/// Synchronisation of `wgmma`.
impl KernelBuilder {
    /// Orders accesses to registers before the MMAs that follow (`wgmma.fence`). Stores of threads
    /// to shared memory need [`KernelBuilder::fence_proxy_async`] as well.
    pub fn wgmma_fence(&self) {
        self.emit(Opcode::new("wgmma.fence.sync.aligned"), []);
    }

    /// Commits MMAs as a group (`wgmma.commit_group`).
    pub fn wgmma_commit_group(&self) {
        self.emit(Opcode::new("wgmma.commit_group.sync.aligned"), []);
    }

    /// Waits until at most this many groups of MMAs are pending (`wgmma.wait_group`).
    pub fn wgmma_wait_group(&self, pending: u32) {
        let opcode = Opcode::new("wgmma.wait_group.sync.aligned");
        self.emit(opcode, [Operand::u32(pending).into()]);
    }

    /// Stores four 8 × 8 matrices of 16-bit floats in the register layout of accumulators
    /// (`stmatrix`). Lanes pass the addresses of rows as for [`KernelBuilder::ldmatrix`].
    pub fn stmatrix<T: Element>(&self, row: Ptr<'_, Shared, T>, matrices: [Val<'_, u32>; 4]) {
        let values = asm::Arg::Vector(matrices.map(ToOperand::operand).into());
        let opcode = Opcode::new("stmatrix.sync.aligned.m8n8.x4.shared.b16");
        self.emit(opcode, [row.address().into(), values]);
    }
}
