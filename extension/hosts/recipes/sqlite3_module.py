"""Python's sqlite3 module, as the standard library has it."""

import multiprocessing
import sqlite3
import sys
import threading

library = sys.argv[1]


# [how]
def connect(database):
    db = sqlite3.connect(database, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(library)
    db.enable_load_extension(False)
    return db


# [end]
def one(db, sql, *parameters):
    ((answer,),) = db.execute(sql, parameters).fetchall()
    return answer


def turn():
    db = connect("app.db")
    fence = one(db, "select fence_acquire('turn', 30000, 60000)")
    assert one(db, "select fence_release('turn', ?)", fence) == 1
    db.close()
    return fence


def wrong(what, do):
    try:
        do()
    except Exception as error:
        print(f"wrong: {what}: {type(error).__name__}: {error}")
    else:
        raise AssertionError(f"{what} went well")


def story():
    db = connect("app.db")
    print("SQLite", one(db, "select sqlite_version()"))
    db.execute("create table chats (id integer primary key, summary text, summary_fence text not null default '')")
    db.execute("insert into chats (id) values (42)")

    fence = one(db, "select fence_acquire('chat:42', 30000)")
    save = "update chats set summary = ?1, summary_fence = fence_pad(?2) where id = 42 and fence_ok(summary_fence, ?2)"
    assert db.execute(save, ("a summary", fence)).rowcount == 1
    assert db.execute(save, ("too late", "7")).rowcount == 0
    assert one(db, "select fence_release('chat:42', ?)", fence) == 1

    # Threads, each with a connection of its own: 200 one after another, then 8 at once.
    fences = []
    threads = [threading.Thread(target=lambda: fences.append(turn())) for _ in range(208)]
    for thread in threads[:200]:
        thread.start()
        thread.join()
    for thread in threads[200:]:
        thread.start()
    for thread in threads[200:]:
        thread.join()
    assert len(set(fences)) == 208

    # multiprocessing: a child opens connections of its own; the parent's lease stands.
    parents = one(db, "select fence_acquire('parent', 30000)")
    with multiprocessing.get_context("fork").Pool(4) as pool:
        children = pool.starmap(turn, [()] * 8)
    assert len(set(children)) == 8 and not set(children) & set(fences)
    assert one(db, "select fence_release('parent', ?)", parents) == 1

    plain = sqlite3.connect(":memory:")
    plain.enable_load_extension(False)
    wrong("without leave to load", lambda: plain.load_extension(library))
    wrong("in a connection that did not load it", lambda: one(plain, "select fence_acquire('k')"))
    wrong("a fence bound as a number", lambda: one(db, "select fence_pad(?)", 33132838977483490749893836800001))
    wrong("a fence bound as a float", lambda: one(db, "select fence_pad(?)", float(33132838977483490749893836800001)))
    print("ok")


if __name__ == "__main__":
    story()
