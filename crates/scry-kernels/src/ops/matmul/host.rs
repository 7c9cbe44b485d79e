//! Products on the CPU device, by the crate `gemm`.

use scry_gpu::{PreparedLaunch, Result};

use super::Product;
use crate::kernels::Kernels;
use crate::operation::Preparation;

#[cfg(not(feature = "cpu"))]
pub(super) fn obstacle(_: &Kernels) -> Option<String> {
    Some("needs the feature `cpu`".to_owned())
}

#[cfg(not(feature = "cpu"))]
pub(super) fn prepare(_: &Product, _: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    Ok(Vec::new())
}

#[cfg(feature = "cpu")]
pub(super) use host::{obstacle, prepare};

#[cfg(feature = "cpu")]
mod host {
    use scry_gpu::{
        BackendKind, Binding, DType, HostArguments, Launch, NativeInterface, bf16, f16,
    };
    use scry_ptx::kernels::gemm::{Activation, Gemm, Layout, MatrixLayout};

    use super::*;
    use crate::native::{HostStrides, host_gemm};
    use crate::ptx;

    pub(in super::super) fn obstacle(kernels: &Kernels) -> Option<String> {
        let is_cpu = kernels.device().backend_kind() == BackendKind::Cpu;
        (!is_cpu).then(|| "needs the CPU device".to_owned())
    }

    pub(in super::super) fn prepare(
        it: &Product,
        preparation: &Preparation<'_>,
    ) -> Result<Vec<PreparedLaunch>> {
        let interface = NativeInterface::new(it.arguments.clone(), [1; 3]);
        let gemm = it.gemm;
        let multiply = move |arguments: &mut HostArguments<'_>| multiply(&gemm, arguments);
        let device = preparation.kernels.device();
        let kernel = device.host_kernel("host_gemm", &interface, multiply)?;
        let buffers: Vec<_> = preparation.buffers.iter().collect();
        let buffers = preparation.without_empty(&buffers)?;
        let bindings: Vec<&dyn Binding> = buffers.iter().map(|buffer| buffer as _).collect();
        Ok(vec![kernel.prepare(&bindings, Launch::workgroups([1; 3]))?])
    }

    /// Multiplies each matrix of a batch.
    fn multiply(gemm: &Gemm, arguments: &mut HostArguments<'_>) {
        let element = ptx::dtype(gemm.element);
        let [a, b] = [0, 1].map(|binding| Numbers::read(arguments, binding, element));
        let output = ptx::dtype(gemm.output);
        let bias = gemm.epilogue.bias.then(|| Numbers::read(arguments, 2, output));
        let out = 2 + usize::from(gemm.epilogue.bias);
        match output {
            DType::F16 => {
                let out: &mut [f16] = arguments.write(out);
                let mut wide: Vec<f32> = out.iter().map(|x| x.to_f32()).collect();
                products(gemm, a.as_slice(), b.as_slice(), bias.as_ref(), &mut wide);
                out.iter_mut().zip(wide).for_each(|(out, x)| *out = f16::from_f32(x));
            }
            DType::BF16 => {
                let out: &mut [bf16] = arguments.write(out);
                let mut wide: Vec<f32> = out.iter().map(|x| x.to_f32()).collect();
                products(gemm, a.as_slice(), b.as_slice(), bias.as_ref(), &mut wide);
                out.iter_mut().zip(wide).for_each(|(out, x)| *out = bf16::from_f32(x));
            }
            _ => {
                let out = arguments.write(out);
                products(gemm, a.as_slice(), b.as_slice(), bias.as_ref(), out);
            }
        }
    }

    /// Operands as `f32`: those of the buffer, or converted ones.
    enum Numbers<'a> {
        Bound(&'a [f32]),
        Converted(Vec<f32>),
    }

    impl<'a> Numbers<'a> {
        fn read(arguments: &HostArguments<'a>, binding: usize, dtype: DType) -> Self {
            match dtype {
                DType::F16 => {
                    let numbers = arguments.read::<f16>(binding).iter();
                    Self::Converted(numbers.map(|x| x.to_f32()).collect())
                }
                DType::BF16 => {
                    let numbers = arguments.read::<bf16>(binding).iter();
                    Self::Converted(numbers.map(|x| x.to_f32()).collect())
                }
                _ => Self::Bound(arguments.read(binding)),
            }
        }

        fn as_slice(&self) -> &[f32] {
            match self {
                Self::Bound(numbers) => numbers,
                Self::Converted(numbers) => numbers,
            }
        }
    }

    fn products(gemm: &Gemm, a: &[f32], b: &[f32], bias: Option<&Numbers<'_>>, out: &mut [f32]) {
        let [m, n, k] = [gemm.m, gemm.n, gemm.k].map(|size| size as usize);
        let scalars = [gemm.epilogue.alpha, gemm.epilogue.beta];
        for z in 0..gemm.batch as usize {
            let [a_start, b_start, out_start] =
                [gemm.a, gemm.b, gemm.out].map(|layout| z * layout.stride as usize);
            let a = (a.get(a_start..).unwrap_or_default(), strides(gemm.a));
            let b = (b.get(b_start..).unwrap_or_default(), strides(gemm.b));
            let out = &mut out[out_start..];
            host_gemm([m, n, k], scalars, a, b, (out, strides(gemm.out)));
            finish(gemm, bias.map(Numbers::as_slice), out);
        }
    }

    fn strides(layout: MatrixLayout) -> HostStrides {
        let ld = layout.ld as usize;
        match layout.order {
            Layout::RowMajor => HostStrides { rows: ld, columns: 1 },
            Layout::ColMajor => HostStrides { rows: 1, columns: ld },
        }
    }

    /// Adds the bias, and applies the activation.
    fn finish(gemm: &Gemm, bias: Option<&[f32]>, out: &mut [f32]) {
        let activation = gemm.epilogue.activation;
        if bias.is_none() && activation == Activation::None {
            return;
        }
        let HostStrides { rows, columns } = strides(gemm.out);
        for (row, column) in (0..gemm.m as usize)
            .flat_map(|row| (0..gemm.n as usize).map(move |column| (row, column)))
        {
            let result = &mut out[row * rows + column * columns];
            let biased = *result + bias.map_or(0.0, |bias| bias[column]);
            *result = activate(activation, biased);
        }
    }

    fn activate(activation: Activation, x: f32) -> f32 {
        match activation {
            Activation::None => x,
            Activation::Relu => x.max(0.0),
            Activation::Gelu => x / (1.0 + (-1.595_769_1 * x * (1.0 + 0.044_715 * x * x)).exp()),
            Activation::Silu => x / (1.0 + (-x).exp()),
        }
    }
}
