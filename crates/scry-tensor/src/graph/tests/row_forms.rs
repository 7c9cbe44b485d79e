//! The forms of row kernels: rows in registers or in loops, with states that merge by shuffles or
//! in workgroup memory.

use scry_gpu::{Buffer, DType as Stored, Device, Launch};

use super::super::Graph;
use super::super::grouped::{RowWork, Work};
use crate::dtype::DType;
use crate::error::Result;
use crate::lower::{Conversions, Exchange, RowIteration, RowKey, RowProgram, build_rows};
use crate::tensor::Tensor;

const ROWS: usize = 9;

/// Returns a norm: the mean and the variance, one after the other, and the maximum.
fn norm(x: &Tensor, scale: &Tensor) -> Result<Tensor> {
    let centred = (x - x.mean_keepdim(-1)?)?;
    let variance = centred.square()?.mean_keepdim(-1)?;
    let normal = centred.mul((variance + 1e-5)?.rsqrt()?)?;
    normal.mul(scale)?.sub(x.max_keepdim(-1)?)
}

/// Runs a form of a row kernel; returns the words of its results.
fn run(
    gpu: &Device,
    work: &RowWork,
    (program, exchange): (RowProgram, Exchange),
    operands: &[Buffer<u32>; 2],
) -> Vec<Vec<u32>> {
    let RowWork { walks, arguments, rows, columns, .. } = work;
    let (rows, columns) = (*rows, *columns);
    let parameters = RowIteration { rows, columns, walks, arguments }.parameters(program.width);
    let key = RowKey { program, in_buffer: true };
    let kir = build_rows(&key, parameters.len(), Conversions::Integers, exchange);
    let kernel = gpu.compile_ir(&kir).unwrap();
    let bytes = key.program.row_bytes(columns as usize);
    let results: Vec<Buffer<u32>> = bytes
        .iter()
        .map(|bytes| gpu.upload(&vec![!0; rows as usize * *bytes as usize / 4]).unwrap())
        .collect();
    let operands = operands.iter().zip(&key.program.operands).map(|(buffer, dtype)| {
        let is_word = *dtype == DType::F32;
        buffer.untyped().view_as(if is_word { Stored::F32 } else { Stored::U32 }).unwrap()
    });
    let mut buffers: Vec<_> = results.iter().map(Buffer::untyped).collect();
    buffers.extend(operands);
    buffers.push(gpu.upload(&parameters).unwrap().untyped());
    let buffers: Vec<&dyn scry_gpu::Binding> = buffers.iter().map(|it| it as _).collect();
    let workgroups = rows.div_ceil(key.program.rows_per_workgroup());
    gpu.run(&kernel, &buffers, Launch::workgroups([workgroups, 1, 1])).unwrap();
    results.iter().map(|it| it.download().unwrap()).collect()
}

/// Returns the words of numbers as elements of a type.
fn words(dtype: DType, count: usize) -> Vec<u32> {
    let numbers = (0..count).map(|n| (n * 7919 % 1009) as f32 / 64.0 - 7.0);
    match dtype {
        DType::F32 => numbers.map(f32::to_bits).collect(),
        _ => {
            let bits: Vec<u32> =
                numbers.map(|it| half::f16::from_f32(it).to_bits().into()).collect();
            bits.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect()
        }
    }
}

/// Rows of any number of words, of one and of two elements, have the same bits in all forms.
#[test]
fn forms_of_row_kernels_agree() {
    let gpu = Device::open("cpu").unwrap();
    let mut held = std::collections::BTreeSet::new();
    for (dtype, columns) in [
        (DType::F32, 6),
        (DType::F32, 10),
        (DType::F32, 17),
        (DType::F32, 32),
        (DType::F32, 100),
        (DType::F32, 200),
        (DType::F32, 576),
        (DType::F32, 1024),
        (DType::F32, 1030),
        (DType::F32, 2048),
        (DType::F32, 3000),
        (DType::F16, 300),
        (DType::F16, 1026),
    ] {
        let g = Graph::new(&gpu).unwrap();
        let x = g.input_with_dtype("x", [ROWS, columns], dtype).unwrap();
        let scale = g.input_with_dtype("s", [columns], dtype).unwrap();
        let plan = g.compile(&[norm(&x, &scale).unwrap()]).unwrap();
        let (_, grouped) = plan.shared().group(&Vec::new()).unwrap();
        let [kernel] = &grouped.kernels[..] else { panic!("{} kernels", grouped.kernels.len()) };
        let Work::Rows(work) = &kernel.work else { panic!("not a row kernel") };
        let operands = [ROWS * columns, columns].map(|n| gpu.upload(&words(dtype, n)).unwrap());
        let width = work.program.width;
        let threads = RowProgram::threads(columns, width, false);
        let values = work.program.accesses.len() * width as usize;
        let most = RowProgram::held(columns / width as usize, threads, values);
        held.insert(most);
        let form = |held, exchange| {
            let program = RowProgram { threads, held, ..work.program.clone() };
            run(&gpu, work, (program, exchange), &operands)
        };
        let wanted = form(0, Exchange::WorkgroupMemory);
        for exchange in [Exchange::WorkgroupMemory, Exchange::Subgroups] {
            for held in [0, most] {
                let found = form(held, exchange);
                assert!(found == wanted, "{dtype:?} {columns} {held} {exchange:?}");
            }
        }
    }
    assert!(held.is_superset(&[0, 1, 2, 3, 4, 6, 8].into()), "{held:?}");
}
