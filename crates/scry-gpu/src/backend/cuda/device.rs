//! An open device: its context and state shared by everything on it.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use scry_ptx::Target;

use super::ffi::calls::Call;
use super::ffi::driver_api::Api;
use super::ffi::error;
use super::ffi::types::{Code, Context, Device};
use super::probe::Probe;
use crate::api::error::{DeviceLostError, GpuError, Result};
use crate::api::info::DeviceInfo;
use crate::lifecycle::fork_guard::{FORKED, Process};

/// An open device. Everything created on it holds an `Arc` of it.
pub(super) struct Gpu {
    pub(super) api: &'static Api,
    /// The CUDA version that the driver supports: 12080 is 12.8.
    pub(super) cuda_version: c_int,
    pub(super) device: Device,
    /// The primary context, shared with other libraries of the process.
    pub(super) context: Context,
    pub(super) info: DeviceInfo,
    pub(super) target: Target,
    /// Whether stream-ordered allocation is supported.
    pub(super) has_pools: bool,
    /// Whether streams can write 64-bit values.
    pub(super) writes_values: bool,
    /// The process that opened the device.
    process: Process,
    /// Set once the device is abandoned: no more waits, and objects that it may be using are
    /// leaked.
    abandoned: AtomicBool,
    /// The reason of the device loss, once it happened.
    lost: OnceLock<String>,
}

impl Gpu {
    /// Opens a device.
    pub(super) fn open(probe: &Probe) -> Result<Self> {
        let api = &probe.cuda.api;
        let name = &probe.info.name;
        let process = Process::current();
        let mut context = Context::NULL;
        // SAFETY: the device is one of the driver's, and the driver writes a handle.
        let code = unsafe { (api.device_primary_ctx_retain)(&raw mut context, probe.device) };
        code.ok().map_err(|code| error::failed(api, name, "cuDevicePrimaryCtxRetain", code))?;
        let mut gpu = Self {
            api,
            cuda_version: probe.cuda.version,
            device: probe.device,
            context,
            info: probe.info.clone(),
            target: probe.target,
            has_pools: probe.has_pools,
            writes_values: probe.writes_values,
            process,
            abandoned: AtomicBool::new(false),
            lost: OnceLock::new(),
        };
        let (free, _) = gpu.memory()?;
        gpu.info.memory_budget = Some(free);
        Ok(gpu)
    }

    /// Makes the context current on this thread until the guard is dropped. An error if the device
    /// was lost or abandoned.
    #[inline(never)]
    pub(super) fn current(&self) -> Result<Current<'_>> {
        self.check_alive()?;
        self.current_for(Some(Call::enter()))
    }

    /// As [`Gpu::current`], for a call that may wait for other processes: it does not count as a
    /// call in progress, and a wait may query the driver meanwhile.
    pub(super) fn current_uncounted(&self) -> Result<Current<'_>> {
        self.check_alive()?;
        self.current_for(None)
    }

    /// As [`Gpu::current`], for freeing objects; `None` if they must not be freed, because the
    /// device is lost or abandoned.
    pub(super) fn current_to_free(&self) -> Option<Current<'_>> {
        self.current().ok()
    }

    /// As [`Gpu::current`], for a query; `None` if another call is in progress, which might block
    /// it.
    pub(super) fn current_for_query(&self) -> Result<Option<Current<'_>>> {
        self.check_alive()?;
        Call::exclusive().map(|call| self.current_for(Some(call))).transpose()
    }

    fn current_for(&self, call: Option<Call>) -> Result<Current<'_>> {
        let mut before = Context::NULL;
        // SAFETY: the driver writes a handle.
        self.check("cuCtxGetCurrent", unsafe { (self.api.ctx_get_current)(&raw mut before) })?;
        let pushed = before != self.context;
        if pushed {
            // SAFETY: the context is alive as long as `self` is.
            let code = unsafe { (self.api.ctx_push_current)(self.context) };
            self.check("cuCtxPushCurrent", code)?;
        }
        Ok(Current { gpu: self, pushed, _call: call, thread: PhantomData })
    }

    /// Returns an error unless the call succeeded; records the loss of the device.
    // Not inlined, like other functions here with many callers, for the sake of compile time.
    #[inline(never)]
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<()> {
        code.ok().map_err(|code| self.failed(call, code))
    }

    /// Logs the failure of a call that frees an object.
    pub(super) fn log_failed_free(&self, call: &'static str, code: Code) {
        if let Err(error) = self.check(call, code) {
            log::warn!("cuda: an object was not freed: {error}");
        }
    }

    /// Returns the error for a call that returned `code`; records the loss of the device.
    pub(super) fn failed(&self, call: &'static str, code: Code) -> GpuError {
        let error = error::failed(self.api, &self.info.name, call, code);
        match error {
            GpuError::DeviceLost(DeviceLostError { reason, .. }) => {
                error::lost(&self.info.name, self.lost.get_or_init(|| reason).clone())
            }
            other => other,
        }
    }

    /// Returns the error for a call that violates a rule of the core: a defect of this crate, which
    /// no program should be able to cause.
    pub(super) fn defect_error(&self, call: &'static str, why: String) -> GpuError {
        error::defect(&self.info.name, call, why)
    }

    /// Abandons a device that may hang, and returns the error for its loss.
    pub(super) fn mark_hung(&self, reason: String) -> GpuError {
        self.abandon();
        error::lost(&self.info.name, reason)
    }

    /// Returns the other devices that can access the memory of this one.
    pub(super) fn peers(&self) -> Result<Vec<Device>> {
        let mut count = 0;
        // SAFETY: the driver writes an integer.
        self.check("cuDeviceGetCount", unsafe { (self.api.device_get_count)(&raw mut count) })?;
        let mut peers = Vec::new();
        for ordinal in 0..count {
            let mut device = self.device;
            // SAFETY: the driver writes a device.
            let code = unsafe { (self.api.device_get)(&raw mut device, ordinal) };
            self.check("cuDeviceGet", code)?;
            if device == self.device {
                continue;
            }
            if can_access(self.api, device, self.device) {
                peers.push(device);
            }
        }
        Ok(peers)
    }

    /// Reads a device attribute.
    pub(super) fn attribute(&self, attribute: c_int) -> Result<u32> {
        let mut value = 0;
        // SAFETY: the driver writes an integer.
        let code =
            unsafe { (self.api.device_get_attribute)(&raw mut value, attribute, self.device) };
        self.check("cuDeviceGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Returns an error if the device was lost or abandoned.
    pub(super) fn check_alive(&self) -> Result<()> {
        if !self.is_abandoned() {
            return Ok(());
        }
        let reason = match self.lost.get() {
            _ if self.process.has_forked() => FORKED.to_owned(),
            Some(reason) => reason.clone(),
            None => "it was abandoned earlier".to_owned(),
        };
        Err(error::lost(&self.info.name, reason))
    }

    /// Abandons the device: no more waits, and objects that it may be using are leaked.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// Returns whether objects are leaked instead of destroyed: a lost context has lost its
    /// objects, and in a forked child they belong to the parent.
    pub(super) fn is_abandoned(&self) -> bool {
        let gone = self.lost.get().is_some() || self.abandoned.load(Ordering::Acquire);
        gone || self.process.has_forked()
    }

    /// Returns the free and the total bytes of device memory.
    pub(super) fn memory(&self) -> Result<(u64, u64)> {
        let _current = self.current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current; the driver writes two integers.
        let code = unsafe { (self.api.mem_get_info)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", code)?;
        Ok((free as u64, total as u64))
    }
}

/// Returns whether a device can access the memory of another one.
pub(super) fn can_access(api: &Api, device: Device, owner: Device) -> bool {
    let mut can_access = 0;
    // SAFETY: the driver writes an integer, or returns an error.
    let code = unsafe { (api.device_can_access_peer)(&raw mut can_access, device, owner) };
    code == Code::SUCCESS && can_access != 0
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let is_hung = self.abandoned.load(Ordering::Acquire) && self.lost.get().is_none();
        if is_hung || self.process.has_forked() {
            return;
        }
        // A lost context is released, too: without other users, the next caller that opens the
        // device gets a new one.
        // SAFETY: `open` retained the context once, and everything created in it holds an `Arc` of
        // `self`, so that nothing is left.
        let code = unsafe { (self.api.device_primary_ctx_release)(self.device) };
        if let Err(code) = code.ok() {
            log::debug!("cuda: the context was not released: {}", error::explain(self.api, code));
        }
    }
}

/// A guard that keeps the device's context current on this thread.
pub(super) struct Current<'a> {
    gpu: &'a Gpu,
    /// Whether the context was pushed, because it was not current before.
    pushed: bool,
    /// Ends when the guard is dropped.
    _call: Option<Call>,
    /// The current context is a property of the thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = Context::NULL;
            // SAFETY: the context was pushed on this thread; the driver writes a handle.
            let code = unsafe { (self.gpu.api.ctx_pop_current)(&raw mut popped) };
            // A failure means that the context is lost, which the next call reports.
            let _ = code.ok();
        }
    }
}
