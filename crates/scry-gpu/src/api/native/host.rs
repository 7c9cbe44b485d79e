//! Functions of the host, and their arguments.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::element::{self, Element};

/// A function of the host.
pub(crate) type HostFunction = Arc<dyn Fn(&mut HostArguments<'_>) + Send + Sync>;

/// The arguments of one launch of a host function: the bytes of its buffers, its immediates and
/// its grid. See [`Device::host_kernel`](crate::Device::host_kernel).
pub struct HostArguments<'a> {
    kernel: &'a str,
    buffers: Vec<HostBuffer<'a>>,
    immediates: &'a [u8],
    workgroups: [u32; 3],
    threads: HostThreads<'a>,
}

/// Calls a function on the calling thread, and on up to a number of other threads of the device.
/// Returns when all calls have returned.
pub(crate) type WithHelp<'a> = &'a (dyn Fn(usize, &(dyn Fn() + Sync)) + Sync);

/// The threads of a device, which a host function may use while it runs. See
/// [`HostArguments::threads`].
#[derive(Clone, Copy)]
pub struct HostThreads<'a> {
    pub(crate) count: usize,
    pub(crate) with_help: WithHelp<'a>,
}

/// The bytes of a bound buffer.
#[cfg_attr(
    not(feature = "cpu"),
    expect(dead_code, reason = "only the CPU runs functions of the host")
)]
pub(crate) enum HostBuffer<'a> {
    /// A buffer that is only read.
    Read(&'a [u8]),
    /// A buffer that is declared as written.
    Write(&'a mut [u8]),
    /// A written buffer that the function has taken.
    Taken,
}

impl<'a> HostArguments<'a> {
    #[cfg_attr(
        not(feature = "cpu"),
        expect(dead_code, reason = "only the CPU runs functions of the host")
    )]
    pub(crate) fn new(
        kernel: &'a str,
        buffers: Vec<HostBuffer<'a>>,
        immediates: &'a [u8],
        workgroups: [u32; 3],
        threads: HostThreads<'a>,
    ) -> Self {
        Self { kernel, buffers, immediates, workgroups, threads }
    }

    /// Returns the elements of a buffer that is declared as read. Bytes after the last whole
    /// element are left out.
    ///
    /// # Panics
    /// If there is no such buffer, or if it is declared as written.
    #[must_use]
    pub fn read<T: Element>(&self, binding: usize) -> &'a [T] {
        match self.buffers.get(binding) {
            Some(HostBuffer::Read(bytes)) => element::elements_of(bytes),
            _ => self.wrong_binding(binding, "read"),
        }
    }

    /// Returns the elements of a buffer that is declared as written, as they were before the
    /// launch. The slice is taken out, so that several can be held at the same time. Bytes after
    /// the last whole element are left out.
    ///
    /// # Panics
    /// If there is no such buffer, if it is declared as read, or if it was taken before.
    pub fn write<T: Element>(&mut self, binding: usize) -> &'a mut [T] {
        let buffer = self.buffers.get_mut(binding);
        match buffer.map(|buffer| std::mem::replace(buffer, HostBuffer::Taken)) {
            Some(HostBuffer::Write(bytes)) => element::elements_of_mut(bytes),
            _ => self.wrong_binding(binding, "written, or it was taken before"),
        }
    }

    /// Returns the immediates as one value.
    ///
    /// # Panics
    /// If `T` has another size than the immediates that the interface declares.
    #[must_use]
    pub fn immediates<T: Element>(&self) -> T {
        let mut value = element::zeroed::<T>(1);
        let (declared, given) = (self.immediates.len(), size_of::<T>());
        assert!(declared == given, "`{}` has {declared} bytes of immediates", self.kernel);
        element::bytes_of_mut(&mut value).copy_from_slice(self.immediates);
        value[0]
    }

    /// Returns the workgroups of the launch along x, y and z. The function is called once for all
    /// of them.
    #[must_use]
    pub fn workgroups(&self) -> [u32; 3] {
        self.workgroups
    }

    /// Returns the threads of the device. Those that helped the launch before still poll for work,
    /// so that they start earlier than those of another thread pool, which sleep.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch, NativeBinding, NativeInterface, Scalar};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let interface = NativeInterface::new([NativeBinding::read_write("y", Scalar::U32)], [1; 3]);
    /// let squares = gpu.host_kernel("squares", &interface, |arguments| {
    ///     let y = arguments.write::<u32>(0);
    ///     arguments.threads().for_each_chunk(y, 256, |start, chunk| {
    ///         for (index, y) in (start as u32..).zip(chunk) {
    ///             *y = index * index;
    ///         }
    ///     });
    /// })?;
    /// let y = gpu.alloc::<u32>(1000)?;
    /// gpu.run(&squares, &[&y], Launch::workgroups([1; 3]))?;
    /// assert_eq!(y.download()?[999], 999 * 999);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn threads(&self) -> HostThreads<'a> {
        self.threads
    }

    fn wrong_binding(&self, binding: usize, access: &str) -> ! {
        panic!("binding {binding} of `{}` is not declared as {access}", self.kernel)
    }
}

impl HostThreads<'_> {
    /// Returns the number of threads, including the one that runs the host function.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls a function with the position and the elements of each chunk of `elements`, on all
    /// threads. The last chunk may be shorter than `chunk_len`. See [`HostArguments::threads`] for
    /// an example.
    ///
    /// # Panics
    /// If `chunk_len` is 0, or if the function panics.
    pub fn for_each_chunk<T: Send>(
        &self,
        elements: &mut [T],
        chunk_len: usize,
        function: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let chunks = elements.chunks_mut(chunk_len).enumerate();
        let helpers = chunks.len().min(self.count).saturating_sub(1);
        let chunks = Mutex::new(chunks);
        // The lock is held while a chunk is claimed, which does not panic.
        let claim = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
        (self.with_help)(helpers, &|| {
            while let Some((nth, chunk)) = claim() {
                function(nth * chunk_len, chunk);
            }
        });
    }
}

impl fmt::Debug for HostThreads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostThreads").field("count", &self.count).finish_non_exhaustive()
    }
}

impl fmt::Debug for HostArguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostArguments")
            .field("kernel", &self.kernel)
            .field("buffers", &self.buffers.len())
            .field("workgroups", &self.workgroups)
            .finish_non_exhaustive()
    }
}
