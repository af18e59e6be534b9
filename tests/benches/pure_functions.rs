//! What the pure functions cost, beside the built-in ones that do the nearest thing, in one run on one machine.
//!
//! `cargo bench -p fence-tests` prints, for each pair, the least CPU time of five scans over two million rows, the two
//! taking turns, and their ratio. The cost of the scan itself is in both. Nothing is asserted: a busy machine is no
//! fault of the code. `cargo test --benches` runs it on a few rows, to see that it works.

use fence_tests::Python;

const SCRIPT: &str = r#"
import time
rows = int(args[0])
db = connect()
db.execute("create table t (a text, b text, w text, i integer)")
db.execute("""
    with recursive n(i) as (select 1 union all select i + 1 from n limit ?)
    insert into t select fence_pad(fence_make(1796134800000 + i % 7, i)), fence_pad(fence_make(1796134800003, i)),
                         fence_make(1796134800000, i), i * 1000003 from n""", (rows,))

def scan(expression):
    begun = time.process_time()
    one(db, f"select max({expression}) from t")
    return time.process_time() - begun

print(f"{rows} rows")
for ours, builtin in (
    ("fence_ok(a, b)", "max(a, b) = b"),
    ("fence_newer(a, b)", "max(a, b) = b"),
    ("fence_ok(a, w)", "max(a, b) = b"),
    ("fence_pad(i)", "printf('%040d', i)"),
    ("fence_pad(a)", "printf('%040d', i)"),
    ("fence_pad(w)", "printf('%040d', i)"),
    ("fence_wire(a)", "ltrim(a, '0')"),
):
    pairs = [(scan(ours), scan(builtin)) for _ in range(5)]
    mine, theirs = (min(times) for times in zip(*pairs))
    print(f"{ours:18} {mine * 1e9 / rows:6.1f} ns   {builtin:18} {theirs * 1e9 / rows:6.1f} ns   ratio {mine / theirs:.2f}")
"#;

fn main() {
    let measures = std::env::args().any(|argument| argument == "--bench");
    let rows = if measures { "2000000" } else { "1000" };
    println!("{}", Python::new(SCRIPT).arg(rows).run().ok());
}
