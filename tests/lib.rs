//! What the tests share: the built extension, the hosts that load it, and waiting for what they do.
//!
//! The tests look at the extension from outside, in the programs that people load it into. A test takes a folder of its
//! own, runs a host in it and judges what the host printed:
//!
//! ```
//! use fence_tests::{Python, Shell, folder};
//!
//! let folder = folder();
//! let app = folder.path().join("app.db");
//!
//! // One run: SQL in, what it printed out.
//! assert_eq!(Shell::new().on(&app).run("select 6 * 7;").ok(), "42");
//! assert!(Shell::new().on(&app).run("select x;").error().contains("no such column"));
//!
//! // Two shells that live side by side, driven step by step.
//! let mut a = Shell::new().on(&app).start();
//! let mut b = Shell::new().on(&app).start();
//! a.ask("create table t (x)");
//! b.ask("insert into t values (1), (2)");
//! assert_eq!(a.ask("select x from t"), "1\n2");
//!
//! // A Python script; `connect` gives a connection with the extension loaded.
//! assert_eq!(Python::new("print(connect().execute('select 6 * 7').fetchone())").run().ok(), "(42,)");
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`extension`] | builds the release library once and says where it is |
//! | [`mod@program`] | builds the program `fence` once and says where it is |
//! | [`host`] | finds a host, runs it to its end with a deadline, gives its [`Answer`] |
//! | [`process`] | a host that lives on: lines in, lines out, stop, continue, kill |
//! | [`shell`], [`python`] | the two hosts |
//! | [`mod@line`] | who stands in line for a key, read from kv.db |
//! | [`node`] | Node and Bun with their packages, ours among them |
//! | [`go`] | Go with its SQLite driver and our module |
//! | [`floor`] | the oldest SQLite that will do, as a shell |
//! | [`package`] | builds the packages of extension/hosts |
//! | [`venv`] | Python with its packages, ours among them |
//! | [`document`] | runs the examples of a document and compares what they print |
//! | [`recipe`] | programs that tell what they saw, and the documents that hold it |
//! | [`surface`] | every function and table that SQL gets, pinned, each with an example |
//! | [`chats`] | the tables on which guards are tried |
//! | [`worker`] | the program `worker`, which uses the store through the core |
//! | [`etcd`] | a real etcd cluster: started, killed, stopped, restored |
//! | [`doctored`] | calls the entry points as a host that lacks something |
//! | [`recovery`] | a shell whose `.recover` works |
//! | [`wait`] | how long anything may take, and waiting for what sends no event |
//!
//! Hosts run without `FENCE_STORE` and without the user's own configuration. A host that is not installed fails the
//! test and the message says what to install; `tests/hosts` has the list.

pub mod chats;
pub mod doctored;
pub mod document;
pub mod etcd;
pub mod extension;
pub mod floor;
pub mod go;
pub mod host;
pub mod line;
pub mod node;
pub mod package;
pub mod process;
pub mod program;
pub mod python;
pub mod recipe;
pub mod recovery;
pub mod shell;
pub mod surface;
pub mod venv;
pub mod wait;
pub mod worker;

pub use extension::{cluster_library, faulty_library, library};
pub use host::Answer;
pub use line::Line;
pub use process::Process;
pub use program::program;
pub use python::Python;
pub use shell::{Session, Shell};
pub use wait::{DEADLINE, wait_until};
pub use worker::Worker;

use std::path::Path;

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is in the repository")
}

/// A folder of the test's own, removed with the value.
pub fn folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("fence-")
        .tempdir()
        .expect("a temporary folder")
}

/// A folder in memory where the machine has one (Linux: /dev/shm), for tests that make very many commits; else as
/// [`folder`].
pub fn quick_folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("fence-")
        .tempdir_in("/dev/shm")
        .unwrap_or_else(|_| folder())
}

/// Milliseconds: more than any test takes, and as long as a wait may be.
pub const LONG: u64 = 3_600_000;

/// A shell with the extension on the database app.db in this folder, that prints NULL as NULL. All that are started in
/// one folder share its kv.db.
#[track_caller]
pub fn shell_in(folder: impl AsRef<Path>) -> Session {
    let mut shell = Shell::new().on(folder.as_ref().join("app.db")).start();
    shell.ask(".nullvalue NULL");
    shell
}
