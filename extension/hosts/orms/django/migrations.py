"""Django's migrations: what they do to a guard, and how it is whole again."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from story import ask  # noqa: E402  It sets Django up.

from chats.apps import guard as guard_again  # noqa: E402
from django.apps import apps  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, migrations, models  # noqa: E402
from django.db.migrations.loader import MigrationLoader  # noqa: E402
from django.db.models.signals import post_migrate  # noqa: E402

from telling import tell  # noqa: E402


def migrate(to):
    call_command("migrate", "chats", to, verbosity=0)


def guard():
    return ask("select guard from fence_audit where \"table\" = 'chats_chat'")


def lost_and_found():
    config = apps.get_app_config("chats")
    post_migrate.disconnect(guard_again, sender=config)
    migrate("0002")
    assert guard() == "whole"
    migrate("0003")
    verdict = ask("select verdict from fence_audit where guard <> 'whole' and fence_column = 'summary_fence'")
    tell("audit", "after `0003`, without `post_migrate`", f"`{verdict}`")
    migrate("0001")
    assert guard() == "none"
    post_migrate.connect(guard_again, sender=config)
    for to in ("0003", "0002", "0001", "0003"):
        migrate(to)
        assert guard() == ("none" if to == "0001" else "whole")
    tell("audit", "after `0003`, with it", f"`{ask('select verdict from fence_audit where guard = ?', 'whole')}`")
    call_command("makemigrations", "chats", check_changes=True, dry_run=True, verbosity=0)


class Undo(Exception):
    pass


def operations():
    """Each by itself, in a transaction that is thrown away, and what is left of the guard."""
    before = MigrationLoader(connection).project_state()
    check = models.CheckConstraint(condition=models.Q(id__gt=0), name="positive")
    unique = models.UniqueConstraint(fields=["title"], name="one_title")
    for what, operation in [
        ("`AddField`, null", migrations.AddField("Chat", "more", models.TextField(null=True))),
        ("`AddField`, not null", migrations.AddField("Chat", "more", models.TextField(default=""))),
        ("`AlterField`", migrations.AlterField("Chat", "title", models.TextField(null=True))),
        ("`RemoveField`", migrations.RemoveField("Chat", "title")),
        ("`RenameField`", migrations.RenameField("Chat", "title", "name")),
        ("`RenameModel`", migrations.RenameModel("Chat", "Talk")),
        ("`AlterModelTable`", migrations.AlterModelTable("Chat", "talks")),
        ("`AddIndex`", migrations.AddIndex("Chat", models.Index(fields=["title"], name="by_title"))),
        ("`AddConstraint`, a check", migrations.AddConstraint("Chat", check)),
        ("`AddConstraint`, unique", migrations.AddConstraint("Chat", unique)),
    ]:
        after = before.clone()
        operation.state_forwards("chats", after)
        try:
            with connection.schema_editor() as editor:
                operation.database_forwards("chats", editor, before, after)
                left = ask("select guard from fence_audit where fence_column = 'summary_fence'")
                raise Undo
        except Undo:
            pass
        tell("operation", what, {"whole": "stays", "broken": "**no longer whole**", "none": "**gone**"}[left])
    assert guard() == "whole"


print("SQLite", ask("select sqlite_version()"))
lost_and_found()
operations()
print("ok")
