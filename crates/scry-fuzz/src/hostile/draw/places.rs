//! Memory locations: paths into arrays, structures, matrices and vectors with hostile indices.

use super::{ELEMENTS_PER_INVOCATION, HostileGenerator, Mode};
use crate::hostile::tree::{Expr, Extent, Global, Kind, Space};
use crate::types::{Scalar, Type};

/// A part of a variable in memory, and its type.
pub(super) struct Place {
    pub expr: Expr,
    pub ty: Type,
}

/// A path under construction.
struct Path {
    text: String,
    indices: Vec<Expr>,
}

impl HostileGenerator {
    /// Returns a scalar in memory.
    pub(super) fn readable_place(&mut self) -> Place {
        let global = self.pick_variable(false);
        self.place_in(&global, true)
    }

    /// Returns a writable scalar in memory.
    pub(super) fn writable_place(&mut self) -> Place {
        let global = self.pick_writable();
        self.place_in(&global, true)
    }

    /// Returns a writable variable of a composite type.
    pub(super) fn pick_writable(&mut self) -> Global {
        self.pick_variable(true)
    }

    /// Returns a variable of a composite type, which is writable if `for_write`.
    fn pick_variable(&mut self, for_write: bool) -> Global {
        let fits = |global: &&Global| {
            let writable = !matches!(global.space, Space::Input | Space::Uniform);
            let reachable =
                self.in_main || self.mode != Mode::OwnElements || global.space != Space::Output;
            !global.atomic && (writable || !for_write) && is_composite(global) && reachable
        };
        let all: Vec<Global> =
            self.globals.iter().chain(&self.arrays).filter(fits).cloned().collect();
        self.random.pick(&all)
    }

    /// Returns a part of a variable: a scalar if `scalar_only`, else maybe a composite.
    pub(super) fn place_in(&mut self, global: &Global, scalar_only: bool) -> Place {
        let mut path = Path { text: global.name.clone(), indices: Vec::new() };
        let mut ty = global.ty.clone();
        if let Some(length) = Self::length_of(global) {
            if matches!(global.extent, Extent::RuntimeMember(_)) {
                path.text.push_str(".rest");
            }
            let own = self.mode == Mode::OwnElements && global.space == Space::Output;
            let index = if own { self.own_index() } else { self.index(None, Some(&length)) };
            push(&mut path, index);
        } else if let Type::Array(element, len) = ty {
            let index = self.index(Some(len), None);
            push(&mut path, index);
            ty = *element;
        }
        while scalar_only || self.random.one_in(2) {
            let Some(inner) = self.step(&mut path, &ty) else { break };
            ty = inner;
        }
        Place { expr: Expr::new(Kind::Other, path.text, path.indices), ty }
    }

    /// Adds a step into a composite to a path.
    fn step(&mut self, path: &mut Path, ty: &Type) -> Option<Type> {
        Some(match ty {
            Type::Scalar(_) => return None,
            Type::Vector(scalar, width) => {
                if self.random.one_in(2) {
                    path.text.push_str(self.random.pick(&[".x", ".y"]));
                } else {
                    let index = self.index(Some(*width), None);
                    push(path, index);
                }
                Type::Scalar(*scalar)
            }
            Type::Matrix(scalar, columns, rows) => {
                let index = self.index(Some(*columns), None);
                push(path, index);
                Type::Vector(*scalar, *rows)
            }
            Type::Array(element, len) => {
                let index = self.index(Some(*len), None);
                push(path, index);
                (**element).clone()
            }
            Type::Struct(at) => {
                let members = self.structs[*at].clone();
                let member = self.random.below(members.len());
                path.text.push_str(&format!(".m{member}"));
                members[member].clone()
            }
        })
    }

    /// Returns the index of an element that the invocation owns.
    fn own_index(&mut self) -> Expr {
        let index = self.uint(1);
        let text = format!("me * {ELEMENTS_PER_INVOCATION}u + ($0) % {ELEMENTS_PER_INVOCATION}u");
        Expr::new(Kind::U32, text, vec![index])
    }

    /// Returns an index into an array. Its length is `len`, or the expression `length`.
    pub(super) fn index(&mut self, len: Option<usize>, length: Option<&str>) -> Expr {
        let index = self.wild_index(len);
        if self.mode == Mode::InBounds {
            let length = len.map_or_else(|| length.unwrap_or("1u").to_owned(), |n| format!("{n}u"));
            let text = match index.kind {
                Kind::I32 => format!("u32($0) % {length}"),
                _ => format!("($0) % {length}"),
            };
            let index = if index.constant { self.variable(index.kind) } else { index };
            return Expr::new(Kind::U32, text, vec![index]);
        }
        // WGSL rejects constants out of bounds.
        if index.constant { self.variable(index.kind) } else { index }
    }

    fn wild_index(&mut self, len: Option<usize>) -> Expr {
        let kind = if self.random.one_in(5) { Kind::I32 } else { Kind::U32 };
        let variable = self.variable(kind);
        let by = self.random.between(1, 3) as u32;
        let by = if kind == Kind::I32 { Expr::int(by.cast_signed()) } else { Expr::uint(by) };
        let len = len.unwrap_or(self.random.between(1, 9));
        match self.random.below(12) {
            0..=4 => variable,
            5 => Expr::new(kind, "$0 + $1", vec![variable, by]),
            6 => Expr::new(kind, "$0 - $1", vec![variable, by]),
            7 if kind == Kind::U32 => {
                let near = self.random.between(len.max(2) - 2, len + 1);
                Expr::new(kind, "min($0, $1)", vec![variable, Expr::uint(near as u32)])
            }
            8 if kind == Kind::U32 => {
                let near = self.random.between(len, len + 1).max(1);
                Expr::new(kind, "$0 % $1", vec![variable, Expr::uint(near as u32)])
            }
            9 => self.number(kind, 2),
            _ => self.number(kind, 1),
        }
    }

    /// Returns the value of a scalar in memory as a u32.
    pub(super) fn load_as_u32(&mut self, depth: usize) -> Expr {
        if depth > 0 && self.random.one_in(4) {
            let atomics = self.atomics();
            if !atomics.is_empty() {
                return self.atomic_load(&atomics);
            }
        }
        let place = self.readable_place();
        let Type::Scalar(scalar) = place.ty else { return Expr::uint(0) };
        self.as_uint(place.expr, scalar)
    }

    fn atomic_load(&mut self, atomics: &[usize]) -> Expr {
        let index = self.random.pick(atomics);
        let place = self.atomic_place(index);
        Expr::new(Kind::U32, "u32(atomicLoad(&$0))", vec![place])
    }

    /// Returns an element of the array of atomics that is global variable `index`.
    pub(super) fn atomic_place(&mut self, index: usize) -> Expr {
        let global = self.globals[index].clone();
        let index = match (&global.ty, Self::length_of(&global)) {
            (_, Some(length)) => self.index(None, Some(&length)),
            (Type::Array(_, len), None) => self.index(Some(*len), None),
            _ => Expr::uint(0),
        };
        Expr::new(Kind::Other, format!("{}[$0]", global.name), vec![index])
    }

    fn as_uint(&mut self, place: Expr, scalar: Scalar) -> Expr {
        let text = match scalar {
            Scalar::U32 => "$0",
            // The conversion of a float that no u32 represents is target-specific.
            Scalar::F32 | Scalar::F64 | Scalar::F16 if self.mode == Mode::InBounds => {
                "u32($0 >= 2)"
            }
            Scalar::F32 => self.random.pick(&["u32($0)", "bitcast<u32>($0)"]),
            _ => "u32($0)",
        };
        Expr::new(Kind::U32, text, vec![place])
    }

    /// Returns a `u32` converted to a type; composites other than vectors are zero.
    pub(super) fn convert_u32(&mut self, ty: &Type, value: Expr) -> Expr {
        let text = match ty {
            Type::Scalar(scalar) => return Self::convert_u32_to_scalar(*scalar, value),
            Type::Vector(scalar, _) => {
                let value = Self::convert_u32_to_scalar(*scalar, value);
                return Expr::new(Kind::Other, format!("{ty}($0)"), vec![value]);
            }
            _ => format!("{ty}()"),
        };
        Expr::leaf(Kind::Other, text)
    }

    fn convert_u32_to_scalar(scalar: Scalar, value: Expr) -> Expr {
        let (kind, text) = match scalar {
            Scalar::U32 => return value,
            Scalar::I32 => (Kind::I32, "i32($0)"),
            Scalar::F32 => (Kind::F32, "f32($0 & 0xffffu)"),
            Scalar::F16 => (Kind::Other, "f16($0 & 0xffu)"),
            Scalar::F64 => (Kind::Other, "f64($0 & 0xffffu)"),
            Scalar::I64 => (Kind::Other, "i64($0)"),
            Scalar::U64 => (Kind::Other, "u64($0)"),
            Scalar::I16 => (Kind::Other, "i16($0 & 0xffu)"),
            Scalar::U16 => (Kind::Other, "u16($0 & 0xffu)"),
            Scalar::Bool => (Kind::Bool, "($0 != 0u)"),
        };
        Expr::new(kind, text, vec![value])
    }
}

/// Adds an index to a path.
fn push(path: &mut Path, index: Expr) {
    path.text.push_str(&format!("[${}]", path.indices.len()));
    path.indices.push(index);
}

fn is_composite(global: &Global) -> bool {
    global.extent != Extent::One || !matches!(global.ty, Type::Scalar(_))
}
