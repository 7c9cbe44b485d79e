//! The body of the entry point: phases between barriers.

use super::{Context, Generator};
use crate::exact::Rule;
use crate::tree::{Block, Expr, Global, LoopKind, Place, Space, Stmt};
use crate::types::Type;

impl Generator {
    /// Returns the body of the entry point.
    pub(super) fn entry_point(&mut self, workgroup_size: [u32; 3]) -> Block {
        let lanes = workgroup_size.iter().product::<u32>() as usize;
        self.total_iterations = 0;
        self.context = Context { iterations: 1, ..Context::default() };
        self.reset_scope();
        self.add_counter("lane", lanes);
        for root in ["me", "group.x", "groups.x", "groups.y", "id.x", "id.z"] {
            self.add_value(root, Type::U32);
        }
        self.add_outputs();
        let mut body = Block::new();
        for _ in 0..self.random.between(1, 3) {
            self.statements(&mut body);
            self.exchange(&mut body, lanes);
        }
        self.freeze(&mut body);
        self.context.may_return = true;
        self.statements(&mut body);
        self.context.may_return = false;
        self.store_all(&mut body);
        body
    }

    /// Adds loads of the atomics of workgroup memory, which no later statement modifies.
    fn freeze(&mut self, body: &mut Block) {
        self.frozen = true;
        let atomics = self.globals_in(Space::Workgroup).into_iter().filter(|global| global.atomic);
        let mut loads = Block::new();
        for global in atomics {
            if let Type::Array(element, len) = &global.ty {
                let (name, at) = (self.new_name("v"), self.random.below(*len));
                let load = format!("let {name} = atomicLoad(&{}[{at}]);", global.name);
                loads.push(Stmt::Text(load));
                self.add_value(name, (**element).clone());
            }
        }
        if !loads.is_empty() {
            body.push(Stmt::Text("workgroupBarrier();".to_owned()));
            body.extend(loads);
        }
    }

    fn statements(&mut self, body: &mut Block) {
        for _ in 0..self.random.between(1, 4) {
            let statement = self.statement();
            body.push(statement);
        }
    }

    /// Returns the global variables of an address space.
    fn globals_in(&self, space: Space) -> Vec<Global> {
        self.globals.iter().filter(|global| global.space == space).cloned().collect()
    }

    fn plain_outputs(&self) -> Vec<Global> {
        self.globals_in(Space::Output).into_iter().filter(|global| !global.atomic).collect()
    }

    /// Adds the elements of the outputs that the invocation owns to the scope.
    fn add_outputs(&mut self) {
        for global in self.plain_outputs() {
            for slot in 0..global.count {
                self.add_writable(own_element(&global, slot), global.ty.clone());
            }
        }
    }

    /// Adds stores to all elements of the outputs that the invocation owns.
    fn store_all(&mut self, body: &mut Block) {
        for global in self.plain_outputs() {
            for slot in 0..global.count {
                let place = Place::variable(own_element(&global, slot));
                let value = self.storable_value(&global.ty, 3);
                body.push(Stmt::Assign { place, operator: "=", value });
            }
        }
    }

    /// Adds an exchange through workgroup memory, sometimes in a loop: each invocation writes its
    /// own slot, and after a barrier reads the slots of others, until the next barrier.
    fn exchange(&mut self, body: &mut Block, lanes: usize) {
        let iterations = self.random.between(2, 3);
        if self.random.one_in(4) && self.spend_iterations(iterations) {
            let counter = self.new_name("k");
            let outside = self.scope.len();
            self.add_counter(&counter, iterations);
            self.context.iterations *= iterations;
            let mut inner = Block::new();
            self.exchange_once(&mut inner, lanes);
            self.context.iterations /= iterations;
            self.scope.truncate(outside);
            let kind = LoopKind::For;
            body.push(Stmt::Loop { kind, counter, iterations, condition: None, body: inner });
        } else {
            let outside = self.scope.len();
            self.exchange_once(body, lanes);
            // WGSL keeps the declarations in scope. But they include workgroup memory, which must
            // not be read after the barrier.
            self.scope.truncate(outside);
        }
    }

    /// Sometimes makes a statement conditional, so that only some invocations execute it.
    fn sometimes_conditional(&mut self, statement: Stmt) -> Stmt {
        if !self.random.one_in(4) {
            return statement;
        }
        let condition = self.value(&Type::BOOL, 2);
        let then_block = vec![statement];
        Stmt::If { condition, then_block, else_block: Block::new(), required: false }
    }

    fn exchange_once(&mut self, body: &mut Block, lanes: usize) {
        let shared: Vec<Global> =
            self.globals_in(Space::Workgroup).into_iter().filter(|global| !global.atomic).collect();
        if shared.is_empty() {
            return;
        }
        for global in &shared {
            match &global.ty {
                Type::Array(element, _) => {
                    let own = self.own_slot(lanes);
                    let place = Place { root: global.name.clone(), path: vec![own] };
                    let value = self.storable_value(element, 3);
                    let write = Stmt::Assign { place, operator: "=", value };
                    let write = self.sometimes_conditional(write);
                    body.push(write);
                }
                ty => {
                    let value = self.storable_value(&ty.clone(), 2);
                    body.push(assign_in_first_lane(&global.name, value));
                }
            }
        }
        body.push(Stmt::Text("workgroupBarrier();".to_owned()));
        for global in &shared {
            self.add_value(global.name.clone(), global.ty.clone());
        }
        for global in &shared {
            if !matches!(global.ty, Type::Array(..)) && self.random.one_in(2) {
                let name = self.new_name("v");
                let load = format!("let {name} = workgroupUniformLoad(&{});", global.name);
                body.push(Stmt::Text(load));
                self.add_value(name, global.ty.clone());
            }
        }
        self.statements(body);
        body.push(Stmt::Text("workgroupBarrier();".to_owned()));
    }
}

/// Returns the text for an invocation's own element of an output.
pub(super) fn own_element(global: &Global, slot: usize) -> String {
    format!("{}[{} * {}u + {slot}u]", global.name, global.owner, global.count)
}

/// Returns an assignment that one invocation of the workgroup executes.
fn assign_in_first_lane(name: &str, value: Expr) -> Stmt {
    let lane = Expr::read(Type::U32, Place::variable("lane"));
    let operands = vec![lane, Expr::uint(0)];
    let condition = Expr::op(Type::BOOL, "($0 == $1)", Rule::Largest, operands);
    let place = Place::variable(name);
    let then_block = vec![Stmt::Assign { place, operator: "=", value }];
    Stmt::If { condition, then_block, else_block: Block::new(), required: true }
}
