//! The call of a program, as errors name it.

use std::borrow::Cow;

use scry_gpu::{ArgumentError, GpuError};

/// The function that the program called, and the sizes that it passed.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) function: Cow<'static, str>,
    pub(crate) sizes: Vec<(&'static str, u64)>,
}

impl Call {
    /// A call whose sizes are not known yet, or do not matter.
    pub(crate) fn new(function: impl Into<Cow<'static, str>>) -> Self {
        Self { function: function.into(), sizes: Vec::new() }
    }

    /// Returns the error for an argument of the call; `problem` is the predicate of the sentence.
    pub(crate) fn argument_error(
        &self,
        argument: impl Into<String>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> GpuError {
        GpuError::Argument(ArgumentError::new(&self.function, argument, problem, help))
    }

    /// Converts the error of a library kernel to one of the function that chose it: the program
    /// neither wrote the kernel nor chose its grid.
    pub(crate) fn for_function(&self, error: GpuError) -> GpuError {
        match error {
            GpuError::TooLarge(error) if error.limit_name() == "max_native_workgroups" => {
                let error = error.with_subject(
                    format!("the grid for {}", self.list_sizes()),
                    "split the operation over several calls",
                );
                GpuError::TooLarge(error).in_function(self.function.clone())
            }
            // The function's name is also that of the source.
            GpuError::TooLarge(error) => {
                let (what, help) = (error.what().to_owned(), error.help().to_owned());
                GpuError::TooLarge(error.with_subject(what, help))
                    .in_function(self.function.clone())
            }
            other => other.in_function(self.function.clone()),
        }
    }

    /// Returns the function with its sizes, as in `Kernels::matmul (m=3, n=5, k=3)`.
    pub(crate) fn description(&self) -> String {
        match self.sizes.as_slice() {
            [] => self.function.to_string(),
            _ => format!("{} ({})", self.function, self.list_sizes()),
        }
    }

    /// Returns the sizes, as in `m=3, n=5, k=3`.
    pub(crate) fn list_sizes(&self) -> String {
        let sizes: Vec<_> =
            self.sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        sizes.join(", ")
    }
}
