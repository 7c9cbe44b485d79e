//! An open device: its queue, its errors, and whether it is lost or abandoned.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use wgpu::{Device, ErrorFilter, Queue};

use crate::api::error::{
    DEFECT, DRIVER_FAILED, DeviceLostError, DriverError, GpuError, OutOfMemoryError, Result,
};
use crate::api::info::DeviceInfo;
use crate::backend::shared::loop_limits::LoopDefects;
use crate::lifecycle::fork_guard::{FORKED, Process};

/// An open device.
pub(super) struct Gpu {
    pub(super) device: Device,
    pub(super) queue: Queue,
    pub(super) info: DeviceInfo,
    /// Whether immediates are native; otherwise kernels read them from a uniform buffer.
    pub(super) has_immediates: bool,
    pub(super) has_timestamps: bool,
    /// Defects of the driver below wgpu.
    pub(super) loop_defects: LoopDefects,
    /// The process that opened the device.
    process: Process,
    /// Set once the device is abandoned: no more waits, and objects that it may be using are
    /// leaked.
    abandoned: AtomicBool,
    /// The reason of the device loss, once it happened.
    lost: Arc<OnceLock<String>>,
}

impl Gpu {
    /// Wraps a device, and observes its loss and its errors.
    pub(super) fn new(
        (device, queue): (Device, Queue),
        info: DeviceInfo,
        loop_defects: LoopDefects,
    ) -> Self {
        let lost = Arc::new(OnceLock::new());
        let reason = lost.clone();
        device.set_device_lost_callback(move |_, message| {
            // The first reason is kept.
            let _ = reason.set(format!("wgpu reported its loss: {message}"));
        });
        let reason = lost.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            // Errors of calls are captured. This one belongs to none, so that results are unknown.
            log::error!("wgpu: {error}");
            let _ = reason.set(format!("wgpu reported an error: {error}"));
        }));
        let features = device.features();
        Self {
            has_immediates: features.contains(wgpu::Features::IMMEDIATES),
            has_timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            device,
            queue,
            info,
            loop_defects,
            process: Process::current(),
            abandoned: AtomicBool::new(false),
            lost,
        }
    }

    /// Calls wgpu; returns its result unless the call reported an error. In browsers, where errors
    /// are reported later, an error is the loss of the device.
    pub(super) fn call<T>(&self, call: &'static str, work: impl FnOnce() -> T) -> Result<T> {
        if cfg!(target_arch = "wasm32") {
            return Ok(work());
        }
        let filters = [ErrorFilter::Internal, ErrorFilter::OutOfMemory, ErrorFilter::Validation];
        let [first, second, third] = filters.map(|filter| self.device.push_error_scope(filter));
        let result = work();
        // In reverse order.
        let errors = [ready(third.pop()), ready(second.pop()), ready(first.pop())];
        match errors.into_iter().flatten().flatten().next() {
            None => Ok(result),
            Some(error) => Err(self.failed(call, &error)),
        }
    }

    /// Returns the error of a call.
    fn failed(&self, call: &'static str, error: &wgpu::Error) -> GpuError {
        let name = &self.info.name;
        match error {
            _ if self.lost.get().is_some() => match self.check_alive() {
                Err(lost) => lost,
                Ok(()) => self.defect_error(call, error.to_string()),
            },
            wgpu::Error::OutOfMemory { .. } => GpuError::OutOfMemory(OutOfMemoryError {
                function: None,
                device: name.clone(),
                requested: None,
                label: format!("the call {call}"),
                detail: "the driver reported it".to_owned(),
                help: "drop buffers that are no longer used, or work in parts".to_owned(),
            }),
            wgpu::Error::Internal { description, .. } => {
                GpuError::Driver(DriverError::new(name, call, description.clone(), DRIVER_FAILED))
            }
            wgpu::Error::Validation { description, .. } => {
                self.defect_error(call, description.clone())
            }
        }
    }

    /// Returns the error for a call that violates a rule of the core or of WebGPU: a defect of this
    /// crate, which no program should be able to cause.
    pub(super) fn defect_error(&self, call: &'static str, why: String) -> GpuError {
        GpuError::Driver(DriverError::new(&self.info.name, call, why, DEFECT))
    }

    /// Returns the error for a kernel that the browser rejects, with the WGSL that it was given.
    pub(super) fn rejected(&self, why: String) -> GpuError {
        self.defect_error("Device::create_compute_pipeline", why)
    }

    /// Records the device loss, and returns its error.
    pub(super) fn mark_lost(&self, reason: String) -> GpuError {
        let reason = self.lost.get_or_init(|| reason).clone();
        self.abandon();
        self.lost_error(reason)
    }

    /// Returns an error if the device is lost or abandoned.
    pub(super) fn check_alive(&self) -> Result<()> {
        if self.process.has_forked() {
            return Err(self.lost_error(FORKED.to_owned()));
        }
        if let Some(reason) = self.lost.get() {
            self.abandon();
            return Err(self.lost_error(reason.clone()));
        }
        match self.abandoned.load(Ordering::Acquire) {
            true => Err(self.lost_error("it was abandoned earlier".to_owned())),
            false => Ok(()),
        }
    }

    fn lost_error(&self, reason: String) -> GpuError {
        let device = self.info.name.clone();
        GpuError::DeviceLost(DeviceLostError { function: None, device, reason })
    }

    /// Returns a setter of the reason of a loss, for callbacks of wgpu.
    pub(super) fn loss(&self) -> Arc<OnceLock<String>> {
        self.lost.clone()
    }

    /// Abandons the device: no more waits, and objects that it may be using are leaked.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// Returns whether objects must be leaked instead of dropped. Always true in a forked child:
    /// they belong to the parent.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) || self.process.has_forked()
    }
}

/// Returns the output of a future that is ready at once, as all of wgpu's are outside of browsers.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
