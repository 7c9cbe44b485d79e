//! Assertions for a case's [`Property`](crate::Property): they return an error instead of
//! panicking.

/// Returns an error unless a condition holds.
macro_rules! ensure {
    ($condition:expr $(,)?) => {
        ensure!($condition, "{}", stringify!($condition))
    };
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err(format!($($what)+));
        }
    };
}

/// Returns an error unless two values are equal.
macro_rules! ensure_eq {
    ($got:expr, $want:expr $(,)?) => {
        ensure_eq!($got, $want, "{}", stringify!($got))
    };
    ($got:expr, $want:expr, $($what:tt)+) => {{
        let (got, want) = (&$got, &$want);
        if got != want {
            return Err(format!("{}: {got:?}, not {want:?}", format!($($what)+)));
        }
    }};
}

pub(crate) use {ensure, ensure_eq};
