//! Generation of a random kernel from a seed.

mod body;
mod functions;
mod globals;
mod indices;
mod ops;
mod statements;
mod values;

use crate::random::Random;
use crate::tree::{Access, Function, Global, IndexReduction, Place, RandomKernel, Space};
use crate::types::{Scalar, Type};
use crate::{Features, tree::Expr};

/// A variable, or a value that is read like one.
#[derive(Debug, Clone)]
struct Variable {
    /// The text of the variable or value.
    root: String,
    /// The type; an array of length 0 is runtime-sized.
    ty: Type,
    writable: bool,
    /// Whether pointers to it may be passed to functions.
    local: bool,
    /// Exclusive upper bound of a `u32`; `usize::MAX` if it is unknown.
    below: usize,
}

/// The context of the current statement.
#[derive(Debug, Clone, Default)]
struct Context {
    /// Whether `break` is possible: in a loop or a `switch`.
    may_break: bool,
    /// Whether `continue` is possible: in a loop.
    may_continue: bool,
    /// The type of the function's result, if an early return is possible.
    returns: Option<Type>,
    /// Whether an early return from the entry point is possible.
    may_return: bool,
    /// Product of the iteration counts of the enclosing loops.
    iterations: usize,
    /// Number of enclosing blocks.
    depth: usize,
}

/// The state of the generator.
struct Generator {
    random: Random,
    /// Number types to use, with higher weight for those of 32 bits.
    numbers: Vec<Scalar>,
    structs: Vec<Vec<Type>>,
    globals: Vec<Global>,
    functions: Vec<Function>,
    scope: Vec<Variable>,
    /// Whether inputs have an element for each invocation.
    input_for_each_invocation: bool,
    /// Number of names so far; it makes the next name unique.
    names: usize,
    /// Total loop iterations of the current function.
    total_iterations: usize,
    /// Whether the next expressions and statements must have no side effects: those of a pure
    /// function, and operands that are printed twice.
    pure: bool,
    /// Whether the atomics of workgroup memory may be read, and no longer modified.
    frozen: bool,
    context: Context,
}

/// Generates the kernel of a seed.
pub(crate) fn kernel(seed: u64, features: Features) -> RandomKernel {
    let mut generator = Generator::new(seed, features);
    let (workgroup_size, groups) = generator.choose_launch();
    generator.declare_structs();
    generator.declare_globals(workgroup_size, groups);
    generator.declare_functions();
    let body = generator.entry_point(workgroup_size);
    let mut enables = String::new();
    if generator.numbers.contains(&Scalar::F16) {
        enables.push_str("enable f16;\n");
    }
    if generator.numbers.contains(&Scalar::I16) {
        enables.push_str("enable wgpu_int16;\n");
    }
    RandomKernel {
        seed,
        enables,
        structs: generator.structs,
        globals: generator.globals,
        functions: generator.functions,
        body,
        workgroup_size,
        groups,
    }
}

impl Generator {
    fn new(seed: u64, features: Features) -> Self {
        let mut numbers = vec![Scalar::I32, Scalar::U32, Scalar::F32];
        numbers.extend_from_within(..);
        for (present, scalars) in [
            (features.f16, &[Scalar::F16][..]),
            (features.f64, &[Scalar::F64]),
            (features.i64, &[Scalar::I64, Scalar::U64]),
            (features.i16, &[Scalar::I16, Scalar::U16]),
        ] {
            numbers.extend(scalars.iter().filter(|_| present));
        }
        Self {
            random: Random::new(seed),
            numbers,
            structs: Vec::new(),
            globals: Vec::new(),
            functions: Vec::new(),
            scope: Vec::new(),
            input_for_each_invocation: false,
            names: 0,
            total_iterations: 0,
            pure: false,
            frozen: false,
            context: Context { iterations: 1, ..Context::default() },
        }
    }

    /// Returns the workgroup size and the number of workgroups.
    fn choose_launch(&mut self) -> ([u32; 3], [u32; 3]) {
        let sizes = [
            [1, 1, 1],
            [5, 1, 1],
            [7, 1, 1],
            [8, 1, 1],
            [32, 1, 1],
            [33, 1, 1],
            [64, 1, 1],
            [4, 3, 1],
            [8, 8, 1],
            [2, 3, 4],
            [5, 3, 2],
            [1, 16, 1],
            [1, 1, 6],
        ];
        let large = [[256, 1, 1], [16, 16, 1], [100, 1, 1], [300, 1, 1], [17, 4, 5]];
        let groups = [[1, 1, 1], [2, 1, 1], [3, 1, 1], [2, 2, 1], [1, 2, 2], [3, 2, 2], [1, 1, 5]];
        if self.random.one_in(16) {
            let few_groups = self.random.pick(&groups[..2]);
            return (self.random.pick(&large), few_groups);
        }
        let size = self.random.pick(&sizes);
        if self.random.one_in(16) && size.iter().product::<u32>() < 16 {
            // The CPU device executes several small workgroups together.
            return (size, self.random.pick(&[[40, 1, 1], [5, 3, 3], [7, 1, 4]]));
        }
        (size, self.random.pick(&groups))
    }

    /// Returns a new name.
    fn new_name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// Adds a value to the scope.
    fn add_value(&mut self, root: impl Into<String>, ty: Type) {
        let below = usize::MAX;
        let root = root.into();
        self.scope.push(Variable { root, ty, writable: false, local: false, below });
    }

    /// Adds a writable variable, or a part of one, to which no pointer may be passed.
    fn add_writable(&mut self, root: impl Into<String>, ty: Type) {
        let below = usize::MAX;
        let root = root.into();
        self.scope.push(Variable { root, ty, writable: true, local: false, below });
    }

    /// Adds a local variable, to which pointers may be passed.
    fn add_local(&mut self, root: impl Into<String>, ty: Type) {
        let below = usize::MAX;
        let root = root.into();
        self.scope.push(Variable { root, ty, writable: true, local: true, below });
    }

    /// Adds a value with a known upper bound to the scope.
    fn add_counter(&mut self, root: &str, below: usize) {
        let (root, ty) = (root.to_owned(), Type::U32);
        self.scope.push(Variable { root, ty, writable: false, local: false, below });
    }

    /// Returns a number type.
    fn number_type(&mut self) -> Scalar {
        let numbers = &self.numbers;
        numbers[self.random.below(numbers.len())]
    }

    /// Returns a scalar or vector type, sometimes of bool.
    fn small_type(&mut self) -> Type {
        let scalar = if self.random.one_in(8) { Scalar::Bool } else { self.number_type() };
        let width = self.random.pick(&[1, 1, 1, 2, 3, 4]);
        Type::scalar_or_vector(scalar, width)
    }

    /// Returns a scalar, vector or matrix type for buffers.
    fn plain_type(&mut self) -> Type {
        let scalar = self.number_type();
        if scalar.is_float() && self.random.one_in(4) {
            return Type::Matrix(scalar, self.random.between(2, 4), self.random.between(2, 4));
        }
        Type::scalar_or_vector(scalar, self.random.pick(&[1, 1, 1, 2, 3, 4]))
    }

    /// Returns any type for buffers.
    fn stored_type(&mut self) -> Type {
        match self.random.below(6) {
            0 => Type::Array(Box::new(self.plain_type()), self.random.between(1, 5)),
            1 if !self.structs.is_empty() => Type::Struct(self.random.below(self.structs.len())),
            _ => self.plain_type(),
        }
    }

    /// Returns any type for variables.
    fn variable_type(&mut self) -> Type {
        if self.random.one_in(3) { self.small_type() } else { self.stored_type() }
    }
}

impl Place {
    /// Returns the element of an array at an index, reduced to its length.
    fn element(mut self, index: Expr, len: usize) -> Self {
        self.path.push(Access::Index(Box::new(index), len, IndexReduction::Remainder));
        self
    }
}

/// Returns whether every function may read variables of this space.
fn is_readable_anywhere(space: Space) -> bool {
    matches!(space, Space::Private | Space::Input | Space::Uniform | Space::Immediate)
}
