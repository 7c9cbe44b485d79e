//! The parts of the emitter's state.

use spirv::StorageClass;

use super::module::Id;
use crate::kir::{Label, Type, Value};

/// A loop or scope around the current statement.
pub(super) struct Construct {
    pub(super) label: Label,
    pub(super) is_loop: bool,
    pub(super) merge: Id,
    /// Labels of outer constructs that a statement within leaves by a branch to this `merge` first.
    pub(super) passing: Vec<Label>,
}

/// An array in workgroup memory, or a local one.
#[derive(Clone, Copy)]
pub(super) struct ArrayVariable {
    pub(super) class: StorageClass,
    pub(super) variable: Id,
    pub(super) ty: Type,
    /// Scalars of an element: 1, 2 or 4.
    pub(super) width: u32,
    pub(super) elements: u32,
}

/// A place with a constant index folded into its offset.
#[derive(Clone, Copy)]
pub(super) struct Resolved {
    pub(super) index: Option<Value>,
    pub(super) stride: u32,
    pub(super) offset: u64,
}

/// A uniform buffer or the immediates.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The binding; `None` for immediates.
    pub(super) binding: Option<u32>,
    pub(super) class: StorageClass,
    pub(super) variable: Id,
    /// Number of quads of words in the array, which precedes the remaining words.
    pub(super) quads: u32,
    /// Number of words that remain, each a member of the structure.
    pub(super) rest: u32,
}

/// The views of all bindings.
#[derive(Default)]
pub(super) struct Views {
    pub(super) list: Vec<View>,
}

/// A binding as an array.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) binding: u32,
    /// Type of the scalars: unsigned or float.
    pub(super) scalar: Type,
    /// Scalars of an element: 1, 2 or 4.
    pub(super) width: u32,
    /// The variable, a structure around the array.
    pub(super) variable: Id,
}

impl View {
    /// Bytes of an element.
    pub(super) fn size(&self) -> u32 {
        self.scalar.size() * self.width
    }
}

impl Views {
    /// Returns the view of a binding by elements of a type.
    pub(super) fn get(&self, binding: u32, scalar: Type, width: u32) -> View {
        let found = self.list.iter().find(|view| view.is(binding, scalar, width));
        *found.expect("views are declared for every access")
    }

    pub(super) fn add(&mut self, binding: u32, scalar: Type, width: u32) {
        if !self.list.iter().any(|view| view.is(binding, scalar, width)) {
            self.list.push(View { binding, scalar, width, variable: 0 });
        }
    }
}

impl View {
    fn is(&self, binding: u32, scalar: Type, width: u32) -> bool {
        (self.binding, self.scalar, self.width) == (binding, scalar, width)
    }
}

impl Views {
    /// Returns the view with the largest elements whose size divides offset and stride of a
    /// runtime-sized array.
    pub(super) fn for_length(&self, binding: u32, offset: u32, stride: u32) -> Option<View> {
        let fits = |view: &&View| {
            view.binding == binding
                && offset.is_multiple_of(view.size())
                && stride.is_multiple_of(view.size())
        };
        self.list.iter().filter(fits).max_by_key(|view| view.size()).copied()
    }
}
