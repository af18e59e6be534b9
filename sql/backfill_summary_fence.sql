-- backfill_summary_fence: fences that were stored as plain digits become padded ones, which compare as text.
--
-- What     Rewrites the rows whose summary_fence is neither '' nor 40 digits. What is no fence at all stops it, with the
--          value in the message, and changes nothing.
-- When     After 0004 and before 0005. fence_ok compares both spellings, so programs may go on meanwhile.
-- Locks    One write transaction, as long as there are such rows. In a large table run it for a range of ids at a time:
--          add `and id between ... and ...`.
-- Needs    The extension.
-- Twice    Changes nothing.
-- Undo     backfill_summary_fence.down.sql

update chats
   set summary_fence = fence_pad(summary_fence)
 where summary_fence <> '' and length(summary_fence) <> 40;
