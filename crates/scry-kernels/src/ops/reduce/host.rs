//! Reductions that return their result to the host.

use scry_gpu::{Buffer, Element, Result};

use super::Reduction;
use crate::kernels::Kernels;

/// Reductions that wait for their result.
impl Kernels {
    /// Returns the sum of all elements, see [`Reduction::Sum`]. Waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.5])?;
    /// assert_eq!(Kernels::new(&gpu)?.sum(&x)?, 6.5);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn sum<T: Element>(&self, x: &Buffer<T>) -> Result<T> {
        self.reduce_to_host("Kernels::sum", Reduction::Sum, x)
    }

    /// Returns the product of all elements, see [`Reduction::Product`]. Waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3, 4])?;
    /// assert_eq!(Kernels::new(&gpu)?.product(&x)?, 24);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn product<T: Element>(&self, x: &Buffer<T>) -> Result<T> {
        self.reduce_to_host("Kernels::product", Reduction::Product, x)
    }

    /// Returns the smallest element, see [`Reduction::Min`]. Waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[3, -5, 4])?;
    /// assert_eq!(Kernels::new(&gpu)?.min(&x)?, -5);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn min<T: Element>(&self, x: &Buffer<T>) -> Result<T> {
        self.reduce_to_host("Kernels::min", Reduction::Min, x)
    }

    /// Returns the largest element, see [`Reduction::Max`]. Waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[3, -5, 4])?;
    /// assert_eq!(Kernels::new(&gpu)?.max(&x)?, 4);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn max<T: Element>(&self, x: &Buffer<T>) -> Result<T> {
        self.reduce_to_host("Kernels::max", Reduction::Max, x)
    }

    /// Returns the index of the smallest element, see [`Reduction::ArgMin`]. Waits for the
    /// device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[3.0f32, -5.0, -5.0])?;
    /// assert_eq!(Kernels::new(&gpu)?.argmin(&x)?, 1);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn argmin<T: Element>(&self, x: &Buffer<T>) -> Result<u32> {
        self.reduce_to_host("Kernels::argmin", Reduction::ArgMin, x)
    }

    /// Returns the index of the largest element, see [`Reduction::ArgMax`]. Waits for the
    /// device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[3.0f32, f32::NAN, 8.0])?;
    /// assert_eq!(Kernels::new(&gpu)?.argmax(&x)?, 1);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn argmax<T: Element>(&self, x: &Buffer<T>) -> Result<u32> {
        self.reduce_to_host("Kernels::argmax", Reduction::ArgMax, x)
    }

    /// Returns the mean of all elements, which must be floats, see [`Reduction::Mean`]. Waits for
    /// the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 4.0])?;
    /// assert_eq!(Kernels::new(&gpu)?.mean(&x)?, 2.5);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn mean<T: Element>(&self, x: &Buffer<T>) -> Result<T> {
        self.reduce_to_host("Kernels::mean", Reduction::Mean, x)
    }

    /// Returns the variance of all elements, which must be floats, see [`Reduction::Variance`].
    /// Waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 3.0])?;
    /// assert_eq!(Kernels::new(&gpu)?.variance(&x, 0)?, 1.0);
    /// assert_eq!(Kernels::new(&gpu)?.variance(&x, 1)?, 2.0);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn variance<T: Element>(&self, x: &Buffer<T>, correction: u32) -> Result<T> {
        self.reduce_to_host("Kernels::variance", Reduction::Variance { correction }, x)
    }

    /// Returns the Euclidean norm of all elements, which must be floats, see [`Reduction::Norm`].
    /// Waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[3.0e30f32, 4.0e30])?;
    /// assert_eq!(Kernels::new(&gpu)?.norm(&x)?, 5.0e30);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce`] and [`Buffer::download`].
    pub fn norm<T: Element>(&self, x: &Buffer<T>) -> Result<T> {
        self.reduce_to_host("Kernels::norm", Reduction::Norm, x)
    }

    /// Returns the inner product of two vectors of the same length, see [`Kernels::reduce_dot`].
    /// Waits for the device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (a, b) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?);
    /// assert_eq!(Kernels::new(&gpu)?.dot(&a, &b)?, 11.0);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::reduce_dot`] and [`Buffer::download`].
    pub fn dot<T: Element>(&self, a: &Buffer<T>, b: &Buffer<T>) -> Result<T> {
        let out = self.device().alloc::<T>(1)?;
        self.reduce_dot_named("Kernels::dot", [a, b], &out)?.run()?;
        out.get(0)
    }

    fn reduce_to_host<T: Element, R: Element>(
        &self,
        function: &'static str,
        reduction: Reduction,
        x: &Buffer<T>,
    ) -> Result<R> {
        let out = self.device().alloc::<R>(1)?;
        self.reduce_named(function, reduction, x, &out)?.run()?;
        out.get(0)
    }
}
