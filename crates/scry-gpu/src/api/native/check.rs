//! Checks of buffers against a declared interface.

use super::lengths::{argument_error, check_length, describe_buffer};
use super::{NativeBinding, NativeInterface};
use crate::api::binding::Binding;
use crate::api::device::Device;
use crate::api::error::Result;
use crate::core::check::{self, Argument};
use crate::core::encode;
use crate::core::same_device::same_device_as;

impl NativeInterface {
    /// Checks buffers against the interface before a kernel is compiled or launched: their number,
    /// device, element types, lengths ([`NativeBinding::with_min_len`]), the alignment of slices,
    /// and overlaps of written buffers. Errors name `function`, such as the function of a library
    /// that the program called, the bindings, and what determines the lengths
    /// ([`NativeInterface::sizes`]).
    ///
    /// A launch makes the same checks, and rejects empty buffers, which pass here if no minimum
    /// length is declared. Immediates and the size of the grid are checked by the launch only.
    ///
    /// ```
    /// use scry_gpu::{Device, NativeBinding, NativeInterface, Scalar};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let interface = NativeInterface::new(
    ///     [NativeBinding::read("x", Scalar::F32).with_min_len(4),
    ///      NativeBinding::read_write("y", Scalar::F32).with_min_len(4)],
    ///     [256, 1, 1],
    /// );
    /// let (x, y) = (gpu.alloc::<f32>(4)?, gpu.alloc::<f32>(3)?);
    /// interface.check(&gpu, "Library::copy", &[&x, &x.duplicate()?])?;
    ///
    /// let error = interface.check(&gpu, "Library::copy", &[&x, &y]).unwrap_err().to_string();
    /// assert!(error.contains("Library::copy") && error.contains("buffer `y`"));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument),
    /// [`GpuError::WrongDevice`](crate::GpuError::WrongDevice).
    pub fn check(&self, device: &Device, function: &str, buffers: &[&dyn Binding]) -> Result<()> {
        let sizes = Some(self.sizes.as_str()).filter(|sizes| !sizes.is_empty());
        let bindings = &self.bindings.0;
        check_count(function, bindings, buffers.len())?;
        let interface = self.reflect(function);
        let mut arguments = Vec::with_capacity(buffers.len());
        for ((declared, binding), buffer) in bindings.iter().zip(&interface.bindings).zip(buffers) {
            let view = buffer.view();
            let owner = view.context;
            let argument = encode::argument(view);
            same_device_as(&device.context, owner, function, || {
                describe_buffer(declared, &argument)
            })?;
            if !check::has_elements_of(binding, &argument) {
                let needed = declared.element_name();
                let given = argument.element_name();
                let problem = format!("has elements of {given}, but {needed} is needed");
                let help = format!("pass a buffer of {needed}");
                return Err(argument_error(
                    function,
                    describe_buffer(declared, &argument),
                    problem,
                    &help,
                ));
            }
            check_length(function, sizes, declared, &argument)?;
            check_alignment(function, device, declared, &argument)?;
            arguments.push((declared, check::bound_size(binding, argument.size), argument));
        }
        check_overlaps(function, &arguments)
    }
}

fn check_count(function: &str, bindings: &[NativeBinding], given: usize) -> Result<()> {
    if given == bindings.len() {
        return Ok(());
    }
    let describe = |binding: &NativeBinding| {
        let (name, element) = (&binding.name, binding.element_name());
        let access = if binding.writes { ", written" } else { "" };
        format!("`{name}` ({element}{access})")
    };
    let list: Vec<String> = bindings.iter().map(describe).collect();
    let problem = format!("has length {given}, but needs {}", bindings.len());
    let help = match list.is_empty() {
        true => "pass none".to_owned(),
        false => format!("pass {} in this order", list.join(", ")),
    };
    Err(argument_error(function, "the list of buffers".to_owned(), problem, &help))
}

/// Rejects a slice whose address cannot be bound. Empty slices are never bound.
fn check_alignment(
    function: &str,
    device: &Device,
    declared: &NativeBinding,
    argument: &Argument<'_>,
) -> Result<()> {
    let multiple = device.context.info.binding_alignment.max(1);
    if argument.size == 0 || argument.offset.is_multiple_of(multiple) {
        return Ok(());
    }
    let problem = format!(
        "begins at byte {} of its memory, but slices must begin at multiples of {multiple} bytes",
        argument.offset
    );
    let help = "copy the slice to a buffer of its own, or pad the data";
    Err(argument_error(function, describe_buffer(declared, argument), problem, help))
}

/// Rejects a written buffer that shares bytes with another one. `all` has the number of bytes of
/// each buffer that a kernel can access.
fn check_overlaps(function: &str, all: &[(&NativeBinding, u64, Argument<'_>)]) -> Result<()> {
    for (index, (second, second_size, b)) in all.iter().enumerate() {
        for (first, first_size, a) in &all[..index] {
            let start = a.offset.max(b.offset);
            let end = (a.offset + first_size).min(b.offset + second_size);
            let is_written = first.writes || second.writes;
            if !is_written || a.memory.is_none() || a.memory != b.memory || start >= end {
                continue;
            }
            let (written, argument, other) =
                if second.writes { (second, b, first) } else { (first, a, second) };
            let problem = format!(
                "is written, but shares bytes {start}..{end} of its memory with buffer `{}`",
                other.name
            );
            let help = "pass buffers or slices that do not overlap";
            return Err(argument_error(
                function,
                describe_buffer(written, argument),
                problem,
                help,
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use scry_ir::Scalar;

    use super::*;
    use crate::testing;

    fn interface() -> NativeInterface {
        NativeInterface::new(
            [
                NativeBinding::read("x", Scalar::F32).with_min_len(8),
                NativeBinding::read_write("y", Scalar::F32).with_min_len(4),
                NativeBinding::read_bytes("blocks"),
            ],
            [32, 1, 1],
        )
    }

    #[test]
    fn fitting_buffers_pass() {
        let (gpu, _) = testing::observed(testing::null_info());
        let (x, y) = (gpu.alloc::<f32>(8).unwrap(), gpu.alloc::<f32>(4).unwrap());
        let (bytes, none) = (gpu.alloc::<u8>(7).unwrap(), gpu.alloc::<u8>(0).unwrap());
        interface().check(&gpu, "f", &[&x, &y, &bytes]).unwrap();
        interface().check(&gpu, "f", &[&x, &y, &none]).unwrap();
        let both = gpu.alloc::<f32>(16).unwrap();
        let (a, b) = (both.slice(..8).unwrap(), both.slice(8..).unwrap());
        interface().check(&gpu, "f", &[&a, &b, &bytes]).unwrap();
    }

    #[test]
    fn errors_name_function_and_binding() {
        let (gpu, _) = testing::observed(testing::null_info());
        let (other, _) = testing::observed(testing::null_info());
        let (x, y) = (gpu.alloc::<f32>(8).unwrap(), gpu.alloc::<f32>(4).unwrap());
        let (bytes, ints) = (gpu.alloc::<u8>(7).unwrap(), gpu.alloc::<u32>(8).unwrap());
        let away = other.alloc::<f32>(4).unwrap();
        let (part, shifted) = (x.slice(4..).unwrap(), x.slice(1..).unwrap());
        let cases: [(&[&dyn Binding], &[&str]); 6] = [
            (&[&x, &y], &["the list of buffers", "`y` (f32, written)", "`blocks` (u8)"]),
            (&[&ints, &y, &bytes], &["buffer `x`", "has elements of u32, but f32 is needed"]),
            (&[&y, &x, &bytes], &["buffer `x`", "has 4 elements, but needs at least 8"]),
            (&[&x, &part, &bytes], &["buffer `y`", "shares bytes 16..32", "buffer `x`"]),
            (&[&x, &shifted, &bytes], &["buffer `y`", "begins at byte 4"]),
            (&[&x, &away, &bytes], &["buffer `y`"]),
        ];
        for (buffers, parts) in cases {
            let text = interface().check(&gpu, "Library::f", buffers).unwrap_err().to_string();
            assert!(parts.iter().chain(&["Library::f"]).all(|part| text.contains(part)), "{text}");
            assert!(!text.contains("@group"), "{text}");
        }
    }

    #[test]
    fn minimum_lengths_bind_launches() {
        let (gpu, _) = testing::observed(testing::null_info());
        let compile = |len| {
            let x = NativeBinding::read("x", Scalar::F32).with_min_len(len);
            let interface = NativeInterface::new([x], [32, 1, 1]);
            // SAFETY: the null device runs nothing.
            unsafe { gpu.compile_ptx("anything", "k", &interface) }.unwrap()
        };
        // The length is part of the key in caches.
        let (seven, eight) = (compile(7), compile(8));
        let x = gpu.alloc::<f32>(7).unwrap();
        gpu.run(&seven, &[&x], 1).unwrap();
        let text = gpu.run(&eight, &[&x], 1).unwrap_err().to_string();
        assert!(text.contains("buffer `x`: has 7 elements, but needs at least 8"), "{text}");
    }
}
