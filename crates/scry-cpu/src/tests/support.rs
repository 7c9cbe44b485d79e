//! Helpers that build and run kernels.

use scry_ir::kir::interpret::{BoundsPolicy, Interpreter};
use scry_ir::kir::{
    AddressSpace, BinaryOp, Builder, Builtin, Const, Kir, Place, Type, UnaryOp, Value, optimise,
    verify,
};

use crate::exec::{self, Scratch};
use crate::{CancelToken, Code, Launch, Machine, Memory};

/// Workgroup shapes of one and of several rows. Some sizes are multiples of the number of lanes of
/// a SIMD block (`lanes::BLOCK`), some are not.
pub(super) const SHAPES: [[u32; 3]; 8] = [
    [1, 1, 1],
    [5, 1, 1],
    [7, 3, 2],
    [8, 8, 1],
    [16, 16, 1],
    [33, 1, 1],
    [256, 1, 1],
    [1024, 1, 1],
];

/// Converts words to bytes.
pub(super) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Converts bytes to words.
pub(super) fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks_exact(4).map(word).collect()
}

/// Returns `count` pseudo-random numbers.
pub(super) fn noise(count: usize) -> Vec<u32> {
    (0..count as u32)
        .map(|n| n.wrapping_mul(0x9e37_79b9).rotate_left(n % 32) ^ 0x5bd1_e995)
        .collect()
}

/// The grid and the data of a launch.
#[derive(Clone)]
pub(super) struct TestLaunch {
    pub groups: [u32; 3],
    pub buffers: Vec<Vec<u8>>,
    pub immediates: Vec<u8>,
}

impl TestLaunch {
    pub fn new(groups: [u32; 3], buffers: &[Vec<u8>]) -> Self {
        Self { groups, buffers: buffers.to_vec(), immediates: Vec::new() }
    }

    /// Returns the buffers after a launch on the reference interpreter. As on the machine, reads
    /// out of bounds return zero and writes out of bounds are dropped.
    pub fn interpret(&self, kir: &Kir) -> Vec<Vec<u8>> {
        let mut interpreter = Interpreter::new(kir, self.buffers.clone());
        interpreter.immediates.clone_from(&self.immediates);
        interpreter.bounds = BoundsPolicy::ReadZeroSkipWrite;
        interpreter.run(self.groups).unwrap_or_else(|error| panic!("{error}"));
        interpreter.buffers
    }

    /// Returns the buffers after a launch on the machine.
    pub fn run(&self, kir: &Kir, machine: &Machine) -> Vec<Vec<u8>> {
        self.with_launch(kir, |launch| {
            // SAFETY: `with_launch` keeps the memory alive, and nothing else accesses it.
            unsafe { machine.run(launch, &CancelToken::default()) }
                .expect("the launch is not cancelled");
        })
    }

    /// Returns the buffers after a launch in which each thread runs a fixed share of the
    /// workgroups.
    pub fn run_split(&self, kir: &Kir, threads: u64) -> Vec<Vec<u8>> {
        self.with_launch(kir, |launch| {
            let total = launch.workgroups().expect("the count fits in 64 bits");
            std::thread::scope(|scope| {
                for nth in 0..threads {
                    let groups = total * nth / threads..total * (nth + 1) / threads;
                    scope.spawn(move || {
                        let (scratch, stop) = (&mut Scratch::default(), &CancelToken::default());
                        // SAFETY: `with_launch` keeps the memory alive, and only threads of this
                        // launch access it.
                        unsafe { exec::run(launch.code, launch, groups, scratch, stop) }
                            .expect("the launch is not cancelled");
                    });
                }
            });
        })
    }

    /// Calls `run` with the launch, and returns the buffers afterwards.
    pub fn with_launch(&self, kir: &Kir, run: impl FnOnce(&Launch<'_>)) -> Vec<Vec<u8>> {
        assert_eq!(verify(kir), Ok(()));
        let code = Code::compile(kir).expect("the kernel is within the limits");
        let memories: Vec<_> = self.buffers.iter().map(|bytes| memory(bytes)).collect();
        let bindings: Vec<_> = memories.iter().map(Memory::whole).collect();
        let immediates = &self.immediates;
        run(&Launch { code: &code, bindings: &bindings, groups: self.groups, immediates });
        memories.iter().map(contents).collect()
    }

    /// Asserts that the machine computes the results of the reference interpreter, with one thread
    /// and with several, before optimisation and after it. Returns the buffers.
    pub fn assert_agrees(&self, kir: &Kir) -> Vec<Vec<u8>> {
        let expected = self.interpret(kir);
        let mut optimised = kir.clone();
        optimise(&mut optimised);
        for kir in [kir, &optimised] {
            let single = self.run(kir, &Machine::new(1));
            assert!(single == expected, "{}", difference(kir, &single, &expected));
            let split = self.run_split(kir, 2);
            assert!(split == expected, "{}", difference(kir, &split, &expected));
        }
        expected
    }
}

/// Returns a memory with these bytes.
fn memory(bytes: &[u8]) -> Memory {
    let memory = Memory::new(bytes.len()).expect("memory can be allocated");
    // SAFETY: the memory is alive, and not shared.
    unsafe { memory.whole().write(bytes) };
    memory
}

/// Returns the bytes of a memory.
fn contents(memory: &Memory) -> Vec<u8> {
    let mut out = vec![0; memory.size()];
    // SAFETY: the memory is alive, and the launch that wrote it has ended.
    unsafe { memory.whole().read(&mut out) };
    out
}

/// Formats the difference between two results, and the kernel.
fn difference(kir: &Kir, found: &[Vec<u8>], expected: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for (buffer, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (found, expected) = (words(found), words(expected));
        let pairs = found.iter().zip(&expected).enumerate();
        for (word, (found, expected)) in pairs.filter(|(_, (a, b))| a != b).take(4) {
            text += &format!("buffer {buffer}, word {word}: {found:#x}, not {expected:#x}\n");
        }
    }
    text + &kir.to_string()
}

/// Shorthands of the kernel builder for tests.
pub(super) trait BuilderExt {
    fn add(&mut self, a: Value, b: Value) -> Value;
    fn mul(&mut self, a: Value, b: Value) -> Value;
    /// Compares a value with a constant.
    fn compare(&mut self, op: BinaryOp, a: Value, b: u32) -> Value;
    fn local_id(&mut self, axis: u8) -> Value;
    /// Computes the local invocation index.
    fn local_index(&mut self) -> Value;
    /// Computes the index of the invocation in the launch.
    fn global_index(&mut self) -> Value;
    /// Computes the global position along x.
    fn global_x(&mut self) -> Value;
    /// Clamps an index to the array with this stride at this offset of a buffer.
    fn clamped(&mut self, index: Value, binding: u32, offset: u32, stride: u32) -> Value;
    /// Loads a `u32` element.
    fn load_word(&mut self, binding: u32, index: Value) -> Value;
    /// Stores a `u32` element.
    fn store_word(&mut self, binding: u32, index: Value, value: Value);
    fn not(&mut self, a: Value) -> Value;
}

impl BuilderExt for Builder {
    fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Add, a, b)
    }

    fn mul(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// Compares a value with a constant.
    fn compare(&mut self, op: BinaryOp, a: Value, b: u32) -> Value {
        let b = self.constant(Const::int(self.ty(a), b.into()));
        self.binary(op, a, b)
    }

    fn local_id(&mut self, axis: u8) -> Value {
        self.builtin(Builtin::LocalId(axis))
    }

    fn local_index(&mut self) -> Value {
        let [width, height, _] = self.kir().workgroup_size.map(|size| self.u32(size));
        let [x, y, z] = [0, 1, 2].map(|axis| self.local_id(axis));
        let slice = self.mul(z, height);
        let row = self.add(slice, y);
        let first = self.mul(row, width);
        self.add(first, x)
    }

    fn global_index(&mut self) -> Value {
        let [columns, rows] = [0, 1].map(|axis| self.builtin(Builtin::GroupCount(axis)));
        let [x, y, z] = [0, 1, 2].map(|axis| self.builtin(Builtin::GroupId(axis)));
        let slice = self.mul(z, rows);
        let row = self.add(slice, y);
        let first = self.mul(row, columns);
        let group = self.add(first, x);
        let invocations = self.u32(self.kir().workgroup_size.iter().product());
        let before = self.mul(group, invocations);
        let within = self.local_index();
        self.add(before, within)
    }

    fn global_x(&mut self) -> Value {
        let group = self.builtin(Builtin::GroupId(0));
        let width = self.u32(self.kir().workgroup_size[0]);
        let first = self.mul(group, width);
        let x = self.local_id(0);
        self.add(first, x)
    }

    fn clamped(&mut self, index: Value, binding: u32, offset: u32, stride: u32) -> Value {
        let length = self.array_length(binding, offset, stride);
        let one = self.u32(1);
        let last = self.binary(BinaryOp::Sub, length, one);
        self.binary(BinaryOp::Min, index, last)
    }

    fn load_word(&mut self, binding: u32, index: Value) -> Value {
        self.load(Type::U32, Place::new(AddressSpace::Binding(binding), Some(index), 4, 0), 1)[0]
    }

    fn store_word(&mut self, binding: u32, index: Value, value: Value) {
        self.store(Place::new(AddressSpace::Binding(binding), Some(index), 4, 0), vec![value]);
    }

    fn not(&mut self, a: Value) -> Value {
        self.unary(UnaryOp::Not, a)
    }
}
