//! Kernels with arguments set by name.

use scry_ir::{Access, Immediates, Interface, TypeLayout, nearest_name};

use crate::api::binding::{Binding, Sealed, View};
use crate::api::element::{self, Element, ElementLayout};
use crate::api::error::{ArgumentError, GpuError, InFunction, Result};
use crate::api::kernel::Kernel;
use crate::api::launch::{ImmediateValue, Launch};
use crate::api::slice::Slice;
use crate::core::check;
use crate::core::command_list::CommandList;
use crate::core::encode;
use crate::{bf16, f16};

/// A kernel with arguments that are set by name: see [`Kernel::bind`].
///
/// Names are checked by the launch rather than by `set`, which allows chaining.
#[derive(Clone)]
#[must_use = "nothing runs until `run` is called, or Batch::run_bound"]
pub struct BoundKernel<'a> {
    kernel: Kernel,
    given: Vec<(String, UntypedArgument<'a>)>,
}

/// An argument that [`BoundKernel::set`] accepts: a buffer or slice for a binding; a number or an
/// array of elements for an immediate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel",
    note = "a buffer is set by reference: `.set(\"src\", &src)`",
    note = "an immediate is set to a number or an array of numbers; a structure is given with \
            `BoundKernel::immediates`"
)]
pub trait KernelArgument<'a> {
    /// Returns the argument without its Rust type.
    #[doc(hidden)]
    fn into_untyped(self) -> UntypedArgument<'a>;
}

/// The name under which all immediates are set at once; not a WGSL identifier.
const BLOCK: &str = "var<immediate>";

/// An argument without its Rust type.
#[derive(Clone)]
#[doc(hidden)]
pub struct UntypedArgument<'a>(ArgumentKind<'a>);

#[derive(Clone)]
enum ArgumentKind<'a> {
    Buffer(ViewBinding<'a>),
    Value(ImmediateValue),
}

/// A view as a binding.
#[derive(Clone)]
struct ViewBinding<'a>(View<'a>);

impl Sealed for ViewBinding<'_> {
    fn view(&self) -> View<'_> {
        self.0
    }
}

impl Binding for ViewBinding<'_> {}

impl<'a, B: Binding + ?Sized> KernelArgument<'a> for &'a B {
    fn into_untyped(self) -> UntypedArgument<'a> {
        UntypedArgument(ArgumentKind::Buffer(ViewBinding(self.view())))
    }
}

impl<'a, T: Element> KernelArgument<'a> for Slice<'a, T> {
    fn into_untyped(self) -> UntypedArgument<'a> {
        UntypedArgument(ArgumentKind::Buffer(ViewBinding(self.into_view())))
    }
}

impl<'a, T: Element, const N: usize> KernelArgument<'a> for [T; N] {
    fn into_untyped(self) -> UntypedArgument<'a> {
        UntypedArgument(ArgumentKind::Value(ImmediateValue::new(&self)))
    }
}

macro_rules! scalar_arguments {
    ($($scalar:ty),*) => {
        $(impl<'a> KernelArgument<'a> for $scalar {
            fn into_untyped(self) -> UntypedArgument<'a> {
                UntypedArgument(ArgumentKind::Value(ImmediateValue::new(&self)))
            }
        })*
    };
}

scalar_arguments!(f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

impl ImmediateValue {
    /// Copies the bytes of a value, and its type.
    pub(crate) fn new<T: Element>(value: &T) -> Self {
        Self {
            bytes: element::bytes_of(std::slice::from_ref(value)).to_vec(),
            layout: T::LAYOUT,
            type_name: std::any::type_name::<T>(),
        }
    }
}

impl Kernel {
    /// Starts a launch with arguments set by name: bindings, and the kernel's `var<immediate>`
    /// or its members.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = Device::open("cpu")?;
    /// let kernel = device.compile(
    ///     "struct Params { scale: f32, offset: f32 }
    ///      var<immediate> params: Params;
    ///      @group(0) @binding(0) var<storage, read> src: array<f32>;
    ///      @group(0) @binding(1) var<storage, read_write> dst: array<f32>;
    ///      @compute @workgroup_size(64) fn affine(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x >= arrayLength(&dst) { return; }
    ///          dst[id.x] = src[id.x] * params.scale + params.offset;
    ///      }",
    /// )?;
    /// let (a, b) = (device.upload(&[1.0f32, 2.0, 3.0])?, device.alloc::<f32>(3)?);
    /// let bound = kernel.bind().set("src", &a).set("dst", &b).set("offset", 0.5f32);
    /// bound.clone().set("scale", 10.0f32).run(3)?;
    /// assert_eq!(b.download()?, [10.5, 20.5, 30.5]);
    ///
    /// bound.clone().set("scale", 2.0f32).run(Launch::workgroups([1, 1, 1]))?;
    /// assert_eq!(b.download()?, [2.5, 4.5, 6.5]);
    ///
    /// let error = bound.set("scael", 1.0f32).run(3).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `scale`?"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind<'a>(&self) -> BoundKernel<'a> {
        BoundKernel { kernel: self.clone(), given: Vec::new() }
    }
}

impl<'a> BoundKernel<'a> {
    /// Sets a binding to a buffer or slice, or an immediate to a number or an array, by the name in
    /// the kernel's source.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let scale = gpu.compile(
    ///     "var<immediate> factor: u32;
    ///      @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] *= factor; }
    ///      }",
    /// )?;
    /// let x = gpu.upload(&[1u32, 2, 3])?;
    /// scale.bind().set("x", &x.slice(..2)?).set("factor", 7u32).run(2)?;
    /// assert_eq!(x.download()?, [7, 14, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    pub fn set(mut self, name: impl Into<String>, argument: impl KernelArgument<'a>) -> Self {
        self.given.push((name.into(), argument.into_untyped()));
        self
    }

    /// Sets all of the kernel's `var<immediate>` to a value, such as a structure.
    ///
    /// ```
    /// use scry_gpu::{Device, Element};
    ///
    /// #[derive(Clone, Copy, Element)]
    /// #[repr(C)]
    /// struct Line {
    ///     slope: f32,
    ///     offset: f32,
    /// }
    ///
    /// let gpu = Device::open("cpu")?;
    /// let kernel = gpu.compile(
    ///     "struct Line { slope: f32, offset: f32 }
    ///      var<immediate> line: Line;
    ///      @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ///      @compute @workgroup_size(1) fn at(@builtin(global_invocation_id) id: vec3u) {
    ///          x[id.x] = line.slope * x[id.x] + line.offset;
    ///      }",
    /// )?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// kernel.bind().set("x", &x).immediates(&Line { slope: 2.0, offset: 1.0 }).run(2)?;
    /// assert_eq!(x.download()?, [3.0, 5.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// The launch fails as [`Device::run_with_immediates`](crate::Device::run_with_immediates).
    pub fn immediates<P: Element>(mut self, value: &P) -> Self {
        let given = UntypedArgument(ArgumentKind::Value(ImmediateValue::new(value)));
        self.given.push((BLOCK.to_owned(), given));
        self
    }

    /// Runs the kernel on its device: for a number of invocations in one, two or three dimensions,
    /// or as a [`Launch`] specifies, which may count workgroups. Returns once the work is
    /// submitted.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let add = gpu.compile(
    ///     "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] += 1u; }
    ///      }",
    /// )?;
    /// let x = gpu.alloc::<u32>(100)?;
    /// let bound = add.bind().set("x", &x);
    /// bound.run(100)?; // invocations
    /// bound.run(Launch::workgroups([2, 1, 1]))?;
    /// assert_eq!(x.download()?, [2; 100]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] if the kernel has no such name, a name is set twice or not at all, or
    /// an argument does not fit; otherwise as [`Device::run`](crate::Device::run).
    pub fn run(&self, launch: impl Into<Launch>) -> Result<()> {
        let context = self.kernel.device().context;
        const NAME: &str = "BoundKernel::run";
        let mut list = CommandList::default();
        let added = self.with_arguments(launch.into(), |bindings, launch| {
            encode::dispatch(&context, &mut list, NAME, &self.kernel, bindings, launch)
        });
        added.and_then(|()| context.submit_unless_empty(list)).in_function(NAME)
    }

    /// Returns the kernel.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Calls `add` with the bindings in the kernel's order, and the launch with all immediates.
    pub(crate) fn with_arguments<R>(
        &self,
        mut launch: Launch,
        add: impl FnOnce(&[&dyn Binding], &Launch) -> Result<R>,
    ) -> Result<R> {
        self.check_names()?;
        let declared = &self.interface().bindings;
        let buffer = |binding: &scry_ir::BindingInfo| match self.find(&binding.name, true) {
            Some(ArgumentKind::Buffer(view)) => Ok(view as &dyn Binding),
            _ => {
                let access = match binding.access {
                    Access::Read => "read",
                    Access::ReadWrite => "read_write",
                };
                Err(self.not_set_error(&binding.name, &format!("{}, {access}", binding.layout)))
            }
        };
        let bindings = declared.iter().map(buffer).collect::<Result<Vec<_>>>()?;
        if let Some(values) = self.values(launch.immediates.is_some())? {
            if launch.immediates.is_some() {
                return Err(self.reject(
                    "immediates",
                    "they are set by name and by the Launch",
                    "set them in one of the two",
                ));
            }
            launch.immediates = Some(values);
        }
        add(&bindings, &launch)
    }

    fn interface(&self) -> &Interface {
        self.kernel.interface()
    }

    /// Finds the buffer, or the value, that was set under a name.
    fn find(&self, name: &str, is_buffer: bool) -> Option<&ArgumentKind<'a>> {
        let is_match = |(given, kind): &&(String, UntypedArgument<'a>)| {
            given == name && matches!(kind.0, ArgumentKind::Buffer(_)) == is_buffer
        };
        self.given.iter().find(is_match).map(|(_, given)| &given.0)
    }

    /// Rejects names that the kernel does not have, or that were set twice.
    fn check_names(&self) -> Result<()> {
        let (buffers, values) = names(self.interface());
        for (index, (name, given)) in self.given.iter().enumerate() {
            let is_buffer = matches!(given.0, ArgumentKind::Buffer(_));
            let (own, other) = if is_buffer { (&buffers, &values) } else { (&values, &buffers) };
            let is_block = !is_buffer && name == BLOCK && !values.is_empty();
            if !is_block && !own.contains(&name.as_str()) {
                return Err(match other.contains(&name.as_str()) {
                    true => self.wrong_kind_error(name, is_buffer),
                    false => self.unknown_error(name, &[&**own, &**other].concat()),
                });
            }
            let is_same = |(earlier, it): &(String, UntypedArgument<'a>)| {
                earlier == name && matches!(it.0, ArgumentKind::Buffer(_)) == is_buffer
            };
            if self.given[..index].iter().any(is_same) {
                return Err(self.reject(
                    &format!("`{name}`"),
                    "it is set twice",
                    "set each name once",
                ));
            }
        }
        Ok(())
    }

    /// Returns the value of the kernel's immediates; `None` if the kernel has none, or if they are
    /// set by the [`Launch`] only.
    fn values(&self, launch_sets_them: bool) -> Result<Option<ImmediateValue>> {
        let Some(declared) = &self.interface().immediates else { return Ok(None) };
        let members: &[scry_ir::Member] = match &declared.layout {
            TypeLayout::Struct { members, .. } => members,
            _ => &[],
        };
        let set_member = members.iter().find(|member| self.find(&member.name, false).is_some());
        let is_member = members.iter().any(|member| member.name == declared.name);
        let named = self.find(&declared.name, false).filter(|_| !is_member);
        let block = self.find(BLOCK, false);
        match (named.or(block), set_member) {
            (Some(ArgumentKind::Value(whole)), None) if named.is_none() || block.is_none() => {
                Ok(Some(whole.clone()))
            }
            (Some(_), _) => Err(self.reject(
                &format!("`{}`", declared.name),
                "it is set as a whole and also by member or again",
                "set its members or the whole, once",
            )),
            (None, None) if launch_sets_them => Ok(None),
            (None, None) if members.is_empty() => {
                Err(self.not_set_error(&declared.name, &format!("{}, immediate", declared.layout)))
            }
            _ => self.assemble(declared, members).map(Some),
        }
    }

    /// Assembles the immediates from their members.
    fn assemble(
        &self,
        declared: &Immediates,
        members: &[scry_ir::Member],
    ) -> Result<ImmediateValue> {
        let mut bytes = vec![0; declared.layout.fixed_size() as usize];
        for member in members {
            let Some(ArgumentKind::Value(value)) = self.find(&member.name, false) else {
                let description = format!("{}, member of `{}`", member.layout, declared.name);
                return Err(self.not_set_error(&member.name, &description));
            };
            let of_member = Immediates { name: member.name.clone(), layout: member.layout.clone() };
            let given = (&value.layout, value.type_name, &*value.bytes);
            let part = check::immediate(self.kernel.checked_interface(), &of_member, given)?;
            let start = member.offset as usize;
            bytes[start..start + part.len()].copy_from_slice(&part);
        }
        Ok(ImmediateValue { bytes, layout: ElementLayout::Opaque, type_name: "bytes" })
    }

    fn unknown_error(&self, name: &str, known: &[&str]) -> GpuError {
        let list: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let problem = match list.is_empty() {
            true => "the kernel has no arguments".to_owned(),
            false => format!("the kernel has no argument of this name, but {}", list.join(", ")),
        };
        let help = match nearest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "use a name of the kernel's source; variables that it does not use are left \
                     out"
            .to_owned(),
        };
        self.reject(&format!("`{name}`"), &problem, &help)
    }

    fn wrong_kind_error(&self, name: &str, is_buffer: bool) -> GpuError {
        let (problem, help) = match is_buffer {
            true => ("a buffer was given for an immediate", "give a number or an array"),
            false => ("a value was given for a binding", "give a buffer or a slice of one"),
        };
        self.reject(&format!("`{name}`"), problem, help)
    }

    fn not_set_error(&self, name: &str, description: &str) -> GpuError {
        let (argument, problem) = (format!("`{name}`"), format!("it was not set ({description})"));
        self.reject(&argument, &problem, &format!("add .set(\"{name}\", …)"))
    }

    fn reject(&self, argument: &str, problem: &str, help: &str) -> GpuError {
        GpuError::Argument(ArgumentError {
            label: self.kernel.label().map(|label| label.to_string()),
            function: None,
            kernel: Some(self.interface().entry_point.clone()),
            argument: argument.to_owned(),
            problem: problem.to_owned(),
            help: help.to_owned(),
        })
    }
}

/// Returns the names of a kernel's buffers, and those of its immediates.
fn names(interface: &Interface) -> (Vec<&str>, Vec<&str>) {
    let buffers = interface.bindings.iter().map(|binding| binding.name.as_str()).collect();
    let mut values = Vec::new();
    if let Some(Immediates { name, layout }) = &interface.immediates {
        if let TypeLayout::Struct { members, .. } = layout {
            values.extend(members.iter().map(|member| member.name.as_str()));
        }
        if !values.contains(&name.as_str()) {
            values.push(name);
        }
    }
    (buffers, values)
}

impl std::fmt::Debug for BoundKernel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.given.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("BoundKernel").field("kernel", &self.kernel).field("set", &names).finish()
    }
}
