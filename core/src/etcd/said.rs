//! What a member's answer means: done, ask another, authenticate anew, or no.
//!
//! etcd's errors are texts that its own clients compare as well (rpctypes/error.go). Those that are listed here as coming
//! before anything was proposed to the cluster leave a write undone for certain. Of all others that speak of time-outs,
//! leaders and stopping, nobody knows.

use serde_json::Value;

use super::wire;
use crate::error::ClusterTrouble;

/// What a member's answer comes to.
#[derive(Debug)]
pub(super) enum Said {
    Done(Value),
    /// Ask another member, or this one later.
    Later {
        said: String,
        /// Whether a write may have been done all the same, or still be.
        uncertain: bool,
    },
    /// The token is not valid (any more).
    Renew(String),
    No(ClusterTrouble, String),
}

/// With these the member refuses before it proposes anything.
const NOT_PROPOSED: [&str; 4] = [
    "etcdserver: no leader",
    "etcdserver: too many requests",
    "etcdserver: rpc not supported for learner",
    "etcdserver: not capable",
];
/// With these it asks for a new token.
const TOKEN: [&str; 3] = [
    "etcdserver: invalid auth token",
    "etcdserver: revision of auth store is old",
    "etcdserver: user name is empty",
];
/// The codes of gRPC with which a member fails rather than refuses: cancelled, unknown, deadline exceeded, internal,
/// unavailable.
const FAILS: [i64; 5] = [1, 2, 4, 13, 14];

/// A lease that was to be made is there already.
pub(super) const LEASE_EXISTS: &str = "etcdserver: lease already exists";
/// The cluster knows no users.
pub(super) const NO_AUTH: &str = "etcdserver: authentication is not enabled";

/// Reads an answer.
pub(super) fn read(status: u16, body: &[u8]) -> Said {
    // Behind an error the gateway may write more.
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let Some(Ok(json)) = values.next() else {
        let shown = crate::shown::text(body);
        return match status {
            // A proxy before the cluster.
            500.. => Said::Later {
                said: format!("HTTP status {status} and {shown}"),
                uncertain: true,
            },
            404 => Said::No(
                ClusterTrouble::Setup,
                format!("it has no /v3 (etcd 3.4 or newer has): {shown}"),
            ),
            _ => Said::No(
                ClusterTrouble::Setup,
                format!("no etcd answers there but something that says {shown}"),
            ),
        };
    };
    // In a stream the error is an object.
    let error = match json.get("error") {
        Some(inside @ Value::Object(_)) => inside,
        Some(_) => &json,
        None if status == 200 => return Said::Done(json),
        None => &json,
    };
    let code = error
        .get("code")
        .or_else(|| error.get("grpc_code"))
        .and_then(Value::as_i64)
        .unwrap_or(0);
    let words = wire::text(error, "message")
        .or_else(|| wire::text(error, "error"))
        .unwrap_or("nothing");
    refusal(code, words, status)
}

/// What an error means: its code in gRPC (0 if unknown), its words, the HTTP status.
pub(super) fn refusal(code: i64, words: &str, status: u16) -> Said {
    let said = words.to_owned();
    let is_in = |list: &[&str]| list.iter().any(|text| words.contains(text));
    if is_in(&TOKEN) {
        return Said::Renew(said);
    }
    if is_in(&NOT_PROPOSED) {
        return Said::Later { said, uncertain: false };
    }
    if FAILS.contains(&code) || (code == 0 && status >= 500) {
        return Said::Later { said, uncertain: true };
    }
    let trouble = if words.contains("requested lease not found") {
        ClusterTrouble::LeaseNotFound
    } else if words.contains("too many operations in txn") {
        ClusterTrouble::TooManyKeys
    } else if words.contains("database space exceeded") {
        ClusterTrouble::Full
    } else if words.contains("permission denied") || words.contains("authentication failed") || matches!(code, 7 | 16) {
        ClusterTrouble::Refused
    } else {
        ClusterTrouble::Other
    };
    Said::No(trouble, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(said: &Said) -> &'static str {
        match said {
            Said::Done(_) => "done",
            Said::Later { uncertain: false, .. } => "not proposed",
            Said::Later { uncertain: true, .. } => "uncertain",
            Said::Renew(_) => "renew",
            Said::No(ClusterTrouble::Setup, _) => "setup",
            Said::No(ClusterTrouble::Refused, _) => "refused",
            Said::No(ClusterTrouble::Full, _) => "full",
            Said::No(ClusterTrouble::LeaseNotFound, _) => "lease",
            Said::No(ClusterTrouble::TooManyKeys, _) => "keys",
            Said::No(..) => "other",
        }
    }

    #[test]
    fn only_what_was_refused_before_it_was_proposed_is_certain_to_be_undone() {
        for (status, body, expected) in [
            (200, r#"{"header":{"revision":"3"}}"#, "done"),
            (
                503,
                r#"{"error":"etcdserver: no leader","message":"etcdserver: no leader","code":14}"#,
                "not proposed",
            ),
            (
                200,
                r#"{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}}"#,
                "not proposed",
            ),
            (
                429,
                r#"{"error":"etcdserver: too many requests","code":8}"#,
                "not proposed",
            ),
            (
                503,
                r#"{"error":"etcdserver: request timed out","code":14}"#,
                "uncertain",
            ),
            (503, r#"{"error":"etcdserver: leader changed","code":14}"#, "uncertain"),
            (503, r#"{"error":"etcdserver: server stopped","code":14}"#, "uncertain"),
            (503, r#"{"error":"transport is closing","code":14}"#, "uncertain"),
            (500, r#"{"error":"context deadline exceeded","code":2}"#, "uncertain"),
            (502, "<html>Bad Gateway</html>", "uncertain"),
            (401, r#"{"error":"etcdserver: invalid auth token","code":16}"#, "renew"),
            (400, r#"{"error":"etcdserver: user name is empty","code":3}"#, "renew"),
            (403, r#"{"error":"etcdserver: permission denied","code":7}"#, "refused"),
            (
                429,
                r#"{"error":"etcdserver: mvcc: database space exceeded","code":8}"#,
                "full",
            ),
            (
                400,
                r#"{"error":"etcdserver: too many operations in txn request","code":3}"#,
                "keys",
            ),
            (
                404,
                r#"{"error":"etcdserver: requested lease not found","code":5}Grpc-Trailer: x"#,
                "lease",
            ),
            (412, r#"{"error":"etcdserver: lease already exists","code":9}"#, "other"),
            (404, "Not Found", "setup"),
            (200, "<html>Welcome</html>", "setup"),
            (400, "", "setup"),
        ] {
            let said = read(status, body.as_bytes());
            assert_eq!(kind(&said), expected, "{status} {body}: {said:?}");
        }
    }
}
