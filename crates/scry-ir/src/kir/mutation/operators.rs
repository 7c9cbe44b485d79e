//! Every operator that a kernel in WGSL can have.

use super::operator_names::{MEMORY, snake};
use crate::kir::{AtomicOp, BinaryOp, Builtin, GroupOperation, Reduction, Type, UnaryOp};

const SIGNED: [Type; 3] = [Type::I16, Type::I32, Type::I64];
const INTEGERS: [Type; 6] = [Type::I16, Type::U16, Type::I32, Type::U32, Type::I64, Type::U64];
const FLOATS: [Type; 3] = [Type::F16, Type::F32, Type::F64];
/// Types of `atomic<T>` with all operations; `F32` has some, in buffers.
const ATOMIC: [Type; 4] = [Type::I32, Type::U32, Type::I64, Type::U64];

/// Returns the names of all operators that kernels in WGSL can contain. Barriers are excluded: in
/// lockstep execution results are the same without them.
#[must_use]
pub fn operators() -> Vec<String> {
    let mut list = List(Vec::new());
    list.builtins();
    list.unary();
    list.binary();
    list.conversions();
    list.memory();
    list.atomics();
    list.subgroups();
    for element in ["f16", "f32"] {
        list.0.extend(["matrix_load", "matrix_store"].map(|op| format!("{op}.{element}")));
    }
    list.0.extend(["f16.f16", "f16.f32", "f32.f32"].map(|ty| format!("multiply_add.{ty}")));
    list.0
}

struct List(Vec<String>);

impl List {
    /// Adds a name for each type.
    fn typed(&mut self, name: &str, types: &[Type]) {
        self.0.extend(types.iter().map(|ty| format!("{name}.{ty}")));
    }

    fn builtins(&mut self) {
        let axes = ["x", "y", "z"];
        for name in ["local_id", "group_id", "group_count"] {
            self.0.extend(axes.map(|axis| format!("builtin.{name}.{axis}")));
        }
        let without_axis = [
            Builtin::SubgroupSize,
            Builtin::SubgroupLane,
            Builtin::SubgroupId,
            Builtin::SubgroupCount,
        ];
        self.0.extend(without_axis.map(|builtin| format!("builtin.{}", snake(builtin))));
        self.0.push("array_length".to_owned());
    }

    fn unary(&mut self) {
        use UnaryOp as Op;
        for op in [Op::Neg, Op::Abs, Op::Sign] {
            // `0u - x` is folded to `neg`.
            let integers = if op == Op::Neg { &INTEGERS[..] } else { &SIGNED };
            self.typed(&snake(op), integers);
            self.typed(&snake(op), &FLOATS);
        }
        let float_ops = [
            Op::Floor,
            Op::Ceil,
            Op::Round,
            Op::Trunc,
            Op::Fract,
            Op::Sqrt,
            Op::InverseSqrt,
            Op::Exp,
            Op::Exp2,
            Op::Log,
            Op::Log2,
            Op::Sin,
            Op::Cos,
            Op::Tan,
            Op::Asin,
            Op::Acos,
            Op::Atan,
            Op::Sinh,
            Op::Cosh,
            Op::Tanh,
            Op::Asinh,
            Op::Acosh,
            Op::Atanh,
            Op::FrexpFraction,
            Op::FrexpExponent,
        ];
        float_ops.iter().for_each(|op| self.typed(&snake(op), &FLOATS));
        let integer_ops = [
            Op::Not,
            Op::CountOnes,
            Op::LeadingZeros,
            Op::TrailingZeros,
            Op::ReverseBits,
            Op::FirstLeadingBit,
            Op::FirstTrailingBit,
        ];
        integer_ops.iter().for_each(|op| self.typed(&snake(op), &INTEGERS));
        self.typed("not", &[Type::Bool]);
        self.typed("quantize_f16", &[Type::F32]);
    }

    fn binary(&mut self) {
        use BinaryOp as Op;
        let number_ops = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Div,
            Op::Rem,
            Op::Min,
            Op::Max,
            Op::Eq,
            Op::Ne,
            Op::Lt,
            Op::Le,
            Op::Gt,
            Op::Ge,
        ];
        for op in number_ops {
            self.typed(&snake(op), &INTEGERS);
            self.typed(&snake(op), &FLOATS);
        }
        for op in [Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr] {
            self.typed(&snake(op), &INTEGERS);
        }
        for op in [Op::And, Op::Or, Op::Eq, Op::Ne] {
            self.typed(&snake(op), &[Type::Bool]);
        }
        for op in [Op::Pow, Op::Atan2, Op::Ldexp] {
            self.typed(&snake(op), &FLOATS);
        }
        self.typed(&snake(Op::Dot4I8), &[Type::U32]);
        self.typed(&snake(Op::Dot4U8), &[Type::U32]);
        self.typed("fma", &FLOATS);
    }

    fn conversions(&mut self) {
        self.typed("select", &Type::ALL);
        for from in Type::ALL {
            for to in Type::ALL.into_iter().filter(|to| *to != from) {
                // A conversion between integers of the same width keeps the bits.
                let is_same_width = from.is_integer() && from.to_unsigned() == to.to_unsigned();
                if !(is_same_width && to.is_integer()) {
                    self.0.push(format!("convert.{from}.{to}"));
                }
                if from.size() == to.size() {
                    self.0.push(format!("bitcast.{from}.{to}"));
                }
            }
        }
    }

    fn memory(&mut self) {
        self.typed("get", &Type::ALL);
        let numbers = &Type::ALL[1..];
        for name in ["load.binding", "store.binding"] {
            self.typed(name, numbers);
        }
        // The immediate block cannot contain 16-bit types.
        let immediate_types = [Type::I32, Type::U32, Type::F32, Type::I64, Type::U64, Type::F64];
        self.typed("load.immediate", &immediate_types);
        for space in ["workgroup", "local"] {
            self.typed(&format!("load.{space}"), &Type::ALL);
            self.typed(&format!("store.{space}"), &Type::ALL);
        }
    }

    fn atomics(&mut self) {
        use AtomicOp as Op;
        let all = [
            Op::Load,
            Op::Store,
            Op::Add,
            Op::Sub,
            Op::Min,
            Op::Max,
            Op::And,
            Op::Or,
            Op::Xor,
            Op::Exchange,
            Op::CompareExchange,
        ];
        for op in all {
            for space in ["binding", "workgroup"] {
                ATOMIC.iter().for_each(|ty| self.atomic(op, space, *ty));
            }
        }
        for op in [Op::Load, Op::Store, Op::Add, Op::Sub, Op::Exchange] {
            self.atomic(op, "binding", Type::F32);
        }
    }

    fn atomic(&mut self, op: AtomicOp, space: &str, ty: Type) {
        let name = format!("atomic.{}.{space}.{ty}", snake(op));
        if op != AtomicOp::Load {
            self.0.push(format!("{name}{MEMORY}"));
        }
        if op != AtomicOp::Store {
            self.0.push(name);
        }
    }

    fn subgroups(&mut self) {
        use Reduction as Op;
        let numbers = &Type::ALL[1..];
        let mut reduce = |op: Op, group: GroupOperation, types: &[Type]| {
            self.typed(&format!("reduce.{}.{}", snake(op), snake(group)), types);
        };
        for op in [Op::Add, Op::Mul] {
            [GroupOperation::Reduce, GroupOperation::InclusiveScan, GroupOperation::ExclusiveScan]
                .into_iter()
                .for_each(|group| reduce(op, group, numbers));
        }
        [Op::Min, Op::Max].into_iter().for_each(|op| reduce(op, GroupOperation::Reduce, numbers));
        for op in [Op::And, Op::Or, Op::Xor] {
            reduce(op, GroupOperation::Reduce, &ATOMIC);
        }
        [Op::And, Op::Or]
            .into_iter()
            .for_each(|op| reduce(op, GroupOperation::Reduce, &[Type::Bool]));
        self.0.push("ballot".to_owned());
        for source in ["first", "lane", "xor", "up", "down", "quad_lane", "quad_xor"] {
            self.typed(&format!("shuffle.{source}"), numbers);
        }
    }
}
