//! Lengths of time and numbers that callers give, each with its range.
//!
//! | type | argument | unit | from | to | default |
//! |---|---|---|---|---|---|
//! | [`Ttl`] | `ttl_ms` | milliseconds | 1 | 365 days | 30 s |
//! | [`Wait`] | `wait_ms` | milliseconds | 0 | 1 hour | 0 |
//! | [`Delay`] | `delay_ms` | milliseconds | 0 | 365 days | 0 |
//! | [`Limit`] | `limit` | permits | 1 | 1,000,000 | none |

use std::time::Duration;

use crate::error::Error;

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $argument:literal, $min:literal ..= $max:literal, $accepts:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// The smallest one.
            pub const MIN: Self = Self($min);
            /// The largest one.
            pub const MAX: Self = Self($max);
            /// What SQL calls the argument.
            pub const ARGUMENT: &'static str = $argument;
            /// What is accepted, in words.
            pub const ACCEPTS: &'static str = $accepts;

            /// Takes the number if it is in range.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`], which names the argument, the value and the range.
            pub fn new(number: i64) -> Result<Self, Error> {
                if (Self::MIN.0..=Self::MAX.0).contains(&number) {
                    Ok(Self(number))
                } else {
                    Err(Error::OutOfRange {
                        argument: Self::ARGUMENT,
                        value: number.to_string(),
                        accepts: Self::ACCEPTS,
                    })
                }
            }

            /// The number.
            pub const fn get(self) -> i64 {
                self.0
            }
        }
    };
}

macro_rules! milliseconds {
    ($name:ident) => {
        impl $name {
            /// As a duration.
            pub const fn duration(self) -> Duration {
                Duration::from_millis(self.0.unsigned_abs())
            }
        }

        impl TryFrom<Duration> for $name {
            type Error = Error;

            /// Whole milliseconds; what is left over is dropped.
            fn try_from(duration: Duration) -> Result<Self, Error> {
                Self::new(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
            }
        }
    };
}

bounded! {
    /// Time to live: how long a lease lasts from the moment of its grant.
    ///
    /// ```
    /// use fence_core::Ttl;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Ttl::default().get(), 30_000);
    /// assert_eq!(Ttl::try_from(Duration::from_secs(5))?, Ttl::new(5_000)?);
    /// assert!(Ttl::new(0).is_err());
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    Ttl, "ttl_ms", 1..=31_536_000_000, "1 to 31536000000 ms (365 days)"
}
bounded! {
    /// How long an acquire may wait for its turn.
    ///
    /// ```
    /// use fence_core::Wait;
    ///
    /// assert_eq!(Wait::default().get(), 0);
    /// assert!(Wait::new(3_600_001).is_err());
    /// ```
    Wait, "wait_ms", 0..=3_600_000, "0 to 3600000 ms (1 hour)"
}
bounded! {
    /// Lock delay: how long a key stays closed after a lease that ended without release.
    ///
    /// ```
    /// use fence_core::Delay;
    ///
    /// assert_eq!(Delay::default().get(), 0);
    /// assert!(Delay::new(-1).is_err());
    /// ```
    Delay, "delay_ms", 0..=31_536_000_000, "0 to 31536000000 ms (365 days)"
}
bounded! {
    /// How many permits of a semaphore may be live.
    ///
    /// ```
    /// use fence_core::Limit;
    ///
    /// assert_eq!(Limit::new(3)?.get(), 3);
    /// assert!(Limit::new(0).is_err());
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    Limit, "limit", 1..=1_000_000, "1 to 1000000 permits"
}

milliseconds!(Ttl);
milliseconds!(Wait);
milliseconds!(Delay);

impl Default for Ttl {
    /// 30 seconds.
    fn default() -> Self {
        Self(30_000)
    }
}

impl Default for Wait {
    /// Not at all.
    fn default() -> Self {
        Self::MIN
    }
}

impl Default for Delay {
    /// None.
    fn default() -> Self {
        Self::MIN
    }
}
