//! Builds kernels to verify.

use crate::kir::{AddressSpace, Builder, Const, Inst, Kir, Type, Value, verify};

pub(super) const BUFFER: AddressSpace = AddressSpace::Binding(1);

/// A builder with a read-only and a writable buffer, some arrays, and a value of each type.
pub(super) fn builder() -> (Builder, [Value; 10]) {
    let mut b = Builder::new("test", [64, 1, 1]);
    b.buffer(false);
    b.buffer(true);
    b.immediates(16);
    b.workgroup_array(Type::U32, 4);
    b.local_array(Type::F32, 4);
    b.var(Type::U32);
    let values = Type::ALL.map(|ty| b.constant(Const::zero(ty)));
    (b, values)
}

pub(super) fn of(values: &[Value; 10], ty: Type) -> Value {
    let nth = Type::ALL.iter().position(|other| *other == ty);
    values[nth.expect("it is a scalar type")]
}

/// Verifies a kernel that a closure fills.
pub(super) fn said(fill: impl FnOnce(&mut Builder, &[Value; 10])) -> Result<(), String> {
    let (mut b, values) = builder();
    fill(&mut b, &values);
    message(&b.finish())
}

/// Verifies a kernel named `test`; the error without its name.
fn message(kir: &Kir) -> Result<(), String> {
    verify(kir).map_err(|error| error.to_string().replacen("kernel test: ", "", 1))
}

#[track_caller]
pub(super) fn accepted(fill: impl FnOnce(&mut Builder, &[Value; 10])) {
    assert_eq!(said(fill), Ok(()));
}

#[track_caller]
pub(super) fn refused(expected: &str, fill: impl FnOnce(&mut Builder, &[Value; 10])) {
    assert_eq!(said(fill), Err(expected.to_owned()));
}

/// Verifies a kernel that is changed after it was built.
pub(super) fn changed(change: impl FnOnce(&mut Kir)) -> Result<(), String> {
    let mut kir = builder().0.finish();
    change(&mut kir);
    message(&kir)
}

/// Returns whether an instruction is valid for two operand types and a result type.
pub(super) fn takes(inst: impl Fn(Value, Value) -> Inst, types: [Type; 3]) -> bool {
    said(|b, v| {
        b.value(types[2], inst(of(v, types[0]), of(v, types[1])));
    })
    .is_ok()
}

/// Returns the operand types for which an instruction is valid with some result type.
pub(super) fn operands(inst: impl Fn(Value) -> Inst) -> Vec<Type> {
    let result = |a: &Type| Type::ALL.iter().any(|r| takes(|a, _| inst(a), [*a, *a, *r]));
    Type::ALL.into_iter().filter(result).collect()
}
