//! Generation of a hostile kernel from a seed.

mod endless;
mod exprs;
mod functions;
mod globals;
mod loops;
mod places;
mod statements;

use super::tree::{Block, Expr, Function, Global, Kind, Stmt};
use super::{Comparable, HostileKernel, Rules};
use crate::Features;
use crate::random::Random;
use crate::types::{Scalar, Type};

/// The invocations that access memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Many invocations access all of the memory.
    Racy,
    /// One invocation accesses all of the memory.
    Alone,
    /// Many invocations, each of which writes its own elements.
    OwnElements,
    /// One invocation, with accesses in bounds.
    InBounds,
}

/// A scalar variable, or a value that is read like one.
#[derive(Debug, Clone)]
struct Variable {
    name: String,
    kind: Kind,
    mutable: bool,
    /// Whether pointers to it may be passed.
    local: bool,
}

/// The state of the generator.
struct HostileGenerator {
    random: Random,
    mode: Mode,
    /// Scalar types to use, with higher weight for those of 32 bits.
    scalars: Vec<Scalar>,
    structs: Vec<Vec<Type>>,
    globals: Vec<Global>,
    functions: Vec<Function>,
    scope: Vec<Variable>,
    /// Array variables of the current function.
    arrays: Vec<Global>,
    /// Number of names so far; it makes the next name unique.
    names: usize,
    /// Number of enclosing blocks.
    depth: usize,
    /// Number of enclosing loops of the current statement.
    loops: usize,
    /// Whether `break` and `continue` may be added: in a loop, but not in a `switch` in it.
    may_continue: bool,
    /// Whether the current function is the entry point.
    in_main: bool,
    /// The lengths of arrays, for numbers near them.
    lengths: Vec<u32>,
    invocations: u32,
    /// How many more statements may be added, other than stores.
    budget: usize,
}

/// Number of elements of each output that an invocation owns in [`Mode::OwnElements`].
const ELEMENTS_PER_INVOCATION: u32 = 4;

/// Generates the kernel of a seed.
pub(super) fn kernel(seed: u64, features: Features, rules: Rules) -> HostileKernel {
    // Another stream than that of the well-defined kernel of the same seed.
    let mut random = Random::new(seed ^ 0x5bd1_e995_97f4_a7c5);
    let mode = random.pick(&[
        Mode::Racy,
        Mode::Racy,
        Mode::Alone,
        Mode::Alone,
        Mode::Alone,
        Mode::OwnElements,
        Mode::InBounds,
        Mode::InBounds,
    ]);
    let endless = random.one_in(8) && rules.endless;
    let mut generator = HostileGenerator::new(random, mode, features);
    let (workgroup_size, groups) = generator.choose_launch();
    generator.declare_globals();
    generator.declare_functions();
    let body = generator.entry_point(endless);
    let mut enables = String::new();
    if generator.scalars.contains(&Scalar::F16) {
        enables.push_str("enable f16;\n");
    }
    if generator.scalars.contains(&Scalar::I16) {
        enables.push_str("enable wgpu_int16;\n");
    }
    let comparable = match mode {
        _ if endless => Comparable::Nothing,
        Mode::Racy => Comparable::Nothing,
        Mode::Alone | Mode::OwnElements => Comparable::SameIr,
        Mode::InBounds => Comparable::Everywhere,
    };
    let fuel = generator.random.pick(&[20, 60, 200]);
    let (structs, globals, functions) = (generator.structs, generator.globals, generator.functions);
    HostileKernel {
        seed,
        enables,
        structs,
        globals,
        functions,
        body,
        workgroup_size,
        groups,
        fuel,
        comparable,
        endless,
    }
}

impl HostileGenerator {
    fn new(random: Random, mode: Mode, features: Features) -> Self {
        let mut scalars = vec![Scalar::U32, Scalar::U32, Scalar::I32, Scalar::F32];
        for (present, more) in [
            (features.f16, &[Scalar::F16][..]),
            (features.i64, &[Scalar::I64, Scalar::U64]),
            (features.i16, &[Scalar::I16, Scalar::U16]),
            (features.f64, &[Scalar::F64]),
        ] {
            scalars.extend(more.iter().filter(|_| present));
        }
        Self {
            random,
            mode,
            scalars,
            structs: Vec::new(),
            globals: Vec::new(),
            functions: Vec::new(),
            scope: Vec::new(),
            arrays: Vec::new(),
            names: 0,
            depth: 0,
            loops: 0,
            may_continue: false,
            in_main: false,
            lengths: vec![1, 8],
            invocations: 1,
            budget: 0,
        }
    }

    /// Returns the workgroup size and the number of workgroups.
    fn choose_launch(&mut self) -> ([u32; 3], [u32; 3]) {
        let one = ([1, 1, 1], [1, 1, 1]);
        let (size, groups) = match self.mode {
            Mode::Alone | Mode::InBounds => one,
            Mode::Racy | Mode::OwnElements => {
                let sizes = [[1, 1, 1], [2, 1, 1], [7, 1, 1], [32, 1, 1], [33, 1, 1], [4, 2, 1]];
                let size = self.random.pick(&sizes);
                (size, self.random.pick(&[[1, 1, 1], [1, 1, 1], [2, 1, 1], [3, 1, 1]]))
            }
        };
        self.invocations = size.iter().chain(&groups).product();
        (size, groups)
    }

    /// Returns a new name.
    fn new_name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// Adds a mutable variable to the scope. Names of local variables start with `v`.
    fn add_variable(&mut self, name: impl Into<String>, kind: Kind) {
        let name = name.into();
        let local = name.starts_with('v');
        self.scope.push(Variable { name, kind, mutable: true, local });
    }

    /// Adds an immutable value, or a variable that statements must not modify, to the scope.
    fn add_value(&mut self, name: impl Into<String>, kind: Kind) {
        self.scope.push(Variable { name: name.into(), kind, mutable: false, local: false });
    }

    /// Returns the body of the entry point.
    fn entry_point(&mut self, endless: bool) -> Block {
        self.in_main = true;
        self.budget = self.random.between(8, 30);
        self.reset_scope();
        let mut body = self.first_variables();
        let statements = self.random.between(3, 7);
        let endless_at = self.random.below(statements);
        for nth in 0..statements {
            if endless && nth == endless_at {
                self.endless_loop(&mut body);
            }
            self.statement(&mut body);
            self.barrier(&mut body);
        }
        self.store_results(&mut body);
        body
    }

    /// Sometimes adds a barrier, in uniform control flow.
    fn barrier(&mut self, body: &mut Block) {
        if self.mode != Mode::InBounds && self.random.one_in(8) {
            let barrier = self.random.pick(&["workgroupBarrier()", "storageBarrier()"]);
            body.push(Stmt::line(barrier, Vec::new()));
        }
    }

    /// Stores the final values of variables, so that differences become visible.
    fn store_results(&mut self, body: &mut Block) {
        let variables = self.scope.clone();
        let variables = variables.iter().filter(|variable| variable.mutable);
        for (nth, variable) in variables.take(4).enumerate() {
            let value = match variable.kind {
                Kind::I32 => format!("u32({})", variable.name),
                _ => variable.name.clone(),
            };
            let at = match self.mode {
                Mode::OwnElements => format!("me * {ELEMENTS_PER_INVOCATION}u + {nth}u"),
                _ => format!("{nth}u"),
            };
            body.push(Stmt::line(format!("sink[{at}] = {value}"), Vec::<Expr>::new()));
        }
    }
}
