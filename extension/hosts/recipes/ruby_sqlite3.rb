# Ruby's sqlite3 gem.
require "sqlite3"
LIBRARY = ARGV.fetch(0)

# [how]
def connect(database)
  db = SQLite3::Database.new(database)
  db.enable_load_extension(true)
  db.load_extension(LIBRARY)
  db.enable_load_extension(false)
  db
end

# [end]
def turn
  db = connect("app.db")
  fence = db.get_first_value("select fence_acquire('turn', 30000, 60000)")
  raise "not released" unless db.get_first_value("select fence_release('turn', ?)", [fence]) == 1
  db.close
  fence
end

def wrong(what)
  yield
rescue StandardError => error
  puts "wrong: #{what}: #{error.class}: #{error.message}"
else
  raise "#{what} went well"
end

db = connect("app.db")
puts "SQLite #{db.get_first_value("select sqlite_version()")}"
db.execute("create table chats (id integer primary key, summary text, summary_fence text not null default '')")
db.execute("insert into chats (id) values (42)")
fence = db.get_first_value("select fence_acquire('chat:42', 30000)")
save = "update chats set summary = ?1, summary_fence = fence_pad(?2) where id = 42 and fence_ok(summary_fence, ?2)"
db.execute(save, ["a summary", fence])
raise "not saved" unless db.changes == 1
db.execute(save, ["too late", "7"])
raise "saved late" unless db.changes == 0
raise "not released" unless db.get_first_value("select fence_release('chat:42', ?)", [fence]) == 1

# 200 threads one after another, then 8 at once, each with a connection of its own.
fences = Array.new(200) { Thread.new { turn }.value }
fences += Array.new(8) { Thread.new { turn } }.map(&:value)
raise "#{fences.uniq.size} fences" unless fences.uniq.size == 208

# As Puma in cluster mode forks: the parent's lease stands, and each child opens connections of its own.
parents = db.get_first_value("select fence_acquire('parent', 30000)")
children = Array.new(4) do
  reader, writer = IO.pipe
  pid = fork do
    writer.write(turn)
    writer.close
    exit!(0)
  end
  writer.close
  [pid, reader]
end
forked = children.map do |pid, reader|
  given = reader.read
  raise "a child failed" unless Process.wait2(pid).last.success?
  given
end
raise "not four fences: #{forked}" unless (forked - fences).uniq.size == 4
raise "the parent's lease fell" unless db.get_first_value("select fence_release('parent', ?)", [parents]) == 1

plain = SQLite3::Database.new(":memory:")
plain.enable_load_extension(false)
wrong("without leave to load") { plain.load_extension(LIBRARY) }
wrong("in a connection that did not load it") { plain.get_first_value("select fence_acquire('k')") }
wrong("a fence bound as a number") { db.get_first_value("select fence_pad(?)", [33132838977483490749893836800001]) }
wrong("a fence bound as a float") { db.get_first_value("select fence_pad(?)", [33132838977483490749893836800001.to_f]) }
puts "ok"
