//! Tests of kernels that no WGSL source compiles to: random control flow, operations on constants
//! only, loops without end.

use crate::kir::interpret::Interpreter;
use crate::kir::{
    AddressSpace, BinaryOp, Builder, Builtin, Const, Kir, KirOptions, Label, Place, Stmt, Type,
    UnaryOp, for_each_stmt_mut, optimise, random,
};
use crate::{
    Access, BindingInfo, BufferBindingType, Features, Interface, Program, Scalar, TypeLayout,
};

/// An interface with a runtime-sized array of `u32` for each buffer.
fn interface(kir: &Kir) -> Interface {
    let scalar = TypeLayout::Scalar(Scalar::U32);
    let layout = TypeLayout::Array { element: Box::new(scalar), len: None, stride: 4 };
    let bindings = (0..).zip(&kir.buffers).map(|(i, buffer)| BindingInfo {
        group: 0,
        binding: i,
        name: buffer.name.clone(),
        ty: BufferBindingType::Storage,
        access: if buffer.writable { Access::ReadWrite } else { Access::Read },
        layout: layout.clone(),
    });
    Interface {
        entry_point: kir.name.clone(),
        workgroup_size: kir.workgroup_size,
        workgroup_memory: 0,
        bindings: bindings.collect(),
        immediates: None,
        overrides: Vec::new(),
        features: Features::empty(),
    }
}

/// Checks a text with Chromium's compiler, if the environment variable `SCRY_TINT` is its path.
fn check_with_tint(text: &str) {
    let Some(program) = std::env::var_os("SCRY_TINT") else { return };
    let name = format!("scry-unit-{}-{:?}.wgsl", std::process::id(), std::thread::current().id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, text).expect("the folder can be written");
    let result = std::process::Command::new(program).args(["--format", "wgsl"]).arg(&file).output();
    let result = result.expect("SCRY_TINT names a program");
    std::fs::remove_file(&file).expect("it was written");
    assert!(result.status.success(), "{}\n{text}", String::from_utf8_lossy(&result.stderr));
}

/// Emits a kernel as WGSL; returns the text, and the kernel that it compiles to.
fn round_trip(kir: &Kir) -> (String, Kir) {
    let text = kir.to_wgsl(&interface(kir)).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    check_with_tint(&text);
    let program = Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}\n{kir}"));
    let again = program.to_kir(&KirOptions { checked: false });
    (text, again.unwrap_or_else(|error| panic!("{error}")))
}

/// Interprets a kernel; returns the buffers after it.
fn execute(kir: &Kir, buffers: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut interpreter = Interpreter::new(kir, buffers.to_vec());
    interpreter.bounds = crate::kir::interpret::BoundsPolicy::ReadZeroSkipWrite;
    interpreter.run([2, 1, 1]).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    interpreter.buffers
}

/// Returns a random kernel that stores its variables at the end.
fn random_kernel_with_output(seed: u64) -> Kir {
    let mut kir = random::kernel(seed, true);
    let label = Label(kir.labels);
    kir.labels += 1;
    let mut body = std::mem::take(&mut kir.body);
    for_each_stmt_mut(&mut body, &mut |stmt| {
        if let Stmt::Break(to @ Label::KERNEL) = stmt {
            *to = label;
        }
    });
    let invocations: u32 = random::SIZE.iter().product();
    let mut b = Builder::continuing(kir);
    let output = b.buffer(Access::ReadWrite);
    let vars = b.kir().vars.len() as u32;
    b.push(Stmt::Scope { label, body });
    let [x, y, z] = [0, 1, 2].map(|axis| b.builtin(Builtin::LocalId(axis)));
    let mut index = b.builtin(Builtin::GroupId(0));
    for (id, size) in [(z, random::SIZE[2]), (y, random::SIZE[1]), (x, random::SIZE[0])] {
        let size = b.u32(size);
        let scaled = b.binary(BinaryOp::Mul, index, size);
        index = b.binary(BinaryOp::Add, scaled, id);
    }
    for var in 0..vars {
        let value = b.get(crate::kir::Var(var));
        let space = AddressSpace::Binding(output);
        b.store(Place::new(space, Some(index), vars * 4, var * 4), vec![value]);
    }
    b.set_buffer_min_size(output, (2 * invocations * vars * 4).into());
    b.finish()
}

#[test]
fn random_control_flow_round_trip() {
    for seed in 0..400 {
        let mut kir = random_kernel_with_output(seed);
        if seed % 2 == 0 {
            optimise(&mut kir);
        }
        let words = (0..64u32).flat_map(|word| (word * 3 % 5).to_le_bytes()).collect();
        let buffers = [words, vec![0; kir.buffers[1].min_size as usize]];
        let (text, again) = round_trip(&kir);
        let (expected, found) = (execute(&kir, &buffers), execute(&again, &buffers));
        assert!(expected[1] == found[1], "seed {seed}\n{kir}\n{text}");
    }
}

/// Emits a kernel that stores the value which a closure computes, and checks the text; returns the
/// text and the value.
fn emit_and_evaluate(compute: impl FnOnce(&mut Builder) -> crate::kir::Value) -> (String, u32) {
    let mut b = Builder::new("main", [1, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let value = compute(&mut b);
    let value = if b.ty(value) == Type::Bool { b.convert(Type::U32, value) } else { value };
    let value = if b.ty(value) == Type::U32 { value } else { b.bitcast(Type::U32, value) };
    b.store(Place::new(AddressSpace::Binding(out), None, 0, 0), vec![value]);
    let kir = b.finish();
    let (text, again) = round_trip(&kir);
    let expected = execute(&kir, &[vec![0; 4]]);
    assert_eq!(execute(&again, &[vec![0; 4]]), expected, "{text}");
    (text, u32::from_le_bytes([0, 1, 2, 3].map(|i| expected[0][i])))
}

#[test]
fn constant_expressions_do_not_overflow() {
    let binary = |op, x: Const, y: Const| {
        emit_and_evaluate(|b| {
            let (x, y) = (b.constant(x), b.constant(y));
            b.binary(op, x, y)
        })
        .1
    };
    assert_eq!(binary(BinaryOp::Add, Const::u32(u32::MAX), Const::u32(2)), 1);
    assert_eq!(binary(BinaryOp::Div, Const::i32(7), Const::i32(0)), 7);
    assert_eq!(binary(BinaryOp::Rem, Const::u32(7), Const::u32(0)), 0);
    assert_eq!(binary(BinaryOp::Div, Const::i32(i32::MIN), Const::i32(-1)), 1 << 31);
    assert_eq!(binary(BinaryOp::Shl, Const::u32(3), Const::u32(33)), 6);
    assert_eq!(binary(BinaryOp::Shr, Const::i32(-4), Const::u32(1)), (-2i32) as u32);
    assert_eq!(binary(BinaryOp::Div, Const::f32(1.0), Const::f32(0.0)), f32::INFINITY.to_bits());
    assert_eq!(binary(BinaryOp::Xor, Const::bool(true), Const::bool(true)), 0);
    assert_eq!(binary(BinaryOp::Mul, Const::f32(-0.0), Const::f32(1.0)), 1 << 31);
}

#[test]
fn functions_that_wgsl_lacks_are_composed() {
    let unary = |op, x: f32| {
        emit_and_evaluate(|b| {
            let x = b.constant(Const::f32(x));
            b.unary(op, x)
        })
        .1
    };
    assert_eq!([f32::NAN, 1.0, f32::INFINITY].map(|x| unary(UnaryOp::IsNan, x)), [1, 0, 0]);
    assert_eq!([f32::NAN, 1.0, f32::NEG_INFINITY].map(|x| unary(UnaryOp::IsInf, x)), [0, 0, 1]);
    assert_eq!(unary(UnaryOp::Neg, 1e-40), (-1e-40f32).to_bits());
    let (_, negated) = emit_and_evaluate(|b| {
        let x = b.u32(5);
        b.unary(UnaryOp::Neg, x)
    });
    assert_eq!(negated, 5u32.wrapping_neg());
}

#[test]
fn endless_loops_are_valid_wgsl() {
    let mut b = Builder::new("main", [1, 1, 1]);
    b.loop_(|b, _| {
        b.u32(7);
    });
    let (text, _) = round_trip(&b.finish());
    assert!(text.contains("if false { break; }"), "{text}");
}

#[test]
fn interface_of_another_kernel_is_rejected() {
    let mut b = Builder::new("main", [1, 1, 1]);
    let nothing = interface(b.kir());
    b.buffer(Access::ReadWrite);
    let error = b.finish().to_wgsl(&nothing).expect_err("it has no binding");
    assert!(error.message.contains("1 buffers, the interface 0; help: "), "{error}");
}
