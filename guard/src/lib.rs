//! The check side of fences: what is written keeps the largest fence that it has seen and turns away anything smaller.
//!
//! A guard is plain SQL: triggers on a table that compare padded text. A program that knows nothing of fences still
//! writes to the table, and is still refused when it is stale. This crate writes the triggers, reads them back, and takes
//! stock of a database; the functions `fence_guard`, `fence_unguard`, `fence_admit` and the table `fence_audit` of the
//! extension are made of it. Everything happens on the caller's connection and in the caller's transaction.
//!
//! ```
//! use fence_guard::{Mode, guard};
//!
//! let db = rusqlite::Connection::open_in_memory()?;
//! db.execute_batch(
//!     "create table chats (id integer primary key, summary text, summary_fence text not null default '');
//!      insert into chats values (42, 'by a later holder', printf('%040d', 8));",
//! )?;
//! guard(&db, "chats", "summary_fence", &Mode::write().columns(["summary"]))?;
//!
//! let late = db.execute("update chats set summary = 'late', summary_fence = printf('%040d', 7)", ());
//! assert!(late.unwrap_err().to_string().starts_with("fence: stale: "));
//! let forgot = db.execute("update chats set summary = 'forgot the fence'", ());
//! assert!(forgot.unwrap_err().to_string().starts_with("fence: unfenced: "));
//! db.execute("update chats set summary = 'good', summary_fence = printf('%040d', 9)", ())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | |
//! |---|---|
//! | `install.rs` | [`guard`], [`unguard`] |
//! | `mode.rs` | [`Mode`]: what a guard asks of a write |
//! | `triggers.rs` | the SQL of a guard, as text |
//! | `standing.rs` | a guard as it stands in a schema |
//! | `memory.rs` | the table that remembers the fences of deleted rows |
//! | `schema.rs`, `key.rs` | a table: its columns, and the keys by which one row takes another's place |
//! | `affinity.rs` | which columns keep a fence's digits |
//! | `ddl.rs`, `expression.rs`, `sql.rs` | reading the CREATE statements, expressions and words of SQL |
//! | `query.rs` | asking the caller's database |
//! | `admit.rs` | [`admit`]: for what has no row |
//! | `audit.rs` | [`audit`]: the inventory of all that can be written |

// What is public here is never inlined: the extension builds this crate for size and the rest of itself for speed, and what
// is inlined into fast code becomes fast code.

mod admit;
mod affinity;
mod audit;
mod ddl;
mod expression;
mod install;
mod key;
mod memory;
mod mode;
mod query;
mod schema;
mod sql;
mod standing;
mod triggers;

pub use admit::admit;
pub use audit::{Counts, Finding, State, Verdict, audit};
pub use install::{guard, unguard};
pub use mode::Mode;
pub use query::{Error, Result};
