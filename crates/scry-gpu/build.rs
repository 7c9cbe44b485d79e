//! Sets the cfgs `cuda`, `vulkan` and `wgpu`: the backends of this build. Features alone do not
//! decide: WebAssembly has no drivers to open, and there and on Apple's systems wgpu is always
//! included.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cuda, vulkan, wgpu)");
    let has_feature = |name: &str| env::var_os(format!("CARGO_FEATURE_{name}")).is_some();
    let target = |property: &str| env::var(format!("CARGO_CFG_TARGET_{property}"));
    let is_wasm = target("ARCH").as_deref() == Ok("wasm32");
    let is_apple = target("VENDOR").as_deref() == Ok("apple");
    for (backend, is_included) in [
        ("cuda", has_feature("CUDA") && !is_wasm),
        ("vulkan", has_feature("VULKAN") && !is_wasm),
        ("wgpu", has_feature("WGPU") || is_wasm || is_apple),
    ] {
        if is_included {
            println!("cargo::rustc-cfg={backend}");
        }
    }
}
