//! Encodes the kernel parameters of a launch in the driver's format.

use std::ffi::c_void;

use scry_ptx::Param;

/// A range of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// The addresses of the numbers that kernels poll, the same for all launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Polled {
    /// Address of the number of the submission being executed, and of what kernels write when they
    /// poll.
    pub(crate) epoch: u64,
    /// Address of the number of the last cancelled submission.
    pub(crate) stop: u64,
}

/// Arguments of one launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a> {
    /// The bindings, in the order of the interface; grid parameters are last.
    pub(crate) bindings: &'a [Range],
    pub(crate) immediates: &'a [u8],
    /// Address of the workgroup counts of an indirect launch.
    pub(crate) counts: Option<u64>,
    pub(crate) polled: Polled,
}

/// The kernel parameters of a launch; its buffers are reused for the next.
#[derive(Default)]
pub(crate) struct Parameters {
    /// The values, each at the start of a word.
    words: Vec<u64>,
    /// The first word of each value.
    starts: Vec<usize>,
    /// A pointer to each value, filled by [`Parameters::pointers`].
    pointers: Vec<*mut c_void>,
}

impl Parameters {
    /// Replaces the parameters of the previous launch. `None` if the arguments do not match the
    /// parameters: a binding or the workgroup counts are missing, or there are too many bytes of
    /// immediates.
    pub(crate) fn pack(&mut self, params: &[Param], arguments: Arguments<'_>) -> Option<()> {
        self.clear();
        for param in params {
            self.starts.push(self.words.len());
            match *param {
                Param::Immediates(bytes) => self.push_block(bytes, arguments.immediates)?,
                _ => self.words.push(value(*param, arguments)?),
            }
        }
        Some(())
    }

    /// Clears the parameters.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.starts.clear();
    }

    /// Adds a parameter of several words.
    pub(crate) fn push(&mut self, words: &[u64]) {
        self.starts.push(self.words.len());
        self.words.extend_from_slice(words);
    }

    /// Returns a pointer to each parameter, as `kernelParams`.
    pub(crate) fn pointers(&mut self) -> &mut [*mut c_void] {
        self.pointers.clear();
        let words = self.words.as_mut_ptr();
        let starts = self.starts.iter();
        self.pointers.extend(starts.map(|start| words.wrapping_add(*start).cast::<c_void>()));
        &mut self.pointers
    }

    /// Adds a block of immediates, padded with zeros.
    fn push_block(&mut self, bytes: u32, immediates: &[u8]) -> Option<()> {
        let start = self.words.len();
        // Even an empty parameter has a word, to which its pointer points.
        let words = (bytes as usize).div_ceil(size_of::<u64>()).max(1);
        if immediates.len() > bytes as usize {
            return None;
        }
        extend_with_bytes(&mut self.words, immediates);
        self.words.resize(start + words, 0);
        Some(())
    }
}

/// Appends bytes in memory order, padded with zeros to a whole word.
pub(crate) fn extend_with_bytes(words: &mut Vec<u64>, bytes: &[u8]) {
    let (chunks, remainder) = bytes.as_chunks();
    words.extend(chunks.iter().map(|word| u64::from_ne_bytes(*word)));
    if !remainder.is_empty() {
        let mut word = [0; 8];
        word[..remainder.len()].copy_from_slice(remainder);
        words.push(u64::from_ne_bytes(word));
    }
}

// SAFETY: the pointers are recomputed from the words at each use, and point only into them.
unsafe impl Send for Parameters {}

/// Returns the value of a parameter of 4 or 8 bytes; `None` if the argument is missing. A value of
/// 4 bytes may be read from the start of the word: the device is little-endian, and so is every
/// supported host.
fn value(param: Param, arguments: Arguments<'_>) -> Option<u64> {
    let binding = |index: u32| arguments.bindings.get(index as usize);
    match param {
        Param::Buffer(index) => binding(index).map(|range| range.address),
        Param::Length { buffer, .. } => {
            binding(buffer).map(|range| u64::from(param.elements(range.size)))
        }
        Param::LinearisedGrid => arguments.bindings.last().map(|range| range.address),
        Param::WorkgroupCounts => arguments.counts,
        Param::Epoch => Some(arguments.polled.epoch),
        Param::CancelledEpoch => Some(arguments.polled.stop),
        Param::Immediates(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLLED: Polled = Polled { epoch: 0xe0, stop: 0x50 };
    const BINDINGS: [Range; 3] = [
        Range { address: 0x1000, size: 64 },
        Range { address: 0x2_0000_0000, size: 5 << 30 },
        Range { address: 0x3000, size: 12 },
    ];

    /// Reads the parameters as the driver does; `sizes` are their sizes in bytes.
    fn read_parameters(parameters: &mut Parameters, sizes: &[usize]) -> Vec<Vec<u8>> {
        assert_eq!(parameters.starts.len(), sizes.len());
        let pointers = parameters.pointers();
        let read = |n: usize, size: usize| {
            // SAFETY: each pointer is valid for at least `size` bytes.
            unsafe { std::slice::from_raw_parts(pointers[n].cast::<u8>(), size).to_vec() }
        };
        sizes.iter().enumerate().map(|(n, size)| read(n, *size)).collect()
    }

    fn to_bytes(value: u64) -> Vec<u8> {
        value.to_ne_bytes().to_vec()
    }

    #[test]
    fn parameters_follow_the_kernels_order() {
        let mut parameters = Parameters::default();
        let immediates = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let arguments = Arguments {
            bindings: &BINDINGS,
            immediates: &immediates,
            counts: Some(0x700),
            polled: POLLED,
        };
        let params = [
            Param::Buffer(1),
            Param::Length { buffer: 1, offset: 16, stride: 8 },
            Param::Immediates(12),
            Param::LinearisedGrid,
            Param::WorkgroupCounts,
            Param::Buffer(0),
            Param::Epoch,
            Param::CancelledEpoch,
        ];
        parameters.pack(&params, arguments).unwrap();
        let actual = read_parameters(&mut parameters, &[8, 4, 12, 8, 8, 8, 8, 8]);
        let expected = [
            to_bytes(0x2_0000_0000),
            (5 * (1u32 << 27) - 2).to_ne_bytes().to_vec(),
            immediates.to_vec(),
            to_bytes(0x3000),
            to_bytes(0x700),
            to_bytes(0x1000),
            to_bytes(0xe0),
            to_bytes(0x50),
        ];
        assert_eq!(actual, expected);
    }

    #[test]
    fn immediates_are_zero_padded() {
        let mut parameters = Parameters::default();
        let arguments =
            |immediates| Arguments { bindings: &[], immediates, counts: None, polled: POLLED };
        parameters.pack(&[Param::Immediates(16)], arguments(&[0xff; 16])).unwrap();
        parameters.pack(&[Param::Immediates(16)], arguments(&[7; 5])).unwrap();
        let actual = read_parameters(&mut parameters, &[16]);
        assert_eq!(actual[0], [7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        parameters.pack(&[Param::Immediates(0)], arguments(&[])).unwrap();
        assert_eq!(read_parameters(&mut parameters, &[0]), [[0; 0]]);
        parameters.pack(&[], arguments(&[])).unwrap();
        assert_eq!(read_parameters(&mut parameters, &[]), [[0; 0]; 0]);
    }

    #[test]
    fn missing_arguments_are_detected() {
        let mut parameters = Parameters::default();
        let arguments =
            Arguments { bindings: &BINDINGS, immediates: &[0; 5], counts: None, polled: POLLED };
        assert_eq!(parameters.pack(&[Param::Buffer(3)], arguments), None);
        assert_eq!(
            parameters.pack(&[Param::Length { buffer: 3, offset: 0, stride: 4 }], arguments),
            None
        );
        assert_eq!(parameters.pack(&[Param::Immediates(4)], arguments), None);
        assert_eq!(parameters.pack(&[Param::WorkgroupCounts], arguments), None);
        let nothing = Arguments { bindings: &[], ..arguments };
        assert_eq!(parameters.pack(&[Param::LinearisedGrid], nothing), None);
        assert_eq!(parameters.pack(&[Param::Immediates(5)], nothing), Some(()));
    }
}
