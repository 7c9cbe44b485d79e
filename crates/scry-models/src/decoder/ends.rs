//! The tokens that end text, as the description of a model lists them.

use std::path::Path;

use serde_json::Value;

use crate::error::Result;
use crate::json_file::JsonFile;

/// Returns `eos_token_id` of `generation_config.json`, or else of `config.json`: one or several.
pub(super) fn read(call: &'static str, folder: &Path) -> Result<Vec<u32>> {
    for name in ["generation_config.json", "config.json"] {
        let Some(file) = JsonFile::find(call, folder.join(name))? else { continue };
        let value = &file.json["eos_token_id"];
        let ids = match value {
            Value::Null => continue,
            Value::Array(ids) => ids.as_slice(),
            id => std::slice::from_ref(id),
        };
        let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
        let help = "it must be a token, or a list of tokens";
        return ids
            .iter()
            .map(|it| id(it).ok_or_else(|| file.error(format!("`eos_token_id` is {value}"), help)))
            .collect();
    }
    Ok(Vec::new())
}
