"""Alembic: what its batch mode does to a guard, and migrations that keep it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True

import sqlalchemy as sa  # noqa: E402
from alembic import command  # noqa: E402
from alembic.autogenerate import compare_metadata  # noqa: E402
from alembic.config import Config  # noqa: E402
from alembic.migration import MigrationContext  # noqa: E402
from alembic.operations import Operations  # noqa: E402
from sqlalchemy import text  # noqa: E402

from chats import Base, connect, save  # noqa: E402
from story import sqlite_version  # noqa: E402
from telling import FIRST, SECOND, message, raised, tell  # noqa: E402


def configuration(*versions):
    config = Config(stdout=sys.stderr)
    config.set_main_option("sqlalchemy.url", "sqlite:///migrated.db")
    config.set_main_option("script_location", str(HERE / "migrations"))
    config.set_main_option("path_separator", "os")
    config.set_main_option(
        "version_locations", os.pathsep.join(str(HERE / "migrations" / folder) for folder in versions)
    )
    return config


config = configuration("versions")
engine = connect("sqlite:///migrated.db")


def ask(sql):
    with engine.connect() as db:
        return [tuple(row) for row in db.execute(text(sql))]


def guard():
    return ask("select guard from fence_audit where \"table\" = 'chats'")[0][0]


def the_guard_stays():
    command.upgrade(config, "0001")
    command.upgrade(config, "head")
    assert guard() == "whole"
    with engine.begin() as db:
        db.execute(text("insert into chats (id) values (42)"))
        assert db.execute(save(42, "new", SECOND)).rowcount == 1
    forgot = text("update chats set summary = 'late' where id = 42")
    assert "fence: unfenced: " in str(raised(lambda: engine.connect().execute(forgot)))
    command.downgrade(config, "0002")
    assert guard() == "whole"
    command.downgrade(config, "0001")
    assert guard() == "none"
    command.upgrade(config, "head")


def the_mistake_does_not_land():
    mistaken = raised(lambda: command.upgrade(configuration("versions", "mistake"), "head"))
    tell("audit", "what `env.py` says to the mistake", message(mistaken))
    assert ask("select version_num from alembic_version") == [("0003",)] and guard() == "whole"


def autogenerate_leaves_our_tables_alone():
    with engine.begin() as db:
        db.execute(text("select fence_admit('mail', :fence)"), {"fence": str(FIRST)})
        ((change, table),) = compare_metadata(MigrationContext.configure(db), Base.metadata)
        assert (change, table.name) == ("remove_table", "fence_admitted")
    command.check(config)


def operations():
    """Each by itself, in a transaction that is thrown away, and what is left of the guard."""
    more = sa.Column("more", sa.Text)
    for what, operate in [
        ("`op.add_column()`", lambda op: op.add_column("chats", more)),
        ("`batch_op.add_column()`", batch(lambda chats: chats.add_column(more))),
        ("`op.create_index()`", lambda op: op.create_index("by_title", "chats", ["title"])),
        ("`op.create_index()`, unique", lambda op: op.create_index("by_title", "chats", ["title"], unique=True)),
        ("`op.rename_table()`", lambda op: op.rename_table("chats", "talks")),
        ("`op.drop_column()`", lambda op: op.drop_column("chats", "title")),
        ("`batch_op.drop_column()`", batch(lambda chats: chats.drop_column("title"))),
        ("`batch_op.alter_column()`, another type", batch(lambda chats: chats.alter_column("title", type_=sa.Text))),
        (
            "`batch_op.alter_column()`, another name",
            batch(lambda chats: chats.alter_column("title", new_column_name="t")),
        ),
        ("`batch_op.create_check_constraint()`", batch(lambda chats: chats.create_check_constraint("c", "id > 0"))),
    ]:
        with engine.connect() as db, db.begin() as transaction:
            operate(Operations(MigrationContext.configure(db)))
            left = db.scalar(text("select guard from fence_audit where fence_column = 'summary_fence'"))
            transaction.rollback()
        tell("operation", what, {"whole": "stays", "broken": "**no longer whole**", "none": "**gone**"}[left])
    assert guard() == "whole"
    with engine.connect() as db:
        op = Operations(MigrationContext.configure(db))
        refused = raised(lambda: op.drop_column("chats", "summary_fence"))
    tell("operation", "`op.drop_column()` of a column that the guard names", message(refused))


def batch(change):
    def operate(op):
        with op.batch_alter_table("chats") as chats:
            change(chats)

    return operate


print("SQLite", sqlite_version())
the_guard_stays()
the_mistake_does_not_land()
autogenerate_leaves_our_tables_alone()
operations()
print("ok")
