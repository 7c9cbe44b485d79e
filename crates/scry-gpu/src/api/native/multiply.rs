//! Matrix products by NVIDIA's library cuBLAS.
//!
//! A driver loads a routine of the library, and launches it like a native kernel with three buffers
//! and three numbers: so arguments are checked, commands ordered and memory kept alive as for all
//! kernels.

use std::sync::Arc;

use half::{bf16, f16};
use scry_ir::ScalarKind;

use super::{NativeBinding, NativeInterface};
use crate::api::batch::Batch;
use crate::api::binding::{Sealed as _, View};
use crate::api::buffer::Buffer;
use crate::api::device::Device;
use crate::api::element::{Element, ElementLayout};
use crate::api::error::{ArgumentError, GpuError, InFunction, RangeError, Result, TooLargeError};
use crate::api::kernel::Kernel;
use crate::api::launch::{Count, Launch};
use crate::api::slice::Slice;
use crate::core::command_list::CommandList;
use crate::core::compiled_kernel::CompiledKernel;
use crate::core::context::Context;
use crate::core::driver::RoutineJob;
use crate::core::encode;
use crate::core::same_device::{quoted, same_device};

/// A routine of cuBLAS: what the elements are, and how they are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Routine {
    /// 32-bit floats, all of it in 32 bits.
    F32,
    /// TF32: 32-bit floats, multiplied with 10 bits of their fractions.
    Tf32,
    /// 16-bit floats, added up in 32 bits.
    F16,
    /// Brain floats, added up in 32 bits.
    Bf16,
}

impl Routine {
    const ALL: [Self; 4] = [Self::F32, Self::Tf32, Self::F16, Self::Bf16];

    /// The name, as that of a kernel.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "cublas_matmul",
            Self::Tf32 => "cublas_matmul_tf32",
            Self::F16 => "cublas_matmul_f16",
            Self::Bf16 => "cublas_matmul_bf16",
        }
    }

    /// The routine of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|routine| routine.name() == name)
    }
}

/// An element type of GEMM operands: `f32`, `f16` or `bf16`.
pub trait GemmElement: Element + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

impl GemmElement for f32 {}
impl GemmElement for f16 {}
impl GemmElement for bf16 {}

/// The routine that multiplies elements as exactly as it can be done.
fn exact<T: GemmElement>() -> Routine {
    match T::LAYOUT {
        ElementLayout::Scalar(it) if it.kind == ScalarKind::Bfloat => Routine::Bf16,
        ElementLayout::Scalar(it) if it.width == 2 => Routine::F16,
        _ => Routine::F32,
    }
}

/// Three matrices, and the numbers of rows of the first, of columns of the second, and between.
struct Matrices<'a, T> {
    /// The public function that errors name.
    operation: &'static str,
    a: &'a Buffer<T>,
    b: &'a Buffer<T>,
    c: &'a Buffer<T>,
    sizes: [i128; 3],
}

/// Products of matrices.
impl Device {
    /// Multiplies matrices with cuBLAS, which is opened when it is first needed: C = A × B, with A
    /// of m × k, B of k × n and C of m × n elements, row after row without gaps. On CUDA devices.
    ///
    /// `f32` is multiplied and added in 32 bits, whatever the environment asks for; `f16` and
    /// `bf16` are added up in 32 bits and rounded at the end. Buffers may be larger than the
    /// matrices. Where k is 0, C becomes 0.
    ///
    /// ```no_run
    /// use scry_gpu::{BackendKind, Device};
    ///
    /// # fn main() -> Result<(), scry_gpu::GpuError> {
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 × 3
    /// let b = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0])?; // 3 × 2
    /// let c = gpu.alloc::<f32>(4)?;
    /// gpu.cublas_matmul(&a, &b, &c, 2, 2, 3)?;
    /// assert_eq!(c.download()?, [4.0, 5.0, 10.0, 11.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Range`] if a buffer is smaller than its matrix; [`GpuError::TooLarge`] for sizes
    /// beyond 2³¹ − 1; [`GpuError::Argument`] if `c` is one of the others;
    /// [`GpuError::Library`] without cuBLAS, and on devices of other backends.
    pub fn cublas_matmul<T: GemmElement>(
        &self,
        a: &Buffer<T>,
        b: &Buffer<T>,
        c: &Buffer<T>,
        m: impl Count,
        n: impl Count,
        k: impl Count,
    ) -> Result<()> {
        let sizes = [m.count(), n.count(), k.count()];
        let operation = "Device::cublas_matmul";
        self.multiply(exact::<T>(), &Matrices { operation, a, b, c, sizes })
    }

    /// [`Device::cublas_matmul`] with tensor cores, which look at 10 bits of each factor's fraction
    /// rather than 23 (TF32): faster, and off by about one part in a thousand.
    ///
    /// ```no_run
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cuda")?;
    /// let (a, b) = (gpu.upload(&[1.0f32; 6])?, gpu.upload(&[2.0f32; 12])?);
    /// let c = gpu.alloc::<f32>(8)?;
    /// gpu.cublas_matmul_tf32(&a, &b, &c, 2, 4, 3)?; // 2 × 3 by 3 × 4
    /// assert_eq!(c.download()?, [6.0; 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::cublas_matmul`].
    pub fn cublas_matmul_tf32(
        &self,
        a: &Buffer<f32>,
        b: &Buffer<f32>,
        c: &Buffer<f32>,
        m: impl Count,
        n: impl Count,
        k: impl Count,
    ) -> Result<()> {
        let sizes = [m.count(), n.count(), k.count()];
        let operation = "Device::cublas_matmul_tf32";
        self.multiply(Routine::Tf32, &Matrices { operation, a, b, c, sizes })
    }

    fn multiply<T: GemmElement>(&self, routine: Routine, matrices: &Matrices<'_, T>) -> Result<()> {
        let mut list = CommandList::default();
        append(&self.context, &mut list, routine, matrices)
            .and_then(|()| self.context.submit_unless_empty(list))
            .in_function(matrices.operation)
    }
}

impl Batch {
    /// Adds a product of matrices by cuBLAS. Products of a recording are computed one after the
    /// other.
    ///
    /// ```no_run
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cuda")?;
    /// let (a, b) = (gpu.upload(&[1.0f32; 6])?, gpu.upload(&[2.0f32; 12])?);
    /// let c = gpu.alloc::<f32>(8)?;
    /// gpu.batch().cublas_matmul(&a, &b, &c, 2, 4, 3)?.submit()?;
    /// assert_eq!(c.download()?, [6.0; 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::cublas_matmul`].
    pub fn cublas_matmul<T: GemmElement>(
        &mut self,
        a: &Buffer<T>,
        b: &Buffer<T>,
        c: &Buffer<T>,
        m: impl Count,
        n: impl Count,
        k: impl Count,
    ) -> Result<&mut Self> {
        let sizes = [m.count(), n.count(), k.count()];
        let operation = "Batch::cublas_matmul";
        let matrices = Matrices { operation, a, b, c, sizes };
        self.add(|context, list| {
            append(context, list, exact::<T>(), &matrices).in_function(operation)
        })
    }
}

/// Appends a product.
fn append<T: GemmElement>(
    context: &Arc<Context>,
    list: &mut CommandList,
    routine: Routine,
    matrices: &Matrices<'_, T>,
) -> Result<()> {
    let Matrices { operation, a, b, c, sizes: [m, n, k] } = *matrices;
    for (name, buffer) in [("a", a), ("b", b), ("c", c)] {
        let owner = (&buffer.bytes.context, buffer.label());
        same_device(context, owner, operation, || format!("`{name}`"))?;
    }
    let sizes = [("m", m), ("n", n), ("k", k)];
    let [m, n, k] = sizes.map(|(name, size)| self::size(context, name, size));
    let (m, n, k) = (m?, n?, k?);
    let (kernel, launch) = product(context, routine, [m, n, k])?;
    let a = matrix(a, operation, ("a", "m × k"), m, k)?;
    let b = matrix(b, operation, ("b", "k × n"), k, n)?;
    let c = matrix(c, operation, ("c", "m × n"), m, n)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    if k == 0 {
        return encode::fill(context, list, c.view(), &[0; 8][..size_of::<T>()]);
    }
    let views = [("a", a.view()), ("b", b.view()), ("c", c.view())];
    views.iter().try_for_each(|view| aligned(context, operation, view))?;
    views[..2].iter().try_for_each(|view| apart(operation, view, &views[2].1))?;
    encode::dispatch(context, list, operation, &kernel, &[&a, &b, &c], &launch)
}

/// Rejects a matrix whose address the device cannot bind.
fn aligned(context: &Context, operation: &str, (name, view): &(&str, View<'_>)) -> Result<()> {
    let multiple = context.info.binding_alignment.max(1);
    if view.offset.is_multiple_of(multiple) {
        return Ok(());
    }
    Err(GpuError::Argument(ArgumentError {
        label: None,
        kernel: operation.to_owned(),
        argument: format!("`{name}`"),
        problem: format!(
            "begins at byte {} of its memory, but matrices must begin at multiples of {multiple} \
             bytes",
            view.offset
        ),
        help: "copy the slice to a buffer of its own, or pad the data".to_owned(),
    }))
}

/// Refuses a factor that shares bytes with the result.
fn apart(operation: &str, (name, factor): &(&str, View<'_>), c: &View<'_>) -> Result<()> {
    let (Some((_, factor)), Some((_, c))) = (factor.bytes(), c.bytes()) else { return Ok(()) };
    let (begin, end) = (factor.offset.max(c.offset), factor.end().min(c.end()));
    if factor.memory != c.memory || begin >= end {
        return Ok(());
    }
    Err(GpuError::Argument(ArgumentError {
        label: None,
        kernel: operation.to_owned(),
        argument: "`c`".to_owned(),
        problem: format!("is written, but shares bytes {begin}..{end} of its memory with `{name}`"),
        help: "pass buffers or slices that do not overlap".to_owned(),
    }))
}

/// A routine, and its launch for a product of these sizes.
pub(crate) fn product(
    context: &Arc<Context>,
    routine: Routine,
    sizes: [u32; 3],
) -> Result<(Kernel, Launch)> {
    let launch = Launch::workgroups([1; 3]).immediates(&sizes);
    Ok((kernel(context, routine)?, launch))
}

/// The routine as a kernel of the device.
fn kernel(context: &Arc<Context>, routine: Routine) -> Result<Kernel> {
    let element = match routine {
        Routine::F32 | Routine::Tf32 => scry_ir::Scalar::F32,
        Routine::F16 => scry_ir::Scalar::F16,
        Routine::Bf16 => scry_ir::Scalar::BF16,
    };
    let bindings = [
        NativeBinding::read("a", element),
        NativeBinding::read("b", element),
        NativeBinding::read_write("c", element),
    ];
    let interface = NativeInterface::new(bindings, [1; 3]).immediates(12);
    let name = routine.name();
    let job = RoutineJob { name, library: "cuBLAS", interface: &interface };
    let load = || CompiledKernel::load_routine(context, &job);
    Ok(Kernel::of_device(&context.routines.get_or_load(name, load)?, context))
}

/// A number of rows or columns in the range of cuBLAS.
fn size(context: &Context, name: &str, size: i128) -> Result<u32> {
    const MOST: u32 = i32::MAX as u32;
    match u32::try_from(size) {
        Ok(size) if size <= MOST => Ok(size),
        _ => Err(GpuError::TooLarge(TooLargeError {
            label: None,
            function: None,
            what: format!("`{name}`"),
            requested: size.to_string(),
            device: context.info.name.clone(),
            limit: format!("{MOST}, and no less than 0"),
            limit_name: "rows or columns of a matrix",
            help: "multiply parts of the matrices, one after the other".to_owned(),
        })),
    }
}

/// The elements of a matrix; an error if the buffer has fewer.
fn matrix<'a, T: GemmElement>(
    buffer: &'a Buffer<T>,
    operation: &'static str,
    (name, shape): (&str, &str),
    rows: u32,
    columns: u32,
) -> Result<Slice<'a, T>> {
    let count = u64::from(rows) * u64::from(columns);
    let fits = usize::try_from(count).ok().filter(|count| *count <= buffer.len());
    let Some(count) = fits else {
        return Err(GpuError::Range(RangeError {
            operation,
            problem: format!(
                "`{name}` is {shape} = {rows} × {columns} = {count} elements, but {} has {}",
                quoted(buffer.label()),
                buffer.len()
            ),
            help: "give m, n and k in this order: the rows of c, its columns, and what a and b \
                     have in common"
                .to_owned(),
        }));
    };
    Ok(Slice::new(buffer, 0, count))
}
