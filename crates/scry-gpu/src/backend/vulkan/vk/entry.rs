//! The loader, opened at run time, and what can be asked of it before there is an instance.

use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

use libloading::Library;

use super::instance::{Instance, InstanceCommands};
use super::{
    API_VERSION_1_0, AnyCommand, ExtensionProperties, Finder, InstanceCreateInfo, InstanceHandle,
    LayerProperties, Result, list,
};

/// Finds commands of an instance; those of null are the loader's own.
pub(super) type GetInstanceProcAddr =
    unsafe extern "system" fn(InstanceHandle, *const c_char) -> AnyCommand;

type EnumerateVersion = unsafe extern "system" fn(*mut u32) -> Result;
type EnumerateExtensions =
    unsafe extern "system" fn(*const c_char, *mut u32, *mut ExtensionProperties) -> Result;
type EnumerateLayers = unsafe extern "system" fn(*mut u32, *mut LayerProperties) -> Result;
type CreateInstance = unsafe extern "system" fn(
    *const InstanceCreateInfo,
    *const c_void,
    *mut InstanceHandle,
) -> Result;

/// The loader.
pub(crate) struct Entry {
    get_instance_proc_addr: GetInstanceProcAddr,
    /// The loader, and so what it loaded, stays where it is: drivers have threads of their own.
    _library: ManuallyDrop<Library>,
}

const LIBRARY: &str = if cfg!(windows) {
    "vulkan-1.dll"
} else if cfg!(target_vendor = "apple") {
    "libvulkan.dylib"
} else if cfg!(any(target_os = "android", target_os = "fuchsia")) {
    "libvulkan.so"
} else {
    "libvulkan.so.1"
};

impl Entry {
    /// Opens the loader's library.
    ///
    /// # Safety
    /// It is what it is called.
    pub(crate) unsafe fn load() -> std::result::Result<Self, libloading::Error> {
        // SAFETY: by the contract.
        unsafe {
            let library = ManuallyDrop::new(Library::new(LIBRARY)?);
            let found = library.get::<GetInstanceProcAddr>(b"vkGetInstanceProcAddr\0")?;
            Ok(Self { get_instance_proc_addr: *found, _library: library })
        }
    }

    /// # Safety
    /// `F` is the type of the command's function pointer, and the command is not an instance's.
    unsafe fn command<F: Copy>(&self, name: &CStr) -> Option<F> {
        let find = |name: &CStr| {
            // SAFETY: without an instance the loader finds its own commands.
            unsafe { (self.get_instance_proc_addr)(InstanceHandle::null(), name.as_ptr()) }
        };
        // SAFETY: by the contract.
        unsafe { Finder::new(&find).find(name) }
    }

    /// The newest Vulkan that the loader knows.
    pub(crate) fn version(&self) -> u32 {
        let mut version = API_VERSION_1_0;
        // SAFETY: the command's type; it came with Vulkan 1.1.
        let command: Option<EnumerateVersion> =
            unsafe { self.command(c"vkEnumerateInstanceVersion") };
        // SAFETY: the number is there to be written.
        match command.map(|enumerate| unsafe { enumerate(&mut version) }) {
            Some(Result::SUCCESS) => version,
            _ => API_VERSION_1_0,
        }
    }

    /// The extensions of instances.
    pub(crate) fn extensions(&self) -> std::result::Result<Vec<ExtensionProperties>, Result> {
        // SAFETY: the command's type.
        let command: Option<EnumerateExtensions> =
            unsafe { self.command(c"vkEnumerateInstanceExtensionProperties") };
        let enumerate = command.ok_or(Result::ERROR_INITIALIZATION_FAILED)?;
        // SAFETY: there is room for as many as are said to be.
        list(&mut |count, all| unsafe { enumerate(ptr::null(), count, all) })
    }

    /// The layers that are installed.
    pub(crate) fn layers(&self) -> std::result::Result<Vec<LayerProperties>, Result> {
        // SAFETY: the command's type.
        let command: Option<EnumerateLayers> =
            unsafe { self.command(c"vkEnumerateInstanceLayerProperties") };
        let enumerate = command.ok_or(Result::ERROR_INITIALIZATION_FAILED)?;
        // SAFETY: there is room for as many as are said to be.
        list(&mut |count, all| unsafe { enumerate(count, all) })
    }

    /// Makes an instance.
    ///
    /// # Safety
    /// As Vulkan says.
    pub(crate) unsafe fn create_instance(
        &self,
        info: &InstanceCreateInfo,
    ) -> std::result::Result<Instance, Result> {
        // SAFETY: the command's type.
        let command: Option<CreateInstance> = unsafe { self.command(c"vkCreateInstance") };
        let create = command.ok_or(Result::ERROR_INITIALIZATION_FAILED)?;
        let mut handle = InstanceHandle::null();
        // SAFETY: by the contract.
        unsafe { create(info, ptr::null(), &mut handle) }.ok()?;
        let find = |name: &CStr| {
            // SAFETY: the instance was just made.
            unsafe { (self.get_instance_proc_addr)(handle, name.as_ptr()) }
        };
        let commands = InstanceCommands::find(&Finder::new(&find))?;
        Ok(Instance { handle, commands, get_instance_proc_addr: self.get_instance_proc_addr })
    }
}
