//! Kernel parameters that an interface declares one by one, including tensor maps.

use std::ffi::{c_int, c_uint};

use super::params::{Parameters, Range};
use crate::api::error::{ArgumentError, GpuError, LibraryError, Result};
use crate::api::native::parameters::with_immediates;
use crate::api::native::{
    NativeInterface, NativeParameter, TensorElement, TensorMap, TensorSwizzle,
};
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{Code, DevicePtr};

/// `cuTensorMapEncodeTiled`: map, data type, rank, address, dimensions, strides, box dimensions,
/// element strides, interleave, swizzle, L2 promotion, out-of-bounds fill.
type EncodeTiled = unsafe extern "C" fn(
    *mut EncodedMap,
    c_uint,
    u32,
    DevicePtr,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> Code;

/// An encoded tensor map, `CUtensorMap`.
#[repr(C, align(64))]
struct EncodedMap([u64; 16]);

/// Encodes the parameters of a kernel with declared parameters.
pub(crate) struct DeclaredParams {
    pub(crate) interface: NativeInterface,
    /// The driver's function; `Some` if there are tensor maps among the parameters.
    encode: Option<EncodeTiled>,
}

impl DeclaredParams {
    /// Creates the encoder of an interface; an error if the driver is too old for its parameters.
    pub(crate) fn new(gpu: &Gpu, interface: &NativeInterface) -> Result<Self> {
        let parameters = interface.declared_parameters().unwrap_or_default();
        let has_maps = parameters.iter().any(|it| matches!(it, NativeParameter::TensorMap(_)));
        let encode = if has_maps { Some(find_encode(gpu)?) } else { None };
        Ok(Self { interface: interface.clone(), encode })
    }

    /// Replaces the parameters of the previous launch. `immediates` has the words and descriptions
    /// of tensor maps, as [`NativeInterface::with_parameters`] documents.
    pub(crate) fn pack(
        &self,
        gpu: &Gpu,
        parameters: &mut Parameters,
        bindings: &[Range],
        immediates: &[u8],
    ) -> Result<()> {
        parameters.clear();
        for (_, parameter, bytes) in with_immediates(&self.interface, immediates) {
            match parameter {
                NativeParameter::Pointer(binding) => parameters.push(&[bindings[binding].address]),
                NativeParameter::U32 | NativeParameter::U64 => parameters.push(&[to_u64(bytes)]),
                NativeParameter::TensorMap(binding) => {
                    parameters.push(&self.tensor_map(gpu, bindings[binding], bytes)?.0);
                }
            }
        }
        Ok(())
    }

    /// Encodes a tensor map on a buffer; `bytes` is its description.
    fn tensor_map(&self, gpu: &Gpu, buffer: Range, bytes: &[u8]) -> Result<EncodedMap> {
        let defect = |why: String| gpu.defect_error("cuTensorMapEncodeTiled", why);
        let map = TensorMap::from_bytes(bytes);
        let (Some(map), Some(encode)) = (map, self.encode) else {
            return Err(defect("there is no description of the tensor map".to_owned()));
        };
        encode_map(gpu, encode, buffer.address + map.offset, &map)
    }
}

/// Rejects a kernel whose parameters differ from the declared ones. `actual` has the offset and
/// size of each parameter of the kernel; `None` if the driver does not report them.
pub(crate) fn check(
    entry: &str,
    interface: &NativeInterface,
    actual: Option<&[(usize, usize)]>,
) -> Result<()> {
    let parameters = interface.declared_parameters().unwrap_or_default();
    let sizes =
        |actual: &[(usize, usize)]| actual.iter().map(|(_, size)| *size).collect::<Vec<_>>();
    let declared: Vec<usize> = parameters.iter().map(|parameter| parameter.size()).collect();
    match actual.map(sizes) {
        Some(actual) if actual != declared => Err(GpuError::Argument(ArgumentError {
            label: None,
            function: None,
            kernel: Some(entry.to_owned()),
            argument: "parameters".to_owned(),
            problem: format!(
                "the kernel has parameters of {actual:?} bytes, but those of {declared:?} are \
                 listed: {parameters:?}"
            ),
            help: "list the parameters as the kernel declares them, in order".to_owned(),
        })),
        _ => Ok(()),
    }
}

/// Converts a value of 4 or 8 bytes to a `u64` that begins with these bytes in memory.
fn to_u64(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

fn encode_map(
    gpu: &Gpu,
    encode: EncodeTiled,
    address: DevicePtr,
    map: &TensorMap,
) -> Result<EncodedMap> {
    /// Element strides within a tile, along each dimension.
    const ELEMENT_STRIDES: [u32; 5] = [1; 5];
    /// `CU_TENSOR_MAP_INTERLEAVE_NONE`.
    const NO_INTERLEAVE: c_uint = 0;
    /// `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`.
    const L2_PROMOTION: c_uint = 2;
    /// `CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE`: zeros.
    const ZERO_FILL: c_uint = 0;
    let mut out = EncodedMap([0; 16]);
    let (element, swizzle) = (element_code(map.element), swizzle_code(map.swizzle));
    let TensorMap { dims, strides, tile, .. } = map;
    // SAFETY: the signature is that of the driver's header. The function reads `rank` values of
    // each array, one fewer of the strides, and writes the map, which has the required alignment.
    let code = unsafe {
        encode(
            &raw mut out,
            element,
            dims.len() as u32,
            address,
            dims.as_ptr(),
            strides.as_ptr(),
            tile.as_ptr(),
            ELEMENT_STRIDES.as_ptr(),
            NO_INTERLEAVE,
            swizzle,
            L2_PROMOTION,
            ZERO_FILL,
        )
    };
    gpu.check("cuTensorMapEncodeTiled", code)?;
    Ok(out)
}

/// `CUtensorMapDataType`.
fn element_code(element: TensorElement) -> c_uint {
    match element {
        TensorElement::U8 => 0,
        TensorElement::F16 => 6,
        TensorElement::F32 => 7,
        TensorElement::Bf16 => 9,
    }
}

/// `CUtensorMapSwizzle`.
fn swizzle_code(swizzle: TensorSwizzle) -> c_uint {
    match swizzle {
        TensorSwizzle::None => 0,
        TensorSwizzle::B32 => 1,
        TensorSwizzle::B64 => 2,
        TensorSwizzle::B128 => 3,
    }
}

/// Looks up the driver's function, which was added for Hopper.
fn find_encode(gpu: &Gpu) -> Result<EncodeTiled> {
    let Some(symbol) = gpu.api.optional_function(c"cuTensorMapEncodeTiled") else {
        return Err(too_old(gpu.api.library_name(), gpu.cuda_version));
    };
    // SAFETY: the signature is that of the driver's header.
    Ok(unsafe { std::mem::transmute::<*const std::ffi::c_void, EncodeTiled>(symbol) })
}

fn too_old(library: &str, driver: c_int) -> GpuError {
    GpuError::Library(LibraryError {
        function: None,
        library: "cuTensorMapEncodeTiled",
        problem: format!(
            "{library}, for CUDA {}.{}, has no such function, which kernels with tensor maps need",
            driver / 1000,
            driver % 1000 / 10
        ),
        help: "update NVIDIA's driver to 525 or newer, or use a kernel without tensor maps"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_driver_error_names_function() {
        let text = too_old("libcuda.so.1", 12000).to_string();
        let expected = "cuTensorMapEncodeTiled is not available: libcuda.so.1, for CUDA 12.0, has";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("update NVIDIA's driver"), "{text}");
    }

    #[test]
    fn rejects_differing_parameters() {
        let list =
            [NativeParameter::U32, NativeParameter::TensorMap(0), NativeParameter::Pointer(0)];
        let interface = NativeInterface::new(1, [1; 3]).with_parameters(list);
        let check = |actual| check("k", &interface, actual);
        assert_eq!(check(Some(&[(0, 4), (48, 128), (176, 8)])), Ok(()));
        assert_eq!(check(None), Ok(()));
        let text = check(Some(&[(0, 8), (48, 128)])).unwrap_err().to_string();
        let expected = "kernel `k`, parameters: the kernel has parameters of [8, 128] bytes, but \
                        those of [4, 128, 8] are listed: [U32, TensorMap(0), Pointer(0)]; help";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn short_parameters_are_zero_padded() {
        let read = |bytes: &[u8]| to_u64(bytes).to_ne_bytes();
        assert_eq!(read(&[1, 2, 3, 4]), [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(read(&[1, 2, 3, 4, 5, 6, 7, 8]), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(align_of::<EncodedMap>(), 64);
    }
}
