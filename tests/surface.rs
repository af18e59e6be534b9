//! Everything that SQL gets from the extension, as a host lists it.
//!
//! This list is written by hand, once more beside the extension's own table: what a user's SQL relies on is pinned here.
//! Every row has an example, so a function cannot come without one; the examples are run in the hosts of the tests.

/// A function of the extension.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// With how many arguments it is registered.
    pub arguments: &'static [usize],
    /// Its class, and so its flags.
    pub class: Class,
    /// A query of one value, on a database that has a file.
    pub example: &'static str,
    /// What the example gives.
    pub gives: &'static str,
}

/// What a function may do and where it may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It answers from its arguments alone: everywhere.
    Pure,
    /// It has an effect: in statements of the program itself, never from a schema.
    Direct,
}

impl Class {
    /// The flags that a host lists: SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC, or SQLITE_DIRECTONLY.
    pub fn flags(self) -> i64 {
        match self {
            Self::Pure => 0x20_0000 | 0x800,
            Self::Direct => 0x8_0000,
        }
    }
}

const fn row(
    name: &'static str,
    arguments: &'static [usize],
    class: Class,
    example: &'static str,
    gives: &'static str,
) -> Function {
    Function {
        name,
        arguments,
        class,
        example,
        gives,
    }
}

/// Every function, by name.
#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = {
    use Class::{Direct, Pure};
    &[
        row("fence_acquire", &[1, 2, 3, 4], Direct, "select typeof(fence_acquire('acquire'))", "text"),
        row("fence_acquire_all", &[1, 2, 3, 4], Direct, "select typeof(fence_acquire_all('[\"of\", \"all\"]'))", "text"),
        row("fence_admit", &[2], Direct, "select fence_admit('page', 7)", "1"),
        row("fence_advance", &[1], Direct, "select fence_advance(7) > 0", "1"),
        row("fence_blob", &[1], Pure, "select hex(fence_blob('258'))", "00000000000000000000000000000102"),
        row("fence_count", &[1], Pure, "select fence_count('33132838977483490749893836800001')", "1"),
        row("fence_epoch", &[1], Pure, "select fence_epoch('33132838977483490749893836800001')", "1796134800000"),
        row("fence_guard", &[2, 3, 4], Direct, "select fence_guard('fence_admitted', 'fence') where fence_admit('k', 7)", "1"),
        row("fence_make", &[2], Pure, "select fence_make(1796134800000, 1)", "33132838977483490749893836800001"),
        row("fence_newer", &[2], Pure, "select fence_newer('9', '9')", "0"),
        row("fence_ok", &[2], Pure, "select fence_ok('9', '10')", "1"),
        row("fence_open", &[0, 1], Direct, "select fence_open() glob '*/kv.db'", "1"),
        row("fence_pad", &[1], Pure, "select fence_pad(7)", "0000000000000000000000000000000000000007"),
        row("fence_release", &[2], Direct, "select fence_release('release', fence_acquire('release'))", "1"),
        row("fence_release_all", &[1], Direct, "select fence_release_all(fence_acquire_all('[1, 2]'))", "1"),
        row("fence_renew", &[2, 3], Direct, "select fence_renew('renew', fence_acquire('renew'))", "1"),
        row("fence_renew_all", &[1, 2], Direct, "select fence_renew_all(fence_acquire_all('[3, 4]'))", "1"),
        row("fence_require", &[2], Pure, "select fence_require('9', 9)", "0000000000000000000000000000000000000009"),
        row("fence_unguard", &[1, 2], Direct, "select fence_unguard('fence_admitted') < 2 where fence_admit('k', 7)", "1"),
        row("fence_version", &[0], Pure, "select fence_version()", env!("CARGO_PKG_VERSION")),
        row("fence_wire", &[1], Pure, "select fence_wire('0007')", "7"),
        row("semaphore_acquire", &[2, 3, 4, 5], Direct, "select typeof(semaphore_acquire('permits', 3))", "text"),
        row("semaphore_release", &[2], Direct, "select semaphore_release('p', semaphore_acquire('p', 1))", "1"),
        row("semaphore_renew", &[2, 3], Direct, "select semaphore_renew('q', semaphore_acquire('q', 1))", "1"),
    ]
};

/// A table of the extension.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// A query of one value, on a database that has a file.
    pub example: &'static str,
    /// What the example gives.
    pub gives: &'static str,
}

/// Every table, by name.
#[rustfmt::skip]
pub const TABLES: &[Table] = &[
    Table { name: "fence_acquire", example: "select typeof(fence) from fence_acquire('table')", gives: "text" },
    Table { name: "fence_acquire_all", example: "select typeof(fence) from fence_acquire_all('[5]')", gives: "text" },
    Table { name: "fence_audit", example: "select count(*) >= 0 from fence_audit", gives: "1" },
    Table { name: "fence_leases", example: "select min(remaining_ms > 0) from fence_leases", gives: "1" },
    Table { name: "semaphore_acquire", example: "select typeof(permit) from semaphore_acquire('r', 1)", gives: "text" },
];

/// The example of every function and of every table, each with what it gives.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_functions = FUNCTIONS.iter().map(|function| (function.example, function.gives));
    of_functions.chain(TABLES.iter().map(|table| (table.example, table.gives)))
}
