-- Saves a summary, unless a later holder of the key already saved one. One statement: prepare it once, bind, run.
--
-- :id      the chat
-- :text    the new summary
-- :fence   what fence_acquire gave. Bind it as TEXT, as it came: as a number it loses digits, and is refused
--
-- changes() = 1   saved; the row now remembers this fence
-- changes() = 0   not saved: a later holder wrote (or there is no such chat). This lease is over; start anew

update chats
   set summary = :text, summary_fence = fence_pad(:fence)
 where id = :id and fence_ok(summary_fence, :fence);
