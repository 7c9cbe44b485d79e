//! Executes the kernels that quantise and dequantise weights, and compares them with the host.

use scry_ptx::kernels::quant::{BlockFormat, dequantize, dequantize_plan, quantize, quantize_plan};
use scry_ptx::kernels::{Parameter, Plan};
use scry_ptx::{PtxType, Target};

use super::grid::{End, Launch, TICKS};
use super::memory::{Region, Regions};
use super::parse::parse;

/// The addresses of the two buffers, aligned to 16 bytes and no more.
const ADDRESSES: [u64; 2] = [(1 << 44) + 0x110, (2 << 44) + 0x110];

/// Executes the only step of a plan; returns the second buffer, which it writes.
fn execute(plan: &Plan, input: Vec<u8>, output: Vec<u8>) -> Vec<u8> {
    let kernel = &*plan.steps[0].kernel;
    let (text, shape) = (kernel.emit_ptx(), kernel.launch());
    // The end of a kernel is a return, which the interpreter requires.
    let body = text.trim_end().strip_suffix('}').unwrap();
    let text = format!("{body}    ret;\n}}\n");
    let module = parse(&text, shape.dynamic_shared).unwrap();
    let variables = module.variables.iter().filter(|it| it.space == super::code::Space::Param);
    let params = variables.zip(kernel.interface().parameters).map(|(variable, parameter)| {
        let bytes = match parameter {
            Parameter::Pointer(nth) => ADDRESSES[nth].to_le_bytes().to_vec(),
            Parameter::U64(number) => number.to_le_bytes().to_vec(),
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
    let mut global = Regions(vec![
        Region::new("input", ADDRESSES[0], input, false),
        Region::new("output", ADDRESSES[1], output, true),
    ]);
    let (end, _) = launch.run(&mut global).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(end, End::Normal);
    global.0.swap_remove(1).bytes
}

/// Returns numbers between -1 and 1.
fn numbers(count: usize) -> Vec<f32> {
    let word = |at: usize| (at as u32).wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
    let mixed = (0..count).map(|at| (word(at) ^ (word(at) >> 15)).wrapping_mul(0x2c1b_3c6d));
    mixed.map(|bits| (bits >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Blocks of weights: ordinary ones, and those with unusual scales, ties, NaN and infinities.
fn weights(format: BlockFormat) -> Vec<f32> {
    let len = format.block_len();
    let ordinary = numbers(5 * len);
    let one = &ordinary[..len];
    let scaled = |by: f32| one.iter().map(|x| x * by).collect::<Vec<_>>();
    let changed = |changes: &[(usize, f32)]| {
        let mut weights = one.to_vec();
        changes.iter().for_each(|(at, weight)| weights[*at] = *weight);
        weights
    };
    [
        ordinary.clone(),
        vec![0.0; len],
        vec![-0.0; len],
        vec![1.0; len],
        scaled(1e-5),
        scaled(1e-9),
        scaled(1e-42),
        scaled(1e6),
        vec![f32::MAX; len],
        (0..len).map(|nth| if nth % 2 == 0 { f32::MAX } else { f32::MIN }).collect(),
        changed(&[(3, 2.0), (20, -2.0)]),
        changed(&[(3, -2.0), (20, 2.0)]),
        changed(&[(0, f32::NAN), (31, f32::NAN)]),
        changed(&[(9, f32::NEG_INFINITY), (8, f32::INFINITY)]),
        vec![f32::NAN; len],
        vec![f32::INFINITY; len],
        vec![f32::NEG_INFINITY; len],
        (0..len).map(|nth| (nth as f32 - 16.0) / 2.0).collect(),
    ]
    .concat()
}

#[test]
fn quantised_blocks_have_the_bytes_of_the_host() {
    for format in BlockFormat::ALL {
        let weights = weights(format);
        let input = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
        let expected = quantize(format, &weights).unwrap();
        let plan = quantize_plan(format, weights.len() as u64).unwrap();
        let found = execute(&plan, input, vec![0xa5; expected.len()]);
        let blocks = found.chunks(format.block_bytes()).zip(expected.chunks(format.block_bytes()));
        for (nth, (found, expected)) in blocks.enumerate() {
            let weights = &weights[nth * format.block_len()..][..format.block_len()];
            assert_eq!(found, expected, "{format:?}, block {nth}: {weights:?}");
        }
    }
}

#[test]
fn dequantised_weights_have_the_bits_of_the_host() {
    for format in BlockFormat::ALL {
        let blocks = quantize(format, &numbers(9 * format.block_len())).unwrap();
        let expected = dequantize(format, &blocks).unwrap();
        let plan = dequantize_plan(format, PtxType::F32, expected.len() as u64).unwrap();
        assert_eq!(plan.steps[0].kernel.default_target(), Target::SM_75);
        let found = execute(&plan, blocks, vec![0xa5; 4 * expected.len()]);
        let (found, _) = found.as_chunks::<4>();
        let found: Vec<f32> = found.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert_eq!(found, expected, "{format:?}");
    }
}
