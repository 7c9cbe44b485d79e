//! Translations of WGSL programs: PTX, and what a launch needs to know.
//!
//! The disk cache stores cubins by a digest of the PTX, and translations without their PTX. A
//! process with the same PTX generator loads both, and does not generate PTX, which takes longer
//! than loading the cubin. For any other generator the cached translation is a miss.

use std::thread;

use scry_ir::Program;
use scry_ir::kir::{KirOptions, mutation};
use scry_ptx::{Param, Ptx, PtxOptions, translate};

use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::cache::{Digest, DiskCache, Part, Reader, Variant, Writer};
use crate::core::driver::CompileJob;
use crate::core::dump::Stage;

/// A WGSL program translated to PTX.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Translation {
    /// The kernel's symbol.
    pub(crate) entry: String,
    /// Kernel parameters, in order.
    pub(crate) params: Vec<Param>,
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared: u32,
    /// Length and hash of the PTX.
    pub(crate) digest: Digest,
    /// The PTX; `None` if the translation is from the disk cache.
    text: Option<String>,
}

impl Translation {
    /// Returns the disk cache's translation by the same generator, or a new one. `limit_registers`
    /// is as in [`PtxOptions`].
    pub(crate) fn load_or_generate(
        gpu: &Gpu,
        job: &CompileJob<'_>,
        limit_registers: bool,
    ) -> Result<Self> {
        let found = disk_cache(job)
            .and_then(|disk| disk.load(job.key, variant(job, &generator_tag(limit_registers))));
        match found.and_then(|bytes| Self::from_bytes(&bytes)) {
            Some(translation) => Ok(translation),
            None => Self::generate(gpu, job, limit_registers),
        }
    }

    /// Translates the program for the device.
    pub(crate) fn generate(gpu: &Gpu, job: &CompileJob<'_>, limit_registers: bool) -> Result<Self> {
        let options = PtxOptions {
            grid: job.grid,
            poll_cancellation: job.checked,
            limit_registers,
            pdl: waits(job.program),
            ..PtxOptions::new(gpu.target)
        };
        Ok(generate_ptx(job.program, job.checked, &options)?.into())
    }

    /// Returns the translation and its PTX, both generated again if the translation is from the
    /// disk cache. The digest is the same then, unless the file was damaged.
    pub(crate) fn with_text(
        self,
        gpu: &Gpu,
        job: &CompileJob<'_>,
        limit_registers: bool,
    ) -> Result<(Self, String)> {
        let mut translation = match self.text {
            Some(_) => self,
            None => Self::generate(gpu, job, limit_registers)?,
        };
        let text = translation.text.take().unwrap_or_default();
        Ok((translation, text))
    }

    /// Prints the PTX, if that is enabled. It is generated again if the translation is from the
    /// disk cache.
    pub(crate) fn dump(
        &self,
        gpu: &Gpu,
        job: &CompileJob<'_>,
        limit_registers: bool,
    ) -> Result<()> {
        let Some(dump) = job.dump.filter(|dump| dump.is_selected(Stage::Ptx)) else {
            return Ok(());
        };
        let variant = if limit_registers { "" } else { "unbounded" };
        match &self.text {
            Some(text) => dump.ptx(variant, text),
            None => dump.ptx(variant, &self.clone().with_text(gpu, job, limit_registers)?.1),
        }
        Ok(())
    }

    /// Returns whether the translation is not from the disk cache.
    pub(crate) fn is_new(&self) -> bool {
        self.text.is_some()
    }

    /// Stores everything but the PTX, for processes with the same generator.
    pub(crate) fn store(&self, job: &CompileJob<'_>, limit_registers: bool) {
        if let Some(disk) = disk_cache(job) {
            disk.store(job.key, variant(job, &generator_tag(limit_registers)), &self.to_bytes());
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { entry, params, dynamic_shared, digest, text: _ } = self;
        let mut out = Writer::default();
        out.bytes(entry.as_bytes());
        out.number((*dynamic_shared).into());
        out.number(digest.length);
        out.bytes(&digest.hash.to_le_bytes());
        out.number(params.len() as u64);
        for param in params {
            encode_param(*param).into_iter().for_each(|word| out.number(word.into()));
        }
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let entry = str::from_utf8(from.bytes()?).ok()?.to_owned();
        let dynamic_shared = u32::try_from(from.number()?).ok()?;
        let length = from.number()?;
        let hash = u128::from_le_bytes(from.bytes()?.try_into().ok()?);
        let params = (0..from.number()?).map(|_| decode_param(&mut from)).collect::<Option<_>>()?;
        let digest = Digest { length, hash };
        from.is_empty().then_some(Self { entry, params, dynamic_shared, digest, text: None })
    }
}

impl From<Ptx> for Translation {
    fn from(ptx: Ptx) -> Self {
        let digest = Digest::of(ptx.text.as_bytes());
        let Ptx { text, entry, params, dynamic_shared, .. } = ptx;
        Self { entry, params, dynamic_shared, digest, text: Some(text) }
    }
}

/// Returns the disk cache of a job; `None` under mutation testing.
pub(crate) fn disk_cache<'a>(job: &CompileJob<'a>) -> Option<&'a DiskCache> {
    job.cache.filter(|_| !mutation::is_requested())
}

fn variant<'a>(job: &CompileJob<'_>, tag: &'a [u8]) -> Variant<'a> {
    Variant { grid: job.grid, part: Part::Translation(tag) }
}

/// Returns whether the kernel of a program begins with a wait for the preceding launch (PDL), where
/// the target has it. One from WGSL often has many short blocks, each of which would wait.
pub(super) fn waits(program: &Program) -> bool {
    program.is_from_kir()
}

/// Returns `limit_registers` and the build id as bytes. They identify the generator and those of
/// its options that do not follow from the device and the key.
fn generator_tag(limit_registers: bool) -> [u8; 9] {
    let mut tag = [u8::from(limit_registers); 9];
    tag[1..].copy_from_slice(&scry_ptx::build_id().to_le_bytes());
    tag
}

/// Encodes a parameter as a tag and its values.
fn encode_param(param: Param) -> [u32; 4] {
    match param {
        Param::Buffer(buffer) => [0, buffer, 0, 0],
        Param::Length { buffer, offset, stride } => [1, buffer, offset, stride],
        Param::LinearisedGrid => [2, 0, 0, 0],
        Param::Immediates(size) => [3, size, 0, 0],
        Param::Epoch => [4, 0, 0, 0],
        Param::CancelledEpoch => [5, 0, 0, 0],
        Param::WorkgroupCounts => [6, 0, 0, 0],
    }
}

/// Decodes a parameter; `None` if it is invalid.
fn decode_param(from: &mut Reader<'_>) -> Option<Param> {
    let mut word = || u32::try_from(from.number()?).ok();
    match [word()?, word()?, word()?, word()?] {
        [0, buffer, 0, 0] => Some(Param::Buffer(buffer)),
        // The host divides by the stride.
        [1, buffer, offset, stride] if stride > 0 => Some(Param::Length { buffer, offset, stride }),
        [2, 0, 0, 0] => Some(Param::LinearisedGrid),
        [3, size, 0, 0] => Some(Param::Immediates(size)),
        [4, 0, 0, 0] => Some(Param::Epoch),
        [5, 0, 0, 0] => Some(Param::CancelledEpoch),
        [6, 0, 0, 0] => Some(Param::WorkgroupCounts),
        _ => None,
    }
}

/// Generates PTX, on a stack that is large enough. A panic of the generator becomes an error.
fn generate_ptx(program: &Program, checked: bool, options: &PtxOptions) -> Result<Ptx> {
    let caller = thread::current();
    let ptx = program.with_kir(&KirOptions { checked }, |mut kir| {
        // Changes the kernel only under mutation testing.
        mutation::mutate_as_requested(&mut kir, &caller);
        translate(&kir, options)
    });
    Ok(ptx?)
}

#[cfg(test)]
mod tests {
    use scry_ptx::Target;

    use super::*;
    use crate::core::driver::GridSource;

    const DOUBLE: &str = "
        var<immediate> factor: u32;
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64)
        fn double(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&data) { data[id.x] *= factor; }
            while data[0] > 9u { data[0] += data[1]; }
        }";

    fn translation(grid: GridSource) -> Translation {
        let program = Program::parse(DOUBLE).unwrap();
        let options =
            PtxOptions { grid, poll_cancellation: true, ..PtxOptions::new(Target::SM_80) };
        generate_ptx(&program, true, &options).unwrap().into()
    }

    #[test]
    fn translation_lists_launch_parameters() {
        let Translation { entry, params, text, .. } = translation(GridSource::Linearised);
        let text = text.unwrap();
        assert_eq!(entry, "double");
        assert!(text.contains(".entry double("), "{text}");
        let length = Param::Length { buffer: 0, offset: 0, stride: 4 };
        let expected = [
            Param::Buffer(0),
            length,
            Param::LinearisedGrid,
            Param::Immediates(4),
            Param::Epoch,
            Param::CancelledEpoch,
        ];
        assert!(expected.iter().all(|param| params.contains(param)), "{params:?}");
    }

    #[test]
    fn translation_round_trips_without_text() {
        for grid in [GridSource::Native, GridSource::Linearised, GridSource::Counts] {
            let translation = translation(grid);
            assert_eq!(
                translation.params.contains(&Param::WorkgroupCounts),
                grid == GridSource::Counts
            );
            let read = Translation::from_bytes(&translation.to_bytes()).unwrap();
            assert_eq!(read, Translation { text: None, ..translation });
        }
    }

    #[test]
    fn rejects_damaged_translations() {
        let bytes = translation(GridSource::Linearised).to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(Translation::from_bytes(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(Translation::from_bytes(&[&bytes[..], &[0]].concat()), None, "one byte more");
        // The last parameter's words are at the end.
        let mut unknown = bytes.clone();
        let kind = bytes.len() - 32;
        unknown[kind] = 99;
        assert_eq!(Translation::from_bytes(&unknown), None, "an unknown kind");
        let mut divided_by_zero = bytes;
        divided_by_zero[kind] = 1;
        divided_by_zero[kind + 8..].fill(0);
        assert_eq!(Translation::from_bytes(&divided_by_zero), None, "a stride of zero");
    }

    #[test]
    fn bounded_translations_have_own_tag() {
        assert_ne!(generator_tag(false), generator_tag(true));
        assert_eq!(generator_tag(true)[1..], scry_ptx::build_id().to_le_bytes());
    }
}
