//! NumPy's .npz archives: zip files of .npy files.

use std::io::{self, Read, Seek, SeekFrom, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::array::{Array, Shape};
use super::dtype::Dtype;
use super::npy::{self, Problem};

/// The maximum compression ratio of deflate.
const MAX_RATIO: u64 = 1032;

/// Arrays of more bytes are written as Zip64 members; leaves room for the .npy header.
const ZIP64_THRESHOLD: u64 = u32::MAX as u64 - (1 << 16);

/// Reads the array `member`; without one, the array `preferred`, or the only one.
pub fn read(
    mut file: impl Read + Seek,
    member: Option<&str>,
    preferred: &str,
) -> Result<Array, Problem> {
    let file_size = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let mut archive =
        ZipArchive::new(file).map_err(|error| format!("it is not an .npz file: {error}"))?;
    let names = archive.file_names().collect::<Result<Vec<_>, _>>();
    let names = names.map_err(|error| error.to_string())?;
    let names: Vec<String> = names.into_iter().map(|name| name.into_owned()).collect();
    let name = choose_member(&names, member, preferred)?;
    let mut entry = archive.by_name(&name).map_err(|error| format!("array `{name}`: {error}"))?;
    // The size in the directory is untrusted: the compressed bytes bound it.
    let max_size = entry.compressed_size().min(file_size).saturating_mul(MAX_RATIO);
    let size = entry.size().min(max_size);
    npy::read(&mut entry, Some(size)).map_err(|problem| format!("array `{name}`: {problem}"))
}

/// Returns the member to read, with its extension.
fn choose_member(
    names: &[String],
    member: Option<&str>,
    preferred: &str,
) -> Result<String, Problem> {
    let find = |wanted: &str| {
        names.iter().find(|name| name.strip_suffix(".npy").unwrap_or(name) == wanted)
    };
    let listed = || {
        let shown = names.iter().take(20).map(|name| name.strip_suffix(".npy").unwrap_or(name));
        let more = if names.len() > 20 { ", …" } else { "" };
        format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
    };
    match (member, names) {
        (_, []) => Err("the archive is empty".to_owned()),
        (Some(member), _) => find(member)
            .cloned()
            .ok_or_else(|| format!("there is no array `{member}`, only {}", listed())),
        (None, [only]) => Ok(only.clone()),
        (None, _) => find(preferred).cloned().ok_or_else(|| {
            format!(
                "the archive has several arrays; choose one after a colon, as in \
                 FILE.npz:{preferred}; there are {}",
                listed()
            )
        }),
    }
}

/// An array to write.
pub struct Member<'a> {
    /// Its name in the archive.
    pub name: &'a str,
    pub dtype: Dtype,
    pub shape: &'a Shape,
    /// The values.
    pub bytes: &'a [u8],
}

/// Writes an archive without compression, as `numpy.savez` does.
pub fn write(out: &mut dyn Write, members: &[Member<'_>]) -> io::Result<()> {
    let mut archive = ZipWriter::new_stream(out);
    for Member { name, dtype, shape, bytes } in members {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes.len() as u64 > ZIP64_THRESHOLD);
        archive.start_file(format!("{name}.npy"), options)?;
        npy::write(&mut archive, *dtype, shape, bytes)?;
    }
    archive.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn archive(names: &[&str]) -> Vec<u8> {
        let shape = Shape(vec![2]);
        let values: Vec<[u8; 4]> = names.iter().map(|name| [name.len() as u8, 0, 3, 4]).collect();
        let members: Vec<Member<'_>> = names
            .iter()
            .zip(&values)
            .map(|(name, bytes)| Member { name, dtype: Dtype::U16, shape: &shape, bytes })
            .collect();
        let mut file = Vec::new();
        write(&mut file, &members).unwrap();
        file
    }

    fn first(file: &[u8], member: Option<&str>, preferred: &str) -> Result<u16, Problem> {
        read(Cursor::new(file), member, preferred).map(|array| array.bytes.values::<u16>()[0])
    }

    #[test]
    fn arrays_are_found_by_name() {
        let two = archive(&["x", "long"]);
        assert_eq!(first(&two, Some("long"), "x"), Ok(4));
        assert_eq!(first(&two, None, "x"), Ok(1));
        assert_eq!(first(&archive(&["only"]), None, "x"), Ok(4));
        let unknown = first(&two, Some("y"), "x").unwrap_err();
        assert_eq!(unknown, "there is no array `y`, only x, long");
        let unclear = first(&two, None, "y").unwrap_err();
        assert!(unclear.contains("FILE.npz:y") && unclear.contains("x, long"), "{unclear}");
        assert!(first(&archive(&[]), None, "x").unwrap_err().contains("empty"));
    }

    #[test]
    fn twenty_arrays_are_listed() {
        let names: Vec<String> = (0..21).map(|number| format!("a{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let listed = |count: usize| first(&archive(&names[..count]), Some("y"), "x").unwrap_err();
        assert!(listed(20).ends_with("a18, a19"), "{}", listed(20));
        assert!(listed(21).ends_with("a18, a19, …"), "{}", listed(21));
    }

    #[test]
    fn compressed_arrays_are_read() {
        let mut file = Cursor::new(Vec::new());
        let mut writer = ZipWriter::new(&mut file);
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file("zeros.npy", options).unwrap();
        let bytes = vec![0; 1 << 20];
        npy::write(&mut writer, Dtype::U8, &Shape(vec![1 << 20]), &bytes).unwrap();
        writer.finish().unwrap();
        let file = file.into_inner();
        assert!(file.len() < 4096);
        let array = read(Cursor::new(&file), None, "x").unwrap();
        assert_eq!(array.bytes.as_slice(), bytes);
    }

    /// Returns an archive of one compressed member: the header of an array of u8, then `data`
    /// zeros.
    fn compressed(shape: Shape, data: usize) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        let mut writer = ZipWriter::new(&mut file);
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file("x.npy", options).unwrap();
        npy::write(&mut writer, Dtype::U8, &shape, &vec![0; data]).unwrap();
        writer.finish().unwrap();
        file.into_inner()
    }

    /// Counts the bytes that are read, at the end of the archive too.
    struct Counted<'a>(Cursor<&'a [u8]>, &'a std::cell::Cell<usize>);

    impl Read for Counted<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(to)?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }

    impl Seek for Counted<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    /// The member decompresses to far more than the array of its header.
    #[test]
    fn decompression_ends_with_the_array() {
        const DATA: usize = 64 << 20;
        let file = compressed(Shape(vec![16]), DATA);
        assert!(file.len() > DATA / 1100, "deflate makes at most 1032 bytes of one");
        let read_bytes = std::cell::Cell::new(0);
        let problem = read(Counted(Cursor::new(&file), &read_bytes), None, "x").unwrap_err();
        assert_eq!(problem, "array `x.npy`: the file has more data than the 16 u8 of its header");
        assert!(read_bytes.get() < file.len() / 2, "{} of {}", read_bytes.get(), file.len());
    }

    /// The header and the directory of the archive claim more than the member decompresses to.
    #[test]
    fn false_sizes_reserve_no_memory() {
        let mut file = compressed(Shape(vec![1 << 40]), 1 << 20);
        let true_size = ((1u32 << 20) + 128).to_le_bytes();
        let at = |file: &[u8]| file.windows(4).rposition(|bytes| bytes == true_size).unwrap();
        let directory = at(&file);
        file[directory..directory + 4].copy_from_slice(&0xffff_0000u32.to_le_bytes());
        let problem = read(Cursor::new(&file), None, "x").unwrap_err();
        assert!(problem.contains("truncated"), "{problem}");
        // The size is bounded by that of the compressed bytes.
        let mut file = compressed(Shape(vec![1 << 31]), 1 << 20);
        let directory = at(&file);
        file[directory..directory + 4].copy_from_slice(&0xffff_0000u32.to_le_bytes());
        let problem = read(Cursor::new(&file), None, "x").unwrap_err();
        assert!(problem.contains("truncated"), "{problem}");
    }

    #[test]
    fn damaged_archives_are_rejected() {
        let good = archive(&["x", "y"]);
        for len in 0..good.len() {
            assert!(read(Cursor::new(&good[..len]), Some("x"), "x").is_err(), "{len} bytes");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            // Rejected, unless the damaged byte is not read.
            if let Ok(array) = read(Cursor::new(&bad), Some("x"), "x") {
                assert_eq!(array.bytes.as_slice(), [1, 0, 3, 4], "byte {at}");
            }
        }
    }

    /// A header that claims more than the archive can contain.
    #[test]
    fn oversized_headers_are_rejected_before_allocation() {
        let mut file = Cursor::new(Vec::new());
        let mut writer = ZipWriter::new(&mut file);
        writer
            .start_file(
                "x.npy",
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
            )
            .unwrap();
        npy::write(&mut writer, Dtype::U8, &Shape(vec![1 << 40]), &[0; 100]).unwrap();
        writer.finish().unwrap();
        let problem = read(Cursor::new(file.into_inner()), None, "x").unwrap_err();
        assert!(problem.contains("truncated"), "{problem}");
    }
}
