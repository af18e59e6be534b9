//! Saves a summary under a hold, and shows that a late holder is refused.
//!
//! ```sh
//! cargo add --path dist/fence-core
//! cargo add rusqlite@0.40 --features bundled
//! cargo add rustix@1 --features process
//! cargo add tempfile@3
//! cargo run
//! ```
//!
//! Two workers on one app.db. The first takes `summaries:42` and its process stands still for longer than its lease
//! lasts, as a moved virtual machine or a container out of its CPU quota makes it. The second takes the key and saves.
//! The first comes back, believes that it still holds the key, and saves as well.

use std::error::Error;
use std::process::Command;

use fence_core::{Error as FenceError, Store, Ttl};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

const CHAT: i64 = 42;

/// What a worker does; everything else here is the story around it.
fn work(name: &str, ttl: Ttl, pause: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let db = Connection::open("app.db")?;
    let summaries = Store::open("kv.db")?.lock("summaries").ttl(ttl);
    let held = summaries.hold(CHAT, |lease| -> Result<(), Box<dyn Error>> {
        let summary = format!("what {name} found");
        pause()?;
        let fence = format!("{:040}", lease.fence().get());
        let changes = db.execute(
            "update chats set summary = ?1, summary_fence = ?2 where id = ?3 and summary_fence < ?2",
            (summary, &fence, CHAT),
        )?;
        println!("{name}: changes {changes}");
        Ok(())
    });
    match held {
        Err(error) if matches!(error.downcast_ref(), Some(FenceError::LeaseLost { .. })) => {
            println!("{name}: the lease was lost");
            Ok(())
        }
        other => other,
    }
}

fn story() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    std::env::set_current_dir(&folder)?;
    let db = Connection::open("app.db")?;
    db.execute_batch(
        "create table chats (id integer primary key, summary text, summary_fence text not null default '')",
    )?;
    db.execute("insert into chats (id) values (?1)", [CHAT])?;

    let mut first = Command::new(std::env::current_exe()?).arg("first").spawn()?;
    let process = Pid::from_child(&first);
    waitpid(Some(process), WaitOptions::UNTRACED)?; // It holds the key and stands still.
    work("second", Ttl::default(), || Ok(()))?; // Waits until the lease of the first has run out.
    kill_process(process, Signal::CONT)?;
    first.wait()?;

    let stayed: String = db.query_row("select summary from chats", (), |row| row.get(0))?;
    println!("stayed: {stayed}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        None => story(),
        // Stands still, until somebody lets it go on.
        Some(name) => work(&name, Ttl::new(300)?, || Ok(kill_process(getpid(), Signal::STOP)?)),
    }
}
