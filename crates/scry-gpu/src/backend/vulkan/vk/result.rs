//! Result codes.

use std::fmt;

/// What a command returns.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Result(pub(super) i32);

impl Result {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const TIMEOUT: Self = Self(2);
    pub(crate) const INCOMPLETE: Self = Self(5);
    pub(crate) const ERROR_OUT_OF_HOST_MEMORY: Self = Self(-1);
    pub(crate) const ERROR_OUT_OF_DEVICE_MEMORY: Self = Self(-2);
    pub(crate) const ERROR_INITIALIZATION_FAILED: Self = Self(-3);
    pub(crate) const ERROR_DEVICE_LOST: Self = Self(-4);
    pub(crate) const ERROR_INCOMPATIBLE_DRIVER: Self = Self(-9);
    pub(crate) const ERROR_TOO_MANY_OBJECTS: Self = Self(-10);
    pub(crate) const ERROR_FRAGMENTED_POOL: Self = Self(-12);
    pub(crate) const ERROR_UNKNOWN: Self = Self(-13);
    pub(crate) const ERROR_OUT_OF_POOL_MEMORY: Self = Self(-1_000_069_000);

    /// An error unless it is plain success.
    pub(crate) fn ok(self) -> std::result::Result<(), Self> {
        match self {
            Self::SUCCESS => Ok(()),
            code => Err(code),
        }
    }
}

/// Every code that the commands in use may return: its number, name and meaning.
pub(super) const CODES: &[(i32, &str, &str)] = &[
    (0, "SUCCESS", "done"),
    (1, "NOT_READY", "not ready yet"),
    (2, "TIMEOUT", "not done within the time given"),
    (5, "INCOMPLETE", "there was more than room for it"),
    (-1, "ERROR_OUT_OF_HOST_MEMORY", "the host's memory is used up"),
    (-2, "ERROR_OUT_OF_DEVICE_MEMORY", "the device's memory is used up"),
    (-3, "ERROR_INITIALIZATION_FAILED", "an object could not be initialised"),
    (-4, "ERROR_DEVICE_LOST", "the device is lost"),
    (-5, "ERROR_MEMORY_MAP_FAILED", "memory could not be mapped for the host"),
    (-6, "ERROR_LAYER_NOT_PRESENT", "a layer asked for is not installed"),
    (-7, "ERROR_EXTENSION_NOT_PRESENT", "an extension asked for is absent"),
    (-8, "ERROR_FEATURE_NOT_PRESENT", "the device lacks a feature asked for"),
    (-9, "ERROR_INCOMPATIBLE_DRIVER", "no driver was found that fits"),
    (-10, "ERROR_TOO_MANY_OBJECTS", "there are too many objects of this kind already"),
    (-11, "ERROR_FORMAT_NOT_SUPPORTED", "the device lacks the format"),
    (-12, "ERROR_FRAGMENTED_POOL", "the pool's memory is in pieces that are too small"),
    (-13, "ERROR_UNKNOWN", "the driver gives no reason: a mistake of its own, or of the program"),
    (-1_000_069_000, "ERROR_OUT_OF_POOL_MEMORY", "the pool's memory is used up"),
    (-1_000_072_003, "ERROR_INVALID_EXTERNAL_HANDLE", "an external handle is not valid"),
    (-1_000_174_001, "ERROR_NOT_PERMITTED_KHR", "the caller lacks the right to it"),
    (-1_000_257_000, "ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS", "the address asked for is taken"),
];

impl Result {
    fn entry(self) -> Option<&'static (i32, &'static str, &'static str)> {
        CODES.iter().find(|(number, ..)| *number == self.0)
    }
}

/// The name.
impl fmt::Debug for Result {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some((_, name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The meaning.
impl fmt::Display for Result {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some((.., meaning)) => f.write_str(meaning),
            None => write!(f, "{}", self.0),
        }
    }
}
