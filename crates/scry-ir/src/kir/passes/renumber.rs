//! Renumbers values, variables and local arrays in the order of their first appearance, and removes
//! unused ones. The results of one instruction stay contiguous. Workgroup arrays and buffers keep
//! their indices, which are part of the interface.

use super::super::{
    AddressSpace, Array, Definition, FragmentPlace, Inst, Kir, Place, Stmt, Type, Value, Var,
    for_each_stmt_mut,
};

/// The new number of a value, variable or array that has not appeared.
const NONE: u32 = u32::MAX;

/// Renumbers a kernel.
pub(super) fn renumber(kir: &mut Kir) {
    let mut body = std::mem::take(&mut kir.body);
    let mut compact = Compact {
        values: vec![NONE; kir.values.len()],
        vars: vec![NONE; kir.vars.len()],
        locals: vec![NONE; kir.locals.len()],
        new_values: Vec::new(),
        origins: Vec::with_capacity(kir.values.len()),
        new_vars: Vec::new(),
        new_locals: Vec::new(),
        old: kir,
    };
    for_each_stmt_mut(&mut body, &mut |stmt| compact.stmt(stmt));
    let Compact { new_values, origins, new_vars, new_locals, .. } = compact;
    kir.source = kir.source.renumbered(origins.into_iter().map(Some));
    kir.values = new_values;
    kir.vars = new_vars;
    kir.locals = new_locals;
    kir.body = body;
}

/// New numbers by old number, and the renumbered definitions.
struct Compact<'a> {
    old: &'a Kir,
    values: Vec<u32>,
    vars: Vec<u32>,
    locals: Vec<u32>,
    new_values: Vec<Definition>,
    /// The old number of each new value.
    origins: Vec<Value>,
    new_vars: Vec<Type>,
    new_locals: Vec<Array>,
}

impl Compact<'_> {
    fn stmt(&mut self, stmt: &mut Stmt) {
        stmt.for_each_operand_mut(|value| *value = Value(self.values[value.index()]));
        match stmt {
            Stmt::Let(value) => *value = self.value(*value),
            Stmt::Set(var, _) => *var = self.var(*var),
            Stmt::Store { place, .. } => self.place(place),
            _ => {}
        }
    }

    fn value(&mut self, value: Value) -> Value {
        let first = self.define(value);
        for result in 1..self.old.inst(value).results() {
            self.define(Value(value.0 + result));
        }
        first
    }

    fn define(&mut self, value: Value) -> Value {
        let mut definition = self.old.values[value.index()];
        definition.inst.for_each_operand_mut(|value| *value = Value(self.values[value.index()]));
        match &mut definition.inst {
            Inst::Get(var) => *var = self.var(*var),
            Inst::Load { place, .. }
            | Inst::WorkgroupUniformLoad { place, .. }
            | Inst::Atomic { place, .. }
            | Inst::LoadFragment(FragmentPlace { place, .. }) => self.place(place),
            _ => {}
        }
        let number = self.new_values.len() as u32;
        self.new_values.push(definition);
        self.origins.push(value);
        self.values[value.index()] = number;
        Value(number)
    }

    fn var(&mut self, var: Var) -> Var {
        let number = &mut self.vars[var.index()];
        if *number == NONE {
            *number = self.new_vars.len() as u32;
            self.new_vars.push(self.old.vars[var.index()]);
        }
        Var(*number)
    }

    fn place(&mut self, place: &mut Place) {
        let AddressSpace::Local(array) = &mut place.space else { return };
        let number = &mut self.locals[*array as usize];
        if *number == NONE {
            *number = self.new_locals.len() as u32;
            self.new_locals.push(self.old.locals[*array as usize]);
        }
        *array = *number;
    }
}
