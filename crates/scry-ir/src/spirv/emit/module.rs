//! A SPIR-V module under construction: its sections, ids, types and constants.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, GlslStd450Op,
    MemoryModel, Op, StorageClass,
};

use crate::spirv::FloatTypes;
use crate::{Location, SpirvOptions};

/// An id of the module; 0 is none.
pub(super) type Id = u32;

/// Sections of a module, each a list of instructions.
#[derive(Default)]
pub(super) struct Module {
    next: Id,
    capabilities: Vec<Capability>,
    extensions: Vec<&'static str>,
    glsl: Option<Id>,
    /// The name of the source, once an instruction refers to it.
    file: Option<(Id, String)>,
    names: Vec<u32>,
    decorations: Vec<u32>,
    globals: Vec<u32>,
    /// Variables of the function that is being written.
    variables: Vec<u32>,
    /// Instructions of that function, after its first label.
    code: Vec<u32>,
    functions: Vec<u32>,
    /// Types and constants that are declared once, by opcode and operands.
    interned: HashMap<Vec<u32>, Id, RandomState>,
    /// Global variables of class `Input`.
    inputs: Vec<Id>,
    /// All other global variables.
    other_globals: Vec<Id>,
    /// Whether the memory model is Vulkan's rather than GLSL450.
    has_vulkan_memory_model: bool,
}

/// Appends an instruction to a section.
fn push_inst(section: &mut Vec<u32>, op: Op, operands: &[u32]) {
    section.push((operands.len() as u32 + 1) << 16 | op as u32);
    section.extend(operands);
}

/// Encodes a literal string: UTF-8, zero-terminated, four bytes in a word.
fn encode_string(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(bytes.len() / 4 * 4 + 4, 0);
    bytes
        .chunks_exact(4)
        .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect()
}

impl Module {
    /// Returns an empty module, with the Vulkan memory model or GLSL450.
    pub(super) fn new(has_vulkan_memory_model: bool) -> Self {
        Self { has_vulkan_memory_model, ..Self::default() }
    }

    /// Returns a new id.
    pub(super) fn id(&mut self) -> Id {
        self.next += 1;
        self.next
    }

    /// Declares a capability that the module needs.
    pub(super) fn require(&mut self, capability: Capability) {
        if !self.capabilities.contains(&capability) {
            self.capabilities.push(capability);
        }
    }

    /// Declares an extension that the module needs.
    pub(super) fn extension(&mut self, name: &'static str) {
        if !self.extensions.contains(&name) {
            self.extensions.push(name);
        }
    }

    /// Names an id, for debuggers and disassemblers.
    pub(super) fn name(&mut self, id: Id, name: &str) {
        let operands = [vec![id], encode_string(name)].concat();
        push_inst(&mut self.names, Op::Name, &operands);
    }

    /// Decorates an id.
    pub(super) fn decorate(&mut self, id: Id, decoration: Decoration, operands: &[u32]) {
        let operands = [&[id, decoration as u32], operands].concat();
        push_inst(&mut self.decorations, Op::Decorate, &operands);
    }

    /// Decorates a member of a structure.
    pub(super) fn decorate_member(&mut self, ty: Id, member: u32, what: Decoration, value: &[u32]) {
        let operands = [&[ty, member, what as u32], value].concat();
        push_inst(&mut self.decorations, Op::MemberDecorate, &operands);
    }

    /// Returns a type: equal ones are declared once.
    pub(super) fn ty(&mut self, op: Op, operands: &[u32]) -> Id {
        let key = [&[op as u32], operands].concat();
        if let Some(id) = self.interned.get(&key) {
            return *id;
        }
        let id = self.new_ty(op, operands);
        self.interned.insert(key, id);
        id
    }

    /// Declares a type that has decorations of its own.
    pub(super) fn new_ty(&mut self, op: Op, operands: &[u32]) -> Id {
        let id = self.id();
        push_inst(&mut self.globals, op, &[&[id], operands].concat());
        id
    }

    /// Returns a constant: equal ones are declared once.
    pub(super) fn constant(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let key = [&[op as u32, ty], operands].concat();
        if let Some(id) = self.interned.get(&key) {
            return *id;
        }
        let id = self.id();
        push_inst(&mut self.globals, op, &[&[ty, id], operands].concat());
        self.interned.insert(key, id);
        id
    }

    /// Returns the integer type of a width, for signed and unsigned integers. It is declared as
    /// unsigned, so that no compiler may assume that arithmetic does not overflow.
    pub(super) fn int(&mut self, bits: u32) -> Id {
        match bits {
            16 => self.require(Capability::Int16),
            64 => self.require(Capability::Int64),
            _ => {}
        }
        self.ty(Op::TypeInt, &[bits, 0])
    }

    /// Returns `u32`.
    pub(super) fn u32_ty(&mut self) -> Id {
        self.int(32)
    }

    /// Returns a float type.
    pub(super) fn float(&mut self, bits: u32) -> Id {
        match bits {
            16 => self.require(Capability::Float16),
            64 => self.require(Capability::Float64),
            _ => {}
        }
        self.ty(Op::TypeFloat, &[bits])
    }

    /// Returns `bool`.
    pub(super) fn bool_ty(&mut self) -> Id {
        self.ty(Op::TypeBool, &[])
    }

    /// Returns a vector type; the scalar itself for a width of 1.
    pub(super) fn vector(&mut self, scalar: Id, width: u32) -> Id {
        if width == 1 { scalar } else { self.ty(Op::TypeVector, &[scalar, width]) }
    }

    /// Returns a pointer type.
    pub(super) fn pointer(&mut self, class: StorageClass, to: Id) -> Id {
        self.ty(Op::TypePointer, &[class as u32, to])
    }

    /// Returns a constant `u32`.
    pub(super) fn u32(&mut self, value: u32) -> Id {
        let ty = self.u32_ty();
        self.constant(Op::Constant, ty, &[value])
    }

    /// Returns the zero constant of a type.
    pub(super) fn null(&mut self, ty: Id) -> Id {
        self.constant(Op::ConstantNull, ty, &[])
    }

    /// Declares a variable of the module.
    pub(super) fn global(&mut self, class: StorageClass, ty: Id, initial: Option<Id>) -> Id {
        let pointer = self.pointer(class, ty);
        let id = self.id();
        let operands: Vec<u32> = [pointer, id, class as u32].into_iter().chain(initial).collect();
        push_inst(&mut self.globals, Op::Variable, &operands);
        let list =
            if class == StorageClass::Input { &mut self.inputs } else { &mut self.other_globals };
        list.push(id);
        id
    }

    /// Declares a built-in variable of the stage.
    pub(super) fn input(&mut self, builtin: BuiltIn, ty: Id) -> Id {
        let id = self.global(StorageClass::Input, ty, None);
        self.decorate(id, Decoration::BuiltIn, &[builtin as u32]);
        id
    }

    /// Declares a variable of the function.
    pub(super) fn local(&mut self, ty: Id, initial: Id) -> Id {
        let pointer = self.pointer(StorageClass::Function, ty);
        let id = self.id();
        let operands = [pointer, id, StorageClass::Function as u32, initial];
        push_inst(&mut self.variables, Op::Variable, &operands);
        id
    }

    /// Declares a `u32` variable of the function, initially zero.
    pub(super) fn local_word(&mut self) -> Id {
        let u32 = self.u32_ty();
        let zero = self.null(u32);
        self.local(u32, zero)
    }

    /// Emits an instruction with a result.
    pub(super) fn op(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let id = self.id();
        push_inst(&mut self.code, op, &[&[ty, id], operands].concat());
        id
    }

    /// Emits an instruction without a result.
    pub(super) fn run(&mut self, op: Op, operands: &[u32]) {
        push_inst(&mut self.code, op, operands);
    }

    /// Says that the following instructions are from a line of the source.
    pub(super) fn line(&mut self, name: &str, at: Location) {
        let file = match &self.file {
            Some((id, _)) => *id,
            None => self.id(),
        };
        self.file.get_or_insert_with(|| (file, name.to_owned()));
        self.run(Op::Line, &[file, at.line, at.column]);
    }

    /// Emits an instruction of the set `GLSL.std.450`.
    pub(super) fn glsl(&mut self, op: GlslStd450Op, ty: Id, operands: &[u32]) -> Id {
        let set = match self.glsl {
            Some(set) => set,
            None => self.id(),
        };
        self.glsl = Some(set);
        self.op(Op::ExtInst, ty, &[&[set, op as u32], operands].concat())
    }

    /// Begins a block.
    pub(super) fn label(&mut self, id: Id) {
        self.run(Op::Label, &[id]);
    }

    /// Ends the function that is being written: no parameters and no result.
    pub(super) fn end_function(&mut self) -> Id {
        let void = self.ty(Op::TypeVoid, &[]);
        let ty = self.ty(Op::TypeFunction, &[void]);
        let (function, label) = (self.id(), self.id());
        let code = &mut self.functions;
        push_inst(code, Op::Function, &[void, function, 0, ty]);
        push_inst(code, Op::Label, &[label]);
        code.append(&mut self.variables);
        code.append(&mut self.code);
        push_inst(code, Op::Return, &[]);
        push_inst(code, Op::FunctionEnd, &[]);
        function
    }

    /// Returns the widths of the float types that the module uses, of those in a set.
    fn used_widths(&self, types: FloatTypes) -> Vec<u32> {
        let is_used = |width: &u32| self.interned.contains_key(&[Op::TypeFloat as u32, *width][..]);
        types.widths().filter(is_used).collect()
    }

    /// Assembles the words of the module from its sections.
    pub(super) fn finish(
        mut self,
        options: &SpirvOptions,
        name: &str,
        main: Id,
        size: [u32; 3],
    ) -> Vec<u32> {
        let version = options.version;
        let nan_preserving = self.used_widths(options.nan_preserving);
        if !nan_preserving.is_empty() {
            self.require(Capability::SignedZeroInfNanPreserve);
            if version < (1, 4) {
                self.extension("SPV_KHR_float_controls");
            }
        }
        let mut model = MemoryModel::GLSL450;
        if self.has_vulkan_memory_model {
            model = MemoryModel::Vulkan;
            self.require(Capability::VulkanMemoryModel);
            self.require(Capability::VulkanMemoryModelDeviceScope);
            if version < (1, 5) {
                self.extension("SPV_KHR_vulkan_memory_model");
            }
        }
        let bound = self.id();
        let version_word = u32::from(version.0) << 16 | u32::from(version.1) << 8;
        let mut words = vec![spirv::MAGIC_NUMBER, version_word, 0, bound, 0];
        push_inst(&mut words, Op::Capability, &[Capability::Shader as u32]);
        for capability in &self.capabilities {
            push_inst(&mut words, Op::Capability, &[*capability as u32]);
        }
        for extension in &self.extensions {
            push_inst(&mut words, Op::Extension, &encode_string(extension));
        }
        if let Some(set) = self.glsl {
            push_inst(
                &mut words,
                Op::ExtInstImport,
                &[vec![set], encode_string("GLSL.std.450")].concat(),
            );
        }
        let model = [AddressingModel::Logical as u32, model as u32];
        push_inst(&mut words, Op::MemoryModel, &model);
        let mut entry = vec![ExecutionModel::GLCompute as u32, main];
        entry.extend(encode_string(name));
        entry.extend(&self.inputs);
        if version >= (1, 4) {
            entry.extend(&self.other_globals);
        }
        push_inst(&mut words, Op::EntryPoint, &entry);
        let [x, y, z] = size;
        push_inst(&mut words, Op::ExecutionMode, &[main, ExecutionMode::LocalSize as u32, x, y, z]);
        if let Some((id, name)) = &self.file {
            push_inst(&mut words, Op::String, &[vec![*id], encode_string(name)].concat());
        }
        for width in nan_preserving {
            let mode = ExecutionMode::SignedZeroInfNanPreserve as u32;
            push_inst(&mut words, Op::ExecutionMode, &[main, mode, width]);
        }
        for section in [&self.names, &self.decorations, &self.globals, &self.functions] {
            words.extend(section);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_with_a_zero_byte() {
        assert_eq!(encode_string(""), [0]);
        assert_eq!(encode_string("main"), [u32::from_le_bytes(*b"main"), 0]);
        assert_eq!(encode_string("abc"), [u32::from_le_bytes(*b"abc\0")]);
    }

    /// Modes name types that the module has, and need a capability.
    #[test]
    fn nan_is_preserved_in_types_that_are_used() {
        let words = |types: FloatTypes| {
            let mut module = Module::default();
            module.float(32);
            let main = module.end_function();
            let options = SpirvOptions { nan_preserving: types, ..SpirvOptions::portable(true) };
            module.finish(&options, "main", main, [1; 3])
        };
        let has =
            |words: &[u32], wanted: &[u32]| words.windows(wanted.len()).any(|it| it == wanted);
        let capability = [2 << 16 | Op::Capability as u32, 4466];
        let found = words(FloatTypes::all());
        assert!(has(&found, &capability));
        assert!(has(&found, &[4461, 32]) && !has(&found, &[4461, 16]) && !has(&found, &[4461, 64]));
        assert!(!has(&words(FloatTypes::F16), &capability));
    }

    #[test]
    fn equal_types_and_constants_are_shared() {
        let mut module = Module::default();
        assert_eq!(module.u32(7), module.u32(7));
        assert_ne!(module.u32(7), module.u32(8));
        assert_eq!(module.float(32), module.float(32));
        assert_ne!(module.int(16), module.int(32));
        assert_eq!(module.capabilities, [Capability::Int16]);
    }
}
