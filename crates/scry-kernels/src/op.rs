//! Prepared operations.

use std::fmt;
use std::sync::Arc;

use scry_gpu::{Batch, Binding, GpuError, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::explanation::Explanation;
use crate::kernels::Kernels;
use crate::operation::{self, AnyOperation, Operation};

/// An operation of the kernel library, checked and compiled: run it as often as you like.
///
/// It owns what it uses: buffers may be dropped. It is cheap to clone, and usable from any thread.
#[derive(Clone)]
#[must_use = "nothing is computed until it is run or added to a batch"]
pub struct Op {
    pub(crate) kernels: Kernels,
    pub(crate) operation: Arc<dyn AnyOperation>,
    pub(crate) buffers: Vec<UntypedBuffer>,
    launches: Arc<[PreparedLaunch]>,
    explanation: Explanation,
}

impl Kernels {
    /// Checks the buffers of an operation, chooses its variant and prepares it.
    pub(crate) fn op(&self, operation: impl Operation, buffers: &[&dyn Binding]) -> Result<Op> {
        let operation: Arc<dyn AnyOperation> = Arc::new(operation);
        arguments::check(self.device(), &*operation, buffers)?;
        let (variant, explanation) = operation::choose(&*operation, self)?;
        let buffers: Vec<_> = buffers.iter().map(|buffer| buffer.to_untyped()).collect();
        Op::new(self, operation, buffers, variant, explanation)
    }
}

impl Op {
    /// Prepares a variant, by its position.
    pub(crate) fn new(
        kernels: &Kernels,
        operation: Arc<dyn AnyOperation>,
        buffers: Vec<UntypedBuffer>,
        variant: usize,
        explanation: Explanation,
    ) -> Result<Self> {
        let launches = match operation.is_empty() {
            true => Vec::new(),
            false => operation.prepare(variant, kernels, &buffers)?,
        };
        let kernels = kernels.clone();
        Ok(Self { kernels, operation, buffers, launches: launches.into(), explanation })
    }

    /// Submits the operation and returns before it is done; reads of the results wait for it.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[2.0f32; 8])?, gpu.alloc::<f32>(8)?);
    /// let softmax = Kernels::new(&gpu)?.softmax(&x, &y, 1, 8)?;
    /// softmax.run()?; // does not wait
    /// softmax.run()?;
    /// assert_eq!(y.download()?, [0.125; 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// The same as [`Device::run`](scry_gpu::Device::run).
    pub fn run(&self) -> Result<()> {
        const NAME: &str = "Op::run";
        match &*self.launches {
            [] => Ok(()),
            [launch] => launch.run().map_err(|error| self.with_call(NAME, error)),
            _ => {
                let mut batch = self.kernels.device().batch();
                self.append(&mut batch, NAME)?;
                batch.submit_async().map(|_| ()).map_err(|error| self.with_call(NAME, error))
            }
        }
    }

    /// Adds the operation to a batch.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[2.0f32; 8])?, gpu.alloc::<f32>(8)?);
    /// let softmax = Kernels::new(&gpu)?.softmax(&x, &y, 1, 8)?;
    /// let mut batch = gpu.batch();
    /// softmax.add_to(&mut batch)?;
    /// let recording = batch.record()?;
    /// recording.replay()?.wait()?;
    /// assert_eq!(y.download()?, [0.125; 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::WrongDevice`] if the batch is of another device; [`GpuError::OutOfMemory`].
    pub fn add_to(&self, batch: &mut Batch) -> Result<()> {
        self.append(batch, "Op::add_to")
    }

    fn append(&self, batch: &mut Batch, function: &str) -> Result<()> {
        self.launches.iter().try_for_each(|launch| {
            let added = batch.run_prepared(launch).map(|_| ());
            added.map_err(|error| self.with_call(function, error))
        })
    }

    /// Returns which variant computes the operation, and why.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[2.0f32; 8])?, gpu.alloc::<f32>(8)?);
    /// let softmax = Kernels::new(&gpu)?.softmax(&x, &y, 1, 8)?;
    /// println!("{}", softmax.explain());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// Returns the names of the kernels in launch order; empty if there is nothing to compute.
    #[must_use]
    pub fn kernel_names(&self) -> Vec<&str> {
        self.launches.iter().map(|launch| launch.kernel().entry_point()).collect()
    }

    /// Names the functions that the program called.
    fn with_call(&self, function: &str, error: GpuError) -> GpuError {
        let call = self.operation.call().description();
        match error {
            GpuError::WrongDevice(error) => GpuError::WrongDevice(error.with_subject(
                function,
                format!("the operation prepared by {call}"),
                "add it to a batch of the Device that it was prepared for",
            )),
            other => other.in_function(format!("{function} of {call}")),
        }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Op")
            .field("operation", &self.operation)
            .field("variant", &self.explanation.variant())
            .field("kernels", &self.kernel_names())
            .finish_non_exhaustive()
    }
}
