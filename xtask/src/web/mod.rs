//! `cargo xtask web`: builds the web pages, serves them, and tests them in Chromium.

pub(crate) mod module;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use self::module::{Build, Loader, TARGET, bindgen, target_folder};
use self::server::Server;
use crate::{repo, targets, wasm};

/// The port of the pages, if it is free.
const PORT: u16 = 8765;

/// What the compiler explorer loads: no device.
const EXPLORER: Build = Build { profile: "web", features: "explorer", simd: true };

/// What the other pages load.
const ENGINE: Build = Build { profile: "web", features: "engine", simd: true };

/// What to do with the pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Serve them until interrupted.
    Serve,
    /// Only build them.
    Build,
    /// Run their tests in Chromium.
    Test,
}

/// Builds the pages and serves or tests them.
pub(crate) fn run(action: Action) -> Result<()> {
    if !targets::is_installed(TARGET)? {
        eprintln!("skipped: web pages: {TARGET} is not installed (`rustup target add {TARGET}`)");
        return Ok(());
    }
    let root = repo::root();
    let browser = match action {
        Action::Test => match Browser::find(&root) {
            Ok(browser) => Some(browser),
            Err(missing) => {
                eprintln!("skipped: web pages in Chromium: {missing}");
                return Ok(());
            }
        },
        Action::Serve | Action::Build => None,
    };
    if !cfg!(feature = "wasm") {
        // The tool that writes the modules' JavaScript is not part of other tasks.
        let line = "run -q -p xtask --features wasm -- web";
        let flag = match action {
            Action::Serve => None,
            Action::Build => Some("--build"),
            Action::Test => Some("--test"),
        };
        return repo::run(repo::cargo(&root).args(line.split(' ')).args(flag));
    }
    let site = build(&root, action)?;
    match browser {
        Some(browser) => browser.test(&root, site),
        None if action == Action::Build => {
            println!("{}", site.display());
            Ok(())
        }
        None => {
            let server = Server::bind(PORT).or_else(|_| Server::bind(0))?;
            println!("the pages are at {} (Ctrl+C ends)", server.address()?);
            server.serve(site)
        }
    }
}

/// Builds the folder of the pages: the static files, their data, and the modules.
fn build(root: &Path, action: Action) -> Result<PathBuf> {
    let site = target_folder(root)?.join("web-pages");
    if site.exists() {
        fs::remove_dir_all(&site).with_context(|| site.display().to_string())?;
    }
    for file in repo::files(root)?.iter().filter(|file| file.starts_with("web/")) {
        copy(&root.join(file), &site.join(file.trim_start_matches("web/")))?;
    }
    for name in ["camera.png", "digits_images.npy", "digits_labels.npy"] {
        copy(&root.join("examples/data").join(name), &site.join("data").join(name))?;
    }
    copy(&root.join("examples/kernels/edges.wgsl"), &site.join("kernels/edges.wgsl"))?;
    let modules = site.join("pkg");
    bindgen(&EXPLORER.run(root)?, Loader::Page, &modules, "explorer")?;
    bindgen(&ENGINE.run(root)?, Loader::Page, &modules, "engine")?;
    if action == Action::Test {
        // The module of `cargo xtask wasm`, which has the conformance suite too.
        bindgen(&module::TESTED.run(root)?, Loader::Browser, &modules, "tests")?;
    }
    Ok(site)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// What drives the tests: Node.js with playwright-core, and Chromium.
struct Browser {
    chromium: PathBuf,
}

impl Browser {
    /// Finds Chromium, and installs playwright-core; the error says what is missing.
    fn find(root: &Path) -> Result<Self, String> {
        let named = std::env::var_os("SCRY_CHROMIUM").map(PathBuf::from);
        let usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
        let mut candidates = named.into_iter().chain(usual.map(PathBuf::from));
        let chromium = candidates.find(|path| path.is_file()).ok_or(
            "Chromium is not installed (`apt-get install chromium`, or its path in SCRY_CHROMIUM)",
        )?;
        let tests = root.join("web/tests");
        if !tests.join("node_modules/playwright-core").is_dir() {
            let mut npm = Command::new("npm");
            npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(&tests);
            repo::output(&mut npm)
                .map_err(|error| format!("playwright-core could not be installed: {error:#}"))?;
        }
        Ok(Self { chromium })
    }

    /// Runs the tests on the pages.
    fn test(&self, root: &Path, site: PathBuf) -> Result<()> {
        let cases = wasm::native_cases(root)?;
        let native_job = wasm::native_example(root, "native_job")?;
        let server = Server::bind(0)?;
        let address = server.address()?;
        let served = site.clone();
        std::thread::spawn(move || server.serve(served));
        repo::run(
            Command::new("node")
                .arg(root.join("web/tests/run.js"))
                .arg(address)
                .arg(&self.chromium)
                .arg(site)
                .arg(cases)
                .arg(native_job),
        )
    }
}
