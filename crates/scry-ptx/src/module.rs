//! PTX kernels and modules, and their formatting as text.

use std::fmt::{self, Write};

use crate::body::Body;
use crate::target::{Target, Version};
use crate::types::{PtxType, RegisterClass};

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelParam {
    /// The address of global memory, aligned to 16 bytes.
    Pointer {
        /// Its name.
        name: String,
    },
    /// A scalar.
    Scalar {
        /// Its name.
        name: String,
        /// Its type.
        ty: PtxType,
    },
    /// A byte array that is passed by value, aligned to 16.
    Bytes {
        /// Its name.
        name: String,
        /// Number of bytes.
        bytes: u32,
    },
    /// A tensor map, encoded by the driver.
    TensorMap {
        /// Its name.
        name: String,
    },
}

/// A variable in shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedArray {
    /// Its name.
    pub name: String,
    /// Size in bytes; 0 for dynamic shared memory, whose size the launch sets.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A kernel (`.entry`).
#[derive(Debug, Clone)]
pub struct PtxEntry {
    /// Its name.
    pub name: String,
    /// The parameters, in order.
    pub params: Vec<KernelParam>,
    /// Threads of a block along x, y and z (`.reqntid`).
    pub block: [u32; 3],
    /// Minimum resident blocks per multiprocessor (`.minnctapersm`), which limits registers.
    pub min_blocks: Option<u32>,
    /// Blocks of a cluster along x, y and z (`.reqnctapercluster`, `sm_90`).
    pub cluster: Option<[u32; 3]>,
    /// The code.
    pub body: Body,
}

impl PtxEntry {
    /// Creates an empty kernel.
    #[must_use]
    pub fn new(name: &str, target: Target, block: [u32; 3]) -> Self {
        let body = Body::new(target);
        Self {
            name: name.to_owned(),
            params: Vec::new(),
            block,
            min_blocks: None,
            cluster: None,
            body,
        }
    }
}

/// A PTX module: kernels of one target.
#[derive(Debug, Clone)]
pub struct PtxModule {
    target: Target,
    kernels: Vec<PtxEntry>,
}

impl PtxModule {
    /// Creates a module without kernels.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self { target, kernels: Vec::new() }
    }

    /// Adds a kernel.
    #[must_use]
    pub fn with(mut self, kernel: PtxEntry) -> Self {
        self.kernels.push(kernel);
        self
    }

    /// Returns the PTX version that all kernels together require.
    #[must_use]
    pub fn version(&self) -> Version {
        let versions = self.kernels.iter().map(|kernel| kernel.body.version());
        versions.fold(self.target.version(), Version::max)
    }
}

impl fmt::Display for PtxModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {}\n.target {}\n.address_size 64", self.version(), self.target)?;
        if let Some(source) = self.kernels.iter().find_map(|kernel| kernel.body.source.as_ref()) {
            // A string of PTX has no escapes.
            let is_plain = |c: &char| !c.is_control() && !matches!(c, '"' | '\\');
            let source: String = source.chars().filter(is_plain).collect();
            writeln!(f, ".file 1 \"{source}\"")?;
        }
        self.kernels.iter().try_for_each(|kernel| write!(f, "\n{kernel}"))
    }
}

impl fmt::Display for KernelParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer { name } => write!(f, ".param .u64 .ptr .global .align 16 {name}"),
            Self::Scalar { name, ty } => write!(f, ".param .{} {name}", ty.name()),
            Self::Bytes { name, bytes } => write!(f, ".param .align 16 .b8 {name}[{bytes}]"),
            Self::TensorMap { name } => write!(f, ".param .align 64 .b8 {name}[128]"),
        }
    }
}

impl fmt::Display for SharedArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes, align } = self;
        match bytes {
            0 => write!(f, ".extern .shared .align {align} .b8 {name}[];"),
            _ => write!(f, ".shared .align {align} .b8 {name}[{bytes}];"),
        }
    }
}

impl fmt::Display for PtxEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // PTX requires `.extern` variables to be declared outside of the kernel.
        let dynamic = self.body.shared.iter().filter(|array| array.bytes == 0);
        dynamic.into_iter().try_for_each(|array| writeln!(f, "{array}"))?;
        writeln!(f, ".visible .entry {}(", self.name)?;
        for (index, param) in self.params.iter().enumerate() {
            let end = if index + 1 < self.params.len() { "," } else { "" };
            writeln!(f, "\t{param}{end}")?;
        }
        let [x, y, z] = self.block;
        writeln!(f, ")\n.reqntid {x}, {y}, {z}")?;
        if let Some(blocks) = self.min_blocks {
            writeln!(f, ".minnctapersm {blocks}")?;
        }
        if let Some([x, y, z]) = self.cluster {
            writeln!(f, ".reqnctapercluster {x}, {y}, {z}")?;
        }
        f.write_str("{\n")?;
        self.write_declarations(f)?;
        self.body.lines().iter().try_for_each(|line| writeln!(f, "{line}"))?;
        f.write_char('}')?;
        f.write_char('\n')
    }
}

impl PtxEntry {
    /// Declares registers, local arrays and static shared arrays.
    fn write_declarations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (class, count) in RegisterClass::ALL.into_iter().zip(self.body.registers()) {
            if count > 0 {
                writeln!(f, "\t.reg .{} {}<{count}>;", class.ty().name(), class.prefix())?;
            }
        }
        for (name, bytes) in &self.body.locals {
            writeln!(f, "\t.local .align 16 .b8 {name}[{bytes}];")?;
        }
        let static_arrays = self.body.shared.iter().filter(|array| array.bytes > 0);
        static_arrays.into_iter().try_for_each(|array| writeln!(f, "\t{array}"))
    }
}
