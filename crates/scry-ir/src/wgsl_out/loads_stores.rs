//! Loads and stores.

use super::Emitter;
use super::address::Index;
use super::declarations::{Elements, Shape};
use super::fields::{COMPONENTS, Field};
use super::integers16;
use crate::ShaderError;
use crate::kir::{AddressSpace, Place, Type, Value};

/// A 16-bit half of a word of an array.
pub(super) struct HalfWord {
    pub(super) word: Index,
    /// The expression of the bit offset in the word: 0 or 16.
    pub(super) shift: String,
}

impl Emitter<'_> {
    /// Loads contiguous values, of which `first` is the first.
    pub(super) fn load(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
    ) -> Result<(), ShaderError> {
        let ty = self.kir.ty(first);
        self.note_local_use(place);
        let memory = self.memory_variable(place)?;
        let elements = match &memory.shape {
            Shape::Array(elements) => *elements,
            Shape::Records(_) => return self.load_record(first, place, count),
            Shape::Fields(_) => return self.load_fields(first, place, count),
        };
        let name = memory.name.clone();
        if self.load_vector(first, place, count, &name, &elements) {
            return Ok(());
        }
        for i in 0..count {
            let loaded = if ty.size() < elements.scalar_size() {
                let part = self.half_word(place, i);
                let word = self.read_scalar(&name, &elements, &part.word);
                self.extract_half_word(&word, &part.shift, ty)
            } else {
                let index = self.index(place, elements.scalar_size()).plus(i.into());
                let scalar = self.read_scalar(&name, &elements, &index);
                cast(&scalar, elements.ty, ty, 1)
            };
            self.define(Value(first.0 + i), &loaded);
        }
        Ok(())
    }

    /// Reads a scalar of an array.
    pub(super) fn read_scalar(&mut self, name: &str, elements: &Elements, index: &Index) -> String {
        let scalar = self.scalar_at(name, elements, index);
        if elements.atomic { format!("atomicLoad(&{scalar})") } else { scalar }
    }

    /// Loads contiguous values as components of one vector. Returns false, and writes nothing, if
    /// they are not in one vector.
    fn load_vector(
        &mut self,
        first: Value,
        place: &Place,
        count: u32,
        name: &str,
        elements: &Elements,
    ) -> bool {
        let (ty, lanes) = (self.kir.ty(first), elements.lanes);
        if lanes == 1 || count == 1 || ty.size() != elements.scalar_size() {
            return false;
        }
        let index = self.index(place, elements.scalar_size());
        let Some(lane) = index.lane(lanes).filter(|lane| lane + count <= lanes) else {
            return false;
        };
        let element = format!("{name}[{}]", index.element(lanes).expression());
        let vector = self.temporary(&cast(&element, elements.ty, ty, lanes));
        for i in 0..count {
            let component = COMPONENTS[(lane + i) as usize];
            self.alias(Value(first.0 + i), format!("{vector}.{component}"));
        }
        true
    }

    /// Loads contiguous values from a structure of fields.
    fn load_fields(&mut self, first: Value, place: &Place, count: u32) -> Result<(), ShaderError> {
        let ty = self.kir.ty(first);
        for i in 0..count {
            let byte = self.constant_byte(place)? + i * ty.size();
            let loaded = self.load_field(place, byte, ty)?;
            self.define(Value(first.0 + i), &loaded);
        }
        Ok(())
    }

    /// Returns the value of type `ty` at a byte of a structure.
    fn load_field(&mut self, place: &Place, byte: u32, ty: Type) -> Result<String, ShaderError> {
        let memory = self.memory_variable(place)?;
        let Shape::Fields(fields) = &memory.shape else { return Err(no_field_error()) };
        if let Some((found, path)) = Field::scalar_at(fields, byte)
            && found.size() == ty.size()
        {
            return Ok(cast(&format!("{}{path}", memory.name), found, ty, 1));
        }
        let word = Field::scalar_at(fields, byte / 4 * 4).filter(|(found, _)| *found == Type::U32);
        let (_, path) = word.ok_or_else(no_field_error)?;
        let word = format!("{}{path}", memory.name);
        Ok(self.extract_half_word(&word, &format!("{}u", byte % 4 * 8), ty))
    }

    /// Returns the byte offset of a place with a constant index.
    fn constant_byte(&self, place: &Place) -> Result<u32, ShaderError> {
        let index = match place.index {
            None => 0,
            Some(index) => self.kir.constant(index).ok_or_else(no_field_error)?.bits,
        };
        let byte = index * u64::from(place.stride) + u64::from(place.offset);
        u32::try_from(byte).map_err(|_| no_field_error())
    }

    /// Returns the position of the 16-bit value with index `i` at a place.
    pub(super) fn half_word(&mut self, place: &Place, i: u32) -> HalfWord {
        let index = self.index(place, 2).plus(i.into());
        if let Some(lane) = index.lane(2) {
            return HalfWord { word: index.element(2), shift: format!("{}u", lane * 16) };
        }
        let half = self.temporary(&index.expression());
        let word = self.temporary(&format!("{half} / 2u"));
        HalfWord { word: Index::from_base(word), shift: format!("({half} % 2u * 16u)") }
    }

    /// Returns the 16 bits of a word from bit `shift` on, as a value of a type.
    fn extract_half_word(&self, word: &str, shift: &str, ty: Type) -> String {
        let bits = match shift {
            "0u" => format!("({word} & 0xffffu)"),
            "16u" => format!("({word} >> 16u)"),
            _ => format!("(({word} >> {shift}) & 0xffffu)"),
        };
        match ty {
            Type::F16 => self.f16_of_bits(&bits),
            _ => integers16::of_bits(ty, &bits),
        }
    }

    /// Stores contiguous values.
    pub(super) fn store(&mut self, place: &Place, values: &[Value]) -> Result<(), ShaderError> {
        let Some(ty) = values.first().map(|value| self.kir.ty(*value)) else { return Ok(()) };
        if self.stores_initial_zeros(place, values) {
            return Ok(());
        }
        self.note_local_use(place);
        let memory = self.memory_variable(place)?;
        let elements = match &memory.shape {
            Shape::Array(elements) => *elements,
            Shape::Records(_) => return self.store_record(place, values),
            Shape::Fields(_) => return Err(no_field_error()),
        };
        let name = memory.name.clone();
        if elements.lanes > 1 {
            let index = self.index(place, elements.scalar_size()).element(elements.lanes);
            let values: Vec<_> = values.iter().map(|value| self.operand(*value)).collect();
            let vector = format!("vec{}<{ty}>({})", elements.lanes, values.join(", "));
            let vector = cast(&vector, ty, elements.ty, elements.lanes);
            self.body.line(format!("{name}[{}] = {vector};", index.expression()));
        } else if ty.size() < elements.scalar_size() {
            self.store_half_words(place, values, &name, &elements);
        } else {
            for (i, value) in (0..).zip(values) {
                let index = self.index(place, elements.scalar_size()).plus(i);
                let value = cast(&self.operand(*value), ty, elements.ty, 1);
                self.write_scalar(&name, &elements, &index, &value);
            }
        }
        Ok(())
    }

    /// Returns whether a store writes zeros to a local array that still has its initial zeros.
    fn stores_initial_zeros(&self, place: &Place, values: &[Value]) -> bool {
        let AddressSpace::Local(local) = place.space else { return false };
        let is_zero = |value: &Value| self.kir.constant(*value).is_some_and(|it| it.bits == 0);
        !self.used_locals.contains(&local) && !self.is_in_loop() && values.iter().all(is_zero)
    }

    /// Records that a local array may have other elements than zeros after an access to it.
    fn note_local_use(&mut self, place: &Place) {
        if let AddressSpace::Local(local) = place.space {
            self.used_locals.insert(local);
        }
    }

    /// Writes a scalar of an array.
    fn write_scalar(&mut self, name: &str, elements: &Elements, index: &Index, value: &str) {
        let element = self.scalar_at(name, elements, index);
        self.body.line(match elements.atomic {
            true => format!("atomicStore(&{element}, {value});"),
            false => format!("{element} = {value};"),
        });
    }

    /// Stores 16-bit values to words: aligned pairs as whole words, others by a compare-exchange of
    /// the word.
    fn store_half_words(
        &mut self,
        place: &Place,
        values: &[Value],
        name: &str,
        elements: &Elements,
    ) {
        let bits: Vec<_> = values.iter().map(|value| self.half_word_bits(*value)).collect();
        let are_whole_words =
            values.len().is_multiple_of(2) && self.index(place, 2).lane(2) == Some(0);
        if are_whole_words {
            for (i, pair) in (0..).zip(bits.chunks(2)) {
                let word = self.index(place, 2).element(2).plus(i);
                self.write_scalar(
                    name,
                    elements,
                    &word,
                    &format!("{} | ({} << 16u)", pair[0], pair[1]),
                );
            }
            return;
        }
        for (i, bits) in (0..).zip(&bits) {
            let part = self.half_word(place, i);
            let word = self.scalar_at(name, elements, &part.word);
            match elements.atomic {
                true => self.store_half_word(&word, &part.shift, bits),
                // Only the invocation itself accesses the array.
                false => {
                    let kept = format!("({word} & ~(0xffffu << {}))", part.shift);
                    self.body.line(format!("{word} = {kept} | ({bits} << {});", part.shift));
                }
            }
        }
    }

    /// Returns the bits of a 16-bit value, as an expression that needs no parentheses.
    fn half_word_bits(&mut self, value: Value) -> String {
        let operand = self.operand(value);
        match self.kir.ty(value) {
            Type::F16 => self.bits_of_f16(&operand),
            ty => integers16::bits_of(ty, &operand),
        }
    }
}

/// Returns a bitcast of a scalar, or of a vector of `lanes` scalars, to type `to`; the expression
/// itself if that is its type.
pub(super) fn cast(text: &str, from: Type, to: Type, lanes: u32) -> String {
    match (from == to, lanes) {
        (true, _) => text.to_owned(),
        (false, 1) => format!("bitcast<{to}>({text})"),
        (false, _) => format!("bitcast<vec{lanes}<{to}>>({text})"),
    }
}

fn no_field_error() -> ShaderError {
    ShaderError::compiler(
        "Kir::to_wgsl: an access is not to a field of the interface's type; help: pass the \
         interface of the program that the kernel was lowered from"
            .into(),
    )
}
