"""Django: each way to write that one might take, without a guard and with one; and each field for a fence."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from story import ask, fresh, summary  # noqa: E402  It sets Django up.

from chats.fields import FenceField  # noqa: E402
from chats.models import Chat, save  # noqa: E402
from django.db import OperationalError, connection, models  # noqa: E402
from django.db.models import F  # noqa: E402

from telling import FIRST, GUARDS, SECOND, THIRD, message, outcome, raised, tell  # noqa: E402

chats = Chat.objects


def read_before(**changes):
    """The object that one read when the row still had the fence FIRST, and what it has changed since."""
    return Chat(**{"id": 42, "summary": "by me", "summary_fence": FIRST, **changes})


def stored(row, *fields):
    return lambda: row.save(update_fields=fields or None)


def updated(**values):
    return lambda: chats.filter(pk=42).update(**values)


def upserted(fence, *fields):
    new = Chat(id=42, summary="upserted", summary_fence=fence)
    return lambda: chats.bulk_create([new], update_conflicts=True, unique_fields=["id"], update_fields=fields)


def read_now():
    return Chat(id=42, summary="late", summary_fence=SECOND)


def ways():
    stale, forgot = {"summary": "late", "summary_fence": FIRST}, {"summary": "late"}
    for what, act in [
        ("`save` above", lambda: save(42, "late", FIRST)),
        ("`update()` with the stale fence", updated(**stale)),
        ("`update()` that forgets the fence", updated(**forgot)),
        ('`update()`, `F("summary_fence")` for a fence', updated(summary="late", summary_fence=F("summary_fence"))),
        (
            '`update()`, `F("summary_fence") + 1` for a fence',
            updated(summary="late", summary_fence=F("summary_fence") + 1),
        ),
        ("`save()` of an object read before the other's write", stored(read_before(summary="late"))),
        ("`save()` of one read before, with a new title alone", stored(read_before(title="late"))),
        ("`save()` of one read after it, which forgets the fence", stored(read_now())),
        ('`save(update_fields=["summary"])`', stored(read_before(summary="late"), "summary")),
        ("`bulk_update()` with the stale fence", lambda: chats.bulk_update([Chat(id=42, **stale)], list(stale))),
        ("`bulk_update()` that forgets the fence", lambda: chats.bulk_update([Chat(id=42, **forgot)], list(forgot))),
        ("`update_or_create()` with the stale fence", lambda: chats.update_or_create(id=42, defaults=stale)),
        ("`update_or_create()` that forgets the fence", lambda: chats.update_or_create(id=42, defaults=forgot)),
        ("`get_or_create()`, which finds the row", lambda: chats.get_or_create(id=42, defaults=stale)),
        ("`bulk_create(update_conflicts=True)` with the stale fence", upserted(FIRST, "summary", "summary_fence")),
        (
            "`bulk_create(update_conflicts=True)`, a new fence that `update_fields` leaves out",
            upserted(THIRD, "summary"),
        ),
        (
            "`bulk_create(ignore_conflicts=True)`",
            lambda: chats.bulk_create([Chat(id=42, **stale)], ignore_conflicts=True),
        ),
    ]:
        outcomes = []
        for guard in GUARDS:
            fresh(guard)
            outcomes.append(outcome(act, summary))
        tell("way", what, *outcomes)


def a_row_that_was_deleted():
    """save() inserts what it does not find; then only a guard that remembers knows the fence."""
    outcomes = []
    for guard in (*GUARDS, "write+remember"):
        fresh(guard)
        chats.filter(pk=42).delete()
        outcomes.append(outcome(stored(read_before()), summary))
    assert outcomes.pop() == "stale"
    tell("way", "`save()` of an object whose row was deleted (it inserts)", *outcomes)


def a_title_alone():
    fresh("write")
    read_before(title="new").save(update_fields=["title"])
    assert chats.get(pk=42).title == "new" and summary() == "by another"
    assert "FOR UPDATE" not in str(chats.select_for_update().query)


def column_types():
    for field, value in [
        (FenceField(), FIRST),
        (models.CharField(max_length=40), str(FIRST).zfill(40)),
        (models.TextField(), str(FIRST).zfill(40)),
        (models.TextField(), FIRST),
        (models.BigIntegerField(), FIRST),
        (models.BigIntegerField(), str(FIRST)),
        (models.DecimalField(max_digits=40, decimal_places=0), FIRST),
        (models.FloatField(), FIRST),
        (models.JSONField(), FIRST),
        (models.JSONField(), str(FIRST)),
    ]:
        written = f"{type(field).__name__}, {'text' if isinstance(value, str) else 'an int'}"
        tell("type", written, *held(field, value))
    for wrong in (float(FIRST), "1" * 41, "-1", " 1", True):
        assert isinstance(raised(lambda: FenceField().get_prep_value(wrong)), ValueError)


def held(field, value):
    """What a column of this field makes of a fence, and what fence_guard says to it."""
    meta = type("Meta", (), {"app_label": "chats", "db_table": "fences"})
    Chat._meta.apps.all_models["chats"].pop("fences", None)  # Django warns of a model that it knows already.
    fences = type("Fences", (models.Model,), {"fence": field, "Meta": meta, "__module__": __name__})
    ask("drop table if exists fences")
    with connection.schema_editor() as editor:
        editor.create_model(fences)
    try:
        fences.objects.create(fence=value)
        read = fences.objects.get().fence
        kept = "every digit" if int(read) == FIRST else f"`{read!r}`"
    except OverflowError as error:
        kept = message(error)
    try:
        ask("select fence_guard('fences', 'fence')")
        return kept, "takes it"
    except OperationalError as error:
        return kept, "refuses it" if "affinity" in str(error) else "refuses the row"


print("SQLite", ask("select sqlite_version()"))
ways()
a_row_that_was_deleted()
a_title_alone()
column_types()
print("ok")
