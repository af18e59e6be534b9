"""A title is never NULL. As `makemigrations` writes it: the table is built anew, and nothing is said of its guard."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chats", "0002_summary_fence")]
    operations = [
        migrations.AlterField("Chat", "title", models.TextField(default="", db_default="")),
    ]
