//! The recipes of extension/hosts/recipes, each run in its real host, and docs/hosts.md, into which they are written.
//!
//! `FENCE_WRITE_DOCS=1 cargo test -p fence-tests --test hosts_recipes` writes it anew.

use std::path::Path;
use std::process::Command;

use fence_tests::recipe::{self, Document, Told};
use fence_tests::{Shell, extension, floor, folder, go, host, library, node, root, surface, venv};

/// A recipe: what the host is called, its file, and the language of its `[how]`.
struct Recipe {
    host: &'static str,
    file: &'static str,
    language: &'static str,
    /// The command that runs this file, in this folder, with this library.
    command: fn(&Path, &Path, &Path) -> Command,
}

const fn recipe(
    host: &'static str,
    file: &'static str,
    language: &'static str,
    command: fn(&Path, &Path, &Path) -> Command,
) -> Recipe {
    Recipe {
        host,
        file,
        language,
        command,
    }
}

const RECIPES: &[Recipe] = &[
    recipe("`sqlite3` shell", "sqlite3_shell.sh", "sh", |file, _, library| {
        shell(Shell::path(), file, library)
    }),
    recipe(
        "`sqlite3` shell, the floor",
        "sqlite3_shell.sh",
        "sh",
        |file, _, library| shell(&floor::shell(), file, library),
    ),
    recipe("Python `sqlite3`", "sqlite3_module.py", "python", python),
    recipe("Python `apsw`", "apsw_module.py", "python", python),
    recipe("SQLAlchemy, a pool", "sqlalchemy_pool.py", "python", python),
    recipe("Django", "django_app.py", "python", python),
    recipe("Datasette", "datasette_plugin.sh", "sh", plugin),
    recipe("sqlite-utils", "sqlite_utils_plugin.sh", "sh", plugin),
    recipe("gunicorn, preloaded", "gunicorn_preload.py", "python", python),
    recipe("better-sqlite3", "better_sqlite3.mjs", "js", |file, _, library| {
        script(node::node(), &beside(file), library)
    }),
    recipe("`node:sqlite`", "node_sqlite.mjs", "js", |file, _, library| {
        script(node::node(), &beside(file), library)
    }),
    recipe("`bun:sqlite`", "bun_sqlite.mjs", "js", |file, _, library| {
        script(node::bun(), &beside(file), library)
    }),
    recipe("Go `database/sql`", "go_database_sql.go", "go", go_program),
    recipe("Ruby `sqlite3`", "ruby_sqlite3.rb", "ruby", |file, _, library| {
        script(host::command(host::find("ruby")), file, library)
    }),
    recipe("Puma, a cluster", "puma_cluster.rb", "ruby", |file, _, library| {
        host::find("puma");
        script(host::command(host::find("ruby")), file, library)
    }),
    recipe("PHP `SQLite3`", "php_sqlite3.php", "php", |file, _, library| {
        let mut php = host::command(host::find("php_sqlite3"));
        let folder = library.parent().expect("a folder");
        php.arg("-d").arg(format!("sqlite3.extension_dir={}", folder.display()));
        script(php, file, library)
    }),
    recipe("JDBC, xerial", "JdbcXerial.java", "java", |file, _, library| {
        let mut java = host::command(host::find("java"));
        java.arg("-cp").arg(host::find("jdbc"));
        script(java, file, library)
    }),
    recipe("Rust `rusqlite`", RUST, "rust", rust_program),
];

#[test]
fn every_recipe_runs_in_its_host_and_the_document_says_what_it_said() {
    let mut document = Document::open("docs/hosts.md");
    let mut rows = Vec::new();
    // A host at a time: each begins processes and threads of its own.
    let ran: Vec<_> = RECIPES.iter().map(|recipe| (recipe, run(recipe))).collect();
    for (recipe, told) in &ran {
        rows.push(format!("{} | {} | loads, locks, refuses", recipe.host, told.sqlite));
        let how = recipe::part(
            &root().join(PLACE).join(recipe.file),
            "how",
            recipe.language,
            "hosts_recipes.rs runs it",
        );
        document.put(&format!("how {}", recipe.file), &how);
        // The floor has its own words for errors; the document has those of today.
        if recipe.host != "`sqlite3` shell, the floor" && !told.lines.is_empty() {
            let wrong = told.lines.iter().map(|line| format!("{} | `{}`", line.what, line.said));
            let table = recipe::table(&["a wrong way", "what it says"], wrong);
            document.put(&format!("wrong {}", recipe.file), &table);
        }
    }
    let table = recipe::table(&["host", "its SQLite", "result"], rows.into_iter());
    document.put("what was run", &table);
    document.check();
}

#[test]
fn every_function_works_on_the_oldest_sqlite() {
    let shell = floor::shell();
    let folder = folder();
    for (example, gives) in surface::examples() {
        let mut command = host::command(&shell);
        command
            .current_dir(folder.path())
            .args(["-batch", "-init", "/dev/null", "-cmd"]);
        command
            .arg(format!(".load {}", library().display()))
            .args(["app.db", example]);
        assert_eq!(host::run(command, "").ok(), gives, "{example}");
    }
    let mut version = host::command(&shell);
    version.args([":memory:", "select sqlite_version()"]);
    assert_eq!(host::run(version, "").ok(), floor::VERSION);
}

const PLACE: &str = "extension/hosts/recipes";
/// Rust has its recipe among its examples.
const RUST: &str = "../rust/examples/load_library.rs";

fn run(recipe: &Recipe) -> Told {
    recipe::run(recipe.host, |folder, library| {
        (recipe.command)(&root().join(PLACE).join(recipe.file), folder, library)
    })
}

fn script(mut command: Command, file: &Path, library: &Path) -> Command {
    command.arg(file).arg(library);
    extension::forget_the_outer_build(&mut command);
    command
}

fn python(file: &Path, _: &Path, library: &Path) -> Command {
    let mut python = host::command(venv::python());
    python.arg("-I").env("PYTHONDONTWRITEBYTECODE", "1");
    script(python, file, library)
}

/// A bash script with the Python of the environment that has everything.
fn plugin(file: &Path, _: &Path, library: &Path) -> Command {
    let mut bash = host::command("bash");
    bash.env("PYTHON", venv::python());
    script(bash, file, library)
}

/// A bash script with this shell as its sqlite3.
fn shell(shell: &Path, file: &Path, library: &Path) -> Command {
    let folder = shell.parent().expect("a folder").to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).expect("a PATH");
    let mut bash = host::command("bash");
    bash.env("PATH", path);
    script(bash, file, library)
}

/// The file beside Node's packages, where its imports are found.
fn beside(file: &Path) -> std::path::PathBuf {
    node::place(&format!(
        "{PLACE}/{}",
        file.file_name().expect("a name").to_string_lossy()
    ))
}

fn go_program(file: &Path, folder: &Path, library: &Path) -> Command {
    std::fs::copy(file, folder.join("main.go")).expect("a copy");
    go::module(folder);
    go::run(folder, &["build", "-o", "program", "."]);
    let mut program = host::command(folder.join("program"));
    program.arg(library);
    program
}

fn rust_program(_: &Path, folder: &Path, library: &Path) -> Command {
    let mut cargo = host::command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    extension::forget_the_outer_build(&mut cargo);
    cargo
        .current_dir(root())
        .args(["build", "--quiet", "-p", "fence-examples", "--example", "load_library"]);
    cargo.arg("--target-dir").arg(root().join("target"));
    host::run(cargo, "").ok();
    let program = folder.join("program");
    std::fs::copy(root().join("target/debug/examples/load_library"), &program).expect("what was built");
    let mut program = host::command(program);
    program.arg(library);
    program
}
