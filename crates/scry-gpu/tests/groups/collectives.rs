//! Every collective, on every element type, compared with the reference.

use scry_gpu::{Buffer, DeviceGroup, GroupTransport, ReduceOp, Result, bf16, f16};

use crate::reference::{Number, elements, reduced};

/// Elements on both sides of a slice, which no collective may change.
const GUARD: usize = 3;

/// Calls every collective for every element type, in place and not, and compares the results.
pub fn check_all(group: &DeviceGroup) -> Result<()> {
    check::<f32>(group, 1)?;
    check::<f64>(group, 2)?;
    check::<f16>(group, 3)?;
    check::<bf16>(group, 4)?;
    check::<i32>(group, 5)?;
    check::<u32>(group, 6)?;
    check::<i64>(group, 7)?;
    check::<u64>(group, 8)?;
    check::<u8>(group, 9)
}

fn check<T: Number>(group: &DeviceGroup, seed: u64) -> Result<()> {
    for len in [1, 37] {
        for (index, op) in ReduceOp::ALL.into_iter().enumerate() {
            let seed = 100 * seed + index as u64;
            check_reductions::<T>(group, op, seed, len)?;
        }
        check_copies::<T>(group, 100 * seed + 50, len)?;
    }
    check_messages::<T>(group, seed)?;
    group.barrier()
}

/// A slice between guard elements.
struct Guarded<T> {
    buffer: Buffer<T>,
    len: usize,
}

impl<T: Number> Guarded<T> {
    fn new(group: &DeviceGroup, elements: &[T]) -> Result<Self> {
        let guard = [T::small(77); GUARD];
        let buffer = group.device().upload(&[&guard[..], elements, &guard].concat())?;
        Ok(Self { buffer, len: elements.len() })
    }

    fn slice(&self) -> scry_gpu::Slice<'_, T> {
        self.buffer.slice(GUARD..GUARD + self.len).unwrap()
    }

    /// Returns the elements; fails if a guard has changed.
    fn read(&self) -> Result<Vec<T>> {
        let mut all = self.buffer.download()?;
        let guard = all.split_off(GUARD + self.len);
        let elements = all.split_off(GUARD);
        assert_eq!((all, guard), (vec![T::small(77); GUARD], vec![T::small(77); GUARD]));
        Ok(elements)
    }
}

/// Runs a collective from one buffer to another: the source must not change. Returns the
/// destination, initially of fives.
fn apart<T: Number>(
    group: &DeviceGroup,
    source: &[T],
    received: usize,
    call: impl Fn(scry_gpu::Slice<'_, T>, scry_gpu::Slice<'_, T>) -> Result<()>,
) -> Result<Vec<T>> {
    let from = Guarded::new(group, source)?;
    let to = Guarded::new(group, &vec![T::small(5); received])?;
    call(from.slice(), to.slice())?;
    assert_eq!(from.read()?, source);
    to.read()
}

/// Asserts that the result of a reduction is that of the reference: every bit through host memory,
/// and up to a rounding for each rank through NCCL, which chooses the order.
#[track_caller]
fn assert_reduced<T: Number>(group: &DeviceGroup, found: &[T], expected: &[T], call: &str) {
    if group.transport() == GroupTransport::HostMemory || T::ROUNDING == 0.0 {
        assert_eq!(found, expected, "{call}");
        return;
    }
    let bound = group.world_size() as f64 * T::ROUNDING;
    let is_near = |(found, expected): (&T, &T)| {
        let (found, expected) = (found.to_f64(), expected.to_f64());
        (found - expected).abs() <= bound * expected.abs()
    };
    assert_eq!(found.len(), expected.len(), "{call}");
    let are_near = found.iter().zip(expected).all(is_near);
    assert!(are_near, "{call}: {found:?} differs from {expected:?}");
}

fn check_reductions<T: Number>(
    group: &DeviceGroup,
    op: ReduceOp,
    seed: u64,
    len: usize,
) -> Result<()> {
    let (rank, world) = (group.rank(), group.world_size());
    let all: Vec<Vec<T>> = (0..world).map(|rank| elements(seed, rank, len)).collect();
    let expected = reduced(op, &all);
    let found = apart(group, &all[rank], len, |from, to| group.all_reduce(from, to, op))?;
    assert_reduced(group, &found, &expected, &format!("all_reduce({op})"));
    let buffer = Guarded::new(group, &all[rank])?;
    group.all_reduce(buffer.slice(), buffer.slice(), op)?;
    let call = format!("all_reduce({op}) in place");
    assert_reduced(group, &buffer.read()?, &expected, &call);

    let root = world - 1;
    let found = apart(group, &all[rank], len, |from, to| group.reduce(from, to, op, root))?;
    let unchanged = vec![T::small(5); len];
    let result = if rank == root { &*expected } else { &*unchanged };
    assert_reduced(group, &found, result, &format!("reduce({op})"));

    let all: Vec<Vec<T>> = (0..world).map(|rank| elements(seed, rank, len * world)).collect();
    let expected = &reduced(op, &all)[rank * len..][..len];
    let found = apart(group, &all[rank], len, |from, to| group.reduce_scatter(from, to, op))?;
    assert_reduced(group, &found, expected, &format!("reduce_scatter({op})"));
    let buffer = group.device().upload(&all[rank])?;
    let part = buffer.slice(rank * len..(rank + 1) * len)?;
    group.reduce_scatter(&buffer, part, op)?;
    let mut changed = all[rank].clone();
    changed[rank * len..][..len].copy_from_slice(expected);
    let call = format!("reduce_scatter({op}) in place");
    assert_reduced(group, &buffer.download()?, &changed, &call);
    Ok(())
}

fn check_copies<T: Number>(group: &DeviceGroup, seed: u64, len: usize) -> Result<()> {
    let (rank, world) = (group.rank(), group.world_size());
    let all: Vec<Vec<T>> = (0..world).map(|rank| elements(seed, rank, len)).collect();
    for root in [0, world - 1] {
        let found = apart(group, &all[rank], len, |from, to| group.broadcast(from, to, root))?;
        assert_eq!(found, all[root], "broadcast({root})");
        let buffer = group.device().upload(&all[rank])?;
        group.broadcast(&buffer, &buffer, root)?;
        assert_eq!(buffer.download()?, all[root], "broadcast({root}) in place");
    }
    let expected = all.concat();
    let found = apart(group, &all[rank], len * world, |from, to| group.all_gather(from, to))?;
    assert_eq!(found, expected, "all_gather");
    let buffer = group.device().alloc::<T>(len * world)?;
    let part = buffer.slice(rank * len..(rank + 1) * len)?;
    part.write(&all[rank])?;
    group.all_gather(part, &buffer)?;
    assert_eq!(buffer.download()?, expected, "all_gather in place");

    let all: Vec<Vec<T>> = (0..world).map(|rank| elements(seed, rank, len * world)).collect();
    let parts: Vec<&[T]> = all.iter().map(|sent| &sent[rank * len..][..len]).collect();
    let found = apart(group, &all[rank], len * world, |from, to| group.all_to_all(from, to))?;
    assert_eq!(found, parts.concat(), "all_to_all");
    Ok(())
}

/// Messages around the ring of ranks; those of length 0 included.
fn check_messages<T: Number>(group: &DeviceGroup, seed: u64) -> Result<()> {
    let (rank, world) = (group.rank(), group.world_size());
    for len in [0, 1, 37] {
        let own = Guarded::<T>::new(group, &elements(seed, rank, len))?;
        let received = Guarded::<T>::new(group, &vec![T::small(5); len])?;
        let (next, previous) = ((rank + 1) % world, (rank + world - 1) % world);
        if rank == 0 {
            group.send(own.slice(), next)?;
            group.recv(received.slice(), previous)?;
        } else {
            group.recv(received.slice(), previous)?;
            group.send(own.slice(), next)?;
        }
        assert_eq!(received.read()?, elements::<T>(seed, previous, len), "from rank {previous}");
    }
    Ok(())
}
