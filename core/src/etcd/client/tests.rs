//! The client on real clusters.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fence_tests::etcd::{Certificates, Cluster, Proxy, Setup};
use once_cell::sync::Lazy;

use super::super::watch::Watched;
use super::super::wire::Event;
use super::*;

type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// One that no test disturbs.
static CALM: Lazy<Cluster> = Lazy::new(Cluster::start);

fn client(location: &str) -> Result<Client> {
    Client::new(Location::parse(location)?)
}

/// Longer than anything takes.
fn soon() -> Instant {
    within(60_000)
}

fn within(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn put<'a>(key: &'a [u8], value: &'a [u8], lease: i64) -> Op<'a> {
    let value = Cow::Borrowed(value);
    Op::Put {
        key,
        value,
        lease,
        prev_kv: false,
    }
}

fn write(client: &Client, key: &[u8], value: &[u8], deadline: Instant) -> Result<i64> {
    let success = vec![put(key, value, 0)];
    let txn = Txn {
        success,
        ..Txn::default()
    };
    client.txn(&txn, deadline).map(|answer| answer.header.revision)
}

fn read(client: &Client, key: &[u8], deadline: Instant) -> Result<Option<KeyValue>> {
    client
        .range(&Range::of(Keys::One(key)), deadline)
        .map(|ranged| ranged.kvs.into_iter().next())
}

#[test]
fn a_transaction_reads_compares_and_writes_in_one_revision() -> Outcome {
    let client = client(&CALM.location("txn"))?;
    let lease = client.lease_grant(4711, 60, soon())?;
    assert_eq!((lease.id, lease.ttl_s), (4711, 60));
    let absent = |keys| Compare {
        keys,
        target: Target::Create(0),
        result: Is::Equal,
    };
    let txn = Txn {
        compare: vec![absent(Keys::One(b"txn/a")), absent(Keys::Prefix(b"txn/"))],
        success: vec![put(b"txn/a", b"\0\xff", lease.id), put(b"txn/b", b"", 0)],
        failure: vec![Op::Range(Range::of(Keys::Prefix(b"txn/")))],
    };
    let done = client.txn(&txn, soon())?;
    assert!(done.succeeded && matches!(done.answers.as_slice(), [OpAnswer::Put { prev: None }, _]));

    // The same again finds what was written, and writes nothing.
    let again = client.txn(&txn, soon())?;
    let Some(OpAnswer::Range(found)) = again.answers.first() else {
        return Err(format!("{again:?}").into());
    };
    assert!(!again.succeeded);
    assert_eq!((found.count, found.more), (2, false));
    let created = KeyValue {
        key: b"txn/a".to_vec(),
        value: b"\0\xff".to_vec(),
        create_revision: done.header.revision,
        mod_revision: done.header.revision,
        version: 1,
        lease: lease.id,
    };
    assert_eq!(found.kvs.first(), Some(&created));
    assert_eq!(again.header.cluster_id, done.header.cluster_id);
    assert_ne!(done.header.cluster_id, 0);

    let newest = Range {
        limit: 1,
        order: Some((SortTarget::Key, SortOrder::Descend)),
        ..Range::of(Keys::Between(b"txn/a", b"txn/c"))
    };
    let newest = client.range(&newest, soon())?;
    assert_eq!(newest.kvs.first().map(|kv| &*kv.key), Some(&b"txn/b"[..]));
    assert!(newest.more && newest.count == 2);

    // A lease takes its keys along.
    assert_eq!(client.lease_keep_alive(lease.id, soon())?, Some(60));
    let left = client.lease_time_to_live(lease.id, soon())?;
    assert!(left.is_some_and(|left| left.granted_s == 60 && left.left_s > 0));
    assert_eq!(client.lease_revoke(lease.id, soon())?, Revoked::Ended);
    assert_eq!(client.lease_revoke(lease.id, soon())?, Revoked::NotThere);
    assert_eq!(client.lease_keep_alive(lease.id, soon())?, None);
    assert!(client.lease_time_to_live(lease.id, soon())?.is_none());
    assert_eq!(read(&client, b"txn/a", soon())?, None);
    let with_ended = Txn {
        success: vec![put(b"txn/a", b"", lease.id)],
        ..Txn::default()
    };
    let refused = client.txn(&with_ended, soon());
    assert!(
        matches!(
            &refused,
            Err(Error::Cluster {
                trouble: ClusterTrouble::LeaseNotFound,
                ..
            })
        ),
        "{refused:?}"
    );
    let delete = Op::Delete {
        keys: Keys::Prefix(b"txn/"),
        prev_kv: true,
    };
    let success = vec![delete];
    let deleted = client.txn(
        &Txn {
            success,
            ..Txn::default()
        },
        soon(),
    )?;
    assert!(matches!(deleted.answers.as_slice(), [OpAnswer::Delete { deleted: 1, prev }] if prev.len() == 1));
    assert!(client.status(soon())?.raft_index > 0);
    Ok(())
}

#[test]
fn a_lease_that_is_there_already_is_the_one_that_was_asked_for() -> Outcome {
    let client = client(&CALM.location("lease"))?;
    let first = client.lease_grant(815, 30, soon())?;
    let again = client.lease_grant(815, 30, soon())?;
    assert_eq!((again.id, again.ttl_s), (first.id, 30));
    Ok(())
}

#[test]
fn a_watch_hands_over_what_happened_since_and_what_happens() -> Outcome {
    let client = client(&CALM.location("watch"))?;
    let first = write(&client, b"watch/a", b"1", soon())?;
    write(&client, b"unwatched", b"", soon())?;
    write(&client, b"watch/a", b"2", soon())?;
    let mut seen = Vec::new();
    let mut hear = |_: &Header, events: &[Event]| {
        seen.extend(events.iter().map(|event| (event.kind, event.kv.value.clone())));
        // What comes next is caused by what came.
        let key = b"watch/b";
        let done = match seen.len() {
            2 => write(&client, key, b"3", soon()).is_err(),
            3 => {
                let (keys, prev_kv) = (Keys::One(key), false);
                let success = vec![Op::Delete { keys, prev_kv }];
                client
                    .txn(
                        &Txn {
                            success,
                            ..Txn::default()
                        },
                        soon(),
                    )
                    .is_err()
            }
            count => count > 3,
        };
        if done {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let watched = client.watch(&Keys::Prefix(b"watch/"), first, soon(), &|| false, &mut hear)?;
    assert_eq!(watched, Watched::Stopped);
    let put = |value: &[u8]| (EventKind::Put, value.to_vec());
    assert_eq!(seen, [put(b"1"), put(b"2"), put(b"3"), (EventKind::Delete, Vec::new())]);
    Ok(())
}

#[test]
fn a_watch_ends_with_its_deadline_and_with_an_interrupt() -> Outcome {
    let client = client(&CALM.location("quiet"))?;
    let keys = Keys::One(b"quiet/nothing");
    let mut nothing = |_: &Header, _: &[Event]| ControlFlow::Continue(());
    let started = Instant::now();
    let watched = client.watch(&keys, 0, within(300), &|| false, &mut nothing)?;
    assert_eq!(watched, Watched::TimeIsOver);
    assert!(started.elapsed() >= Duration::from_millis(300));

    // Whoever is asked may use the client. It says stop at the tenth time; without an end the test would hang.
    let asked = std::cell::Cell::new(0);
    let interrupted = || {
        asked.set(asked.get() + 1);
        asked.get() >= 10 && read(&client, b"quiet/other", soon()).is_ok()
    };
    let outcome = client.watch(&keys, 0, soon(), &interrupted, &mut nothing);
    assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
    assert_eq!(asked.get(), 10);
    Ok(())
}

#[test]
fn a_compacted_revision_is_no_error() -> Outcome {
    let cluster = Cluster::with(Setup {
        members: 1,
        ..Setup::default()
    });
    let client = client(&cluster.location("old"))?;
    let first = write(&client, b"a", b"1", soon())?;
    let last = write(&client, b"a", b"2", soon())?;
    cluster.etcdctl(["compact", &last.to_string()]).ok();
    let mut nothing = |_: &Header, _: &[Event]| ControlFlow::Continue(());
    let watched = client.watch(&Keys::One(b"a"), first, soon(), &|| false, &mut nothing)?;
    assert_eq!(watched, Watched::Compacted { at: last });
    Ok(())
}

#[test]
fn a_stopped_member_costs_a_part_of_the_wait_and_only_once() -> Outcome {
    let mut cluster = Cluster::start();
    let client = client(&cluster.location("stopped"))?;
    write(&client, b"a", b"1", soon())?;
    // The first of the location is asked first.
    cluster.stop(0);
    cluster.leader();
    let deadline = within(20_000);
    assert_eq!(read(&client, b"a", deadline)?.map(|kv| kv.value), Some(b"1".to_vec()));
    assert!(Instant::now() < deadline);
    // From now on the other ones are asked first.
    let others = client.members.in_turn();
    assert_eq!(others.last(), Some(&0), "{others:?}");
    write(&client, b"a", b"2", soon())?;
    cluster.go_on(0);
    Ok(())
}

#[test]
fn a_watch_does_not_stay_with_a_member_that_fell_silent() -> Outcome {
    let mut cluster = Cluster::start();
    let client = client(&cluster.location("silent"))?;
    // Its write is not to depend on the member that is stopped.
    let other = super::Client::new(Location::parse(&format!("etcd://{}/silent", cluster.endpoint(1)))?)?;
    let first = write(&client, b"a", b"1", soon())?;
    let mut seen = Vec::new();
    let mut hear = |_: &Header, events: &[Event]| {
        if seen.is_empty() {
            // We listen to this one.
            cluster.stop(0);
            cluster.leader();
            if write(&other, b"a", b"2", soon()).is_err() {
                return ControlFlow::Break(());
            }
        }
        seen.extend(events.iter().map(|event| event.kv.value.clone()));
        if seen.len() < 2 {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    client.watch(&Keys::One(b"a"), first, soon(), &|| false, &mut hear)?;
    assert_eq!(seen, [b"1".to_vec(), b"2".to_vec()]);
    cluster.go_on(0);
    Ok(())
}

#[test]
fn a_lost_answer_to_a_write_is_told_and_to_a_question_asked_again() -> Outcome {
    let proxy = Proxy::to(CALM.endpoint(0));
    let client = client(&format!("etcd://{}/lost", proxy.endpoint()))?;
    write(&client, b"lost/a", b"1", soon())?;
    proxy.lose_answers(1);
    let lost = write(&client, b"lost/a", b"2", soon());
    assert!(matches!(lost, Err(Error::UnknownOutcome { .. })), "{lost:?}");
    // It was done, once.
    let found = read(&client, b"lost/a", soon())?.ok_or("it is there")?;
    assert_eq!((&*found.value, found.version), (&b"2"[..], 2));

    proxy.lose_answers(2);
    assert_eq!(read(&client, b"lost/a", soon())?, Some(found));
    proxy.lose_answers(1);
    assert_eq!(client.lease_grant(99, 60, soon())?.ttl_s, 60);
    proxy.lose_answers(1);
    assert_eq!(client.lease_keep_alive(99, soon())?, Some(60));
    assert_eq!(proxy.lost(), 5);
    Ok(())
}

#[test]
fn a_slow_member_is_waited_for_and_a_hanging_one_ends_in_time() -> Outcome {
    let proxy = Proxy::to(CALM.endpoint(1));
    let client = client(&format!("etcd://{}/slow", proxy.endpoint()))?;
    proxy.delay(Duration::from_millis(100));
    write(&client, b"slow/a", b"1", soon())?;

    proxy.delay(Duration::from_secs(3600));
    let started = Instant::now();
    let outcome = read(&client, b"slow/a", within(500));
    let error = outcome.err().ok_or("nobody answered")?;
    assert!(started.elapsed() >= Duration::from_millis(500));
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(error.code(), rusqlite::ffi::SQLITE_BUSY);
    let message = error.to_string();
    assert!(
        message.contains(&proxy.endpoint()) && message.contains("no answer within"),
        "{message}"
    );
    Ok(())
}

#[test]
fn without_a_quorum_nothing_is_done_and_the_error_comes_in_time() -> Outcome {
    let mut cluster = Cluster::start();
    let client = client(&cluster.location("quorum"))?;
    write(&client, b"a", b"1", soon())?;
    cluster.kill(0);
    cluster.kill(2);
    let deadline = within(3_000);
    let error = read(&client, b"a", deadline).err().ok_or("nobody may answer")?;
    assert!(Instant::now() < deadline + Duration::from_secs(30));
    assert_eq!(error.code(), rusqlite::ffi::SQLITE_BUSY, "{error}");
    // And with the quorum back it goes on within one call.
    cluster.restart(0);
    write(&client, b"a", b"2", soon())?;
    Ok(())
}

#[test]
fn a_call_rides_out_the_death_of_the_leader() -> Outcome {
    let mut cluster = Cluster::start();
    let client = client(&cluster.location("leader"))?;
    for round in 0..3 {
        let value = [round];
        write(&client, b"a", &value, soon())?;
        let leader = cluster.leader();
        cluster.kill(leader);
        assert_eq!(read(&client, b"a", soon())?.map(|kv| kv.value), Some(value.to_vec()));
        cluster.restart(leader);
        cluster.wait_until_back(leader);
    }
    Ok(())
}

#[test]
fn a_user_needs_the_password_and_a_token_is_renewed() -> Outcome {
    let mut cluster = Cluster::with(Setup {
        members: 1,
        ..Setup::default()
    });
    let anonymous = client(&cluster.location("user"))?;
    // A user does no harm where nobody asks for one.
    let as_root = cluster.location("user").replace("etcd://", "etcd://root:s%40cret@");
    let early = client(&as_root)?;
    write(&early, b"user/a", b"1", soon())?;

    cluster.etcdctl(["user", "add", "root:s@cret"]).ok();
    cluster.etcdctl(["user", "grant-role", "root", "root"]).ok();
    cluster.etcdctl(["auth", "enable"]).ok();
    write(&early, b"user/a", b"2", soon())?;
    let refused = |client: &Client| {
        let error = read(client, b"user/a", soon()).map_err(|error| (error.code(), error.to_string()));
        assert!(
            matches!(&error, Err((code, text)) if *code == rusqlite::ffi::SQLITE_AUTH && !text.contains("cret")),
            "{error:?}"
        );
    };
    refused(&anonymous);
    refused(&client(&as_root.replace("s%40cret", "s%40cretly"))?);

    // A token of the kind that is the default dies with the member that gave it.
    cluster.kill(0);
    cluster.restart(0);
    assert_eq!(read(&early, b"user/a", soon())?.map(|kv| kv.value), Some(b"2".to_vec()));
    let stop = AtomicBool::new(false);
    let mut hear = |_: &Header, _: &[Event]| ControlFlow::Break(());
    let interrupted = || stop.load(Ordering::Relaxed);
    early.set_token(Token::Is(Arc::from("no token")));
    let watched = early.watch(&Keys::One(b"user/a"), 1, soon(), &interrupted, &mut hear)?;
    assert_eq!(watched, Watched::Stopped);
    Ok(())
}

#[test]
fn tls_needs_the_clusters_authority_and_our_certificate() -> Outcome {
    let certificates = Arc::new(Certificates::new());
    let cluster = Cluster::with(Setup {
        members: 1,
        certificates: Some(Arc::clone(&certificates)),
        ..Setup::default()
    });
    let location = cluster.location("tls");
    let with = |certificates: &Certificates| -> Result<Client> {
        let (certificate, key) = (certificates.client(), certificates.client_key());
        let tls = tls::configure(&certificates.ca(), Some(&certificate), Some(&key));
        Ok(Client::over(Location::parse(&location)?, tls.ok()))
    };
    let ours = with(&certificates)?;
    let revision = write(&ours, b"tls/a", b"1", soon())?;
    let mut hear = |_: &Header, _: &[Event]| ControlFlow::Break(());
    let watched = ours.watch(&Keys::One(b"tls/a"), revision, soon(), &|| false, &mut hear)?;
    assert_eq!(watched, Watched::Stopped);
    let watched = ours.watch(&Keys::One(b"tls/a"), 0, within(300), &|| false, &mut hear)?;
    assert_eq!(watched, Watched::TimeIsOver);

    // Another authority's member, and its certificate.
    let strange = read(&with(&Certificates::new())?, b"tls/a", within(1_000));
    let no_trust = |outcome: Result<Option<KeyValue>>| {
        let error = outcome.map_err(|error| (error.code(), error.to_string()));
        assert!(
            matches!(&error, Err((14, text)) if text.contains("no trust: ") && text.contains("FENCE_ETCD_CACERT")),
            "{error:?}"
        );
    };
    no_trust(strange);
    let unset = Client::new(Location::parse(&location)?).map_err(|error| (error.code(), error.to_string()));
    assert!(
        matches!(&unset, Err((14, text)) if text.contains("FENCE_ETCD_CACERT")),
        "{unset:?}"
    );
    // No certificate of ours: the member refuses.
    let tls = tls::configure(&certificates.ca(), None, None)?;
    let bare = Client::over(Location::parse(&location)?, Some(tls));
    no_trust(read(&bare, b"tls/a", within(1_000)));
    // It may hang up before it said why; then nobody knows, but it was not done.
    let written = write(&bare, b"tls/a", b"2", within(1_000)).map_err(|error| error.code());
    assert!(matches!(written, Err(14 | 10)), "{written:?}");
    let found = read(&ours, b"tls/a", soon())?.map(|kv| kv.value);
    assert_eq!(found.as_deref(), Some(&b"1"[..]));
    // Certificate and key that do not belong together.
    let mixed = tls::configure(
        &certificates.ca(),
        Some(&certificates.client()),
        Some(&certificates.server_key()),
    );
    assert!(
        matches!(&mixed, Err(text) if text.contains("FENCE_ETCD_KEY")),
        "{mixed:?}"
    );
    Ok(())
}
