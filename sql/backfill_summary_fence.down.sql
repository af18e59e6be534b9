-- backfill_summary_fence, undone: padded fences become plain digits again.
--
-- What     Rewrites the rows that have a fence. Plain digits do not sort as numbers: compare them with fence_ok.
-- When     After 0005 was undone, whose triggers take padded fences alone.
-- Locks    One write transaction, as long as there are rows with a fence.
-- Needs    The extension.
-- Twice    Changes nothing.

update chats
   set summary_fence = fence_wire(summary_fence)
 where summary_fence <> '' and summary_fence <> fence_wire(summary_fence);
