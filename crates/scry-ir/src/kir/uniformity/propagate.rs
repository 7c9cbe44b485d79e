//! Propagates variability from values and variables to their users, along def-use edges.

use super::Variability::{self, Uniform};
use super::transfer::{self, CurrentUniformity};
use super::{ComparedInvocations, Uniformity, VarUniformity};
use crate::kir::{Inst, Kir, Stmt, Value, Var, for_each_stmt};

/// The variability of values and variables so far. Each is a node of the def-use graph; the values
/// are the first nodes.
pub(super) struct Flow<'a> {
    kir: &'a Kir,
    current: CurrentUniformity,
    users: Users,
    /// The worklist: nodes whose users must be processed again.
    raised: Vec<usize>,
}

/// For each node, the nodes whose variability depends on it.
struct Users {
    /// Start of each node's users in `list`; at the end, the length of `list`.
    starts: Vec<usize>,
    list: Vec<usize>,
}

impl<'a> Flow<'a> {
    /// Initialises the variability of each value as if its operands were uniform, and of each
    /// variable as uniform. Nodes that are not uniform enter the worklist.
    pub(super) fn new(kir: &'a Kir, compared: ComparedInvocations) -> Self {
        let values = vec![Uniform; kir.values.len()];
        let vars = vec![Uniform; kir.vars.len()];
        let current = CurrentUniformity { values, vars, compared };
        let mut flow = Self { kir, current, users: Users::new(kir), raised: Vec::new() };
        (0..kir.values.len() as u32).for_each(|value| flow.update(Value(value)));
        flow
    }

    /// Returns the variability so far.
    pub(super) fn current(&self) -> &CurrentUniformity {
        &self.current
    }

    /// Propagates changes to a fixed point.
    pub(super) fn propagate(&mut self) {
        while let Some(node) = self.raised.pop() {
            for at in self.users.starts[node]..self.users.starts[node + 1] {
                let user = self.users.list[at];
                // Nodes after the values are variables.
                match user.checked_sub(self.current.values.len()) {
                    None => self.update(Value(user as u32)),
                    // The node is a value, which is assigned to the variable.
                    Some(var) => self.raise_var(Var(var as u32), self.current.values[node]),
                }
            }
        }
    }

    /// Returns the result of the analysis. `partial` says whether a variable is partially assigned.
    pub(super) fn into_uniformity(self, partial: impl Fn(Var) -> bool) -> Uniformity {
        let CurrentUniformity { values, vars, .. } = self.current;
        let vars = vars.into_iter().zip(0..);
        let vars = vars.map(|(variability, var)| VarUniformity {
            variability,
            partially_assigned: partial(Var(var)),
        });
        Uniformity { values, vars: vars.collect() }
    }

    /// Recomputes the variability of a value from its operands.
    fn update(&mut self, value: Value) {
        let variability = transfer::variability(self.kir, value, &self.current);
        if variability > self.current.values[value.index()] {
            self.current.values[value.index()] = variability;
            self.raised.push(value.index());
        }
    }

    /// Raises the variability of a variable to at least this one.
    pub(super) fn raise_var(&mut self, var: Var, variability: Variability) {
        if variability > self.current.vars[var.index()] {
            self.current.vars[var.index()] = variability;
            self.raised.push(self.current.values.len() + var.index());
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

/// Calls `visit` for each edge of the def-use graph: with a node, and with one of its users.
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
