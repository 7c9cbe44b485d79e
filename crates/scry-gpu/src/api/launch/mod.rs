//! The size of a launch: invocations or workgroups, and the grid that runs them.

use scry_ir::{Interface, LinearisedGrid};

use crate::api::binding::Binding;
use crate::api::element::{Element, ElementLayout};
use crate::api::error::{ArgumentError, GpuError, Result, TooLargeError};
use crate::api::info::DeviceInfo;
use crate::core::check::KernelInterface;
use crate::core::count_buffer::CountBuffer;

/// The largest number of invocations on an axis: `global_invocation_id` is a `vec3<u32>`.
const MAX_INVOCATIONS: u128 = u32::MAX as u128;
const AXES: [&str; 3] = ["x", "y", "z"];

/// A number of invocations along x, y and z.
///
/// Converts from a number, an array or a tuple; missing axes are 1. If the number is not a
/// multiple of the kernel's workgroup size, the last workgroup still runs in full, so kernels must
/// compare `global_invocation_id` with the length of their data.
///
/// A launch fails for negative numbers and those above 2³² − 1; the error has the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocations([i128; 3]);

/// The type of a number of invocations: `i32`, `u32`, `i64`, `u64` or `usize`.
pub trait Count: Copy + sealed::Sealed {
    /// Returns the number, which may be out of range.
    #[doc(hidden)]
    fn count(self) -> i128;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for u32 {}
    impl Sealed for i64 {}
    impl Sealed for u64 {}
    impl Sealed for usize {}
}

impl Count for i32 {
    fn count(self) -> i128 {
        self.into()
    }
}

impl Count for u32 {
    fn count(self) -> i128 {
        self.into()
    }
}

impl Count for i64 {
    fn count(self) -> i128 {
        self.into()
    }
}

impl Count for u64 {
    fn count(self) -> i128 {
        self.into()
    }
}

impl Count for usize {
    fn count(self) -> i128 {
        // No platform has pointers of more than 64 bits.
        self as i128
    }
}

impl<T: Count> From<T> for Invocations {
    fn from(x: T) -> Self {
        Self([x.count(), 1, 1])
    }
}

impl<T: Count> From<[T; 1]> for Invocations {
    fn from([x]: [T; 1]) -> Self {
        Self([x.count(), 1, 1])
    }
}

impl<T: Count> From<[T; 2]> for Invocations {
    fn from([x, y]: [T; 2]) -> Self {
        Self([x.count(), y.count(), 1])
    }
}

impl<T: Count> From<[T; 3]> for Invocations {
    fn from(axes: [T; 3]) -> Self {
        Self(axes.map(T::count))
    }
}

impl<X: Count, Y: Count> From<(X, Y)> for Invocations {
    fn from((x, y): (X, Y)) -> Self {
        Self([x.count(), y.count(), 1])
    }
}

impl<X: Count, Y: Count, Z: Count> From<(X, Y, Z)> for Invocations {
    fn from((x, y, z): (X, Y, Z)) -> Self {
        Self([x.count(), y.count(), z.count()])
    }
}

/// The size of a launch.
#[derive(Debug, Clone)]
pub(crate) enum LaunchSize {
    /// Specified by the caller.
    Direct(GridSize),
    /// The device reads the number of workgroups from memory. Boxed to keep launches of a
    /// known size small.
    Indirect(Box<CountBuffer>),
}

/// The size of a direct launch: invocations or workgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GridSize {
    /// At least this many invocations.
    Invocations(Invocations),
    /// Exactly this many workgroups along x, y and z.
    Workgroups([u32; 3]),
}

/// The value of a launch's immediates, or of one of their members.
#[derive(Debug, Clone)]
pub(crate) struct ImmediateValue {
    /// The bytes, in the host's layout.
    pub bytes: Vec<u8>,
    /// The host type's layout.
    pub layout: ElementLayout,
    /// Name of the Rust type, for errors.
    pub type_name: &'static str,
}

/// A launch of a kernel: the number of invocations or workgroups, and the immediates.
///
/// A number, an array or a tuple converts into a launch of that size.
#[doc(alias = "grid")]
#[derive(Debug, Clone)]
pub struct Launch {
    pub(crate) size: LaunchSize,
    pub(crate) immediates: Option<ImmediateValue>,
}

impl<I: Into<Invocations>> From<I> for Launch {
    fn from(count: I) -> Self {
        Self::invocations(count)
    }
}

impl Launch {
    /// Creates a launch of the given number of invocations, rounded up to whole workgroups on each
    /// axis.
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
    /// gpu.run(&add, &[&x], Launch::invocations(100))?; // 2 workgroups of 64
    /// assert_eq!(x.download()?, [1; 100]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn invocations(count: impl Into<Invocations>) -> Self {
        Self::with_size(LaunchSize::Direct(GridSize::Invocations(count.into())))
    }

    /// Creates a launch of exactly this many workgroups along x, y and z.
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
    /// gpu.run(&add, &[&x], Launch::workgroups([1, 1, 1]))?; // 64 invocations
    /// assert_eq!(x.download()?.iter().sum::<u32>(), 64);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn workgroups(count: [u32; 3]) -> Self {
        Self::with_size(LaunchSize::Direct(GridSize::Workgroups(count)))
    }

    /// Creates an indirect launch: the device reads the number of workgroups from a buffer when it
    /// executes the launch.
    ///
    /// `counts` is a buffer or slice that begins with the workgroups along x, y and z, as `u32`.
    /// Its elements are those that fit a binding `array<u32>`: [`Element`] has the rules. The host
    /// never waits for the counts: an earlier launch may compute them, in the same
    /// [`Batch`](crate::Batch) or [`Recording`](crate::Recording) or before.
    ///
    /// Nothing runs if a count is 0, if an axis has more than 2³² − 1 invocations, or if there are
    /// more than 2³² − 1 workgroups in total; this is not an error. All other counts run in full:
    /// grids above the device's limits are linearised.
    ///
    /// The counts are ordered like a binding that the kernel reads: the launch waits for earlier
    /// work that writes them, and later work that writes them waits for the launch. The launch
    /// keeps their memory alive. The kernel may also read them through a binding, but a binding
    /// that it writes must not overlap them.
    ///
    /// ```
    /// # use scry_gpu::{Device, Launch};
    /// # fn main() -> Result<(), scry_gpu::GpuError> {
    /// let gpu = Device::open("cpu")?;
    /// // Computes the size of the next launch on the device.
    /// let plan = gpu.compile("
    ///     @group(0) @binding(0) var<storage, read> items: array<u32>;
    ///     @group(0) @binding(1) var<storage, read_write> counts: array<u32, 3>;
    ///
    ///     @compute @workgroup_size(1)
    ///     fn plan() {
    ///         counts = array((items[0] + 63u) / 64u, 1u, 1u);
    ///     }
    /// ")?;
    /// let work = gpu.compile("
    ///     @group(0) @binding(0) var<storage, read_write> done: atomic<u32>;
    ///
    ///     @compute @workgroup_size(64)
    ///     fn work() { atomicAdd(&done, 1u); }
    /// ")?;
    /// let items = gpu.upload(&[100u32])?;
    /// let counts = gpu.alloc::<u32>(3)?;
    /// let done = gpu.alloc::<u32>(1)?;
    /// let mut batch = gpu.batch();
    /// batch.run(&plan, &[&items, &counts], 1)?;
    /// batch.run(&work, &[&done], Launch::indirect(&counts))?;
    /// batch.submit()?;
    /// assert_eq!(done.download()?, [128]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call that runs the launch fails: with [`GpuError::WrongDevice`] if the counts are on
    /// another device; with [`GpuError::Argument`] if there are fewer than three, if their type
    /// does not fit, if their offset is not a multiple of 4 bytes, if the kernel writes them, or if
    /// it is PTX or CUDA C.
    #[doc(alias("dispatch_workgroups_indirect", "vkCmdDispatchIndirect"))]
    #[must_use]
    pub fn indirect(counts: &dyn Binding) -> Self {
        Self::with_size(LaunchSize::Indirect(Box::new(CountBuffer::new(counts.view()))))
    }

    fn with_size(size: LaunchSize) -> Self {
        Self { size, immediates: None }
    }

    /// Sets the value of the kernel's `var<immediate>`.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let scale = gpu.compile(
    ///     "var<immediate> factor: u32;
    ///      @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] *= factor; }
    ///      }",
    /// )?;
    /// let x = gpu.upload(&[2u32, 3])?;
    /// gpu.run(&scale, &[&x], Launch::invocations(2).immediates(&10u32))?;
    /// assert_eq!(x.download()?, [20, 30]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn immediates<P: Element>(mut self, value: &P) -> Self {
        self.immediates = Some(ImmediateValue::new(value));
        self
    }

    /// Sets the bytes of the kernel's `var<immediate>`: only their number is checked.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let scale = gpu.compile(
    ///     "var<immediate> factor: u32;
    ///      @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] *= factor; }
    ///      }",
    /// )?;
    /// let x = gpu.upload(&[2u32, 3])?;
    /// let launch = Launch::invocations(2).immediate_bytes(10u32.to_ne_bytes());
    /// gpu.run(&scale, &[&x], launch)?;
    /// assert_eq!(x.download()?, [20, 30]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn immediate_bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.immediates = Some(ImmediateValue {
            bytes: bytes.into(),
            layout: ElementLayout::Opaque,
            type_name: "bytes",
        });
        self
    }
}

/// The grid of a launch on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Workgroups as the kernel sees them.
    pub groups: [u32; 3],
    /// Workgroups as the device runs them.
    pub native: [u32; 3],
    /// The parameters of the grid linearisation; `None` if both grids are the same.
    pub linearised: Option<LinearisedGrid>,
    /// True if an axis has no workgroups.
    pub empty: bool,
}

/// Returns the grid of a launch of `interface`'s kernel on a device.
///
/// # Errors
/// Negative sizes; more than 2³² − 1 invocations on an axis, rounding up included; if the grid must
/// be linearised, more than 2³² − 1 workgroups in total, or more than the device's limits allow.
/// For native kernels, whose grids are not linearised, only negative sizes, and more workgroups on
/// an axis than the device's limits allow.
pub(crate) fn grid(
    interface: KernelInterface<'_>,
    info: &DeviceInfo,
    size: GridSize,
) -> Result<Grid> {
    let is_native = interface.is_native();
    let interface: &Interface = &interface;
    let groups = match size {
        GridSize::Invocations(Invocations(count)) => whole_workgroups(interface, count)?,
        GridSize::Workgroups(groups) => groups.map(u128::from),
    };
    if groups.contains(&0) {
        return Ok(Grid { groups: [0; 3], native: [0; 3], linearised: None, empty: true });
    }
    let max_native = info.limits.max_native_workgroups.map(|n| n.max(1));
    if is_native {
        let native = groups.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        if groups.iter().zip(max_native).any(|(n, max)| *n > u128::from(max)) {
            return Err(native_grid_too_large(interface, info, groups));
        }
        return Ok(Grid { groups: native, native, linearised: None, empty: false });
    }
    check_axes(interface, info, size, groups)?;
    let groups = groups.map(|n| u32::try_from(n).expect("no more workgroups than invocations"));
    if groups.iter().zip(max_native).all(|(n, max)| *n <= max) {
        return Ok(Grid { groups, native: groups, linearised: None, empty: false });
    }
    let Some((native, params)) = linearise(groups, max_native) else {
        return Err(too_many_to_linearise(interface, info, groups));
    };
    Ok(Grid { groups, native, linearised: Some(params), empty: false })
}

/// Returns the workgroups that cover `count` invocations on each axis.
fn whole_workgroups(interface: &Interface, count: [i128; 3]) -> Result<[u128; 3]> {
    let mut groups = [0; 3];
    for axis in 0..3 {
        let count = u128::try_from(count[axis]).map_err(|_| {
            GpuError::Argument(ArgumentError {
                label: None,
                function: None,
                kernel: Some(interface.entry_point.clone()),
                argument: "size of the launch".into(),
                problem: format!("{} invocations along {}", count[axis], AXES[axis]),
                help: "give a number from 0 to 4294967295".into(),
            })
        })?;
        groups[axis] = count.div_ceil(u128::from(interface.workgroup_size[axis].max(1)));
    }
    Ok(groups)
}

/// Rejects launches with invocation indices that do not fit in a `vec3<u32>`.
fn check_axes(
    interface: &Interface,
    info: &DeviceInfo,
    size: GridSize,
    groups: [u128; 3],
) -> Result<()> {
    for axis in 0..3 {
        let width = u128::from(interface.workgroup_size[axis].max(1));
        let invocations = groups[axis].saturating_mul(width);
        if invocations <= MAX_INVOCATIONS {
            continue;
        }
        let requested = match size {
            GridSize::Invocations(Invocations(count))
                if count[axis].unsigned_abs() != invocations =>
            {
                format!("{} invocations, {invocations} in whole workgroups of {width}", count[axis])
            }
            _ => format!("{invocations} invocations, {} workgroups of {width}", groups[axis]),
        };
        return Err(GpuError::TooLarge(TooLargeError {
            label: None,
            function: None,
            what: format!("the launch of kernel `{}` along {}", interface.entry_point, AXES[axis]),
            requested,
            device: info.name.clone(),
            limit: MAX_INVOCATIONS.to_string(),
            limit_name: "invocations on an axis",
            help: format!(
                "launch at most {} workgroups along {} and let each invocation do several \
                 elements, or use another axis",
                MAX_INVOCATIONS / width,
                AXES[axis]
            ),
        }));
    }
    Ok(())
}

/// Linearises a grid into rows of physical workgroups within the device's limits, all at least 1.
/// `None` if the number of workgroups exceeds 32 bits, or the device's limits.
fn linearise(groups: [u32; 3], max_native: [u32; 3]) -> Option<([u32; 3], LinearisedGrid)> {
    let [x, y, z] = groups.map(u64::from);
    let total = x.checked_mul(y)?.checked_mul(z)?;
    if total > u64::from(u32::MAX) {
        return None;
    }
    let [max_width, max_height, max_depth] = max_native.map(u64::from);
    // As few layers and rows as possible, of equal width: less than one workgroup per row is
    // excess.
    let min_rows = total.div_ceil(max_width);
    let depth = min_rows.div_ceil(max_height);
    if depth > max_depth {
        return None;
    }
    let height = min_rows.div_ceil(depth);
    // Row indices are 32-bit in the kernel, including those of excess rows.
    u32::try_from(height * depth).ok()?;
    let width = total.div_ceil(height * depth);
    let rows = total.div_ceil(width);
    let last_row_len = total - (rows - 1) * width;
    let to_u32 = |n: u64| u32::try_from(n).expect("at most the total, which fits");
    let native = [to_u32(width), to_u32(height), to_u32(depth)];
    let params = LinearisedGrid {
        groups,
        width: native[0],
        height: native[1],
        rows: to_u32(rows),
        last_row_len: to_u32(last_row_len),
        padding: 0,
    };
    Some((native, params))
}

/// Returns the error for a native kernel on a grid with an axis beyond the device's limits.
fn native_grid_too_large(interface: &Interface, info: &DeviceInfo, groups: [u128; 3]) -> GpuError {
    let [x, y, z] = groups;
    let [max_x, max_y, max_z] = info.limits.max_native_workgroups;
    GpuError::TooLarge(TooLargeError {
        label: None,
        function: None,
        what: format!("the launch of kernel `{}`", interface.entry_point),
        requested: format!("{x} × {y} × {z} workgroups"),
        device: info.name.clone(),
        limit: format!("{max_x} × {max_y} × {max_z} of a kernel that is not WGSL"),
        limit_name: "max_native_workgroups",
        help: "spread the launch over another axis, let each invocation do several elements, \
                 or launch parts of the data one after the other"
            .into(),
    })
}

/// Returns the error for an indirect launch of a kernel that is not WGSL.
pub(crate) fn native_kernel_indirect(interface: &Interface) -> GpuError {
    GpuError::Argument(ArgumentError {
        label: None,
        function: None,
        kernel: Some(interface.entry_point.clone()),
        argument: "size of the launch".into(),
        problem: "an indirect launch needs a WGSL kernel".into(),
        help: "launch it with Launch::workgroups, and return from the workgroups that have no \
               work"
            .into(),
    })
}

fn too_many_to_linearise(interface: &Interface, info: &DeviceInfo, groups: [u32; 3]) -> GpuError {
    let [x, y, z] = groups;
    let total = groups.iter().map(|n| u128::from(*n)).product::<u128>();
    let max_native = info.limits.max_native_workgroups;
    let capacity = max_native.iter().map(|n| u128::from(*n)).product::<u128>().min(MAX_INVOCATIONS);
    GpuError::TooLarge(TooLargeError {
        label: None,
        function: None,
        what: format!("the launch of kernel `{}`", interface.entry_point),
        requested: format!("{x} × {y} × {z} = {total} workgroups"),
        device: info.name.clone(),
        limit: format!(
            "{capacity} workgroups in all, once an axis has more than the device's {} × {} × {}",
            max_native[0], max_native[1], max_native[2]
        ),
        limit_name: "max_native_workgroups",
        help: "use larger workgroups, let each invocation do several elements, or launch parts \
                 of the data one after the other"
            .into(),
    })
}

#[cfg(test)]
mod tests;
