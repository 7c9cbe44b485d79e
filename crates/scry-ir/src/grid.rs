//! Grids of launches: where a kernel reads its workgroup counts, and which workgroups run.

/// The grid of a linearised launch, in the layout of the kernel's uniform buffer.
///
/// A launch with more workgroups on an axis than the device supports is laid out as rows of `width`
/// physical workgroups along x, stacked along y and z. The kernel linearises its physical workgroup
/// id, exits at once if it is in excess, and computes its logical ids. The numbers of rows and the
/// linear index have 32 bits: a launch has at most 2^32 - 1 workgroups, without those in excess.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearisedGrid {
    /// Logical workgroups of the launch along x, y and z.
    pub groups: [u32; 3],
    /// Physical workgroups in a row, along x.
    pub width: u32,
    /// Physical rows along y.
    pub height: u32,
    /// Rows that contain workgroups of the launch.
    pub rows: u32,
    /// Workgroups of the launch in the last of those rows.
    pub last_row: u32,
    /// Unused; keeps the size a multiple of 16 bytes.
    pub padding: u32,
}

impl LinearisedGrid {
    /// Returns the content of the kernel's uniform buffer.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let [x, y, z] = self.groups;
        let words = [x, y, z, self.width, self.height, self.rows, self.last_row, self.padding];
        let mut bytes = [0; 32];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// The source of the grid for a variant of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GridSource {
    /// Built-in ids of the device: the physical grid is that of the launch.
    Native,
    /// A buffer with a [`LinearisedGrid`].
    Linearised,
    /// The workgroup counts of an indirect launch, in memory: the physical workgroups, whose number
    /// does not depend on the counts, loop over [`runnable_workgroups`].
    Counts,
}

/// Returns the workgroups along x, y and z that an indirect launch runs for the `counts` in memory,
/// of a kernel with workgroups of `size` invocations.
///
/// These are the counts themselves, unless the invocations of an axis, or all workgroups together,
/// exceed 2^32 - 1: then, as for a count of 0, no workgroup runs. The host does not know the
/// counts, so there is no error. The rule is the same on every backend.
#[must_use]
pub fn runnable_workgroups(size: [u32; 3], counts: [u32; 3]) -> [u32; 3] {
    let [x, y, z] = counts;
    let total = x.checked_mul(y).and_then(|xy| xy.checked_mul(z));
    let on_axes = counts.iter().zip(size).all(|(n, width)| n.checked_mul(width).is_some());
    // A product with a zero factor may overflow before it becomes zero.
    if counts.contains(&0) || total.is_none() || !on_axes { [0; 3] } else { counts }
}
