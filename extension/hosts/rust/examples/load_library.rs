//! Loads the library into a connection of one's own, for a program that speaks SQL and wants no crate for its locks.
//!
//! ```sh
//! cargo add rusqlite --features bundled,load_extension
//! cargo run -- path/to/fence.so
//! ```
//!
//! Each connection that is to have the functions loads them: here a function opens one that has them, for a pool to call.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;

use rusqlite::Connection;

// [how]
/// A connection with the functions.
fn open(database: &Path, library: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open(database)?;
    // SAFETY: the library is the one that this program means to load, and no other extension may be loaded afterwards.
    unsafe {
        db.load_extension_enable()?;
        db.load_extension(library, None::<&str>)?;
    }
    db.load_extension_disable()?;
    Ok(db)
}
// [end]

/// Runs the work in a child made by fork; gives what it wrote.
fn in_a_child(work: impl FnOnce() -> rusqlite::Result<String>) -> Result<String, Box<dyn Error>> {
    let (mut reader, mut writer) = std::io::pipe()?;
    // SAFETY: this process has no other thread now, so the child may do all that the parent may. It neither uses nor drops
    // its parent's connections, for it ends by `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().into()),
        0 => {
            let wrote = work().map(|text| writer.write_all(text.as_bytes()));
            // SAFETY: it does not return.
            unsafe { libc::_exit(i32::from(!matches!(wrote, Ok(Ok(()))))) }
        }
        child => {
            drop(writer);
            let mut text = String::new();
            reader.read_to_string(&mut text)?;
            let mut status = -1;
            // SAFETY: `status` lives through the call.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            if status == 0 {
                Ok(text)
            } else {
                Err(format!("the child ended with {status}").into())
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let library = std::env::args().nth(1).ok_or("give the path of the library")?;
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("app.db");
    let open = || open(&database, Path::new(&library));
    let db = open()?;
    let sqlite: String = db.query_row("select sqlite_version()", (), |row| row.get(0))?;
    println!("SQLite {sqlite}");
    db.execute_batch(
        "create table chats (id integer primary key, summary text, summary_fence text not null default '');
         insert into chats (id) values (42)",
    )?;

    let fence: Option<String> = db.query_row("select fence_acquire('chat:42', 30000)", (), |row| row.get(0))?;
    let fence = fence.ok_or("somebody else holds it")?;
    let save = "update chats set summary = ?1, summary_fence = fence_pad(?2)
                 where id = 42 and fence_ok(summary_fence, ?2)";
    assert_eq!(db.execute(save, ("a summary", &fence))?, 1);
    assert_eq!(db.execute(save, ("too late", "7"))?, 0);
    let released: i64 = db.query_row("select fence_release('chat:42', ?1)", [&fence], |row| row.get(0))?;
    assert_eq!(released, 1);

    // Eight threads with a connection each, all on one store.
    let hold = || -> rusqlite::Result<String> {
        let db = open()?;
        let fence: String = db.query_row("select fence_acquire('turn', 30000, 60000)", (), |row| row.get(0))?;
        db.query_row("select fence_release('turn', ?1)", [&fence], |row| row.get::<_, i64>(0))?;
        Ok(fence)
    };
    let mut fences: BTreeSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(hold)).collect();
        let fences = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| rusqlite::Error::InvalidQuery)?);
        fences.collect::<rusqlite::Result<_>>()
    })?;
    assert_eq!(fences.len(), 8);

    // Children made by fork open connections of their own; the parent's lease stands.
    let parents: String = db.query_row("select fence_acquire('parent', 30000)", (), |row| row.get(0))?;
    for _ in 0..4 {
        fences.insert(in_a_child(hold)?);
        let renewed: i64 = db.query_row("select fence_renew('parent', ?1)", [&parents], |row| row.get(0))?;
        assert_eq!(renewed, 1);
    }
    assert_eq!(fences.len(), 8 + 4);

    let plain = Connection::open_in_memory()?;
    plain.load_extension_disable()?;
    // SAFETY: as above.
    let unasked = unsafe { plain.load_extension(&library, None::<&str>) };
    for (what, went) in [
        ("after load_extension_disable", unasked),
        (
            "in a connection that did not load it",
            plain.execute_batch("select fence_acquire('k')"),
        ),
        (
            "a fence as an f64",
            db.query_row("select fence_pad(?1)", [3.313_283_897_748_349e31], |_| Ok(())),
        ),
    ] {
        match went {
            Err(error) => println!(
                "wrong: {what}: {}",
                error.to_string().lines().next().unwrap_or_default()
            ),
            Ok(()) => return Err(format!("{what} went well").into()),
        }
    }
    println!("ok");
    Ok(())
}
