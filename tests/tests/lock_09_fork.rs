//! LOCK-09: after a fork, parent and child and a third process go on together.
//!
//! Who owns a lease that was taken before the fork: it is named by its key and fence, so whoever knows both can renew and
//! release it, parent and child alike; let one of them do it. A *bound* lease is bound to the process that took it: the
//! child's end does not end it, the parent's does, also while the child lives on.

use fence_tests::{Python, folder};

#[test]
fn lock_09_parent_child_and_a_third_process_go_on_together() {
    let folder = folder();
    let script = "
import os, subprocess
folder = args[0]
db = connect(folder + '/app.db')
held = one(db, 'select fence_acquire(?, 3600000)', 'parent')
fences = [int(held)]
for round in range(30):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # Nothing of its parent's connection came along: SQLite would take it for its own, without the locks.
        links = [os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')]
        inherited = [link for link in links if '/kv.db' in link and not link.endswith('-fence')]
        assert inherited == [], inherited
        # Its parent's lease is not its own to take, and it takes one of its own on a connection of its own.
        assert one(db, 'select fence_acquire(?)', 'parent') is None
        mine = one(db, 'select fence_acquire(?, 3600000)', f'child {round}')
        os.write(write, mine.encode())
        os._exit(0)
    # While the child is at work the parent is, too.
    own = int(one(db, 'select fence_acquire(?, 3600000)', f'parent {round}'))
    theirs = int(os.read(read, 100))
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert own > fences[-1] and theirs > fences[-1] and own != theirs, (own, theirs, fences)
    fences.append(max(own, theirs))
    # The child's end has taken nothing from the parent, nor its own lease from it.
    assert one(db, 'select fence_renew(?, ?)', 'parent', held) == 1
    assert one(db, 'select fence_acquire(?)', f'child {round}') is None
    third = subprocess.run(['sqlite3', '-batch', '-cmd', f'.load {extension}', folder + '/third.db',
        f\"select ifnull(fence_acquire('parent'), 'held'), ifnull(fence_acquire('child {round}'), 'held'),\"
        f\" fence_acquire('third {round}', 3600000)\"], capture_output=True, text=True, check=True)
    a, b, c = third.stdout.strip().split('|')
    assert (a, b) == ('held', 'held') and int(c) > fences[-1], third
    fences.append(int(c))
assert one(db, 'select fence_release(?, ?)', 'parent', held) == 1
print('well')
";
    assert_eq!(Python::new(script).arg(folder.path()).run().ok(), "well");
}

#[test]
fn lock_09_a_pool_of_forked_processes_shares_the_store_that_its_parent_had_open() {
    let folder = folder();
    let script = "
import multiprocessing
db = connect(args[0] + '/app.db')
before = int(one(db, 'select fence_acquire(?, 3600000)', 'parent'))

def work(n):
    fences = []
    for _ in range(50):
        key = f'k{n % 2}'
        fence = one(db, 'select fence_acquire(?, 60000, 60000)', key)
        assert fence is not None
        fences.append(int(fence))
        assert one(db, 'select fence_release(?, ?)', key, fence) == 1
    assert fences == sorted(fences)
    return fences

with multiprocessing.get_context('fork').Pool(4) as pool:
    given = [fence for fences in pool.map(work, range(8)) for fence in fences]
given += work(0)
assert len(set(given)) == len(given) == 450
assert min(given) > before
assert one(db, 'select fence_acquire(?)', 'parent') is None
print('well')
";
    assert_eq!(Python::new(script).arg(folder.path()).run().ok(), "well");
}

#[test]
fn lock_09_a_bound_lease_is_its_parents_alone() {
    let folder = folder();
    let script = "
import os, subprocess, sys
folder = args[0]
def third(key):
    answer = subprocess.run(['sqlite3', '-batch', '-cmd', f'.load {extension}', folder + '/third.db',
        f\"select ifnull(fence_acquire('{key}', 1), 'held')\"], capture_output=True, text=True, check=True)
    return answer.stdout.strip()

def fork(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child

def parent():
    db = connect(folder + '/app.db')
    fence = one(db, 'select fence_acquire(?, 3600000, 0, ?)', 'bound', '{\"bound\": true}')
    def child():
        assert one(db, 'select fence_acquire(?)', 'bound') is None
    os.waitpid(fork(child), 0)
    assert third('bound') == 'held', 'the end of a child ends it not'
    def lives_on():
        one(db, 'select fence_acquire(?, 3600000)', 'lives on')
        os.write(write, b'x')
        os.read(read2, 1)
    fork(lives_on)
    os.read(read, 1)
    # The parent dies; the child, which has its memory, lives.

read, write = os.pipe()
read2, write2 = os.pipe()
_, status = os.waitpid(fork(parent), 0)
assert status == 0, status
assert third('bound') != 'held', 'its process has ended'
assert third('lives on') == 'held'
os.write(write2, b'x')
print('well')
";
    assert_eq!(Python::new(script).arg(folder.path()).run().ok(), "well");
}
