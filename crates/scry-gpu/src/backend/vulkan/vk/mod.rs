//! The part of Vulkan that is made use of: its types as C lays them out, and its commands, found at
//! run time.
//!
//! Names are Vulkan's own, in Rust's case, without their prefixes; the tests hold every layout,
//! number and offset against those of the ash crate. Structures are made by [`structure`], which
//! fills in their type and zeroes the rest; fields that nobody reads are kept as a gap. Unsafe
//! methods ask of their callers what Vulkan asks for the command of the same name; what a structure
//! points to must outlive the call that it is for.

mod calls;
mod device;
mod entry;
mod flags;
mod instance;
mod objects;
mod properties;
mod recorded;
mod requests;
mod result;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ffi::{CStr, FromBytesUntilNulError, c_char, c_void};
use std::mem::MaybeUninit;

pub(crate) use self::device::{Device, ObjectNamer, PushDescriptors};
pub(crate) use self::entry::Entry;
pub(crate) use self::flags::*;
pub(crate) use self::instance::{Instance, Messengers};
pub(crate) use self::objects::*;
pub(crate) use self::properties::*;
pub(crate) use self::requests::*;
pub(crate) use self::result::Result;

/// A truth value as Vulkan has it.
pub(crate) type Bool32 = u32;
pub(crate) const TRUE: Bool32 = 1;
pub(crate) const FALSE: Bool32 = 0;

pub(crate) const API_VERSION_1_0: u32 = version(1, 0);
pub(crate) const API_VERSION_1_2: u32 = version(1, 2);
pub(crate) const API_VERSION_1_3: u32 = version(1, 3);

/// The size of a range or mapping that reaches to the end.
pub(crate) const WHOLE_SIZE: u64 = u64::MAX;

const fn version(major: u32, minor: u32) -> u32 {
    (major << 22) | (minor << 12)
}

/// Major, minor and patch number of a version.
pub(crate) fn version_parts(version: u32) -> [u32; 3] {
    [(version >> 22) & 0x7f, (version >> 12) & 0x3ff, version & 0xfff]
}

/// How every structure of a chain begins.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Header {
    kind: i32,
    pub(crate) next: *const c_void,
}

/// A structure that can stand in a chain.
///
/// # Safety
/// It is `repr(C)`, begins with a [`Header`], may be zero in every byte after it, and `KIND` is the
/// number that Vulkan gives to its type.
pub(crate) unsafe trait Structure: Sized {
    /// Vulkan's number of the type.
    const KIND: i32;
}

/// A structure of its kind, zero otherwise.
pub(crate) fn structure<T: Structure>() -> T {
    let mut made = MaybeUninit::<T>::zeroed();
    // SAFETY: it begins with a header, and may be zero after that, by the trait's contract.
    unsafe {
        made.as_mut_ptr().cast::<Header>().write(header(T::KIND));
        made.assume_init()
    }
}

fn header(kind: i32) -> Header {
    Header { kind, next: std::ptr::null() }
}

/// Puts `next` behind the first structure of a chain. The chain may be used while both stay where
/// they are.
pub(crate) fn push_next<T: Structure, N: Structure>(chain: &mut T, next: &mut N) {
    let (first, second) = (std::ptr::from_mut(chain).cast(), std::ptr::from_mut(next).cast());
    // SAFETY: both begin with a header, by the trait's contract, and are borrowed for this call.
    unsafe { link(first, second) }
}

/// # Safety
/// Both are valid, and different.
unsafe fn link(first: *mut Header, second: *mut Header) {
    // SAFETY: by the contract.
    unsafe {
        (*second).next = (*first).next;
        (*first).next = second.cast();
    }
}

/// A text that fills a part of an array of fixed length.
pub(crate) fn text(array: &[c_char]) -> std::result::Result<&CStr, FromBytesUntilNulError> {
    // SAFETY: bytes may be read as `c_char` and the other way round.
    let bytes = unsafe { std::slice::from_raw_parts(array.as_ptr().cast(), array.len()) };
    CStr::from_bytes_until_nul(bytes)
}

/// A command whose type is yet to be told.
type AnyCommand = Option<unsafe extern "system" fn()>;

/// Finds commands by name.
struct Finder<'a> {
    of: &'a dyn Fn(&CStr) -> AnyCommand,
    /// Whether a command was absent that every driver has.
    incomplete: Cell<bool>,
}

impl<'a> Finder<'a> {
    fn new(of: &'a dyn Fn(&CStr) -> AnyCommand) -> Self {
        Self { of, incomplete: Cell::new(false) }
    }

    /// A command that may be absent.
    ///
    /// # Safety
    /// `F` is the type of the command's function pointer.
    unsafe fn find<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<AnyCommand>()) };
        // SAFETY: a function pointer of the right type, by the contract.
        (self.of)(name).map(|found| unsafe { std::mem::transmute_copy(&found) })
    }

    /// A command that every driver has, for the caller to say of what type. No command that was
    /// got may be used before the finder is found to be complete.
    #[inline(never)]
    fn get(&self, name: &CStr) -> unsafe extern "system" fn() {
        (self.of)(name).unwrap_or_else(|| {
            log::error!("vulkan: the driver lacks {}, which it must have", name.to_string_lossy());
            self.incomplete.set(true);
            absent
        })
    }

    /// Fails if a command was absent.
    fn complete(&self) -> std::result::Result<(), Result> {
        if self.incomplete.get() { Err(Result::ERROR_INITIALIZATION_FAILED) } else { Ok(()) }
    }
}

/// Stands in for commands that are absent, and is never called.
extern "system" fn absent() {}

/// All that a command of the two-call form has to list: first their number, then themselves.
fn list<T: Copy>(
    fill: &mut dyn FnMut(&mut u32, *mut T) -> Result,
) -> std::result::Result<Vec<T>, Result> {
    loop {
        let mut count = 0;
        fill(&mut count, std::ptr::null_mut()).ok()?;
        let mut all = Vec::with_capacity(count as usize);
        match fill(&mut count, all.as_mut_ptr()) {
            // More have come meanwhile.
            Result::INCOMPLETE => continue,
            code => code.ok()?,
        }
        // SAFETY: the command wrote so many, which is no more than it was given room for.
        unsafe { all.set_len((count as usize).min(all.capacity())) };
        return Ok(all);
    }
}
