//! A self-test of a driver's cooperative matrices: `a * b + c` for small matrices, loaded and
//! stored in row-major and in column-major order.
//!
//! How the registers of a subgroup hold a matrix is the driver's choice. A driver that confuses
//! rows and columns of an operand, or two operands, computes other numbers here.

use std::time::Duration;

use scry_ir::{GridSource, MatrixProducts, Program};

use crate::api::error::Result;
use crate::cache::KernelKey;
use crate::core::command::{
    Barrier, BoundBuffer, BufferRange, Command, Dispatch, Groups, Role, Stages, Step,
};
use crate::core::driver::{CompileJob, Driver, KernelId, MemoryId, MemoryKind, Work};

/// Timeout of the wait for the kernel of one product.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One subgroup computes `a * b + c` twice: all matrices in row-major order (`coopLoadT`), then all
/// in column-major order. `OPERAND`, `ACC` and `N` are replaced by the element types and the number
/// of rows.
const SOURCE: &str = "
    enable f16; enable wgpu_cooperative_matrix;
    @group(0) @binding(0) var<storage, read> a: array<OPERAND>;
    @group(0) @binding(1) var<storage, read> b: array<OPERAND>;
    @group(0) @binding(2) var<storage, read> c: array<ACC>;
    @group(0) @binding(3) var<storage, read_write> out: array<ACC>;
    @compute @workgroup_size(32) fn self_test() {
        let rows_a = coopLoadT<coop_matNxN<OPERAND, A>>(&a[0], Nu);
        let rows_b = coopLoadT<coop_matNxN<OPERAND, B>>(&b[0], Nu);
        let rows_c = coopLoadT<coop_matNxN<ACC, C>>(&c[0], Nu);
        coopStoreT(coopMultiplyAdd(rows_a, rows_b, rows_c), &out[0], Nu);
        let columns_a = coopLoad<coop_matNxN<OPERAND, A>>(&a[0], Nu);
        let columns_b = coopLoad<coop_matNxN<OPERAND, B>>(&b[0], Nu);
        let columns_c = coopLoad<coop_matNxN<ACC, C>>(&c[0], Nu);
        coopStore(coopMultiplyAdd(columns_a, columns_b, columns_c), &out[Nu * Nu], Nu);
    }";

/// The element type of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    F16,
    F32,
}

/// A kind of product to be tested.
struct Product {
    name: &'static str,
    /// Number of rows, and of columns, of each matrix.
    rows: usize,
    /// The element type of `a` and `b`.
    operand: Element,
    /// The element type of `c` and of the result.
    accumulator: Element,
}

/// The elements of a square matrix, small integers, row by row; or of two, one after the other.
type Matrix = Vec<i32>;

impl Element {
    fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }

    fn size(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }

    fn to_bytes(self, numbers: &[i32]) -> Vec<u8> {
        match self {
            Self::F16 => {
                let f16s = numbers.iter().map(|n| half::f16::from_f32(*n as f32));
                f16s.flat_map(half::f16::to_le_bytes).collect()
            }
            Self::F32 => numbers.iter().flat_map(|n| (*n as f32).to_le_bytes()).collect(),
        }
    }

    fn decode(self, bytes: &[u8]) -> f32 {
        match self {
            Self::F16 => half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
            Self::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        }
    }
}

impl Product {
    /// Lists the products of a set.
    fn list(products: MatrixProducts) -> Vec<Self> {
        use Element::{F16, F32};
        let all = [
            (MatrixProducts::F16_8X8, 8, F16, F16),
            (MatrixProducts::F16_F32_8X8, 8, F16, F32),
            (MatrixProducts::F32_8X8, 8, F32, F32),
            (MatrixProducts::F16_16X16, 16, F16, F16),
            (MatrixProducts::F16_F32_16X16, 16, F16, F32),
            (MatrixProducts::F32_16X16, 16, F32, F32),
        ];
        let selected = all.into_iter().filter(|(product, ..)| products.contains(*product));
        let describe = |(product, rows, operand, accumulator): (MatrixProducts, _, _, _)| {
            let name = product.names().next().unwrap_or_default();
            Self { name, rows, operand, accumulator }
        };
        selected.map(describe).collect()
    }

    fn source(&self) -> String {
        let (operand, accumulator) = (self.operand.name(), self.accumulator.name());
        let source = SOURCE.replace("OPERAND", operand).replace("ACC", accumulator);
        let n = self.rows;
        source.replace("coop_matNxN", &format!("coop_mat{n}x{n}")).replace("Nu", &format!("{n}u"))
    }

    /// Returns `a`, `b` and `c`, with elements from -5 to 5. All three matrices and their
    /// transposes differ from each other.
    fn operands(&self) -> [Matrix; 3] {
        let n = self.rows;
        [[3, 5, 1], [7, 2, 4], [5, 9, 2]].map(|[row_step, column_step, start]| {
            let residue = |i: usize| (i / n * row_step + i % n * column_step + start) % 11;
            (0..n * n).map(|i| residue(i) as i32 - 5).collect()
        })
    }

    /// Returns the two matrices that the kernel writes. Column-major order transposes all matrices,
    /// and the transpose of `transpose(a) * transpose(b)` is `b * a`.
    fn expected(&self) -> Matrix {
        let [a, b, c] = self.operands();
        let row_major = multiply_add(self.rows, &a, &b, &c);
        [row_major, multiply_add(self.rows, &b, &a, &c)].concat()
    }
}

/// Returns `a * b + c`.
fn multiply_add(n: usize, a: &[i32], b: &[i32], c: &[i32]) -> Matrix {
    let product = |row: usize, column: usize| -> i32 {
        (0..n).map(|k| a[row * n + k] * b[k * n + column]).sum()
    };
    (0..n * n).map(|i| product(i / n, i % n) + c[i]).collect()
}

/// A function that compiles a kernel, without running this self-test first.
type Compile<'a> = &'a dyn Fn(&CompileJob<'_>) -> Result<KernelId>;

/// Tests the products of a set. Returns a description of the first one that the driver computes
/// wrongly; `None` if there is none.
///
/// # Errors
/// Those of the driver.
pub(crate) fn run(
    driver: &dyn Driver,
    compile: Compile<'_>,
    products: MatrixProducts,
) -> Result<Option<String>> {
    for product in Product::list(products) {
        let Some(results) = compute(driver, compile, &product)? else {
            let name = product.name;
            return Ok(Some(format!("{name} products: no result after 10 s")));
        };
        if let Some(difference) = difference(&product, &results) {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

/// Describes the first wrong element; `None` if all are right.
fn difference(product: &Product, results: &[f32]) -> Option<String> {
    let expected = product.expected();
    let is_wrong = |(_, (result, expected)): &(usize, (&f32, &i32))| **result != **expected as f32;
    let (i, (result, expected)) = results.iter().zip(&expected).enumerate().find(is_wrong)?;
    let (name, n) = (product.name, product.rows);
    let (first, second) = (i / n % n, i % n);
    let (row, column, order) = match i < n * n {
        true => (first, second, "row-major"),
        false => (second, first, "column-major"),
    };
    Some(format!(
        "{name} products: {result} instead of {expected} at row {row}, column {column} in {order} \
         order"
    ))
}

/// The objects of a run, freed by the drop unless the device may still use them.
struct Objects<'a> {
    driver: &'a dyn Driver,
    kernel: KernelId,
    memories: Vec<MemoryId>,
    /// Whether a submission that uses the objects may be unfinished.
    is_busy: bool,
}

impl Objects<'_> {
    /// Allocates memory of which the whole is used.
    fn allocate(&mut self, kind: MemoryKind, size: u64) -> Result<BufferRange> {
        let memory = self.driver.allocate(kind, size, "self-test")?;
        self.memories.push(memory);
        Ok(BufferRange { memory, offset: 0, size })
    }
}

impl Drop for Objects<'_> {
    fn drop(&mut self) {
        if !self.is_busy {
            self.memories.iter().for_each(|memory| self.driver.free(*memory));
            self.driver.free_kernel(self.kernel);
        }
    }
}

/// Runs the kernel of a product; `None` if it does not end in time.
fn compute(
    driver: &dyn Driver,
    compile: Compile<'_>,
    product: &Product,
) -> Result<Option<Vec<f32>>> {
    let kernel = compile_product(compile, product)?;
    let mut objects = Objects { driver, kernel, memories: Vec::new(), is_busy: false };
    let [a, b, c] = product.operands();
    let inputs = [(product.operand, a), (product.operand, b), (product.accumulator, c)];
    let mut bindings = Vec::new();
    for (element, numbers) in inputs {
        let bytes = element.to_bytes(&numbers);
        let range = objects.allocate(MemoryKind::Upload, bytes.len() as u64)?;
        driver.write(range.memory, 0, &bytes)?;
        bindings.push(BoundBuffer { range, writes: false });
    }
    let size = (2 * product.rows * product.rows * product.accumulator.size()) as u64;
    let out = objects.allocate(MemoryKind::Device, size)?;
    let readback = objects.allocate(MemoryKind::Readback, size)?;
    bindings.push(BoundBuffer { range: out, writes: true });
    let launch = Command::Dispatch(Dispatch {
        kernel,
        bindings,
        groups: Groups::Direct([1; 3]),
        immediates: Vec::new(),
        role: Role::Preparation,
    });
    let steps = [
        Step::Run(launch),
        Step::Barrier(Barrier { before: Stages::COMPUTE, after: Stages::TRANSFER }),
        Step::Run(Command::Copy { src: out, dst: readback }),
        Step::Barrier(Barrier { before: Stages::TRANSFER, after: Stages::HOST }),
    ];
    let submission = driver.submit(Work::Once(&steps), false)?;
    objects.is_busy = true;
    if !driver.wait(submission, TIMEOUT)? {
        return Ok(None);
    }
    objects.is_busy = false;
    let mut bytes = vec![0; size as usize];
    driver.read(readback.memory, 0, &mut bytes)?;
    let elements = bytes.chunks_exact(product.accumulator.size());
    Ok(Some(elements.map(|bytes| product.accumulator.decode(bytes)).collect()))
}

fn compile_product(compile: Compile<'_>, product: &Product) -> Result<KernelId> {
    let source = product.source();
    let program = Program::parse(&source)?;
    let key = KernelKey { source, entry: None, overrides: Vec::new(), checked: true, native: None };
    compile(&CompileJob {
        program: &program,
        grid: GridSource::Native,
        checked: true,
        key: &key,
        cache: None,
        dump: None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::info::DeviceInfo;
    use crate::backend::fault::{Fault, FaultDriver, FaultPlan};
    use crate::backend::null::{NullDriver, null_info};

    /// Lists every product.
    fn products() -> Vec<Product> {
        Product::list(MatrixProducts::all())
    }

    fn transpose(n: usize, matrix: &[i32]) -> Matrix {
        (0..n * n).map(|i| matrix[i % n * n + i / n]).collect()
    }

    /// Returns the results of a driver that wrongly transposes matrices. Bits 0 to 3 of `mistakes`
    /// select `a`, `b`, `c` and the result of the row-major product, bits 4 to 7 those of the
    /// column-major one.
    fn wrong_results(product: &Product, mistakes: u32) -> Vec<f32> {
        let n = product.rows;
        let mut out = Vec::new();
        for (is_column_major, mistakes) in [(false, mistakes & 15), (true, mistakes >> 4)] {
            let access = |bit: u32, matrix: &[i32]| {
                let transposes = is_column_major != (mistakes >> bit & 1 != 0);
                if transposes { transpose(n, matrix) } else { matrix.to_vec() }
            };
            let [a, b, c] = product.operands();
            let [a, b, c] = [access(0, &a), access(1, &b), access(2, &c)];
            out.extend(access(3, &multiply_add(n, &a, &b, &c)));
        }
        out.into_iter().map(|number| number as f32).collect()
    }

    #[test]
    fn every_wrong_transposition_is_detected() {
        assert_eq!(products().len(), 6);
        for product in products() {
            assert_eq!(difference(&product, &wrong_results(&product, 0)), None);
            for mistakes in 1..256 {
                let results = wrong_results(&product, mistakes);
                assert!(difference(&product, &results).is_some(), "{} {mistakes}", product.name);
            }
        }
    }

    #[test]
    fn results_are_exact_in_f16() {
        // f16 represents all integers up to 2048.
        for product in products() {
            assert!(product.expected().iter().all(|number| number.abs() <= 2048));
        }
    }

    #[test]
    fn error_names_wrong_element() {
        let product = &products()[3];
        let mut results = wrong_results(product, 0);
        let right = results[16 * 16 + 35];
        results[16 * 16 + 35] = 1000.0;
        let text = format!(
            "f16-16x16 products: 1000 instead of {right} at row 3, column 2 in column-major order"
        );
        assert_eq!(difference(product, &results), Some(text));
        results[35] = 1000.0;
        let text = difference(product, &results).unwrap();
        assert!(text.ends_with("at row 2, column 3 in row-major order"), "{text}");
    }

    #[test]
    fn failed_runs_leak_nothing() {
        /// The index of the wait among the driver calls.
        const WAIT: u64 = 10;
        let product = &products()[0];
        let info = DeviceInfo { memory: 1 << 20, ..null_info() };
        let mut failures = 0;
        for n in 0.. {
            let plan = FaultPlan::new(Fault::DriverError, n);
            let inner = Box::new(NullDriver::new(info.clone(), Arc::default()));
            let driver = FaultDriver::new(inner, &plan);
            let result = compute(&driver, &|job| driver.compile(job), product);
            if !plan.has_failed() {
                break;
            }
            assert!(result.is_err());
            failures += 1;
            // After a failed wait, the device may still use the memory.
            let all = driver.allocate(MemoryKind::Device, 1 << 20, "");
            assert_eq!(all.is_ok(), n != WAIT, "call {n}");
        }
        assert_eq!(failures, WAIT + 2, "the last call reads the results");
    }

    #[cfg(feature = "cpu")]
    #[test]
    fn cpu_backend_passes() {
        let Ok(adapters) = crate::backend::cpu::find() else { panic!("the CPU is always present") };
        let driver = adapters[0].open().unwrap();
        let fault = run(&*driver, &|job| driver.compile(job), MatrixProducts::all());
        assert_eq!(fault.unwrap(), None);
    }
}
