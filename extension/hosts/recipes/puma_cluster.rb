# Puma in cluster mode with preload_app!: the application is loaded once, and forked into workers.
require "json"
require "socket"
require "sqlite3"

# [how]
# The application. A connection is opened in the worker that uses it; what the parent opened before the fork stays its own.
class Application
  def initialize(library)
    @library = library
  end

  def call(_)
    fence = db.get_first_value("select fence_acquire('page', 30000, 60000)")
    db.get_first_value("select fence_release('page', ?)", [fence])
    [200, { "Content-Type" => "application/json" }, [JSON.dump([Process.pid, fence])]]
  end

  def db
    @connections ||= {}
    @connections[Process.pid] ||= SQLite3::Database.new("app.db").tap do |db|
      db.enable_load_extension(true)
      db.load_extension(@library)
      db.enable_load_extension(false)
    end
  end
end
# [end]

if $PROGRAM_NAME == __FILE__
  library = ARGV.fetch(0)
  puts "SQLite #{SQLite3::Database.new(":memory:").get_first_value("select sqlite_version()")}"
  File.write("config.ru", <<~RACKUP)
    require #{File.expand_path(__FILE__).dump}
    application = Application.new(#{library.dump})
    # In the parent, before it forks: the store is open, and one lease is held for good.
    application.db.get_first_value("select fence_acquire('parent', 600000)")
    run application
  RACKUP
  socket = File.expand_path("socket")
  server = spawn("puma", "--quiet", "--workers", "3", "--threads", "1", "--preload", "--bind", "unix://#{socket}", "config.ru",
                 out: "puma.log", err: "puma.log")
  begin
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    answers = []
    until answers.map(&:first).uniq.size == 3
      raise "#{answers} #{File.read("puma.log")}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      begin
        UNIXSocket.open(socket) do |connection|
          connection.write("GET / HTTP/1.0\r\n\r\n")
          answers << JSON.parse(connection.read.split("\r\n\r\n", 2).last)
        end
      rescue SystemCallError, JSON::ParserError
        sleep 0.02
      end
    end
    fences = answers.map { |_, fence| Integer(fence) }
    raise fences.to_s unless fences == fences.sort.uniq
  ensure
    Process.kill("TERM", server)
    Process.wait(server)
  end
  raise "puma ended by signal #{$?.termsig}: #{File.read("puma.log")}" unless $?.exited? || $?.termsig == 15
  puts "ok"
end
