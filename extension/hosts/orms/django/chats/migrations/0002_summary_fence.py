"""The fence column and its guard."""

from django.db import migrations

import chats.fields

# [guard]
GUARD = "select fence_guard('chats_chat', 'summary_fence', 'write', '[\"summary\"]')"
UNGUARD = "select fence_unguard('chats_chat')"


class Migration(migrations.Migration):
    dependencies = [("chats", "0001_initial")]
    operations = [
        migrations.AddField("Chat", "summary_fence", chats.fields.FenceField()),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
    # [end]
