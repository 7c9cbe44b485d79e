//! A self-test of cooperative matrices: a product and a sum of small matrices, loaded and stored in
//! row-major and in column-major order.
//!
//! The layout of a matrix in the registers of a subgroup is the driver's own. One that confuses
//! rows and columns of an operand, or two operands, computes other numbers here.

use std::time::Duration;

use scry_ir::{GridSource, MatrixProducts, Program};

use crate::api::error::Result;
use crate::cache::KernelKey;
use crate::core::command::{
    Barrier, BoundBuffer, BufferRange, Command, Dispatch, Groups, Role, Stages, Step,
};
use crate::core::driver::{CompileJob, Driver, KernelId, MemoryKind, Work};

/// The longest time that the test may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One subgroup computes `left * right + sums` twice: all matrices in row-major order, then all in
/// column-major order.
const SOURCE: &str = "
    enable f16; enable wgpu_cooperative_matrix;
    @group(0) @binding(0) var<storage, read> left: array<FACTOR>;
    @group(0) @binding(1) var<storage, read> right: array<FACTOR>;
    @group(0) @binding(2) var<storage, read> sums: array<SUM>;
    @group(0) @binding(3) var<storage, read_write> out: array<SUM>;
    @compute @workgroup_size(32) fn self_test() {
        let a = coopLoadT<coop_matNxN<FACTOR, A>>(&left[0], Nu);
        let b = coopLoadT<coop_matNxN<FACTOR, B>>(&right[0], Nu);
        let c = coopLoadT<coop_matNxN<SUM, C>>(&sums[0], Nu);
        coopStoreT(coopMultiplyAdd(a, b, c), &out[0], Nu);
        let d = coopLoad<coop_matNxN<FACTOR, A>>(&left[0], Nu);
        let e = coopLoad<coop_matNxN<FACTOR, B>>(&right[0], Nu);
        let f = coopLoad<coop_matNxN<SUM, C>>(&sums[0], Nu);
        coopStore(coopMultiplyAdd(d, e, f), &out[Nu * Nu], Nu);
    }";

/// The element type of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    F16,
    F32,
}

/// A product to be tested.
struct Product {
    name: &'static str,
    rows: usize,
    factor: Element,
    sum: Element,
}

/// A square matrix of small integers.
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
                let halves = numbers.iter().map(|n| half::f16::from_f32(*n as f32));
                halves.flat_map(half::f16::to_le_bytes).collect()
            }
            Self::F32 => numbers.iter().flat_map(|n| (*n as f32).to_le_bytes()).collect(),
        }
    }

    fn number(self, bytes: &[u8]) -> f32 {
        match self {
            Self::F16 => half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
            Self::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        }
    }
}

impl Product {
    /// Returns the products of a set.
    fn of(products: MatrixProducts) -> Vec<Self> {
        use Element::{F16, F32};
        let all = [
            (MatrixProducts::F16_8X8, 8, F16, F16),
            (MatrixProducts::F16_F32_8X8, 8, F16, F32),
            (MatrixProducts::F32_8X8, 8, F32, F32),
            (MatrixProducts::F16_16X16, 16, F16, F16),
            (MatrixProducts::F16_F32_16X16, 16, F16, F32),
            (MatrixProducts::F32_16X16, 16, F32, F32),
        ];
        let offered = all.into_iter().filter(|(product, ..)| products.contains(*product));
        let named = |(product, rows, factor, sum): (MatrixProducts, _, _, _)| {
            let name = product.names().next().unwrap_or_default();
            Self { name, rows, factor, sum }
        };
        offered.map(named).collect()
    }

    fn source(&self) -> String {
        let source = SOURCE.replace("FACTOR", self.factor.name()).replace("SUM", self.sum.name());
        let n = self.rows;
        source.replace("coop_matNxN", &format!("coop_mat{n}x{n}")).replace("Nu", &format!("{n}u"))
    }

    /// Returns the left factor, the right factor and the sums: no two of them, and none of their
    /// transposes, are alike.
    fn operands(&self) -> [Matrix; 3] {
        let n = self.rows;
        [[3, 5, 1], [7, 2, 4], [5, 9, 2]].map(|[row, column, start]| {
            let at = |at: usize| (at / n * row + at % n * column + start) % 11;
            (0..n * n).map(|nth| at(nth) as i32 - 5).collect()
        })
    }

    /// Returns what the kernel writes: in column-major order the factors change places.
    fn expected(&self) -> Matrix {
        let [left, right, sums] = self.operands();
        let by_rows = multiply_add(self.rows, &left, &right, &sums);
        [by_rows, multiply_add(self.rows, &right, &left, &sums)].concat()
    }
}

/// Returns `left * right + sums`.
fn multiply_add(n: usize, left: &[i32], right: &[i32], sums: &[i32]) -> Matrix {
    let product = |row: usize, column: usize| -> i32 {
        (0..n).map(|k| left[row * n + k] * right[k * n + column]).sum()
    };
    (0..n * n).map(|at| product(at / n, at % n) + sums[at]).collect()
}

/// Compiles a kernel without a self-test.
type Compile<'a> = &'a dyn Fn(&CompileJob<'_>) -> Result<KernelId>;

/// Tests products of matrices; returns what is wrong with the first one that fails.
///
/// # Errors
/// Those of the driver.
pub(crate) fn run(
    driver: &dyn Driver,
    compile: Compile<'_>,
    products: MatrixProducts,
) -> Result<Option<String>> {
    for product in Product::of(products) {
        let Some(found) = compute(driver, compile, &product)? else {
            let name = product.name;
            return Ok(Some(format!("a self-test of {name} products took over 10 s")));
        };
        if let Some(difference) = difference(&product, &found) {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

/// Describes the first wrong element.
fn difference(product: &Product, found: &[f32]) -> Option<String> {
    let expected = product.expected();
    let is_wrong = |(_, (found, expected)): &(usize, (&f32, &i32))| **found != **expected as f32;
    let (at, (found, expected)) = found.iter().zip(&expected).enumerate().find(is_wrong)?;
    let (name, n) = (product.name, product.rows);
    let (row, column) = (at / n % n, at % n);
    Some(format!(
        "a self-test of {name} products computed {found} instead of {expected} at row {row}, \
         column {column}"
    ))
}

/// Runs the kernel of a product; `None` if it does not end in time.
fn compute(
    driver: &dyn Driver,
    compile: Compile<'_>,
    product: &Product,
) -> Result<Option<Vec<f32>>> {
    let kernel = compile_product(compile, product)?;
    let [left, right, sums] = product.operands();
    let inputs = [(product.factor, left), (product.factor, right), (product.sum, sums)];
    let mut spans = Vec::new();
    for (element, numbers) in inputs {
        let bytes = element.to_bytes(&numbers);
        let memory = driver.allocate(MemoryKind::Upload, bytes.len() as u64, "self-test")?;
        driver.write(memory, 0, &bytes)?;
        spans.push(BufferRange { memory, offset: 0, size: bytes.len() as u64 });
    }
    let size = (2 * product.rows * product.rows * product.sum.size()) as u64;
    let memory = driver.allocate(MemoryKind::Device, size, "self-test")?;
    let out = BufferRange { memory, offset: 0, size };
    let memory = driver.allocate(MemoryKind::Readback, size, "self-test")?;
    let back = BufferRange { memory, offset: 0, size };
    let bindings = spans.iter().map(|span| BoundBuffer { span: *span, writes: false });
    let result = BoundBuffer { span: out, writes: true };
    let launch = Command::Dispatch(Dispatch {
        kernel,
        bindings: bindings.chain([result]).collect(),
        groups: Groups::Direct([1; 3]),
        immediates: Vec::new(),
        role: Role::Preparation,
    });
    let steps = [
        Step::Run(launch),
        Step::Barrier(Barrier { before: Stages::COMPUTE, after: Stages::TRANSFER }),
        Step::Run(Command::Copy { src: out, dst: back }),
        Step::Barrier(Barrier { before: Stages::TRANSFER, after: Stages::HOST }),
    ];
    let submission = driver.submit(Work::Once(&steps), false)?;
    if !driver.wait(submission, TIMEOUT)? {
        // The device may still use the memory, which is leaked.
        return Ok(None);
    }
    let mut bytes = vec![0; size as usize];
    driver.read(back.memory, 0, &mut bytes)?;
    for span in spans.into_iter().chain([out, back]) {
        driver.free(span.memory);
    }
    driver.free_kernel(kernel);
    let numbers = bytes.chunks_exact(product.sum.size());
    Ok(Some(numbers.map(|number| product.sum.number(number)).collect()))
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
    use super::*;

    /// The element type of the operands and of the sums is of no importance here.
    fn products() -> Vec<Product> {
        Product::of(MatrixProducts::all())
    }

    fn transposed(n: usize, matrix: &[i32]) -> Matrix {
        (0..n * n).map(|at| matrix[at % n * n + at / n]).collect()
    }

    /// What a driver computes that transposes some of the operands and the result (bits 0 to 3) of
    /// the first product, and others (bits 4 to 7) of the second one.
    fn confused(product: &Product, mistakes: u32) -> Vec<f32> {
        let n = product.rows;
        let mut out = Vec::new();
        for (by_columns, mistakes) in [(false, mistakes & 15), (true, mistakes >> 4)] {
            let turned = |bit: u32, matrix: &[i32]| {
                let turns = by_columns != (mistakes >> bit & 1 != 0);
                if turns { transposed(n, matrix) } else { matrix.to_vec() }
            };
            let [left, right, sums] = product.operands();
            let [left, right, sums] = [turned(0, &left), turned(1, &right), turned(2, &sums)];
            out.extend(turned(3, &multiply_add(n, &left, &right, &sums)));
        }
        out.into_iter().map(|number| number as f32).collect()
    }

    #[test]
    fn every_transposition_is_noticed() {
        assert_eq!(products().len(), 6);
        for product in products() {
            assert_eq!(difference(&product, &confused(&product, 0)), None);
            for mistakes in 1..256 {
                let found = confused(&product, mistakes);
                assert!(difference(&product, &found).is_some(), "{} {mistakes}", product.name);
            }
        }
    }

    #[test]
    fn numbers_are_exact_in_half_precision() {
        for product in products() {
            assert!(product.expected().iter().all(|number| number.abs() <= 2048));
        }
    }

    #[test]
    fn wrong_elements_are_named() {
        let product = &products()[3];
        let mut found = confused(product, 0);
        let right = found[16 * 16 + 35];
        found[16 * 16 + 35] = 1000.0;
        let expected = format!(
            "a self-test of f16-16x16 products computed 1000 instead of {right} at row 2, column 3"
        );
        assert_eq!(difference(product, &found), Some(expected));
    }

    #[cfg(feature = "cpu")]
    #[test]
    fn cpus_pass() {
        let Ok(adapters) = crate::backend::cpu::find() else { panic!("the CPU is always present") };
        let driver = adapters[0].open().unwrap();
        let found = run(&*driver, &|job| driver.compile(job), MatrixProducts::all());
        assert_eq!(found.unwrap(), None);
    }
}
