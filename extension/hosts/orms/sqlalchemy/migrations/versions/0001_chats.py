"""The table, as it was before there were fences."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade():
    op.create_table(
        "chats",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("title", sa.String),
        sa.Column("summary", sa.String, nullable=False, server_default=""),
    )


def downgrade():
    op.drop_table("chats")
