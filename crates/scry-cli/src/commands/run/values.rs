//! The values of an output as JSON.

use serde_json::{Value as Json, json};

use crate::data::dtype::{Value, Visitor};
use crate::data::{Bytes, Dtype};

/// Maximum number of values of an output in the JSON document.
pub const MAX_VALUES: usize = 1024;

/// Returns the first values of an array, at most [`MAX_VALUES`], and whether the array has more.
///
/// Floats are the shortest decimals that parse back to the same value of their type. Values that
/// JSON cannot represent are strings: `NaN`, `inf`, `-inf`.
pub fn values(dtype: Dtype, bytes: &Bytes) -> (Json, bool) {
    dtype.visit(Values(bytes))
}

struct Values<'a>(&'a Bytes);

impl Visitor for Values<'_> {
    type Output = (Json, bool);

    fn visit<T: Value>(self) -> (Json, bool) {
        let values = self.0.values::<T>();
        let shown = values.iter().take(MAX_VALUES).map(|value| json_number(&value.text()));
        (Json::Array(shown.collect()), values.len() > MAX_VALUES)
    }
}

/// Returns a JSON number with this spelling, or a string if JSON has no such number.
fn json_number(text: &str) -> Json {
    let integer =
        || text.parse::<u64>().map(Json::from).or_else(|_| text.parse::<i64>().map(Json::from));
    match (text, integer(), text.parse::<f64>()) {
        ("-0", ..) => json!(-0.0),
        (_, Ok(integer), _) => integer,
        (_, _, Ok(float)) if float.is_finite() => json!(float),
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_shortest() {
        for text in ["0.1", "-0.0", "1e-7", "18446744073709551615", "-9223372036854775808", "7"] {
            assert_eq!(json_number(text).to_string(), text);
        }
        assert_eq!(json_number("-0").to_string(), "-0.0");
        assert_eq!(json_number(&0.1f32.to_string()).to_string(), "0.1");
        for text in ["NaN", "inf", "-inf"] {
            assert_eq!(json_number(text), Json::from(text));
        }
    }

    #[test]
    fn long_arrays_are_truncated() {
        let long = Bytes::zeroed(4 * MAX_VALUES + 4).unwrap();
        let (shown, truncated) = values(Dtype::U32, &long);
        assert_eq!((shown.as_array().map(Vec::len), truncated), (Some(MAX_VALUES), true));
        let (shown, truncated) = values(Dtype::F64, &Bytes::zeroed(8 * MAX_VALUES).unwrap());
        assert_eq!((shown.as_array().map(Vec::len), truncated), (Some(MAX_VALUES), false));
    }
}
