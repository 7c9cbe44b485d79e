//! KIR as WGSL, for wgpu, browsers and tools.
//!
//! The text is valid for naga and for Chromium's compiler. Buffers become flat arrays of their
//! element type, of vectors where every store writes whole ones; uniforms and immediates become
//! structures of named fields. Nothing relies on bounds checks of the consumer: KIR has its own.
//!
//! | file | what it does |
//! | --- | --- |
//! | `refusals.rs` | names what WGSL lacks |
//! | `accesses.rs` | what the kernel does with each memory |
//! | `declarations.rs`, `fields.rs`, `memories.rs` | how WGSL declares each memory |
//! | `identifiers.rs`, `reserved.rs` | names that are unique and not reserved |
//! | `kernel.rs`, `text.rs` | the whole of the text |
//! | `visibility.rs` | the values that are used outside the braces that compute them |
//! | `control.rs`, `exits.rs`, `levels.rs` | control flow, and exits through several levels |
//! | `barriers.rs`, `barrier_order.rs` | barriers: of workgroup memory, of storage |
//! | `values.rs`, `operators.rs`, `subgroups.rs` | instructions |
//! | `constants.rs`, `conversions.rs` | constants and types |
//! | `memory.rs`, `address.rs`, `atomics.rs` | loads, stores and atomics |

mod accesses;
mod address;
mod atomics;
mod barrier_order;
mod barriers;
mod constants;
mod control;
mod conversions;
mod declarations;
mod exits;
mod fields;
mod identifiers;
mod kernel;
mod levels;
mod memories;
mod memory;
mod operators;
mod refusals;
mod reserved;
mod subgroups;
mod text;
mod values;
mod visibility;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::accesses::Accesses;
use self::barrier_order::Barriers;
use self::constants::literal;
use self::declarations::Memory;
use self::identifiers::Names;
use self::levels::Level;
use self::memories::{Declare, Memories};
use self::text::Text;
use crate::kir::half_floats::needs_f16;
use crate::kir::{Kir, Label, Place, Type, Value};
use crate::wgsl::naga::guard;
use crate::{Features, Interface, ShaderError};

impl Kir {
    /// Returns the kernel as WGSL. `interface` is that of the program that the kernel was lowered
    /// from: it has groups and numbers of the bindings, and the types of uniforms and immediates.
    ///
    /// Results are those of the kernel, up to what WGSL leaves to the device: the minimum and the
    /// maximum of a number and NaN, NaN converted to an integer, and the accuracy of functions.
    ///
    /// The size of a bound buffer is not in the text: as for the kernel itself, it must be at least
    /// [`TypeLayout::min_binding_size`](crate::TypeLayout::min_binding_size), which comments name.
    ///
    /// ```
    /// use scry_ir::{Program, kir::KirOptions};
    ///
    /// let program = Program::parse(
    ///     "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
    ///      @compute @workgroup_size(64)
    ///      fn double(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2.0; }",
    /// )?;
    /// let kir = program.to_kir(&KirOptions { checked: true })?;
    /// let wgsl = kir.to_wgsl(program.interface())?;
    /// assert!(wgsl.contains("var<storage, read_write> data: array<f32>;"));
    /// assert_eq!(Program::parse(&wgsl)?.interface().entry_point, "double");
    /// # Ok::<(), scry_ir::ShaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](crate::ShaderErrorKind::Unsupported) names what WGSL lacks: 64-bit types,
    /// 16-bit integers, atomics of them and of floats, cooperative matrices.
    /// [`NotCompute`](crate::ShaderErrorKind::NotCompute) for a subgroup barrier or reduction that
    /// WGSL lacks, [`TooComplex`](crate::ShaderErrorKind::TooComplex) for statements nested deeper
    /// than WGSL permits, [`Compiler`](crate::ShaderErrorKind::Compiler) if the interface belongs
    /// to another kernel.
    pub fn to_wgsl(&self, interface: &Interface) -> Result<String, ShaderError> {
        guard::run(|| {
            refusals::check(self, interface)?;
            Emitter::new(self, interface)?.kernel()
        })
    }
}

/// A kernel being written.
struct Emitter<'a> {
    kir: &'a Kir,
    /// Name of the entry point.
    name: String,
    names: Names,
    memories: Memories,
    /// Whether `f16` is used; otherwise 16-bit floats are their bits in a `u32`.
    native_f16: bool,
    /// By value: the expression that it is.
    texts: Vec<String>,
    /// By value: whether it is a variable, since it is used outside its braces.
    escaping: Vec<bool>,
    prefixes: Prefixes,
    temporaries: u32,
    body: Text,
    /// Loops and scopes around the statement, the outermost first.
    levels: Vec<Level>,
    /// Labels that are left from within an inner loop or scope, by a flag.
    flags: BTreeSet<Label>,
    barriers: Barriers,
    /// Built-in values in use: parameter by name of the built-in value.
    parameters: BTreeMap<&'static str, String>,
}

/// What numbered names begin with.
struct Prefixes {
    value: String,
    variable: String,
    temporary: String,
    flag: String,
}

impl<'a> Emitter<'a> {
    fn new(kir: &'a Kir, interface: &'a Interface) -> Result<Self, ShaderError> {
        let accesses = Accesses::new(kir);
        let native_f16 = interface.features.contains(Features::F16) || needs_f16(kir);
        let mut names = Names::default();
        let name = names.unique(&kir.name);
        let declare = Declare {
            kir,
            interface,
            accesses: &accesses,
            names: &mut names,
            native_f16,
            found: Memories::default(),
        };
        let memories = declare.all()?;
        let prefix = |wanted: &str| names.prefix(wanted);
        let prefixes = Prefixes {
            value: prefix("x"),
            variable: prefix("v"),
            temporary: prefix("t"),
            flag: prefix("leave"),
        };
        Ok(Self {
            kir,
            name,
            names,
            memories,
            native_f16,
            texts: vec![String::new(); kir.values.len()],
            escaping: visibility::escaping(kir),
            prefixes,
            temporaries: 0,
            body: Text::at_depth(1),
            levels: Vec::new(),
            flags: BTreeSet::new(),
            barriers: Barriers::new(kir),
            parameters: BTreeMap::new(),
        })
    }

    /// The type of values, as WGSL spells it.
    fn spelled(&self, ty: Type) -> &'static str {
        match ty {
            Type::F16 if !self.native_f16 => "u32",
            Type::U16 => "u32",
            other => other.name(),
        }
    }

    fn memory(&self, place: &Place) -> Result<&Memory, ShaderError> {
        let found = self.memories.of(place.space);
        found.ok_or_else(|| ShaderError::compiler("Kir::to_wgsl: a memory is not declared".into()))
    }

    /// The expression of a value: a name, a literal, or a component of one.
    fn operand(&self, value: Value) -> String {
        self.texts[value.index()].clone()
    }

    /// Whether the expression of a value is a constant-expression.
    fn is_literal(&self, value: Value) -> bool {
        let constant = self.kir.constant(value);
        constant.is_some_and(|constant| literal(constant, self.native_f16).is_some())
    }

    /// Computes a value here.
    fn define(&mut self, value: Value, text: &str) {
        let name = format!("{}{}", self.prefixes.value, value.0);
        let binder = if self.escaping[value.index()] { "" } else { "let " };
        self.body.line(format!("{binder}{name} = {text};"));
        self.texts[value.index()] = name;
    }

    /// Gives a value an expression that can be repeated.
    fn alias(&mut self, value: Value, text: String) {
        if self.escaping[value.index()] {
            self.define(value, &text);
        } else {
            self.texts[value.index()] = text;
        }
    }

    /// Gives a value an expression that means the same everywhere.
    fn global_alias(&mut self, value: Value, text: String) {
        self.texts[value.index()] = text;
    }

    /// Names an expression.
    fn temporary(&mut self, text: &str) -> String {
        let name = self.new_temporary();
        self.body.line(format!("let {name} = {text};"));
        name
    }

    /// Gives a variable the value of a literal, so that no compiler takes it for a constant.
    fn variable_of(&mut self, literal: &str) -> String {
        let name = self.new_temporary();
        self.body.line(format!("var {name} = {literal};"));
        name
    }

    fn new_temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("{}{}", self.prefixes.temporary, self.temporaries - 1)
    }

    fn variable(&self, nth: u32) -> String {
        format!("{}{nth}", self.prefixes.variable)
    }

    fn flag(&self, label: Label) -> String {
        format!("{}{}", self.prefixes.flag, label.0)
    }
}
