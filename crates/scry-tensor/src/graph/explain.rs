//! What plans report: inputs, device, kernels, memory, and what was not fused.

use std::fmt;
use std::fmt::Write as _;

use scry_gpu::Device;

use super::compiled::Plan;
use super::debug;
use super::grouped::{Kernel, Origin, Part, Work};
use super::specialised::Specialised;
use crate::error::Result;

/// What a plan does: its kernels in order, and its memory. `Display` prints it as a table.
///
/// ```
/// use scry_tensor::{Device, Graph};
///
/// let g = Graph::new(&Device::open("cpu")?)?;
/// let x = g.input("x", [64, 64])?;
/// let report = g.compile(&[x.matmul(&x)?.matmul(&x)?])?.explain()?;
/// // The first product is in an arena, and the second one is an output.
/// assert_eq!((report.kernels.len(), report.arenas.as_slice()), (2, &[64 * 64 * 4][..]));
/// assert_eq!(report.peak, 64 * 64 * 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanReport {
    /// The kernels, in the order in which they run.
    pub kernels: Vec<KernelReport>,
    /// The bytes of each arena.
    pub arenas: Vec<u64>,
    /// The largest sum of results in arenas that are needed at one time, in bytes.
    pub peak: u64,
}

/// What one kernel of a plan computes.
///
/// ```
/// use scry_tensor::{Device, Graph};
///
/// let g = Graph::new(&Device::open("cpu")?)?;
/// let x = g.input("x", [100])?;
/// let report = g.compile(&[(x.exp()? + 1.0)?])?.explain()?;
/// let kernel = &report.kernels[0];
/// assert_eq!((kernel.inputs, kernel.bytes, kernel.flops), (1, 2 * 400, 2 * 100));
/// assert_eq!((kernel.variant.as_str(), kernel.stored.as_str()), ("map", "an output"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelReport {
    /// The functions that recorded its operations, such as `Tensor::add`.
    pub ops: Vec<&'static str>,
    /// The line that recorded the last of them.
    pub line: String,
    /// The scope of the last of them.
    pub scope: String,
    /// The buffers that it reads.
    pub inputs: usize,
    /// The bytes of the buffers that it reads, and of its results.
    pub bytes: u64,
    /// Floating-point operations, where a function such as `exp` is one.
    pub flops: u64,
    /// How it computes: `map`, `maps` (several, or one that writes to a state), `rows` (maps and
    /// reductions of rows), or the variant of the kernel library.
    pub variant: String,
    /// The number of launches: several if a buffer is above the device's limit of a binding, and
    /// each computes a part of the result.
    pub launches: usize,
    /// Why its result is stored instead of fused with its users.
    pub stored: String,
    /// Whether the result replaces an operand in memory.
    pub is_in_place: bool,
    /// Whether it depends on no input, and ran when the plan was compiled.
    pub is_constant: bool,
}

impl Plan {
    /// Returns the names of the inputs that a run needs.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let (x, _unused) = (g.input("x", [2])?, g.input("y", [2])?);
    /// let plan = g.compile(&[x.exp()?])?;
    /// assert_eq!(plan.input_names().collect::<Vec<_>>(), ["x"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        self.shared().graph.inputs.iter().map(|input| input.name.as_str())
    }

    /// Returns the device.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let plan = g.compile(&[g.input("x", [2])?.exp()?])?;
    /// assert_eq!(plan.device().name(), gpu.name());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> &Device {
        self.shared().runtime.device()
    }

    /// Reports the kernels and the memory of the plan for the largest sizes.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let x = g.input("x", [4, 8])?;
    /// let y = (x.t()?.matmul(&x)? + 1.0)?.log()?;
    /// let report = g.compile(&[y])?.explain()?;
    /// let ops: Vec<_> = report.kernels.iter().map(|it| it.ops.clone()).collect();
    /// assert_eq!(ops, [vec!["Tensor::matmul"], vec!["Tensor + Tensor", "Tensor::log"]]);
    /// println!("{report}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) if the memory for the largest sizes, which runs
    /// with other sizes may have replaced, cannot be allocated again.
    #[track_caller]
    pub fn explain(&self) -> Result<PlanReport> {
        let specialised = self.specialised(&self.shared().graph.largest_sizes())?;
        let kernels = (0..specialised.grouped.kernels.len()).map(|n| kernel(&specialised, n));
        let (kernels, memory) = (kernels.collect(), &specialised.memory);
        Ok(PlanReport { kernels, arenas: memory.arenas.clone(), peak: memory.peak })
    }

    /// Returns the kernels and the buffers between them in the language of Graphviz.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let x = g.input("x", [4])?;
    /// let dot = g.compile(&[x.exp()?.sum(0)?])?.to_dot()?;
    /// assert!(dot.starts_with("digraph plan {") && dot.contains("Tensor::exp"), "{dot}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Plan::explain`].
    #[track_caller]
    pub fn to_dot(&self) -> Result<String> {
        let specialised = self.specialised(&self.shared().graph.largest_sizes())?;
        let mut dot = "digraph plan {\n  node [shape=box];\n".to_owned();
        for (n, info) in specialised.grouped.buffers.iter().enumerate() {
            let place = debug::place(info.origin, specialised.memory.slots[n]);
            let label = format!("{place}, {} bytes", info.bytes);
            let _ = writeln!(dot, "  b{n} [shape=ellipse, label=\"{label}\"];");
        }
        for (n, part) in specialised.grouped.kernels.iter().enumerate() {
            let report = kernel(&specialised, n);
            let lines = report.ops.iter().copied().chain([report.variant.as_str()]);
            let label = lines.map(escaped).collect::<Vec<_>>().join("\\n");
            let _ = writeln!(dot, "  k{n} [label=\"{label}\"];");
            for operand in part.operands() {
                let _ = writeln!(dot, "  b{} -> k{n};", operand.0);
            }
            for result in part.results() {
                let _ = writeln!(dot, "  k{n} -> b{};", result.0);
            }
        }
        dot.push_str("}\n");
        Ok(dot)
    }
}

/// Returns a line of a label as Graphviz reads it between double quotes.
fn escaped(line: &str) -> String {
    line.replace('\\', "\\\\").replace('"', "\\\"")
}

fn kernel(specialised: &Specialised, position: usize) -> KernelReport {
    let kernel: &Kernel = &specialised.grouped.kernels[position];
    let node = specialised.node_of(kernel);
    let ops = kernel.nodes.iter().map(|it| specialised.graph.nodes[it.index()].call.op).collect();
    let result = &specialised.grouped.buffers[kernel.result.index()];
    let operands = kernel.operands();
    let inputs = operands.len();
    let buffers = operands.into_iter().chain(kernel.results());
    let bytes = buffers.map(|it| specialised.grouped.buffers[it.index()].bytes as u64).sum();
    let flops = match &kernel.work {
        Work::Map { map, .. } => kernel.shape.count().unwrap_or(0) as u64 * map.flops() as u64,
        Work::Maps(parts) => {
            let of = |part: &Part| part.shape.count().unwrap_or(0) as u64 * part.map.flops() as u64;
            parts.iter().map(of).sum()
        }
        Work::Rows(work) => u64::from(work.rows) * work.program.flops(work.columns.into()),
        Work::Library { flops, .. } => *flops,
        // What a custom kernel computes is not known.
        Work::Custom { .. } | Work::Write { .. } | Work::WriteRows { .. } => 0,
    };
    let variant = specialised.variants[position].clone().unwrap_or_else(|| "map".to_owned());
    KernelReport {
        ops,
        line: format!("{}:{}", node.call.at.file(), node.call.at.line()),
        scope: node.scope.to_string(),
        inputs,
        bytes,
        flops,
        variant,
        launches: specialised.shards[position],
        stored: kernel.reason.to_string(),
        is_constant: result.origin == Origin::Constant,
        is_in_place: specialised.memory.in_place[position].is_some(),
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, kernel) in self.kernels.iter().enumerate() {
            let KernelReport { ops, line, scope, inputs, bytes, flops, .. } = kernel;
            let KernelReport { variant, stored, is_in_place, is_constant, .. } = kernel;
            let scope = if scope.is_empty() { String::new() } else { format!(", in {scope}") };
            let place = match (is_in_place, is_constant) {
                (true, _) => ", in place",
                (_, true) => ", once",
                _ => "",
            };
            let split = match kernel.launches {
                0 | 1 => String::new(),
                launches => format!(", in {launches} launches of parts"),
            };
            writeln!(f, "kernel {n} ({variant}{place}{split}): {}", ops.join(", "))?;
            writeln!(f, "    {line}{scope}: {inputs} inputs, {bytes} bytes, {flops} FLOPs")?;
            writeln!(f, "    stored: {stored}")?;
        }
        write!(f, "arenas {:?} bytes, {} in use at one time", self.arenas, self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped(r#"a "b" \n"#), r#"a \"b\" \\n"#);
        assert_eq!(escaped("Tensor + Tensor"), "Tensor + Tensor");
    }
}
