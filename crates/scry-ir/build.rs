//! Computes a hash of the crate's sources, for `build_id`.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut hasher = DefaultHasher::new();
    for file in files(&folder.join("src"))? {
        file.strip_prefix(&folder).unwrap_or(&file).hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=SOURCE_HASH={}", hasher.finish());
    Ok(())
}

/// Returns all files below a folder, in a deterministic order.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let items = fs::read_dir(folder)?.map(|item| item.map(|item| item.path()));
    let mut items = items.collect::<io::Result<Vec<_>>>()?;
    items.sort();
    let mut found = Vec::new();
    for item in items {
        match item.is_dir() {
            true => found.extend(files(&item)?),
            false => found.push(item),
        }
    }
    Ok(found)
}
