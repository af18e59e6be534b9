//! What the store's keys are called in the cluster.
//!
//! | key | what it is | ends with |
//! |---|---|---|
//! | `PREFIX/epoch` | the epoch | nothing |
//! | `PREFIX/key/KEY␀held` | the lease of KEY | its etcd lease |
//! | `PREFIX/key/KEY␀held.delay` | keeps KEY closed after a lease that ended without release | an etcd lease that outlives it |
//! | `PREFIX/key/KEY␀line/ID` | somebody waits for the lease | the waiter's etcd lease |
//! | `PREFIX/key/KEY␀permit/ID` | a permit of KEY | its etcd lease |
//! | `PREFIX/key/KEY␀queue/ID` | somebody waits for a permit | the waiter's etcd lease |
//!
//! `␀` is a NUL, which no key holds: so no key's names lie among another's, and the names of all keys are in the order of
//! the keys. Beside the prefix the cluster is other programs'.

use crate::key::Key;
use crate::permit::PermitId;

const HELD: &str = "held";
const DELAY: &str = "held.delay";
const LINE: &str = "line/";
const PERMIT: &str = "permit/";
const QUEUE: &str = "queue/";

/// The names under one prefix.
pub(super) struct Names {
    prefix: String,
}

/// What a name under [`Names::all`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Held,
    Delay,
    Permit(PermitId),
    /// A place in a line.
    Place,
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(super) fn epoch(&self) -> Vec<u8> {
        format!("{}/epoch", self.prefix).into_bytes()
    }

    /// What the names of all keys begin with.
    pub(super) fn all(&self) -> Vec<u8> {
        format!("{}/key/", self.prefix).into_bytes()
    }

    /// The lease's name; what begins with it keeps the key from others.
    pub(super) fn held(&self, key: Key<'_>) -> Vec<u8> {
        self.of(key, HELD, "")
    }

    pub(super) fn delay(&self, key: Key<'_>) -> Vec<u8> {
        self.of(key, DELAY, "")
    }

    /// What the names of the key's permits begin with.
    pub(super) fn permits(&self, key: Key<'_>) -> Vec<u8> {
        self.of(key, PERMIT, "")
    }

    pub(super) fn permit(&self, key: Key<'_>, id: PermitId) -> Vec<u8> {
        self.of(key, PERMIT, &hex(id))
    }

    /// What the names of those in line begin with: for the lease, or for a permit.
    pub(super) fn line(&self, key: Key<'_>, semaphore: bool) -> Vec<u8> {
        self.of(key, if semaphore { QUEUE } else { LINE }, "")
    }

    /// The name of one who stands in line.
    pub(super) fn place(&self, key: Key<'_>, semaphore: bool, id: PermitId) -> Vec<u8> {
        self.of(key, if semaphore { QUEUE } else { LINE }, &hex(id))
    }

    fn of(&self, key: Key<'_>, part: &str, id: &str) -> Vec<u8> {
        format!("{}/key/{}\0{part}{id}", self.prefix, key.as_str()).into_bytes()
    }

    /// What a name under [`Names::all`] stands for, if it is one of ours.
    pub(super) fn read<'n>(&self, name: &'n [u8]) -> Option<(&'n str, Part)> {
        let name = std::str::from_utf8(name).ok()?;
        let name = name.strip_prefix(&self.prefix)?.strip_prefix("/key/")?;
        let (key, part) = name.split_once('\0')?;
        let part = match part {
            HELD => Part::Held,
            DELAY => Part::Delay,
            _ if part.starts_with(LINE) || part.starts_with(QUEUE) => Part::Place,
            _ => Part::Permit(unhex(part.strip_prefix(PERMIT)?)?),
        };
        Some((key, part))
    }
}

/// An id as 32 hexadecimal digits.
pub(super) fn hex(id: PermitId) -> String {
    format!("{:032x}", u128::from_be_bytes(*id.as_bytes()))
}

/// The id that [`hex`] wrote.
pub(super) fn unhex(text: &str) -> Option<PermitId> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32)?;
    Some(PermitId::from_bytes(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

    #[test]
    fn names_are_read_as_they_were_written() -> Result<()> {
        let names = Names::new("a/b");
        let id = PermitId::random()?;
        for key in ["k", "k/held", "é:42"] {
            let of = Key::new(key)?;
            for (name, part) in [
                (names.held(of), Part::Held),
                (names.delay(of), Part::Delay),
                (names.permit(of, id), Part::Permit(id)),
                (names.place(of, false, id), Part::Place),
                (names.place(of, true, id), Part::Place),
            ] {
                assert_eq!(names.read(&name), Some((key, part)));
                assert!(name.starts_with(&names.all()));
            }
        }
        assert_eq!(names.read(&names.epoch()), None);
        assert_eq!(names.read(b"a/b/key/k\0somebody else's"), None);
        Ok(())
    }

    #[test]
    fn what_keeps_one_key_is_in_no_range_of_another() -> Result<()> {
        let names = Names::new("p");
        let of = Key::new("k")?;
        for other in ["k/", "k\u{1}", "kk", "k0"] {
            let other = Key::new(other)?;
            assert!(!names.held(other).starts_with(&names.held(of)));
            assert!(!names.permits(other).starts_with(&names.permits(of)));
        }
        assert!(!names.line(of, true).starts_with(&names.line(of, false)));
        assert!(!names.line(of, false).starts_with(&names.held(of)));
        Ok(())
    }
}
