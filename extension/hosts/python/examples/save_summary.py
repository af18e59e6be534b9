"""Saves a summary under a hold, and shows that a late holder is refused.

    pip install dist/sqlite_fence-*.whl
    python save_summary.py

Two workers on one app.db. The first takes `summaries:42` and its process stands still for longer than its lease lasts,
as a long garbage collection or a moved virtual machine makes it. The second takes the key and saves. The first comes
back, believes that it still holds the key, and saves as well.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile

from sqlite_fence import LeaseLost, Locks

CHAT = 42


def work(name: str, ttl_ms: int, pause: bool) -> None:
    """What a worker does; everything else here is the story around it."""
    db = sqlite3.connect("app.db", isolation_level=None)
    summaries = Locks("kv.db").lock("summaries", ttl_ms=ttl_ms)
    try:
        with summaries.hold(CHAT) as lease:
            summary = f"what {name} found"
            if pause:
                os.kill(os.getpid(), signal.SIGSTOP)  # Stands still, until somebody lets it go on.
            saved = db.execute(
                "update chats set summary = ?, summary_fence = ? where id = ? and summary_fence < ?",
                (summary, lease.padded, CHAT, lease.padded),
            )
            print(f"{name}: changes {saved.rowcount}", flush=True)
    except LeaseLost:
        print(f"{name}: the lease was lost", flush=True)


def story() -> None:
    os.chdir(tempfile.mkdtemp())
    db = sqlite3.connect("app.db", isolation_level=None)
    db.execute("create table chats (id integer primary key, summary text, summary_fence text not null default '')")
    db.execute("insert into chats (id) values (?)", (CHAT,))

    first = subprocess.Popen([sys.executable, __file__, "first", "300", "pause"])
    os.waitpid(first.pid, os.WUNTRACED)  # It holds the key and stands still.
    work("second", ttl_ms=30_000, pause=False)  # Waits until the lease of the first has run out.
    first.send_signal(signal.SIGCONT)
    first.wait()

    print("stayed:", db.execute("select summary from chats").fetchone()[0])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        story()
    else:
        work(sys.argv[1], ttl_ms=int(sys.argv[2]), pause=sys.argv[3:] == ["pause"])
