//! What JavaScript calls of the parts that know nothing of it.

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Called when the module is loaded: prints panics, which end the module with a trap.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| console_error(&panic.to_string())));
}

/// Translates a kernel to every language; returns JSON, as [`crate::explorer::explore`].
#[cfg(feature = "explorer")]
#[wasm_bindgen]
#[must_use]
pub fn explore(source: &str, entry: &str, target: &str, checked: bool) -> String {
    crate::explorer::explore(source, entry, target, checked).to_string()
}

/// Returns the interface of a kernel, or what is wrong with it, as JSON:
/// [`crate::reflect::reflect`].
#[cfg(any(feature = "explorer", feature = "engine"))]
#[wasm_bindgen]
#[must_use]
pub fn reflect(source: &str, entry: &str) -> String {
    crate::reflect::reflect(source, entry).to_string()
}
