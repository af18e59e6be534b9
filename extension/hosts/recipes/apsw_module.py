"""apsw, which brings a SQLite of its own."""

import sqlite3
import sys
import threading

import apsw

library = sys.argv[1]


# [how]
def connect(database):
    db = apsw.Connection(database)
    db.enable_load_extension(True)
    db.load_extension(library)
    db.enable_load_extension(False)
    return db


# Or for every connection that the process opens from now on:
# apsw.connection_hooks.append(load)
# [end]
def one(db, sql, *parameters):
    ((answer,),) = db.execute(sql, parameters).fetchall()
    return answer


def wrong(what, do):
    try:
        do()
    except Exception as error:
        print(f"wrong: {what}: {type(error).__name__}: {error}")
    else:
        raise AssertionError(f"{what} went well")


print("SQLite", apsw.sqlite_lib_version())
db = connect("app.db")
db.execute("create table chats (id integer primary key, summary text, summary_fence text not null default '')")
db.execute("insert into chats (id) values (42)")
fence = one(db, "select fence_acquire('chat:42', 30000)")
save = "update chats set summary = ?1, summary_fence = fence_pad(?2) where id = 42 and fence_ok(summary_fence, ?2)"
db.execute(save, ("a summary", fence))
assert db.changes() == 1
db.execute(save, ("too late", "7"))
assert db.changes() == 0
assert one(db, "select fence_release('chat:42', ?)", fence) == 1

fences = []


def turn():
    db = connect("app.db")
    fence = one(db, "select fence_acquire('turn', 30000, 60000)")
    assert one(db, "select fence_release('turn', ?)", fence) == 1
    fences.append(fence)
    db.close()


threads = [threading.Thread(target=turn) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(fences)) == 8

# The second SQLite of a process is refused, and the first one works on.
other = sqlite3.connect(":memory:")
other.enable_load_extension(True)
if sqlite3.sqlite_version != apsw.sqlite_lib_version():
    wrong("in sqlite3 beside apsw, in one process", lambda: other.load_extension(library))
assert one(db, "select fence_ok('1', '2')") == 1
wrong("without leave to load", lambda: apsw.Connection(":memory:").load_extension(library))
print("ok")
