-- 0005_summary_fence_guard, undone: chats takes every write again.
--
-- What     Drops the triggers of the guard. The fences in the rows stay.
-- When     At any time. From then on only save_summary.sql compares.
-- Locks    One write transaction, short: only the schema changes.
-- Needs    The extension. Without it, drop the triggers by name:
--
--              drop trigger if exists chats_summary_fence_guard_insert;
--              drop trigger if exists chats_summary_fence_guard_update;
--              drop trigger if exists chats_summary_fence_guard_write;
--
-- Twice    Changes nothing.

select fence_unguard('chats', 'summary_fence');
