//! Memory with checked accesses.

/// A range of addresses with its bytes: a buffer, a variable or a parameter.
#[derive(Debug, Clone)]
pub struct Region {
    pub name: String,
    pub address: u64,
    pub bytes: Vec<u8>,
    /// Whether the kernel declares it as writable.
    pub writable: bool,
    /// Whether each byte is initialised; `None` if all are from the start.
    initialised: Option<Vec<bool>>,
}

impl Region {
    /// Creates initialised memory.
    pub fn new(name: &str, address: u64, bytes: Vec<u8>, writable: bool) -> Self {
        Self { name: name.to_owned(), address, bytes, writable, initialised: None }
    }

    /// Creates uninitialised memory.
    pub fn undefined(name: &str, address: u64, size: u32) -> Self {
        // A value that tests do not expect.
        let bytes = vec![0xa5; size as usize];
        let initialised = Some(vec![false; size as usize]);
        Self { name: name.to_owned(), address, bytes, writable: true, initialised }
    }
}

/// Kinds of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    /// Through the read-only cache (`ld.global.nc`).
    ReadConstant,
    Write,
    /// An atomic read-modify-write.
    ReadWrite,
}

/// The regions of one state space.
#[derive(Debug, Clone, Default)]
pub struct Regions(pub Vec<Region>);

impl Regions {
    /// Returns the bytes of an access, if they are within one region, naturally aligned and, for
    /// reads, initialised, and the region permits the access.
    pub fn access(&mut self, address: u64, size: u32, access: Access) -> Result<&mut [u8], String> {
        let found = self.0.iter().position(|region| region.contains(address, size));
        let Some(found) = found else { return Err(self.outside(address, size, access)) };
        let region = &mut self.0[found];
        let start = (address - region.address) as usize;
        let range = start..start + size as usize;
        let location = || format!("{access:?} of {size} bytes at {}[{start}]", region.name);
        if !address.is_multiple_of(size.into()) {
            return Err(format!("{} is misaligned: the address is {address:#x}", location()));
        }
        if matches!(access, Access::Write | Access::ReadWrite) && !region.writable {
            return Err(format!("{}, which the kernel does not declare as writable", location()));
        }
        if access == Access::ReadConstant && region.writable {
            return Err(format!(
                "{} is marked as constant, but the kernel may write it",
                location()
            ));
        }
        if let Some(initialised) = &mut region.initialised {
            if access == Access::Write {
                initialised[range.clone()].fill(true);
            } else if initialised[range.clone()].contains(&false) {
                return Err(format!("{}, which is not initialised", location()));
            }
        }
        Ok(&mut region.bytes[range])
    }

    fn outside(&self, address: u64, size: u32, access: Access) -> String {
        let distance = |region: &&Region| region.distance(address);
        let Some(nearest) = self.0.iter().min_by_key(distance) else {
            return format!("{access:?} of {size} bytes at {address:#x}: the address is unmapped");
        };
        let (name, len) = (&nearest.name, nearest.bytes.len());
        let at = i128::from(address) - i128::from(nearest.address);
        format!("{access:?} of {size} bytes at {name}[{at}] is out of bounds: it has {len} bytes")
    }
}

impl Region {
    fn contains(&self, address: u64, size: u32) -> bool {
        let end = self.address + self.bytes.len() as u64;
        address >= self.address && address <= end && end - address >= size.into()
    }

    /// Returns the distance of an address from the region.
    fn distance(&self, address: u64) -> u64 {
        let end = self.address + self.bytes.len() as u64;
        self.address.saturating_sub(address).max(address.saturating_sub(end))
    }
}

/// Converts little-endian bytes to an integer.
pub fn read_le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Stores the low bytes of an integer, little-endian.
pub fn write_le(bytes: &mut [u8], word: u64) {
    let len = bytes.len();
    bytes.copy_from_slice(&word.to_le_bytes()[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions() -> Regions {
        Regions(vec![
            Region::new("a", 0x1010, vec![0; 12], true),
            Region::new("b", 0x2010, vec![7; 16], false),
            Region::undefined("c", 0x3010, 8),
        ])
    }

    #[track_caller]
    fn assert_rejected(address: u64, size: u32, access: Access, because: &str) {
        let error = regions().access(address, size, access).unwrap_err();
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn each_wrong_access_is_named() {
        regions().access(0x1018, 4, Access::ReadWrite).unwrap();
        assert_rejected(0x1018, 8, Access::Read, "a[8] is out of bounds: it has 12 bytes");
        assert_rejected(0x100c, 4, Access::Write, "Write of 4 bytes at a[-4] is out of bounds");
        assert_rejected(0x2024, 4, Access::Read, "b[20] is out of bounds");
        assert_rejected(u64::MAX, 4, Access::Read, "out of bounds");
        assert_rejected(0x1012, 4, Access::Read, "a[2] is misaligned");
        assert_rejected(0x2010, 4, Access::Write, "does not declare as writable");
        assert_rejected(0x1010, 4, Access::ReadConstant, "marked as constant");
        assert_rejected(0x3010, 4, Access::Read, "not initialised");
        assert_rejected(0x3010, 4, Access::ReadWrite, "not initialised");
    }

    #[test]
    fn written_bytes_can_be_read() {
        let mut regions = regions();
        write_le(regions.access(0x3014, 4, Access::Write).unwrap(), 0x0102_0304);
        assert_eq!(read_le(regions.access(0x3014, 4, Access::Read).unwrap()), 0x0102_0304);
        assert!(regions.access(0x3010, 8, Access::Read).is_err());
        assert_eq!(read_le(regions.access(0x2010, 2, Access::ReadConstant).unwrap()), 0x0707);
    }
}
