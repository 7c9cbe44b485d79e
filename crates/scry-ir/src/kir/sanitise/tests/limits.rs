//! Tests that kernels beyond the limits are rejected, without recursion.

use super::{new_kernel, rejection};
use crate::ShaderErrorKind;
use crate::kir::{Array, Builder, Label, Stmt, Type};

#[test]
fn deep_nesting_is_rejected() {
    let mut body = Vec::new();
    for _ in 0..100_000 {
        body = vec![Stmt::Scope { label: Label(1), body }];
    }
    let mut kir = Builder::new("deep", [1, 1, 1]).finish();
    kir.body = body;
    let error = crate::Program::from_kir(&kir).err().unwrap();
    assert_eq!(error.kind, ShaderErrorKind::TooComplex);
    assert_eq!(error.message, "the kernel has 1001 nested blocks, more than the limit of 1000");
    // Its drop would recurse.
    std::mem::forget(kir);
}

#[test]
fn deepest_nesting_compiles_on_small_stacks() {
    let (mut b, data, local) = new_kernel();
    let condition = b.constant(crate::kir::Const::bool(true));
    let place = b.element(data, local);
    let mut kir = b.finish();
    let before = std::mem::take(&mut kir.body);
    kir.body = vec![Stmt::Store { place, values: vec![local], at: None }];
    for _ in 0..990 {
        let then_block = std::mem::take(&mut kir.body);
        kir.body = vec![Stmt::If { condition, then_block, else_block: Vec::new(), at: None }];
    }
    kir.body.splice(0..0, before);
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let compiled = small.spawn(move || crate::Program::from_kir(&kir).map(|_| ())).unwrap();
    assert_eq!(compiled.join().unwrap(), Ok(()));
}

#[test]
fn large_kernels_are_rejected() {
    let assert_too_complex = |change: &dyn Fn(&mut crate::kir::Kir)| {
        let mut kir = new_kernel().0.finish();
        change(&mut kir);
        let (kind, message) = rejection(&kir);
        assert_eq!(kind, ShaderErrorKind::TooComplex, "{message}");
    };
    assert_too_complex(&|kir| kir.vars = vec![Type::U32; 1 << 17]);
    assert_too_complex(&|kir| kir.labels = u32::MAX);
    assert_too_complex(&|kir| kir.workgroup_size = [u32::MAX; 3]);
    assert_too_complex(&|kir| kir.immediates = u32::MAX);
    assert_too_complex(&|kir| kir.workgroup = vec![Array { ty: Type::U32, len: u32::MAX }; 2]);
    assert_too_complex(&|kir| kir.locals = vec![Array { ty: Type::F64, len: u32::MAX }]);
    assert_too_complex(&|kir| kir.buffers = vec![kir.buffers[0].clone(); 2000]);
    assert_too_complex(&|kir| {
        kir.body = vec![Stmt::Barrier(crate::kir::Barrier::Workgroup, None); 1 << 20]
    });
}

#[test]
fn names_are_identifiers() {
    for name in ["", "1x", "a b", "x;\n.version", "nul\0", &"x".repeat(1000)] {
        let kir = Builder::new(name, [1, 1, 1]).finish();
        let (kind, message) = rejection(&kir);
        assert_eq!(kind, ShaderErrorKind::Validation);
        assert!(message.contains("is not an identifier"), "{message}");
    }
    assert!(crate::Program::from_kir(&Builder::new("größe_2", [1, 1, 1]).finish()).is_ok());
}
