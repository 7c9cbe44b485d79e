//! The macro that declares the structs of errors.

/// Declares error structs with fields that are private to the crate, and an accessor for each.
///
/// An accessor returns `&str` for a `String`, `Option<&str>` for a `Label`, an `EntryPoint`, a
/// `Function` or a `DriverLimit`, a slice for `Ranks`, and a copy for other types.
macro_rules! error_structs {
    ($(
        $(#[$attribute:meta])*
        $name:ident {
            $($(#[$doc:meta])* $field:ident: $type:ident,)*
        }
    )*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        $(#[$attribute])*
        pub struct $name {
            $($(#[$doc])* pub(crate) $field: $type,)*
        }

        impl $name {$(
            $(#[$doc])*
            #[must_use]
            pub fn $field(&self) -> accessor!(returns $type) {
                accessor!($type, self.$field)
            }
        )*}
    )*};
}

/// The return type and the body of an accessor.
macro_rules! accessor {
    (returns String) => { &str };
    (returns Label) => { Option<&str> };
    (returns EntryPoint) => { Option<&str> };
    (returns DriverLimit) => { Option<&str> };
    (returns Function) => { Option<&str> };
    (returns ByteCount) => { Option<u64> };
    (returns Ranks) => { &[usize] };
    (returns StaticStr) => { &'static str };
    (returns $type:ident) => { $type };
    (Label, $field:expr) => { $field.as_deref() };
    (EntryPoint, $field:expr) => { $field.as_deref() };
    (DriverLimit, $field:expr) => { $field.as_deref() };
    (Function, $field:expr) => { $field.as_deref() };
    (String, $field:expr) => { &$field };
    (Ranks, $field:expr) => { &$field };
    ($type:ident, $field:expr) => { $field };
}
