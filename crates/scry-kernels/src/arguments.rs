//! Checks of arguments, before anything is compiled or allocated.

use scry_gpu::{Binding, DType, Device, NativeBinding, NativeInterface, Result};

use crate::call::Call;
use crate::operation::AnyOperation;

/// A buffer that is read, with at least `len` elements.
pub(crate) fn read(name: &str, dtype: DType, len: u64) -> NativeBinding {
    NativeBinding::read(name, dtype.scalar()).with_min_len(len)
}

/// A buffer that is written, with at least `len` elements.
pub(crate) fn write(name: &str, dtype: DType, len: u64) -> NativeBinding {
    NativeBinding::read_write(name, dtype.scalar()).with_min_len(len)
}

/// Checks number, devices, types, lengths, alignment and overlaps of buffers.
pub(crate) fn check(
    device: &Device,
    operation: &dyn AnyOperation,
    buffers: &[&dyn Binding],
) -> Result<()> {
    check_declared(device, &operation.call(), operation.arguments(), buffers)
}

/// Checks buffers against declared ones.
pub(crate) fn check_declared(
    device: &Device,
    call: &Call,
    declared: Vec<NativeBinding>,
    buffers: &[&dyn Binding],
) -> Result<()> {
    let sizes = if call.sizes.is_empty() { "the plan".to_owned() } else { call.list_sizes() };
    let interface = NativeInterface::new(declared, [1; 3]).sizes(sizes);
    interface.check(device, &call.function, buffers)
}

impl Call {
    /// Returns the element type of a buffer, which must be among `allowed`.
    pub(crate) fn dtype(
        &self,
        name: &str,
        buffer: &dyn Binding,
        allowed: &[DType],
    ) -> Result<DType> {
        let dtype = buffer.dtype();
        if let Some(dtype) = dtype.filter(|dtype| allowed.contains(dtype)) {
            return Ok(dtype);
        }
        let given = dtype.map_or("no scalar type", DType::name);
        let allowed = alternatives(allowed);
        Err(self.argument_error(
            format!("buffer `{name}`"),
            format!("has elements of {given}, but {allowed} is needed"),
            format!("pass a buffer of {allowed}"),
        ))
    }

    /// Returns the product of sizes, the elements of `what`; an error if it exceeds 64 bits.
    pub(crate) fn product(&self, what: &str, factors: &[u64]) -> Result<u64> {
        let product = factors.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
        product.ok_or_else(|| {
            let sizes = match self.sizes.as_slice() {
                [] => String::new(),
                _ => format!(" with {}", self.list_sizes()),
            };
            let problem = format!("has more than 2^64 - 1 elements{sizes}");
            self.argument_error(what, problem, "pass smaller sizes")
        })
    }
}

/// Returns types as `f32, f16 or bf16`, each once.
fn alternatives(types: &[DType]) -> String {
    let mut names: Vec<_> = types.iter().map(|dtype| dtype.name()).collect();
    names.dedup();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_listed_once() {
        assert_eq!(alternatives(&[DType::F32, DType::F32]), "f32");
        assert_eq!(alternatives(&[DType::F16, DType::F32]), "f16 or f32");
        assert_eq!(alternatives(&[DType::F32, DType::F16, DType::BF16]), "f32, f16 or bf16");
    }
}
