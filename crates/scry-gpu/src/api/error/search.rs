//! The error if no device was found.

use std::fmt;

use crate::api::info::BackendKind;

error_structs! {
    /// A backend without a device: the reason, and the help.
    #[error("{backend}: {reason}\n    help: {help}")]
    Attempt {
        /// Returns the backend.
        backend: BackendKind,
        /// Returns why it has no device.
        reason: String,
        /// Returns the help: how to make it available.
        help: String,
    }
}

/// No device was found. Contains the selector, and why backends have no device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoDevice {
    pub(crate) selector: Option<String>,
    pub(crate) variable: Option<&'static str>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) present: Vec<String>,
}

impl NoDevice {
    /// Returns the selector, if one was given.
    #[must_use]
    pub fn selector(&self) -> Option<&str> {
        self.selector.as_deref()
    }

    /// Returns the environment variable that the selector was read from, if any.
    #[must_use]
    pub fn variable(&self) -> Option<&'static str> {
        self.variable
    }

    /// Returns why backends have no device, or devices could not be opened: first the backends that
    /// are not part of the build, then in the order of the search.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Returns the devices that were found, as `backend:index name`.
    #[must_use]
    pub fn present(&self) -> &[String] {
        &self.present
    }
}

impl std::error::Error for NoDevice {}

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.selector, self.variable) {
            (Some(selector), Some(variable)) => {
                write!(f, "{variable}={selector} matches no device")?;
            }
            (Some(selector), None) => write!(f, "no device matches `{selector}`")?,
            (None, _) => write!(f, "no device to compute on was found")?,
        }
        for attempt in &self.attempts {
            write!(f, "\n  {attempt}")?;
        }
        if !self.present.is_empty() {
            write!(f, "\n  present: {}", self.present.join(", "))?;
        }
        if let Some(variable) = self.variable {
            write!(f, "\n  help: set {variable} to a device that is present, or unset it")?;
        }
        Ok(())
    }
}
