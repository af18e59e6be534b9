"""The mistake: a migration as Alembic's autogenerate writes it, without a word about the guard."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0004", "0003"


# [mistake]
def upgrade():
    with op.batch_alter_table("chats") as chats:
        chats.alter_column("title", existing_type=sa.String, type_=sa.String(200))
        # [end]


def downgrade():
    with op.batch_alter_table("chats") as chats:
        chats.alter_column("title", existing_type=sa.String(200), type_=sa.String)
