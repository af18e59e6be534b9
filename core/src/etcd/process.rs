//! A value of which each process has its own (LOCK-09).
//!
//! A child made by fork has its parent's memory and its parent's sockets: whatever it said on one would reach the cluster
//! in the middle of what its parent says. So the child never touches what its parent made. It finds by the process's id
//! that the value is not its own, makes another, and leaves the parent's where it is, neither dropped nor closed. There is
//! no lock on this way that another thread could have held at the moment of the fork.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::error::Result;

/// A value that is made when a process first asks for it.
pub(super) struct PerProcess<T> {
    made: AtomicPtr<Made<T>>,
    owned: PhantomData<Box<Made<T>>>,
}

struct Made<T> {
    process: u32,
    value: T,
}

// SAFETY: the value is handed out by shared reference to any thread, and dropped by whichever drops the whole.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    pub(super) const fn new() -> Self {
        Self {
            made: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }

    /// This process's value; `make` may be called by several threads at once, and all but one of what they made is dropped.
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let process = std::process::id();
        let there = self.made.load(Ordering::Acquire);
        // SAFETY: what stands in `made` came from `Box::into_raw` and is freed by `drop` alone.
        if let Some(made) = unsafe { there.as_ref() }.filter(|made| made.process == process) {
            return Ok(&made.value);
        }
        let value = make()?;
        let new = Box::into_raw(Box::new(Made { process, value }));
        match self
            .made
            .compare_exchange(there, new, Ordering::AcqRel, Ordering::Acquire)
        {
            // SAFETY: as above. `there`, the parent's, is left alone for ever.
            Ok(_) => Ok(unsafe { &(*new).value }),
            Err(other) => {
                // SAFETY: nobody else has seen `new`.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: as above; a thread of this process made it meanwhile.
                Ok(unsafe { &(*other).value })
            }
        }
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let there = *self.made.get_mut();
        // SAFETY: it came from `Box::into_raw`.
        let process = unsafe { there.as_ref() }.map(|made| made.process);
        if process == Some(std::process::id()) {
            // SAFETY: as above, and nobody borrows it any more.
            drop(unsafe { Box::from_raw(there) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn lock_09_a_value_is_made_once_in_a_process_and_again_in_its_child() -> Result<()> {
        let own = PerProcess::new();
        let mark = Arc::new(());
        let make = || Ok((std::process::id(), Arc::clone(&mark)));
        assert_eq!(own.get_or_make(make)?.0, std::process::id());
        assert_eq!(own.get_or_make(make)?.0, std::process::id());
        assert_eq!(Arc::strong_count(&mark), 2, "made once");

        // SAFETY: the child calls nothing but this module, the allocator and _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_own = own.get_or_make(make).is_ok_and(|made| made.0 == std::process::id());
            let parents_is_left = Arc::strong_count(&mark) == 3;
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!(is_own && parents_is_left))) };
        }
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);

        drop(own);
        assert_eq!(Arc::strong_count(&mark), 1, "dropped with the whole");
        Ok(())
    }
}
