//! Compiled kernels as bytes: what the driver made of a kernel, and all that a launch has to know.

use scry_ptx::Param;

/// What an image begins with. Another layout gets another number at the end.
const MAGIC: &[u8; 8] = b"scrycub1";

/// What the code of a device begins with.
const ELF: &[u8] = b"\x7fELF";

/// More parameters than any kernel has: they take 4 bytes at least of 4096.
const MAX_PARAMS: u32 = 1024;

/// A compiled kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// The kernel's name in the code.
    pub(super) entry: String,
    /// What a launch passes, in order.
    pub(super) params: Vec<Param>,
    /// Threads of a block along x, y and z.
    pub(super) workgroup: [u32; 3],
    /// Bytes of shared memory that a launch asks for.
    pub(super) dynamic_shared: u32,
    /// The code of the device; or PTX with a zero at the end, which is in no cache.
    pub(super) cubin: Vec<u8>,
}

impl Image {
    /// Whether there is the code of the device.
    pub(super) fn is_compiled(&self) -> bool {
        self.cubin.starts_with(ELF)
    }

    /// The image as bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut number = |value: u32| bytes.extend(value.to_le_bytes());
        for size in self.workgroup {
            number(size);
        }
        number(self.dynamic_shared);
        number(self.params.len() as u32);
        for param in &self.params {
            for word in words(*param) {
                number(word);
            }
        }
        number(self.entry.len() as u32);
        bytes.extend(self.entry.as_bytes());
        bytes.extend(&self.cubin);
        bytes
    }

    /// Reads what [`Image::encode`] wrote; `None` for anything else.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes.strip_prefix(MAGIC)?);
        let workgroup = [rest.number()?, rest.number()?, rest.number()?];
        let dynamic_shared = rest.number()?;
        let count = Some(rest.number()?).filter(|count| *count <= MAX_PARAMS)?;
        let mut params = Vec::new();
        for _ in 0..count {
            params.push(rest.param()?);
        }
        let length = rest.number()? as usize;
        let entry = String::from_utf8(rest.take(length)?.to_vec()).ok()?;
        let cubin = rest.0.to_vec();
        // The driver is given no length, and takes what is no ELF for a text that ends with a zero.
        cubin.starts_with(ELF).then_some(Self { entry, params, workgroup, dynamic_shared, cubin })
    }
}

/// What has not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn param(&mut self) -> Option<Param> {
        let words = [self.number()?, self.number()?, self.number()?, self.number()?];
        Some(match words {
            [0, buffer, 0, 0] => Param::Buffer(buffer),
            [1, buffer, offset, stride] if stride > 0 => Param::Length { buffer, offset, stride },
            [2, 0, 0, 0] => Param::Fold,
            [3, bytes, 0, 0] => Param::Immediates(bytes),
            [4, 0, 0, 0] => Param::Epoch,
            [5, 0, 0, 0] => Param::Stop,
            _ => return None,
        })
    }
}

/// A parameter as numbers.
fn words(param: Param) -> [u32; 4] {
    match param {
        Param::Buffer(buffer) => [0, buffer, 0, 0],
        Param::Length { buffer, offset, stride } => [1, buffer, offset, stride],
        Param::Fold => [2, 0, 0, 0],
        Param::Immediates(bytes) => [3, bytes, 0, 0],
        Param::Epoch => [4, 0, 0, 0],
        Param::Stop => [5, 0, 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        Image {
            entry: "double".to_owned(),
            params: vec![
                Param::Buffer(1),
                Param::Length { buffer: 1, offset: 16, stride: 12 },
                Param::Fold,
                Param::Immediates(12),
                Param::Epoch,
                Param::Stop,
            ],
            workgroup: [64, 2, 1],
            dynamic_shared: 100 << 10,
            cubin: b"\x7fELF and more".to_vec(),
        }
    }

    #[test]
    fn an_image_is_read_as_it_was_written() {
        assert_eq!(Image::decode(&image().encode()), Some(image()));
        let plain = Image { params: Vec::new(), ..image() };
        assert_eq!(Image::decode(&plain.encode()), Some(plain));
    }

    #[test]
    fn an_image_that_is_cut_off_is_none() {
        let whole = image().encode();
        let header = whole.len() - image().cubin.len();
        for length in 0..=header {
            assert_eq!(Image::decode(&whole[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn an_image_that_differs_in_a_byte_is_never_the_same() {
        let whole = image().encode();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[at] ^= 1 << bit;
                assert_ne!(Image::decode(&other), Some(image()), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn code_that_is_none_is_refused() {
        for cubin in [&b""[..], b".version 7.0", b"\x7fEL"] {
            let image = Image { cubin: cubin.to_vec(), ..image() };
            assert_eq!(Image::decode(&image.encode()), None);
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let mut huge = image().encode();
        huge[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Image::decode(&huge), None, "so many parameters");
        let zero = Param::Length { buffer: 0, offset: 0, stride: 0 };
        let zero = Image { params: vec![zero], ..image() };
        assert_eq!(Image::decode(&zero.encode()), None, "elements of no size");
    }
}
