//! Locations of data: a file or a standard stream, the format, and the array of an archive.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::report::Failure;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Npy,
    Npz,
    Png,
    Bin,
}

/// Every format.
const FORMATS: [Format; 4] = [Format::Npy, Format::Npz, Format::Png, Format::Bin];

impl Format {
    /// Returns the name, which is also the extension of such files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Png => "png",
            Self::Bin => "bin",
        }
    }

    /// Returns the format that a path's extension stands for.
    fn from_extension(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        FORMATS.into_iter().find(|format| extension.eq_ignore_ascii_case(format.name()))
    }
}

/// A source or destination of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file; `None` stands for standard input or output.
    pub path: Option<PathBuf>,
    /// The encoding of the data.
    pub format: Format,
    /// The array of an .npz archive.
    pub member: Option<String>,
}

impl Location {
    /// Parses `FILE`, `FILE.npz:ARRAY`, `FORMAT:FILE`, or `-` instead of a file.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the format is unknown, or the name of the file or array is missing.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let explicit = text.split_once(':').and_then(|(name, rest)| {
            let format = FORMATS.into_iter().find(|format| format.name() == name)?;
            Some((format, rest))
        });
        let (format, file) = match explicit {
            Some((format, file)) => (Some(format), file),
            None => (None, text),
        };
        if file.is_empty() {
            return Err(Failure::Usage(format!("`{text}`: the name of the file is missing")));
        }
        if file == "-" {
            let format = format.unwrap_or(Format::Npy);
            return Ok(Self { path: None, format, member: None });
        }
        let (file, member) = match split_archive(file) {
            Some((file, member)) if format.is_none_or(|format| format == Format::Npz) => {
                (file, Some(member.to_owned()))
            }
            _ => (file, None),
        };
        if member.as_ref().is_some_and(String::is_empty) {
            return Err(Failure::Usage(format!("`{text}`: the name of the array is missing")));
        }
        let path = PathBuf::from(file);
        let format = format.or_else(|| Format::from_extension(&path)).ok_or_else(|| {
            Failure::Usage(format!(
                "{file}: unknown format; the name must end in .npy, .npz, .png or .bin, or \
                 start with the format, as in npy:{file}"
            ))
        })?;
        Ok(Self { path: Some(path), format, member })
    }
}

/// Splits `FILE.npz:ARRAY` into the archive and the array.
fn split_archive(text: &str) -> Option<(&str, &str)> {
    let (at, _) = text.match_indices(':').find(|(at, _)| {
        let end = text.as_bytes().get(at.wrapping_sub(4)..*at);
        end.is_some_and(|end| end.eq_ignore_ascii_case(b".npz"))
    })?;
    Some((&text[..at], &text[at + 1..]))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}", path.display())?,
            None => f.write_str("-")?,
        }
        match &self.member {
            Some(member) => write!(f, ":{member}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Option<String>, Format, Option<String>) {
        let Location { path, format, member } = Location::parse(text).unwrap();
        (path.map(|path| path.display().to_string()), format, member)
    }

    #[test]
    fn names_determine_the_format() {
        let file = |name: &str| Some(name.to_owned());
        assert_eq!(parsed("a/b.PNG"), (file("a/b.PNG"), Format::Png, None));
        assert_eq!(parsed("-"), (None, Format::Npy, None));
        assert_eq!(parsed("bin:-"), (None, Format::Bin, None));
        assert_eq!(parsed("npy:/dev/fd/3"), (file("/dev/fd/3"), Format::Npy, None));
        assert_eq!(parsed("./npy:a.bin"), (file("./npy:a.bin"), Format::Bin, None));
        assert_eq!(parsed("a.npz"), (file("a.npz"), Format::Npz, None));
        assert_eq!(parsed("a.npz:x:y"), (file("a.npz"), Format::Npz, Some("x:y".to_owned())));
        assert_eq!(parsed("npz:a.NPZ:x"), (file("a.NPZ"), Format::Npz, Some("x".to_owned())));
        assert_eq!(parsed("bin:a.npz:x"), (file("a.npz:x"), Format::Bin, None));
        assert_eq!(parsed("ü:.npy"), (file("ü:.npy"), Format::Npy, None));
    }

    #[test]
    fn names_without_a_format_are_rejected() {
        for wrong in ["photo", "a.jpg", "npy:", "a.npz:", ":", "", ".npy"] {
            assert!(matches!(Location::parse(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
