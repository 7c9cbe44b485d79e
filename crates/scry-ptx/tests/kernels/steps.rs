//! Requirements of every plan.

use scry_ptx::Target;
use scry_ptx::kernels::{BufferAccess, Place, Plan, PtxKernel, Step};

/// Checks that each step passes as many parameters and buffers as its kernel declares, that its
/// buffers are large enough, and that it waits as declared.
pub fn check_steps(plan: &Plan) {
    for step in &plan.steps {
        let (name, interface) = (step.kernel.name(), step.kernel.interface());
        let declared = step.kernel.write(step.kernel.default_target()).params;
        assert_eq!(declared.len(), interface.parameters.len(), "{name}");
        assert_eq!(interface.buffers.len(), step.buffers.len(), "{name}");
        for (buffer, place) in interface.buffers.iter().zip(&step.buffers) {
            let room = match *place {
                Place::Argument(nth) => plan.arguments[nth].len,
                Place::Scratch(nth) => plan.scratch[nth] / u64::from(buffer.element.size()),
            };
            assert!(buffer.len <= room, "{name}: {buffer:?} in {room}");
        }
        check_waits(step);
    }
}

/// Checks that a kernel with `griddepcontrol.wait` declares it, waits before it launches
/// dependents, has no non-coherent loads, and prefetches only buffers that it reads. If a preceding
/// step writes these (dequantised weights), the whole launch waits. Older targets have no PDL.
fn check_waits(step: &Step) {
    let (kernel, name) = (&step.kernel, step.kernel.name());
    let text = kernel.emit_ptx_for(newest(&**kernel)).expect("the target is supported");
    let [wait, next] = ["griddepcontrol.wait;", "griddepcontrol.launch_dependents;"]
        .map(|instruction| text.find(instruction));
    let Some(pdl) = kernel.pdl_reads() else {
        assert_eq!((wait, next), (None, None), "{name}");
        return;
    };
    assert!(wait.is_some() && wait < next, "{name}: waits at {wait:?}, the next one at {next:?}");
    assert!(!text.contains("ld.global.nc"), "{name} reads what the launch before may write");
    for at in pdl {
        assert_eq!(kernel.interface().buffers[*at].access, BufferAccess::Read, "{name}");
    }
    if !kernel.default_target().has(90) {
        assert!(!kernel.emit_ptx().contains("griddepcontrol"), "{name}");
    }
}

/// The newest target that the kernel can be written for.
fn newest(kernel: &dyn PtxKernel) -> Target {
    let needed = kernel.default_target();
    if needed.has(90) { needed } else { Target::SM_90 }
}
