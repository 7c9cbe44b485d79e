//! Commands of an instance.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr;

use super::device::{Device, DeviceCommands};
use super::entry::GetInstanceProcAddr;
use super::{
    AnyCommand, DebugUtilsMessengerEXT, DeviceCreateInfo, DeviceHandle, ExtensionProperties,
    Finder, InstanceHandle, MessengerCreateInfo, PhysicalDevice, PhysicalDeviceFeatures2,
    PhysicalDeviceMemoryProperties2, PhysicalDeviceProperties2, QueueFamilyProperties, Result,
    list,
};

/// Tells something of a physical device.
type Tell<T> = unsafe extern "system" fn(PhysicalDevice, *mut T);

/// Finds commands of a device.
pub(super) type GetDeviceProcAddr =
    unsafe extern "system" fn(DeviceHandle, *const c_char) -> AnyCommand;

pub(super) struct InstanceCommands {
    destroy: unsafe extern "system" fn(InstanceHandle, *const c_void),
    enumerate_devices:
        unsafe extern "system" fn(InstanceHandle, *mut u32, *mut PhysicalDevice) -> Result,
    extensions: unsafe extern "system" fn(
        PhysicalDevice,
        *const c_char,
        *mut u32,
        *mut ExtensionProperties,
    ) -> Result,
    properties: Tell<PhysicalDeviceProperties2>,
    features: Tell<PhysicalDeviceFeatures2>,
    memory: Tell<PhysicalDeviceMemoryProperties2>,
    queue_families: unsafe extern "system" fn(PhysicalDevice, *mut u32, *mut QueueFamilyProperties),
    create_device: unsafe extern "system" fn(
        PhysicalDevice,
        *const DeviceCreateInfo,
        *const c_void,
        *mut DeviceHandle,
    ) -> Result,
    pub(super) get_device_proc_addr: GetDeviceProcAddr,
}

impl InstanceCommands {
    #[expect(clippy::missing_transmute_annotations, reason = "the fields have the types")]
    pub(super) fn find(finder: &Finder<'_>) -> std::result::Result<Self, Result> {
        // SAFETY: each name's command has the field's type.
        let commands = unsafe {
            Self {
                destroy: transmute(finder.get(c"vkDestroyInstance")),
                enumerate_devices: transmute(finder.get(c"vkEnumeratePhysicalDevices")),
                extensions: transmute(finder.get(c"vkEnumerateDeviceExtensionProperties")),
                properties: transmute(finder.get(c"vkGetPhysicalDeviceProperties2")),
                features: transmute(finder.get(c"vkGetPhysicalDeviceFeatures2")),
                memory: transmute(finder.get(c"vkGetPhysicalDeviceMemoryProperties2")),
                queue_families: transmute(finder.get(c"vkGetPhysicalDeviceQueueFamilyProperties")),
                create_device: transmute(finder.get(c"vkCreateDevice")),
                get_device_proc_addr: transmute(finder.get(c"vkGetDeviceProcAddr")),
            }
        };
        finder.complete()?;
        Ok(commands)
    }
}

/// An instance.
pub(crate) struct Instance {
    pub(super) handle: InstanceHandle,
    pub(super) commands: InstanceCommands,
    pub(super) get_instance_proc_addr: GetInstanceProcAddr,
}

impl Instance {
    /// # Safety
    /// As Vulkan says: once, and after all that was made from it.
    pub(crate) unsafe fn destroy(&self) {
        // SAFETY: by the contract.
        unsafe { (self.commands.destroy)(self.handle, ptr::null()) }
    }

    /// The physical devices.
    ///
    /// # Safety
    /// The instance is alive.
    pub(crate) unsafe fn physical_devices(
        &self,
    ) -> std::result::Result<Vec<PhysicalDevice>, Result> {
        let enumerate = self.commands.enumerate_devices;
        // SAFETY: there is room for as many as are said to be.
        list(&mut |count, all| unsafe { enumerate(self.handle, count, all) })
    }

    /// The extensions of a device.
    ///
    /// # Safety
    /// The device is one of the instance's, which is alive; as for all that follows.
    pub(crate) unsafe fn extensions(
        &self,
        of: PhysicalDevice,
    ) -> std::result::Result<Vec<ExtensionProperties>, Result> {
        let enumerate = self.commands.extensions;
        // SAFETY: there is room for as many as are said to be.
        list(&mut |count, all| unsafe { enumerate(of, ptr::null(), count, all) })
    }

    /// Fills in properties, and all that is chained to them.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn properties(&self, of: PhysicalDevice, to: &mut PhysicalDeviceProperties2) {
        // SAFETY: by the contract.
        unsafe { (self.commands.properties)(of, to) }
    }

    /// Fills in features, and all that is chained to them.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn features(&self, of: PhysicalDevice, to: &mut PhysicalDeviceFeatures2) {
        // SAFETY: by the contract.
        unsafe { (self.commands.features)(of, to) }
    }

    /// Fills in the kinds of memory, and all that is chained to them.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn memory(
        &self,
        of: PhysicalDevice,
        to: &mut PhysicalDeviceMemoryProperties2,
    ) {
        // SAFETY: by the contract.
        unsafe { (self.commands.memory)(of, to) }
    }

    /// The queue families of a device.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn queue_families(&self, of: PhysicalDevice) -> Vec<QueueFamilyProperties> {
        let tell = self.commands.queue_families;
        let families = list(&mut |count, all| {
            // SAFETY: there is room for as many as are said to be.
            unsafe { tell(of, count, all) };
            Result::SUCCESS
        });
        families.unwrap_or_default()
    }

    /// Opens a device.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_device(
        &self,
        of: PhysicalDevice,
        info: &DeviceCreateInfo,
    ) -> std::result::Result<Device, Result> {
        let mut handle = DeviceHandle::null();
        // SAFETY: by the contract.
        unsafe { (self.commands.create_device)(of, info, ptr::null(), &mut handle) }.ok()?;
        let find = |name: &CStr| {
            // SAFETY: the device was just made.
            unsafe { (self.commands.get_device_proc_addr)(handle, name.as_ptr()) }
        };
        Ok(Device { handle, commands: DeviceCommands::find(&Finder::new(&find))? })
    }
}

type CreateMessenger = unsafe extern "system" fn(
    InstanceHandle,
    *const MessengerCreateInfo,
    *const c_void,
    *mut DebugUtilsMessengerEXT,
) -> Result;

/// Commands of `VK_EXT_debug_utils`.
pub(crate) struct Messengers {
    instance: InstanceHandle,
    create: CreateMessenger,
    destroy: unsafe extern "system" fn(InstanceHandle, DebugUtilsMessengerEXT, *const c_void),
}

impl Messengers {
    /// The commands of an instance that has the extension enabled.
    pub(crate) fn new(of: &Instance) -> Option<Self> {
        let find = |name: &CStr| {
            // SAFETY: the instance is alive.
            unsafe { (of.get_instance_proc_addr)(of.handle, name.as_ptr()) }
        };
        let finder = Finder::new(&find);
        // SAFETY: each name's command has the field's type.
        unsafe {
            Some(Self {
                instance: of.handle,
                create: finder.find(c"vkCreateDebugUtilsMessengerEXT")?,
                destroy: finder.find(c"vkDestroyDebugUtilsMessengerEXT")?,
            })
        }
    }

    /// Makes a messenger.
    ///
    /// # Safety
    /// As Vulkan says.
    pub(crate) unsafe fn create(
        &self,
        info: &MessengerCreateInfo,
    ) -> std::result::Result<DebugUtilsMessengerEXT, Result> {
        let mut made = DebugUtilsMessengerEXT::null();
        // SAFETY: by the contract.
        unsafe { (self.create)(self.instance, info, ptr::null(), &mut made) }.ok()?;
        Ok(made)
    }

    /// # Safety
    /// As Vulkan says: before the instance.
    pub(crate) unsafe fn destroy(&self, messenger: DebugUtilsMessengerEXT) {
        // SAFETY: by the contract.
        unsafe { (self.destroy)(self.instance, messenger, ptr::null()) }
    }
}
