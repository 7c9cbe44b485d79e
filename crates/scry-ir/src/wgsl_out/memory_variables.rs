//! Declares a variable for each address space of a kernel: the bindings and immediates at module
//! scope, and the workgroup and local arrays.

use std::collections::BTreeMap;

use super::accesses::Accesses;
use super::declarations::{self, Elements, MemoryVariable, Shape};
use super::fields::{self, Field};
use super::identifiers::Names;
use super::records::{self, Records};
use crate::kir::{AddressSpace, Kir, Type};
use crate::{BufferBindingType, Interface, ShaderError, ShaderErrorKind, TypeLayout};

/// The variables of the kernel's address spaces, and the lines that declare them.
#[derive(Debug, Default)]
pub(super) struct MemoryVariables {
    by_space: BTreeMap<AddressSpace, MemoryVariable>,
    /// Structures, each followed by an empty line.
    pub(super) types: Vec<String>,
    /// Declarations at module scope.
    pub(super) globals: Vec<String>,
    /// Declarations at the top of the kernel.
    pub(super) locals: Vec<String>,
    /// Statements `_ = …;` at the top of the kernel, which keep unused variables in its interface.
    pub(super) uses: Vec<String>,
}

impl MemoryVariables {
    pub(super) fn get(&self, space: AddressSpace) -> Option<&MemoryVariable> {
        self.by_space.get(&space)
    }
}

/// Declares the variables of the kernel's address spaces.
pub(super) struct MemoryDeclarer<'a> {
    pub(super) kir: &'a Kir,
    pub(super) interface: &'a Interface,
    pub(super) accesses: &'a Accesses,
    pub(super) names: &'a mut Names,
    pub(super) native_f16: bool,
    pub(super) found: MemoryVariables,
}

/// A uniform or immediate variable. Its type is that of the interface, since the host writes it.
struct HostVariable<'a> {
    space: AddressSpace,
    /// `var<uniform>` or `var<immediate>`, with the attributes before it.
    declaration: String,
    name: String,
    layout: &'a TypeLayout,
    /// The elements of an array that can replace the type; `None` if WGSL does not permit an array.
    array: Option<Elements>,
}

impl MemoryDeclarer<'_> {
    /// Declares all variables.
    pub(super) fn declare_all(mut self) -> Result<MemoryVariables, ShaderError> {
        for i in 0..self.kir.buffers.len() {
            self.binding(i)?;
        }
        self.immediates()?;
        for (i, array) in self.kir.workgroup.iter().enumerate() {
            let space = AddressSpace::Workgroup(i as u32);
            let elements =
                declarations::array_elements(array, self.accesses.to_space(space), self.native_f16);
            let name = self.names.unique(&format!("workgroup{i}"));
            self.found.globals.push(format!("var<workgroup> {name}: {};", elements.array_type()));
            self.insert(space, name, Shape::Array(elements));
        }
        for (i, array) in self.kir.locals.iter().enumerate() {
            let space = AddressSpace::Local(i as u32);
            let mut elements =
                declarations::array_elements(array, self.accesses.to_space(space), self.native_f16);
            // No other invocation accesses it.
            elements.atomic = false;
            let name = self.names.unique(&format!("local{i}"));
            self.found.locals.push(format!("var {name}: {};", elements.array_type()));
            self.insert(space, name, Shape::Array(elements));
        }
        Ok(self.found)
    }

    fn insert(&mut self, space: AddressSpace, name: String, shape: Shape) {
        self.found.by_space.insert(space, MemoryVariable { name, shape });
    }

    fn binding(&mut self, i: usize) -> Result<(), ShaderError> {
        let (buffer, binding) = (&self.kir.buffers[i], &self.interface.bindings[i]);
        let name = self.names.unique(&binding.name);
        let attributes = format!("@group({}) @binding({})", binding.group, binding.binding);
        let space = AddressSpace::Binding(i as u32);
        if binding.ty == BufferBindingType::Uniform {
            let is_array = binding.layout.fixed_size().is_multiple_of(16);
            let array = is_array.then(|| declarations::uniform_elements(buffer, binding));
            let declaration = format!("{attributes} var<uniform>");
            self.host_variable(HostVariable {
                space,
                declaration,
                name,
                layout: &binding.layout,
                array,
            })?;
        } else {
            self.storage(i, format!("{attributes} var<storage"), name);
        }
        if !self.accesses.uses(i as u32) {
            self.add_use(space);
        }
        Ok(())
    }

    /// Declares a storage buffer: as an array of structures, of vectors or of scalars.
    fn storage(&mut self, i: usize, declaration: String, name: String) {
        let (buffer, binding) = (&self.kir.buffers[i], &self.interface.bindings[i]);
        let (accesses, native_f16) = (self.accesses, self.native_f16);
        let access = if buffer.writable { "read_write" } else { "read" };
        let space = AddressSpace::Binding(i as u32);
        let elements =
            declarations::storage_elements(i as u32, buffer, binding, accesses, native_f16);
        if elements.lanes == 1
            && let Some(records) = Records::new(i as u32, binding, accesses)
        {
            let ty = match records::element_of(&binding.layout) {
                Some(element) => self.structure(element, &name, &records.fields),
                None => return,
            };
            self.found.globals.push(format!("{declaration}, {access}> {name}: array<{ty}>;"));
            self.insert(space, name, Shape::Records(records));
            return;
        }
        let min_size = binding.layout.min_binding_size();
        let note = match elements.len {
            None if min_size > elements.size().into() => format!(" // at least {min_size} bytes"),
            _ => String::new(),
        };
        let ty = elements.array_type();
        self.found.globals.push(format!("{declaration}, {access}> {name}: {ty};{note}"));
        self.insert(space, name, Shape::Array(elements));
    }

    fn immediates(&mut self) -> Result<(), ShaderError> {
        let Some(immediates) = &self.interface.immediates else { return Ok(()) };
        let name = self.names.unique(&immediates.name);
        let space = AddressSpace::Immediate;
        let declaration = "var<immediate>".to_owned();
        self.host_variable(HostVariable {
            space,
            declaration,
            name,
            layout: &immediates.layout,
            array: None,
        })?;
        if self.accesses.to_space(space).is_empty() {
            self.add_use(space);
        }
        Ok(())
    }

    /// Declares a uniform or immediate variable: as a structure of fields, or as an array if it is
    /// indexed at run time or would have too many fields.
    fn host_variable(&mut self, variable: HostVariable<'_>) -> Result<(), ShaderError> {
        let indexed =
            self.accesses.to_space(variable.space).iter().any(|access| access.is_indexed());
        match (indexed, fields::fields_of(&variable.name, variable.layout)?, variable.array) {
            (false, Some(fields), _) => {
                let ty = self.structure(variable.layout, &variable.name, &fields);
                self.found
                    .globals
                    .push(format!("{} {}: {ty};", variable.declaration, variable.name));
                self.insert(variable.space, variable.name, Shape::Fields(fields));
            }
            (_, _, Some(elements)) => {
                let ty = elements.array_type();
                self.found
                    .globals
                    .push(format!("{} {}: {ty};", variable.declaration, variable.name));
                self.insert(variable.space, variable.name, Shape::Array(elements));
            }
            _ => self.copied_words(variable)?,
        }
        Ok(())
    }

    /// Declares a variable that cannot be an array as a structure of words, which the kernel copies
    /// to a local array.
    fn copied_words(&mut self, variable: HostVariable<'_>) -> Result<(), ShaderError> {
        let size = variable.layout.fixed_size() as u32;
        if !size.is_multiple_of(4) {
            let message = format!(
                "WGSL has no uniform array of the {size} bytes of `{}`, which is indexed at run \
                 time or has more than {} fields; help: pad it to a multiple of 4 bytes",
                variable.name,
                fields::MAX_FIELDS
            );
            return Err(ShaderError::new(ShaderErrorKind::UnsupportedConstruct, message));
        }
        let HostVariable { space, declaration, name, layout, .. } = variable;
        let fields = fields::word_fields(size);
        let ty = self.structure(layout, &name, &fields);
        self.found.globals.push(format!("{declaration} {name}: {ty};"));
        let words: Vec<_> = fields.iter().map(|field| format!("{name}{}", field.path())).collect();
        let len = Some(u64::from(size / 4));
        let elements = Elements { ty: Type::U32, lanes: 1, atomic: false, len };
        let copy = self.names.unique(&format!("{name}_words"));
        let ty = elements.array_type();
        self.found.locals.push(format!("var {copy} = {ty}({});", words.join(", ")));
        self.insert(space, copy, Shape::Array(elements));
        Ok(())
    }

    /// Declares the structure of fields; returns its name, or the type of the only field.
    fn structure(&mut self, layout: &TypeLayout, variable: &str, fields: &[Field]) -> String {
        if let [field] = fields
            && field.name.is_empty()
        {
            return field.wgsl_type();
        }
        let name = match layout {
            TypeLayout::Struct { name, .. } => self.names.unique(name),
            _ => self.names.unique(&format!("{variable}_fields")),
        };
        self.found.types.push(format!("struct {name} {{"));
        let members = fields.iter().map(|field| format!("    {}", field.declaration()));
        self.found.types.extend(members);
        self.found.types.extend(["}".to_owned(), String::new()]);
        name
    }

    /// Adds a use of a variable that the kernel does not use, to keep it in the interface.
    fn add_use(&mut self, space: AddressSpace) {
        let Some(MemoryVariable { name, shape }) = self.found.by_space.get(&space) else { return };
        let part = match shape {
            Shape::Records(_) | Shape::Array(Elements { len: None, .. }) => {
                format!("arrayLength(&{name})")
            }
            Shape::Array(_) => format!("{name}[0]"),
            Shape::Fields(fields) => {
                format!("{name}{}", fields.first().map_or(String::new(), Field::path))
            }
        };
        self.found.uses.push(format!("_ = {part};"));
    }
}
