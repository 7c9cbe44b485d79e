//! The two runners of cases: blocking and asynchronous.

use scry_gpu::{Binding, Device, GpuError, Kernel, Launch, Result, UntypedBuffer};

use crate::case::{BufferBinding, Case, CaseLaunch, Content, Data};
use crate::judge::{Attempt, Mismatch, Report, Verdict, judge, reason_to_skip};

/// Runs a case on a device with blocking calls.
///
/// # Errors
/// Returns [`Mismatch`] if the device does not do what the case expects.
pub fn run(gpu: &Device, case: &Case) -> std::result::Result<Report, Mismatch> {
    let mut report = Report::default();
    if let Some(reason) = reason_to_skip(gpu, case) {
        report.skip(case, &reason);
        return Ok(report);
    }
    for part in report.add_verdict(case, judge(gpu, case, &compile_and_run(gpu, case))?) {
        let verdict = judge(gpu, &part, &compile_and_run(gpu, &part))?;
        report.add_verdict_of_part(&part, verdict);
    }
    Ok(report)
}

/// Runs a case on a device with asynchronous calls, for targets that cannot block.
///
/// # Errors
/// Returns [`Mismatch`] if the device does not do what the case expects.
pub async fn run_async(gpu: &Device, case: &Case) -> std::result::Result<Report, Mismatch> {
    let mut report = Report::default();
    if let Some(reason) = reason_to_skip(gpu, case) {
        report.skip(case, &reason);
        return Ok(report);
    }
    for part in report.add_verdict(case, judge(gpu, case, &compile_and_run_async(gpu, case).await)?)
    {
        let verdict = judge(gpu, &part, &compile_and_run_async(gpu, &part).await)?;
        report.add_verdict_of_part(&part, verdict);
    }
    Ok(report)
}

impl Report {
    fn skip(&mut self, case: &Case, reason: &str) {
        let name = if case.name.is_empty() { "all" } else { &case.name };
        self.skipped.push(format!("{name}: {reason}"));
    }

    /// Adds a verdict; returns the smaller cases to be run if the case was split.
    fn add_verdict(&mut self, case: &Case, verdict: Verdict) -> Vec<Case> {
        match verdict {
            Verdict::Passed => Vec::new(),
            Verdict::Skipped(reason) => {
                self.skip(case, &reason);
                Vec::new()
            }
            Verdict::Split(parts) => parts,
        }
    }

    /// Adds the verdict of a part of a split case.
    ///
    /// # Panics
    /// If the part was split again: the cases would not be run.
    fn add_verdict_of_part(&mut self, part: &Case, verdict: Verdict) {
        let split = self.add_verdict(part, verdict);
        assert!(split.is_empty(), "{}: split again", part.name);
    }
}

impl Attempt {
    fn failed(error: GpuError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

fn compile_and_run(gpu: &Device, case: &Case) -> Attempt {
    let kernel = match gpu.compile_with(&case.source, &case.options) {
        Ok(kernel) => kernel,
        Err(error) => return Attempt::failed(error),
    };
    let run = || -> Result<Attempt> {
        let buffers = case.buffers.iter().map(|data| upload(gpu, data));
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let error = launch(gpu, case, &kernel, &buffers).err();
        let contents = buffers.iter().map(UntypedBuffer::download_bytes);
        let workgroup_size = Some(kernel.workgroup_size());
        Ok(Attempt { error, workgroup_size, buffers: Some(contents.collect::<Result<_>>()?) })
    };
    run().unwrap_or_else(Attempt::failed)
}

fn upload(gpu: &Device, data: &Data) -> Result<UntypedBuffer> {
    match &data.content {
        Content::Bytes(bytes) => gpu.upload_bytes(data.dtype, bytes),
        Content::Zeros(len) => gpu.alloc_untyped(data.dtype, *len),
    }
}

fn launch(gpu: &Device, case: &Case, kernel: &Kernel, buffers: &[UntypedBuffer]) -> Result<()> {
    let bound = bind(case, buffers)?;
    let bound: Vec<&dyn Binding> = bound.iter().map(|it| it as &dyn Binding).collect();
    let mut launches = case.launches.iter();
    launches.try_for_each(|it| gpu.run(kernel, &bound, launch_for(it, buffers)?))
}

async fn compile_and_run_async(gpu: &Device, case: &Case) -> Attempt {
    match gpu.compile_with_async(&case.source, &case.options).await {
        Ok(kernel) => run_kernel_async(gpu, case, &kernel).await.unwrap_or_else(Attempt::failed),
        Err(error) => Attempt::failed(error),
    }
}

async fn run_kernel_async(gpu: &Device, case: &Case, kernel: &Kernel) -> Result<Attempt> {
    let mut buffers = Vec::new();
    for data in &case.buffers {
        buffers.push(upload_async(gpu, data).await?);
    }
    let error = launch_async(gpu, case, kernel, &buffers).await.err();
    let mut contents = Vec::new();
    for buffer in &buffers {
        contents.push(buffer.download_bytes_async().await?);
    }
    let workgroup_size = Some(kernel.workgroup_size());
    Ok(Attempt { error, workgroup_size, buffers: Some(contents) })
}

async fn upload_async(gpu: &Device, data: &Data) -> Result<UntypedBuffer> {
    match &data.content {
        Content::Bytes(bytes) => gpu.upload_async(bytes).await?.untyped().view_as(data.dtype),
        Content::Zeros(len) => gpu.alloc_untyped(data.dtype, *len),
    }
}

async fn launch_async(
    gpu: &Device,
    case: &Case,
    kernel: &Kernel,
    buffers: &[UntypedBuffer],
) -> Result<()> {
    let bound = bind(case, buffers)?;
    let bound: Vec<&dyn Binding> = bound.iter().map(|it| it as &dyn Binding).collect();
    let mut batch = gpu.batch();
    for launch in &case.launches {
        batch.run(kernel, &bound, launch_for(launch, buffers)?)?;
    }
    batch.submit_async()?.await
}

fn bind(case: &Case, buffers: &[UntypedBuffer]) -> Result<Vec<UntypedBuffer>> {
    case.bindings.iter().map(|bound| slice(bound, buffers)).collect()
}

fn slice(bound: &BufferBinding, buffers: &[UntypedBuffer]) -> Result<UntypedBuffer> {
    let buffer = &buffers[bound.buffer];
    match &bound.bytes {
        Some(bytes) => buffer.view_as(None)?.slice(bytes.clone())?.view_as(buffer.dtype()),
        None => Ok(buffer.clone()),
    }
}

/// Converts a launch of a case; its indirect counts are in `buffers`.
fn launch_for(launch: &CaseLaunch, buffers: &[UntypedBuffer]) -> Result<Launch> {
    match launch {
        CaseLaunch::Direct(launch) => Ok(launch.clone()),
        CaseLaunch::Indirect(counts, immediates) => {
            let launch = Launch::indirect(&slice(counts, buffers)?);
            Ok(immediates
                .iter()
                .fold(launch, |launch, bytes| launch.immediate_bytes(bytes.clone())))
        }
    }
}
