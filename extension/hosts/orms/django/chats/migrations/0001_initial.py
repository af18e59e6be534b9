"""The table, as it was before there were fences."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            "Chat",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.TextField(null=True)),
                ("summary", models.TextField(default="", db_default="")),
            ],
        ),
    ]
