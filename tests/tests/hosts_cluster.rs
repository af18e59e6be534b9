//! The packages on a cluster: those that `make packages ETCD=1` builds, each installed into an empty environment.

use std::path::Path;

use fence_tests::etcd::Cluster;
use fence_tests::{folder, go, host, node, package, venv};

/// Holds `chat:42`, in which another asks for it in vain, and prints the fence.
const PYTHON: &str = "
import sys
from sqlite_fence import Held, Locks

with Locks(sys.argv[1]) as locks, Locks(sys.argv[1]) as others:
    with locks.lock('chat').hold(42) as lease:
        try:
            with others.lock('chat', wait_ms=0).hold(42):
                print('held twice')
        except Held:
            print(lease.fence)
";

const NODE: &str = "
import Database from 'better-sqlite3';
import { Held, Locks } from 'sqlite-fence';

const [locks, others] = [1, 2].map(() => new Locks(process.argv[2], () => new Database(':memory:')));
await locks.lock('chat').hold(42, async (lease) => {
  try {
    await others.lock('chat', { waitMs: 0 }).hold(42, () => console.log('held twice'));
  } catch (error) {
    if (!(error instanceof Held)) throw error;
    console.log(String(lease.fence));
  }
});
";

const GO: &str = r#"
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sqlite.fence/locks"
)

func main() {
	mine, err := locks.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	others, err := locks.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	err = mine.Lock("chat").Hold(context.Background(), 42, func(ctx context.Context, lease *locks.Lease) error {
		err := others.Lock("chat", locks.Wait(0)).Hold(ctx, 42, func(context.Context, *locks.Lease) error {
			return errors.New("held twice")
		})
		if !errors.Is(err, locks.ErrHeld) {
			return err
		}
		fmt.Println(lease.Fence())
		return nil
	})
	if err != nil {
		panic(err)
	}
}
"#;

#[test]
fn lock_02_each_package_holds_on_a_cluster_and_its_fence_is_larger_than_those_of_the_others_before() {
    let (cluster, packages) = (Cluster::start(), folder());
    let location = cluster.location("hosts");
    let hosts = [python, node, go];
    let fences: Vec<u128> = hosts
        .iter()
        .map(|host| host(packages.path(), &location))
        .map(|told| told.parse().unwrap_or_else(|_| panic!("no fence: {told}")))
        .collect();
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    assert_eq!(
        cluster.etcdctl(["get", "--prefix", "--keys-only", "hosts/key/"]).ok(),
        ""
    );
}

fn python(packages: &Path, location: &str) -> String {
    let folder = folder();
    let python = venv::empty(folder.path());
    let wheel = package::build_for_clusters("python", ".whl", packages);
    venv::pip(folder.path(), &["--no-index", &wheel]);
    let mut program = host::command(python);
    program.args(["-I", "-c", PYTHON, location]).current_dir(&folder);
    host::run(program, "").ok()
}

fn node(packages: &Path, location: &str) -> String {
    let folder = folder();
    let ours = package::build_for_clusters("node", ".tgz", packages);
    node::npm(folder.path(), &["install", &ours, "better-sqlite3@13.2.0"]);
    let program = folder.path().join("hold.mjs");
    std::fs::write(&program, NODE).expect("a new file");
    let mut node = node::node();
    node.arg(program).arg(location);
    host::run(node, "").ok()
}

fn go(packages: &Path, location: &str) -> String {
    let folder = folder();
    let proxy = package::build_for_clusters("go", "/go", packages);
    std::fs::write(folder.path().join("main.go"), GO).expect("a new file");
    go::module_from(&proxy, folder.path());
    go::run_from(&proxy, folder.path(), &["run", ".", location])
}
