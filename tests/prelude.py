# What every Python script of the tests begins with.
import sqlite3, sys

extension, args = sys.argv[1], sys.argv[2:]


def connect(database=":memory:", **options):
    """A connection in autocommit mode with the extension loaded."""
    db = sqlite3.connect(database, isolation_level=None, **options)
    db.enable_load_extension(True)
    db.load_extension(extension)
    db.enable_load_extension(False)
    return db


def one(db, sql, *parameters):
    """The only value of the only row."""
    ((value,),) = db.execute(sql, parameters).fetchall()
    return value
