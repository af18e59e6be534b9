-- 0005_summary_fence_guard: chats turns a stale summary away by itself, whoever writes it and however.
--
-- What     Installs triggers on chats. From now on every write to summary must raise summary_fence: a smaller fence is
--          refused as stale, a write that forgot the fence as unfenced, both with SQLITE_CONSTRAINT_TRIGGER. Writes to
--          other columns go on as before.
-- Why      0004 and save_summary.sql rely on every writer to compare. One path that forgets undoes all others.
-- When     After 0004, and after the last program that writes summaries without a fence has ended. Where fences were
--          stored as plain digits, after backfill_summary_fence.sql; else it fails and says so.
-- Locks    One write transaction that reads every row: the rows must hold fences or ''. Readers go on.
-- Needs    The extension, to install it. The triggers themselves need none.
-- Twice    Changes nothing.
-- Again    After every migration that rebuilds chats: a rebuilt table has lost its triggers. fence_audit shows it.
-- Undo     0005_summary_fence_guard.down.sql

select fence_guard('chats', 'summary_fence', 'write', '["summary"]');
