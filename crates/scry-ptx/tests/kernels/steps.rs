//! Checks of the requirements that every plan meets.

use scry_ptx::Target;
use scry_ptx::kernels::{BufferAccess, BufferSlot, Plan, PtxKernel, Step};

/// Checks that each step passes as many parameters and buffers as its kernel declares, that its
/// buffers are large enough, and that it waits for the preceding launch as declared (PDL).
pub fn check_steps(plan: &Plan) {
    for step in &plan.steps {
        let (name, interface) = (step.kernel.name(), step.kernel.interface());
        let declared = step.kernel.write(step.kernel.default_target()).params;
        assert_eq!(declared.len(), interface.parameters.len(), "{name}");
        assert_eq!(interface.buffers.len(), step.buffers.len(), "{name}");
        for (buffer, place) in interface.buffers.iter().zip(&step.buffers) {
            let available = match *place {
                BufferSlot::Argument(nth) => plan.arguments[nth].len,
                BufferSlot::Scratch(nth) => plan.scratch[nth] / u64::from(buffer.element.size()),
            };
            assert!(buffer.len <= available, "{name}: {buffer:?} in {available}");
        }
        check_waits(step);
    }
}

/// Checks that a kernel uses PDL exactly if it declares so, and if it does, that it waits before it
/// launches dependents, has no non-coherent loads, and reads before that wait only what it does not
/// write. Code for targets before `sm_90` has no PDL instructions.
fn check_waits(step: &Step) {
    let (kernel, name) = (&step.kernel, step.kernel.name());
    let text = kernel.emit_ptx_for(newest_target(&**kernel)).expect("the target is supported");
    let [wait, launch_dependents] = ["griddepcontrol.wait;", "griddepcontrol.launch_dependents;"]
        .map(|instruction| text.find(instruction));
    let Some(pdl) = kernel.pdl_reads() else {
        assert_eq!((wait, launch_dependents), (None, None), "{name}");
        return;
    };
    assert!(
        wait.is_some() && wait < launch_dependents,
        "{name}: waits at {wait:?}, launches dependents at {launch_dependents:?}"
    );
    assert!(
        !text.contains("ld.global.nc"),
        "{name} has non-coherent loads of what its predecessor may write"
    );
    for at in pdl {
        assert_eq!(kernel.interface().buffers[*at].access, BufferAccess::Read, "{name}");
    }
    if !kernel.default_target().has(90) {
        assert!(!kernel.emit_ptx().contains("griddepcontrol"), "{name}");
    }
}

/// The newest target that the kernel can be written for.
fn newest_target(kernel: &dyn PtxKernel) -> Target {
    let needed = kernel.default_target();
    if needed.has(90) { needed } else { Target::SM_90 }
}
