//! `hold` in Rust, against other processes on the same store.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

use fence_core::{AcquireOptions, Delay, Error, Fence, HoldKind, Store, Ttl, Wait};
use fence_tests::{DEADLINE, LONG, Line, Session, folder, shell_in, wait_until};
use rusqlite::Connection;

/// The error of a program that uses all of it.
#[derive(Debug)]
enum AppError {
    Fence(Error),
    Database(rusqlite::Error),
    Model(&'static str),
}

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fence(error) => error.fmt(f),
            Self::Database(error) => error.fmt(f),
            Self::Model(complaint) => complaint.fmt(f),
        }
    }
}

impl From<Error> for AppError {
    fn from(error: Error) -> Self {
        Self::Fence(error)
    }
}

impl From<rusqlite::Error> for AppError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The store of this folder, and a shell of another process on it.
fn both(folder: &tempfile::TempDir) -> (Store, Session) {
    let store = Store::open(folder.path().join("kv.db")).expect("a store");
    (store, shell_in(folder))
}

fn milliseconds(ttl: i64) -> Ttl {
    Ttl::new(ttl).expect("a ttl")
}

/// What the other process sees of the key.
fn kind(shell: &mut Session, key: &str) -> String {
    shell.ask(&format!("select kind from fence_leases where key = '{key}'"))
}

/// The model, which only the first of these tests asks.
struct Model;

impl Model {
    fn summarize(&self, history: &str) -> Result<String, AppError> {
        match history {
            "" => Err(AppError::Model("nothing to summarize")),
            history => Ok(format!("in short: {history}")),
        }
    }
}

#[test]
fn the_example_of_the_documentation_saves_under_its_fence() {
    let run = || -> Result<(), AppError> {
        let folder = folder();
        let (store, mut other) = both(&folder);
        let model = Model;
        let db = Connection::open(folder.path().join("app.db"))?;
        db.execute_batch(
            "create table chats (id integer primary key, summary text, summary_fence text not null default '');
             insert into chats (id) values (42)",
        )?;
        let chat_id = String::from("42");
        let history = |_: &str| -> Result<String, AppError> { Ok("a long talk".to_owned()) };

        let summaries = store.lock("summaries");
        summaries.hold(&chat_id, |lease| -> Result<(), AppError> {
            let summary = model.summarize(&history(&chat_id)?)?;
            let fence = format!("{:040}", lease.fence().get());
            db.execute(
                "update chats set summary = ?1, summary_fence = ?2 where id = ?3 and summary_fence < ?2",
                (summary, &fence, &chat_id),
            )?;
            Ok(())
        })?;

        assert_eq!(other.ask("select summary from chats"), "in short: a long talk");
        assert_eq!(other.ask("select length(summary_fence) from chats"), "40");
        assert_eq!(other.ask("select count(*) from fence_leases"), "0", "it was released");
        let fence = other.ask("select fence_acquire('summaries:42')");
        assert_eq!(
            other.ask(&format!("select fence_newer(summary_fence, '{fence}') from chats")),
            "1",
            "it is the same key in SQL, and the next holder is newer"
        );
        Ok(())
    };
    run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_hold_is_released_at_its_end_on_an_error_and_on_a_panic() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let lock = store.lock("job");
    let held = |other: &mut Session| {
        assert_eq!(kind(other, "job:7"), "lease");
        assert_eq!(other.ask("select fence_acquire('job:7')"), "NULL");
    };
    let free = |other: &mut Session| assert_eq!(kind(other, "job:7"), "");

    let answer = lock.hold(7, |_| {
        held(&mut other);
        Ok::<_, Error>("done")
    });
    assert!(matches!(answer, Ok("done")), "{answer:?}");
    free(&mut other);

    let answer = lock.hold(7, |_| -> Result<(), AppError> {
        held(&mut other);
        Model.summarize("").map(drop)
    });
    assert!(
        matches!(answer, Err(AppError::Model("nothing to summarize"))),
        "{answer:?}"
    );
    free(&mut other);

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        lock.hold(7, |_| -> Result<(), Error> {
            held(&mut other);
            resume_unwind(Box::new("the work panics"));
        })
    }));
    let payload = panicked.expect_err("it goes on to the caller");
    assert_eq!(payload.downcast_ref(), Some(&"the work panics"));
    free(&mut other);
}

#[test]
fn lock_06_a_hold_that_is_let_go_leaves_no_delay_behind() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let lock = store.lock("job").delay(Delay::new(60_000).expect("a delay"));
    lock.hold("a", |_| {
        assert_eq!(other.ask("select delay_ms from fence_leases"), "60000");
        Ok::<_, Error>(())
    })
    .expect("it is held to its end");
    assert_eq!(kind(&mut other, "job:a"), "");
}

#[test]
fn a_hold_is_renewed_for_as_long_as_the_work_takes() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let ttl = 1_500;
    let answer = store.lock("job").ttl(milliseconds(ttl)).hold(7, |lease| {
        // Each time that more is left than before, it was renewed. Four times a third of the ttl is longer than the ttl.
        let (mut renewals, mut before) = (0, i64::MAX);
        wait_until("it was renewed four times", || {
            let left = other.ask("select remaining_ms from fence_leases where key = 'job:7'");
            let left: i64 = left.parse().expect("it is held all the time");
            renewals += i32::from(left > before);
            before = left;
            renewals == 4
        });
        assert!(!lease.is_lost());
        assert_eq!(
            other.ask("select fence from fence_leases where key = 'job:7'"),
            lease.fence().to_string(),
            "it is the same lease"
        );
        Ok::<_, Error>(())
    });
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(kind(&mut other, "job:7"), "");
}

#[test]
fn a_lost_lease_is_told_to_the_work_and_to_the_caller_and_is_never_taken_anew() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let mut fences = (None::<Fence>, String::new());
    let answer = store.lock("job").ttl(milliseconds(600)).hold("k", |lease| {
        fences.0 = Some(lease.fence());
        let (tell, told) = mpsc::channel();
        let again = tell.clone();
        lease.on_lost(move || tell.send("first").unwrap_or_default());
        lease.on_lost(|| resume_unwind(Box::new("one that panics")));
        lease.on_lost(move || again.send("second").unwrap_or_default());
        assert!(!lease.is_lost());
        // As if its time had run out: somebody who knows its fence ends it, and another one takes the key.
        assert_eq!(
            other.ask(&format!("select fence_release('job:k', '{}')", lease.fence())),
            "1"
        );
        fences.1 = other.ask(&format!("select fence_acquire('job:k', {LONG})"));
        assert_eq!(told.recv_timeout(DEADLINE), Ok("first"));
        assert_eq!(told.recv_timeout(DEADLINE), Ok("second"));
        assert!(lease.is_lost());
        let (tell, told) = mpsc::channel();
        lease.on_lost(move || tell.send("at once").unwrap_or_default());
        assert_eq!(told.try_recv(), Ok("at once"));
        Ok::<_, Error>("the work does not know")
    });
    let (lost, others) = fences;
    match answer {
        Err(Error::LeaseLost { key, fence }) => {
            assert_eq!((key.as_str(), Some(fence)), ("'job:k'", lost));
        }
        other => panic!("not LeaseLost: {other:?}"),
    }
    assert_eq!(
        other.ask("select key, fence, remaining_ms > 600 from fence_leases"),
        format!("job:k|{others}|1"),
        "the other one's lease is untouched"
    );
}

#[test]
fn a_lost_lease_says_so_even_if_nobody_asks_and_an_error_of_the_work_comes_first() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let lock = store.lock("job");
    let mut lose = |fence: Fence| {
        assert_eq!(other.ask(&format!("select fence_release('job:k', '{fence}')")), "1");
    };
    // It is lost after the last renewal: only the release finds out.
    let answer = lock.hold("k", |lease| {
        lose(lease.fence());
        Ok::<_, Error>(())
    });
    assert!(matches!(answer, Err(Error::LeaseLost { .. })), "{answer:?}");
    let answer = lock.hold("k", |lease| -> Result<(), AppError> {
        lose(lease.fence());
        Err(AppError::Model("an error of its own"))
    });
    assert!(
        matches!(answer, Err(AppError::Model("an error of its own"))),
        "{answer:?}"
    );
}

#[test]
fn a_lease_that_could_not_be_renewed_in_time_is_lost_by_the_clock_and_stays_lost() {
    let folder = folder();
    let (store, _) = both(&folder);
    let mut line = Line::of(&folder);
    let answer = store.lock("job").ttl(milliseconds(60)).hold("k", |lease| {
        let (tell, told) = mpsc::channel();
        lease.on_lost(move || tell.send(()).unwrap_or_default());
        // Nobody can write to kv.db, so the renewal has to wait.
        assert_eq!(line.store("begin immediate"), "");
        wait_until("its time has run out", || lease.is_lost());
        assert_eq!(line.store("rollback"), "");
        assert_eq!(told.recv_timeout(DEADLINE), Ok(()));
        assert!(lease.is_lost());
        Ok::<_, Error>(())
    });
    assert!(matches!(answer, Err(Error::LeaseLost { .. })), "{answer:?}");
}

#[test]
fn a_key_that_somebody_else_holds_is_waited_for_and_then_it_is_an_error_and_the_work_does_not_run() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let lock = store.lock("job").wait(Wait::new(40).expect("a wait"));
    let held = other.ask(&format!("select fence_acquire('job:k', {LONG})"));
    let never = |_: &fence_core::HeldLease| -> Result<(), Error> { panic!("the work ran") };
    match lock.hold("k", never) {
        Err(Error::Held { key, waited_ms }) => assert_eq!((key.as_str(), waited_ms), ("'job:k'", 40)),
        other => panic!("not Held: {other:?}"),
    }
    assert!(matches!(lock.try_hold("k", never), Ok(None)));
    assert_eq!(lock.acquire("k").expect("a store"), None);

    // In line, like everybody else.
    let waiting = std::thread::spawn({
        let lock = lock.wait(Wait::MAX);
        move || lock.hold("k", |lease| Ok::<_, Error>(lease.fence()))
    });
    Line::of(&folder).becomes(1);
    assert_eq!(other.ask(&format!("select fence_release('job:k', '{held}')")), "1");
    let fence = waiting.join().expect("no panic").expect("it was granted");
    assert!(fence.to_string().parse::<u128>().ok() > held.parse::<u128>().ok());
}

#[test]
fn what_is_acquired_without_hold_is_left_to_the_caller() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let lock = store.lock("job").ttl(milliseconds(60_000)).bound(true);
    let lease = lock.acquire(7).expect("a store").expect("free");
    assert_eq!(lease.key(), "job:7");
    assert_eq!(
        other.ask("select kind, bound, remaining_ms <= 60000 from fence_leases"),
        "lease|1|1"
    );
    drop((lock, lease.clone()));
    assert_eq!(kind(&mut other, "job:7"), "lease", "dropping it releases nothing");
    assert!(store.release(lease.key(), lease.fence()).expect("a store"));
}

#[test]
fn the_defaults_of_a_lock_are_thirty_seconds_of_ttl_and_of_wait_no_delay_and_unbound() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let lease = store.lock("job").acquire("k").expect("a store").expect("free");
    assert_eq!(
        other.ask("select remaining_ms between 20000 and 30000, delay_ms, bound from fence_leases"),
        "1|0|0"
    );
    let waiting = std::thread::spawn({
        let lock = store.lock("job");
        move || lock.hold("k", |_| Ok::<_, Error>(()))
    });
    Line::of(&folder).becomes(1);
    assert!(store.release(lease.key(), lease.fence()).expect("a store"));
    waiting.join().expect("no panic").expect("it waited");
}

#[test]
fn sem_01_a_semaphore_is_held_by_so_many_and_let_go_at_the_end_on_an_error_and_on_a_panic() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let gpu = store.semaphore("gpu", 2).wait(Wait::MIN);
    let live = |other: &mut Session| other.ask("select count(*) from fence_leases where kind = 'permit'");
    let answer = gpu.hold(|one| {
        gpu.hold(|two| {
            assert_ne!(one.id(), two.id());
            assert_eq!(live(&mut other), "2");
            assert_eq!(other.ask("select semaphore_acquire('gpu', 2)"), "NULL");
            let third = gpu.hold(|_| Ok::<_, Error>(()));
            assert!(matches!(third, Err(Error::Held { .. })), "{third:?}");
            assert!(matches!(gpu.try_hold(|_| Ok::<_, Error>(())), Ok(None)));
            assert_eq!(gpu.acquire()?, None);
            Ok::<_, Error>(())
        })
    });
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(live(&mut other), "0");

    let answer = gpu.hold(|_| Err::<(), _>(AppError::Model("an error")));
    assert!(matches!(answer, Err(AppError::Model("an error"))), "{answer:?}");
    assert_eq!(live(&mut other), "0");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        gpu.hold(|_| -> Result<(), Error> { resume_unwind(Box::new("the work panics")) })
    }));
    assert!(panicked.is_err());
    assert_eq!(live(&mut other), "0");
    for limit in [0, -1, 1_000_001] {
        let nothing = store.semaphore("gpu", limit);
        assert!(matches!(nothing.acquire(), Err(Error::OutOfRange { .. })));
        assert!(matches!(
            nothing.hold(|_| Ok::<_, Error>(())),
            Err(Error::OutOfRange { .. })
        ));
    }
}

#[test]
fn a_held_permit_is_renewed_and_a_lost_one_says_so() {
    let folder = folder();
    let (store, mut other) = both(&folder);
    let gpu = store.semaphore("gpu", 1).ttl(milliseconds(600));
    let mut lost = None;
    let answer = gpu.hold(|permit| {
        let (mut renewals, mut before) = (0, i64::MAX);
        wait_until("it was renewed four times", || {
            let left: i64 = other
                .ask("select remaining_ms from fence_leases")
                .parse()
                .expect("it is held");
            renewals += i32::from(left > before);
            before = left;
            renewals == 4
        });
        assert!(!permit.is_lost());
        lost = Some(permit.id());
        let (tell, told) = mpsc::channel();
        permit.on_lost(move || tell.send(()).unwrap_or_default());
        assert_eq!(
            other.ask(&format!("select semaphore_release('gpu', '{}')", permit.id())),
            "1"
        );
        assert_ne!(
            other.ask(&format!("select semaphore_acquire('gpu', 1, {LONG})")),
            "NULL"
        );
        assert_eq!(told.recv_timeout(DEADLINE), Ok(()));
        assert!(permit.is_lost());
        Ok::<_, Error>(())
    });
    match answer {
        Err(Error::PermitLost { key, permit }) => assert_eq!((key.as_str(), Some(permit)), ("'gpu'", lost)),
        other => panic!("not PermitLost: {other:?}"),
    }
    let holds: Vec<_> = store.holds().expect("a store").collect::<Result<_, _>>().expect("rows");
    assert_eq!(holds.len(), 1, "the other one's permit is untouched");
    assert_eq!(holds[0].kind, HoldKind::Permit);
    let one_more = store.acquire_permit("gpu", fence_core::Limit::MIN, &AcquireOptions::default(), &|| false);
    assert_eq!(one_more.expect("a store"), None);
}
