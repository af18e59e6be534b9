"""Django: a good write, refused ones, and the transaction afterwards."""

import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from story import ask, fresh, summary  # noqa: E402  It sets Django up.

from chats.models import Chat, save  # noqa: E402
from django.db import IntegrityError, OperationalError, connection, transaction  # noqa: E402
from sqlite_fence import Locks  # noqa: E402

from telling import FIRST, SECOND, THIRD, message, raised, tell  # noqa: E402


def stale():
    return Chat.objects.filter(pk=42).update(summary="late", summary_fence=FIRST)


def a_good_write():
    chat_id = 42
    fresh("write", seen=None)
    # [good]
    summaries = Locks("kv.db").lock("summaries")

    with summaries.hold(chat_id) as lease:
        saved = save(chat_id, "a summary", lease.fence)
    # [end]
    assert saved == 1 and summary() == "a summary"
    assert Chat.objects.get(pk=chat_id).summary_fence == lease.fence


def refused():
    fresh("write")
    tell("refused", "by the condition of `save`", f"`update()` gives {save(42, 'late', FIRST)}")
    # [refused]
    try:
        Chat.objects.filter(pk=42).update(summary="late", summary_fence=FIRST)
    except IntegrityError as error:
        if error.__cause__.sqlite_errorname != "SQLITE_CONSTRAINT_TRIGGER":  # Python 3.11 and newer
            raise
        refusal = str(error)
    # [end]
    assert refusal.startswith("fence: stale: ")
    tell("refused", "by the guard, a stale fence", message(raised(stale)))
    forgot = raised(lambda: Chat.objects.filter(pk=42).update(summary="late"))
    assert isinstance(forgot.__cause__, sqlite3.IntegrityError) and forgot.__cause__.sqlite_errorcode == 1811
    tell("refused", "by the guard, a forgotten fence", message(forgot))
    tell("refused", "by Django, None for a fence", message(raised(lambda: save(42, "late", None))))


def after_a_statement():
    fresh("write")
    raised(stale)
    assert save(42, "new", THIRD) == 1
    tell("after", "outside of `atomic()`", "nothing is open; the one statement is undone")


def after_atomic():
    fresh("write")
    with transaction.atomic():
        Chat.objects.filter(pk=43).update(title="to be undone")
        raised(stale)
        closed = raised(lambda: Chat.objects.get(pk=43))
    assert Chat.objects.get(pk=43).title == ""
    tell(
        "after",
        "in `atomic()`, caught inside",
        f"`{type(closed).__name__}` for each query; all of it is undone at its end",
    )

    # [nested]
    with transaction.atomic():
        Chat.objects.filter(pk=43).update(title="kept")
        try:
            with transaction.atomic():
                Chat.objects.filter(pk=42).update(summary="late", summary_fence=FIRST)
        except IntegrityError:
            pass  # Undone up to here.
    # [end]
    assert Chat.objects.get(pk=43).title == "kept" and summary() == "by another"
    tell("after", "in an `atomic()` within, caught outside of it", "the savepoint is undone, the outer one goes on")

    with transaction.atomic():
        raised(lambda: ask("update chats_chat set summary = 'late' where id = 42"))
        Chat.objects.filter(pk=43).update(title="goes on")
    assert Chat.objects.get(pk=43).title == "goes on"
    tell("after", "in `atomic()`, of `cursor.execute()`", "the transaction goes on; the one statement is undone")


def after_in_memory():
    fresh("write")
    chat = Chat.objects.get(pk=42)
    chat.summary, chat.summary_fence = "late", FIRST
    raised(chat.save)
    assert chat.summary == "late"
    chat.refresh_from_db()
    assert chat.summary == "by another" and chat.summary_fence == SECOND
    tell("after", "an object whose `save()` was refused", "keeps what was refused: `refresh_from_db()`")


def after_bulk():
    fresh("holder")
    late = [Chat(id=43, summary="late", summary_fence=FIRST), Chat(id=42, summary="late", summary_fence=FIRST)]
    raised(lambda: Chat.objects.bulk_update(late, ["summary", "summary_fence"]))
    assert Chat.objects.get(pk=43).summary == ""
    tell("after", "`bulk_update()`, one row of it refused", "none of the rows is written")


def after_reading():
    connection.close()
    ask("pragma journal_mode = wal")
    other = sqlite3.connect("app.db", isolation_level=None)

    def read_work_and_write():
        with transaction.atomic():
            Chat.objects.get(pk=42)
            other.execute("update chats_chat set title = 'changed' where id = 43")
            save(42, "late", THIRD)

    error = raised(read_work_and_write)
    assert isinstance(error, OperationalError)
    tell("after", "a read, long work and a write in one `atomic()` (WAL)", f"{message(error)}; end it before the work")


print("SQLite", ask("select sqlite_version()"))
a_good_write()
refused()
after_a_statement()
after_atomic()
after_in_memory()
after_bulk()
after_reading()
print("ok")
