//! NVIDIA's library NCCL, opened at run time: its functions, and safe calls of them.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use super::library::{Library, functions};
use super::types::{DevicePtr, Handle, Stream};
use crate::api::error::{GpuError, LibraryError};
use crate::lifecycle::exit_guard;

/// Names of the library, in search order.
const LIBRARIES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// The environment variable that names the library's file instead.
pub(crate) const FILE_VARIABLE: &str = "SCRY_NCCL";

/// The oldest supported version: 2.19.1, the first that ends calls of other threads reliably.
const MIN_VERSION: c_int = 21901;

/// The first version that disables NVLink multicast for a communicator: 2.32.1.
pub(crate) const NVLS_CONFIG_VERSION: u32 = 23201;

/// How to install the library.
const HELP: &str = "install NCCL 2.19 or newer for the driver's CUDA version: a package of the \
    distribution (libnccl2), the PyPI package nvidia-nccl-cu12 (pip install nvidia-nccl-cu12), or \
    that of PyTorch, and set SCRY_NCCL to the path of its libnccl.so.2, such as \
    .../site-packages/nvidia/nccl/lib/libnccl.so.2; or set SCRY_GROUP=host";

/// The status that a call returns, `ncclResult_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Status(c_int);

impl Status {
    const SUCCESS: Self = Self(0);
    const IN_PROGRESS: Self = Self(7);

    /// Returns whether a call has succeeded, or goes on on a thread of NCCL.
    fn is_accepted(self) -> bool {
        self == Self::SUCCESS || self == Self::IN_PROGRESS
    }

    /// Returns NCCL's name of the status.
    fn name(self) -> String {
        let name = match self.0 {
            0 => "ncclSuccess",
            1 => "ncclUnhandledCudaError",
            2 => "ncclSystemError",
            3 => "ncclInternalError",
            4 => "ncclInvalidArgument",
            5 => "ncclInvalidUsage",
            6 => "ncclRemoteError",
            7 => "ncclInProgress",
            8 => "ncclTimeout",
            code => return format!("code {code}"),
        };
        name.to_owned()
    }
}

pub(crate) enum CommMark {}
pub(crate) type CommHandle = Handle<CommMark>;

/// The bytes of an `ncclUniqueId`, by which the ranks of a communicator find each other.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct UniqueId(pub(crate) [u8; 128]);

/// `ncclConfig_t` of NCCL 2.32. Older versions read the first fields only.
#[repr(C)]
pub(crate) struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
    traffic_class: c_int,
    comm_name: *const c_char,
    /// `collnetEnable` to `hostCftMode`.
    others: [c_int; 14],
    nvls_host_mode: c_int,
}

impl Config {
    /// `NCCL_CONFIG_UNDEF_INT`.
    const UNDEFINED: c_int = c_int::MIN;
    /// The bytes of the fields up to `splitShare`, those of NCCL 2.18.
    const SIZE_2_18: usize = 48;
    /// `ncclNvlsHostModeDisable`.
    const NVLS_DISABLED: c_int = c_int::MAX;

    fn new(library: u32, disable_nvls: bool) -> Self {
        let is_long = library >= NVLS_CONFIG_VERSION;
        Self {
            size: if is_long { size_of::<Self>() } else { Self::SIZE_2_18 },
            magic: 0xcafe_beef,
            version: if is_long { NVLS_CONFIG_VERSION } else { MIN_VERSION as u32 },
            blocking: 1,
            cga_cluster_size: Self::UNDEFINED,
            min_ctas: Self::UNDEFINED,
            max_ctas: Self::UNDEFINED,
            net_name: std::ptr::null(),
            split_share: Self::UNDEFINED,
            traffic_class: Self::UNDEFINED,
            comm_name: std::ptr::null(),
            others: [Self::UNDEFINED; 14],
            nvls_host_mode: if disable_nvls { Self::NVLS_DISABLED } else { Self::UNDEFINED },
        }
    }
}

functions! {
    /// The functions of NCCL 2.19 and newer, without the prefix `nccl`.
    Api -> Status {
        get_version = c"ncclGetVersion" (*mut c_int);
        get_unique_id = c"ncclGetUniqueId" (*mut UniqueId);
        comm_init = c"ncclCommInitRankConfig" (
            *mut CommHandle, c_int, UniqueId, c_int, *mut Config
        );
        comm_abort = c"ncclCommAbort" (CommHandle);
        comm_destroy = c"ncclCommDestroy" (CommHandle);
        async_error = c"ncclCommGetAsyncError" (CommHandle, *mut Status);
        group_start = c"ncclGroupStart" ();
        group_end = c"ncclGroupEnd" ();
        all_reduce = c"ncclAllReduce" (
            *const c_void, *mut c_void, usize, c_int, c_int, CommHandle, Stream
        );
        reduce_scatter = c"ncclReduceScatter" (
            *const c_void, *mut c_void, usize, c_int, c_int, CommHandle, Stream
        );
        all_gather = c"ncclAllGather" (
            *const c_void, *mut c_void, usize, c_int, CommHandle, Stream
        );
        broadcast = c"ncclBroadcast" (
            *const c_void, *mut c_void, usize, c_int, c_int, CommHandle, Stream
        );
        reduce = c"ncclReduce" (
            *const c_void, *mut c_void, usize, c_int, c_int, c_int, CommHandle, Stream
        );
        send = c"ncclSend" (*const c_void, usize, c_int, c_int, CommHandle, Stream);
        recv = c"ncclRecv" (*mut c_void, usize, c_int, c_int, CommHandle, Stream);
    }
}

/// `ncclCommRevoke`, which NCCL 2.29 and newer have.
type Revoke = unsafe extern "C" fn(CommHandle, c_int) -> Status;

/// `ncclGetLastError`.
type LastError = unsafe extern "C" fn(CommHandle) -> *const c_char;

/// The library, opened.
pub(crate) struct Nccl {
    api: Api,
    last_error: Option<LastError>,
    revoke: Option<Revoke>,
    version: u32,
}

/// What a communicator is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommState {
    /// It accepts calls.
    Ready,
    /// A call goes on on a thread of NCCL: the communicator is not blocking.
    Busy,
    /// It, or another rank, has failed.
    Failed(String),
}

/// One call of a collective on a stream. Addresses are those of live device memory with room for
/// the elements that the operation reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    AllReduce { op: c_int },
    ReduceScatter { op: c_int },
    Reduce { op: c_int, root: c_int },
    Broadcast { root: c_int },
    AllGather,
    AllToAll { world: c_int, part: u64 },
    Send { to: c_int },
    Recv { from: c_int },
}

impl Nccl {
    /// Returns the library of the process. It is opened at the first call and stays loaded.
    pub(crate) fn shared() -> Result<&'static Self, GpuError> {
        static SHARED: OnceLock<Nccl> = OnceLock::new();
        if let Some(nccl) = SHARED.get() {
            return Ok(nccl);
        }
        let file = std::env::var(FILE_VARIABLE).ok().filter(|file| !file.is_empty());
        let nccl = Self::open(file.as_deref())?;
        log::debug!("cuda: NCCL {} is {}", nccl.version_text(), nccl.file());
        // Calls end before the library's own exit handlers, which it has registered just now.
        exit_guard::register_exit_handler();
        Ok(SHARED.get_or_init(|| nccl))
    }

    fn open(file: Option<&str>) -> Result<Self, GpuError> {
        let names = file.as_ref().map_or(&LIBRARIES[..], std::slice::from_ref);
        let library = Library::open(names).map_err(|message| match file {
            Some(_) => unavailable(format!("{FILE_VARIABLE} could not be opened: {message}")),
            None => unavailable(format!("it could not be opened: {message}")),
        })?;
        let name = library.name().to_owned();
        let last_error = library.function(c"ncclGetLastError").ok();
        // SAFETY: the signature is that of the library's header.
        let last_error = last_error
            .map(|address| unsafe { std::mem::transmute::<*const c_void, LastError>(address) });
        let revoke = library.function(c"ncclCommRevoke").ok();
        // SAFETY: as above.
        let revoke =
            revoke.map(|address| unsafe { std::mem::transmute::<*const c_void, Revoke>(address) });
        let api = Api::load(library).map_err(|missing| {
            unavailable(format!("{name} has no function {}: it is too old", missing.name()))
        })?;
        let mut version = 0;
        // SAFETY: NCCL writes an integer.
        let status = unsafe { (api.get_version)(&raw mut version) };
        if !status.is_accepted() || version < MIN_VERSION {
            let found = version_text(version.unsigned_abs());
            return Err(unavailable(format!("{name} is version {found}, older than 2.19.1")));
        }
        Ok(Self { api, last_error, revoke, version: version.unsigned_abs() })
    }

    /// Returns the file name under which the library was found.
    pub(crate) fn file(&self) -> &str {
        self.api.library.name()
    }

    /// Returns the version as NCCL encodes it: 22803 is 2.28.3.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Returns the version as text, such as `2.28.3`.
    pub(crate) fn version_text(&self) -> String {
        version_text(self.version)
    }

    /// Creates the id of a new communicator.
    pub(crate) fn unique_id(&self) -> Result<UniqueId, String> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: NCCL writes 128 bytes.
        let status = unsafe { (self.api.get_unique_id)(&raw mut id) };
        self.check("ncclGetUniqueId", status, CommHandle::NULL).map(|()| id)
    }

    /// Joins a communicator on the device whose context is current on this thread. Returns when all
    /// ranks have, or, if the user has made communicators not blocking, at `deadline`. Uses no
    /// NVLink multicast with `disable_nvls`, which needs [`NVLS_CONFIG_VERSION`].
    pub(crate) fn join(
        &'static self,
        id: &UniqueId,
        (rank, world): (c_int, c_int),
        disable_nvls: bool,
        deadline: Instant,
    ) -> Result<Comm, String> {
        let mut config = Config::new(self.version, disable_nvls);
        let mut raw = CommHandle::NULL;
        // SAFETY: NCCL reads the configuration, of which it states the size, during the call, and
        // writes a handle.
        let status =
            unsafe { (self.api.comm_init)(&raw mut raw, world, *id, rank, &raw mut config) };
        self.check("ncclCommInitRankConfig", status, CommHandle::NULL)?;
        let comm = Comm { nccl: self, raw, is_blocking: status != Status::IN_PROGRESS };
        loop {
            // SAFETY: the communicator was neither destroyed nor aborted.
            let problem = match unsafe { comm.state() } {
                CommState::Ready => return Ok(comm),
                CommState::Busy if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                CommState::Busy => "not all ranks have joined in time".to_owned(),
                CommState::Failed(problem) => problem,
            };
            // SAFETY: as above, and nothing else has the handle.
            unsafe { comm.abort() };
            return Err(problem);
        }
    }

    /// Returns the text of a status unless the call succeeded.
    fn check(&self, call: &str, status: Status, comm: CommHandle) -> Result<(), String> {
        if status.is_accepted() {
            return Ok(());
        }
        let detail = self.last_error.map(|last_error| {
            // SAFETY: the handle is null or alive; NCCL returns the address of a static text, or
            // null.
            let text = unsafe { last_error(comm) };
            match text.is_null() {
                true => String::new(),
                // SAFETY: the text is zero-terminated. Another thread may overwrite it, but not its
                // last byte, which is always zero.
                false => unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned(),
            }
        });
        let detail = detail.filter(|it| !it.is_empty()).map(|it| format!(": {it}"));
        Err(format!("{call} failed with {}{}", status.name(), detail.unwrap_or_default()))
    }
}

fn version_text(version: u32) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

fn unavailable(problem: String) -> GpuError {
    let (library, help) = ("NCCL", HELP.to_owned());
    GpuError::Library(LibraryError { function: None, library, problem, help })
}

/// A communicator. It is destroyed or aborted explicitly: either may wait for other ranks.
#[derive(Clone, Copy)]
pub(crate) struct Comm {
    nccl: &'static Nccl,
    raw: CommHandle,
    is_blocking: bool,
}

impl Comm {
    /// Returns whether calls return when they are done. Else threads of NCCL do their work, also
    /// that of aborting and destroying, after which nothing can be asked.
    pub(crate) fn is_blocking(self) -> bool {
        self.is_blocking
    }

    /// Issues a transfer of `count` elements of the type `dtype`. Returns false if it continues on
    /// a thread of NCCL: no other call may be made until [`Comm::state`] is not busy.
    ///
    /// # Safety
    ///
    /// The communicator was neither destroyed nor aborted. The context of its device is current,
    /// the stream belongs to it, and `source` and `destination` are addresses in memory that stays
    /// alive until the work is done, with room for what the transfer reads and writes.
    pub(crate) unsafe fn issue(
        self,
        transfer: Transfer,
        (count, dtype): (usize, c_int),
        (source, destination): (DevicePtr, DevicePtr),
        stream: Stream,
    ) -> Result<bool, String> {
        let (api, comm) = (&self.nccl.api, self.raw);
        let from = source as usize as *const c_void;
        let to = destination as usize as *mut c_void;
        // SAFETY: the caller guarantees it.
        let (call, status) = unsafe {
            match transfer {
                Transfer::AllReduce { op } => {
                    ("ncclAllReduce", (api.all_reduce)(from, to, count, dtype, op, comm, stream))
                }
                Transfer::ReduceScatter { op } => (
                    "ncclReduceScatter",
                    (api.reduce_scatter)(from, to, count, dtype, op, comm, stream),
                ),
                Transfer::Reduce { op, root } => {
                    ("ncclReduce", (api.reduce)(from, to, count, dtype, op, root, comm, stream))
                }
                Transfer::Broadcast { root } => {
                    ("ncclBroadcast", (api.broadcast)(from, to, count, dtype, root, comm, stream))
                }
                Transfer::AllGather => {
                    ("ncclAllGather", (api.all_gather)(from, to, count, dtype, comm, stream))
                }
                Transfer::Send { to } => {
                    ("ncclSend", (api.send)(from, count, dtype, to, comm, stream))
                }
                Transfer::Recv { from } => {
                    ("ncclRecv", (api.recv)(to, count, dtype, from, comm, stream))
                }
                Transfer::AllToAll { world, part } => (
                    "ncclGroupEnd",
                    self.all_to_all((world, part), (count, dtype), (source, destination), stream),
                ),
            }
        };
        self.nccl.check(call, status, comm).map(|()| status != Status::IN_PROGRESS)
    }

    /// # Safety
    ///
    /// As [`Comm::issue`].
    unsafe fn all_to_all(
        self,
        (world, part): (c_int, u64),
        (count, dtype): (usize, c_int),
        (source, destination): (DevicePtr, DevicePtr),
        stream: Stream,
    ) -> Status {
        let (api, comm) = (&self.nccl.api, self.raw);
        let mut outcome = Status::SUCCESS;
        let mut note = |status: Status| {
            if outcome.is_accepted() {
                outcome = status;
            }
        };
        // SAFETY: the caller guarantees it; part `peer` is within source and destination.
        unsafe {
            note((api.group_start)());
            for peer in 0..world {
                let offset = u64::from(peer.unsigned_abs()) * part;
                let from = (source + offset) as usize as *const c_void;
                let to = (destination + offset) as usize as *mut c_void;
                note((api.send)(from, count, dtype, peer, comm, stream));
                note((api.recv)(to, count, dtype, peer, comm, stream));
            }
            note((api.group_end)());
        }
        outcome
    }

    /// Returns what the communicator is doing.
    ///
    /// # Safety
    ///
    /// The communicator was neither destroyed nor aborted.
    pub(crate) unsafe fn state(self) -> CommState {
        let mut state = Status::SUCCESS;
        // SAFETY: the caller guarantees that the communicator exists; NCCL writes a status.
        let status = unsafe { (self.nccl.api.async_error)(self.raw, &raw mut state) };
        let state = if status.is_accepted() { state } else { status };
        match self.nccl.check("a collective", state, self.raw) {
            Err(problem) => CommState::Failed(problem),
            Ok(()) if state == Status::IN_PROGRESS => CommState::Busy,
            Ok(()) => CommState::Ready,
        }
    }

    /// Ends the calls of other threads that wait for other ranks. Returns false if NCCL is too old.
    ///
    /// # Safety
    ///
    /// The communicator was neither destroyed nor aborted.
    pub(crate) unsafe fn revoke(self) -> bool {
        let Some(revoke) = self.nccl.revoke else { return false };
        // SAFETY: the caller guarantees it; 0 is the only valid flag.
        unsafe { revoke(self.raw, 0) }.is_accepted()
    }

    /// Ends all work of the communicator and destroys it. May wait for other ranks of this host.
    ///
    /// # Safety
    ///
    /// The communicator was neither destroyed nor aborted, and is not used afterwards.
    pub(crate) unsafe fn abort(self) {
        // SAFETY: the caller guarantees it.
        let status = unsafe { (self.nccl.api.comm_abort)(self.raw) };
        if let Err(failure) = self.nccl.check("ncclCommAbort", status, CommHandle::NULL) {
            log::debug!("cuda: {failure}");
        }
    }

    /// Destroys the communicator. May wait for other ranks of this host.
    ///
    /// # Safety
    ///
    /// As [`Comm::abort`]; all its work is done.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: the caller guarantees it.
        let status = unsafe { (self.nccl.api.comm_destroy)(self.raw) };
        if let Err(failure) = self.nccl.check("ncclCommDestroy", status, CommHandle::NULL) {
            log::debug!("cuda: {failure}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// Offsets in the header of NCCL 2.32.
    #[test]
    fn configuration_has_the_layout_of_the_header() {
        assert_eq!(offset_of!(Config, blocking), 16);
        assert_eq!(offset_of!(Config, net_name), 32);
        assert_eq!(offset_of!(Config, traffic_class), 44);
        assert_eq!(offset_of!(Config, comm_name), 48);
        assert_eq!(offset_of!(Config, nvls_host_mode), 112);
        assert_eq!(size_of::<Config>(), 120);
        assert_eq!(size_of::<UniqueId>(), 128);
    }

    #[test]
    fn older_libraries_get_their_fields_alone() {
        let old = Config::new(22_803, false);
        assert_eq!((old.size, old.version, old.blocking), (48, 21_901, 1));
        assert_eq!(old.nvls_host_mode, c_int::MIN);
        let new = Config::new(23_203, true);
        assert_eq!((new.size, new.version, new.nvls_host_mode), (120, 23_201, c_int::MAX));
    }

    #[test]
    fn versions_are_formatted() {
        assert_eq!(version_text(22_803), "2.28.3");
        assert_eq!(version_text(23_203), "2.32.3");
    }

    #[test]
    fn missing_nccl_error_has_help() {
        let text = Nccl::open(Some("/nowhere/libnccl.so.2")).err().unwrap().to_string();
        assert!(text.starts_with("NCCL is not available: SCRY_NCCL could not be opened"), "{text}");
        for word in ["/nowhere/libnccl.so.2", "nvidia-nccl-cu12", "libnccl2", "PyTorch"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn other_libraries_are_rejected() {
        let text = Nccl::open(Some("libc.so.6")).err().unwrap().to_string();
        assert!(text.contains("libc.so.6 has no function ncclGetVersion"), "{text}");
    }
}
