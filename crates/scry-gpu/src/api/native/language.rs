//! The languages of kernels that are not WGSL.

/// The language of a kernel that is not WGSL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// NVIDIA's PTX, as text.
    Ptx,
    /// CUDA C, compiled by NVRTC.
    CudaC,
    /// A Rust function that runs on the host, see [`Device::host_kernel`](crate::Device).
    Host,
}

impl Language {
    /// Returns the name as errors spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptx => "PTX",
            Self::CudaC => "CUDA C",
            Self::Host => "Rust",
        }
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
