//! Products on the CPU device: by the crate `gemm`, or in registers, on several threads. Unsafe
//! code is here and in `native.rs` only.

#[cfg(feature = "cpu")]
mod inner_products;

#[cfg(feature = "cpu")]
use std::ops::{Range, RangeInclusive};

use scry_gpu::HostThreads;

#[cfg(feature = "cpu")]
use self::inner_products::{Rows, for_each_inner_product, has_vectors};

/// The strides of a matrix of a host product: an element is at `row * rows + column * columns`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostStrides {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl HostStrides {
    /// Returns whether rows or columns follow one another, so that no two elements of a matrix have
    /// one place.
    fn is_disjoint(self, rows: usize, columns: usize) -> bool {
        let is_line = |count: usize, stride: usize| count < 2 || stride > 0;
        let is_within =
            |stride: usize, count: usize, other: usize| stride.saturating_mul(count - 1) < other;
        match (rows, columns) {
            (0, _) | (_, 0) => true,
            (1, _) => is_line(columns, self.columns),
            (_, 1) => is_line(rows, self.rows),
            _ => {
                is_line(columns, self.columns)
                    && is_line(rows, self.rows)
                    && (is_within(self.columns, columns, self.rows)
                        || is_within(self.rows, rows, self.columns))
            }
        }
    }

    /// Returns the number of elements from the first to the last one of a matrix.
    fn extent(self, rows: usize, columns: usize) -> usize {
        match (rows.checked_sub(1), columns.checked_sub(1)) {
            (Some(row), Some(column)) => {
                let last = row.checked_mul(self.rows).zip(column.checked_mul(self.columns));
                last.and_then(|(row, column)| row.checked_add(column)?.checked_add(1))
                    .expect("the extent of a matrix fits in usize")
            }
            _ => 0,
        }
    }
}

/// Computes `out = beta * out + alpha * a × b`, where `a` is m × k and `b` is k × n: on the threads
/// of the device; large products that are packed on those of the crate `gemm`; all on the caller's
/// if there are no `threads`. The previous content of `out` is not read if `beta` is 0.
///
/// # Panics
/// If a slice is shorter than its matrix, if rows and columns of `out` are interleaved, or without
/// the feature `cpu`.
pub(crate) fn host_gemm(
    threads: Option<HostThreads<'_>>,
    sizes: [usize; 3],
    scalars: [f32; 2],
    (a, a_strides): (&[f32], HostStrides),
    (b, b_strides): (&[f32], HostStrides),
    (out, out_strides): (&mut [f32], HostStrides),
) {
    let [m, n, k] = sizes;
    assert!(a.len() >= a_strides.extent(m, k) && b.len() >= b_strides.extent(k, n));
    assert!(out.len() >= out_strides.extent(m, n) && out_strides.is_disjoint(m, n));
    #[cfg(not(feature = "cpu"))]
    unreachable!("host functions need the feature `cpu`: {scalars:?} {threads:?}");
    #[cfg(feature = "cpu")]
    {
        let (a, b) = ((a, a_strides), (b, b_strides));
        let product = HostProduct { scalars, k, a, b, out: (out.as_mut_ptr(), out_strides) };
        let count = threads.map_or(1, |threads| threads.count());
        let mut parts = HostPart::of(sizes, count, product.is_in_registers([m, n]));
        let compute = |parts: &mut [HostPart]| {
            for part in parts {
                // SAFETY: the matrices are within their slices, as asserted, and so are the parts,
                // which together are all of the product and write different elements; `out` is
                // exclusive, so it does not overlap the operands.
                unsafe { product.compute(part) }
            }
        };
        match threads {
            Some(threads) => threads.for_each_chunk(&mut parts, 1, |_, parts| compute(parts)),
            None => compute(&mut parts),
        }
    }
}

/// A product of matrices of the host, which are within their slices.
#[cfg(feature = "cpu")]
struct HostProduct<'p> {
    scalars: [f32; 2],
    k: usize,
    a: (&'p [f32], HostStrides),
    b: (&'p [f32], HostStrides),
    out: (*mut f32, HostStrides),
}

// SAFETY: threads read the operands and write different parts of `out`, as `host_gemm` ensures.
#[cfg(feature = "cpu")]
unsafe impl Sync for HostProduct<'_> {}

/// A range of rows and of columns of a product.
#[cfg(feature = "cpu")]
#[derive(Debug, Clone)]
struct HostPart {
    rows: Range<usize>,
    columns: Range<usize>,
    method: Method,
}

/// How a part is computed.
#[cfg(feature = "cpu")]
#[derive(Debug, Clone, Copy)]
enum Method {
    /// From contiguous rows of `a` and columns of `b`, as they are.
    InRegisters,
    /// By the crate `gemm`, which packs what is not in its order.
    Packed(gemm::Parallelism),
}

/// Multiplications for which another thread is worth it.
#[cfg(feature = "cpu")]
const MIN_PRODUCTS: usize = 1 << 18;

/// Multiplications from which the crate `gemm` divides the work: its threads, which sleep between
/// products, share packed operands.
#[cfg(feature = "cpu")]
const MANY_PRODUCTS: usize = 1 << 28;

#[cfg(feature = "cpu")]
impl HostPart {
    /// Returns the parts of a product: ranges of its rows or of its columns, whichever are more.
    fn of([m, n, k]: [usize; 3], threads: usize, is_in_registers: bool) -> Vec<Self> {
        let products = m.saturating_mul(n).saturating_mul(k);
        let whole = |method| vec![Self { rows: 0..m, columns: 0..n, method }];
        if !is_in_registers && products >= MANY_PRODUCTS && threads > 1 {
            return whole(Method::Packed(gemm::Parallelism::Rayon(0)));
        }
        let method = match is_in_registers {
            true => Method::InRegisters,
            false => Method::Packed(gemm::Parallelism::None),
        };
        // More than threads, so that one that is late does not delay the product by much.
        let count = (products / MIN_PRODUCTS).min(4 * threads);
        if threads < 2 || count < 2 {
            return whole(method);
        }
        let len = m.max(n);
        // Whole vectors.
        let step = len.div_ceil(count).next_multiple_of(16);
        let ranges = (0..len).step_by(step).map(|start| start..len.min(start + step));
        let part = |range| match m > n {
            true => Self { rows: range, columns: 0..n, method },
            false => Self { rows: 0..m, columns: range, method },
        };
        ranges.map(part).collect()
    }
}

/// Rows of the smaller operand that are multiplied in registers: one is a product with a vector,
/// more are worth packing.
#[cfg(feature = "cpu")]
const FEW_ROWS: RangeInclusive<usize> = 2..=32;

/// The elements of rows that are multiplied in registers: fewer are not worth adding the elements
/// of vectors, the sums of more would lose accuracy.
#[cfg(feature = "cpu")]
const INNER_LENGTHS: RangeInclusive<usize> = 1 << 8..=1 << 14;

/// Loads a cache line to the L2 cache, where processors have such an instruction, without waiting.
#[cfg(feature = "cpu")]
#[inline(always)]
fn prefetch(number: &f32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: all processors have the instruction, which has no effect but on caches.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(number).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = number;
}

#[cfg(feature = "cpu")]
impl HostProduct<'_> {
    /// Returns whether a product of m × n results can be computed in registers, and is faster so.
    fn is_in_registers(&self, [m, n]: [usize; 2]) -> bool {
        let is_contiguous = [self.a.1.columns, self.b.1.rows] == [1, 1];
        let is_faster =
            FEW_ROWS.contains(&m.min(n)) && INNER_LENGTHS.contains(&self.k) && has_vectors();
        is_contiguous && is_faster
    }

    /// Computes a part.
    ///
    /// # Safety
    /// The part is one of the product; `out` is writable, does not overlap the operands, and
    /// nothing else accesses the elements of the part meanwhile.
    unsafe fn compute(&self, part: &HostPart) {
        let HostPart { rows, columns, method } = part;
        let (out, strides) = self.out;
        // SAFETY: the caller guarantees that the part is within `out`.
        let out = unsafe { out.add(rows.start * strides.rows + columns.start * strides.columns) };
        match method {
            // SAFETY: the caller guarantees the same requirements.
            Method::Packed(parallelism) => unsafe { self.compute_packed(part, out, *parallelism) },
            // SAFETY: the caller guarantees the same requirements.
            Method::InRegisters => unsafe { self.compute_in_registers(part, out) },
        }
    }

    /// Computes a part from contiguous rows of `a` and columns of `b`.
    ///
    /// # Safety
    /// As [`compute`](Self::compute); the first element of the part is at `out`.
    unsafe fn compute_in_registers(&self, part: &HostPart, out: *mut f32) {
        let [alpha, beta] = self.scalars;
        let ((a, a_strides), (b, b_strides), (_, strides)) = (self.a, self.b, self.out);
        let (rows, columns, len) = (&part.rows, &part.columns, self.k);
        let a = Rows {
            numbers: &a[rows.start * a_strides.rows..],
            count: rows.len(),
            len,
            distance: a_strides.rows,
        };
        let b = Rows {
            numbers: &b[columns.start * b_strides.columns..],
            count: columns.len(),
            len,
            distance: b_strides.columns,
        };
        let store = |row: usize, column: usize, sum: f32| {
            // SAFETY: the caller guarantees that the part is within `out`, and positions are
            // those of rows of `a` and `b`.
            unsafe {
                let out = out.add(row * strides.rows + column * strides.columns);
                out.write(match beta {
                    0.0 => alpha * sum,
                    _ => alpha * sum + beta * out.read(),
                });
            }
        };
        match a.count <= b.count {
            true => for_each_inner_product(a, b, store),
            false => for_each_inner_product(b, a, |column, row, sum| store(row, column, sum)),
        }
    }

    /// Computes a part by the crate `gemm`.
    ///
    /// # Safety
    /// As [`compute`](Self::compute); the first element of the part is at `out`.
    unsafe fn compute_packed(
        &self,
        part: &HostPart,
        out: *mut f32,
        parallelism: gemm::Parallelism,
    ) {
        let stride = |stride: usize| isize::try_from(stride).expect("a stride fits in isize");
        let ((a, a_strides), (b, b_strides), (_, out_strides)) = (self.a, self.b, self.out);
        let [alpha, beta] = self.scalars;
        // SAFETY: the caller guarantees that the part is within the matrices.
        unsafe {
            gemm::gemm(
                part.rows.len(),
                part.columns.len(),
                self.k,
                out,
                stride(out_strides.columns),
                stride(out_strides.rows),
                beta != 0.0,
                a.as_ptr().add(part.rows.start * a_strides.rows),
                stride(a_strides.columns),
                stride(a_strides.rows),
                b.as_ptr().add(part.columns.start * b_strides.columns),
                stride(b_strides.columns),
                stride(b_strides.rows),
                beta,
                alpha,
                false,
                false,
                false,
                parallelism,
            );
        }
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_product() {
        for sizes in [[16, 384, 1536], [1, 100_000, 40], [3000, 3, 90], [5, 5, 5], [0, 4, 4]] {
            for (threads, is_in_registers) in [(1, true), (2, false), (7, true), (64, false)] {
                let [m, n, _] = sizes;
                let mut count = vec![0; m * n];
                for HostPart { rows, columns, .. } in HostPart::of(sizes, threads, is_in_registers)
                {
                    rows.for_each(|row| columns.clone().for_each(|it| count[row * n + it] += 1));
                }
                assert!(count.iter().all(|count| *count == 1), "{sizes:?}, {threads} threads");
            }
        }
        let parts =
            |sizes, threads, is_in_registers| HostPart::of(sizes, threads, is_in_registers).len();
        assert_eq!(parts([16, 384, 1536], 2, true), 8);
        assert_eq!(parts([16, 384, 1536], 1, true), 1);
        assert_eq!(parts([5, 5, 5], 8, false), 1);
        // The crate `gemm` divides one, but nothing else the other.
        assert_eq!(parts([32, 4096, 4096], 2, false), 1);
        assert_eq!(parts([32, 4096, 4096], 2, true), 8);
    }

    #[test]
    fn shared_places_are_found() {
        let is_disjoint = |rows, columns, sizes: [usize; 2]| {
            HostStrides { rows, columns }.is_disjoint(sizes[0], sizes[1])
        };
        assert!(
            is_disjoint(4, 1, [3, 4]) && is_disjoint(1, 3, [3, 4]) && is_disjoint(8, 2, [3, 4])
        );
        assert!(
            !is_disjoint(3, 1, [3, 4]) && !is_disjoint(0, 1, [2, 4]) && !is_disjoint(1, 2, [3, 4])
        );
        assert!(
            is_disjoint(0, 1, [1, 4]) && is_disjoint(0, 0, [1, 1]) && is_disjoint(0, 0, [0, 9])
        );
    }
}
