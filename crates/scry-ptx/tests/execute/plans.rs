//! Executes plans of the kernel library.

use scry_ptx::kernels::{BufferAccess, BufferSlot, Parameter, Plan, PtxKernel};

use super::code::Space;
use super::grid::{End, Launch, TICKS};
use super::memory::{Region, Regions};
use super::parse::parse;

/// Returns the address of a buffer, aligned to 16 bytes and no more.
fn address(nth: usize) -> u64 {
    ((nth as u64 + 1) << 44) + 0x110
}

/// Executes the steps of a plan with its arguments, of which the last one is written; returns that.
pub fn execute(plan: &Plan, arguments: &[Vec<u8>]) -> Vec<u8> {
    // Scratch buffers follow the arguments.
    let mut buffers = arguments.to_vec();
    buffers.extend(plan.scratch.iter().map(|bytes| vec![0xa5; *bytes as usize]));
    for step in &plan.steps {
        let slots = step.buffers.iter().map(|slot| match *slot {
            BufferSlot::Argument(nth) => nth,
            BufferSlot::Scratch(nth) => arguments.len() + nth,
        });
        launch(&*step.kernel, &slots.collect::<Vec<_>>(), &mut buffers);
    }
    buffers.swap_remove(arguments.len() - 1)
}

/// Executes a kernel with these of the buffers.
fn launch(kernel: &dyn PtxKernel, slots: &[usize], buffers: &mut [Vec<u8>]) {
    let (text, shape) = (kernel.emit_ptx(), kernel.launch());
    // The end of a kernel is a return, which the interpreter requires.
    let body = text.trim_end().strip_suffix('}').unwrap();
    let text = format!("{body}    ret;\n}}\n");
    let module = parse(&text, shape.dynamic_shared).unwrap();
    let interface = kernel.interface();
    let variables = module.variables.iter().filter(|it| it.space == Space::Param);
    let params = variables.zip(interface.parameters).map(|(variable, parameter)| {
        let bytes = match parameter {
            Parameter::Pointer(nth) => address(nth).to_le_bytes().to_vec(),
            Parameter::U64(number) => number.to_le_bytes().to_vec(),
            Parameter::U32(number) => number.to_le_bytes().to_vec(),
            Parameter::F32(number) => number.to_le_bytes().to_vec(),
            other => panic!("{other:?} is not among the parameters"),
        };
        Region::new(&variable.name, variable.address, bytes, false)
    });
    let launch = Launch {
        module: &module,
        text: &text,
        grid: shape.grid,
        params: Regions(params.collect()),
        budget: [1 << 40; 2],
        stop: (0, 0),
        ticks: TICKS,
    };
    let regions = interface.buffers.iter().zip(slots).enumerate().map(|(nth, (buffer, slot))| {
        let is_written = buffer.access == BufferAccess::Write;
        Region::new(buffer.name, address(nth), buffers[*slot].clone(), is_written)
    });
    let mut global = Regions(regions.collect());
    let (end, _) = launch.run(&mut global).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(end, End::Normal);
    for (slot, region) in slots.iter().zip(global.0) {
        buffers[*slot] = region.bytes;
    }
}

/// Returns numbers between -1 and 1.
pub fn numbers(count: usize) -> Vec<f32> {
    let word = |at: usize| (at as u32).wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
    let mixed = (0..count).map(|at| (word(at) ^ (word(at) >> 15)).wrapping_mul(0x2c1b_3c6d));
    mixed.map(|bits| (bits >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}
