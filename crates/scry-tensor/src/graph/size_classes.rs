//! Compiles the kernels that a plan needs for other sizes of its named dimensions, together with
//! the plan, so that no run waits for a compiler.
//!
//! Sizes are arguments of kernels, but which kernels a plan has depends on classes of sizes: an
//! axis of one element has no stride, small maps share a kernel, and large ones compute several
//! words in an invocation. The classes are not listed anywhere. They are found: the passes run
//! for sizes on paths between the smallest and the largest ones, and a path is bisected where
//! its middle needs a kernel that no other size does, or other products than an end. Classes are
//! decided by limits of numbers of elements, which grow along a path, so that few sizes have to be
//! tried. Kernels of a product are compiled for the numbers of rows between which sizes need it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use scry_kernels::{Epilogue, Gemm};

use super::bound_graph::Sizes;
use super::compiled::{Plan, Shared};
use super::grouped::{BufferId, Grouped, Kernel, RowWork, Work};
use super::launches::part_launches;
use super::plan;
use crate::error::Result;
use crate::lower::{Iteration, KernelKey, MapsKey, RowIteration, RowKey};
use crate::shape::Layout;
use crate::waiting::Waiting;

/// How often a path is bisected at most: sizes beside each other then differ by little.
const MAX_DEPTH: u32 = 4;

/// What a kernel of a plan depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Map(KernelKey),
    Maps(MapsKey),
    Rows(RowKey),
}

/// A kernel with the number of its parameters.
type Needed = (Key, usize);

/// What is compiled at once.
enum Job {
    /// A kernel with the number of its parameters.
    Own(Key, usize),
    /// The kernels of the library for a product with numbers of rows, the least and the most.
    Product(Gemm, [u64; 2]),
}

impl Plan {
    /// Returns the plan once it is compiled for the largest sizes and, with sizes that vary, for
    /// all others.
    pub(crate) async fn ready(self, waiting: Waiting) -> Result<Self> {
        let Shared { graph, call, .. } = self.shared();
        let (sizes, call) = (graph.largest_sizes(), *call);
        if !graph.has_open_sizes() {
            self.specialised_by(call, sizes, waiting).await?;
            return Ok(self);
        }
        let smallest = graph.smallest_sizes();
        let (plan, largest) = (self.share(), sizes.clone());
        let compile = move || {
            // Several kernels at the same time. Without errors: those are of the launches below, in
            // the order of the graph.
            let mut search = Search::new(plan.shared());
            if let Ok(largest) = search.compile(largest.clone()) {
                search.products.extend(&largest, &largest);
                _ = search.compile_products();
            }
            Ok(())
        };
        waiting.compile(call, self.device(), compile).await?;
        self.specialised_by(call, sizes, waiting).await?;
        // The variants of the kernel library for the smallest sizes, such as attention of few
        // queries. Sizes for which the graph has no plan are left out, as below.
        _ = self.specialised_by(call, smallest, waiting).await;
        let plan = self.share();
        let compile =
            move || plan.shared().compile_for_all_sizes().map_err(|error| call.gpu(error));
        waiting.compile(call, self.device(), compile).await?;
        Ok(self)
    }
}

impl Shared {
    /// Compiles the kernels for all sizes. Sizes for which the graph has no plan are left out:
    /// runs with them return the error.
    pub(super) fn compile_for_all_sizes(&self) -> scry_gpu::Result<()> {
        let mut search = Search::new(self);
        for [smallest, largest] in paths(&self.graph.ranges()) {
            let (largest, smallest) = (search.compile(largest)?, search.compile(smallest)?);
            search.between(&smallest, &largest, MAX_DEPTH)?;
        }
        search.compile_products()
    }
}

/// Returns the ends of the paths: from the smallest to the largest sizes, where sizes of 1 are a
/// class of their own.
fn paths(ranges: &[(String, [usize; 2])]) -> Vec<[Sizes; 2]> {
    let sizes = |of: &dyn Fn(usize, [usize; 2]) -> usize| -> Sizes {
        let ranges = ranges.iter().enumerate();
        ranges.map(|(n, (name, range))| (name.clone(), of(n, *range))).collect()
    };
    let is_open = |[min, max]: [usize; 2]| min < max;
    if !ranges.iter().any(|(_, range)| is_open(*range)) {
        return Vec::new();
    }
    let smallest = |[min, max]: [usize; 2]| min.max(2).min(max);
    let mut paths = vec![[sizes(&|_, range| smallest(range)), sizes(&|_, [_, max]| max)]];
    for (single, (_, range)) in ranges.iter().enumerate() {
        if range[0] <= 1 && is_open(*range) {
            let of = |n: usize, size: usize| if n == single { 1 } else { size };
            let ends =
                [sizes(&|n, range| of(n, smallest(range))), sizes(&|n, [_, max]| of(n, max))];
            paths.push(ends);
        }
    }
    paths
}

/// Returns the sizes in the middle of others, by their ratio; `None` if there are none.
fn middle(a: &Sizes, b: &Sizes) -> Option<Sizes> {
    let of = |a: usize, b: usize| ((a as f64 * b as f64).sqrt() as usize).clamp(a, b);
    let pairs = a.iter().zip(b);
    let middle: Sizes = pairs.map(|((name, a), (_, b))| (name.clone(), of(*a, *b))).collect();
    (middle != *a && middle != *b).then_some(middle)
}

/// Sizes that were tried.
#[derive(Debug, Default)]
pub(super) struct Tried {
    sizes: Sizes,
    /// Whether a kernel is not that of sizes that were tried before.
    has_new: bool,
    /// Their products of the library, with two rows, and the numbers of rows.
    products: Vec<(Gemm, u64)>,
}

impl Tried {
    /// Returns the number of rows of a product, or of one with another epilogue.
    fn rows_of(&self, product: &Gemm) -> Option<u64> {
        let operands = |gemm: &Gemm| Gemm { epilogue: Epilogue::NONE, ..*gemm };
        let same = self.products.iter().find(|(gemm, _)| gemm == product);
        let similar = || self.products.iter().find(|(gemm, _)| operands(gemm) == operands(product));
        same.or_else(similar).map(|(_, rows)| *rows)
    }

    fn has_products_of(&self, other: &Self) -> bool {
        let has = |product: &Gemm| self.products.iter().any(|(own, _)| own == product);
        other.products.iter().all(|(product, _)| has(product))
    }
}

/// The least and the largest number of rows of products.
#[derive(Debug, Default)]
struct Products(Vec<(Gemm, [u64; 2])>);

impl Products {
    /// Adds the products of neighbours on a path, and of all sizes between them. One that only an
    /// end has may be needed up to the other end.
    fn extend(&mut self, a: &Tried, b: &Tried) {
        for (end, other) in [(a, b), (b, a)] {
            for (product, rows) in &end.products {
                let others = other.rows_of(product).unwrap_or(*rows);
                let [least, most] = [(*rows).min(others), (*rows).max(others)];
                match self.0.iter_mut().find(|(known, _)| known == product) {
                    Some((_, range)) => *range = [range[0].min(least), range[1].max(most)],
                    None => self.0.push((*product, [least, most])),
                }
            }
        }
    }
}

/// The kernels of sizes that were tried.
pub(super) struct Search<'s> {
    plan: &'s Shared,
    known: HashSet<Key>,
    products: Products,
}

impl<'s> Search<'s> {
    pub(super) fn new(plan: &'s Shared) -> Self {
        Self { plan, known: HashSet::new(), products: Products::default() }
    }

    /// Compiles the kernels of sizes between others, as long as there are new ones or the products
    /// differ.
    fn between(&mut self, a: &Tried, b: &Tried, depth: u32) -> scry_gpu::Result<()> {
        let middle = middle(&a.sizes, &b.sizes).filter(|_| depth > 0);
        let Some(middle) = middle.map(|it| self.compile(it)).transpose()? else {
            self.products.extend(a, b);
            return Ok(());
        };
        for (a, b) in [(a, &middle), (&middle, b)] {
            let is_one_class = a.has_products_of(b) && b.has_products_of(a);
            let depth = if middle.has_new || !is_one_class { depth - 1 } else { 0 };
            self.between(a, b, depth)?;
        }
        Ok(())
    }

    /// Compiles the kernels for sizes, other than those of products.
    pub(super) fn compile(&mut self, sizes: Sizes) -> scry_gpu::Result<Tried> {
        let Ok(grouped) = self.plan.kernels(&sizes) else {
            return Ok(Tried { sizes, ..Tried::default() });
        };
        let in_place = plan::in_place(&grouped);
        let (mut jobs, mut products) = (Vec::new(), Vec::new());
        for (kernel, in_place) in grouped.kernels.iter().zip(in_place) {
            for (key, parameters) in self.needed(&grouped, kernel, in_place) {
                if self.known.insert(key.clone()) {
                    jobs.push(Job::Own(key, parameters));
                }
            }
            products.extend(product_of_rows(kernel).filter(|it| !products.contains(it)));
        }
        run_concurrently(&jobs, |job| self.compile_job(job))?;
        Ok(Tried { sizes, has_new: !jobs.is_empty(), products })
    }

    /// Compiles the kernels of the products that were found.
    fn compile_products(&self) -> scry_gpu::Result<()> {
        let products = self.products.0.iter();
        let jobs: Vec<Job> = products.map(|(gemm, rows)| Job::Product(*gemm, *rows)).collect();
        run_concurrently(&jobs, |job| self.compile_job(job))
    }

    fn compile_job(&self, job: &Job) -> scry_gpu::Result<()> {
        let runtime = &self.plan.runtime;
        let (_, is_compiled) = match job {
            Job::Own(Key::Map(key), parameters) => runtime.map_kernel(key.clone(), *parameters)?,
            Job::Own(Key::Maps(key), parameters) => {
                runtime.maps_kernel(key.clone(), *parameters)?
            }
            Job::Own(Key::Rows(key), parameters) => runtime.row_kernel(key.clone(), *parameters)?,
            Job::Product(gemm, [least, most]) => {
                return self.plan.library.compile_gemm(gemm, *least..=*most);
            }
        };
        self.plan.compiles.fetch_add(is_compiled.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns what is compiled for a kernel: nothing if it is not made of maps, is empty, or is
    /// split into several launches.
    fn needed(&self, grouped: &Grouped, kernel: &Kernel, in_place: Option<u32>) -> Vec<Needed> {
        let runtime = &self.plan.runtime;
        let bytes = |id: &BufferId| grouped.buffers[id.index()].bytes as u64;
        let is_whole = |id: &BufferId| bytes(id) <= runtime.max_binding();
        let results = kernel.results();
        if results.iter().any(|id| bytes(id) == 0)
            || !kernel.operands().iter().chain(&results).all(is_whole)
        {
            return Vec::new();
        }
        match &kernel.work {
            Work::Map { map, operands, arguments, gathered } => {
                let layouts: Vec<Layout> = operands.iter().map(|(_, it)| it.clone()).collect();
                // Shapes of results were checked to have at most `u32::MAX` elements.
                let count = kernel.shape.count().unwrap_or(0) as u32;
                let iteration = runtime.iteration(map, (count, &kernel.shape), &layouts);
                // The kernel of large results, and that of smaller ones.
                let smaller = Iteration::new(map, count, &kernel.shape, &layouts);
                let key = |iteration: &Iteration| {
                    let parameters = iteration.parameters(*gathered, arguments).len();
                    let key = runtime.map_key(map, iteration, parameters, in_place);
                    (Key::Map(key), parameters)
                };
                [iteration, smaller].iter().map(key).collect()
            }
            Work::Maps(parts) => {
                let (launches, operands) = part_launches(parts);
                let dtypes = operands.into_iter().map(|(_, dtype)| dtype).collect();
                let (key, parameters, _) = runtime.maps_key(&launches, results.len(), dtypes);
                vec![(Key::Maps(key), parameters.len())]
            }
            Work::Rows(work) => {
                let RowWork { program, walks, arguments, rows, columns, .. } = &**work;
                let (rows, columns) = (*rows, *columns);
                let iteration = RowIteration { rows, columns, walks, arguments };
                let parameters = iteration.parameters(program.width).len();
                vec![(Key::Rows(runtime.row_key(program, parameters)), parameters)]
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the product that a kernel computes, with two rows, and its number of rows; `None` for
/// other work, and for a batch of products.
fn product_of_rows(kernel: &Kernel) -> Option<(Gemm, u64)> {
    let Work::Library { library, operands, .. } = &kernel.work else { return None };
    let [(_, a, dtype), (_, b, _), ..] = &operands[..] else { return None };
    let mut gemm = library.gemm([a, b], *dtype)?;
    let rows = gemm.m.saturating_mul(gemm.batch);
    if rows == 0 || (gemm.batch > 1 && gemm.b.stride != 0) {
        return None;
    }
    (gemm.m, gemm.batch) = (2, 1);
    (gemm.a.stride, gemm.b.stride, gemm.out.stride) = (0, 0, 0);
    Some((gemm, rows))
}

/// Runs jobs on as many threads as the host has processors. Returns the error of the first job that
/// has one.
fn run_concurrently<T: Sync>(
    jobs: &[T],
    run: impl Fn(&T) -> scry_gpu::Result<()> + Sync,
) -> scry_gpu::Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some((n, job)) = {
            let n = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(n).map(|job| (n, job))
        } {
            let Err(error) = run(job) else { continue };
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.as_ref().is_none_or(|(first, _)| n < *first) {
                *failed = Some((n, error));
            }
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..processors.min(jobs.len()) {
            let thread = thread::Builder::new().name("scry-compile".to_owned());
            // The other threads do the work of one that cannot be started.
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, min: usize, max: usize) -> (String, [usize; 2]) {
        (name.to_owned(), [min, max])
    }

    fn numbers(sizes: &Sizes) -> Vec<usize> {
        sizes.iter().map(|(_, size)| *size).collect()
    }

    #[test]
    fn paths_have_axes_of_one_element() {
        let paths = paths(&[range("a", 1, 64), range("b", 8, 256), range("c", 3, 3)]);
        let found = paths.iter().map(|ends| ends.each_ref().map(numbers)).collect::<Vec<_>>();
        assert_eq!(found, [[vec![2, 8, 3], vec![64, 256, 3]], [vec![1, 8, 3], vec![1, 256, 3]]]);
    }

    #[test]
    fn axes_that_may_be_empty_have_one_element_too() {
        let found = paths(&[range("a", 0, 64), range("b", 8, 256)]);
        let found = found.iter().map(|ends| ends.each_ref().map(numbers)).collect::<Vec<_>>();
        assert_eq!(found, [[vec![2, 8], vec![64, 256]], [vec![1, 8], vec![1, 256]]]);
        // Nothing between the ends.
        assert_eq!(paths(&[range("a", 0, 1)]).len(), 2);
    }

    #[test]
    fn fixed_sizes_need_no_search() {
        assert_eq!(paths(&[]), Vec::<[Sizes; 2]>::new());
        assert_eq!(paths(&[range("a", 7, 7)]), Vec::<[Sizes; 2]>::new());
    }

    #[test]
    fn first_error_is_returned() {
        let jobs: Vec<usize> = (0..50).collect();
        let run = |job: &usize| match job % 20 {
            7 => {
                let argument = format!("job {job}");
                let error = scry_gpu::ArgumentError::new("compile", argument, "fails", "retry");
                Err(scry_gpu::GpuError::Argument(error))
            }
            _ => Ok(()),
        };
        for _ in 0..20 {
            let error = run_concurrently(&jobs, run).unwrap_err().to_string();
            assert!(error.contains("job 7"), "{error}");
        }
        run_concurrently(&jobs[..7], run).unwrap();
        run_concurrently(&jobs[..0], run).unwrap();
    }

    #[test]
    fn middle_is_between() {
        let sizes = |sizes: [usize; 2]| -> Sizes {
            sizes.iter().map(|size| (String::new(), *size)).collect()
        };
        let of = |a, b| middle(&sizes(a), &sizes(b)).map(|it| numbers(&it));
        assert_eq!(of([1, 4], [1, 64]), Some(vec![1, 16]));
        assert_eq!(of([2, 8], [64, 256]), Some(vec![11, 45]));
        assert_eq!(of([2, 8], [3, 8]), None);
        assert_eq!(of([1, 1], [usize::MAX, 1]).unwrap()[1], 1);
    }
}
