//! What is asked of a cluster and what it answers, and both as the gateway's JSON: bytes in base64, 64-bit numbers as
//! text, and nothing where a number is 0 or a list is empty.

#![allow(
    dead_code,
    reason = "what etcd's questions and answers hold is told whole; the engine does not need all of it"
)]

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

/// Which keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'a> {
    /// This one.
    One(&'a [u8]),
    /// All that begin with this.
    Prefix(&'a [u8]),
    /// From the first on, up to and without the second.
    Between(&'a [u8], &'a [u8]),
}

/// By what a range is sorted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SortTarget {
    Key,
    Version,
    Create,
    Mod,
    Value,
}

/// In which order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SortOrder {
    Ascend,
    Descend,
}

/// A question for keys. [`Range::of`] asks for all that stands now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<'a> {
    pub(crate) keys: Keys<'a>,
    /// At most so many; 0 for all.
    pub(crate) limit: i64,
    pub(crate) order: Option<(SortTarget, SortOrder)>,
    pub(crate) keys_only: bool,
    pub(crate) count_only: bool,
    /// Whether the member may answer from what it knows, which may be old, without asking the others.
    pub(crate) serializable: bool,
    /// As of this revision; 0 for now.
    pub(crate) revision: i64,
    /// Only keys created then or later; 0 for all.
    pub(crate) min_create_revision: i64,
    /// Only keys created then or earlier; 0 for all.
    pub(crate) max_create_revision: i64,
}

impl<'a> Range<'a> {
    pub(crate) const fn of(keys: Keys<'a>) -> Self {
        Self {
            keys,
            limit: 0,
            order: None,
            keys_only: false,
            count_only: false,
            serializable: false,
            revision: 0,
            min_create_revision: 0,
            max_create_revision: 0,
        }
    }
}

/// One condition of a transaction: of each of `keys`, `target` is as `result` says. Of a key that is not there, and of
/// keys of which none is there, version and revisions are 0.
#[derive(Clone, Debug)]
pub(crate) struct Compare<'a> {
    pub(crate) keys: Keys<'a>,
    pub(crate) target: Target<'a>,
    pub(crate) result: Is,
}

/// What of a key is compared, and with what.
#[derive(Clone, Debug)]
pub(crate) enum Target<'a> {
    Version(i64),
    Create(i64),
    Mod(i64),
    Value(Cow<'a, [u8]>),
    Lease(i64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Is {
    Equal,
    NotEqual,
    Greater,
    Less,
}

/// One step of a transaction.
#[derive(Clone, Debug)]
pub(crate) enum Op<'a> {
    Range(Range<'a>),
    Put {
        key: &'a [u8],
        value: Cow<'a, [u8]>,
        /// The lease that the key ends with; 0 for none.
        lease: i64,
        /// Whether the answer is to tell what stood there.
        prev_kv: bool,
    },
    Delete {
        keys: Keys<'a>,
        prev_kv: bool,
    },
}

/// All of `success` if every condition holds, else all of `failure`; in one step, in one revision.
#[derive(Clone, Debug, Default)]
pub(crate) struct Txn<'a> {
    pub(crate) compare: Vec<Compare<'a>>,
    pub(crate) success: Vec<Op<'a>>,
    pub(crate) failure: Vec<Op<'a>>,
}

impl Txn<'_> {
    /// Whether it can write, so that doing it twice is another thing than doing it once.
    pub(crate) fn writes(&self) -> bool {
        let mut ops = self.success.iter().chain(&self.failure);
        ops.any(|op| !matches!(op, Op::Range(_)))
    }
}

/// Who answered, and how far the cluster was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) cluster_id: u64,
    pub(crate) member_id: u64,
    /// Of a transaction that wrote: its own.
    pub(crate) revision: i64,
    pub(crate) raft_term: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyValue {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// Of the transaction that created the key, since it was last absent.
    pub(crate) create_revision: i64,
    /// Of the one that last wrote it.
    pub(crate) mod_revision: i64,
    /// How often it was written since it was created.
    pub(crate) version: i64,
    /// 0 for none.
    pub(crate) lease: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ranged {
    pub(crate) header: Header,
    pub(crate) kvs: Vec<KeyValue>,
    /// Whether the limit left some out.
    pub(crate) more: bool,
    /// How many there are, whatever the limit.
    pub(crate) count: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct TxnAnswer {
    pub(crate) header: Header,
    /// Whether the conditions held.
    pub(crate) succeeded: bool,
    /// One for each step that was done, in their order.
    pub(crate) answers: Vec<OpAnswer>,
}

#[derive(Clone, Debug)]
pub(crate) enum OpAnswer {
    Range(Ranged),
    Put { prev: Option<KeyValue> },
    Delete { deleted: i64, prev: Vec<KeyValue> },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseGranted {
    pub(crate) header: Header,
    pub(crate) id: i64,
    /// What the cluster made of the time that was asked for, in seconds.
    pub(crate) ttl_s: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseLeft {
    pub(crate) header: Header,
    /// Seconds until it ends, rounded down.
    pub(crate) left_s: i64,
    pub(crate) granted_s: i64,
}

/// How one member is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) header: Header,
    /// How far its log goes. A cluster that was made from a snapshot begins a new one.
    pub(crate) raft_index: u64,
    pub(crate) raft_applied_index: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Put,
    Delete,
}

/// What befell a key. Of a deletion the key and its revision are known, no more.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) kv: KeyValue,
}

/// One message of a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchMessage {
    pub(crate) header: Header,
    pub(crate) events: Vec<Event>,
    /// The watch ended on the cluster's side.
    pub(crate) canceled: bool,
    /// Not 0 if it ended because the revision to begin from is no longer kept: the oldest that is.
    pub(crate) compact_revision: i64,
    pub(crate) cancel_reason: String,
}

impl Range<'_> {
    pub(crate) fn json(&self) -> Value {
        let mut json = keys_json(self.keys);
        number(&mut json, "limit", self.limit);
        number(&mut json, "revision", self.revision);
        number(&mut json, "min_create_revision", self.min_create_revision);
        number(&mut json, "max_create_revision", self.max_create_revision);
        flag(&mut json, "keys_only", self.keys_only);
        flag(&mut json, "count_only", self.count_only);
        flag(&mut json, "serializable", self.serializable);
        if let Some((target, order)) = self.order {
            let target = match target {
                SortTarget::Key => "KEY",
                SortTarget::Version => "VERSION",
                SortTarget::Create => "CREATE",
                SortTarget::Mod => "MOD",
                SortTarget::Value => "VALUE",
            };
            let order = match order {
                SortOrder::Ascend => "ASCEND",
                SortOrder::Descend => "DESCEND",
            };
            json.insert("sort_target".to_owned(), target.into());
            json.insert("sort_order".to_owned(), order.into());
        }
        json.into()
    }
}

impl Txn<'_> {
    pub(crate) fn json(&self) -> Value {
        let ops = |ops: &[Op<'_>]| ops.iter().map(Op::json).collect::<Vec<_>>();
        json!({
            "compare": self.compare.iter().map(Compare::json).collect::<Vec<_>>(),
            "success": ops(&self.success),
            "failure": ops(&self.failure),
        })
    }
}

impl Compare<'_> {
    fn json(&self) -> Value {
        let (target, name, value) = match &self.target {
            Target::Version(version) => ("VERSION", "version", version.to_string()),
            Target::Create(revision) => ("CREATE", "create_revision", revision.to_string()),
            Target::Mod(revision) => ("MOD", "mod_revision", revision.to_string()),
            Target::Value(value) => ("VALUE", "value", BASE64.encode(value)),
            Target::Lease(lease) => ("LEASE", "lease", lease.to_string()),
        };
        let result = match self.result {
            Is::Equal => "EQUAL",
            Is::NotEqual => "NOT_EQUAL",
            Is::Greater => "GREATER",
            Is::Less => "LESS",
        };
        let mut json = keys_json(self.keys);
        json.insert("target".to_owned(), target.into());
        json.insert("result".to_owned(), result.into());
        json.insert(name.to_owned(), value.into());
        json.into()
    }
}

impl Op<'_> {
    fn json(&self) -> Value {
        match self {
            Self::Range(range) => json!({ "request_range": range.json() }),
            Self::Put {
                key,
                value,
                lease,
                prev_kv,
            } => {
                let mut put = Map::new();
                put.insert("key".to_owned(), BASE64.encode(key).into());
                put.insert("value".to_owned(), BASE64.encode(value).into());
                number(&mut put, "lease", *lease);
                flag(&mut put, "prev_kv", *prev_kv);
                json!({ "request_put": put })
            }
            Self::Delete { keys, prev_kv } => {
                let mut delete = keys_json(*keys);
                flag(&mut delete, "prev_kv", *prev_kv);
                json!({ "request_delete_range": delete })
            }
        }
    }
}

/// The fields `key` and `range_end`.
pub(crate) fn keys_json(keys: Keys<'_>) -> Map<String, Value> {
    let (key, end) = match keys {
        Keys::One(key) => (Cow::Borrowed(key), None),
        // A key is not empty, and the end NUL is beyond all keys.
        Keys::Prefix(b"") => (Cow::Borrowed(&b"\0"[..]), Some(Cow::Borrowed(&b"\0"[..]))),
        Keys::Prefix(prefix) => (Cow::Borrowed(prefix), Some(Cow::Owned(after_all(prefix)))),
        Keys::Between(from, to) => (Cow::Borrowed(from), Some(Cow::Borrowed(to))),
    };
    let mut json = Map::new();
    json.insert("key".to_owned(), BASE64.encode(key).into());
    if let Some(end) = end {
        json.insert("range_end".to_owned(), BASE64.encode(end).into());
    }
    json
}

/// The first text that is larger than all that begin with the prefix; NUL, which means no end, if there is none.
fn after_all(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    vec![0]
}

fn number(json: &mut Map<String, Value>, name: &str, number: i64) {
    if number != 0 {
        json.insert(name.to_owned(), number.to_string().into());
    }
}

fn flag(json: &mut Map<String, Value>, name: &str, flag: bool) {
    if flag {
        json.insert(name.to_owned(), true.into());
    }
}

/// A part of an answer. Whatever is missing is 0, empty or false, as the gateway has it; what is there and is not of its
/// kind is nothing.
pub(crate) trait Answer: Sized {
    fn read(json: &Value) -> Option<Self>;
}

impl Answer for Header {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            cluster_id: unsigned(json, "cluster_id")?,
            member_id: unsigned(json, "member_id")?,
            revision: int(json, "revision")?,
            raft_term: unsigned(json, "raft_term")?,
        })
    }
}

impl Answer for KeyValue {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            key: bytes(json, "key")?,
            value: bytes(json, "value")?,
            create_revision: int(json, "create_revision")?,
            mod_revision: int(json, "mod_revision")?,
            version: int(json, "version")?,
            lease: int(json, "lease")?,
        })
    }
}

impl Answer for Ranged {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            header: header(json)?,
            kvs: list(json, "kvs")?,
            more: truth(json, "more")?,
            count: int(json, "count")?,
        })
    }
}

impl Answer for TxnAnswer {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            header: header(json)?,
            succeeded: truth(json, "succeeded")?,
            answers: list(json, "responses")?,
        })
    }
}

impl Answer for OpAnswer {
    fn read(json: &Value) -> Option<Self> {
        if let Some(range) = json.get("response_range") {
            Ranged::read(range).map(Self::Range)
        } else if let Some(put) = json.get("response_put") {
            let prev = put.get("prev_kv").map(|kv| KeyValue::read(kv).ok_or(())).transpose();
            Some(Self::Put { prev: prev.ok()? })
        } else {
            let delete = json.get("response_delete_range")?;
            Some(Self::Delete {
                deleted: int(delete, "deleted")?,
                prev: list(delete, "prev_kvs")?,
            })
        }
    }
}

impl Answer for LeaseGranted {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            header: header(json)?,
            id: int(json, "ID")?,
            ttl_s: int(json, "TTL")?,
        })
    }
}

impl Answer for LeaseLeft {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            header: header(json)?,
            left_s: int(json, "TTL")?,
            granted_s: int(json, "grantedTTL")?,
        })
    }
}

impl Answer for Status {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            header: header(json)?,
            raft_index: unsigned(json, "raftIndex")?,
            raft_applied_index: unsigned(json, "raftAppliedIndex")?,
        })
    }
}

impl Answer for Event {
    fn read(json: &Value) -> Option<Self> {
        let kind = match json.get("type").and_then(Value::as_str) {
            None | Some("PUT") => EventKind::Put,
            Some("DELETE") => EventKind::Delete,
            Some(_) => return None,
        };
        let kv = KeyValue::read(json.get("kv")?)?;
        Some(Self { kind, kv })
    }
}

impl Answer for WatchMessage {
    fn read(json: &Value) -> Option<Self> {
        Some(Self {
            header: header(json)?,
            events: list(json, "events")?,
            canceled: truth(json, "canceled")?,
            compact_revision: int(json, "compact_revision")?,
            cancel_reason: text(json, "cancel_reason").unwrap_or_default().to_owned(),
        })
    }
}

/// The header of an answer. Answers within a transaction's have but a part of one.
pub(crate) fn header(json: &Value) -> Option<Header> {
    json.get("header").map_or(Some(Header::default()), Header::read)
}

pub(crate) fn text<'a>(json: &'a Value, name: &str) -> Option<&'a str> {
    json.get(name).and_then(Value::as_str)
}

/// A number that the gateway writes as text.
pub(crate) fn int(json: &Value, name: &str) -> Option<i64> {
    match json.get(name) {
        None => Some(0),
        Some(Value::String(digits)) => digits.parse().ok(),
        Some(other) => other.as_i64(),
    }
}

fn unsigned(json: &Value, name: &str) -> Option<u64> {
    match json.get(name) {
        None => Some(0),
        Some(Value::String(digits)) => digits.parse().ok(),
        Some(other) => other.as_u64(),
    }
}

fn truth(json: &Value, name: &str) -> Option<bool> {
    json.get(name).map_or(Some(false), Value::as_bool)
}

fn bytes(json: &Value, name: &str) -> Option<Vec<u8>> {
    match json.get(name) {
        None => Some(Vec::new()),
        Some(value) => BASE64.decode(value.as_str()?).ok(),
    }
}

fn list<T: Answer>(json: &Value, name: &str) -> Option<Vec<T>> {
    match json.get(name) {
        None => Some(Vec::new()),
        Some(value) => value.as_array()?.iter().map(T::read).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_lies_past_all_that_begin_with_it() {
        assert_eq!(after_all(b"a/"), b"a0");
        assert_eq!(after_all(b"a\xff\xff"), b"b");
        assert_eq!(after_all(b"\xff"), b"\0");
    }

    #[test]
    fn what_is_no_answer_of_etcds_is_nothing() {
        for (json, is_answer) in [
            (json!({}), true),
            (
                json!({ "kvs": [{ "key": "YQ==", "lease": "7587869" }], "count": "1" }),
                true,
            ),
            (json!({ "kvs": [{ "key": "not base64" }] }), false),
            (json!({ "kvs": [{ "version": "1x" }] }), false),
            (json!({ "kvs": "none" }), false),
            (json!({ "more": 1 }), false),
            (json!({ "header": { "cluster_id": "18446744073709551615" } }), true),
            (json!({ "header": { "cluster_id": "18446744073709551616" } }), false),
        ] {
            assert_eq!(Ranged::read(&json).is_some(), is_answer, "{json}");
        }
    }
}
