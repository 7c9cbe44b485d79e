//! The execution state of a batch of workgroups.

use std::cell::Cell;
use std::ops::Range;

use scry_ir::kir::Type;

use super::scratch::{self, Coefficients, Scratch};
use crate::SUBGROUP_SIZE;
use crate::access::Region;
use crate::code::{Affine, Code};
use crate::lanes::{Args, BLOCK, Bits, Block, Files, IsaLevel, Src};
use crate::ops;
use crate::{CancelToken, Launch};

/// The state that steps operate on.
pub(super) struct Frame<'a> {
    pub code: &'a Code,
    pub launch: &'a Launch<'a>,
    pub scratch: &'a Scratch,
    pub isa: IsaLevel,
    pub stop: &'a CancelToken,
    /// The bindings, and after them the immediates.
    pub regions: Vec<Region>,
    /// The position of the batch's first workgroup.
    pub group: [u32; 3],
    /// Number of workgroups in the batch; a power of two if lanes are interleaved.
    pub count: u32,
    /// Number of blocks of lanes of the batch.
    pub block_count: usize,
    /// The active lanes.
    pub lanes: Lanes,
    /// For each depth of divergence, the lanes that were active at its entry, and the value of
    /// `exit_count` then.
    pub depths: Vec<(Lanes, u64)>,
    /// Number of times that lanes have left a construct in this batch.
    pub exit_count: u64,
    /// The value of each condition, if it was uniform when last evaluated.
    pub uniform_conditions: Vec<Cell<Option<bool>>>,
    /// Number of lanes for which the mask of live lanes was last initialised; 0 before the first
    /// batch.
    initialised_lanes: usize,
    /// Whether the lanes of each block are in one row of one workgroup.
    pub blocks_within_rows: bool,
}

/// The active mask and its properties.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes {
    /// The register of the active mask.
    pub mask: u32,
    /// Range of blocks that contains all active lanes.
    pub first: usize,
    pub end: usize,
    /// Whether every lane that has not returned is active.
    pub full: bool,
    /// Whether all lanes of these blocks are active.
    pub dense: bool,
}

impl<'a> Frame<'a> {
    /// Creates the state of a thread that executes batches of a launch.
    ///
    /// # Safety
    /// The memory of the launch's bindings is alive, and is accessed only by threads that execute
    /// the same launch.
    pub(super) unsafe fn new(
        code: &'a Code,
        launch: &'a Launch<'a>,
        scratch: &'a Scratch,
        isa: IsaLevel,
        stop: &'a CancelToken,
    ) -> Self {
        let plain = plain_sizes(code, launch);
        let mut regions = Vec::with_capacity(plain.len() + 1);
        for (range, plain) in launch.bindings.iter().zip(plain) {
            // SAFETY: as the caller promises; `plain` was computed for this launch.
            regions.push(unsafe { Region::new(*range, plain, isa) });
        }
        let immediates = scratch.immediates(launch.immediates.len());
        // SAFETY: kernels only read immediates, and each thread has its own copy.
        regions.push(unsafe { Region::new(immediates, launch.immediates.len() as u64, isa) });
        let blocks_within_rows = (code.lane_layout.size[0] as usize).is_multiple_of(BLOCK);
        Self {
            code,
            launch,
            scratch,
            isa,
            stop,
            regions,
            group: [0; 3],
            count: 1,
            block_count: 0,
            lanes: Lanes { mask: code.live_mask, first: 0, end: 0, full: true, dense: true },
            depths: Vec::new(),
            exit_count: 0,
            uniform_conditions: vec![Cell::new(None); code.conditions],
            initialised_lanes: 0,
            blocks_within_rows,
        }
    }

    /// Starts a batch of `count` workgroups, of which `group` is the first.
    pub(super) fn begin(&mut self, group: [u32; 3], count: u32) {
        self.group = group;
        self.count = count;
        let lanes = self.code.lane_layout.invocations() * count as usize;
        self.block_count = lanes.div_ceil(BLOCK);
        if lanes != self.initialised_lanes || self.exit_count != 0 {
            self.fill_live_mask(lanes);
        }
        self.lanes = Lanes {
            mask: self.code.live_mask,
            first: 0,
            end: self.block_count,
            full: true,
            dense: lanes.is_multiple_of(BLOCK),
        };
        self.exit_count = 0;
        self.depths.resize(self.code.depths, (self.lanes, 0));
        self.scratch.shared.clear();
        for (ty, start, blocks) in &self.code.locals {
            self.zero_blocks(*ty, *start as usize..(*start + *blocks) as usize);
        }
    }

    fn fill_live_mask(&mut self, lanes: usize) {
        let blocks = self.code.lane_layout.lanes().div_ceil(BLOCK);
        let (full_blocks, part) = (lanes / BLOCK, lanes % BLOCK);
        let mask = &u8::file(self.files())[self.code.live_mask as usize..][..blocks];
        let (full, others) = mask.split_at(full_blocks);
        // Whole blocks are written separately: each is one vector.
        full.iter().for_each(|block| block.set([1; BLOCK]));
        others.iter().for_each(|block| block.set([0; BLOCK]));
        if let Some(block) = others.first() {
            block.set(std::array::from_fn(|lane| u8::from(lane < part)));
        }
        self.initialised_lanes = lanes;
    }

    /// Returns the range of blocks that contains all active lanes.
    #[inline(always)]
    pub(super) fn blocks(&self) -> Range<usize> {
        self.lanes.first..self.lanes.end
    }

    #[inline(always)]
    pub(super) fn files(&self) -> &'a Files {
        &self.scratch.files
    }

    #[inline(always)]
    pub(super) fn scalar(&self, scalar: u32) -> u64 {
        self.scratch.scalars[scalar as usize].get()
    }

    #[inline(always)]
    pub(super) fn set_scalar(&self, scalar: u32, bits: u64) {
        self.scratch.scalars[scalar as usize].set(bits);
    }

    #[inline(always)]
    pub(super) fn coefficients(&self, affine: Affine) -> Coefficients {
        self.scratch.affines[affine.slot as usize].get()
    }

    #[inline(always)]
    pub(super) fn set_coefficients(&self, affine: Affine, coefficients: Coefficients) {
        self.scratch.affines[affine.slot as usize].set(coefficients);
    }

    /// Returns the active lanes of a block: 1 or 0 each.
    #[inline(always)]
    pub(super) fn active(&self, block: usize) -> [u8; BLOCK] {
        u8::file(self.files())[self.lanes.mask as usize + block].get()
    }

    pub(super) fn splat(&self, ty: Type, block: u32, bits: u64) {
        scratch::splat(self.files(), ty.size(), block, bits);
    }

    /// Zeroes a register, in all lanes.
    pub(super) fn zero(&self, ty: Type, d: u32) {
        let blocks = self.code.lane_layout.lanes().div_ceil(BLOCK);
        self.zero_blocks(ty, d as usize..d as usize + blocks);
    }

    fn zero_blocks(&self, ty: Type, blocks: Range<usize>) {
        fn zero<B: Bits>(file: &[Block<B>]) {
            file.iter().for_each(|block| block.set([B::ZERO; BLOCK]));
        }
        match ty.size() {
            1 => zero(&u8::file(self.files())[blocks]),
            2 => zero(&u16::file(self.files())[blocks]),
            4 => zero(&u32::file(self.files())[blocks]),
            _ => zero(&u64::file(self.files())[blocks]),
        }
    }

    /// Assigns a register in active lanes.
    pub(super) fn blend(&self, ty: Type, d: u32, value: Src) {
        let to = Src { start: d, step: 1 };
        let mask = Src { start: self.lanes.mask, step: 1 };
        let (op, args) = if self.lanes.full {
            (ops::copy(ty), Args { d, a: value, ..Args::default() })
        } else {
            (ops::select(ty), Args { d, a: mask, b: value, c: to })
        };
        op.lanes(self.isa, self.files(), self.blocks(), &args);
    }

    pub(super) fn group_id(&self, d: Affine) {
        let step = [0, 0, 0, 1];
        let base = self.group[0];
        self.set_coefficients(d, Coefficients { base, step, is_affine: true, expanded: false });
    }

    pub(super) fn local_id(&self, axis: u8, d: Affine) {
        let mut step = [0; 4];
        step[usize::from(axis)] = 1;
        self.set_coefficients(d, Coefficients { base: 0, step, is_affine: true, expanded: false });
    }

    /// Computes the subgroup invocation id of each lane. Workgroups start with a new subgroup.
    pub(super) fn subgroup_lane(&self, d: u32) {
        self.set_by_local_index(d, |number| number % SUBGROUP_SIZE);
    }

    pub(super) fn subgroup_id(&self, d: u32) {
        self.set_by_local_index(d, |number| number / SUBGROUP_SIZE);
    }

    /// Fills a register with a function of each lane's local invocation index.
    fn set_by_local_index(&self, d: u32, f: impl Fn(u32) -> u32) {
        let workgroup = self.code.lane_layout.invocations() as u32;
        let file = u32::file(self.files());
        for block in self.blocks() {
            let first = (block * BLOCK) as u32;
            let lanes = std::array::from_fn(|lane| f((first + lane as u32) % workgroup));
            file[d as usize + block].set(lanes);
        }
    }

    /// Computes the length of a runtime-sized array.
    pub(super) fn length(&self, d: u32, binding: u32, offset: u32, stride: u32) {
        let size = self.regions[binding as usize].size();
        let elements = size.saturating_sub(offset.into()) / u64::from(stride.max(1));
        self.set_scalar(d, elements.min(u32::MAX.into()));
    }
}

/// Returns, for each binding, the size of the prefix in which no thread writes what another
/// accesses.
fn plain_sizes(code: &Code, launch: &Launch<'_>) -> Vec<u64> {
    let invocations = u64::from(launch.groups[0]) * u64::from(code.lane_layout.size[0]);
    let flat = launch.groups[1] == 1 && launch.groups[2] == 1 && invocations <= 1 << 32;
    // Loads read whole blocks: lanes beyond the workgroup would read elements that other threads
    // write.
    let filled = code.lane_layout.invocations().is_multiple_of(BLOCK);
    let bindings = launch.bindings.iter().zip(&code.writable).zip(&code.disjoint);
    let plain = bindings.map(|((range, writable), disjoint)| match disjoint {
        _ if !writable => range.size as u64,
        // Indices out of bounds are clamped to the last element, which is therefore excluded. So is
        // the one before: the array may begin up to one element after the offset, and then has one
        // element less.
        Some(own) if flat && filled => {
            let bytes = (range.size as u64).saturating_sub(own.offset.into());
            let elements = (bytes / u64::from(own.stride)).saturating_sub(2);
            u64::from(own.offset) + elements * u64::from(own.stride)
        }
        _ => 0,
    });
    plain.collect()
}
