//! Libraries that have to stay where they are until the process is gone.
//!
//! NVIDIA's driver (580) has threads for each open device, which sleep and wake up in its core
//! library. As a program ends, one of its libraries unloads that one; whichever thread wakes up
//! before the process is gone then executes nothing, which is a segmentation fault after all was
//! done, the likelier the longer other libraries take to end. Its devices are never closed (see
//! the drop of `Gpu`), so its libraries are held instead.

/// Holds all of NVIDIA's libraries that are loaded for as long as the process lives.
#[cfg(target_os = "linux")]
pub(crate) fn hold_nvidias() {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    libraries(&String::from_utf8_lossy(&maps), "nvidia").into_iter().for_each(hold);
}

/// Elsewhere this is not known to happen.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hold_nvidias() {}

/// Files in the process's map of its memory that have code, and a word in their name.
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

/// Counts once more who uses a library that is loaded.
#[cfg(target_os = "linux")]
fn hold(path: &str) {
    use libloading::os::unix::{Library, RTLD_LAZY};

    /// `RTLD_NOLOAD`: nothing is loaded that is not.
    const NO_LOAD: std::ffi::c_int = 4;
    // SAFETY: the library is loaded, so that none of its code runs now.
    match unsafe { Library::open(Some(path), RTLD_LAZY | NO_LOAD) } {
        Ok(library) => std::mem::forget(library),
        Err(error) => log::debug!("vulkan: {path} may be unloaded: {error}"),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    fn is_loaded(path: &str) -> bool {
        std::fs::read_to_string("/proc/self/maps").unwrap().contains(path)
    }

    /// A library that nobody else has, under a name with a word.
    fn copied(folder: &std::path::Path, word: &str) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let from = libraries(&maps, "libgcc_s");
        let to = folder.join(format!("lib{word}.so")).to_str().unwrap().to_owned();
        std::fs::copy(from.first().expect("Rust's programs have it"), &to).unwrap();
        to
    }

    #[test]
    fn what_is_held_stays_loaded_when_its_owner_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let others = copied(folder.path(), "scry-other");
        let nvidias = copied(folder.path(), "nvidia-scry");
        // SAFETY: they are the library of the compiler's runtime.
        let opened = [&others, &nvidias].map(|path| unsafe { libloading::Library::new(path) });
        assert!(is_loaded(&others) && is_loaded(&nvidias));
        hold_nvidias();
        drop(opened);
        assert!(!is_loaded(&others), "the test would not notice");
        assert!(is_loaded(&nvidias));
    }

    #[test]
    fn files_with_code_are_told_once_by_their_name() {
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
