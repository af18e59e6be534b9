-- 0004_summary_fence: a summary remembers the fence under which it was written.
--
-- What     Adds chats.summary_fence. Every row gets '', which is 'no fence seen yet' and lets the first fence in.
-- Why      save_summary.sql compares with it: a writer whose lease is over is refused by the row itself.
-- Type     TEXT. A fence has up to 39 digits; in a numeric column it would become a REAL, and different fences equal.
-- When     At any time before the first program that uses the column starts. Programs that do not know the column go
--          on working, if their INSERTs name their columns.
-- Locks    One write transaction, short whatever the table's size: only the schema changes, no row is rewritten.
--          It waits for a running writer like any write, so set busy_timeout. Readers go on.
-- Needs    No extension. SQLite 3.2 or newer.
-- Twice    Fails with 'duplicate column name' and changes nothing.
-- Undo     0004_summary_fence.down.sql

alter table chats add column summary_fence text not null default '';
