//! Linearised kernels, run by a small interpreter of the new entry point: every workgroup of the
//! launch runs exactly once with its own ids, and every excess workgroup exits.

use std::collections::{HashMap, HashSet};

use rspirv::dr::{Function, Instruction, Module, Operand};
use rspirv::spirv::{BuiltIn, Decoration, Op};
use scry_ir::{LinearisedGrid, SpirvOptions};

use crate::support::{CHECKED, corpus, id, load, parse, sources};

const LINEARISED: SpirvOptions = SpirvOptions { linearised: true, ..CHECKED };

/// The workgroup size of the kernel `gaps`, and the invocation that is executed.
const SIZE: [u32; 3] = [8, 4, 2];
const LOCAL: [u32; 3] = [5, 2, 1];
const LOCAL_INDEX: u32 = 53;

fn params(groups: [u32; 3], width: u32, height: u32) -> LinearisedGrid {
    let total = groups.iter().product::<u32>();
    let rows = total.div_ceil(width);
    LinearisedGrid {
        groups,
        width,
        height,
        rows,
        last_row_len: total - (rows - 1) * width,
        padding: 0,
    }
}

/// The kernel `gaps` on a linearised grid: it has a structure of builtins and one more builtin.
fn gaps() -> Module {
    let all = sources(&corpus(""));
    let (name, source) = all.iter().find(|(name, _)| name == "sparse_bindings").unwrap();
    load(&parse(name, source).to_spirv_with_naga(&LINEARISED).unwrap())
}

#[test]
fn every_workgroup_runs_once() {
    let module = gaps();
    for (groups, width, height) in [
        ([1, 1, 1], 1, 1),
        ([7, 1, 1], 3, 3),
        ([7, 1, 1], 3, 2),
        ([10, 3, 2], 8, 8),
        ([10, 3, 2], 60, 1),
        ([2, 1, 31], 4, 5),
        ([1, 19, 3], 7, 4),
        ([6, 5, 4], 5, 5),
    ] {
        let params = params(groups, width, height);
        let depth = params.rows.div_ceil(height);
        let mut seen = HashSet::new();
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    if let Some(group) = play(&module, params, [x, y, z]) {
                        assert!(seen.insert(group), "{group:?} twice in {params:?}");
                        assert!((0..3).all(|i| group[i] < groups[i]), "{group:?} of {params:?}");
                    }
                }
            }
        }
        assert_eq!(seen.len() as u32, groups.iter().product::<u32>(), "{params:?}");
    }
}

/// Runs one physical workgroup; returns the workgroup id that the kernel saw, if it was called.
fn play(module: &Module, params: LinearisedGrid, physical: [u32; 3]) -> Option<[u32; 3]> {
    let mut machine = Machine::new(module, params, physical);
    let arguments = machine.run_entry()?;
    let vec = |value: &Value| [0, 1, 2].map(|at| value.parts()[at].scalar());
    let ids = arguments[0].parts();
    let group = vec(&ids[0]);
    let global = [0, 1, 2].map(|i| group[i] * SIZE[i] + LOCAL[i]);
    assert_eq!(vec(&ids[1]), global);
    assert_eq!(ids[2].scalar(), LOCAL_INDEX);
    assert_eq!(vec(&ids[3]), params.groups);
    assert_eq!(vec(&arguments[1]), LOCAL);
    Some(group)
}

#[test]
fn parameters_follow_the_last_binding() {
    for (name, source) in sources(&corpus("")) {
        let program = parse(&name, &source);
        let buffers = program.interface().bindings.len() as u32;
        let slots = |options: &SpirvOptions| {
            let module = load(&program.to_spirv_with_naga(options).unwrap());
            let decorations = module.annotations.iter();
            let mut slots: Vec<u32> = decorations
                .filter(|i| i.operands.get(1) == Some(&Operand::Decoration(Decoration::Binding)))
                .map(|i| i.operands[2].unwrap_literal_bit32())
                .collect();
            slots.sort_unstable();
            slots
        };
        assert_eq!(slots(&CHECKED), (0..buffers).collect::<Vec<_>>(), "{name}");
        assert_eq!(slots(&LINEARISED), (0..=buffers).collect::<Vec<_>>(), "{name}");
    }
}

#[derive(Clone, Debug)]
enum Value {
    Scalar(u32),
    Composite(Vec<Value>),
}

impl Value {
    fn vec(parts: [u32; 3]) -> Self {
        Self::Composite(parts.map(Self::Scalar).to_vec())
    }

    fn scalar(&self) -> u32 {
        match self {
            Self::Scalar(value) => *value,
            Self::Composite(_) => panic!("a scalar, not {self:?}"),
        }
    }

    fn parts(&self) -> &[Value] {
        match self {
            Self::Composite(parts) => parts,
            Self::Scalar(_) => panic!("a composite, not {self:?}"),
        }
    }
}

/// Runs a linearised entry point.
struct Machine<'a> {
    module: &'a Module,
    values: HashMap<u32, Value>,
    called: Option<Vec<Value>>,
}

impl<'a> Machine<'a> {
    fn new(module: &'a Module, params: LinearisedGrid, physical: [u32; 3]) -> Self {
        let mut values = HashMap::new();
        for constant in &module.types_global_values {
            let value = match constant.class.opcode {
                Op::Constant => match constant.operands[0] {
                    Operand::LiteralBit32(value) => Value::Scalar(value),
                    _ => continue,
                },
                Op::ConstantComposite => {
                    let parts = constant.operands.iter().filter_map(id);
                    Value::Composite(parts.map(|part| values_of(&values, part)).collect())
                }
                _ => continue,
            };
            values.insert(constant.result_id.unwrap(), value);
        }
        // Pointers are represented by their pointees: inputs by their builtin, the uniform by its
        // name.
        for annotation in &module.annotations {
            let Some(Operand::BuiltIn(builtin)) = annotation.operands.get(2) else {
                continue;
            };
            let value = match builtin {
                BuiltIn::WorkgroupId => Value::vec(physical),
                BuiltIn::LocalInvocationId => Value::vec(LOCAL),
                BuiltIn::LocalInvocationIndex => Value::Scalar(LOCAL_INDEX),
                other => panic!("an input {other:?}"),
            };
            values.insert(id(&annotation.operands[0]).unwrap(), value);
        }
        let name = |i: &&Instruction| {
            i.class.opcode == Op::Name
                && i.operands[1] == Operand::LiteralString("fold_params".into())
        };
        let uniform = module.debug_names.iter().find(name).unwrap();
        let rest = [params.width, params.height, params.rows, params.last_row_len, 0];
        let mut members = vec![Value::vec(params.groups)];
        members.extend(rest.map(Value::Scalar));
        let wrapper = Value::Composite(vec![Value::Composite(members)]);
        values.insert(id(&uniform.operands[0]).unwrap(), wrapper);
        Self { module, values, called: None }
    }

    /// Runs the entry point; returns the arguments of its call of the kernel, if it is reached.
    fn run_entry(&mut self) -> Option<Vec<Value>> {
        let entry = id(&self.module.entry_points[0].operands[1]).unwrap();
        let function = self.function(entry);
        self.run(function);
        self.called.take()
    }

    fn function(&self, id: u32) -> &'a Function {
        let all = self.module.functions.iter();
        let mut all = all.filter(|f| f.def.as_ref().unwrap().result_id == Some(id));
        all.next().unwrap()
    }

    fn run(&mut self, function: &Function) -> Option<Value> {
        let mut block = &function.blocks[0];
        loop {
            let mut next = None;
            for instruction in &block.instructions {
                let of = |at: usize| id(&instruction.operands[at]).unwrap();
                match instruction.class.opcode {
                    Op::Return => return None,
                    Op::ReturnValue => return Some(self.get(of(0))),
                    Op::Branch => next = Some(of(0)),
                    Op::BranchConditional => {
                        let yes = self.get(of(0)).scalar() != 0;
                        next = Some(of(if yes { 1 } else { 2 }));
                    }
                    Op::SelectionMerge => {}
                    _ => self.evaluate(instruction),
                }
            }
            let label = next.expect("a block ends in a branch");
            let mut blocks = function.blocks.iter();
            block = blocks.find(|b| b.label.as_ref().unwrap().result_id == Some(label)).unwrap();
        }
    }

    fn get(&self, id: u32) -> Value {
        values_of(&self.values, id)
    }

    fn evaluate(&mut self, instruction: &Instruction) {
        let ids: Vec<u32> = instruction.operands.iter().filter_map(id).collect();
        let value = match instruction.class.opcode {
            Op::Load => self.get(ids[0]),
            Op::AccessChain => match self.values.get(&ids[0]) {
                Some(base) => base.parts()[self.get(ids[1]).scalar() as usize].clone(),
                None => return, // A buffer of the kernel, which is not played.
            },
            Op::CompositeExtract => {
                let at = instruction.operands[1].unwrap_literal_bit32();
                self.get(ids[0]).parts()[at as usize].clone()
            }
            Op::CompositeConstruct => {
                Value::Composite(ids.iter().map(|&part| self.get(part)).collect())
            }
            Op::Select => self.get(ids[if self.get(ids[0]).scalar() != 0 { 1 } else { 2 }]),
            Op::FunctionCall => {
                let arguments: Vec<_> = ids[1..].iter().map(|&a| self.get(a)).collect();
                let function = self.function(ids[0]);
                if function.parameters.len() != 2 || self.returns_nothing(function) {
                    self.called = Some(arguments);
                    return;
                }
                for (parameter, argument) in function.parameters.iter().zip(arguments) {
                    self.values.insert(parameter.result_id.unwrap(), argument);
                }
                self.run(function).unwrap()
            }
            op => binary(op, &self.get(ids[0]), &self.get(ids[1])),
        };
        self.values.insert(instruction.result_id.unwrap(), value);
    }

    fn returns_nothing(&self, function: &Function) -> bool {
        let ty = function.def.as_ref().unwrap().result_type;
        let types = &self.module.types_global_values;
        types.iter().any(|t| t.result_id == ty && t.class.opcode == Op::TypeVoid)
    }
}

fn values_of(values: &HashMap<u32, Value>, id: u32) -> Value {
    values.get(&id).unwrap_or_else(|| panic!("%{id} has no value")).clone()
}

fn binary(op: Op, left: &Value, right: &Value) -> Value {
    let (Value::Scalar(l), Value::Scalar(r)) = (left, right) else {
        let pairs = left.parts().iter().zip(right.parts());
        return Value::Composite(pairs.map(|(l, r)| binary(op, l, r)).collect());
    };
    Value::Scalar(match op {
        Op::IAdd => l.wrapping_add(*r),
        Op::ISub => l.wrapping_sub(*r),
        Op::IMul => l.wrapping_mul(*r),
        Op::UDiv => l / r,
        Op::UMod => l % r,
        Op::IEqual => u32::from(l == r),
        Op::UGreaterThanEqual => u32::from(l >= r),
        Op::LogicalAnd => l & r,
        Op::LogicalOr => l | r,
        other => panic!("{other:?} in a linearised entry point"),
    })
}
