"""SQLAlchemy: each way to write that one might take, without a guard and with one; and each type for a fence."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sqlalchemy import (  # noqa: E402
    JSON,
    BigInteger,
    Column,
    Double,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    event,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import sqlite  # noqa: E402
from sqlalchemy.exc import OperationalError  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, make_transient_to_detached, mapped_column  # noqa: E402
from sqlalchemy.orm.attributes import flag_modified  # noqa: E402

from chats import Chat, Fence, save  # noqa: E402
from story import engine, fresh, sqlite_version, summary  # noqa: E402
from telling import FIRST, GUARDS, THIRD, message, outcome, raised, tell  # noqa: E402


class Base(DeclarativeBase):
    pass


class AlwaysFenced(Base):
    """The same table once more; its fence is a part of every UPDATE."""

    __tablename__ = "chats"

    id: Mapped[int] = mapped_column(primary_key=True)
    summary: Mapped[str] = mapped_column(server_default="")
    summary_fence: Mapped[int | None] = mapped_column(Fence, nullable=False, server_default="")


# [always]
@event.listens_for(AlwaysFenced, "before_update")
def always_with_its_fence(mapper, connection, chat):
    flag_modified(chat, "summary_fence")
    # [end]


class Versioned(Base):
    """And once more; its fence is what SQLAlchemy calls a version."""

    __table__ = AlwaysFenced.__table__
    __mapper_args__ = {"version_id_col": __table__.c.summary_fence, "version_id_generator": False}


def executed(*statement):
    def act():
        with Session(engine) as session, session.begin():
            session.execute(*statement)

    return act


def read_before(model):
    """What a session gave when the row still had the fence FIRST."""
    chat = model(id=42, summary="by me", summary_fence=FIRST)
    make_transient_to_detached(chat)
    return chat


def flushed(model=Chat, reads_again=False):
    def act():
        with Session(engine, expire_on_commit=False) as session:
            chat = read_before(model)
            session.add(chat)
            if reads_again:
                session.refresh(chat)
            chat.summary, chat.summary_fence = "late", FIRST
            session.commit()

    return act


def merged():
    chat = read_before(Chat)
    chat.summary = "late"
    with Session(engine) as session, session.begin():
        session.merge(chat)


def mapped(row):
    def act():
        with Session(engine) as session, session.begin():
            session.bulk_update_mappings(Chat, [row])

    return act


def upserted(fence, *columns):
    new = sqlite.insert(Chat).values(id=42, summary="upserted", summary_fence=fence)
    return executed(new.on_conflict_do_update(index_elements=["id"], set_={c: new.excluded[c] for c in columns}))


def ways():
    stale, forgot = {"summary": "late", "summary_fence": FIRST}, {"summary": "late"}
    chat_42 = update(Chat).where(Chat.id == 42)
    for what, act in [
        ("`save` above", executed(save(42, "late", FIRST))),
        ("`update()` with the stale fence", executed(chat_42.values(**stale))),
        ("`update()` that forgets the fence", executed(chat_42.values(**forgot))),
        ("a flush of an object read after the other's write", flushed(reads_again=True)),
        ("a flush of an object read before, which had this fence", flushed()),
        ("the same with `always_with_its_fence`", flushed(AlwaysFenced)),
        ("`session.merge()` of an object read before", merged),
        ("`version_id_col`, an object read before", flushed(Versioned)),
        ("`version_id_col`, an object read after", flushed(Versioned, reads_again=True)),
        ("`bulk_update_mappings()` with the stale fence", mapped({"id": 42, **stale})),
        ("`bulk_update_mappings()` that forgets the fence", mapped({"id": 42, **forgot})),
        ("`update(Chat)` with a list of rows", executed(update(Chat), [{"id": 42, **stale}])),
        ("`on_conflict_do_update()` with the stale fence", upserted(FIRST, "summary", "summary_fence")),
        ("`on_conflict_do_update()`, a new fence that `set_` leaves out", upserted(THIRD, "summary")),
    ]:
        outcomes = []
        for guard in GUARDS:
            fresh(guard)
            outcomes.append(outcome(act, summary))
        tell("way", what, *outcomes)
    version_of_none()


def version_of_none():
    fresh(seen=None)
    with Session(engine) as session:
        chat = session.get(Versioned, 42)
        chat.summary, chat.summary_fence = "new", FIRST
        assert "A value is required for bind parameter" in str(raised(session.flush))


def column_types():
    for column, value in [
        (Fence(), FIRST),
        (String(40), str(FIRST).zfill(40)),
        (BigInteger(), FIRST),
        (BigInteger(), str(FIRST)),
        (Numeric(40, 0), FIRST),
        (Double(), FIRST),
        (JSON(), FIRST),
    ]:
        written = f"{type(column).__name__}, {'text' if isinstance(value, str) else 'an int'}"
        tell("type", written, *held(column, value))
    for wrong in (float(FIRST), "1" * 41, "-1", " 1", True):
        assert isinstance(raised(lambda: Fence().process_bind_param(wrong, None)), ValueError)


def held(column, value):
    """What a column of this type makes of a fence, and what fence_guard says to it."""
    table = Table("fences", MetaData(), Column("id", Integer, primary_key=True), Column("fence", column))
    with engine.begin() as db:
        table.drop(db, checkfirst=True)
        table.create(db)
        try:
            db.execute(insert(table).values(fence=value))
            read = db.scalar(select(table.c.fence))
            kept = "every digit" if int(read) == FIRST else f"`{read!r}`"
        except OverflowError as error:
            kept = message(error)
        try:
            db.execute(text("select fence_guard('fences', 'fence')"))
            return kept, "takes it"
        except OperationalError as error:
            assert "affinity" in str(error)
            return kept, "refuses it"


print("SQLite", sqlite_version())
ways()
column_types()
print("ok")
