//! Emits a kernel in KIR as WGSL, for wgpu, browsers and tools.
//!
//! The text is valid for naga and for Chromium's compiler. Storage buffers become flat arrays of
//! their element type, of vectors if every store writes whole vectors, or of `u32` if accesses of
//! several sizes occur. Arrays of structures stay such if a structure has a vector that is stored
//! as a whole, and no index selects a part of a structure. Uniforms and immediates become
//! structures of named fields. The text does not rely on bounds checks of the consumer: KIR
//! contains its own.
//!
//! | file | what it does |
//! | --- | --- |
//! | `rejections.rs` | errors for kernels that WGSL cannot express |
//! | `accesses.rs` | the accesses of the kernel to each address space |
//! | `declarations.rs`, `memory_variables.rs` | the variables of the address spaces |
//! | `fields.rs`, `records.rs` | their fields, and elements that are structures |
//! | `identifiers.rs`, `reserved.rs` | names that are unique and not reserved |
//! | `kernel.rs`, `text.rs` | the complete text |
//! | `for_device.rs`, `hidden_bindings.rs` | texts for drivers, with hidden bindings |
//! | `visibility.rs` | the values that are used outside the braces that compute them |
//! | `control.rs`, `exits.rs`, `levels.rs` | control flow, and exits through several levels |
//! | `barriers.rs`, `barrier_order.rs` | barriers for workgroup memory and for storage |
//! | `values.rs`, `operators.rs`, `subgroups.rs` | instructions |
//! | `constants.rs`, `conversions.rs`, `integers16.rs` | constants and types |
//! | `loop_exits.rs` | the comparisons that may end loops |
//! | `loads_stores.rs`, `record_accesses.rs` | loads and stores |
//! | `address.rs`, `atomics.rs` | indices, and atomics |

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
mod for_device;
mod hidden_bindings;
mod identifiers;
mod integers16;
mod kernel;
mod levels;
mod loads_stores;
mod loop_exits;
mod memory_variables;
mod operators;
mod record_accesses;
mod records;
mod rejections;
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
use self::declarations::MemoryVariable;
pub use self::for_device::{HiddenLength, LaunchBlock, WgslKernel, WgslOptions};
use self::identifiers::Names;
use self::levels::Level;
use self::memory_variables::{MemoryDeclarer, MemoryVariables};
use self::text::Text;
use crate::kir::f16_usage::needs_f16;
use crate::kir::{Kir, Label, Place, Type, Value};
use crate::wgsl::naga::guard;
use crate::{Features, Interface, ShaderError};

impl Kir {
    /// Returns the kernel as WGSL. `interface` is that of the program that the kernel was lowered
    /// from: it contains group and index of each binding, and the types of uniforms and immediates.
    ///
    /// Results are those of the kernel, up to what WGSL leaves to the device: the minimum and the
    /// maximum of a number and NaN, and the accuracy of functions.
    ///
    /// The size of a bound buffer is not in the text: as for the kernel itself, it must be at least
    /// [`TypeLayout::min_binding_size`](crate::TypeLayout::min_binding_size), which comments state.
    /// As WebGPU requires, it must also be a multiple of four bytes: 16-bit integers, and 16-bit
    /// floats beside other types, are accessed in words, so that half a word at the end would be
    /// missing.
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
    /// [`UnsupportedFeatures`](crate::ShaderErrorKind::UnsupportedFeatures) names what WGSL lacks:
    /// 64-bit types, atomics of them and of floats, cooperative matrices.
    /// [`UnsupportedConstruct`](crate::ShaderErrorKind::UnsupportedConstruct) for a subgroup
    /// barrier or reduction that WGSL lacks, and for a uniform or immediate that it cannot declare,
    /// [`TooComplex`](crate::ShaderErrorKind::TooComplex) for statements nested deeper than WGSL
    /// permits, [`Compiler`](crate::ShaderErrorKind::Compiler) if the interface belongs to another
    /// kernel.
    pub fn to_wgsl(&self, interface: &Interface) -> Result<String, ShaderError> {
        guard::run(|| {
            rejections::check(self, interface)?;
            Emitter::new(self, interface)?.kernel()
        })
    }
}

/// The state while a kernel is written.
struct Emitter<'a> {
    kir: &'a Kir,
    /// Name of the entry point.
    name: String,
    names: Names,
    memory_variables: MemoryVariables,
    /// Whether the text enables `f16`; if not, an `F16` is its bits in a `u32`.
    native_f16: bool,
    /// Whether the text enables `subgroups` if it uses them.
    enables_subgroups: bool,
    /// Whether compilers must not compute the trip counts of loops.
    hides_loop_bounds: bool,
    /// Whether the exit from a loop may depend on each value, a `bool`.
    exit_conditions: Vec<bool>,
    /// The exit tests of short loops with a known trip count, which compilers may unroll.
    unrollable: Vec<Value>,
    /// Whether the operand of `tanh` is clamped.
    clamps_tanh: bool,
    /// The expression of each value.
    texts: Vec<String>,
    /// Whether each value is used outside the block that computes it: it is a `var` then.
    escaping: Vec<bool>,
    prefixes: Prefixes,
    /// Number of temporaries so far.
    temporaries: u32,
    body: Text,
    /// Loops and scopes around the statement, the outermost first.
    levels: Vec<Level>,
    /// Labels of loops and scopes that a `break` within an inner one exits: each needs a flag.
    flags: BTreeSet<Label>,
    barriers: Barriers,
    /// Local arrays that may have other elements than zeros, by position in [`Kir::locals`].
    used_locals: BTreeSet<u32>,
    /// Built-in values in use: the name of the parameter, by the name of the built-in value.
    parameters: BTreeMap<&'static str, String>,
}

/// The prefixes of numbered names.
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
        let declarer = MemoryDeclarer {
            kir,
            interface,
            accesses: &accesses,
            names: &mut names,
            native_f16,
            found: MemoryVariables::default(),
        };
        let memory_variables = declarer.declare_all()?;
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
            memory_variables,
            native_f16,
            enables_subgroups: true,
            hides_loop_bounds: false,
            exit_conditions: loop_exits::exit_conditions(kir),
            unrollable: Vec::new(),
            clamps_tanh: false,
            texts: vec![String::new(); kir.values.len()],
            escaping: visibility::escaping(kir),
            prefixes,
            temporaries: 0,
            body: Text::at_depth(1),
            levels: Vec::new(),
            flags: BTreeSet::new(),
            barriers: Barriers::new(kir),
            used_locals: BTreeSet::new(),
            parameters: BTreeMap::new(),
        })
    }

    /// Returns the WGSL type of values of a KIR type.
    fn type_name(&self, ty: Type) -> &'static str {
        match ty {
            // Its bits.
            Type::F16 if !self.native_f16 => "u32",
            // WGSL has no 16-bit integers (`integers16.rs`).
            Type::U16 => "u32",
            Type::I16 => "i32",
            other => other.name(),
        }
    }

    /// Returns the variable of a place's address space.
    fn memory_variable(&self, place: &Place) -> Result<&MemoryVariable, ShaderError> {
        let found = self.memory_variables.get(place.space);
        found.ok_or_else(|| {
            ShaderError::compiler("Kir::to_wgsl: an access to an undeclared variable".into())
        })
    }

    /// Returns the expression of a value: a name, a literal, or a component of a vector.
    fn operand(&self, value: Value) -> String {
        self.texts[value.index()].clone()
    }

    /// Whether the expression of a value is a constant-expression.
    fn is_literal(&self, value: Value) -> bool {
        let constant = self.kir.constant(value);
        constant.is_some_and(|constant| literal(constant, self.native_f16).is_some())
    }

    /// Emits the declaration or assignment of a value, whose expression is its name from then on.
    fn define(&mut self, value: Value, text: &str) {
        let name = format!("{}{}", self.prefixes.value, value.0);
        let keyword = if self.escaping[value.index()] { "" } else { "let " };
        self.body.line(format!("{keyword}{name} = {text};"));
        self.texts[value.index()] = name;
    }

    /// Sets the expression of a value to one that may be repeated wherever the value is used. A
    /// value that is used outside its block is defined instead.
    fn alias(&mut self, value: Value, text: String) {
        if self.escaping[value.index()] {
            self.define(value, &text);
        } else {
            self.texts[value.index()] = text;
        }
    }

    /// Sets the expression of a value to one that has the same meaning in the whole kernel, so that
    /// it may be repeated even outside the block of the value.
    fn global_alias(&mut self, value: Value, text: String) {
        self.texts[value.index()] = text;
    }

    /// Emits a `let` with an expression; returns its name.
    fn temporary(&mut self, text: &str) -> String {
        let name = self.new_temporary();
        self.body.line(format!("let {name} = {text};"));
        name
    }

    /// Emits a `var` with the value of a literal, so that the value is not a constant-expression;
    /// returns its name.
    fn literal_variable(&mut self, literal: &str) -> String {
        let name = self.new_temporary();
        self.body.line(format!("var {name} = {literal};"));
        name
    }

    fn new_temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("{}{}", self.prefixes.temporary, self.temporaries - 1)
    }

    /// Returns the name of the KIR variable with index `i`.
    fn variable(&self, i: u32) -> String {
        format!("{}{i}", self.prefixes.variable)
    }

    /// Returns the name of the flag that says that an exit of `label` is in progress.
    fn flag(&self, label: Label) -> String {
        format!("{}{}", self.prefixes.flag, label.0)
    }
}
