//! Operations on lanes: a function of scalars, applied to whole registers or to single values.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use super::{BLOCK, Bits, Block, Files, Lane};

/// ISA levels. Code is compiled for each, and selected at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsaLevel {
    /// The baseline of the target.
    Base,
    /// x86-64 with AVX2, FMA, BMI1, BMI2, LZCNT, POPCNT and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl IsaLevel {
    /// Returns the best level that this CPU supports.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let features = [
                is_x86_feature_detected!("avx2"),
                is_x86_feature_detected!("fma"),
                is_x86_feature_detected!("bmi1"),
                is_x86_feature_detected!("bmi2"),
                is_x86_feature_detected!("lzcnt"),
                is_x86_feature_detected!("popcnt"),
                is_x86_feature_detected!("f16c"),
            ];
            if features.iter().all(|present| *present) {
                return Self::Avx2;
            }
        }
        Self::Base
    }
}

/// An operand: the register that begins at block `start`, or, with `step` 0, one broadcast
/// block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Src {
    pub start: u32,
    pub step: u32,
}

impl Src {
    /// Returns the index of block `block` in the register file.
    #[inline(always)]
    pub(crate) fn at(self, block: usize) -> usize {
        self.start as usize + block * self.step as usize
    }
}

/// The registers of operands and result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Args {
    pub d: u32,
    pub a: Src,
    pub b: Src,
    pub c: Src,
}

/// An operation of up to three operands.
pub(crate) trait LaneOp: Sync {
    /// Applies the operation to blocks of registers.
    fn lanes(&self, isa: IsaLevel, files: &Files, blocks: Range<usize>, args: &Args);

    /// Applies the operation to single values; the result is that of lanes on the same ISA level.
    fn scalar(&self, isa: IsaLevel, operands: [u64; 3]) -> u64;
}

/// Unary operation, with a loop over lanes compiled for every ISA level.
///
/// Rarer operations are compiled for fewer levels, or called lane by lane, to keep the code small.
pub(crate) fn unary_for_each_isa<A: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A) -> R + Sync + 'static,
{
    leak(Unary::<A, R, F, true, true>(f, PhantomData))
}

/// Unary operation, compiled for the best ISA level of the target only. Other levels call it lane
/// by lane.
pub(crate) fn unary_for_best_isa<A: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A) -> R + Sync + 'static,
{
    leak(Unary::<A, R, F, HAS_BASE_ONLY, true>(f, PhantomData))
}

/// Unary operation, compiled for the baseline, which all levels use.
pub(crate) fn unary_for_baseline<A: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A) -> R + Sync + 'static,
{
    leak(Unary::<A, R, F, true, false>(f, PhantomData))
}

/// Unary operation, called lane by lane.
pub(crate) fn unary_lane_by_lane<A: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A) -> R + Sync + 'static,
{
    leak(Unary::<A, R, F, false, false>(f, PhantomData))
}

/// Binary operation, compiled for every ISA level.
pub(crate) fn binary_for_each_isa<A: Lane, B: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A, B) -> R + Sync + 'static,
{
    leak(Binary::<A, B, R, F, true, true>(f, PhantomData))
}

/// Binary operation, compiled for the best ISA level of the target only. Other levels call it lane
/// by lane.
pub(crate) fn binary_for_best_isa<A: Lane, B: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A, B) -> R + Sync + 'static,
{
    leak(Binary::<A, B, R, F, HAS_BASE_ONLY, true>(f, PhantomData))
}

/// Binary operation, compiled for the baseline, which all levels use.
pub(crate) fn binary_for_baseline<A: Lane, B: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A, B) -> R + Sync + 'static,
{
    leak(Binary::<A, B, R, F, true, false>(f, PhantomData))
}

/// Binary operation, called lane by lane.
pub(crate) fn binary_lane_by_lane<A: Lane, B: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A, B) -> R + Sync + 'static,
{
    leak(Binary::<A, B, R, F, false, false>(f, PhantomData))
}

/// Ternary operation, compiled for every ISA level.
pub(crate) fn ternary<A: Lane, B: Lane, C: Lane, R: Lane, F>(f: F) -> &'static dyn LaneOp
where
    F: Fn(A, B, C) -> R + Copy + Sync + 'static,
{
    ternary_by_isa(f, f)
}

/// Ternary operation with two implementations: `fused` for ISA levels with fused multiply-add, and
/// `plain` for the others.
pub(crate) fn ternary_by_isa<A: Lane, B: Lane, C: Lane, R: Lane, F, G>(
    fused: F,
    plain: G,
) -> &'static dyn LaneOp
where
    F: Fn(A, B, C) -> R + Sync + 'static,
    G: Fn(A, B, C) -> R + Sync + 'static,
{
    leak(Ternary(fused, plain, PhantomData))
}

/// Whether the target has no ISA level above the baseline.
const HAS_BASE_ONLY: bool = cfg!(not(target_arch = "x86_64"));

/// Returns a static reference to an operation without captures, which is zero-sized and needs no
/// allocation.
fn leak<T: LaneOp + 'static>(op: T) -> &'static dyn LaneOp {
    const { assert!(size_of::<T>() == 0, "a function with captures") };
    std::mem::forget(op);
    // SAFETY: any aligned address is valid for a zero-sized value, and it is never dropped.
    unsafe { NonNull::<T>::dangling().as_ref() }
}

/// `BASE` and `BEST` are the ISA levels for which the loop over lanes is compiled.
struct Unary<A, R, F, const BASE: bool, const BEST: bool>(F, PhantomData<fn(A) -> R>);

struct Binary<A, B, R, F, const BASE: bool, const BEST: bool>(F, PhantomData<fn(A, B) -> R>);

struct Ternary<A, B, C, R, F, G>(F, G, PhantomData<fn(A, B, C) -> R>);

impl<A: Lane, R: Lane, F: Fn(A) -> R + Sync, const BASE: bool, const BEST: bool> LaneOp
    for Unary<A, R, F, BASE, BEST>
{
    fn lanes(&self, isa: IsaLevel, files: &Files, blocks: Range<usize>, args: &Args) {
        #[cfg(target_arch = "x86_64")]
        if BEST && isa == IsaLevel::Avx2 {
            // SAFETY: `Avx2` is only constructed if the CPU has these features.
            return unsafe { avx2::unary(&self.0, files, blocks, args) };
        }
        if BASE {
            apply_unary(&self.0, files, blocks, args);
        } else {
            let sizes = [A::SIZE, 0, R::SIZE];
            lane_by_lane(self, isa, sizes, files, blocks, args);
        }
    }

    fn scalar(&self, _: IsaLevel, [a, ..]: [u64; 3]) -> u64 {
        (self.0)(A::from_bits(A::Bits::truncate(a))).to_bits().widen()
    }
}

impl<A: Lane, B: Lane, R: Lane, F, const BASE: bool, const BEST: bool> LaneOp
    for Binary<A, B, R, F, BASE, BEST>
where
    F: Fn(A, B) -> R + Sync,
{
    fn lanes(&self, isa: IsaLevel, files: &Files, blocks: Range<usize>, args: &Args) {
        #[cfg(target_arch = "x86_64")]
        if BEST && isa == IsaLevel::Avx2 {
            // SAFETY: `Avx2` is only constructed if the CPU has these features.
            return unsafe { avx2::binary(&self.0, files, blocks, args) };
        }
        if BASE {
            apply_binary(&self.0, files, blocks, args);
        } else {
            let sizes = [A::SIZE, B::SIZE, R::SIZE];
            lane_by_lane(self, isa, sizes, files, blocks, args);
        }
    }

    fn scalar(&self, _: IsaLevel, [a, b, _]: [u64; 3]) -> u64 {
        (self.0)(A::from_bits(A::Bits::truncate(a)), B::from_bits(B::Bits::truncate(b)))
            .to_bits()
            .widen()
    }
}

impl<A: Lane, B: Lane, C: Lane, R: Lane, F, G> LaneOp for Ternary<A, B, C, R, F, G>
where
    F: Fn(A, B, C) -> R + Sync,
    G: Fn(A, B, C) -> R + Sync,
{
    fn lanes(&self, isa: IsaLevel, files: &Files, blocks: Range<usize>, args: &Args) {
        match isa {
            IsaLevel::Base => apply_ternary(&self.1, files, blocks, args),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` is only constructed if the CPU has these features.
            IsaLevel::Avx2 => unsafe { avx2::ternary(&self.0, files, blocks, args) },
        }
    }

    fn scalar(&self, isa: IsaLevel, [a, b, c]: [u64; 3]) -> u64 {
        let (a, b, c) = (A::Bits::truncate(a), B::Bits::truncate(b), C::Bits::truncate(c));
        let (a, b, c) = (A::from_bits(a), B::from_bits(b), C::from_bits(c));
        let result = match isa {
            IsaLevel::Base => (self.1)(a, b, c),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` is only constructed if the CPU has these features.
            IsaLevel::Avx2 => unsafe { avx2::scalars(&self.0, a, b, c) },
        };
        result.to_bits().widen()
    }
}

/// Calls a unary or binary operation lane by lane. `sizes` are the bytes of a lane of each operand,
/// 0 if there is none, and of the result.
fn lane_by_lane(
    op: &dyn LaneOp,
    isa: IsaLevel,
    sizes: [u32; 3],
    files: &Files,
    blocks: Range<usize>,
    args: &Args,
) {
    for block in blocks {
        let a = files.widened_block(sizes[0], args.a.at(block));
        let b = files.widened_block(sizes[1], args.b.at(block));
        let mut result = [0; BLOCK];
        for lane in 0..BLOCK {
            result[lane] = op.scalar(isa, [a[lane], b[lane], 0]);
        }
        files.set_block(sizes[2], args.d as usize + block, &result);
    }
}

/// A cursor over the blocks of an operand or a result.
struct BlockCursor<'a, B> {
    next: *const Block<B>,
    step: usize,
    blocks: PhantomData<&'a Block<B>>,
}

impl<'a, B: Bits> BlockCursor<'a, B> {
    /// Starts at the first of these blocks. Checks bounds here, once for all blocks.
    #[inline(always)]
    fn new(file: &'a [Block<B>], source: Src, blocks: &Range<usize>) -> Self {
        let step = source.step as usize;
        // `step` is 0 for a broadcast operand, which has one block, and 1 for a register.
        assert!(source.at(blocks.end) < file.len() + step, "a register outside its file");
        let next = file.as_ptr().wrapping_add(source.at(blocks.start));
        Self { next, step, blocks: PhantomData }
    }

    /// Returns the next block.
    ///
    /// # Safety
    /// The cursor was created for a range of blocks, and is advanced at most once for each.
    #[inline(always)]
    unsafe fn next(&mut self) -> &'a Block<B> {
        let block = self.next;
        self.next = block.wrapping_add(self.step);
        // SAFETY: as the caller promises; `new` has checked that the last block is in the file.
        unsafe { &*block }
    }
}

/// Returns the blocks of the result.
#[inline(always)]
fn result<'a, B: Bits>(files: &'a Files, args: &Args, blocks: &Range<usize>) -> BlockCursor<'a, B> {
    BlockCursor::new(B::file(files), Src { start: args.d, step: 1 }, blocks)
}

#[inline(always)]
fn apply_unary<A: Lane, R: Lane, F>(f: &F, files: &Files, blocks: Range<usize>, args: &Args)
where
    F: Fn(A) -> R,
{
    let mut a = BlockCursor::new(A::Bits::file(files), args.a, &blocks);
    let mut d = result::<R::Bits>(files, args, &blocks);
    for _ in blocks {
        // SAFETY: once for each block.
        let (a, d) = unsafe { (a.next().get(), d.next()) };
        let mut result = [R::Bits::ZERO; BLOCK];
        for lane in 0..BLOCK {
            result[lane] = f(A::from_bits(a[lane])).to_bits();
        }
        d.set(result);
    }
}

#[inline(always)]
fn apply_binary<A: Lane, B: Lane, R: Lane, F>(
    f: &F,
    files: &Files,
    blocks: Range<usize>,
    args: &Args,
) where
    F: Fn(A, B) -> R,
{
    let mut a = BlockCursor::new(A::Bits::file(files), args.a, &blocks);
    let mut b = BlockCursor::new(B::Bits::file(files), args.b, &blocks);
    let mut d = result::<R::Bits>(files, args, &blocks);
    for _ in blocks {
        // SAFETY: once for each block.
        let (a, b, d) = unsafe { (a.next().get(), b.next().get(), d.next()) };
        let mut result = [R::Bits::ZERO; BLOCK];
        for lane in 0..BLOCK {
            result[lane] = f(A::from_bits(a[lane]), B::from_bits(b[lane])).to_bits();
        }
        d.set(result);
    }
}

#[inline(always)]
fn apply_ternary<A: Lane, B: Lane, C: Lane, R: Lane, F>(
    f: &F,
    files: &Files,
    blocks: Range<usize>,
    args: &Args,
) where
    F: Fn(A, B, C) -> R,
{
    let mut a = BlockCursor::new(A::Bits::file(files), args.a, &blocks);
    let mut b = BlockCursor::new(B::Bits::file(files), args.b, &blocks);
    let mut c = BlockCursor::new(C::Bits::file(files), args.c, &blocks);
    let mut d = result::<R::Bits>(files, args, &blocks);
    for _ in blocks {
        // SAFETY: once for each block.
        let (a, b, c, d) = unsafe { (a.next().get(), b.next().get(), c.next().get(), d.next()) };
        let mut result = [R::Bits::ZERO; BLOCK];
        for lane in 0..BLOCK {
            result[lane] =
                f(A::from_bits(a[lane]), B::from_bits(b[lane]), C::from_bits(c[lane])).to_bits();
        }
        d.set(result);
    }
}

/// The loops over lanes, compiled for AVX2. Callers must check that the CPU supports it.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Args, Files, Lane, Range, apply_binary, apply_ternary, apply_unary};

    // SAFETY: the caller has checked that the CPU has these features.
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub(super) unsafe fn unary<A: Lane, R: Lane, F: Fn(A) -> R>(
        f: &F,
        files: &Files,
        blocks: Range<usize>,
        args: &Args,
    ) {
        apply_unary(f, files, blocks, args);
    }

    // SAFETY: the caller has checked that the CPU has these features.
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub(super) unsafe fn binary<A: Lane, B: Lane, R: Lane, F: Fn(A, B) -> R>(
        f: &F,
        files: &Files,
        blocks: Range<usize>,
        args: &Args,
    ) {
        apply_binary(f, files, blocks, args);
    }

    // SAFETY: the caller has checked that the CPU has these features.
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub(super) unsafe fn ternary<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C) -> R>(
        f: &F,
        files: &Files,
        blocks: Range<usize>,
        args: &Args,
    ) {
        apply_ternary(f, files, blocks, args);
    }

    // SAFETY: the caller has checked that the CPU has these features.
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub(super) unsafe fn scalars<A, B, C, R>(f: &impl Fn(A, B, C) -> R, a: A, b: B, c: C) -> R {
        f(a, b, c)
    }
}
