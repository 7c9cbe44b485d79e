//! Propagates classes from each value and variable along def-use edges.

use super::Variability::{self, Uniform};
use super::transfer::{self, KnownUniformity};
use super::{Lanes, Uniformity, VarUniformity};
use crate::kir::{Inst, Kir, Stmt, Value, Var, for_each_stmt};

/// The classes of values and variables: each is a node, the values first.
pub(super) struct Flow<'a> {
    kir: &'a Kir,
    classes: KnownUniformity,
    users: Users,
    /// The worklist: nodes whose users must be processed again.
    raised: Vec<usize>,
}

/// For each node, the nodes whose classes depend on it.
struct Users {
    /// Start of each node's users in `list`, and the end of the last ones.
    starts: Vec<usize>,
    list: Vec<usize>,
}

impl<'a> Flow<'a> {
    /// Initialises each class as if all operands were uniform.
    pub(super) fn new(kir: &'a Kir, lanes: Lanes) -> Self {
        let values = vec![Uniform; kir.values.len()];
        let vars = vec![Uniform; kir.vars.len()];
        let classes = KnownUniformity { values, vars, lanes };
        let mut flow = Self { kir, classes, users: Users::new(kir), raised: Vec::new() };
        (0..kir.values.len() as u32).for_each(|value| flow.look_at(Value(value)));
        flow
    }

    /// Returns the classes so far.
    pub(super) fn classes(&self) -> &KnownUniformity {
        &self.classes
    }

    /// Propagates changes to a fixed point.
    pub(super) fn settle(&mut self) {
        while let Some(node) = self.raised.pop() {
            for at in self.users.starts[node]..self.users.starts[node + 1] {
                let user = self.users.list[at];
                match user.checked_sub(self.classes.values.len()) {
                    None => self.look_at(Value(user as u32)),
                    // Only values are assigned to variables.
                    Some(var) => self.raise_var(Var(var as u32), self.classes.values[node]),
                }
            }
        }
    }

    /// Returns the final facts.
    pub(super) fn into_uniformity(self, partial: impl Fn(Var) -> bool) -> Uniformity {
        let KnownUniformity { values, vars, .. } = self.classes;
        let vars = vars.into_iter().zip(0..);
        let vars = vars.map(|(class, var)| VarUniformity { class, partial: partial(Var(var)) });
        Uniformity { values, vars: vars.collect() }
    }

    fn look_at(&mut self, value: Value) {
        let class = transfer::class(self.kir, value, &self.classes);
        if class > self.classes.values[value.index()] {
            self.classes.values[value.index()] = class;
            self.raised.push(value.index());
        }
    }

    /// Raises the class of a variable to at least this one.
    pub(super) fn raise_var(&mut self, var: Var, class: Variability) {
        if class > self.classes.vars[var.index()] {
            self.classes.vars[var.index()] = class;
            self.raised.push(self.classes.values.len() + var.index());
        }
    }
}

impl Users {
    fn new(kir: &Kir) -> Self {
        let nodes = kir.values.len() + kir.vars.len();
        let mut starts = vec![0; nodes + 1];
        for_each_edge(kir, &mut |from, _| starts[from] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut list = vec![0; sum];
        // Fills each range from its end downwards, after which `starts` has the starts.
        for_each_edge(kir, &mut |from, to| {
            starts[from] -= 1;
            list[starts[from]] = to;
        });
        Self { starts, list }
    }
}

fn for_each_edge(kir: &Kir, visit: &mut dyn FnMut(usize, usize)) {
    let vars = kir.values.len();
    for (user, definition) in kir.values.iter().enumerate() {
        definition.inst.for_each_operand(|operand| visit(operand.index(), user));
        if let Inst::Get(var) = definition.inst {
            visit(vars + var.index(), user);
        }
    }
    for_each_stmt(&kir.body, &mut |stmt| {
        if let Stmt::Set(var, value) = stmt {
            visit(value.index(), vars + var.index());
        }
    });
}
