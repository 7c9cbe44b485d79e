//! The kernels of the corpus, their operands and launches.

use scry_bench::data;

/// A kernel with its operands.
pub struct Case {
    pub name: &'static str,
    /// WGSL, all of whose bindings are in group 0, numbered from 0.
    pub source: &'static str,
    /// The initial contents of the bindings.
    pub operands: Vec<Operand>,
    pub workgroups: [u32; 3],
    pub immediate: Option<f32>,
    /// Whether WGSL leaves the value of a word of a binding open.
    pub is_open: fn(usize, usize) -> bool,
}

/// A binding's kind and initial contents.
pub struct Operand {
    pub is_uniform: bool,
    pub words: Vec<u32>,
}

macro_rules! corpus {
    ($name:literal) => {
        include_str!(concat!("../../../../corpus/", $name, ".wgsl"))
    };
}

/// Returns the kernels of the corpus that need no feature beyond WebGPU's, and bind one group.
pub fn all() -> Vec<Case> {
    let mut cases = vec![atomic_counter(), blur(), histogram(), matmul(), matrices(), overrides()];
    cases.extend([particles(), pointers(), reduce(), saxpy(), scan(), stack_machine()]);
    cases
}

fn atomic_counter() -> Case {
    let operands = vec![storage(vec![0])];
    Case::new("atomic_counter", corpus!("atomic_counter"), operands, [1 << 15, 1, 1])
}

fn blur() -> Case {
    const SIDE: usize = 1024;
    let operands = vec![
        uniform(vec![SIDE as u32; 2]),
        storage(words(1, SIDE * SIDE)),
        storage(vec![0; SIDE * SIDE]),
    ];
    let groups = SIDE as u32 / 8;
    Case::new("blur", corpus!("blur"), operands, [groups, groups, 1])
}

fn histogram() -> Case {
    const LEN: usize = 1 << 20;
    let operands = vec![storage(words(1, LEN)), storage(vec![0; 258])];
    Case::new("histogram", corpus!("histogram"), operands, [LEN as u32 / 256, 1, 1])
}

fn matmul() -> Case {
    const SIDE: usize = 256;
    let operands = vec![
        uniform(vec![SIDE as u32; 3]),
        storage(floats(1, SIDE * SIDE)),
        storage(floats(2, SIDE * SIDE)),
        storage(vec![0; SIDE * SIDE]),
    ];
    let groups = SIDE as u32 / 16;
    Case::new("matmul", corpus!("matmul"), operands, [groups, groups, 1])
}

fn matrices() -> Case {
    const LEN: usize = 1 << 18;
    // Three matrices in 128 bytes, and the chosen column, padded to 16 bytes.
    let mut camera = floats(1, 32);
    camera.extend([1, 0, 0, 0]);
    // A result has 48 bytes.
    let operands = vec![
        uniform(camera),
        storage(floats(2, 4 * LEN)),
        storage(vec![0; 12 * LEN]),
        storage(vec![0; 12]),
    ];
    let case = Case::new("matrices", corpus!("matrices"), operands, [LEN as u32 / 32, 1, 1]);
    // The index of `component` may exceed the vector: any component is right.
    Case { is_open: |binding, word| binding == 2 && word % 12 == 10, ..case }
}

fn overrides() -> Case {
    const GROUPS: usize = 1 << 15;
    let operands = vec![storage(floats(1, 32 * GROUPS))];
    Case::new("overrides", corpus!("overrides"), operands, [1, GROUPS as u32, 1])
}

fn particles() -> Case {
    const LEN: usize = 1 << 18;
    // The centre, the pull and the time step, padded to 32 bytes; 8 words a particle.
    let mut world = floats(1, 3);
    world.extend([0.5f32, 0.01, 0.0, 0.0, 0.0].map(f32::to_bits));
    let operands = vec![uniform(world), storage(floats(2, 8 * LEN))];
    Case::new("particles", corpus!("particles"), operands, [LEN as u32 / 64, 1, 1])
}

fn pointers() -> Case {
    const LEN: usize = 1 << 18;
    let operands = vec![storage(words(1, LEN))];
    Case::new("pointers", corpus!("pointers"), operands, [LEN as u32 / 64, 1, 1])
}

fn reduce() -> Case {
    const GROUPS: usize = 256;
    let operands = vec![storage(floats(1, 1 << 22)), storage(vec![0; GROUPS])];
    Case::new("reduce", corpus!("reduce"), operands, [GROUPS as u32, 1, 1])
}

fn saxpy() -> Case {
    const LEN: usize = 1 << 22;
    let operands = vec![storage(floats(1, LEN)), storage(floats(2, LEN))];
    let case = Case::new("saxpy", corpus!("saxpy"), operands, [LEN as u32 / 256, 1, 1]);
    Case { immediate: Some(1.5), ..case }
}

fn scan() -> Case {
    // The kernel is that of a single workgroup.
    Case::new("scan", corpus!("scan"), vec![storage(words(1, 64))], [1; 3])
}

fn stack_machine() -> Case {
    const LEN: usize = 1 << 16;
    const RETURN: u32 = 0;
    const ADD: u32 = 2;
    const DIVIDE: u32 = 3;
    let push = |value: u32| value << 4 | 1;
    let program = vec![push(7), ADD, push(3), DIVIDE, push(100), ADD, push(5), DIVIDE, RETURN];
    let operands = vec![storage(program), storage(words(1, LEN))];
    Case::new("stack_machine", corpus!("stack_machine"), operands, [LEN as u32 / 64, 1, 1])
}

impl Case {
    fn new(
        name: &'static str,
        source: &'static str,
        operands: Vec<Operand>,
        workgroups: [u32; 3],
    ) -> Self {
        Self { name, source, operands, workgroups, immediate: None, is_open: |_, _| false }
    }
}

fn storage(words: Vec<u32>) -> Operand {
    Operand { is_uniform: false, words }
}

fn uniform(words: Vec<u32>) -> Operand {
    Operand { is_uniform: true, words }
}

/// Returns the bits of random numbers between -1 and 1.
fn floats(seed: u32, len: usize) -> Vec<u32> {
    data::random(seed, len).into_iter().map(f32::to_bits).collect()
}

/// Returns random words.
fn words(seed: u32, len: usize) -> Vec<u32> {
    let mix = |at: usize| (at as u32 ^ seed).wrapping_mul(0x9e37_79b9);
    (0..len).map(|at| mix(at) ^ (mix(at) >> 15)).collect()
}
