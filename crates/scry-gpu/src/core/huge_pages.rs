//! Huge pages for host memory that is about to be filled.
//!
//! The first access to each page of fresh memory is a page fault. With pages of 4 KiB, the faults
//! of a large download take three times as long as the transfer; with pages of 2 MiB they are
//! negligible.

/// Minimum size in bytes of memory that is worth the system call.
const MIN_SIZE: usize = 8 << 20;

/// Advises the system to back memory by pages of 2 MiB. Contents do not change; a system without
/// huge pages ignores it.
pub(crate) fn prefer(memory: &mut [u8]) {
    if memory.len() >= MIN_SIZE {
        advise(memory);
    }
}

#[cfg(target_os = "linux")]
fn advise(memory: &mut [u8]) {
    use std::ffi::{c_int, c_void};

    /// The size of a huge page, a multiple of all smaller page sizes.
    const PAGE: usize = 2 << 20;
    const MADV_HUGEPAGE: c_int = 14;

    // SAFETY: the C library has this function, and the declaration matches its manual.
    unsafe extern "C" {
        fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
    }

    let unaligned = memory.as_ptr().align_offset(PAGE).min(memory.len());
    let aligned = &mut memory[unaligned..];
    let length = aligned.len() / PAGE * PAGE;
    // SAFETY: the range is within the memory borrowed here. The advice changes neither contents nor
    // access rights, and may be rejected without harm.
    unsafe { madvise(aligned.as_mut_ptr().cast(), length, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &mut [u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_keeps_every_byte() {
        for (size, start) in
            [(MIN_SIZE - 1, 0), (MIN_SIZE, 0), (MIN_SIZE + 12345, 0), (3 * MIN_SIZE, 4097)]
        {
            let mut memory: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            prefer(&mut memory[start..]);
            assert!(memory.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
        }
    }

    /// Needs transparent huge pages: "always" or "madvise".
    #[cfg(target_os = "linux")]
    #[test]
    fn fresh_memory_gets_huge_pages() {
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if !setting.is_ok_and(|modes| modes.contains("[madvise]") || modes.contains("[always]")) {
            eprintln!("SKIPPED: this system has no transparent huge pages");
            return;
        }
        let mut memory = crate::api::element::zeroed::<u8>(64 << 20);
        memory.fill(1);
        let huge = huge_kib(memory.as_ptr_range());
        assert!(huge >= 32 << 10, "{huge} kB of 64 MiB are in huge pages");
    }

    /// Returns the KiB in huge pages of the mappings that overlap a range.
    #[cfg(target_os = "linux")]
    fn huge_kib(range: std::ops::Range<*const u8>) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut overlaps, mut sum) = (false, 0);
        for line in maps.lines() {
            let address = |text| usize::from_str_radix(text, 16).ok();
            let bounds = line.split(' ').next().and_then(|first| first.split_once('-'));
            if let Some((Some(start), Some(end))) = bounds.map(|(a, b)| (address(a), address(b))) {
                overlaps = start < range.end.addr() && end > range.start.addr();
            } else if let Some(size) = line.strip_prefix("AnonHugePages:").filter(|_| overlaps) {
                sum += size.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        }
        sum
    }
}
