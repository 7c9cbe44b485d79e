//! How deeply control flow nests once a driver has replaced calls and jumps by structure.
//!
//! Drivers that have neither calls nor jumps put the body of each function in the place of its
//! calls, and what follows a conditional `return` or `continue` under the opposite condition, so
//! that a row of early returns nests as deeply as it is long. So do the cases of a `switch`. This
//! is what the measure counts, before a driver has simplified anything.

use naga::{Block, Module, Statement, SwitchCase};

/// The deepest nesting of conditions in a kernel, or of loops if that is deeper.
pub(crate) fn depth(module: &Module) -> u32 {
    let mut functions = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        let peak = peak(&function.body, &functions);
        functions.push(peak);
    }
    let entries = module.entry_points.iter();
    let peaks = entries.map(|entry| peak(&entry.function.body, &functions));
    peaks.map(|peak| peak.conditions.max(peak.loops)).max().unwrap_or(0)
}

/// The deepest nesting of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Depth {
    conditions: u32,
    loops: u32,
}

fn peak(body: &Block, functions: &[Depth]) -> Depth {
    let mut walk = Walk { functions, peak: Depth::default() };
    walk.block(body, Depth::default(), Scope { in_loop: false, in_switch: false });
    walk.peak
}

/// What jumps in a block leave.
#[derive(Debug, Clone, Copy)]
struct Scope {
    /// There is a loop around the block.
    in_loop: bool,
    /// A `break` leaves a `switch`.
    in_switch: bool,
}

struct Walk<'a> {
    /// The nesting of the functions that stand before this one.
    functions: &'a [Depth],
    peak: Depth,
}

impl Walk<'_> {
    fn reach(&mut self, at: Depth) {
        self.peak.conditions = self.peak.conditions.max(at.conditions);
        self.peak.loops = self.peak.loops.max(at.loops);
    }

    /// Walks a block that begins at a depth, and returns the depth at which it ends.
    fn block(&mut self, block: &Block, mut at: Depth, scope: Scope) -> Depth {
        let deeper = |at: Depth, by: u32| Depth { conditions: at.conditions + by, ..at };
        for statement in block {
            match statement {
                Statement::Block(inner) => at = self.block(inner, at, scope),
                Statement::If { accept, reject, .. } => {
                    for arm in [accept, reject] {
                        self.block(arm, deeper(at, 1), scope);
                    }
                    at = deeper(at, u32::from(nests(statement, scope)));
                }
                Statement::Switch { cases, .. } => {
                    let shares_body = |case: &SwitchCase| case.fall_through && case.body.is_empty();
                    let cases = cases.iter().filter(|case| !shares_body(case));
                    for (case, before) in cases.zip(1..) {
                        let inside = Scope { in_switch: true, ..scope };
                        self.block(&case.body, deeper(at, before), inside);
                    }
                    at = deeper(at, u32::from(nests(statement, scope)));
                }
                Statement::Loop { body, continuing, .. } => {
                    let inside = Depth { loops: at.loops + 1, ..at };
                    let within = Scope { in_loop: true, in_switch: false };
                    let end = self.block(body, inside, within);
                    self.block(continuing, end, within);
                    at = deeper(at, u32::from(nests(statement, scope)));
                }
                Statement::Call { function, .. } => {
                    let callee = self.functions.get(function.index()).copied().unwrap_or_default();
                    self.reach(Depth {
                        conditions: at.conditions + callee.conditions,
                        loops: at.loops + callee.loops,
                    });
                }
                _ => {}
            }
            self.reach(at);
        }
        self.reach(at);
        at
    }
}

/// Whether what follows a statement is nested because the statement may leave: by a `return`, which
/// within loops leaves the loops first, by a `continue`, or by the `break` of a `switch`.
fn nests(statement: &Statement, scope: Scope) -> bool {
    let any = |block: &Block, scope| block.iter().any(|inner| nests(inner, scope));
    match statement {
        Statement::Return { .. } => !scope.in_loop,
        Statement::Continue => true,
        Statement::Break => scope.in_switch,
        Statement::Block(block) => any(block, scope),
        Statement::If { accept, reject, .. } => any(accept, scope) || any(reject, scope),
        Statement::Switch { cases, .. } => {
            let inside = Scope { in_switch: false, ..scope };
            cases.iter().any(|case| any(&case.body, inside))
        }
        Statement::Loop { body, continuing, .. } => {
            !scope.in_loop && (returns(body) || returns(continuing))
        }
        _ => false,
    }
}

fn returns(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Return { .. } => true,
        Statement::Block(block) => returns(block),
        Statement::If { accept, reject, .. } => returns(accept) || returns(reject),
        Statement::Switch { cases, .. } => cases.iter().any(|case| returns(&case.body)),
        Statement::Loop { body, continuing, .. } => returns(body) || returns(continuing),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depth of a kernel; `x` is a number that is not known.
    fn depth_of(functions: &str, body: &str) -> u32 {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
            {functions}
            @compute @workgroup_size(1) fn main() {{ let x = data[0]; {body} }}"
        );
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&source)));
        depth(&module)
    }

    #[test]
    fn conditions_and_loops_nest_apart() {
        assert_eq!(depth_of("", "data[1] = x;"), 0);
        assert_eq!(
            depth_of("", "if x > 1u { if x > 2u { data[1] = x; } } else { data[2] = x; }"),
            2
        );
        assert_eq!(depth_of("", "if x > 1u { data[1] = x; } if x > 2u { data[2] = x; }"), 1);
        let loops =
            "for (var i = 0u; i < x; i++) { for (var j = 0u; j < x; j++) { data[j] = i; } }";
        assert_eq!(depth_of("", loops), 2);
    }

    #[test]
    fn what_follows_jumps_is_nested() {
        let row = |jump: &str| format!("if x == 7u {{ data[1] = x; {jump} }}").repeat(30);
        assert_eq!(depth_of("", &row("return;")), 30);
        let function = format!("fn f(x: u32) -> u32 {{ {} return 3u; }}", row("return 1u;"));
        assert_eq!(depth_of(&function, "if x > 1u { data[2] = f(x); }"), 31);
        let looped = |jump| format!("for (var i = 0u; i < x; i++) {{ {} }}", row(jump));
        assert_eq!(depth_of("", &looped("continue;")), 30);
        assert_eq!(depth_of("", &looped("break;")), 1);
        assert_eq!(depth_of("", &looped("return;")), 1);
        assert_eq!(depth_of("", &looped("return;").repeat(20)), 20);
        let switched = format!("switch x {{ case 1u: {{ {} }} default: {{}} }}", row("break;"));
        assert_eq!(depth_of("", &switched), 31);
    }

    #[test]
    fn cases_nest_with_those_before() {
        let cases: String = (0..30).map(|x| format!("case {x}u: {{ data[1] = {x}u; }}")).collect();
        assert_eq!(depth_of("", &format!("switch x {{ {cases} default: {{}} }}")), 31);
        let selectors: String = (0..30).map(|x| format!("{x}u, ")).collect();
        let switch =
            format!("switch x {{ case {selectors} 77u: {{ data[1] = x; }} default: {{}} }}");
        assert_eq!(depth_of("", &switch), 2);
    }
}
