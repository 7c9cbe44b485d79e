//! Registers and memory of a thread that executes kernels.

use std::cell::Cell;

use crate::code::Code;
use crate::lanes::{BLOCK, Bits, Block, Files, Sizes};
use crate::{Job, Span};

/// Registers above this size in bytes are freed if a kernel needs fewer.
const KEPT: usize = 16 << 20;

/// Coefficients of an affine value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Coefficients {
    /// The value of the first lane.
    pub base: u32,
    /// The steps from one lane to the next along x, y, z, and from one workgroup to the next.
    pub step: [u32; 4],
    /// Whether the value is affine; otherwise only its lanes are valid.
    pub linear: bool,
    /// Whether an affine value has been expanded to its lanes.
    pub spread: bool,
}

/// Registers and memory of a thread, reused by later kernels.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) files: Files,
    pub(super) scalars: Vec<Cell<u64>>,
    pub(super) affines: Vec<Cell<Coefficients>>,
    pub(super) shared: SharedMemory,
    /// For each block of lanes, the positions along x, y, z, and the number of the workgroup; empty
    /// if lanes are interleaved.
    pub(super) coordinates: Vec<[[u32; BLOCK]; 4]>,
    /// The number of the code that this was last prepared for; 0 if none.
    prepared: u64,
    /// The immediate block, in 16-byte words for alignment.
    pub(super) immediates: Vec<u128>,
}

/// Workgroup memory, by size of element.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    pub bytes: Vec<Block<u8>>,
    pub halves: Vec<Block<u16>>,
    pub words: Vec<Block<u32>>,
    pub doubles: Vec<Block<u64>>,
}

/// Resizes workgroup memory for a number of workgroups.
struct Resize(usize);

impl Resize {
    fn file<B: Bits>(&self, file: &mut Vec<Block<B>>, size: usize) {
        file.resize((size * self.0).div_ceil(BLOCK), Cell::new([B::ZERO; BLOCK]));
    }
}

impl SharedMemory {
    /// Allocates these numbers of elements per workgroup.
    fn resize(&mut self, sizes: Sizes, workgroups: usize) {
        let resize = Resize(workgroups);
        resize.file(&mut self.bytes, sizes.bytes);
        resize.file(&mut self.halves, sizes.halves);
        resize.file(&mut self.words, sizes.words);
        resize.file(&mut self.doubles, sizes.doubles);
    }

    pub(super) fn clear(&self) {
        fn clear<B: Bits>(file: &[Block<B>]) {
            file.iter().for_each(|block| block.set([B::ZERO; BLOCK]));
        }
        clear(&self.bytes);
        clear(&self.halves);
        clear(&self.words);
        clear(&self.doubles);
    }
}

impl Scratch {
    /// Allocates memory for a kernel, and initialises the constants.
    pub(super) fn prepare(&mut self, code: &Code, job: &Job<'_>) {
        if self.files.bytes() > KEPT && code.files.bytes() < KEPT {
            self.files = Files::default();
            self.prepared = 0;
        }
        self.files.grow(code.files);
        if self.scalars.len() < code.scalars {
            self.scalars.resize(code.scalars, Cell::new(0));
        }
        if self.affines.len() < code.affines {
            self.affines.resize(code.affines, Cell::new(Coefficients::default()));
        }
        self.shared.resize(code.shared, code.lane_layout.batch as usize);
        if self.prepared != code.number {
            self.constants(code);
            self.locate(code);
            self.prepared = code.number;
        }
        self.immediates.clear();
        self.immediates.resize(job.immediates.len().div_ceil(16), 0);
        for (to, from) in self.immediates.iter_mut().zip(job.immediates.chunks(16)) {
            let mut bytes = [0; 16];
            bytes[..from.len()].copy_from_slice(from);
            *to = u128::from_ne_bytes(bytes);
        }
    }

    /// Initialises the constants of the kernel.
    fn constants(&self, code: &Code) {
        for (scalar, bits) in &code.constants {
            self.scalars[*scalar as usize].set(*bits);
        }
        for (ty, block, bits) in &code.splats {
            splat(&self.files, ty.size(), *block, *bits);
        }
    }

    /// Computes the position of each lane.
    fn locate(&mut self, code: &Code) {
        let [width, height, depth] = code.lane_layout.size;
        let blocks = code.lane_layout.lanes().div_ceil(BLOCK);
        self.coordinates.clear();
        if code.lane_layout.interleaved {
            return;
        }
        for block in 0..blocks {
            let position = |axis: usize, lane: usize| {
                let number = (block * BLOCK + lane) as u32;
                let row = number / width;
                [number % width, row % height, row / height % depth, row / height / depth][axis]
            };
            let of_block =
                std::array::from_fn(|axis| std::array::from_fn(|lane| position(axis, lane)));
            self.coordinates.push(of_block);
        }
    }

    /// The immediate block as a span.
    pub(super) fn immediates(&self, size: usize) -> Span {
        Span { start: self.immediates.as_ptr().cast_mut().cast(), size }
    }
}

/// Fills a block with one value.
pub(super) fn splat(files: &Files, size: u32, block: u32, bits: u64) {
    fn fill<B: Bits>(file: &[Block<B>], block: u32, bits: u64) {
        file[block as usize].set([B::cut(bits); BLOCK]);
    }
    match size {
        1 => fill(u8::file(files), block, bits),
        2 => fill(u16::file(files), block, bits),
        4 => fill(u32::file(files), block, bits),
        _ => fill(u64::file(files), block, bits),
    }
}
