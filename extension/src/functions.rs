//! The table of everything that SQL gets from this library.
//!
//! A row is all there is to know of a function: its name, how many arguments it takes, its flags, what runs. It is
//! registered once for each number of arguments. The tests compare what a host lists with a list of their own, and ask
//! for a test of each row.

use std::ffi::c_int;
use std::ops::RangeInclusive;
use std::sync::Arc;

use rusqlite::{Connection, ffi};

use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
#[cfg(feature = "fault")]
use crate::fault;
use crate::guard::{audit::Audit, calls};
use crate::listing;
use crate::pure::{compare, halves, spelling, version};
use crate::register::{self, Signature};
use crate::store::{advance, as_table, choice, lease, leases::Leases, permit, several};
use crate::value::Args;

/// A pure function: allowed in triggers, views, indexes and generated columns, whatever `trusted_schema` says, for it
/// does nothing but answer.
const PURE: c_int = ffi::SQLITE_UTF8 | ffi::SQLITE_INNOCUOUS | ffi::SQLITE_DETERMINISTIC;
/// A function with an effect: allowed in a statement that the program itself sends, and nowhere in a schema.
const DIRECT: c_int = ffi::SQLITE_UTF8 | ffi::SQLITE_DIRECTONLY;

/// An SQL function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) arity: RangeInclusive<c_int>,
    pub(crate) flags: c_int,
    pub(crate) runs: Runs,
}

/// What runs, and of which class the function is.
pub(crate) enum Runs {
    /// A function of its arguments and nothing else; what registers it. See [`pure!`].
    Pure(fn(&Signature) -> Result<(), c_int>),
    /// A function of the store.
    Store(Stateful),
    /// A function of the check side, on the caller's own database.
    Check(Stateful),
}

/// A function that works on what belongs to a connection.
pub(crate) type Stateful = fn(&HostConnection, &Args<'_>) -> Result<Answer, SqlError>;

/// A table that stands in every database of a connection, without being created.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Creates the module, with what belongs to the connection as its aux.
    pub(crate) register: fn(&Connection, &'static str, Arc<HostConnection>) -> rusqlite::Result<()>,
}

/// A row of a pure function. It writes a closure of its own for each row, in which the name is a constant: so the
/// closure has no size, and nothing is left behind by the connections that it is registered in.
macro_rules! pure {
    ($name:literal, $arity:expr, $run:path) => {
        Function {
            name: $name,
            arity: $arity,
            flags: PURE,
            runs: Runs::Pure(|signature| {
                register::pure(signature, |context, values| {
                    register::answer(context, || $run(&Args::new($name, values)), $name)
                })
            }),
        }
    };
}

/// A row of a function of the store.
const fn store(name: &'static str, arity: RangeInclusive<c_int>, run: Stateful) -> Function {
    Function {
        name,
        arity,
        flags: DIRECT,
        runs: Runs::Store(run),
    }
}

/// A row of a function of the check side.
const fn check(name: &'static str, arity: RangeInclusive<c_int>, run: Stateful) -> Function {
    Function {
        name,
        arity,
        flags: DIRECT,
        runs: Runs::Check(run),
    }
}

/// The functions.
pub(crate) const FUNCTIONS: &[Function] = &[
    // One fence, in another spelling.
    pure!("fence_pad", 1..=1, spelling::pad),
    pure!("fence_wire", 1..=1, spelling::wire),
    pure!("fence_blob", 1..=1, spelling::blob),
    // Two fences, compared.
    pure!("fence_ok", 2..=2, compare::ok),
    pure!("fence_newer", 2..=2, compare::newer),
    pure!("fence_require", 2..=2, compare::require),
    // The two halves.
    pure!("fence_epoch", 1..=1, halves::epoch),
    pure!("fence_count", 1..=1, halves::count),
    pure!("fence_make", 2..=2, halves::make),
    // The library.
    pure!("fence_version", 0..=0, version::version),
    // The store.
    store("fence_open", 0..=1, choice::open),
    store("fence_advance", 1..=1, advance::advance),
    // Leases.
    store("fence_acquire", 1..=4, lease::acquire),
    store("fence_renew", 2..=3, lease::renew),
    store("fence_release", 2..=2, lease::release),
    // Several keys under one fence.
    store("fence_acquire_all", 1..=4, several::acquire),
    store("fence_renew_all", 1..=2, several::renew),
    store("fence_release_all", 1..=1, several::release),
    // Semaphores.
    store("semaphore_acquire", 2..=5, permit::acquire),
    store("semaphore_renew", 2..=3, permit::renew),
    store("semaphore_release", 2..=2, permit::release),
    // The check side.
    check("fence_guard", 2..=4, calls::guard),
    check("fence_unguard", 1..=2, calls::unguard),
    check("fence_admit", 2..=2, calls::admit),
    #[cfg(feature = "fault")]
    pure!("fault_pure", 0..=0, fault::pure),
    #[cfg(feature = "fault")]
    Function {
        name: "fault_store",
        arity: 0..=1,
        flags: DIRECT,
        runs: Runs::Store(fault::store),
    },
];

/// The tables.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "fence_leases",
        register: listing::register::<Leases>,
    },
    Table {
        name: "fence_acquire",
        register: as_table::register,
    },
    Table {
        name: "fence_acquire_all",
        register: as_table::register,
    },
    Table {
        name: "semaphore_acquire",
        register: as_table::register,
    },
    Table {
        name: "fence_audit",
        register: listing::register::<Audit>,
    },
    #[cfg(feature = "fault")]
    Table {
        name: "fault_rows",
        register: listing::register::<fault::Rows>,
    },
];
