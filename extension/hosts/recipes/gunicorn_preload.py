"""gunicorn with --preload: the application is loaded once, with its locks, and forked into workers."""

import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import sqlite_fence

# [how]
# The application, loaded in the parent. A Locks goes on working in the workers: each opens connections of its own there.
locks = sqlite_fence.Locks("kv.db")
pages = locks.lock("pages")


def application(environ, start_response):
    with pages.hold("one") as lease:
        body = json.dumps({"process": os.getpid(), "fence": str(lease.fence)}).encode()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body]


# [end]
if __name__ != "__main__":
    # In gunicorn's parent, before it forks: the locks are used, and one lease is held for good.
    parents = locks.lock("parent", ttl_ms=600_000).hold("startup")
    parents.__enter__()
else:

    def get():
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect("socket")
        connection.request("GET", "/")
        return json.load(connection.getresponse())

    print("SQLite", sqlite3.sqlite_version)
    here = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "3", "--bind", "unix:socket"]
    command += ["--pythonpath", here, "--log-level", "error", "gunicorn_preload:application"]
    server = subprocess.Popen(command, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    try:
        deadline = time.monotonic() + 60
        answers = []
        while len({answer["process"] for answer in answers}) < 3:
            assert time.monotonic() < deadline, answers
            try:
                answers.append(get())
            except (ConnectionError, FileNotFoundError):
                time.sleep(0.02)
        fences = [int(answer["fence"]) for answer in answers]
        assert fences == sorted(set(fences)), fences
    finally:
        server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0, "gunicorn ended with a signal"
    print("ok")
