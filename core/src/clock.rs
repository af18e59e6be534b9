//! The two clocks of a store, behind one small trait that tests replace.
//!
//! * The *wall clock* gives epochs. It may be stepped at will: the epoch is the larger of its time and the last epoch
//!   plus one.
//! * The *lease clock* decides about expiry. On Linux it is `CLOCK_BOOTTIME`, which nobody can step and which goes on
//!   while the machine sleeps; it starts anew at each boot, so it comes with the boot's id, and a lease of another boot
//!   is over. Elsewhere it is the wall clock, with an empty boot id: there a step of the clock makes leases longer or
//!   shorter, and a reboot ends none.

use std::time::{SystemTime, UNIX_EPOCH};

use once_cell::sync::OnceCell;

use crate::error::Error;

/// What a store asks of time.
///
/// ```
/// use fence_core::clock::{Clock, SystemClock};
///
/// let clock = SystemClock;
/// let before = clock.now_ms();
/// assert!(clock.now_ms() >= before);
/// assert!(clock.wall_ms() > 1_700_000_000_000);
/// clock.boot()?;
/// # Ok::<(), fence_core::Error>(())
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970 by the wall clock; 0 for a clock set before that.
    fn wall_ms(&self) -> i64;
    /// Milliseconds by the lease clock.
    fn now_ms(&self) -> i64;
    /// The id of the boot in which the lease clock's time counts; empty where it counts in all.
    ///
    /// # Errors
    ///
    /// [`Error::Boot`] when the system does not tell it.
    fn boot(&self) -> Result<String, Error>;
}

/// The clocks of the machine.
///
/// ```
/// use fence_core::clock::{Clock, SystemClock};
///
/// assert!(SystemClock.now_ms() > 0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_ms(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    #[cfg(target_os = "linux")]
    fn now_ms(&self) -> i64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }

    #[cfg(not(target_os = "linux"))]
    fn now_ms(&self) -> i64 {
        self.wall_ms()
    }

    fn boot(&self) -> Result<String, Error> {
        static BOOT: OnceCell<String> = OnceCell::new();
        BOOT.get_or_try_init(read_boot).cloned()
    }
}

#[cfg(target_os = "linux")]
fn read_boot() -> Result<String, Error> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .map_err(|source| Error::Boot { source })
}

#[cfg(not(target_os = "linux"))]
fn read_boot() -> Result<String, Error> {
    Ok(String::new())
}
