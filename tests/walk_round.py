# Random statements on random tables: is a stale write ever let through, is a good one ever refused?
#
# args: the seed, and how many tables. Each statement runs on two copies of one database, with and without a guard. Without
# it, triggers note every row that was written, and every row that made way: with recursive_triggers on, REPLACE fires the
# triggers for deletion. So what the statement did tells what the guard has to say to it. A difference is printed with all
# that it takes to see it again, and ends the run.
import random

FENCES = [None, "", *(f"{n:040}" for n in range(1, 5))]
NO_FENCES = [1, "7", "+" + f"{7:039}", b"0" * 40, f"{7:040}\0", f"{2**128:040}", " " * 40]
NAMES = [["a", "b", "c", "d"], ["a b", '"q"', "sélect", "key"], ["rowid", "oid", "b", "c"], ["order", "A", "end", "from"]]
TYPES = ["text", "integer", "numeric", "real", "blob", "", "varchar(10)", "decimal"]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Case:
    """A table with its keys."""

    def __init__(self, r):
        self.names = r.choice(NAMES)
        self.key = r.choice(["rowid", "rowid", "text", "pair", "none", "descending", "without rowid"])
        a, b, c, d = map(quoted, self.names)
        self.types = {name: r.choice(TYPES) for name in self.names}
        columns = [
            {
                "rowid": "id integer primary key" + r.choice(["", " autoincrement", " on conflict replace"]),
                "text": "id text primary key" + r.choice(["", " collate nocase"]),
                "descending": "id integer primary key desc",
            }.get(self.key, "id")
        ]
        for name in self.names:
            column = f"{quoted(name)} {self.types[name]}"
            column += r.choice(["", "", " collate nocase", " collate rtrim"])
            column += r.choice(["", "", f" not null default {self.default(name)}", " not null on conflict replace"])
            column += r.choice(["", "", "", " unique", " unique on conflict replace"])
            columns.append(column)
        columns.append(r.choice(["f text not null default ''", "f", "f text collate nocase default ''", "f blob"]))
        self.generated = r.random() < 0.25
        if self.generated:
            columns.append(r.choice([f"g as (lower({a}))", f"g text as (ifnull({a}, 0) || {b}) stored"]))
        if self.key == "pair":
            columns.append(f"primary key (id, {a})")
        if self.key == "without rowid":
            columns.append(f"primary key (id, {a} collate nocase)")
        if r.random() < 0.3:
            columns.append(f"unique ({c} collate nocase, {d})" + r.choice(["", " on conflict replace"]))
        self.schema = [f"create table t ({', '.join(columns)})" + (" without rowid" if self.key == "without rowid" else "")]
        for i in range(r.choice([0, 1, 1, 2])):
            x, y = map(quoted, r.sample(self.names, 2))
            terms = [x, f"{x} collate nocase desc", f"{x} collate binary", f"{x}, {y}", f"lower({x})", f"{x} || {y}", f"cast({x} as integer)"]
            wheres = ["", "", f"{x} is null", f"{y} = 1", f"{y} = '1'", f"{y} in (1, 'a')", y, f"t.{y} > '0'", "f = ''"]
            term, where = r.choice(terms + ["g"] * self.generated), r.choice(wheres)
            self.schema.append(f"create unique index i{i} on t ({term})" + (f" where {where}" if where else ""))

    def default(self, name):
        """A default that is of the column's type."""
        return "'a'" if self.types[name] in ("text", "varchar(10)", "blob", "") else "1"

    def value(self, r, name):
        """A value that its column holds as it is: guards take any other for one that a partial index may hold."""
        if name == "id":
            return r.choice([1, 2, 3, None] if self.key in ("rowid", "descending") else ["k1", "K1", "k2", 1, None])
        if self.types[name] in ("text", "varchar(10)"):
            return r.choice([None, "1", "a", "A", "a ", "", "10"])
        if self.types[name] in ("blob", ""):
            return r.choice([None, 1, "1", "a", "A", "a ", b"a", 1.0, ""])
        return r.choice([None, 0, 1, 2, 1.5, "1"])

    def rowid(self):
        """What the rowid is called where it is no column."""
        if self.key in ("rowid", "without rowid"):
            return []
        return [name for name in ("rowid", "_rowid_", "oid") if name not in self.names][:1]

    def statement(self, r):
        fence = r.choice(NO_FENCES) if r.random() < 0.04 else r.choice(FENCES)
        clause = r.choice(["", " or replace", " or replace", " or rollback"])
        row = {quoted(name): self.value(r, name) for name in ["id", *self.names] if r.random() < 0.8}
        if r.random() < 0.3:
            row |= {name: r.choice([1, 2, 3, 4]) for name in self.rowid()}
        kind = r.choice(["insert", "upsert", "update", "update"])
        if kind == "update":
            row = {name: row[name] for name in r.sample(list(row), min(2, len(row)))}
        if kind == "upsert" or r.random() < 0.8 or not row:
            row["f"] = fence
        marks = ", ".join("?" * len(row))
        if kind == "insert":
            values = r.choice([f"values ({marks})", f"select {marks} where true"])
            return f"insert{clause} into t ({', '.join(row)}) {values}", list(row.values())
        if kind == "upsert":
            column = quoted(r.choice(self.names))
            sets = f"{column} = excluded.{column}, f = excluded.f"
            return f"insert into t ({', '.join(row)}) values ({marks}) on conflict do update set {sets}", list(row.values())
        sets = ", ".join(f"{name} = ?" for name in row)
        which = r.choice(["", " where f is (select min(f) from t)", " where id is (select max(id) from t)"])
        return f"update{clause} t set {sets}{which}", list(row.values())


def copy(db):
    new = sqlite3.connect(":memory:", isolation_level=None)
    db.backup(new)
    return new


def attempt(db, statement, values):
    """The error, if any, and what is there afterwards."""
    try:
        db.execute(statement, values)
        error = None
    except sqlite3.Error as refused:
        error = refused
    told = db.execute("select changes(), last_insert_rowid()").fetchall()
    return error, told, sorted(map(repr, db.execute("select * from t").fetchall()))


def is_fence(value):
    return not value or isinstance(value, str) and len(value) == 40 and value.isdecimal() and int(value) < 2**128


def is_stale(log, must_rise):
    """Whether a row that was written has a smaller fence than itself before, or than one that made way for it."""
    gone = []
    for operation, old, new in log:
        if operation == "delete":
            gone.append(old or "")
            continue
        if not is_fence(new):
            return True
        new = new or ""
        before = old or "" if operation == "update" else ""
        if before > new or any(fence > new for fence in gone):
            return True
        if must_rise and (before == new or operation == "insert" and new in gone):
            return True
        gone = []
    return False


refused = good = 0
for table in range(int(args[1])):
    r = random.Random(f"{args[0]} {table}")
    case, mode = Case(r), r.choice(["holder", "write"])
    bare = connect()
    for sql in case.schema:
        bare.execute(sql)
    for _ in range(8):
        statement, values = case.statement(r)
        if statement.startswith("insert") and not any(value in NO_FENCES for value in values):
            attempt(bare, statement, values)
    guarded = copy(bare)
    guarded.enable_load_extension(True)
    guarded.load_extension(extension)
    guarded.execute("select fence_guard('t', 'f', ?)", [mode]).fetchall()
    logged = copy(bare)
    logged.execute("create table log (operation, old, new)")
    for operation, old, new in [("insert", "null", "new.f"), ("update", "old.f", "new.f"), ("delete", "old.f", "null")]:
        logged.execute(
            f"create trigger log_{operation} after {operation} on t begin"
            f" insert into log values ('{operation}', {old}, {new}); end"
        )
    for _ in range(15):
        statement, values = case.statement(r)
        observed = copy(logged)
        observed.execute("pragma recursive_triggers = on")
        failed = attempt(observed, statement, values)[0]
        log = observed.execute("select * from log").fetchall()
        recursive = r.choice(["on", "off"])
        databases = copy(bare), copy(guarded)
        for db in databases:
            db.execute(f"pragma recursive_triggers = {recursive}")
        without, with_guard = (attempt(db, statement, values) for db in databases)
        error = with_guard[0]
        is_refused = error is not None and str(error).startswith("fence: ") and error.sqlite_errorcode == 1811
        problem = None
        if is_stale(log, mode == "write"):
            refused += 1
            problem = None if is_refused else "a stale write went through"
        elif log and not failed:
            good += 1
            # An UPSERT is an INSERT that turns into an UPDATE, and the guard sees the one before the other.
            over = "on conflict" in statement or "NULL stands for a default" in str(error)
            if is_refused:
                problem = None if over else "a good write was refused"
            elif with_guard != without:
                problem = "a good write came to something else"
        if problem:
            rows = bare.execute("select * from t").fetchall()
            print(problem, *case.schema, mode, statement, values, rows, log, error, sep="\n")
            sys.exit(1)
print("refused", refused, "good", good)
