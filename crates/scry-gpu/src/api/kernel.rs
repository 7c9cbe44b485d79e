//! A compiled kernel.

use std::sync::Arc;

use scry_ir::kir::{Kir, KirOptions};
use scry_ir::{Interface, OverrideValue, Program, ShaderError, ShaderErrorKind};

use crate::api::binding::Binding;
use crate::api::error::{GpuError, Result, WrongDeviceError};
use crate::api::launch;
use crate::api::native::{self, NativeSpec};
use crate::cache::{KernelKey, KeyRef};
use crate::core::check::{self, Argument, KernelInterface};
use crate::core::clock::Instant;
use crate::core::compiled_kernel::CompiledKernel;
use crate::core::context::Context;
use crate::core::logging;

/// A kernel compiled for one device. Cheap to clone, usable from any thread, any number of times.
#[doc(alias("pipeline", "ShaderModule", "CUfunction"))]
#[derive(Clone)]
pub struct Kernel {
    pub(super) context: Arc<Context>,
    compiled: Arc<CompiledKernel>,
    /// The name of its source, for errors. Kernels that differ only in the name share `compiled`.
    label: Option<Arc<str>>,
}

/// Options for the compilation of a kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompileOptions {
    /// The entry point; `None` selects the only one.
    pub entry: Option<String>,
    /// Values of `override`s, by name or by decimal `@id`.
    pub overrides: Vec<(String, OverrideValue)>,
    /// Name of the source, such as its file, for errors.
    pub label: Option<String>,
}

impl CompileOptions {
    /// Returns options for the only entry point, with all overrides at their defaults.
    ///
    /// ```
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let source = "@compute @workgroup_size(1) fn nothing() {}";
    /// // The same as Device::compile.
    /// let kernel = gpu.compile_with(source, &CompileOptions::new())?;
    /// assert_eq!(kernel.entry_point(), "nothing");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the entry point.
    ///
    /// ```
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let source = "@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}";
    /// let kernel = gpu.compile_with(source, &CompileOptions::new().entry("b"))?;
    /// assert_eq!(kernel.entry_point(), "b");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn entry(mut self, name: impl Into<String>) -> Self {
        self.entry = Some(name.into());
        self
    }

    /// Sets an override, by name or by decimal `@id`, to a `bool`, `i32`, `u32`, `f32` or `f64`.
    /// Compilation fails for a value that the override's type cannot represent, and for a name that
    /// the source does not declare.
    ///
    /// ```
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = Device::open("cpu")?;
    /// let source = "
    ///     override SIZE: u32 = 64;
    ///     override SCALE: f32;
    ///     override CLAMP: bool = false;
    ///     @compute @workgroup_size(SIZE) fn scale() { _ = SCALE; _ = CLAMP; }";
    /// let options = CompileOptions::new().set("SIZE", 32).set("SCALE", 0.5).set("CLAMP", true);
    /// assert_eq!(device.compile_with(source, &options)?.workgroup_size(), [32, 1, 1]);
    ///
    /// let half = device.compile_with(source, &options.set("SIZE", 0.5)).unwrap_err();
    /// assert!(half.to_string().contains("`SIZE` of type u32 cannot be 0.5"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<OverrideValue>) -> Self {
        self.overrides.push((name.into(), value.into()));
        self
    }

    /// Sets the name of the source for errors, such as its file name: errors in the source have the
    /// location `blur.wgsl:5:5` instead of `wgsl:5:5`, and other errors of the kernel and its
    /// launches start with `blur.wgsl:` or, for a wrong device, contain the name. Kernels that
    /// differ only in the label are compiled once.
    ///
    /// ```
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let options = CompileOptions::new().label("blur.wgsl");
    /// let device = Device::open("cpu")?;
    /// let error = device.compile_with("fn f() { let x = y; }", &options).unwrap_err();
    /// assert!(error.to_string().contains("blur.wgsl:1:18"));
    ///
    /// let source = "@group(0) @binding(0) var<storage> x: array<f32>;
    ///     @compute @workgroup_size(64) fn blur() { _ = x[0]; }";
    /// let blur = device.compile_with(source, &options)?;
    /// let error = device.run(&blur, &[], 64).unwrap_err();
    /// assert!(error.to_string().starts_with("blur.wgsl: kernel `blur`, buffers: "));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

impl Kernel {
    /// Returns the number of bindings.
    #[must_use]
    pub fn binding_count(&self) -> usize {
        self.interface().bindings.len()
    }

    /// Returns the name of the entry point.
    #[must_use]
    pub fn entry_point(&self) -> &str {
        &self.interface().entry_point
    }

    /// Returns the invocations of a workgroup along x, y and z.
    #[must_use]
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.interface().workgroup_size
    }

    /// Returns the interface of the kernel: bindings, immediates, overrides.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let add = gpu.compile(
    ///     "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] += 1u; }
    ///      }",
    /// )?;
    /// let binding = &add.interface().bindings[0];
    /// assert_eq!((&*binding.name, binding.layout.to_string()), ("x", "array<u32>".to_owned()));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn interface(&self) -> &Interface {
        self.compiled.interface()
    }

    /// Returns the name of its source, if it has one.
    pub(crate) fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }

    /// Drops the device. A device's own caches store kernels without it, because a handle of the
    /// device would be a reference cycle.
    pub(crate) fn into_compiled(self) -> Arc<CompiledKernel> {
        self.compiled
    }

    /// Returns the compiled kernel, which has no handle of the device.
    pub(crate) fn compiled(&self) -> &Arc<CompiledKernel> {
        &self.compiled
    }

    /// Creates a kernel without a label from one that was stored without its device.
    pub(crate) fn from_compiled(compiled: &Arc<CompiledKernel>, context: &Arc<Context>) -> Self {
        Self { context: context.clone(), compiled: compiled.clone(), label: None }
    }

    /// Compiles a source, unless it is cached.
    pub(crate) fn compile(
        context: &Arc<Context>,
        source: &str,
        options: &CompileOptions,
        checked: bool,
    ) -> Result<Self> {
        context.check_alive()?;
        let CompileOptions { entry, overrides, label } = options;
        let entry = entry.as_deref();
        let key = KeyRef { source, entry, overrides, checked, native: None };
        let build = |key: &KernelKey| CompiledKernel::compile(context, key.clone());
        let kernel = Self::find_or_compile(context, key, build)
            .map_err(|error| error.with_label(label.as_deref()))?;
        Ok(Self { label: label.as_deref().map(Arc::from), ..kernel })
    }

    /// Compiles a program of the kernel IR, unless it is cached. Its key in caches is the text of
    /// the kernel with bounds checks and, if code refers to lines of a source, their positions.
    pub(crate) fn compile_ir(
        context: &Arc<Context>,
        program: Program,
        label: Option<&str>,
    ) -> Result<Self> {
        context.check_alive()?;
        let text = |kir: Kir| match kir.source.line_info {
            true => format!("{IR_PREFIX}{kir}\n{:?}", kir.source),
            false => format!("{IR_PREFIX}{kir}"),
        };
        let source = program
            .with_kir(&KirOptions { checked: true }, text)
            .map_err(|error| GpuError::from(error).with_label(label))?;
        let key =
            KeyRef { source: &source, entry: None, overrides: &[], checked: true, native: None };
        let build =
            |key: &KernelKey| CompiledKernel::compile_program(context, key.clone(), program);
        let kernel =
            Self::find_or_compile(context, key, build).map_err(|error| error.with_label(label))?;
        Ok(Self { label: label.map(Arc::from), ..kernel })
    }

    /// Compiles a source that is not WGSL, unless it is cached.
    pub(crate) fn compile_native(
        context: &Arc<Context>,
        source: &str,
        entry: &str,
        spec: &NativeSpec,
    ) -> Result<Self> {
        context.check_alive()?;
        native::validate(source, entry, spec)?;
        let key = KeyRef {
            source,
            entry: Some(entry),
            overrides: &[],
            checked: false,
            native: Some(spec),
        };
        let build = |key: &KernelKey| CompiledKernel::compile_native(context, key.clone(), spec);
        Self::find_or_compile(context, key, build)
    }

    /// Returns a kernel from the memory cache, or compiles it.
    fn find_or_compile(
        context: &Arc<Context>,
        key: KeyRef<'_>,
        compile: impl FnOnce(&KernelKey) -> Result<CompiledKernel>,
    ) -> Result<Self> {
        let mut duration = None;
        let timed = |key: &KernelKey| {
            let start = Instant::now();
            let kernel = compile(key);
            duration = Some(start.elapsed());
            kernel
        };
        let compiled = context.kernels.get_or_build(key, timed)?;
        let kernel = Self { context: context.clone(), compiled, label: None };
        match duration {
            Some(duration) => logging::compiled(&context.info, kernel.entry_point(), duration),
            None => logging::found_in_memory(&context.info, kernel.entry_point()),
        }
        Ok(kernel)
    }

    /// Returns the interface as launches are checked against it.
    pub(crate) fn checked_interface(&self) -> KernelInterface<'_> {
        KernelInterface::new(self.interface(), self.is_native())
    }

    /// Rejects indirect launches, if the kernel is native.
    pub(crate) fn check_indirect(&self) -> Result<()> {
        match self.compiled.is_native() {
            true => Err(launch::native_kernel_indirect(self.interface())),
            false => Ok(()),
        }
    }

    /// Rejects buffers that are shorter than a native kernel declares.
    pub(crate) fn check_lengths(&self, arguments: &[Argument<'_>]) -> Result<()> {
        match &self.compiled.key().native {
            Some(spec) => native::check_lengths(self.entry_point(), &spec.interface, arguments),
            None => Ok(()),
        }
    }

    /// Rejects tensor maps in the immediates that exceed their buffers.
    pub(crate) fn check_maps(&self, bindings: &[&dyn Binding], immediates: &[u8]) -> Result<()> {
        match &self.compiled.key().native {
            Some(spec) if spec.interface.declared_parameters().is_some() => {
                let declared = self.interface().bindings.iter().zip(bindings);
                let size = |(binding, given): (&_, &&dyn Binding)| {
                    check::bound_size(binding, given.view().size)
                };
                let sizes: Vec<u64> = declared.map(size).collect();
                native::parameters::check_maps(
                    self.entry_point(),
                    &spec.interface,
                    immediates,
                    &sizes,
                )
            }
            _ => Ok(()),
        }
    }

    /// Rejects a device other than the kernel's own.
    pub(crate) fn check_device(&self, context: &Arc<Context>, operation: &str) -> Result<()> {
        if Arc::ptr_eq(self.compiled.driver(), &context.driver) {
            return Ok(());
        }
        let of = self.label.as_ref().map(|label| format!(" of {label}")).unwrap_or_default();
        Err(GpuError::WrongDevice(WrongDeviceError {
            operation: operation.to_owned(),
            what: format!("kernel `{}`{of}", self.entry_point()),
            owner: self.compiled.driver().info().name.clone(),
            user: context.info.name.clone(),
            help: "compile it with the Device that runs it".to_owned(),
        }))
    }

    /// Returns whether it is PTX, CUDA C or a library routine, rather than WGSL or the kernel IR.
    pub(crate) fn is_native(&self) -> bool {
        self.compiled.is_native()
    }
}

/// The prefix of kernel IR in cache keys. No WGSL source starts with it. The number is the version
/// of the text format.
const IR_PREFIX: &str = "\0kernel IR 1\n";

/// Creates a program from kernel IR.
///
/// # Errors
/// Those of [`Program::from_kir`], and for options that the kernel does not have.
pub(crate) fn ir_program(kir: &Kir, options: &CompileOptions) -> Result<Program> {
    let program = match (&options.entry, options.overrides.first()) {
        (Some(entry), _) if *entry != kir.name => Err(ShaderError::new(
            ShaderErrorKind::EntryPoint,
            format!("there is no entry point `{entry}`: the kernel is `{}`", kir.name),
        )),
        (_, Some((name, _))) => Err(ShaderError::new(
            ShaderErrorKind::Override,
            format!("there is no override `{name}`: kernels built in the IR have none"),
        )),
        _ => Program::from_kir(kir),
    };
    program.map_err(|error| GpuError::from(error).with_label(options.label.as_deref()))
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("entry_point", &self.entry_point())
            .field("workgroup_size", &self.workgroup_size())
            .field("bindings", &self.binding_count())
            .finish()
    }
}
