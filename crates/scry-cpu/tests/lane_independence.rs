//! Tests that results do not depend on lockstep execution: random kernels run in workgroups of one
//! invocation, which cannot diverge, and in workgroups of other shapes.

use std::fmt::Write;

use scry_cpu::{CancelToken, Code, Launch, Machine, Memory};
use scry_ir::Program;
use scry_ir::kir::KirOptions;

/// Number of invocations.
const INVOCATIONS: u32 = 700;
/// Output words per invocation.
const WORDS: u32 = 8;
/// Workgroup shapes that are compared with single invocations.
const SHAPES: [[u32; 3]; 6] =
    [[64, 1, 1], [7, 3, 2], [16, 4, 1], [300, 1, 1], [32, 8, 4], [1, 33, 1]];
/// Number of kernels. Together they run for about a second.
const SEEDS: u64 = 60;
/// Maximum nesting of statements.
const MAX_DEPTH: u32 = 4;

/// A generator of random statements.
struct Writer {
    state: u64,
    text: String,
    /// Number of loop counters so far, which have unique names.
    counters: u32,
    /// Remaining number of statements.
    remaining: u32,
    /// Number of enclosing loops.
    loops: u32,
}

impl Writer {
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn one_of(&mut self, list: &[&'static str]) -> &'static str {
        list[self.below(list.len() as u64) as usize]
    }

    fn variable(&mut self) -> &'static str {
        self.one_of(&["a", "b", "c", "d"])
    }

    fn value(&mut self, depth: u32) -> String {
        if depth == 0 || self.below(4) == 0 {
            return match self.below(6) {
                0 => format!("{}u", self.below(9)),
                1 => "i".to_owned(),
                2 => format!("data[{}]", self.below(8)),
                _ => self.variable().to_owned(),
            };
        }
        let (x, y) = (self.value(depth - 1), self.value(depth - 1));
        match self.below(14) {
            0..6 => format!("({x} {} {y})", self.one_of(&["+", "-", "*", "&", "|", "^"])),
            6 => format!("({x} % ({y} | 1u))"),
            7 => format!("({x} >> ({y} & 15u))"),
            8 => format!("min({x}, {y})"),
            9 => format!("max({x}, {y})"),
            10 => format!("data[{x} & 255u]"),
            11 => format!("m[{x} & 7u]"),
            12 => format!("out[i * 8u + ({x} & 3u)]"),
            _ => format!("select({x}, {y}, {})", self.condition(depth - 1)),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        let (x, y) = (self.value(depth), self.value(depth));
        let compare = self.one_of(&["<", "<=", ">", ">=", "==", "!="]);
        match self.below(4) {
            0 => format!("({x} & 3u) {compare} ({y} & 3u)"),
            1 => format!("i {compare} {}u", self.below(u64::from(INVOCATIONS))),
            _ => format!("({x} & 15u) {compare} {}u", self.below(16)),
        }
    }

    fn block(&mut self, depth: u32) {
        self.text.push_str("{\n");
        for _ in 0..1 + self.below(4) {
            if self.remaining > 0 {
                self.remaining -= 1;
                self.statement(depth);
            }
        }
        self.text.push_str("}\n");
    }

    fn statement(&mut self, depth: u32) {
        let kind = if depth == 0 { self.below(5) } else { self.below(12) };
        let value = self.value(2);
        match kind {
            0 | 1 => {
                let variable = self.variable();
                let _ = writeln!(self.text, "{variable} = {value};");
            }
            2 => {
                let index = self.value(1);
                let _ = writeln!(self.text, "m[{index} & 7u] = {value};");
            }
            3 => {
                let index = self.value(1);
                let _ = writeln!(self.text, "out[i * 8u + ({index} & 3u)] = {value};");
            }
            4 => self.jump(),
            5..8 => {
                let condition = self.condition(1);
                let _ = write!(self.text, "if {condition} ");
                self.block(depth - 1);
                if self.below(2) == 0 {
                    self.text.push_str("else ");
                    self.block(depth - 1);
                }
            }
            8 => self.call(),
            9 => self.switch(depth),
            10 => self.for_loop(depth),
            _ => self.repeat(depth),
        }
    }

    /// Adds a conditional `break`, `continue` or `return`.
    fn jump(&mut self) {
        let condition = self.condition(1);
        let jumps: &[&str] = if self.loops > 0 {
            &["break;", "break;", "continue;", "continue;", "return;"]
        } else {
            &["return;"]
        };
        let jump = self.one_of(jumps);
        let _ = writeln!(self.text, "if {condition} {{ {jump} }}");
    }

    fn call(&mut self) {
        let (x, y, to) = (self.value(1), self.value(1), self.variable());
        let _ = writeln!(self.text, "{to} = callee({x}, {y});");
    }

    fn switch(&mut self, depth: u32) {
        let selector = self.value(1);
        let _ = writeln!(self.text, "switch {selector} & 3u {{ case 0, 2: ");
        // A `continue` in a case refers to the loop around the switch.
        self.block(depth - 1);
        self.text.push_str("case 1: ");
        self.block(depth - 1);
        self.text.push_str("default: ");
        self.block(depth - 1);
        self.text.push_str("}\n");
    }

    fn for_loop(&mut self, depth: u32) {
        let (k, end) = (self.counters, self.value(1));
        self.counters += 1;
        let _ = write!(self.text, "for (var k{k} = 0u; k{k} < ({end} & 7u); k{k}++) ");
        self.loops += 1;
        self.block(depth - 1);
        self.loops -= 1;
    }

    fn repeat(&mut self, depth: u32) {
        let k = self.counters;
        self.counters += 1;
        let _ = writeln!(self.text, "var k{k} = 0u;\nloop {{");
        self.loops += 1;
        self.block(depth - 1);
        self.loops -= 1;
        let (end, to, value) = (self.condition(1), self.variable(), self.value(1));
        let _ = writeln!(
            self.text,
            "continuing {{ k{k}++; {to} = {value}; break if k{k} > 5u || {end}; }} }}"
        );
    }
}

/// Returns the statements of a kernel.
fn body(seed: u64) -> String {
    let mut writer =
        Writer { state: seed, text: String::new(), counters: 0, remaining: 40, loops: 0 };
    while writer.remaining > 0 {
        writer.remaining -= 1;
        writer.statement(MAX_DEPTH);
    }
    writer.text
}

fn source(body: &str, [width, height, depth]: [u32; 3]) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read> data: array<u32, 256>;
         @group(0) @binding(1) var<storage, read_write> out: array<u32>;
         fn callee(x: u32, y: u32) -> u32 {{
             var sum = x;
             for (var k = 0u; k < (y & 7u); k++) {{
                 if (sum & 31u) == 9u {{ return sum + k; }}
                 sum = sum * 3u + data[(sum + k) & 255u];
             }}
             return sum ^ y;
         }}
         @compute @workgroup_size({width}, {height}, {depth})
         fn main(
             @builtin(global_invocation_id) id: vec3u,
             @builtin(num_workgroups) groups: vec3u,
         ) {{
             let i = (id.z * {height}u + id.y) * ({width}u * groups.x) + id.x;
             if i >= {INVOCATIONS}u {{ return; }}
             var a = i * 3u + 1u; var b = data[i & 255u]; var c = 5u; var d: u32;
             var m: array<u32, 8>;
             {body}
             out[i * 8u + 4u] = a; out[i * 8u + 5u] = b;
             out[i * 8u + 6u] = c; out[i * 8u + 7u] = d + m[i & 7u];
         }}"
    )
}

/// Returns the output of a kernel in workgroups of this shape.
fn run(machine: &Machine, source: &str, shape: [u32; 3]) -> Vec<u8> {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let kir =
        program.to_kir(&KirOptions { checked: true }).expect("the kernel is within all limits");
    let code = Code::compile(&kir).expect("the kernel is within all limits");
    let data: Vec<u8> = (0..256u32).flat_map(|n| (n * n * 7 % 31).to_le_bytes()).collect();
    let size = (INVOCATIONS * WORDS * 4) as usize;
    let (input, output) = (
        Memory::new(data.len()).expect("memory can be allocated"),
        Memory::new(size).expect("memory can be allocated"),
    );
    let groups = INVOCATIONS.div_ceil(shape.iter().product());
    let launch = Launch {
        code: &code,
        bindings: &[input.whole(), output.whole()],
        groups: [groups, 1, 1],
        immediates: &[],
    };
    let mut out = vec![0; size];
    // SAFETY: both memories are alive, and no other thread uses them.
    unsafe {
        input.whole().write(&data);
        machine.run(&launch, &CancelToken::default()).expect("the launch is not cancelled");
        output.whole().read(&mut out);
    }
    out
}

/// Returns the first invocation whose results differ between the shape and single invocations.
fn difference(machine: &Machine, body: &str, shape: [u32; 3]) -> Option<u32> {
    let single = run(machine, &source(body, [1, 1, 1]), [1, 1, 1]);
    let lockstep = run(machine, &source(body, shape), shape);
    (0..INVOCATIONS).find(|i| {
        let words = (i * WORDS * 4) as usize..((i + 1) * WORDS * 4) as usize;
        single[words.clone()] != lockstep[words]
    })
}

#[test]
fn results_do_not_depend_on_workgroup_shape() {
    let machine = Machine::new(2);
    for seed in 0..SEEDS {
        let body = body(seed);
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let differs = difference(&machine, &body, shape);
        assert_eq!(differs, None, "seed {seed}, {shape:?}:\n{body}");
    }
}
