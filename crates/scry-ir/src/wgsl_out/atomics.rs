//! Atomic operations.

use super::Emitter;
use super::declarations::Shape;
use super::loads_stores::cast;
use crate::ShaderError;
use crate::kir::{AtomicOp, Place, Type, Value};

impl Emitter<'_> {
    /// Writes an atomic operation, whose result is the previous value.
    pub(super) fn atomic(
        &mut self,
        result: Value,
        op: AtomicOp,
        place: &Place,
        operands: [Option<Value>; 2],
    ) -> Result<(), ShaderError> {
        let memory = self.memory_variable(place)?;
        let Shape::Array(elements) = memory.shape else {
            return Err(ShaderError::compiler("Kir::to_wgsl: an atomic of a structure".into()));
        };
        let name = memory.name.clone();
        let index = self.index(place, elements.scalar_size());
        let at = format!("&{}", self.scalar_at(&name, &elements, &index));
        let (ty, stored) = (self.kir.ty(result), elements.ty);
        if matches!(op, AtomicOp::Min | AtomicOp::Max) && ty != stored {
            self.min_max_by_exchange(result, op, &at, operands[0], stored);
            return Ok(());
        }
        let [value, compare] = operands.map(|operand| {
            operand.map_or_else(String::new, |operand| {
                cast(&self.operand(operand), self.kir.ty(operand), stored, 1)
            })
        });
        match (op, function(op)) {
            (_, Some(function)) => {
                let call = format!("{function}({at}, {value})");
                self.define(result, &cast(&call, stored, ty, 1));
            }
            (AtomicOp::Store, _) => self.body.line(format!("atomicStore({at}, {value});")),
            (AtomicOp::CompareExchange, _) => {
                self.compare_exchange(result, &at, &compare, &value, stored)
            }
            _ => {
                let loaded = self.read_scalar(&name, &elements, &index);
                self.define(result, &cast(&loaded, stored, ty, 1));
            }
        }
        Ok(())
    }

    /// Writes a compare-exchange, in a loop: WGSL's may fail spuriously, KIR's may not.
    fn compare_exchange(
        &mut self,
        result: Value,
        at: &str,
        compare: &str,
        value: &str,
        stored: Type,
    ) {
        let old = self.new_temporary();
        self.body.line(format!("var {old}: {stored};"));
        self.body.open("loop {");
        let exchange = format!("atomicCompareExchangeWeak({at}, {compare}, {value})");
        let done = self.temporary(&exchange);
        self.body.line(format!("{old} = {done}.old_value;"));
        let condition = format!("{done}.exchanged || {old} != {compare}");
        self.body.line(format!("if {condition} {{ break; }}"));
        self.body.close("}");
        let ty = self.kir.ty(result);
        self.define(result, &cast(&old, stored, ty, 1));
    }

    /// Writes an atomic minimum or maximum whose signedness is not that of the array's elements: a
    /// loop around a compare-exchange.
    fn min_max_by_exchange(
        &mut self,
        result: Value,
        op: AtomicOp,
        at: &str,
        value: Option<Value>,
        stored: Type,
    ) {
        let ty = self.kir.ty(result);
        let function = if op == AtomicOp::Min { "min" } else { "max" };
        let operand = value.map_or_else(String::new, |value| self.operand(value));
        let old = self.new_temporary();
        self.body.line(format!("var {old} = atomicLoad({at});"));
        self.body.open("loop {");
        let new = format!("{function}({}, {operand})", cast(&old, stored, ty, 1));
        let new = self.temporary(&cast(&new, ty, stored, 1));
        let done = self.temporary(&format!("atomicCompareExchangeWeak({at}, {old}, {new})"));
        self.body.line(format!("if {done}.exchanged {{ break; }}"));
        self.body.line(format!("{old} = {done}.old_value;"));
        self.body.close("}");
        self.define(result, &cast(&old, stored, ty, 1));
    }

    /// Replaces 16 bits of a word. Other invocations may write the other half at the same time.
    pub(super) fn store_half_word(&mut self, word: &str, shift: &str, bits: &str) {
        let bits = self.temporary(&format!("{bits} << {shift}"));
        let mask = self.temporary(&format!("~(0xffffu << {shift})"));
        let old = self.new_temporary();
        self.body.line(format!("var {old} = atomicLoad(&{word});"));
        self.body.open("loop {");
        let new = self.temporary(&format!("({old} & {mask}) | {bits}"));
        let done = self.temporary(&format!("atomicCompareExchangeWeak(&{word}, {old}, {new})"));
        self.body.line(format!("if {done}.exchanged {{ break; }}"));
        self.body.line(format!("{old} = {done}.old_value;"));
        self.body.close("}");
    }
}

/// Returns the WGSL function that combines a value with an atomic and returns the old one; `None`
/// for a load, a store and a compare-exchange.
fn function(op: AtomicOp) -> Option<&'static str> {
    match op {
        AtomicOp::Add => Some("atomicAdd"),
        AtomicOp::Sub => Some("atomicSub"),
        AtomicOp::Min => Some("atomicMin"),
        AtomicOp::Max => Some("atomicMax"),
        AtomicOp::And => Some("atomicAnd"),
        AtomicOp::Or => Some("atomicOr"),
        AtomicOp::Xor => Some("atomicXor"),
        AtomicOp::Exchange => Some("atomicExchange"),
        AtomicOp::Load | AtomicOp::Store | AtomicOp::CompareExchange => None,
    }
}
