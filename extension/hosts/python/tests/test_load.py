"""Loading the functions into connections of one's own."""

import os
import sqlite3
import subprocess
import sys
import unittest

import sqlite_fence


def one(connection, sql, *parameters):
    ((answer,),) = list(connection.cursor().execute(sql, parameters))
    return answer


class Load(unittest.TestCase):
    def test_a_connection_has_the_functions_and_may_load_them_twice(self):
        db = sqlite3.connect(":memory:")
        sqlite_fence.load(db)
        sqlite_fence.load(db)
        self.assertEqual(one(db, "select fence_pad('7')"), "7".zfill(40))
        self.assertTrue(one(db, "select fence_acquire('k')").isdigit())

    def test_the_pure_functions_come_alone(self):
        db = sqlite3.connect(":memory:")
        sqlite_fence.load(db, pure=True)
        self.assertEqual(one(db, "select fence_ok('9', '10')"), 1)
        with self.assertRaisesRegex(sqlite3.OperationalError, "no such function: fence_acquire"):
            one(db, "select fence_acquire('k')")

    def test_extensions_are_allowed_no_longer_than_it_takes(self):
        db = sqlite3.connect(":memory:")
        sqlite_fence.load(db)
        with self.assertRaisesRegex(sqlite3.OperationalError, "not authorized"):
            one(db, "select load_extension('anything')")

    def test_the_path_serves_whatever_loads_extensions_itself(self):
        db = sqlite3.connect(":memory:")
        db.enable_load_extension(True)
        db.load_extension(sqlite_fence.loadable_path())
        self.assertTrue(os.path.isabs(sqlite_fence.loadable_path()))
        self.assertTrue(one(db, "select fence_version()"))

    def test_a_module_without_extensions_is_named(self):
        class Connection:
            """As a Python gives it that was built without loadable extensions."""

        with self.assertRaises(sqlite_fence.CannotLoad) as raised:
            sqlite_fence.load(Connection())
        self.assertRegex(str(raised.exception), "^fence: .*Connection has no enable_load_extension: give a connection")

    def test_a_second_sqlite_in_the_process_is_refused_and_the_first_goes_on(self):
        import apsw

        db = sqlite3.connect(":memory:")
        sqlite_fence.load(db)
        with self.assertRaisesRegex(Exception, "fence: this process has two SQLite libraries"):
            sqlite_fence.load(apsw.Connection(":memory:"))
        self.assertEqual(one(db, "select fence_ok('1', '2')"), 1)

    def test_apsw_alone_has_the_functions_and_the_locks(self):
        script = """
import apsw, sqlite_fence, tempfile, os
db = apsw.Connection(":memory:")
sqlite_fence.load(db)
sqlite_fence.load(apsw.Connection(":memory:"), pure=True)
print(*db.cursor().execute("select fence_ok('1', '2')").fetchone())
store = os.path.join(tempfile.mkdtemp(), "kv.db")
locks = sqlite_fence.Locks(store, connect=lambda: apsw.Connection(":memory:"))
with locks.lock("chat").hold(42) as lease:
    print(lease.key, lease.lost)
"""
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual((ran.stdout, ran.stderr, ran.returncode), ("1\nchat:42 False\n", "", 0))


if __name__ == "__main__":
    unittest.main()
