//! A slow or broken line to a member: a proxy on loopback that delays what it passes on, or cuts it off.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// A line to somewhere. Ends with the value.
#[derive(Debug)]
pub struct Proxy {
    at: SocketAddr,
    line: Arc<Line>,
}

#[derive(Debug, Default)]
struct Line {
    delay_ms: AtomicU64,
    /// How many more answers are to arrive before those that are to be lost, and how many these are.
    sparing: AtomicUsize,
    losing: AtomicUsize,
    lost: AtomicUsize,
    over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A line to `target`, `host:port`, that passes everything on at once.
    ///
    /// # Panics
    ///
    /// When there is no port for it.
    pub fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("its address");
        let line = Arc::new(Line::default());
        let shared = Arc::clone(&line);
        spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                // A target that is dead answers nobody.
                let Ok(member) = TcpStream::connect(&target) else {
                    continue;
                };
                shared.connect(caller, member);
            }
        });
        Self { at, line }
    }

    /// Where it listens: `127.0.0.1:port`.
    pub fn endpoint(&self) -> String {
        self.at.to_string()
    }

    /// From now on everything that is passed on comes later by this, in both directions.
    pub fn delay(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).expect("not that long");
        self.line.delay_ms.store(ms, Ordering::SeqCst);
    }

    /// The next `count` answers do not arrive; instead their connections end. What was asked is passed on before.
    pub fn lose_answers(&self, count: usize) {
        self.lose_answers_after(0, count);
    }

    /// The same, after `spared` answers that arrive.
    pub fn lose_answers_after(&self, spared: usize, count: usize) {
        self.line.losing.store(0, Ordering::SeqCst);
        self.line.sparing.store(spared, Ordering::SeqCst);
        self.line.losing.store(count, Ordering::SeqCst);
    }

    /// How many answers were lost so far.
    pub fn lost(&self) -> usize {
        self.line.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.line.over.store(true, Ordering::SeqCst);
        // Wakes who waits for callers.
        drop(TcpStream::connect(self.at));
        for stream in self.line.open().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Line {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(self: &Arc<Self>, caller: TcpStream, member: TcpStream) {
        let ends = [&caller, &member].map(|end| end.try_clone().expect("a copy"));
        self.open().extend(ends);
        let (to_member, to_caller) = (member.try_clone().expect("a copy"), caller.try_clone().expect("a copy"));
        let (asking, answering) = (Arc::clone(self), Arc::clone(self));
        spawn(move || asking.pass(caller, to_member, false));
        spawn(move || answering.pass(member, to_caller, true));
    }

    /// Passes on what comes, until one end closes.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, answers: bool) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(amount @ 1..) = from.read(&mut bytes) {
            sleep(Duration::from_millis(self.delay_ms.load(Ordering::SeqCst)));
            let one_less = |of: &AtomicUsize| {
                let less = |left: usize| left.checked_sub(1);
                of.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
            };
            if answers && !one_less(&self.sparing) && one_less(&self.losing) {
                self.lost.fetch_add(1, Ordering::SeqCst);
                break;
            }
            if to.write_all(&bytes[..amount]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
