//! The packages' own documents: a new user installs each package from `dist/` into an empty environment by the command
//! that its README prints, and runs the programs that stand there.
//!
//! What a package stands on comes from its ecosystem's registry; but Go's driver is the system's, from no proxy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fence_tests::document::{self, Ready};
use fence_tests::{extension, folder, host, node, package, root, venv};

#[track_caller]
fn follow(readme: &str, ready: Ready) {
    let path = root().join(readme);
    let text = std::fs::read_to_string(&path).expect("a document");
    let report = document::run_where(&text, ready);
    assert!(report.wrong.is_empty(), "{readme}, {}", report.wrong.join("\n"));
    assert_eq!(report.not_run, Vec::<String>::new());
    assert!(report.run >= 4, "{report:?}");
}

fn dist() -> Option<PathBuf> {
    Some(root().join("dist"))
}

#[test]
fn pythons_package_installs_and_its_programs_run_as_its_readme_prints_them() {
    venv::wheel();
    let folder = folder();
    let python = venv::empty(folder.path());
    follow(
        "extension/hosts/python/README.md",
        Ready {
            dist: dist(),
            path: vec![python.parent().expect("a folder").to_owned()],
            // Nothing else is fetched.
            env: vec![("PIP_NO_INDEX", "1".into())],
        },
    );
}

#[test]
fn nodes_package_installs_and_its_programs_run_as_its_readme_prints_them() {
    node::ours();
    let node = PathBuf::from(node::node().get_program());
    let npm = host::find("npm");
    follow(
        "extension/hosts/node/README.md",
        Ready {
            dist: dist(),
            path: [node.parent(), npm.parent()]
                .into_iter()
                .flatten()
                .map(Path::to_owned)
                .collect(),
            ..Ready::default()
        },
    );
}

#[test]
fn gos_module_is_got_and_its_programs_run_as_its_readme_prints_them() {
    package::build("go", "dist/go");
    let work = folder();
    let own = proxy_of_the_systems_driver(work.path());
    follow(
        "extension/hosts/go/README.md",
        Ready {
            dist: dist(),
            path: vec![host::find("go").parent().expect("a folder").to_owned()],
            env: vec![
                ("GOPROXY", own.into()),
                ("GOSUMDB", "off".into()),
                ("GOMODCACHE", work.path().join("modules").into()),
                ("GOFLAGS", "-modcacherw".into()),
            ],
        },
    );
}

/// Makes a proxy of the system's driver, as a user has one elsewhere; gives its address.
fn proxy_of_the_systems_driver(folder: &Path) -> String {
    let version = std::fs::read_to_string(root().join("extension/hosts/go/go.mod")).expect("a file");
    let version = version
        .split("go-sqlite3 ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let script = "
import os, sys, zipfile
source, folder, version = sys.argv[1:]
module = 'github.com/mattn/go-sqlite3'
place = os.path.join(folder, module, '@v')
os.makedirs(place)
with zipfile.ZipFile(os.path.join(place, version + '.zip'), 'w') as zip:
    for at, _, names in os.walk(source):
        for name in names:
            path = os.path.join(at, name)
            zip.write(path, f'{module}@{version}/{os.path.relpath(path, source)}')
for suffix, text in ('.info', '{\"Version\":\"%s\"}' % version), ('.mod', f'module {module}\\n'):
    with open(os.path.join(place, version + suffix), 'w') as file:
        file.write(text)
";
    let proxy = folder.join("proxy");
    let mut python = host::command(host::find("python3"));
    python.args(["-I", "-c", script]).arg(host::find("mattn")).arg(&proxy);
    python.arg(version.expect("the driver's version"));
    host::run(python, "").ok();
    format!("file://{}", proxy.display())
}

#[test]
fn the_crate_is_added_and_its_programs_run_as_its_readme_prints_them() {
    package::build("rust", "dist/fence-core");
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    extension::make();
    follow(
        "core/README.md",
        Ready {
            dist: dist(),
            path: cargo.parent().map(Path::to_owned).into_iter().collect(),
            // What it compiles is kept for the next time.
            env: vec![("CARGO_TARGET_DIR", root().join("target/hosts/rust").into())],
        },
    );
}
