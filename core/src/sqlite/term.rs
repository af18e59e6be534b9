//! For how long a row of `leases` holds its key.
//!
//! A lease is live until it is released, or its time to live has passed, or the process that it is bound to has ended.
//! After an end without release its key stays closed for the row's delay. Both are decided here and nowhere else.

use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::limits::{Delay, Ttl};

/// The times of a row, as they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) expires: i64,
    pub(super) ttl: i64,
    pub(super) delay: i64,
    /// The token of the process that the lease is bound to; 0 if it is unbound.
    pub(super) process: i64,
}

/// What a row says about its key now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A live lease holds it, for so many milliseconds more.
    Held(i64),
    /// The lease is over; the key stays closed for so many milliseconds more.
    Closed(i64),
    /// Neither: the row may go.
    Over,
}

/// A number in a row. What is none was written there by hand, and counts as the nearest one.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => number,
        ValueRef::Real(number) => number as i64, // Saturates.
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => 0,
    })
}

impl Term {
    /// The times in the columns `expires, ttl, delay, process`, from this one on.
    pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            expires: number(row, first)?,
            ttl: number(row, first + 1)?,
            delay: number(row, first + 2)?,
            process: number(row, first + 3)?,
        })
    }

    /// What the row says at this time, and the row as it must be written first where it cannot stand as it is:
    ///
    /// * no lease lasts beyond its own ttl after first sight, whatever was written into the file by hand;
    /// * a lease whose process has ended is over, and its delay counts from when that was seen.
    pub(super) fn at(self, now: i64, is_alive: impl FnOnce(i64) -> bool) -> (Standing, Option<Self>) {
        let mut term = Self {
            ttl: self.ttl.clamp(Ttl::MIN.get(), Ttl::MAX.get()),
            delay: self.delay.clamp(Delay::MIN.get(), Delay::MAX.get()),
            ..self
        };
        term.expires = term.expires.min(now.saturating_add(term.ttl));
        if now < term.expires && term.process != 0 && !is_alive(term.process) {
            term.expires = now;
            term.process = 0;
        }
        let opens = term.expires.saturating_add(term.delay);
        let standing = if now < term.expires {
            Standing::Held(term.expires - now)
        } else if now < opens {
            Standing::Closed(opens - now)
        } else {
            Standing::Over
        };
        let mended = (term != self && standing != Standing::Over).then_some(term);
        (standing, mended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Term = Term {
        expires: 1_000,
        ttl: 500,
        delay: 0,
        process: 0,
    };

    #[test]
    fn a_lease_is_over_at_the_very_millisecond_of_its_end() {
        assert_eq!(PLAIN.at(999, |_| true), (Standing::Held(1), None));
        assert_eq!(PLAIN.at(1_000, |_| true), (Standing::Over, None));
    }

    #[test]
    fn lock_05_an_absurd_time_lasts_no_longer_than_the_ttl_after_first_sight() {
        let absurd = Term {
            expires: i64::MAX,
            ..PLAIN
        };
        let mended = Term { expires: 700, ..PLAIN };
        assert_eq!(absurd.at(200, |_| true), (Standing::Held(500), Some(mended)));
        let worse = Term {
            expires: i64::MAX,
            ttl: i64::MAX,
            delay: i64::MIN,
            process: 0,
        };
        assert_eq!(worse.at(0, |_| true).0, Standing::Held(Ttl::MAX.get()));
        assert_eq!(
            Term {
                expires: i64::MIN,
                delay: i64::MAX,
                ..PLAIN
            }
            .at(0, |_| true)
            .0,
            Standing::Over
        );
    }

    #[test]
    fn lock_06_the_delay_follows_an_end_without_release() {
        let delayed = Term { delay: 100, ..PLAIN };
        assert_eq!(delayed.at(999, |_| true), (Standing::Held(1), None));
        assert_eq!(delayed.at(1_000, |_| true), (Standing::Closed(100), None));
        assert_eq!(delayed.at(1_100, |_| true), (Standing::Over, None));
    }

    #[test]
    fn lock_11_a_bound_lease_ends_with_its_process_and_its_delay_counts_from_when_that_was_seen() {
        let bound = Term { process: 7, ..PLAIN };
        assert_eq!(bound.at(600, |token| token == 7), (Standing::Held(400), None));
        assert_eq!(bound.at(600, |_| false), (Standing::Over, None));
        let delayed = Term { delay: 100, ..bound };
        let mended = Term {
            expires: 600,
            process: 0,
            ..delayed
        };
        assert_eq!(delayed.at(600, |_| false), (Standing::Closed(100), Some(mended)));
    }
}
