//! Matrix products by NVIDIA's library cuBLAS.
//!
//! A driver loads a library routine, and launches it like a native kernel with three buffers and
//! three integers: arguments are checked, commands ordered and memory kept alive as for all
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
use crate::api::error::{
    ArgumentError, BufferAccessError, GpuError, InFunction, Result, TooLargeError,
};
use crate::api::kernel::Kernel;
use crate::api::launch::{Count, Launch};
use crate::api::prepared_launch::PreparedLaunch;
use crate::api::slice::Slice;
use crate::core::command_list::CommandList;
use crate::core::compiled_kernel::CompiledKernel;
use crate::core::context::Context;
use crate::core::driver::RoutineJob;
use crate::core::encode;
use crate::core::same_device::{quoted, same_device};

/// A routine of cuBLAS: the element type and the compute type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Routine {
    /// f32 elements, computed in f32.
    F32,
    /// f32 elements, multiplied in TF32 (10-bit mantissa).
    Tf32,
    /// f16 elements, accumulated in f32.
    F16,
    /// bf16 elements, accumulated in f32.
    Bf16,
}

impl Routine {
    const ALL: [Self; 4] = [Self::F32, Self::Tf32, Self::F16, Self::Bf16];

    /// Returns the name that errors and timings show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "cublas_matmul",
            Self::Tf32 => "cublas_matmul_tf32",
            Self::F16 => "cublas_matmul_f16",
            Self::Bf16 => "cublas_matmul_bf16",
        }
    }

    /// Returns the routine with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
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

/// Returns the most accurate routine for an element type.
fn default_routine<T: GemmElement>() -> Routine {
    match T::LAYOUT {
        ElementLayout::Scalar(it) if it.kind == ScalarKind::Bfloat => Routine::Bf16,
        ElementLayout::Scalar(it) if it.width == 2 => Routine::F16,
        _ => Routine::F32,
    }
}

/// Three matrices, and the sizes m, n and k.
struct Matrices<'a, T> {
    /// The public function, for errors.
    operation: &'static str,
    a: &'a Buffer<T>,
    b: &'a Buffer<T>,
    c: &'a Buffer<T>,
    sizes: [i128; 3],
}

/// Matrix products.
impl Device {
    /// Multiplies matrices with cuBLAS, which is loaded on first use, on CUDA devices: C = A ×
    /// B, with A of m × k, B of k × n and C of m × n elements, all row-major and contiguous.
    ///
    /// `f32` is computed in f32, regardless of cuBLAS's environment variables; `f16` and `bf16` are
    /// accumulated in f32 and rounded at the end. Buffers may be larger than the matrices. If k is
    /// 0, C is filled with zeros.
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
    /// [`GpuError::BufferAccess`] if a buffer is smaller than its matrix; [`GpuError::TooLarge`]
    /// for sizes beyond 2³¹ − 1; [`GpuError::Argument`] if a size is negative, if `c` overlaps `a`
    /// or `b`, or if a matrix does not begin at a multiple of
    /// [`DeviceInfo::binding_alignment`](crate::DeviceInfo); [`GpuError::WrongDevice`];
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
        self.multiply(default_routine::<T>(), &Matrices { operation, a, b, c, sizes })
    }

    /// Multiplies `f32` matrices as [`Device::cublas_matmul`] does, but on tensor cores in TF32,
    /// which rounds each operand's mantissa from 23 to 10 bits: faster, with a relative error of
    /// about 10⁻³.
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

    /// Checks a product as [`Device::cublas_matmul`] does, and keeps it for repeated use. No size
    /// may be 0.
    ///
    /// ```no_run
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cuda")?;
    /// let (a, b) = (gpu.upload(&[1.0f32; 6])?, gpu.upload(&[2.0f32; 12])?);
    /// let c = gpu.alloc::<f32>(8)?;
    /// let product = gpu.prepare_cublas_matmul(&a, &b, &c, 2, 4, 3)?;
    /// product.run()?;
    /// gpu.batch().run_prepared(&product)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::cublas_matmul`]; [`GpuError::Argument`] if a size is 0.
    pub fn prepare_cublas_matmul<T: GemmElement>(
        &self,
        a: &Buffer<T>,
        b: &Buffer<T>,
        c: &Buffer<T>,
        m: impl Count,
        n: impl Count,
        k: impl Count,
    ) -> Result<PreparedLaunch> {
        let operation = "Device::prepare_cublas_matmul";
        let sizes = [m.count(), n.count(), k.count()];
        if let Some((name, _)) = ["m", "n", "k"].iter().zip(sizes).find(|(_, size)| *size == 0) {
            let help = "fill c with zeros (Buffer::fill): there is nothing to multiply";
            let error = ArgumentError::new(operation, format!("`{name}`"), "is 0", help);
            return Err(GpuError::Argument(error));
        }
        let routine = default_routine::<T>();
        let mut list = CommandList::default();
        append(&self.context, &mut list, routine, &Matrices { operation, a, b, c, sizes })
            .in_function(operation)?;
        Ok(PreparedLaunch::from_list(kernel(&self.context, routine)?, list))
    }

    fn multiply<T: GemmElement>(&self, routine: Routine, matrices: &Matrices<'_, T>) -> Result<()> {
        let mut list = CommandList::default();
        append(&self.context, &mut list, routine, matrices)
            .and_then(|()| self.context.submit_unless_empty(list))
            .in_function(matrices.operation)
    }
}

impl Batch {
    /// Adds a matrix product by cuBLAS. Products of a recording are computed one after the other.
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
            append(context, list, default_routine::<T>(), &matrices).in_function(operation)
        })
    }
}

/// Appends a matrix product.
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
    let [m, n, k] = sizes.map(|size| check_size(context, operation, size));
    let (m, n, k) = (m?, n?, k?);
    let launch = Launch::workgroups([1; 3]).immediates(&[m, n, k]);
    let kernel = kernel(context, routine)?;
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
    views.iter().try_for_each(|view| check_alignment(context, operation, view))?;
    views[..2].iter().try_for_each(|view| check_disjoint(operation, view, &views[2].1))?;
    encode::dispatch(context, list, operation, &kernel, &[&a, &b, &c], &launch)
}

/// Checks that the device can bind the address of a matrix.
fn check_alignment(
    context: &Context,
    operation: &str,
    (name, view): &(&str, View<'_>),
) -> Result<()> {
    let multiple = context.info.binding_alignment.max(1);
    if view.offset.is_multiple_of(multiple) {
        return Ok(());
    }
    Err(GpuError::Argument(ArgumentError {
        label: None,
        function: Some(operation.to_owned().into()),
        kernel: None,
        argument: format!("`{name}`"),
        problem: format!(
            "begins at byte {} of its memory, but matrices must begin at multiples of {multiple} \
             bytes",
            view.offset
        ),
        help: "copy the slice to a buffer of its own, or pad the data".to_owned(),
    }))
}

/// Checks that an operand does not share bytes with the result.
fn check_disjoint(operation: &str, (name, operand): &(&str, View<'_>), c: &View<'_>) -> Result<()> {
    let (Some((_, operand)), Some((_, c))) = (operand.bytes(), c.bytes()) else { return Ok(()) };
    let (start, end) = (operand.offset.max(c.offset), operand.end().min(c.end()));
    if operand.memory != c.memory || start >= end {
        return Ok(());
    }
    Err(GpuError::Argument(ArgumentError {
        label: None,
        function: Some(operation.to_owned().into()),
        kernel: None,
        argument: "`c`".to_owned(),
        problem: format!("is written, but shares bytes {start}..{end} of its memory with `{name}`"),
        help: "pass buffers or slices that do not overlap".to_owned(),
    }))
}

/// Returns the routine as a kernel of the device.
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
    Ok(Kernel::from_compiled(&context.routines.get_or_load(name, load)?, context))
}

/// Checks a size against the range of cuBLAS.
fn check_size(context: &Context, operation: &str, (name, size): (&str, i128)) -> Result<u32> {
    const MAX_SIZE: u32 = i32::MAX as u32;
    match u32::try_from(size) {
        Ok(size) if size <= MAX_SIZE => Ok(size),
        _ if size < 0 => Err(GpuError::Argument(ArgumentError {
            label: None,
            function: Some(operation.to_owned().into()),
            kernel: None,
            argument: format!("`{name}`"),
            problem: format!("is negative: {size}"),
            help: format!("pass m, n and k from 0 to {MAX_SIZE}"),
        })),
        _ => Err(GpuError::TooLarge(TooLargeError {
            label: None,
            function: None,
            what: format!("`{name}`"),
            requested: size.to_string(),
            device: context.info.name.clone(),
            limit: MAX_SIZE.to_string(),
            limit_name: "rows or columns of a matrix",
            help: "multiply parts of the matrices, one after the other".to_owned(),
        })),
    }
}

/// Returns the elements of a matrix as a slice; an error if the buffer has fewer.
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
        return Err(GpuError::BufferAccess(BufferAccessError {
            operation,
            problem: format!(
                "`{name}` is {shape} = {rows} × {columns} = {count} elements, but {} has {}",
                quoted(buffer.label()),
                buffer.len()
            ),
            help: "pass m, n and k in this order: rows of c, columns of c, reduction dimension"
                .to_owned(),
        }));
    };
    Ok(Slice::new(buffer, 0, count))
}
