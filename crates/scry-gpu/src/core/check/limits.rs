//! Checks of a kernel's features and resources, independent of its launches, against the device.

use scry_ir::{BindingInfo, BufferBindingType, Features};

use super::interface::KernelInterface;
use crate::api::error::{ArgumentError, GpuError, Result, TooLargeError, UnsupportedError};
use crate::api::info::{DeviceInfo, Limits};

const AXES: [&str; 3] = ["x", "y", "z"];

/// Checks that a device can run a kernel. For missing features, `help` returns the text that names
/// the present devices that have them.
///
/// # Errors
/// [`GpuError::Unsupported`] for features, [`GpuError::TooLarge`] for limits,
/// [`GpuError::Argument`] for a workgroup without invocations.
pub(crate) fn kernel_limits<'a>(
    interface: impl Into<KernelInterface<'a>>,
    info: &DeviceInfo,
    help: impl FnOnce(Features) -> String,
) -> Result<()> {
    let interface = interface.into();
    let missing = interface.features.difference(info.features);
    if !missing.is_empty() {
        return Err(GpuError::Unsupported(UnsupportedError {
            function: None,
            label: None,
            kernel: interface.entry_point.clone(),
            features: missing,
            device: info.name.clone(),
            help: help(missing),
        }));
    }
    let check = Check { interface, info };
    check.workgroup_size()?;
    check.workgroup_memory()?;
    check.bindings()?;
    check.immediates()
}

/// Returns the maximum bytes of a binding of a WGSL kernel, and the limit's name.
pub(super) fn binding_limit(limits: &Limits, ty: BufferBindingType) -> (u64, &'static str) {
    let (limit, name) = match ty {
        BufferBindingType::Uniform => (limits.max_uniform_binding_size, "max_uniform_binding_size"),
        BufferBindingType::Storage => (limits.max_storage_binding_size, "max_storage_binding_size"),
    };
    (limit.min(Limits::MAX_WGSL_BINDING), name)
}

struct Check<'a> {
    interface: KernelInterface<'a>,
    info: &'a DeviceInfo,
}

impl Check<'_> {
    fn workgroup_size(&self) -> Result<()> {
        let size = self.interface.workgroup_size;
        let limits = &self.info.limits;
        let term = |native, wgsl| self.interface.term(native, wgsl);
        let help = term("use smaller blocks", "use smaller workgroups");
        for axis in 0..3 {
            if size[axis] == 0 {
                return Err(GpuError::Argument(ArgumentError {
                    label: None,
                    function: None,
                    kernel: Some(self.interface.entry_point.clone()),
                    argument: term("block", "@workgroup_size").into(),
                    problem: format!("0 {} along {}", term("threads", "invocations"), AXES[axis]),
                    help: "give each axis at least 1".into(),
                }));
            }
            self.at_most(
                &|| format!("{} along {}", term("block", "@workgroup_size"), AXES[axis]),
                size[axis].into(),
                "",
                (limits.max_workgroup_size[axis].into(), "max_workgroup_size"),
                help,
            )?;
        }
        self.at_most(
            &|| {
                format!(
                    "{}({}, {}, {})",
                    term("block ", "@workgroup_size"),
                    size[0],
                    size[1],
                    size[2]
                )
            },
            // Each is less than 2³², so their product fits.
            size.iter().map(|n| u128::from(*n)).product(),
            term(" threads", " invocations"),
            (limits.max_workgroup_invocations.into(), "max_workgroup_invocations"),
            help,
        )
    }

    fn workgroup_memory(&self) -> Result<()> {
        self.at_most(
            &|| self.interface.term("dynamic shared memory", "workgroup memory").into(),
            self.interface.workgroup_memory.into(),
            " bytes",
            (self.info.limits.max_workgroup_memory.into(), "max_workgroup_memory"),
            self.interface.term(
                "declare less with NativeInterface::dynamic_shared",
                "make its var<workgroup> arrays smaller",
            ),
        )
    }

    fn bindings(&self) -> Result<()> {
        let limits = &self.info.limits;
        let count = |ty| self.interface.bindings.iter().filter(|b| b.ty == ty).count();
        self.at_most(
            &|| self.interface.term("number of buffers", "number of var<storage> bindings").into(),
            count(BufferBindingType::Storage) as u128,
            "",
            (limits.max_storage_bindings.into(), "max_storage_bindings"),
            "put several arrays into one buffer",
        )?;
        self.at_most(
            &|| "number of var<uniform> bindings".into(),
            count(BufferBindingType::Uniform) as u128,
            "",
            (limits.max_uniform_bindings.into(), "max_uniform_bindings"),
            "put several values into one struct",
        )?;
        self.interface.bindings.iter().try_for_each(|binding| self.binding_size(binding))
    }

    fn binding_size(&self, binding: &BindingInfo) -> Result<()> {
        let (limit, name) = binding_limit(&self.info.limits, binding.ty);
        let help = match binding.ty {
            BufferBindingType::Uniform => "declare it as var<storage, read>",
            BufferBindingType::Storage => "declare a smaller type",
        };
        self.at_most(
            &|| self.interface.binding_name(binding),
            binding.layout.min_binding_size().into(),
            " bytes",
            (limit.into(), name),
            help,
        )
    }

    fn immediates(&self) -> Result<()> {
        let Some(immediates) = &self.interface.immediates else {
            return Ok(());
        };
        self.at_most(
            &|| match self.interface.is_native() {
                true => "immediates".to_owned(),
                false => format!("`{}` (var<immediate>)", immediates.name),
            },
            immediates.layout.fixed_size().into(),
            " bytes",
            (self.info.limits.max_immediates.into(), "max_immediates"),
            self.interface
                .term("move parameters to a buffer", "move parameters to a var<uniform> buffer"),
        )
    }

    fn at_most(
        &self,
        what: &dyn Fn() -> String,
        requested: u128,
        unit: &str,
        (limit, limit_name): (u128, &'static str),
        help: &str,
    ) -> Result<()> {
        if requested <= limit {
            return Ok(());
        }
        Err(GpuError::TooLarge(TooLargeError {
            label: None,
            function: None,
            what: format!("kernel `{}`, {}", self.interface.entry_point, what()),
            requested: format!("{requested}{unit}"),
            device: self.info.name.clone(),
            limit: format!("{limit}{unit}"),
            limit_name,
            help: help.into(),
        }))
    }
}
