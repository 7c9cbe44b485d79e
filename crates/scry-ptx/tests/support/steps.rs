//! What every plan of kernels has to keep to.

use scry_ptx::kernels::{Place, Plan};

/// Demands that each step passes as many parameters and buffers as its kernel declares, and that
/// its buffers have room for what the kernel takes.
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
    }
}
