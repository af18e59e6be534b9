"""SQLAlchemy: every connection of a pool."""

import sys
import threading

from sqlalchemy import create_engine, event, text

library = sys.argv[1]

# [how]
engine = create_engine("sqlite:///app.db", pool_size=5, max_overflow=0)


@event.listens_for(engine, "connect")
def load_fence(connection, record):
    connection.enable_load_extension(True)
    connection.load_extension(library)
    connection.enable_load_extension(False)


# [end]
with engine.begin() as db:
    print("SQLite", db.scalar(text("select sqlite_version()")))
    db.execute(text("create table chats (id integer primary key, summary text, summary_fence text not null default '')"))
    db.execute(text("insert into chats (id) values (42)"))

save = text(
    "update chats set summary = :text, summary_fence = fence_pad(:fence)"
    " where id = 42 and fence_ok(summary_fence, :fence)"
)
with engine.connect() as db:
    # The store has a connection of its own: a rollback here takes no lease back.
    fence = db.scalar(text("select fence_acquire('chat:42', 30000)"))
    db.rollback()
    assert db.execute(save, {"text": "a summary", "fence": fence}).rowcount == 1
    assert db.execute(save, {"text": "too late", "fence": "7"}).rowcount == 0
    db.commit()
    assert db.scalar(text("select fence_release('chat:42', :fence)"), {"fence": fence}) == 1

# All five connections of the pool at once, more threads than connections.
fences = []
together = threading.Barrier(5)


def turn(wait):
    with engine.connect() as db:
        if wait:
            together.wait(60)
        fence = db.scalar(text("select fence_acquire('turn', 30000, 60000)"))
        assert db.scalar(text("select fence_release('turn', :fence)"), {"fence": fence}) == 1
        fences.append(fence)


for waits in (True, False):
    threads = [threading.Thread(target=turn, args=(waits,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
assert len(set(fences)) == 10

try:
    with create_engine("sqlite:///app.db").connect() as db:
        db.scalar(text("select fence_acquire('k')"))
except Exception as error:
    print(f"wrong: an engine without the listener: {type(error).__name__}: {str(error).splitlines()[0]}")
print("ok")
