//! What `fence hold` stands on.
//!
//! | file | idea |
//! |---|---|
//! | `holder.rs` | who holds the key: the line on a terminal that counts down, and the message at the end |
//! | `warden.rs` | a process that outlives the holder by a moment, and kills the group if it must |
//! | `group.rs` | the command's process group: started, signalled, ended |
//! | `signals.rs` | the signals that are passed on |
//! | `terminal.rs` | whose turn it is at the terminal |
//! | `watch.rs` | the loop: what happens to the holder, to the lease and to the command, and what follows |
//!
//! There are three processes: the *holder*, which has the lease and renews it; the *command*, the first of a process
//! group of its own, which is what signals go to; and the *warden*.
//!
//! What is promised, and where it is kept:
//!
//! - The command runs only while the lease is live: when it is lost the group is told to end, and after the grace killed
//!   (`watch.rs`). A holder that stood still finds out when it goes on, and does the same.
//! - Nothing in the group outlives the hold: what the command leaves behind has the grace to end by itself, then is told
//!   to, then killed, and only then is the lease released (`watch.rs`). If the holder dies, the lease ends with it, and
//!   the warden kills the group (`warden.rs`).
//! - The exit status is the command's (`exit.rs` has the table).
//!
//! What is not: a process that leaves the group (`setsid`, a daemon, the jobs of an interactive shell) leaves the hold,
//! and one that may not be signalled (set-user-ID) cannot be ended. Their late writes are refused by the fence.

pub mod group;
pub mod holder;
pub mod signals;
pub mod terminal;
pub mod warden;
pub mod watch;
