//! The contents of a function's variables at a point of its control flow.

use super::graph::{Graph, Node};

/// The variables assigned on one path, and their contents.
pub(super) type Changes = Vec<(u32, Node)>;

/// The variables of a function, with a log to restore earlier contents.
pub(super) struct Variables {
    current: Vec<Node>,
    /// Assignments, with the previous contents.
    log: Vec<(u32, Node)>,
    /// For each variable the latest call of `changes` that returned it, by `calls`.
    returned_by: Vec<u32>,
    /// Number of calls of `changes`.
    calls: u32,
    /// Remaining number of assignments that joins may process.
    budget: usize,
}

impl Variables {
    pub(super) fn new(current: Vec<Node>, budget: usize) -> Self {
        let returned_by = vec![0; current.len()];
        Self { current, log: Vec::new(), returned_by, calls: 0, budget }
    }

    pub(super) fn get(&self, variable: u32) -> Node {
        self.current[variable as usize]
    }

    pub(super) fn set(&mut self, variable: u32, node: Node) {
        let before = std::mem::replace(&mut self.current[variable as usize], node);
        self.log.push((variable, before));
    }

    /// Returns a mark for the current state.
    pub(super) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Returns the variables assigned since a mark, each once, with their contents.
    pub(super) fn changes(&mut self, mark: usize) -> Changes {
        let Some(budget) = self.budget.checked_sub(self.log.len() - mark) else {
            self.budget = 0;
            return Vec::new();
        };
        self.budget = budget;
        self.calls += 1;
        let mut changes = Vec::new();
        for &(variable, _) in &self.log[mark..] {
            let returned_by = &mut self.returned_by[variable as usize];
            if std::mem::replace(returned_by, self.calls) != self.calls {
                changes.push((variable, self.current[variable as usize]));
            }
        }
        changes
    }

    /// Restores the state at a mark.
    pub(super) fn restore(&mut self, mark: usize) {
        for (variable, before) in self.log.drain(mark..).rev() {
            self.current[variable as usize] = before;
        }
    }

    /// Joins several paths from the current state. A path without changes to a variable leaves it.
    pub(super) fn merge(&mut self, graph: &mut Graph, paths: &[Changes]) {
        let mut all: Changes = paths.iter().flatten().copied().collect();
        all.sort_unstable();
        for changes in all.chunk_by(|a, b| a.0 == b.0) {
            let variable = changes[0].0;
            let mut nodes: Vec<Node> = changes.iter().map(|change| change.1).collect();
            if nodes.len() < paths.len() {
                nodes.push(self.get(variable));
            }
            let node = graph.join(&nodes);
            self.set(variable, node);
        }
    }

    /// Returns the remaining budget; 0 if it was exceeded.
    pub(super) fn remaining_budget(&self) -> usize {
        self.budget
    }
}
