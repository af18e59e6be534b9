"""SQLAlchemy: a good write, refused ones, and the session afterwards."""

import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sqlalchemy import bindparam, create_engine, select, update  # noqa: E402
from sqlalchemy.exc import IntegrityError, OperationalError, PendingRollbackError  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402
from sqlite_fence import Locks  # noqa: E402

from chats import Chat, save  # noqa: E402
from story import engine, fresh, sqlite_version, summary  # noqa: E402
from telling import FIRST, SECOND, THIRD, message, raised, tell  # noqa: E402

STALE = update(Chat).where(Chat.id == 42).values(summary="late", summary_fence=FIRST)


def a_good_write():
    chat_id = 42
    fresh("write", seen=None)
    # [good]
    summaries = Locks("kv.db").lock("summaries")

    with summaries.hold(chat_id) as lease:
        with Session(engine) as session, session.begin():
            saved = session.execute(save(chat_id, "a summary", lease.fence)).rowcount
    # [end]
    assert saved == 1 and summary() == "a summary"
    with Session(engine) as session:
        assert session.get(Chat, chat_id).summary_fence == lease.fence


def refused():
    fresh("write")
    statement = STALE
    with Session(engine) as session:
        tell(
            "refused",
            "by the condition of `save`",
            f"`rowcount` is {session.execute(save(42, 'late', FIRST)).rowcount}",
        )
        # [refused]
        try:
            session.execute(statement)
        except IntegrityError as error:
            session.rollback()
            if error.orig.sqlite_errorname != "SQLITE_CONSTRAINT_TRIGGER":  # Python 3.11 and newer
                raise
            refusal = str(error.orig)
        # [end]
        assert refusal.startswith("fence: stale: ")
        tell("refused", "by the guard, a stale fence", message(raised(lambda: session.execute(STALE))))
        session.rollback()
        forgot = raised(lambda: session.execute(update(Chat).where(Chat.id == 42).values(summary="late")))
        assert isinstance(forgot.orig, sqlite3.IntegrityError) and forgot.orig.sqlite_errorcode == 1811
        tell("refused", "by the guard, a forgotten fence", message(forgot))
        session.rollback()
        tell("refused", "by SQLAlchemy, None for a fence", message(raised(lambda: save(42, "late", None))))


def after_execute():
    fresh("write")
    with Session(engine) as session:
        session.execute(update(Chat).where(Chat.id == 43).values(title="before"))
        raised(lambda: session.execute(STALE))
        session.execute(update(Chat).where(Chat.id == 43).values(summary="after", summary_fence=FIRST))
        session.commit()
        assert (session.get(Chat, 43).title, session.get(Chat, 43).summary) == ("before", "after")
    tell("after", "`session.execute()`", "the transaction goes on; the one statement is undone")


def after_flush():
    with Session(engine) as session:
        chat = session.get(Chat, 42)
        chat.summary, chat.summary_fence = "late", FIRST
        assert isinstance(raised(session.flush), IntegrityError)
        closed = raised(lambda: session.get(Chat, 43))
        assert isinstance(closed, PendingRollbackError)
        session.rollback()
        assert chat.summary == "by another"
    tell("after", "a flush, also that of `commit()`", f"`{type(closed).__name__}` until `session.rollback()`")


def after_savepoint():
    fresh("write")
    # [savepoint]
    with Session(engine) as session:
        session.get(Chat, 43).title = "kept"
        try:
            with session.begin_nested():
                chat = session.get(Chat, 42)
                chat.summary, chat.summary_fence = "late", FIRST
        except IntegrityError:
            pass  # Undone up to here; chat is as it was.
        session.commit()
        # [end]
        assert session.get(Chat, 43).title == "kept" and chat.summary == "by another"
    tell("after", "a flush in `begin_nested()`", "the savepoint is undone, the session goes on")

    with Session(create_engine("sqlite:///app.db")) as session:
        with session.begin_nested():
            session.execute(update(Chat).where(Chat.id == 43).values(title="to be undone"))
        session.rollback()
        assert session.get(Chat, 43).title == "to be undone"
    tell(
        "after", "`begin_nested()` first, in an engine without our `begin`", "`session.rollback()` undoes nothing of it"
    )


def after_no_row():
    fresh(seen=FIRST)
    with Session(engine, expire_on_commit=False) as session:
        chat = session.get(Chat, 42)
        session.commit()
        fresh(seen=SECOND)
        only = STALE.where(Chat.summary_fence <= FIRST)
        assert session.execute(only).rowcount == 0 and summary() == "by another"
        seen = chat.summary
        session.rollback()
        assert chat.summary == "by another"
    tell("after", "`rowcount` 0, of objects that were loaded before", f"may read `{seen}`, as if written: roll back")


def after_many():
    fresh("holder")
    each = update(Chat.__table__).where(Chat.id == bindparam("chat"))
    each = each.values(summary=bindparam("summary"), summary_fence=bindparam("fence"))
    rows = [{"chat": chat, "summary": "late", "fence": FIRST} for chat in (43, 42)]
    with engine.connect() as db:
        raised(lambda: db.execute(each, rows))
        assert db.scalar(select(Chat.summary).where(Chat.id == 43)) == "late"
        db.rollback()
        assert db.execute(each.where(Chat.summary_fence <= bindparam("fence")), rows).rowcount == 1
    tell("after", "a list of rows (`executemany`)", "the rows before the refused one stand until you roll back")
    tell("after", "a list of rows, with a condition", "`rowcount` is their sum, and does not say which were refused")


def after_returning():
    fresh("write")
    with Session(engine) as session:
        assert isinstance(raised(lambda: session.execute(STALE.returning(Chat.id))), IntegrityError)
        assert session.execute(save(42, "late", FIRST).returning(Chat.id)).all() == []
        good = session.execute(save(42, "new", THIRD).returning(Chat.id, Chat.summary_fence)).all()
        assert good == [(42, THIRD)]
        new = [Chat(summary="new", summary_fence=THIRD), Chat()]
        session.add_all(new)
        session.flush()
        assert new[0].id and new[1].id
    tell("after", "`returning()`", "raised by `execute()`; no row by the condition; a good write gives its rows")


def after_reading():
    with engine.connect() as db:
        db.exec_driver_sql("commit")
        db.exec_driver_sql("pragma journal_mode = wal")
    with Session(engine) as session:
        session.get(Chat, 42)
        with Session(engine) as another, another.begin():
            another.get(Chat, 43).title = "changed"
        error = raised(lambda: session.execute(save(42, "late", THIRD)))
        assert isinstance(error, OperationalError)
    tell(
        "after",
        "a read, long work and a write in one transaction (WAL)",
        f"{message(error)}; `commit()` before the work",
    )


print("SQLite", sqlite_version())
a_good_write()
refused()
after_execute()
after_flush()
after_savepoint()
after_no_row()
after_many()
after_returning()
after_reading()
print("ok")
