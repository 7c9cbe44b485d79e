//! Errors: what happened, where in the program, and what to do.

use std::fmt;
use std::panic::Location;

use scry_gpu::GpuError;

use crate::dtype::DType;
use crate::shape::Shape;

/// The result of most calls.
///
/// ```
/// use scry_tensor::{Device, Result, Tensor};
///
/// fn normalised(x: &Tensor) -> Result<Tensor> {
///     x.div(x.sum_keepdim(-1)?)
/// }
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([1.0f32, 3.0], &gpu)?;
/// assert_eq!(normalised(&x)?.to_vec::<f32>()?, [0.25, 0.75]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause of an error.
///
/// ```
/// use scry_tensor::{DType, Device, ErrorKind, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::arange(6, DType::F32, &gpu)?;
/// let kinds = [x.i(6), x.reshape([4, -1]), x.cast(DType::Q4_0)].map(|it| it.unwrap_err().kind());
/// assert_eq!(kinds, [ErrorKind::Index, ErrorKind::Shape, ErrorKind::DType]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes do not fit each other or the operation.
    Shape,
    /// An element type does not fit the others or the operation.
    DType,
    /// An index or an axis is out of range, or an index is not supported.
    Index,
    /// A value does not fit its type.
    Value,
    /// A tensor has too many elements.
    TooLarge,
    /// Tensors of different devices were used together.
    Device,
    /// A node of a graph is used where elements in memory are needed, or nodes of different graphs
    /// are used together; the inputs of a run are not those of the plan.
    Graph,
    /// A kernel of a plan computed another result than its operations one by one.
    Mismatch,
    /// A result of numbers is not a number (NaN): [`Plan::run_checked`](crate::Plan::run_checked).
    NotANumber,
    /// The device, its driver or the kernel failed: [`Error::gpu`] has the error.
    Gpu,
}

/// The error of a failed call: names the operation, the line of the caller, the problem with the
/// values, and what to do. `Debug` prints the same text as `Display`.
///
/// ```
/// use scry_tensor::{Device, ErrorKind, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::zeros([2, 3], scry_tensor::DType::F32, &gpu)?;
/// let y = Tensor::zeros([4], scry_tensor::DType::F32, &gpu)?;
/// let error = x.add(&y).unwrap_err();
/// assert_eq!((error.kind(), error.function()), (ErrorKind::Shape, "Tensor::add"));
/// assert_eq!(error.shapes().len(), 2);
/// assert!(error.to_string().contains("; help: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    call: Call,
    scope: String,
    problem: String,
    help: String,
    shapes: Vec<Shape>,
    gpu: Option<GpuError>,
}

impl Error {
    /// Returns the cause.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, ErrorKind, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let error = Tensor::eye(3, DType::Q4_0, &gpu).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::DType);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the called function, such as `Tensor::add`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let error = Tensor::new([1.0f32, 2.0], &gpu)?.reshape([3]).unwrap_err();
    /// assert_eq!(error.function(), "Tensor::reshape");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn function(&self) -> &'static str {
        self.0.call.op
    }

    /// Returns the position of the call in the program.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1.0f32, 2.0], &gpu)?;
    /// let line = line!() + 1;
    /// let error = x.reshape([3]).unwrap_err();
    /// assert_eq!((error.location().file(), error.location().line()), (file!(), line));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.0.call.at
    }

    /// Returns the scope of the graph in which the operation was recorded, such as
    /// `encoder.layer.3`; empty outside of scopes.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let x = g.input("x", [2, 3])?;
    /// let scope = g.scope("head");
    /// assert_eq!(x.reshape([4]).unwrap_err().scope(), "head");
    /// drop(scope);
    /// assert_eq!(x.reshape([4]).unwrap_err().scope(), "");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.0.scope
    }

    /// Names the scope of a graph.
    pub(crate) fn in_scope(mut self, scope: &str) -> Self {
        scope.clone_into(&mut self.0.scope);
        self
    }

    /// Adds a condition to the problem, such as sizes for which it occurs.
    pub(crate) fn when(mut self, condition: &str) -> Self {
        self.0.problem.push_str(condition);
        self
    }

    /// Returns the shapes of the operands, if they matter.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([2, 3], DType::F32, &gpu)?;
    /// let error = x.add(&Tensor::zeros([4], DType::F32, &gpu)?).unwrap_err();
    /// assert_eq!((*error.shapes()[0] == [2, 3], *error.shapes()[1] == [4]), (true, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shapes(&self) -> &[Shape] {
        &self.0.shapes
    }

    /// Returns what to do. Empty for errors of the device, which have their own.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1i32, 2], &gpu)?;
    /// let error = x.add(Tensor::new([0.5f32, 1.5], &gpu)?).unwrap_err();
    /// assert!(error.help().contains("cast(DType::"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn help(&self) -> &str {
        &self.0.help
    }

    /// Returns the error of the device, if it is one.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([2], DType::F32, &gpu)?;
    /// assert!(x.reshape([3]).unwrap_err().gpu().is_none());
    /// let error = Graph::new(&gpu)?.kernel("fn main() {", &[], &[]).unwrap_err();
    /// assert!(error.gpu().is_some(), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn gpu(&self) -> Option<&GpuError> {
        self.0.gpu.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { call: Call { op, at }, scope, problem, help, .. } = &*self.0;
        write!(f, "{op} ({}:{}:{}", at.file(), at.line(), at.column())?;
        if !scope.is_empty() {
            write!(f, ", in {scope}")?;
        }
        write!(f, "): {problem}")?;
        if help.is_empty() { Ok(()) } else { write!(f, "; help: {help}") }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.gpu.as_ref().map(|error| error as _)
    }
}

/// A call of a public function: its name and its position in the program.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

impl Call {
    /// Records the caller of the public function `op`, which must be `#[track_caller]`.
    #[track_caller]
    pub(crate) fn new(op: &'static str) -> Self {
        Self { op, at: Location::caller() }
    }

    /// Returns an error of this call.
    pub(crate) fn error(
        self,
        kind: ErrorKind,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Error {
        let (problem, help) = (problem.into(), help.into());
        Error(Box::new(Inner {
            kind,
            call: self,
            scope: String::new(),
            problem,
            help,
            shapes: Vec::new(),
            gpu: None,
        }))
    }

    /// Returns an error about shapes.
    pub(crate) fn shape_error(
        self,
        shapes: &[&[usize]],
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Error {
        let mut error = self.error(ErrorKind::Shape, problem, help);
        error.0.shapes = shapes.iter().map(|shape| Shape::from(*shape)).collect();
        error
    }

    /// Returns an error of the device.
    pub(crate) fn gpu(self, error: GpuError) -> Error {
        let mut wrapped = self.error(ErrorKind::Gpu, error.to_string(), "");
        wrapped.0.gpu = Some(error);
        wrapped
    }

    /// Checks that an operation supports the element type of an operand.
    pub(crate) fn check_dtype(self, dtype: DType, supported: &[DType]) -> Result<()> {
        self.check_supported(dtype, supported, |dtype| match dtype {
            DType::Bool => {
                "compare first, such as `x.gt(0.0)?`, or `.cast(DType::Bool)`".to_owned()
            }
            _ => format!("convert the tensor: `.cast(DType::{dtype:?})`"),
        })
    }

    /// Checks that an operation supports the element type of a result, which the caller chose.
    pub(crate) fn check_new_dtype(self, dtype: DType, supported: &[DType]) -> Result<()> {
        self.check_supported(dtype, supported, |dtype| format!("use `DType::{dtype:?}`"))
    }

    fn check_supported(
        self,
        dtype: DType,
        supported: &[DType],
        help: impl Fn(DType) -> String,
    ) -> Result<()> {
        if supported.contains(&dtype) {
            return Ok(());
        }
        let names: Vec<&str> = supported.iter().map(|dtype| dtype.name()).collect();
        let problem = format!("element type {dtype} is not supported; use {}", or_list(&names));
        Err(self.error(
            ErrorKind::DType,
            problem,
            help(supported.first().copied().unwrap_or(dtype)),
        ))
    }
}

/// Joins names, such as `f32, f16 or bf16`.
fn or_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
