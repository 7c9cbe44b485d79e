//! Registers and memory of a thread that executes kernels.

use std::cell::Cell;

use crate::code::Code;
use crate::lanes::{BLOCK, Bits, Block, Files, Sizes};
use crate::{Launch, MemoryRange};

/// Maximum size in bytes of registers that are kept if the next kernel needs fewer.
const MAX_RETAINED_BYTES: usize = 16 << 20;

/// Coefficients of an affine value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Coefficients {
    /// The value of the first lane.
    pub base: u32,
    /// The steps from one lane to the next along x, y, z, and from one workgroup to the next.
    pub step: [u32; 4],
    /// Whether the value is affine; otherwise only its lanes are valid.
    pub is_affine: bool,
    /// Whether the lanes of an affine value are valid as well.
    pub expanded: bool,
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
    /// [`Code::id`] of the code that this was last prepared for; 0 if none.
    prepared_for: u64,
    /// The immediate block, in 16-byte words for alignment.
    pub(super) immediates: Vec<u128>,
}

/// Workgroup memory, by size of element.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    pub b8: Vec<Block<u8>>,
    pub b16: Vec<Block<u16>>,
    pub b32: Vec<Block<u32>>,
    pub b64: Vec<Block<u64>>,
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
        resize.file(&mut self.b8, sizes.b8);
        resize.file(&mut self.b16, sizes.b16);
        resize.file(&mut self.b32, sizes.b32);
        resize.file(&mut self.b64, sizes.b64);
    }

    pub(super) fn clear(&self) {
        fn clear<B: Bits>(file: &[Block<B>]) {
            file.iter().for_each(|block| block.set([B::ZERO; BLOCK]));
        }
        clear(&self.b8);
        clear(&self.b16);
        clear(&self.b32);
        clear(&self.b64);
    }
}

impl Scratch {
    /// Allocates memory for a kernel, and initialises the constants.
    pub(super) fn prepare(&mut self, code: &Code, launch: &Launch<'_>) {
        if self.files.bytes() > MAX_RETAINED_BYTES && code.files.bytes() < MAX_RETAINED_BYTES {
            self.files = Files::default();
            self.prepared_for = 0;
        }
        self.files.grow(code.files);
        if self.scalars.len() < code.scalars {
            self.scalars.resize(code.scalars, Cell::new(0));
        }
        if self.affines.len() < code.affines {
            self.affines.resize(code.affines, Cell::new(Coefficients::default()));
        }
        self.shared.resize(code.shared, code.lane_layout.batch as usize);
        if self.prepared_for != code.id {
            self.set_constants(code);
            self.set_coordinates(code);
            self.prepared_for = code.id;
        }
        self.immediates.clear();
        self.immediates.resize(launch.immediates.len().div_ceil(16), 0);
        for (to, from) in self.immediates.iter_mut().zip(launch.immediates.chunks(16)) {
            let mut bytes = [0; 16];
            bytes[..from.len()].copy_from_slice(from);
            *to = u128::from_ne_bytes(bytes);
        }
    }

    /// Initialises the constants of the kernel.
    fn set_constants(&self, code: &Code) {
        for (scalar, bits) in &code.constants {
            self.scalars[*scalar as usize].set(*bits);
        }
        for (ty, block, bits) in &code.splats {
            splat(&self.files, ty.size(), *block, *bits);
        }
    }

    /// Computes the position of each lane.
    fn set_coordinates(&mut self, code: &Code) {
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

    /// Returns the immediate block as a range.
    pub(super) fn immediates(&self, size: usize) -> MemoryRange {
        MemoryRange { start: self.immediates.as_ptr().cast_mut().cast(), size }
    }
}

/// Fills a block with one value.
pub(super) fn splat(files: &Files, size: u32, block: u32, bits: u64) {
    fn fill<B: Bits>(file: &[Block<B>], block: u32, bits: u64) {
        file[block as usize].set([B::truncate(bits); BLOCK]);
    }
    match size {
        1 => fill(u8::file(files), block, bits),
        2 => fill(u16::file(files), block, bits),
        4 => fill(u32::file(files), block, bits),
        _ => fill(u64::file(files), block, bits),
    }
}
