//! Leases with fences on a SQLite file, or on an etcd cluster.
//!
//! A *lease* holds a key until it is released or its time to live has passed, and carries a *fence*: a number larger than
//! every one that the store gave before. Whoever writes under a lease writes its fence along, and the row refuses a lower
//! one. [`Store`] opens the file; [`Lock`] and [`Semaphore`] hold a key while a closure runs.
//!
//! # What is promised, why it holds, and what it does not cover
//!
//! Each promise has tests whose names begin with its id. The torture harness (`make torture`) tries them together, with
//! processes that are killed and stopped, clocks that are stepped, and files that are swapped.
//!
//! **LOCK-01: while a lease is live, no other lease of its key is given, to any thread or process.** A grant looks at the
//! key's row and writes it in one transaction, and SQLite lets nobody write between the two (`sqlite/grant.rs`). Threads
//! take turns at one connection. Whether a row is live is decided in one place (`sqlite/term.rs`), by a clock that all
//! processes share. *Not covered:* a kv.db that is lost takes its leases with it (see LOCK-08); containers whose time
//! namespaces shift `CLOCK_BOOTTIME` do not share a clock; a network file system has no locks to rely on.
//!
//! **LOCK-02: of any two leases, the later one's fence is larger; LOCK-03: no fence is given twice.** Epoch and count stand
//! in one row. A grant reads and bumps the count with the statement that writes the lease, and nothing of either is kept
//! in memory; SQLite orders the transactions of all processes. Each opening commits a larger epoch and syncs it, so what
//! a power loss takes away of later grants lies under an epoch that is on the disk already (`sqlite/epoch.rs`).
//! Checkpoints come one at a time and while nobody writes, for SQLite before 3.51.3 could lose commits else
//! (`sqlite/connection.rs`). A ROLLBACK of the caller's is one of another connection. *Not covered:* a file put back from
//! a copy, under a clock that stands before the last opening, unless [`Store::advance`] is called (LOCK-10); a disk that
//! does not do what fsync says.
//!
//! **LOCK-04: only the live lease can be renewed or released.** Both are one statement that finds the row by its key and
//! its fence and asks the clock with the write lock in hand; it inserts nothing, so it revives nothing (`sqlite/end.rs`).
//! *Not covered:* whoever knows key and fence may renew and release; they are a name, not a secret.
//!
//! **LOCK-05: the ttl counts from the grant; a step of the wall clock changes no lease; a reboot ends them all.** The end is
//! reckoned after the wait, from `CLOCK_BOOTTIME`, which nobody can step. The file names the boot that its times belong
//! to, and the opening of another boot ends them ([`clock`]). A time that no grant writes lasts no longer than the ttl
//! after first sight. *Not covered:* systems other than Linux, where the wall clock decides; a virtual machine that goes on
//! from a snapshot is in the same boot.
//!
//! **LOCK-08: a kv.db that was deleted, replaced or restored is noticed before the next grant.** A grant or a renewal is
//! handed out only after kv.db, its WAL and the WAL's index were seen to be those that are open, and kv.db not to have
//! been written to by others; what gives nothing (a release, "held", a listing) after such a look of the last 10 ms. An
//! opening takes away what does not belong to the new file, alone among all processes, and lifts the epoch past all that
//! its process has seen (`sqlite/files.rs`, `sqlite/connection.rs`). *Not covered:* a release that comes in the 10 ms
//! after the change may be one of the old file, and the new one keeps the key for its ttl; the leases of the old file
//! are gone, and fences that only *other* processes have seen are passed by the clock alone; both files written over in
//! place while processes are at work on them (restore by `mv`, or stop them first); a program that opens and closes
//! these files by hand, in a process that uses them, for that drops its locks.
//!
//! **LOCK-09: after a fork the child uses a connection of its own and never touches its parent's.** Before a fork every
//! engine is held still and its connection closed, so that none is open in two processes; a connection that was opened by
//! another process is left behind, never used or closed (`sqlite/fork.rs`). A lease taken before the fork can be renewed
//! and released by both, for both know its name; a bound one ends with the parent. *Not covered:* a fork by a bare system
//! call, which runs no handlers, while another thread is inside a call; connections of the host's own to other databases.
//!
//! **LOCK-10: after a restore, [`Store::advance`] lifts the epoch past the largest fence in your data,** whatever the clock
//! says, synced like an opening. *Not covered:* a fence that was written where nobody looked for it.
//!
//! **LOCK-06, LOCK-07, LOCK-11 and SEM-01, SEM-02** (lock delay, the line, bound leases, permits): a delay is part of the
//! row's term (`sqlite/term.rs`); the lowest ticket is served first, and one who does not say for 2 s that it is there is
//! passed over (`sqlite/line.rs`); a bound lease lives while its process holds a byte of the file beside the store locked,
//! which the system lets go however the process ends (`sqlite/sidecar.rs`); permits are counted in the transaction that
//! adds one, and have an id that no fence function reads ([`PermitId`]). *Not covered:* where the file beside the store
//! was removed, bound leases last for their ttl.
//!
//! **Trouble with the store is an error and changes nothing.** Every call goes through one function that leaves no
//! transaction open, whatever came of it (`Engine::call` in `sqlite/mod.rs`). A lock that another program keeps is waited
//! for 5 s, or to the end of the caller's own wait.
//!
//! # On a cluster
//!
//! With the feature `etcd`, [`Store::open`] takes a location such as `etcd://a:2379,b:2379,c:2379/jobs`, and what is promised
//! is the same, for processes on many machines. How it is kept, what is different and what it does not cover:
//!
//! | promise | on a cluster |
//! |---|---|
//! | LOCK-01 | A grant is a transaction on the condition that nothing holds its keys, and etcd puts all transactions in one order (`etcd/grant.rs`). A lease is live until the cluster ends it. |
//! | LOCK-02, LOCK-03 | The count is the revision of that transaction, so counts have gaps. The epoch stands in the cluster, and every grant is made on the condition that it is as it was known; it is lifted when the cluster has begun a new life, as from a snapshot (`etcd/epoch.rs`), not at each opening. *Not covered:* members' data put back by hand, if no process that has seen more is at work: call [`Store::advance`]. |
//! | LOCK-04 | The same (`etcd/end.rs`). A renewal of one key of a lease of several renews all of them. |
//! | LOCK-05 | The cluster counts, in whole seconds: half a second is added to the ttl and the sum rounded up, and made as long as the cluster's least, 1.5 times its election time-out (2 s unless it was set). It looks twice a second for what is over, and a new leader begins to count anew. So a lease lasts longer than its ttl, and never ends early. A reboot of a client ends none. |
//! | LOCK-06 | The key stays closed for its delay, and for up to 4 s more. |
//! | LOCK-07 | In the order in which the places were written. A waiter that died or stands still holds the others up until its place runs out, 2 s after it was last kept alive or the cluster's least (`etcd/line.rs`). |
//! | LOCK-08 | Each answer is compared with what this process has seen, before a fence is handed out. |
//! | LOCK-09 | A child makes connections of its own and leaves its parent's alone (`etcd/process.rs`). |
//! | LOCK-10 | The same, also for those who move from a file to a cluster. |
//! | LOCK-11 | A bound lease ends within 3 s, or the cluster's least, after its process, and when the process stands still for so long or is cut off from the cluster (`etcd/bound.rs`). |
//! | SEM-01, SEM-02 | The same: a permit is written on the condition that no other was since they were counted. |
//!
//! A call ends within 5.5 s, or so long after the caller's own wait, whatever the members do; without a quorum it is an
//! error ([`Error::Cluster`], or [`Error::UnknownOutcome`] if the answer of a write was lost). An acquire whose answer was
//! lost finds what was granted, or ends it.

#[cfg(not(unix))]
compile_error!("fence-core stands on POSIX record locks: Linux and macOS are supported");

pub mod clock;
mod engine;
pub mod error;
#[cfg(feature = "etcd")]
mod etcd;
mod fault;
pub mod fence;
mod keep;
mod key;
mod lease;
mod limits;
mod lock;
mod permit;
mod place;
mod semaphore;
pub mod shown;
mod sqlite;
mod store;

pub use error::{ClusterTrouble, Error, Result};
pub use fence::{Count, Epoch, Fence, FenceError, NotAFence, Padded, Wire};
pub use key::Key;
pub use lease::{Hold, HoldKind, Lease};
pub use limits::{Delay, Limit, Ttl, Wait};
pub use lock::{HeldLease, Lock};
pub use permit::PermitId;
pub use semaphore::{HeldPermit, Semaphore};
pub use store::{AcquireOptions, Holds, Store};
