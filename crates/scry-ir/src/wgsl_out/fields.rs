//! The fields of uniforms and immediates: scalars and vectors under the names of the source.

use super::identifiers::Names;
use crate::kir::Type;
use crate::{Scalar, ScalarKind, ShaderError, ShaderErrorKind, TypeLayout};

/// Maximum number of fields; a larger structure becomes an array.
pub(super) const MAX_FIELDS: usize = 64;

/// The names of a vector's components.
pub(super) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// A scalar or vector in a structure.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Empty if the variable is this scalar or vector itself.
    pub(super) name: String,
    pub(super) offset: u32,
    pub(super) ty: Type,
    /// Components of a vector; 1 for a scalar.
    pub(super) lanes: u32,
    /// Bytes from its start to the start of the next field, or to the end of the structure.
    padded_size: u32,
}

impl Field {
    /// Returns the scalar at a byte: its type, and its path, which is appended to the variable's
    /// name.
    pub(super) fn scalar_at(fields: &[Self], byte: u32) -> Option<(Type, String)> {
        let field = fields.iter().rev().find(|field| field.offset <= byte)?;
        let i = (byte - field.offset) / field.ty.size();
        let component = COMPONENTS.get(i as usize)?;
        let Field { ty, lanes, .. } = field;
        let mut path = field.path();
        if *lanes > 1 {
            path = format!("{path}.{component}");
        }
        (i < *lanes).then_some((*ty, path))
    }

    /// Returns the offset of the first byte after the field, without padding.
    pub(super) fn end(&self) -> u32 {
        self.offset + self.lanes * self.ty.size()
    }

    /// Pads the field, the last of its structure, so that the structure has `size` bytes.
    pub(super) fn pad_to(&mut self, size: u32) {
        self.padded_size = size - self.offset;
    }

    /// Splits a vector into scalars, the last of which has its padding.
    pub(super) fn split(self) -> Vec<Self> {
        let (unit, lanes) = (self.ty.size(), self.lanes);
        let component = |(i, component): (u32, &&str)| {
            let padding = if i + 1 == lanes { self.padded_size - lanes * unit } else { 0 };
            let name = join_names(&self.name, component);
            let offset = self.offset + i * unit;
            Self { name, offset, ty: self.ty, lanes: 1, padded_size: unit + padding }
        };
        (0..lanes).zip(&COMPONENTS).map(component).collect()
    }

    /// Returns the path of the field, which is appended to the variable's name.
    pub(super) fn path(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(".{}", self.name) }
    }

    /// Returns the WGSL type.
    pub(super) fn wgsl_type(&self) -> String {
        match self.lanes {
            1 => self.ty.to_string(),
            lanes => format!("vec{lanes}<{}>", self.ty),
        }
    }

    /// Returns the declaration in the structure.
    pub(super) fn declaration(&self) -> String {
        let size = self.lanes * self.ty.size();
        let attribute = match self.padded_size > size {
            true => format!("@size({}) ", self.padded_size),
            false => String::new(),
        };
        format!("{attribute}{}: {},", self.name, self.wgsl_type())
    }
}

/// Returns the fields of a type; `None` if there are too many.
pub(super) fn fields_of(
    name: &str,
    layout: &TypeLayout,
) -> Result<Option<Vec<Field>>, ShaderError> {
    if let TypeLayout::Struct { members, size, .. } = layout
        && members.is_empty()
    {
        // The immediates of a kernel that was built in the IR, which does not record their types.
        let fields = word_fields(size.next_multiple_of(4));
        return Ok((fields.len() <= MAX_FIELDS).then_some(fields));
    }
    let mut found = Collector { fields: Vec::new(), names: Names::default() };
    let prefix = match layout {
        TypeLayout::Array { .. } => "element",
        TypeLayout::Matrix { .. } => "column",
        _ => "",
    };
    match found.add(prefix, 0, layout) {
        Ok(()) => {}
        // 16-bit integers: halves of words.
        Err(lacking) if lacking.width == 2 => {
            let fields = word_fields((layout.fixed_size() as u32).next_multiple_of(4));
            return Ok((fields.len() <= MAX_FIELDS).then_some(fields));
        }
        Err(lacking) => {
            let message = format!(
                "WGSL has no {lacking}, which `{name}` consists of; help: pass it as 32-bit numbers"
            );
            return Err(ShaderError::new(ShaderErrorKind::UnsupportedConstruct, message));
        }
    }
    let Collector { mut fields, .. } = found;
    let ends = fields.iter().skip(1).map(|field| field.offset);
    let ends: Vec<u32> = ends.chain([layout.fixed_size() as u32]).collect();
    for (field, end) in fields.iter_mut().zip(ends) {
        field.padded_size = end - field.offset;
    }
    Ok((fields.len() <= MAX_FIELDS).then_some(fields))
}

/// Returns the fields of a structure of words with a size in bytes.
pub(super) fn word_fields(size: u32) -> Vec<Field> {
    let field = |i| Field {
        name: format!("word{i}"),
        offset: i * 4,
        ty: Type::U32,
        lanes: 1,
        padded_size: 4,
    };
    (0..size / 4).map(field).collect()
}

/// Collects the fields of a type.
struct Collector {
    fields: Vec<Field>,
    names: Names,
}

impl Collector {
    /// Adds the fields of a part of the type.
    ///
    /// # Errors
    /// The scalar type that WGSL lacks.
    fn add(&mut self, name: &str, offset: u32, layout: &TypeLayout) -> Result<(), Scalar> {
        match layout {
            TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => {
                self.add_field(name, offset, *scalar, 1)
            }
            TypeLayout::Vector { len, scalar } => self.add_field(name, offset, *scalar, *len),
            TypeLayout::Matrix { columns, rows, scalar, stride } => {
                let column = TypeLayout::Vector { len: *rows, scalar: *scalar };
                self.add_repeated(name, offset, &column, (*columns).into(), *stride)
            }
            TypeLayout::Array { element, len, stride } => {
                self.add_repeated(name, offset, element, len.unwrap_or(0), *stride)
            }
            TypeLayout::Struct { members, .. } => members.iter().try_for_each(|member| {
                let part = join_names(name, &member.name);
                self.add(&part, offset + member.offset, &member.layout)
            }),
        }
    }

    /// Adds parts of an array or a matrix: at most one more than the maximum, to notice an excess.
    fn add_repeated(
        &mut self,
        name: &str,
        offset: u32,
        part: &TypeLayout,
        count: u32,
        stride: u32,
    ) -> Result<(), Scalar> {
        let limited_count = count.min(MAX_FIELDS as u32 + 1);
        (0..limited_count).try_for_each(|i| {
            self.add(&join_names(name, &i.to_string()), offset + i * stride, part)
        })
    }

    fn add_field(
        &mut self,
        name: &str,
        offset: u32,
        scalar: Scalar,
        lanes: u8,
    ) -> Result<(), Scalar> {
        let ty = match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 4) => Type::F32,
            (ScalarKind::Float, 2) => Type::F16,
            (ScalarKind::Sint, 4) => Type::I32,
            (ScalarKind::Uint, 4) => Type::U32,
            _ => return Err(scalar),
        };
        let name = if name.is_empty() { String::new() } else { self.names.unique(name) };
        self.fields.push(Field { name, offset, ty, lanes: lanes.into(), padded_size: 0 });
        Ok(())
    }
}

fn join_names(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_owned() } else { format!("{name}_{part}") }
}
