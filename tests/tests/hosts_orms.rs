//! The programs of extension/hosts/orms, each run with its real ORM, and docs/orms.md, into which they are written.
//!
//! `FENCE_WRITE_DOCS=1 cargo test -p fence-tests --test hosts_orms` writes it anew.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fence_tests::recipe::{self, Document, Line, Told};
use fence_tests::{extension, host, node, root, venv};

const PLACE: &str = "extension/hosts/orms";

/// An ORM: its folder, the ending of its files and how Markdown calls their language, and the packages that make it.
struct Orm {
    folder: &'static str,
    ending: &'static str,
    language: &'static str,
    packages: &'static [&'static str],
}

const ORMS: [Orm; 3] = [
    Orm {
        folder: "sqlalchemy",
        ending: "py",
        language: "python",
        packages: &["sqlalchemy", "alembic"],
    },
    Orm {
        folder: "django",
        ending: "py",
        language: "python",
        packages: &["django"],
    },
    Orm {
        folder: "kysely",
        ending: "mts",
        language: "ts",
        packages: &["kysely", "better-sqlite3"],
    },
];
/// What each folder has to run.
const PROGRAMS: [&str; 3] = ["writes", "ways", "migrations"];

/// The kinds of lines that they tell, each with the head of its table.
const TABLES: [(&str, &[&str]); 6] = [
    ("refused", &["refused", "what one sees"]),
    ("after", &["where", "afterwards"]),
    (
        "way",
        &["a late write", "without a guard", "mode `holder`", "mode `write`"],
    ),
    (
        "type",
        &["the column's type, the value", "what is read again", "`fence_guard`"],
    ),
    ("audit", &["looked at", "what it says"]),
    ("operation", &["by itself", "the guard"]),
];

#[test]
fn every_program_runs_with_its_orm_and_the_document_says_what_it_said() {
    let mut document = Document::open("docs/orms.md");
    let mut rows = Vec::new();
    for orm in ORMS {
        let told = PROGRAMS.map(|program| run(&orm, program));
        for lines in told
            .iter()
            .flat_map(|told| told.lines.chunk_by(|one, next| one.kind == next.kind))
        {
            document.put(&format!("{} {}", lines[0].kind, orm.folder), &table(lines));
        }
        for file in files(&root().join(PLACE).join(orm.folder), orm.ending) {
            let name = file.strip_prefix(root().join(PLACE)).expect("a file of ours").display();
            for part in recipe::parts(&file) {
                let text = recipe::part(&file, &part, orm.language, "hosts_orms.rs runs it");
                document.put(&format!("{name} {part}"), &text);
            }
        }
        let packages: Vec<_> = orm.packages.iter().map(|name| pinned(name)).collect();
        rows.push(format!("{} | {}", packages.join(", "), told[0].sqlite));
    }
    let table = recipe::table(&["packages", "their SQLite"], rows.into_iter());
    document.put("what was run", &table);
    document.check();
}

#[test]
fn the_types_of_the_kysely_programs_are_clean() {
    for program in PROGRAMS {
        assert_eq!(node::tsc(&kysely().join(format!("{program}.mts"))), "");
    }
}

fn run(orm: &Orm, program: &str) -> Told {
    let file = format!("{program}.{}", orm.ending);
    recipe::run(&format!("{}/{file}", orm.folder), |_, _| {
        let mut command = if orm.folder == "kysely" {
            let mut node = node::node();
            node.arg(kysely().join(file));
            node
        } else {
            let mut python = host::command(venv::python());
            python.args(["-I", "-B"]);
            python.arg(root().join(PLACE).join(orm.folder).join(file));
            python
        };
        extension::forget_the_outer_build(&mut command);
        command
    })
}

/// The package with the version that the tests install.
fn pinned(package: &str) -> String {
    let lists = [
        include_str!("../python-packages.txt"),
        include_str!("../node-packages/package.json"),
    ];
    let version = lists.iter().flat_map(|list| list.lines()).find_map(|line| {
        let python = line.strip_prefix(package).and_then(|rest| rest.strip_prefix("=="));
        let node = || line.trim().strip_prefix(&format!("\"{package}\": "));
        python.or_else(node)
    });
    let version = version.unwrap_or_else(|| panic!("{package} is not among the packages of the tests"));
    format!("{package} {}", version.trim_matches([',', '"']))
}

/// The folder beside Node's packages, where its imports are found.
fn kysely() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| node::place(&format!("{PLACE}/kysely")))
}

/// One table of lines of one kind.
fn table(lines: &[Line]) -> String {
    let kind = &lines[0].kind;
    let (_, head) = TABLES
        .iter()
        .find(|(known, _)| known == kind)
        .unwrap_or_else(|| panic!("no table for lines of kind {kind}"));
    let rows = lines.iter().map(|line| {
        let row = format!("{} | {}", line.what, line.said);
        assert_eq!(row.split(" | ").count(), head.len(), "{row}");
        row
    });
    recipe::table(head, rows)
}

/// The files in this folder and those below it that end like this, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = folder.read_dir().expect("a folder");
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| {
            if path.is_dir() {
                files(&path, ending)
            } else {
                vec![path]
            }
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .collect();
    found.sort();
    found
}
