//! A connection with the statements that usual calls run, prepared once and kept.
//!
//! rusqlite's own cache finds a statement by its text, which it hashes twice at each use. A grant and a release run three
//! statements, and that was a tenth of their work outside of SQLite's commits.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use rusqlite::{Connection, Statement};

/// Which statement is kept.
#[derive(Clone, Copy)]
pub(super) enum Usual {
    /// The look at a key, see `grant.rs`.
    Look,
    /// The writing of a lease, see `grant.rs`.
    Write,
    /// The release, see `end.rs`.
    Release,
}

/// A connection, and the statements that are kept for it.
pub(super) struct Db {
    // These go first: a connection closes when it has no statements left. They do not live for 'static, but for as long
    // as `connection`, and are lent for less than that.
    look: Slot,
    write: Slot,
    release: Slot,
    /// Never cloned. It has an address of its own, which stays when this value is moved: the statements refer to it.
    connection: Rc<Connection>,
}

type Slot = Cell<Option<Statement<'static>>>;

// SAFETY: a connection may be used on any thread, by one at a time, and its statements with it. The `Rc` has no other
// owner, and no statement leaves this value without a reference to it.
unsafe impl Send for Db {}

impl Db {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            look: Cell::default(),
            write: Cell::default(),
            release: Cell::default(),
            connection: Rc::new(connection),
        }
    }

    /// The statement with this text, which is the same at each call for the same `which`.
    pub(super) fn usual(&self, which: Usual, sql: &str) -> rusqlite::Result<Lent<'_>> {
        let slot = match which {
            Usual::Look => &self.look,
            Usual::Write => &self.write,
            Usual::Release => &self.release,
        };
        let statement = match slot.take() {
            Some(kept) => kept,
            None => {
                // SAFETY: the connection stays where it is until `self` is dropped, and the statement is dropped before it:
                // it is in a slot or lent for as long as `self` is borrowed.
                let connection: &'static Connection = unsafe { &*Rc::as_ptr(&self.connection) };
                connection.prepare(sql)?
            }
        };
        Ok(Lent {
            slot,
            statement: ManuallyDrop::new(statement),
        })
    }
}

impl Deref for Db {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

/// A statement that goes back to its place.
pub(super) struct Lent<'a> {
    slot: &'a Slot,
    statement: ManuallyDrop<Statement<'static>>,
}

impl Deref for Lent<'_> {
    type Target = Statement<'static>;

    fn deref(&self) -> &Statement<'static> {
        &self.statement
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Statement<'static> {
        &mut self.statement
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here, where nobody uses it any more.
        self.slot.set(Some(unsafe { ManuallyDrop::take(&mut self.statement) }));
    }
}
