-- 0006_fence_admitted: the largest fence seen for what has no row of its own.
--
-- What     Creates fence_admitted: a key, and the largest fence that came with it, padded.
-- Why      A file, an object, a request to a service of yours: whatever cannot keep a fence itself. Ask
--          fence_admit(key, fence), or run admit.sql, in the transaction that does the work.
-- When     Before the first use, or not at all: fence_admit creates the table itself when it is missing.
-- Locks    One write transaction, short: only the schema changes.
-- Needs    No extension. SQLite 3.8.2 or newer.
-- Twice    Changes nothing.
-- Undo     0006_fence_admitted.down.sql

create table if not exists fence_admitted (
  key text not null primary key,
  fence text not null check (length(fence) = 40 and fence not glob '*[^0-9]*')
) without rowid;
