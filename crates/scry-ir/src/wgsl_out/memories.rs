//! The declarations of a kernel's memories.

use std::collections::BTreeMap;

use super::accesses::Accesses;
use super::declarations::{self, Elements, Memory, Shape};
use super::fields::{self, Field};
use super::identifiers::Names;
use crate::kir::{AddressSpace, Kir, Type};
use crate::{BufferBindingType, Interface, ShaderError, ShaderErrorKind, TypeLayout};

/// The memories of a kernel, and the lines that declare them.
#[derive(Debug, Default)]
pub(super) struct Memories {
    by_space: BTreeMap<AddressSpace, Memory>,
    /// Structures, each followed by an empty line.
    pub(super) types: Vec<String>,
    /// Declarations at module scope.
    pub(super) globals: Vec<String>,
    /// Declarations at the top of the kernel.
    pub(super) locals: Vec<String>,
    /// Statements at the top of the kernel, which keep bindings in its interface.
    pub(super) uses: Vec<String>,
}

impl Memories {
    pub(super) fn of(&self, space: AddressSpace) -> Option<&Memory> {
        self.by_space.get(&space)
    }
}

/// A kernel whose memories are declared.
pub(super) struct Declare<'a> {
    pub(super) kir: &'a Kir,
    pub(super) interface: &'a Interface,
    pub(super) accesses: &'a Accesses,
    pub(super) names: &'a mut Names,
    pub(super) native_f16: bool,
    pub(super) found: Memories,
}

/// A variable of a host's type.
struct Block<'a> {
    space: AddressSpace,
    /// `var<uniform>` and what stands before it.
    declared: String,
    name: String,
    layout: &'a TypeLayout,
    /// Elements, where an array may be declared.
    array: Option<Elements>,
}

impl Declare<'_> {
    pub(super) fn all(mut self) -> Result<Memories, ShaderError> {
        for nth in 0..self.kir.buffers.len() {
            self.binding(nth)?;
        }
        self.immediates()?;
        for (nth, array) in self.kir.workgroup.iter().enumerate() {
            let space = AddressSpace::Workgroup(nth as u32);
            let elements = declarations::array(array, self.accesses.of(space), self.native_f16);
            let name = self.names.unique(&format!("workgroup{nth}"));
            self.found.globals.push(format!("var<workgroup> {name}: {};", elements.spelled()));
            self.insert(space, name, Shape::Array(elements));
        }
        for (nth, array) in self.kir.locals.iter().enumerate() {
            let space = AddressSpace::Local(nth as u32);
            let elements = declarations::array(array, self.accesses.of(space), self.native_f16);
            let name = self.names.unique(&format!("local{nth}"));
            self.found.locals.push(format!("var {name}: {};", elements.spelled()));
            self.insert(space, name, Shape::Array(elements));
        }
        Ok(self.found)
    }

    fn insert(&mut self, space: AddressSpace, name: String, shape: Shape) {
        self.found.by_space.insert(space, Memory { name, shape });
    }

    fn binding(&mut self, nth: usize) -> Result<(), ShaderError> {
        let (buffer, binding) = (&self.kir.buffers[nth], &self.interface.bindings[nth]);
        let name = self.names.unique(&binding.name);
        let at = format!("@group({}) @binding({})", binding.group, binding.binding);
        let space = AddressSpace::Binding(nth as u32);
        if binding.ty == BufferBindingType::Uniform {
            let whole = binding.layout.fixed_size().is_multiple_of(16);
            let array = whole.then(|| declarations::uniform(buffer, binding));
            let declared = format!("{at} var<uniform>");
            self.block(Block { space, declared, name, layout: &binding.layout, array })?;
        } else {
            let elements =
                declarations::storage(nth as u32, buffer, binding, self.accesses, self.native_f16);
            let access = if buffer.writable { "read_write" } else { "read" };
            let least = binding.layout.min_binding_size();
            let note = match elements.len {
                None if least > elements.unit().into() => format!(" // at least {least} bytes"),
                _ => String::new(),
            };
            let ty = elements.spelled();
            self.found.globals.push(format!("{at} var<storage, {access}> {name}: {ty};{note}"));
            self.insert(space, name, Shape::Array(elements));
        }
        if !self.accesses.uses(nth as u32) {
            self.keep(space);
        }
        Ok(())
    }

    fn immediates(&mut self) -> Result<(), ShaderError> {
        let Some(immediates) = &self.interface.immediates else { return Ok(()) };
        let name = self.names.unique(&immediates.name);
        let space = AddressSpace::Immediate;
        let declared = "var<immediate>".to_owned();
        self.block(Block { space, declared, name, layout: &immediates.layout, array: None })?;
        if self.accesses.of(space).is_empty() {
            self.keep(space);
        }
        Ok(())
    }

    /// Declares a uniform or immediate variable: as fields, unless it is indexed at run time or has
    /// very many.
    fn block(&mut self, block: Block<'_>) -> Result<(), ShaderError> {
        let indexed = self.accesses.of(block.space).iter().any(|access| access.is_indexed());
        match (indexed, fields::of(&block.name, block.layout)?, block.array) {
            (false, Some(fields), _) => {
                let ty = self.structure(block.layout, &block.name, &fields);
                self.found.globals.push(format!("{} {}: {ty};", block.declared, block.name));
                self.insert(block.space, block.name, Shape::Fields(fields));
            }
            (_, _, Some(elements)) => {
                let ty = elements.spelled();
                self.found.globals.push(format!("{} {}: {ty};", block.declared, block.name));
                self.insert(block.space, block.name, Shape::Array(elements));
            }
            _ => self.copied_words(block)?,
        }
        Ok(())
    }

    /// Declares a variable that cannot be an array as words, which are copied to one.
    fn copied_words(&mut self, block: Block<'_>) -> Result<(), ShaderError> {
        let size = block.layout.fixed_size() as u32;
        if !size.is_multiple_of(4) {
            let message = format!(
                "WGSL has no uniform array of the {size} bytes of `{}`, which is indexed at run \
                 time; help: pad it to a multiple of 4 bytes",
                block.name
            );
            return Err(ShaderError::without_place(ShaderErrorKind::NotCompute, message));
        }
        let Block { space, declared, name, layout, .. } = block;
        let fields = fields::words(size);
        let ty = self.structure(layout, &name, &fields);
        self.found.globals.push(format!("{declared} {name}: {ty};"));
        let words: Vec<_> = fields.iter().map(|field| format!("{name}{}", field.path())).collect();
        let len = Some(u64::from(size / 4));
        let elements = Elements { ty: Type::U32, lanes: 1, atomic: false, len };
        let copy = self.names.unique(&format!("{name}_words"));
        let ty = elements.spelled();
        self.found.locals.push(format!("var {copy} = {ty}({});", words.join(", ")));
        self.insert(space, copy, Shape::Array(elements));
        Ok(())
    }

    /// Declares the structure of fields; returns its name, or the type of the only field.
    fn structure(&mut self, layout: &TypeLayout, variable: &str, fields: &[Field]) -> String {
        if let [field] = fields
            && field.name.is_empty()
        {
            return field.spelled_type();
        }
        let name = match layout {
            TypeLayout::Struct { name, .. } => self.names.unique(name),
            _ => self.names.unique(&format!("{variable}_fields")),
        };
        self.found.types.push(format!("struct {name} {{"));
        let members = fields.iter().map(|field| format!("    {}", field.spelled()));
        self.found.types.extend(members);
        self.found.types.extend(["}".to_owned(), String::new()]);
        name
    }

    /// Keeps a variable in the interface that the kernel does not use.
    fn keep(&mut self, space: AddressSpace) {
        let Some(Memory { name, shape }) = self.found.by_space.get(&space) else { return };
        let part = match shape {
            Shape::Array(Elements { len: None, .. }) => format!("arrayLength(&{name})"),
            Shape::Array(_) => format!("{name}[0]"),
            Shape::Fields(fields) => {
                format!("{name}{}", fields.first().map_or(String::new(), Field::path))
            }
        };
        self.found.uses.push(format!("_ = {part};"));
    }
}
