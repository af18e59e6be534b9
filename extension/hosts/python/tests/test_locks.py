"""Holding locks and semaphores: in threads, in asyncio, across processes."""

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import sqlite_fence
from sqlite_fence import Held, LeaseLost, Locks, PermitLost

DEADLINE = 60


def wait_until(done):
    begun = time.monotonic()
    while not done():
        if time.monotonic() - begun > DEADLINE:
            raise AssertionError("waited in vain")
        time.sleep(0.002)


class Story(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = os.path.join(folder.name, "kv.db")
        self.locks = Locks(self.store)
        self.addCleanup(self.locks.close)
        # Another program, as far as the package knows.
        self.db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        sqlite_fence.load(self.db)
        self.one("select fence_open(?)", self.store)

    def one(self, sql, *parameters):
        ((answer,),) = self.db.execute(sql, parameters).fetchall()
        return answer

    def held(self):
        return [key for (key,) in self.db.execute("select key from fence_leases order by key")]

    def end(self, lease):
        """Ends the lease behind its holder's back."""
        self.assertEqual(self.one("select fence_release(?, ?)", lease.key, lease.wire), 1)


class Naming(Story):
    def test_a_path_and_a_uri_name_the_same_store_also_after_a_change_of_folder(self):
        folder = os.path.dirname(self.store)
        elsewhere = tempfile.TemporaryDirectory()
        self.addCleanup(elsewhere.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        with Locks("kv.db") as by_path, Locks("file:kv.db") as by_uri:
            with by_uri.lock("chat").hold(1):
                os.chdir(elsewhere.name)
                with by_path.lock("chat").hold(2), by_uri.lock("chat").hold(3):
                    self.assertEqual(self.held(), ["chat:1", "chat:2", "chat:3"])
        self.assertEqual(os.listdir(elsewhere.name), [])


class Holding(Story):
    def test_the_key_is_held_inside_and_free_outside(self):
        with self.locks.lock("chat").hold(42) as lease:
            self.assertEqual(lease.key, "chat:42")
            self.assertEqual(self.held(), ["chat:42"])
        self.assertEqual(self.held(), [])

    def test_a_fence_keeps_every_digit_in_each_spelling(self):
        with self.locks.lock("chat").hold(42) as lease:
            told = self.one("select fence from fence_leases")
            self.assertEqual(lease.fence, int(told))
            self.assertEqual(lease.wire, told)
            self.assertEqual(lease.padded, f"{lease.fence:040}")
        with self.locks.lock("chat").hold(42) as later:
            self.assertGreater(later.fence, lease.fence)

    def test_who_does_not_wait_is_told_that_it_is_held(self):
        chat = self.locks.lock("chat")
        with chat.hold(42):
            with self.assertRaisesRegex(Held, "^fence: 'chat:42' is held by somebody else, after waiting 0 ms: "):
                with chat.hold(42, wait_ms=0):
                    self.fail("nobody else may be in here")

    def test_who_waits_gets_it_after_the_release(self):
        chat = self.locks.lock("chat")
        order = []
        with chat.hold(42) as first:

            def wait():
                with chat.hold(42) as second:
                    order.append(second.fence > first.fence)

            waiter = threading.Thread(target=wait)
            waiter.start()
            wait_until(lambda: threading.active_count() > 3)  # The waiter has its waiting thread.
            order.append("first is done")
        waiter.join(DEADLINE)
        self.assertEqual(order, ["first is done", True])

    def test_it_is_renewed_for_as_long_as_the_work_lasts(self):
        with self.locks.lock("chat", ttl_ms=300).hold(42) as lease:
            begun = time.monotonic()
            wait_until(lambda: time.monotonic() - begun > 1)
            self.assertFalse(lease.lost)
            lease.check()
            self.assertEqual(self.held(), ["chat:42"])

    def test_a_lease_that_was_lost_is_told_in_between_and_at_the_end(self):
        with self.assertRaisesRegex(LeaseLost, "^fence: the lease of 'chat:42' with fence [0-9]+ was lost"):
            with self.locks.lock("chat", ttl_ms=90).hold(42) as lease:
                self.end(lease)
                wait_until(lambda: lease.lost)
                with self.assertRaises(LeaseLost):
                    lease.check()

    def test_the_end_tells_even_what_no_renewal_found_out(self):
        with self.assertRaises(LeaseLost):
            with self.locks.lock("chat").hold(42) as lease:
                self.end(lease)

    def test_an_exception_releases_and_goes_its_way(self):
        with self.assertRaises(ZeroDivisionError):
            with self.locks.lock("chat").hold(42):
                1 / 0
        self.assertEqual(self.held(), [])
        with self.assertRaises(ZeroDivisionError):
            with self.locks.lock("chat").hold(42) as lease:
                self.end(lease)
                1 / 0

    def test_trouble_with_the_store_is_its_own_error_and_not_held(self):
        nowhere = Locks(os.path.join(self.store, "no", "kv.db"))
        with self.assertRaisesRegex(sqlite3.OperationalError, "^fence: "):
            with nowhere.lock("chat").hold(42):
                self.fail("there is no store")

    def test_a_limit_is_the_librarys(self):
        with self.assertRaisesRegex(sqlite3.OperationalError, "ttl_ms"):
            with self.locks.lock("chat", ttl_ms=0).hold(42):
                self.fail("a ttl of 0")

    def test_options_reach_the_store(self):
        with self.locks.lock("chat", delay_ms=1234, bound=True).hold(42):
            self.assertEqual(self.db.execute("select delay_ms, bound from fence_leases").fetchall(), [(1234, 1)])

    def test_threads_take_turns(self):
        chat = self.locks.lock("chat")
        inside, most = 0, 0

        def work():
            nonlocal inside, most
            for _ in range(5):
                with chat.hold(42):
                    inside += 1
                    most = max(most, inside)
                    inside -= 1

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual((most, inside, self.held()), (1, 0, []))

    def test_ctrl_c_ends_a_wait(self):
        script = """
import sys
from sqlite_fence import Locks
print("waits", flush=True)
with Locks(sys.argv[1]).lock("chat", wait_ms=3_600_000).hold(42):
    print("held")
"""
        with self.locks.lock("chat").hold(42):
            waiter = subprocess.Popen(
                [sys.executable, "-c", script, self.store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self.assertEqual(waiter.stdout.readline(), "waits\n")
            waiter.send_signal(signal.SIGINT)
            out, err = waiter.communicate(timeout=DEADLINE)
        self.assertEqual(out, "")
        self.assertIn("KeyboardInterrupt", err)

    def test_a_store_in_memory_could_not_be_shared(self):
        with self.assertRaisesRegex(sqlite_fence.FenceError, "give the path of a store"):
            Locks(":memory:")


class Semaphores(Story):
    def test_no_more_than_its_limit_are_inside(self):
        gpu = self.locks.semaphore("gpu", 2)
        with gpu.hold() as one, gpu.hold() as other:
            self.assertNotEqual(one.id, other.id)
            with self.assertRaises(Held):
                with gpu.hold(wait_ms=0):
                    self.fail("a third one")
        self.assertEqual(self.held(), [])

    def test_a_permit_is_no_fence(self):
        with self.locks.semaphore("gpu", 2).hold() as permit:
            self.assertFalse(hasattr(permit, "fence"))
            with self.assertRaises(sqlite3.OperationalError):
                self.one("select fence_pad(?)", permit.id)

    def test_a_permit_that_was_lost_is_told(self):
        with self.assertRaises(PermitLost):
            with self.locks.semaphore("gpu", 2).hold() as permit:
                self.assertEqual(self.one("select semaphore_release(?, ?)", permit.key, permit.id), 1)


class Asyncio(Story):
    def test_waiting_leaves_the_event_loop_free(self):
        chat = self.locks.lock("chat")

        async def story():
            ticks = 0

            async def second():
                async with chat.hold(42) as lease:
                    return lease.key

            async with chat.hold(42):
                waiter = asyncio.create_task(second())
                while ticks < 20:  # The loop turns while the second waits.
                    await asyncio.sleep(0.005)
                    ticks += 1
                self.assertFalse(waiter.done())
            return await asyncio.wait_for(waiter, DEADLINE)

        self.assertEqual(asyncio.run(story()), "chat:42")
        self.assertEqual(self.held(), [])

    def test_a_cancelled_wait_leaves_the_line_and_nothing_held(self):
        chat = self.locks.lock("chat")

        def waits():
            return any(thread.name == "fence-wait" for thread in threading.enumerate())

        async def story():
            async def second():
                async with chat.hold(42):
                    self.fail("it was cancelled")

            async with chat.hold(42):
                waiter = asyncio.create_task(second())
                while not waits():
                    await asyncio.sleep(0.005)
                waiter.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiter
                wait_until(lambda: not waits())  # It left the line while the key is still held.
            async with chat.hold(42):  # Whatever the waiter was granted, it gave back.
                pass

        asyncio.run(story())
        wait_until(lambda: self.held() == [])

    def test_a_lost_lease_is_told_at_the_end(self):
        async def story():
            async with self.locks.lock("chat").hold(42) as lease:
                self.end(lease)

        with self.assertRaises(LeaseLost):
            asyncio.run(story())


def in_child(locks, queue):
    with locks.lock("chat").hold("of the child") as lease:
        queue.put(lease.fence)


class Forking(Story):
    def test_a_forked_child_holds_for_itself_and_leaves_the_parents_lease_alone(self):
        fork = multiprocessing.get_context("fork")
        queue = fork.Queue()
        with self.locks.lock("chat").hold("of the parent") as lease:
            child = fork.Process(target=in_child, args=(self.locks, queue))
            child.start()
            fence = queue.get(timeout=DEADLINE)
            child.join(DEADLINE)
            self.assertEqual(child.exitcode, 0)
            self.assertGreater(fence, lease.fence)
            self.assertFalse(lease.lost)
            self.assertEqual(self.held(), ["chat:of the parent"])

    def test_a_child_that_leaves_the_parents_with_releases_nothing(self):
        reader, writer = os.pipe()
        with self.locks.lock("chat").hold(42) as lease:
            child = os.fork()
            if child == 0:
                os.write(writer, b"lost" if lease.lost else b"live")
            else:
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                self.assertEqual(os.read(reader, 4), b"lost")
                self.assertEqual(self.held(), ["chat:42"])
        if child == 0:
            os._exit(0)
        os.close(reader)
        os.close(writer)


if __name__ == "__main__":
    unittest.main()
