//! Dynamic libraries, opened at run time.

use std::ffi::{CStr, c_void};
use std::mem::ManuallyDrop;

/// An open library. It stays loaded even when dropped: its threads may be executing its code.
pub(crate) struct Library {
    raw: ManuallyDrop<libloading::Library>,
    /// The name under which it was found.
    name: String,
}

impl Library {
    /// Opens the first of these libraries that the system can open.
    ///
    /// # Errors
    /// The system's messages for each name.
    pub(crate) fn open(names: &[&str]) -> Result<Self, String> {
        let mut messages = Vec::new();
        for name in names {
            // SAFETY: the names are those of libraries of NVIDIA's driver and toolkit, whose
            // initialisers have no preconditions.
            match unsafe { libloading::Library::new(name) } {
                Ok(raw) => {
                    let raw = ManuallyDrop::new(raw);
                    return Ok(Self { raw, name: (*name).to_owned() });
                }
                Err(error) => messages.push(error.to_string()),
            }
        }
        messages.dedup();
        Err(messages.join("; "))
    }

    /// Returns the name under which it was found.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of a function.
    ///
    /// # Errors
    /// The name of the missing function.
    pub(crate) fn function(&self, symbol: &'static CStr) -> Result<*const c_void, Missing> {
        // SAFETY: the address is not used here, and any symbol has one.
        let found = unsafe { self.raw.get::<*const c_void>(symbol.to_bytes_with_nul()) };
        found.map(|address| *address).map_err(|_| Missing(symbol))
    }
}

/// A function that a library lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) &'static CStr);

impl Missing {
    /// Returns the function's name.
    pub(crate) fn name(self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

/// A table of a library's functions, filled when the library is opened. Each line has the field,
/// the symbol and the parameter types of a function, which returns a status of type `$code`.
macro_rules! functions {
    (
        $(#[$doc:meta])*
        $table:ident -> $code:ty {
            $($field:ident = $symbol:literal ($($parameter:ty),*);)*
        }
    ) => {
        $(#[$doc])*
        pub(crate) struct $table {
            $(pub(crate) $field: unsafe extern "C" fn($($parameter),*) -> $code,)*
            /// Keeps the functions loaded.
            library: $crate::backend::cuda::ffi::library::Library,
        }

        impl $table {
            /// Looks up every function.
            fn load(
                library: $crate::backend::cuda::ffi::library::Library,
            ) -> Result<Self, $crate::backend::cuda::ffi::library::Missing> {
                Ok(Self {
                    // SAFETY: the library's header declares the function with these types, and
                    // the table keeps the library loaded.
                    $($field: unsafe {
                        std::mem::transmute::<
                            *const std::ffi::c_void,
                            unsafe extern "C" fn($($parameter),*) -> $code,
                        >(library.function($symbol)?)
                    },)*
                    library,
                })
            }
        }
    };
}

pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_error_lists_each_name() {
        let names = ["libscry-is-not-here.so.1", "libscry-is-not-here.so"];
        let messages = Library::open(&names).err().unwrap();
        assert!(names.iter().all(|name| messages.contains(name)), "{messages}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn dropped_library_stays_loaded() {
        let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("libscry-stays.so").to_str().unwrap().to_owned();
        let maps_now = maps();
        let mut files = maps_now.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
        std::fs::copy(files.find(|path| path.contains("libgcc_s")).unwrap(), &copy).unwrap();
        assert!(!maps().contains(&copy));
        drop(Library::open(&[&copy]).unwrap());
        assert!(maps().contains(&copy));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn functions_are_found_by_name() {
        let library = Library::open(&["libscry-is-not-here.so", "libc.so.6"]).unwrap();
        assert_eq!(library.name(), "libc.so.6");
        assert!(library.function(c"getpid").is_ok());
        assert_eq!(library.function(c"cuInit").unwrap_err().name(), "cuInit");
    }
}
