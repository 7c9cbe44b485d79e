//! Helpers of the tests: build and verify kernels.

use crate::Access;
use crate::kir::{AddressSpace, Builder, Const, Inst, Kir, Type, Value, verify};

pub(super) const BUFFER: AddressSpace = AddressSpace::Binding(1);

/// A builder with a read-only and a writable buffer, some arrays, and a value of each type.
pub(super) fn builder() -> (Builder, [Value; 10]) {
    let mut b = Builder::new("test", [64, 1, 1]);
    b.buffer(Access::Read);
    b.buffer(Access::ReadWrite);
    b.immediates(16);
    b.workgroup_array(Type::U32, 4);
    b.local_array(Type::F32, 4);
    b.var(Type::U32);
    let values = Type::ALL.map(|ty| b.constant(Const::zero(ty)));
    (b, values)
}

/// Returns the value of a type.
pub(super) fn value_of(values: &[Value; 10], ty: Type) -> Value {
    let index = Type::ALL.iter().position(|other| *other == ty);
    values[index.expect("it is a scalar type")]
}

/// Verifies a kernel that a closure builds; it receives the values of [`builder`].
pub(super) fn verify_built(fill: impl FnOnce(&mut Builder, &[Value; 10])) -> Result<(), String> {
    let (mut b, values) = builder();
    fill(&mut b, &values);
    message(&b.finish())
}

/// Verifies a kernel named `test`. The error is returned without that name.
fn message(kir: &Kir) -> Result<(), String> {
    verify(kir).map_err(|error| error.to_string().replacen("kernel test: ", "", 1))
}

#[track_caller]
pub(super) fn assert_valid(fill: impl FnOnce(&mut Builder, &[Value; 10])) {
    assert_eq!(verify_built(fill), Ok(()));
}

#[track_caller]
pub(super) fn assert_error(expected: &str, fill: impl FnOnce(&mut Builder, &[Value; 10])) {
    assert_eq!(verify_built(fill), Err(expected.to_owned()));
}

/// Verifies a kernel that is changed after it was built.
pub(super) fn verify_changed(change: impl FnOnce(&mut Kir)) -> Result<(), String> {
    let mut kir = builder().0.finish();
    change(&mut kir);
    message(&kir)
}

/// Returns whether an instruction is valid for two operand types and a result type.
pub(super) fn is_valid(inst: impl Fn(Value, Value) -> Inst, types: [Type; 3]) -> bool {
    verify_built(|b, v| {
        b.value(types[2], inst(value_of(v, types[0]), value_of(v, types[1])));
    })
    .is_ok()
}

/// Returns the operand types for which an instruction is valid with any result type.
pub(super) fn valid_operands(inst: impl Fn(Value) -> Inst) -> Vec<Type> {
    let result = |a: &Type| Type::ALL.iter().any(|r| is_valid(|a, _| inst(a), [*a, *a, *r]));
    Type::ALL.into_iter().filter(result).collect()
}
