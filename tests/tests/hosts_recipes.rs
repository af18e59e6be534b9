//! The recipes of extension/hosts/recipes, each run in its real host, and docs/hosts.md, into which they are written.
//!
//! Between `<!-- begin NAME -->` and `<!-- end -->` the document holds what the run gave. When it is out of date, the
//! test says where, and `FENCE_WRITE_DOCS=1 cargo test -p fence-tests --test hosts_recipes` writes it anew.

use std::path::Path;
use std::process::Command;

use fence_tests::{Answer, Shell, extension, floor, folder, go, host, library, node, root, surface, venv};

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
    let file = root().join("docs/hosts.md");
    let document = std::fs::read_to_string(&file).expect("the document");
    let mut written = document.clone();
    let mut rows = String::from("| host | its SQLite | result |\n|---|---|---|\n");
    // A host at a time: each begins processes and threads of its own.
    let ran: Vec<_> = RECIPES.iter().map(|recipe| (recipe, run(recipe))).collect();
    for (recipe, told) in &ran {
        rows += &format!("| {} | {} | {} |\n", recipe.host, told.sqlite, "loads, locks, refuses");
        write(
            &mut written,
            &format!("how {}", recipe.file),
            &how(&root().join(PLACE).join(recipe.file), recipe.language),
        );
        // The floor has its own words for errors; the document has those of today.
        if recipe.host != "`sqlite3` shell, the floor" && !told.wrong.is_empty() {
            write(&mut written, &format!("wrong {}", recipe.file), &table(&told.wrong));
        }
    }
    write(&mut written, "what was run", &rows);
    if std::env::var_os("FENCE_WRITE_DOCS").is_some() {
        std::fs::write(&file, &written).expect("the document");
        return;
    }
    let differ = document.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(
        differ.is_none() && document == written,
        "docs/hosts.md is out of date: {differ:?}"
    );
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

/// What a recipe told.
struct Told {
    sqlite: String,
    /// The wrong ways, each with what it said.
    wrong: Vec<(String, String)>,
}

fn run(recipe: &Recipe) -> Told {
    let folder = folder();
    let real = folder.path().canonicalize().expect("a folder");
    let copy = real
        .join("lib")
        .join("fence")
        .with_extension(library().extension().expect("a library's name"));
    std::fs::create_dir(real.join("lib")).expect("a new folder");
    std::fs::copy(library(), &copy).expect("a copy");
    let mut command = (recipe.command)(&root().join(PLACE).join(recipe.file), &real, &copy);
    command.current_dir(&real);
    let answer = host::run(command, "");
    assert!(answer.status.success(), "{}: {answer}", recipe.host);
    told(recipe.host, &answer, &real)
}

fn told(host: &str, answer: &Answer, folder: &Path) -> Told {
    let out = answer.out.replace(&*folder.to_string_lossy(), "/path/to");
    let mut lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.pop(), Some("ok"), "{host}: {answer}");
    let sqlite = lines
        .first()
        .and_then(|line| line.strip_prefix("SQLite "))
        .unwrap_or_else(|| panic!("{host}: {answer}"));
    let wrong = lines[1..].iter().map(|line| {
        let wrong = line.strip_prefix("wrong: ").and_then(|rest| rest.split_once(": "));
        wrong
            .map(|(what, said)| (what.to_string(), said.to_string()))
            .unwrap_or_else(|| panic!("{host}: {answer}"))
    });
    Told {
        sqlite: sqlite.to_string(),
        wrong: wrong.collect(),
    }
}

/// The part of the file between `[how]` and `[end]`, as a block of the document.
fn how(file: &Path, language: &str) -> String {
    let text = std::fs::read_to_string(file).expect("a recipe");
    let lines = text.lines().skip_while(|line| !line.contains("[how]")).skip(1);
    let lines: Vec<_> = lines.take_while(|line| !line.contains("[end]")).collect();
    let indent = lines
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| line.get(indent.unwrap_or(0)..).unwrap_or(""))
        .collect();
    assert!(!lines.is_empty(), "{} has no [how]", file.display());
    format!(
        "<!-- not run: hosts_recipes.rs runs it -->\n```{language}\n{}\n```\n",
        lines.join("\n").trim()
    )
}

fn table(wrong: &[(String, String)]) -> String {
    let rows = wrong.iter().map(|(what, said)| format!("| {what} | `{said}` |\n"));
    format!(
        "| a wrong way | what it says |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// Puts the text between the two comments.
fn write(document: &mut String, name: &str, text: &str) {
    let begin = format!("<!-- begin {name} -->\n");
    let start = document
        .find(&begin)
        .unwrap_or_else(|| panic!("docs/hosts.md has no {begin}"))
        + begin.len();
    let length = document[start..].find("<!-- end -->").expect("its end");
    document.replace_range(start..start + length, text);
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
