//! Locks that ignore poisoning: a panic under them leaves no inconsistent state.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks, even if poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks, even if poisoned; `None` if another thread has the lock.
#[cfg(wgpu)]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    use std::sync::TryLockError::{Poisoned, WouldBlock};
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(Poisoned(error)) => Some(error.into_inner()),
        Err(WouldBlock) => None,
    }
}

/// Locks for reading, even if poisoned.
pub(crate) fn read<T>(table: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, even if poisoned.
pub(crate) fn write<T>(table: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    table.write().unwrap_or_else(PoisonError::into_inner)
}
