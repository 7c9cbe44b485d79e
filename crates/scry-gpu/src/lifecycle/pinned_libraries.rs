//! Libraries that must stay loaded until the process has exited.
//!
//! NVIDIA's driver (580) runs threads for each open device in its core library. At exit, another of
//! its libraries unloads the core library: a thread that wakes up before the process has ended then
//! executes unmapped code, a segmentation fault. Destroying the devices would stop the threads, but
//! NVIDIA's devices are never destroyed (see the drop of `Gpu`), so the libraries are pinned.

/// Keeps all loaded NVIDIA libraries loaded for the lifetime of the process.
#[cfg(target_os = "linux")]
pub(crate) fn pin_nvidia_libraries() {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    libraries(&String::from_utf8_lossy(&maps), "nvidia").into_iter().for_each(pin);
}

/// Does nothing: the crash was not seen on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_nvidia_libraries() {}

/// Returns the mapped executable files whose name contains `word`.
#[cfg(target_os = "linux")]
fn libraries<'m>(maps: &'m str, word: &str) -> Vec<&'m str> {
    let code = maps.lines().filter(|line| line.contains(" r-xp "));
    let files = code.filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_wanted = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.contains(word));
    let mut wanted: Vec<_> = files.filter(is_wanted).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Adds a reference to a loaded library.
#[cfg(target_os = "linux")]
fn pin(path: &str) {
    use libloading::os::unix::{Library, RTLD_LAZY};

    /// `RTLD_NOLOAD` of glibc: only returns a library that is loaded already.
    const NO_LOAD: std::ffi::c_int = 4;
    // SAFETY: the library is loaded already, so no initialiser runs.
    match unsafe { Library::open(Some(path), RTLD_LAZY | NO_LOAD) } {
        Ok(library) => std::mem::forget(library),
        Err(error) => log::debug!("vulkan: {path} could not be pinned: {error}"),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    fn is_loaded(path: &str) -> bool {
        std::fs::read_to_string("/proc/self/maps").unwrap().contains(path)
    }

    /// Copies a library to a file whose name contains `word`.
    fn copy_library(folder: &std::path::Path, word: &str) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let from = libraries(&maps, "libgcc_s");
        let to = folder.join(format!("lib{word}.so")).to_str().unwrap().to_owned();
        std::fs::copy(from.first().expect("every Rust program has it"), &to).unwrap();
        to
    }

    #[test]
    fn pinned_libraries_stay_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let others = copy_library(folder.path(), "scry-other");
        let nvidia = copy_library(folder.path(), "nvidia-scry");
        // SAFETY: both are copies of the compiler's runtime library.
        let opened = [&others, &nvidia].map(|path| unsafe { libloading::Library::new(path) });
        assert!(is_loaded(&others) && is_loaded(&nvidia));
        pin_nvidia_libraries();
        drop(opened);
        assert!(!is_loaded(&others), "dropping a library does not unload it here");
        assert!(is_loaded(&nvidia));
    }

    #[test]
    fn each_executable_file_is_listed_once() {
        let maps = "\
7f00-7f01 r--p 00000000 00:3a 12 /opt/nvidia/lib/libother.so
7f01-7f02 r-xp 00001000 00:3a 12 /opt/nvidia/lib/libother.so
7f02-7f03 r--p 00000000 00:3a 13 /usr/lib/libnvidia-data.so
7f03-7f04 r-xp 00000000 00:3a 14 /usr/lib/libEGL_nvidia.so.580
7f04-7f05 r-xp 00001000 00:3a 14 /usr/lib/libEGL_nvidia.so.580
7f05-7f06 r-xp 00000000 00:00 0  [vdso]";
        assert_eq!(libraries(maps, "nvidia"), ["/usr/lib/libEGL_nvidia.so.580"]);
    }
}
