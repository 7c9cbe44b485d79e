//! The Vulkan loader and one instance, shared by all adapters and devices of the process.

use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use ash::{ext, khr, vk};

use super::{error, validation};
use crate::backend::Absence;
use crate::backend::vulkan::lock;
use crate::lifecycle::fork_guard::Process;

/// The minimum Vulkan version.
pub(crate) const MIN_VERSION: u32 = vk::API_VERSION_1_2;
/// The newest Vulkan version that the backend uses.
pub(crate) const MAX_VERSION: u32 = vk::API_VERSION_1_3;

/// The help for a missing or old loader.
const INSTALL_LOADER: &str = "install the Vulkan loader: package libvulkan1 on Debian and Ubuntu, \
    vulkan-loader on Fedora, the graphics driver on Windows, the Vulkan SDK or MoltenVK on macOS";
/// The help for a missing driver.
const INSTALL_DRIVER: &str = "install a Vulkan driver for the GPU: the vendor's, or Mesa's \
    (mesa-vulkan-drivers on Debian, Ubuntu and Fedora), which also has a software device; on \
    Windows the graphics driver, on macOS MoltenVK";

/// The help for a driver that does not load, which precedes [`INSTALL_DRIVER`].
const FIX_DRIVER: &str = "install the libraries that the driver named above needs (NVIDIA's needs \
    those of glvnd: libegl1, libglx0, libgl1 on Debian and Ubuntu, libglvnd-egl and libglvnd-glx \
    on Fedora), or install it again; or ";

/// The loader. Never unloaded, because drivers have threads of their own.
type Loader = ManuallyDrop<ash::Entry>;

/// An instance.
pub(crate) struct Instance {
    pub(crate) raw: ash::Instance,
    /// Functions that name objects for debugging tools; `Some` if validation is enabled.
    pub(crate) debug: Option<ext::debug_utils::Instance>,
    /// Unused logical devices that are kept for reuse: see the drop of `Gpu`.
    pub(crate) reusable_devices: Mutex<Vec<(vk::PhysicalDevice, ash::Device)>>,
    messenger: vk::DebugUtilsMessengerEXT,
    /// The process that created it.
    process: Process,
    entry: Loader,
}

impl Instance {
    /// Returns the instance of the process. The first call that succeeds creates it. It is kept,
    /// because its creation is the longest part of the time to a first result, and because drivers
    /// are poorly tested for being loaded by one thread while another one unloads them.
    pub(crate) fn shared() -> Result<Arc<Self>, Absence> {
        static SHARED: Mutex<Option<Arc<Instance>>> = Mutex::new(None);
        let mut shared = lock(&SHARED);
        // A forked child creates its own.
        if let Some(instance) = shared.as_ref().filter(|it| !it.process.has_forked()) {
            return Ok(Arc::clone(instance));
        }
        let instance = Arc::new(Self::new(load()?)?);
        *shared = Some(Arc::clone(&instance));
        Ok(instance)
    }

    fn new(entry: Loader) -> Result<Self, Absence> {
        let validate = validation::is_requested();
        let extensions = extensions_to_enable(&entry, validate)?;
        let raw = create(&entry, &extensions, validate, None)
            .map_err(|code| no_instance(&entry, &extensions, code))?;
        let debug = validate.then(|| ext::debug_utils::Instance::new(&entry, &raw));
        let messenger = debug.as_ref().map(|debug| {
            let reporter = validation::reporter();
            // SAFETY: the extension is enabled; the callback is a function of this program.
            unsafe { debug.create_debug_utils_messenger(&reporter, None) }.unwrap_or_default()
        });
        let messenger = messenger.unwrap_or_default();
        Ok(Self {
            raw,
            debug,
            reusable_devices: Mutex::default(),
            messenger,
            process: Process::current(),
            entry,
        })
    }

    /// Returns the functions of the loader.
    pub(crate) fn entry(&self) -> &ash::Entry {
        &self.entry
    }

    /// Returns the loader's and drivers' messages from the enumeration of physical devices.
    pub(crate) fn loader_messages(&self) -> Vec<String> {
        loader_messages(&self.entry)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Reusable devices are child objects that nothing destroys.
        if self.process.has_forked() || !lock(&self.reusable_devices).is_empty() {
            return;
        }
        // SAFETY: every other child object holds an `Arc` of `self`, so none is left.
        unsafe {
            if let Some(debug) = &self.debug {
                debug.destroy_debug_utils_messenger(self.messenger, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}

/// Opens the loader library.
fn load() -> Result<Loader, Absence> {
    // SAFETY: the initialisers of the system's Vulkan loader have no preconditions.
    let entry = unsafe { ash::Entry::load() }.map_err(|error| Absence {
        reason: format!("the Vulkan loader could not be opened: {error}"),
        help: INSTALL_LOADER.to_owned(),
    })?;
    Ok(ManuallyDrop::new(entry))
}

/// Returns the extensions to enable. An error if the loader is too old, or the requested validation
/// layer is missing.
fn extensions_to_enable(entry: &ash::Entry, validate: bool) -> Result<Vec<&'static CStr>, Absence> {
    // SAFETY: queries of the loader without preconditions.
    let (version, present) = unsafe {
        (
            entry.try_enumerate_instance_version(),
            entry.enumerate_instance_extension_properties(None),
        )
    };
    let version = version.ok().flatten().unwrap_or(vk::API_VERSION_1_0);
    if version < MIN_VERSION {
        return Err(Absence {
            reason: format!("the Vulkan loader is {}, older than 1.2", version_text(version)),
            help: INSTALL_LOADER.to_owned(),
        });
    }
    let present = present.map_err(|code| Absence {
        reason: format!("the Vulkan loader does not list its extensions: {}", error::explain(code)),
        help: INSTALL_LOADER.to_owned(),
    })?;
    let mut extensions = Vec::new();
    let portability = khr::portability_enumeration::NAME;
    if has_extension(&present, portability) {
        extensions.push(portability);
    }
    if validate {
        require_layer(entry)?;
        extensions.push(ext::debug_utils::NAME);
        extensions.push(ext::validation_features::NAME);
    }
    Ok(extensions)
}

/// Returns an error if the environment requests the validation layer, but it is not installed.
fn require_layer(entry: &ash::Entry) -> Result<(), Absence> {
    // SAFETY: a query of the loader without preconditions.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }.unwrap_or_default();
    let found = layers.iter().any(|layer| layer.layer_name_as_c_str() == Ok(validation::LAYER));
    if found {
        return Ok(());
    }
    Err(Absence {
        reason: "SCRY_VALIDATE=1 requires the Vulkan validation layer, which is not installed"
            .to_owned(),
        help: "install it (vulkan-validationlayers on Debian and Ubuntu, \
            vulkan-validation-layers on Fedora, the Vulkan SDK elsewhere), or unset SCRY_VALIDATE"
            .to_owned(),
    })
}

/// Returns whether `name` is among the extensions.
pub(crate) fn has_extension(extensions: &[vk::ExtensionProperties], name: &CStr) -> bool {
    extensions.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

/// Creates an instance. `listener` receives the messages of its creation; with `validate` the
/// validation layer's reporter does, too.
fn create(
    entry: &ash::Entry,
    extensions: &[&'static CStr],
    validate: bool,
    listener: Option<vk::DebugUtilsMessengerCreateInfoEXT<'_>>,
) -> Result<ash::Instance, vk::Result> {
    let application = vk::ApplicationInfo::default().engine_name(c"scry").api_version(MAX_VERSION);
    let extension_names: Vec<*const c_char> = extensions.iter().map(|name| name.as_ptr()).collect();
    let layers = [validation::LAYER.as_ptr()];
    let mut checks =
        vk::ValidationFeaturesEXT::default().enabled_validation_features(validation::EXTRA_CHECKS);
    let mut reporter = validation::reporter();
    let mut info = vk::InstanceCreateInfo::default()
        .application_info(&application)
        .enabled_extension_names(&extension_names);
    if extensions.contains(&khr::portability_enumeration::NAME) {
        info = info.flags(vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR);
    }
    if validate {
        info = info.enabled_layer_names(&layers).push_next(&mut checks).push_next(&mut reporter);
    }
    let mut listener = listener;
    if let Some(listener) = &mut listener {
        info = info.push_next(listener);
    }
    // SAFETY: everything that `info` points to outlives the call.
    unsafe { entry.create_instance(&info, None) }
}

/// Returns the reason why no instance was created, with the loader's messages.
fn no_instance(entry: &ash::Entry, extensions: &[&CStr], code: vk::Result) -> Absence {
    let messages = loader_messages(entry);
    let mut reason = match code {
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            "the Vulkan loader found no usable driver".to_owned()
        }
        code => format!("vkCreateInstance with {extensions:?} failed: {}", error::explain(code)),
    };
    append_loader_messages(&mut reason, &messages);
    Absence { reason, help: driver_help(&messages) }
}

/// Appends the loader's messages to a reason.
pub(crate) fn append_loader_messages(reason: &mut String, messages: &[String]) {
    if !messages.is_empty() {
        reason.push_str("; loader messages: ");
        reason.push_str(&messages.join("; "));
    }
}

/// Returns the help for a missing driver: install one, repair the one in the loader's messages, or
/// correct the environment variables that hide it.
pub(crate) fn driver_help(messages: &[String]) -> String {
    const VARIABLES: [&str; 4] = [
        "VK_DRIVER_FILES",
        "VK_ICD_FILENAMES",
        "VK_LOADER_DRIVERS_SELECT",
        "VK_LOADER_DRIVERS_DISABLE",
    ];
    let set: Vec<String> = VARIABLES
        .iter()
        .filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some(format!("{name}={}", value.to_string_lossy()))
        })
        .collect();
    let mut help = String::new();
    if !set.is_empty() {
        let set = set.join(" ");
        help = format!("{set} restricts which drivers are used: correct or unset it; or ");
    }
    let names_library = |messages: &String| {
        [".so", ".dll", ".dylib"].iter().any(|ending| messages.contains(ending))
    };
    if messages.iter().any(names_library) {
        help.push_str(FIX_DRIVER);
    }
    help + INSTALL_DRIVER
}

/// Creates a temporary instance to collect the messages of the loader and the drivers. Returns the
/// first few.
fn loader_messages(entry: &ash::Entry) -> Vec<String> {
    let messages = Mutex::new(Vec::new());
    let mut extensions = vec![ext::debug_utils::NAME];
    // SAFETY: a query of the loader without preconditions.
    let present = unsafe { entry.enumerate_instance_extension_properties(None) };
    if has_extension(&present.unwrap_or_default(), khr::portability_enumeration::NAME) {
        extensions.push(khr::portability_enumeration::NAME);
    }
    if let Ok(instance) = create(entry, &extensions, false, Some(validation::collector(&messages)))
    {
        // SAFETY: the instance has no child objects, and the messages outlive it.
        unsafe {
            let _ = instance.enumerate_physical_devices();
            instance.destroy_instance(None);
        }
    }
    let mut messages = messages.into_inner().unwrap_or_else(PoisonError::into_inner);
    messages.dedup();
    messages.truncate(8);
    messages
}

/// Formats a Vulkan version.
pub(crate) fn version_text(version: u32) -> String {
    format!(
        "{}.{}.{}",
        vk::api_version_major(version),
        vk::api_version_minor(version),
        vk::api_version_patch(version)
    )
}
