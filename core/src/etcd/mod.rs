//! A store on an etcd cluster.
//!
//! | file | what it holds |
//! |---|---|
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

#![allow(
    dead_code,
    unused_imports,
    reason = "the engine that uses the client comes with the next commits"
)]

pub(crate) mod client;
mod http;
mod location;
mod members;
mod patience;
mod resolve;
mod said;
mod tls;
mod watch;
mod wire;
