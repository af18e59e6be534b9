// JDBC with xerial's sqlite-jdbc.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.sqlite.SQLiteConfig;

class JdbcXerial {
    static String library;

    // [how]
    static Connection connect(String database) throws SQLException {
        SQLiteConfig config = new SQLiteConfig();
        config.enableLoadExtension(true);
        Connection db = config.createConnection("jdbc:sqlite:" + database);
        try (PreparedStatement load = db.prepareStatement("select load_extension(?)")) {
            load.setString(1, library);
            load.execute();
        }
        return db;
    }
    // [end]

    static String one(Connection db, String sql, String... parameters) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setString(i + 1, parameters[i]);
            }
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        }
    }

    interface Act {
        void run() throws Exception;
    }

    static void wrong(String what, Act act) {
        try {
            act.run();
        } catch (Exception error) {
            System.out.println("wrong: " + what + ": " + error.getClass().getSimpleName() + ": " + error.getMessage());
            return;
        }
        throw new AssertionError(what + " went well");
    }

    static void must(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    /** This program once more, in a process of its own: a virtual machine cannot fork. */
    static Process child() throws Exception {
        ProcessHandle.Info self = ProcessHandle.current().info();
        List<String> command = new ArrayList<>(List.of(self.command().orElseThrow()));
        command.addAll(List.of(self.arguments().orElseThrow()));
        command.add("child");
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    /** Takes its turn on a connection of its own; gives the fence. */
    static String turn() throws SQLException {
        try (Connection own = connect("app.db")) {
            String given = one(own, "select fence_acquire('turn', 30000, 60000)");
            must(one(own, "select fence_release('turn', ?)", given).equals("1"), "not released");
            return given;
        }
    }

    public static void main(String[] arguments) throws Exception {
        library = arguments[0];
        if (arguments.length > 1) {
            System.out.print(turn());
            return;
        }
        Connection db = connect("app.db");
        System.out.println("SQLite " + one(db, "select sqlite_version()"));
        db.createStatement().executeUpdate("create table chats (id integer primary key, summary text, "
            + "summary_fence text not null default '')");
        db.createStatement().executeUpdate("insert into chats (id) values (42)");

        String fence = one(db, "select fence_acquire('chat:42', 30000)");
        try (PreparedStatement save = db.prepareStatement("update chats set summary = ?1, "
                + "summary_fence = fence_pad(?2) where id = 42 and fence_ok(summary_fence, ?2)")) {
            save.setString(1, "a summary");
            save.setString(2, fence);
            must(save.executeUpdate() == 1, "not saved");
            save.setString(2, "7");
            must(save.executeUpdate() == 0, "saved late");
        }
        must(one(db, "select fence_release('chat:42', ?)", fence).equals("1"), "not released");

        // Eight threads with a connection each, as a pool has them.
        Set<String> fences = ConcurrentHashMap.newKeySet();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            Thread thread = new Thread(() -> {
                try {
                    fences.add(turn());
                } catch (SQLException error) {
                    throw new AssertionError(error);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        must(fences.size() == 8, fences.size() + " fences");

        // Children on the same store; the parent's lease stands.
        String parents = one(db, "select fence_acquire('parent', 30000)");
        for (Process child : List.of(child(), child())) {
            fences.add(new String(child.getInputStream().readAllBytes()));
            must(child.waitFor() == 0, "a child failed");
        }
        must(fences.size() == 10, fences.size() + " fences");
        must(one(db, "select fence_release('parent', ?)", parents).equals("1"), "the parent's lease is gone");

        Connection plain = DriverManager.getConnection("jdbc:sqlite::memory:");
        wrong("without enableLoadExtension", () -> one(plain, "select load_extension(?)", library));
        wrong("in a connection that did not load it", () -> one(plain, "select fence_acquire('k')"));
        wrong("a fence bound as a double", () -> {
            try (PreparedStatement statement = db.prepareStatement("select fence_pad(?)")) {
                statement.setDouble(1, Double.parseDouble("33132838977483490749893836800001"));
                statement.executeQuery();
            }
        });
        db.close();
        plain.close();
        System.out.println("ok");
    }
}
