//! The job of a page, read from JSON. The example `native_job`, which cannot link this library,
//! compiles this file too.

use serde_json::Value;

/// A kernel to run, and its launch.
#[derive(Debug)]
pub struct Request {
    /// The source.
    pub wgsl: String,
    /// The entry point; by default the only one.
    pub entry: Option<String>,
    /// Values of overrides by name.
    pub overrides: Vec<(String, f64)>,
    /// Bytes of each buffer.
    pub buffers: Vec<usize>,
    /// Invocations along x, y and z.
    pub invocations: [u32; 3],
    /// Bytes of the immediates; empty if the kernel has none.
    pub immediates: Vec<u8>,
}

impl Request {
    /// Reads a job: `wgsl`, `entry` (optional), `overrides` (numbers by name), `buffers` (bytes of
    /// each), `invocations` (along x, y and z; 1 where missing), and `immediates` (bytes).
    ///
    /// # Errors
    /// If a value is missing or of another kind: its name, its value, and what is expected.
    pub fn read(job: &Value) -> Result<Self, String> {
        let wgsl =
            job["wgsl"].as_str().ok_or("the job has no text `wgsl`; help: add the source")?;
        Ok(Self {
            wgsl: wgsl.to_owned(),
            entry: job["entry"].as_str().map(str::to_owned),
            overrides: overrides(&job["overrides"])?,
            buffers: counts(job, "buffers")?,
            invocations: invocations(job)?,
            immediates: counts(job, "immediates")?,
        })
    }
}

fn overrides(values: &Value) -> Result<Vec<(String, f64)>, String> {
    let entries = values.as_object().into_iter().flatten();
    let number = |(name, value): (&String, &Value)| match value.as_f64() {
        Some(number) => Ok((name.clone(), number)),
        None => Err(format!("the override `{name}` is {value}; help: give a finite number")),
    };
    entries.map(number).collect()
}

fn invocations(job: &Value) -> Result<[u32; 3], String> {
    let sizes = counts(job, "invocations")?;
    if sizes.len() > 3 {
        return Err(format!(
            "`invocations` of the job has {} numbers; help: give at most three, for x, y and z",
            sizes.len()
        ));
    }
    Ok([0, 1, 2].map(|axis| sizes.get(axis).copied().unwrap_or(1)))
}

/// Returns the numbers of a list of the job; none if there is no such list. What is no whole number
/// or does not fit is an error, never another number.
///
/// # Errors
/// Names the list and the number.
pub fn counts<T: TryFrom<u64>>(job: &Value, name: &str) -> Result<Vec<T>, String> {
    let list = match &job[name] {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        other => {
            return Err(format!(
                "`{name}` of the job is {other}; help: give a list of whole numbers"
            ));
        }
    };
    let count = |number: &Value| {
        let whole = number.as_u64().and_then(|number| T::try_from(number).ok());
        whole.ok_or_else(|| {
            format!(
                "`{name}` of the job has {number}; help: give whole numbers that {} can express",
                std::any::type_name::<T>()
            )
        })
    };
    list.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_read() {
        let job = json!({
            "wgsl": "x", "entry": "main", "overrides": { "N": 2.5 },
            "buffers": [4, 0], "invocations": [64, 2], "immediates": [255],
        });
        let found = Request::read(&job).unwrap();
        assert_eq!((found.wgsl.as_str(), found.entry.as_deref()), ("x", Some("main")));
        assert_eq!(found.overrides, [("N".to_owned(), 2.5)]);
        assert_eq!((found.buffers, found.immediates), (vec![4, 0], vec![255]));
        assert_eq!(found.invocations, [64, 2, 1]);
    }

    #[test]
    fn what_is_no_count_is_an_error() {
        for (name, value) in [
            ("invocations", json!([1.5])),
            ("invocations", json!([-1])),
            ("invocations", json!([1_u64 << 32])),
            ("invocations", json!([1e21])),
            ("invocations", json!([null])),
            ("invocations", json!(7)),
            ("invocations", json!([1, 1, 1, 1])),
            ("immediates", json!([256])),
            ("buffers", json!(["4"])),
            ("overrides", json!({ "N": null })),
        ] {
            let mut job = json!({ "wgsl": "" });
            job[name] = value;
            let error = Request::read(&job).unwrap_err();
            assert!(error.contains("; help: "), "{job}: {error}");
        }
        assert!(Request::read(&json!({})).unwrap_err().contains("wgsl"));
    }
}
