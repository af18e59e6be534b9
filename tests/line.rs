//! Who stands in line for a key, as kv.db says it to any sqlite3.

use std::path::Path;

use crate::{Session, Shell, wait_until};

/// A plain shell, without the extension, on a store that is in use.
#[derive(Debug)]
pub struct Line(Session);

impl Line {
    /// Looks at the kv.db in this folder. It must be there already.
    #[track_caller]
    pub fn of(folder: impl AsRef<Path>) -> Self {
        let store = folder.as_ref().join("kv.db");
        assert!(store.exists(), "no store was opened in {}", folder.as_ref().display());
        let mut shell = Shell::plain().on(store).start();
        shell.ask(".timeout 60000");
        Self(shell)
    }

    /// How many tickets stand in all lines of the store, dead or alive.
    #[track_caller]
    pub fn length(&mut self) -> usize {
        let length = self.0.ask("select count(distinct ticket) from waiters");
        length.parse().unwrap_or_else(|_| panic!("no number: {length}"))
    }

    /// Waits until this many tickets stand in all lines of the store.
    #[track_caller]
    pub fn becomes(&mut self, length: usize) {
        wait_until(&format!("{length} stand in line"), || self.length() == length);
    }

    /// Runs a statement on kv.db itself.
    #[track_caller]
    pub fn store(&mut self, sql: &str) -> String {
        self.0.ask(sql)
    }
}
