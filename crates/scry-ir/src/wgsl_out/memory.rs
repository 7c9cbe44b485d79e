//! Loads and stores.

use super::Emitter;
use super::address::{COMPONENTS, Index};
use super::declarations::{Elements, Shape};
use super::fields::Field;
use crate::ShaderError;
use crate::kir::{Place, Type, Value};

/// A part of a word of an array: the word, and how many bits are below the part.
pub(super) struct Part {
    pub(super) word: Index,
    pub(super) shift: String,
}

impl Emitter<'_> {
    /// Loads contiguous values, the first being `first`.
    pub(super) fn load(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
    ) -> Result<(), ShaderError> {
        let ty = self.kir.ty(first);
        let memory = self.memory(place)?;
        let elements = match &memory.shape {
            Shape::Array(elements) => *elements,
            Shape::Fields(_) => return self.load_fields(first, place, count),
        };
        let name = memory.name.clone();
        if self.load_vector(first, place, count, &name, &elements) {
            return Ok(());
        }
        for nth in 0..count {
            let loaded = if ty.size() < elements.width() {
                let part = self.part(place, nth);
                let word = self.read(&name, &elements, &part.word);
                self.half_of(&word, &part.shift, ty)
            } else {
                let index = self.index(place, elements.width()).plus(nth.into());
                let scalar = self.read(&name, &elements, &index);
                cast(&scalar, elements.ty, ty, 1)
            };
            self.define(Value(first.0 + nth), &loaded);
        }
        Ok(())
    }

    /// Reads a scalar of an array.
    pub(super) fn read(&mut self, name: &str, elements: &Elements, index: &Index) -> String {
        let scalar = self.scalar_at(name, elements, index);
        if elements.atomic { format!("atomicLoad(&{scalar})") } else { scalar }
    }

    /// Loads values of one element as a vector; returns whether they are.
    fn load_vector(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
        name: &str,
        elements: &Elements,
    ) -> bool {
        let (ty, lanes) = (self.kir.ty(first), elements.lanes);
        if lanes == 1 || count == 1 || ty.size() != elements.width() {
            return false;
        }
        let index = self.index(place, elements.width());
        let Some(lane) = index.lane(lanes).filter(|lane| lane + count <= lanes) else {
            return false;
        };
        let element = format!("{name}[{}]", index.unit(lanes).spelled());
        let vector = self.temporary(&cast(&element, elements.ty, ty, lanes));
        for nth in 0..count {
            let component = COMPONENTS[(lane + nth) as usize];
            self.alias(Value(first.0 + nth), format!("{vector}.{component}"));
        }
        true
    }

    fn load_fields(&mut self, first: Value, place: &Place, count: u32) -> Result<(), ShaderError> {
        let ty = self.kir.ty(first);
        for nth in 0..count {
            let byte = self.constant_byte(place)? + nth * ty.size();
            let loaded = self.field(place, byte, ty)?;
            self.define(Value(first.0 + nth), &loaded);
        }
        Ok(())
    }

    /// Returns the value of type `ty` at a byte of a structure.
    fn field(&mut self, place: &Place, byte: u32, ty: Type) -> Result<String, ShaderError> {
        let memory = self.memory(place)?;
        let Shape::Fields(fields) = &memory.shape else { return Err(no_place()) };
        if let Some((found, path)) = Field::scalar_at(fields, byte)
            && found.size() == ty.size()
        {
            return Ok(cast(&format!("{}{path}", memory.name), found, ty, 1));
        }
        let word = Field::scalar_at(fields, byte / 4 * 4).filter(|(found, _)| *found == Type::U32);
        let (_, path) = word.ok_or_else(no_place)?;
        let word = format!("{}{path}", memory.name);
        Ok(self.half_of(&word, &format!("{}u", byte % 4 * 8), ty))
    }

    fn constant_byte(&self, place: &Place) -> Result<u32, ShaderError> {
        let index = match place.index {
            None => 0,
            Some(index) => self.kir.constant(index).ok_or_else(no_place)?.bits,
        };
        let byte = index * u64::from(place.stride) + u64::from(place.offset);
        u32::try_from(byte).map_err(|_| no_place())
    }

    /// Where the `nth` 16-bit value at a place is.
    pub(super) fn part(&mut self, place: &Place, nth: u32) -> Part {
        let index = self.index(place, 2).plus(nth.into());
        if let Some(lane) = index.lane(2) {
            return Part { word: index.unit(2), shift: format!("{}u", lane * 16) };
        }
        let half = self.temporary(&index.spelled());
        let word = self.temporary(&format!("{half} / 2u"));
        Part { word: Index::of(word), shift: format!("({half} % 2u * 16u)") }
    }

    /// The 16 bits of a word above a shift, as a value of a type.
    fn half_of(&self, word: &str, shift: &str, ty: Type) -> String {
        let bits = match shift {
            "0u" => format!("({word} & 0xffffu)"),
            "16u" => format!("({word} >> 16u)"),
            _ => format!("(({word} >> {shift}) & 0xffffu)"),
        };
        if ty == Type::F16 { self.f16_of_bits(&bits) } else { bits }
    }

    /// Stores contiguous values.
    pub(super) fn store(&mut self, place: &Place, values: &[Value]) -> Result<(), ShaderError> {
        let Some(ty) = values.first().map(|value| self.kir.ty(*value)) else { return Ok(()) };
        let memory = self.memory(place)?;
        let Shape::Array(elements) = memory.shape else { return Err(no_place()) };
        let name = memory.name.clone();
        if elements.lanes > 1 {
            let index = self.index(place, elements.width()).unit(elements.lanes);
            let values: Vec<_> = values.iter().map(|value| self.operand(*value)).collect();
            let vector = format!("vec{}<{ty}>({})", elements.lanes, values.join(", "));
            let vector = cast(&vector, ty, elements.ty, elements.lanes);
            self.body.line(format!("{name}[{}] = {vector};", index.spelled()));
        } else if ty.size() < elements.width() {
            self.store_halves(place, values, &name, &elements);
        } else {
            for (nth, value) in (0..).zip(values) {
                let index = self.index(place, elements.width()).plus(nth);
                let value = cast(&self.operand(*value), ty, elements.ty, 1);
                self.write(&name, &elements, &index, &value);
            }
        }
        Ok(())
    }

    /// Writes an element of a scalar.
    fn write(&mut self, name: &str, elements: &Elements, index: &Index, value: &str) {
        let element = self.scalar_at(name, elements, index);
        self.body.line(match elements.atomic {
            true => format!("atomicStore(&{element}, {value});"),
            false => format!("{element} = {value};"),
        });
    }

    /// Stores 16-bit values to words: pairs as words, others by exchanging the word.
    fn store_halves(&mut self, place: &Place, values: &[Value], name: &str, elements: &Elements) {
        let bits: Vec<_> = values.iter().map(|value| self.bits_of_half(*value)).collect();
        let whole = values.len().is_multiple_of(2) && self.index(place, 2).lane(2) == Some(0);
        if whole {
            for (nth, pair) in (0..).zip(bits.chunks(2)) {
                let word = self.index(place, 2).unit(2).plus(nth);
                self.write(name, elements, &word, &format!("{} | ({} << 16u)", pair[0], pair[1]));
            }
            return;
        }
        for (nth, bits) in (0..).zip(&bits) {
            let part = self.part(place, nth);
            let word = self.scalar_at(name, elements, &part.word);
            self.store_part(&word, &part.shift, bits);
        }
    }

    /// The bits of a 16-bit value, as an atom.
    fn bits_of_half(&mut self, value: Value) -> String {
        let operand = self.operand(value);
        match self.kir.ty(value) {
            Type::F16 => self.bits_of_f16(&operand),
            _ => operand,
        }
    }
}

/// Reinterprets scalars, or a vector of `lanes` of them.
pub(super) fn cast(text: &str, from: Type, to: Type, lanes: u32) -> String {
    match (from == to, lanes) {
        (true, _) => text.to_owned(),
        (false, 1) => format!("bitcast<{to}>({text})"),
        (false, _) => format!("bitcast<vec{lanes}<{to}>>({text})"),
    }
}

fn no_place() -> ShaderError {
    ShaderError::compiler(
        "Kir::to_wgsl: an access is to no field of the interface's type; help: pass the interface \
         of the program that the kernel was lowered from"
            .into(),
    )
}
