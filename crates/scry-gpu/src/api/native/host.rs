//! Functions of the host, and their arguments.

use std::fmt;
use std::sync::Arc;

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
    ) -> Self {
        Self { kernel, buffers, immediates, workgroups }
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

    fn wrong_binding(&self, binding: usize, access: &str) -> ! {
        panic!("binding {binding} of `{}` is not declared as {access}", self.kernel)
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
