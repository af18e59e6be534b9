//! The pure functions: what can be said of fences without a store.
//!
//! All of them read every argument before they answer, so that what is no fence is an error wherever it stands. '' and
//! NULL both mean 'no fence'.

pub(crate) mod compare;
pub(crate) mod halves;
pub(crate) mod spelling;
pub(crate) mod version;
