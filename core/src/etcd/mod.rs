//! A store on an etcd cluster.
//!
//! | file | what it holds |
//! |---|---|
//! | `engine.rs` | what the seam asks for |
//! | `process.rs` | what each process has for itself |
//! | `session.rs` | what a process has of a cluster |
//! | `names.rs`, `record.rs` | what is written in the cluster |
//! | `epoch.rs` | the epoch, and the lives of a cluster |
//! | `grant.rs` | a grant, from top to bottom |
//! | `line.rs` | waiting for a turn |
//! | `end.rs` | renewing and releasing |
//! | `bound.rs` | leases that end with this process |
//! | `list.rs` | reading what is live |
//! | `location.rs` | which cluster is meant, and which keys of it |
//! | `client.rs` | the client: its calls, and how they end |
//! | `watch.rs` | watching keys |
//! | `members.rs` | which member is asked next |
//! | `said.rs` | what a member's answer means |
//! | `wire.rs` | questions and answers, and both as JSON |
//! | `http.rs` | one request to one member |
//! | `patience.rs` | being told to stop while waiting |
//! | `resolve.rs` | from a member's name to its addresses |
//! | `tls.rs` | certificates |

mod bound;
mod client;
mod end;
mod engine;
mod epoch;
mod grant;
mod http;
mod line;
mod list;
mod location;
mod members;
mod names;
mod patience;
mod process;
mod record;
mod resolve;
mod said;
mod session;
mod tls;
mod watch;
mod wire;

pub(crate) use engine::{Engine, find};
pub(crate) use location::Location;
