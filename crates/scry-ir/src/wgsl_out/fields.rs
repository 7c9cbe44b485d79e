//! The fields of uniforms and immediates: scalars and vectors under the names of the source.

use super::identifiers::Names;
use crate::kir::Type;
use crate::{Scalar, ScalarKind, ShaderError, ShaderErrorKind, TypeLayout};

/// A structure of more fields than this becomes an array.
const MOST_FIELDS: usize = 64;

/// A scalar or vector in a structure.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Empty if the variable is this scalar or vector itself.
    pub(super) name: String,
    pub(super) offset: u32,
    pub(super) ty: Type,
    /// Components of a vector; 1 for a scalar.
    pub(super) lanes: u32,
    /// Bytes to the next field, or to the end.
    room: u32,
}

impl Field {
    /// Returns the scalar at a byte: its type, and what follows the variable's name.
    pub(super) fn scalar_at(fields: &[Self], byte: u32) -> Option<(Type, String)> {
        let field = fields.iter().rev().find(|field| field.offset <= byte)?;
        let nth = (byte - field.offset) / field.ty.size();
        let component = ["x", "y", "z", "w"].get(nth as usize)?;
        let Field { ty, lanes, .. } = field;
        let mut path = field.path();
        if *lanes > 1 {
            path = format!("{path}.{component}");
        }
        (nth < *lanes).then_some((*ty, path))
    }

    /// What follows the variable's name.
    pub(super) fn path(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(".{}", self.name) }
    }

    /// The type, as WGSL spells it.
    pub(super) fn spelled_type(&self) -> String {
        match self.lanes {
            1 => self.ty.to_string(),
            lanes => format!("vec{lanes}<{}>", self.ty),
        }
    }

    /// The declaration in the structure.
    pub(super) fn spelled(&self) -> String {
        let size = self.lanes * self.ty.size();
        let room = match self.room > size {
            true => format!("@size({}) ", self.room),
            false => String::new(),
        };
        format!("{room}{}: {},", self.name, self.spelled_type())
    }
}

/// The fields of a type; `None` if there are too many.
pub(super) fn of(name: &str, layout: &TypeLayout) -> Result<Option<Vec<Field>>, ShaderError> {
    let mut found = Collect { fields: Vec::new(), names: Names::default() };
    let prefix = match layout {
        TypeLayout::Array { .. } => "element",
        TypeLayout::Matrix { .. } => "column",
        _ => "",
    };
    found.add(prefix, 0, layout).map_err(|lacking| {
        let message = format!(
            "WGSL has no {lacking}, which `{name}` consists of; help: pass it as 32-bit numbers"
        );
        ShaderError::without_place(ShaderErrorKind::NotCompute, message)
    })?;
    let Collect { mut fields, .. } = found;
    let ends = fields.iter().skip(1).map(|field| field.offset);
    let ends: Vec<u32> = ends.chain([layout.fixed_size() as u32]).collect();
    for (field, end) in fields.iter_mut().zip(ends) {
        field.room = end - field.offset;
    }
    Ok((fields.len() <= MOST_FIELDS).then_some(fields))
}

/// The words of a structure of this size in bytes.
pub(super) fn words(size: u32) -> Vec<Field> {
    let field = |nth| Field {
        name: format!("word{nth}"),
        offset: nth * 4,
        ty: Type::U32,
        lanes: 1,
        room: 4,
    };
    (0..size / 4).map(field).collect()
}

struct Collect {
    fields: Vec<Field>,
    names: Names,
}

impl Collect {
    fn add(&mut self, name: &str, offset: u32, layout: &TypeLayout) -> Result<(), Scalar> {
        match layout {
            TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => {
                self.field(name, offset, *scalar, 1)
            }
            TypeLayout::Vector { len, scalar } => self.field(name, offset, *scalar, *len),
            TypeLayout::Matrix { columns, rows, scalar, stride } => {
                let column = TypeLayout::Vector { len: *rows, scalar: *scalar };
                self.parts(name, offset, &column, (*columns).into(), *stride)
            }
            TypeLayout::Array { element, len, stride } => {
                self.parts(name, offset, element, len.unwrap_or(0), *stride)
            }
            TypeLayout::Struct { members, .. } => members.iter().try_for_each(|member| {
                let part = joined(name, &member.name);
                self.add(&part, offset + member.offset, &member.layout)
            }),
        }
    }

    fn parts(
        &mut self,
        name: &str,
        offset: u32,
        part: &TypeLayout,
        count: u32,
        stride: u32,
    ) -> Result<(), Scalar> {
        let most = count.min(MOST_FIELDS as u32 + 1);
        (0..most).try_for_each(|nth| {
            self.add(&joined(name, &nth.to_string()), offset + nth * stride, part)
        })
    }

    fn field(&mut self, name: &str, offset: u32, scalar: Scalar, lanes: u8) -> Result<(), Scalar> {
        let ty = match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 4) => Type::F32,
            (ScalarKind::Float, 2) => Type::F16,
            (ScalarKind::Sint, 4) => Type::I32,
            (ScalarKind::Uint, 4) => Type::U32,
            _ => return Err(scalar),
        };
        let name = if name.is_empty() { String::new() } else { self.names.unique(name) };
        self.fields.push(Field { name, offset, ty, lanes: lanes.into(), room: 0 });
        Ok(())
    }
}

fn joined(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_owned() } else { format!("{name}_{part}") }
}
