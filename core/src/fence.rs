//! The fence: a 128-bit number larger than every one that the store gave before.

/// The high half of a fence: the epoch in which the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

/// The low half of a fence: how many leases the store has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(u64);

/// A 128-bit number, larger than every fence that the store gave before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u128);

impl Epoch {
    /// The epoch with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Count {
    /// The count with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Fence {
    /// The fence of these two halves.
    pub const fn new(epoch: Epoch, count: Count) -> Self {
        Self(((epoch.0 as u128) << 64) | count.0 as u128)
    }
    /// The number.
    pub const fn get(self) -> u128 {
        self.0
    }
    /// The high half.
    pub const fn epoch(self) -> Epoch {
        Epoch((self.0 >> 64) as u64)
    }
    /// The low half.
    pub const fn count(self) -> Count {
        Count(self.0 as u64)
    }
}
