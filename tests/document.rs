//! A document whose examples are run: each prints what stands in the document, or the test fails.
//!
//! The blocks of a document are run from top to bottom in one new folder, as a reader would who follows it. The folder
//! has the built library at `dist/` and the repository's `sql/`, and the built program is installed as `fence`.
//!
//! | block | what is run | what is compared |
//! |---|---|---|
//! | `console` | `$ command` in a bash; `sqlite> statement`, or `fence> `, with `   ...> ` on its further lines, in the open shell | the lines below it |
//! | `sh` | each line, as if behind `$ `; an `export` holds from there on | it must succeed; what it prints is not shown |
//! | `sh FILE`, `python FILE` … | nothing: it becomes a file of that name in the folder | |
//! | `sql` | the whole block in the open shell | its lines `--> row`; a block without prints nothing |
//!
//! `$ sqlite3 FILE` opens a shell, without the extension as a reader's is, and `$ fence sql FILE` one with it; it stays
//! open until the next `$`. An `sql` block without an open shell gets one of its own, in memory and with the extension. `make` runs at the repository's
//! root; of a command only the standard output is compared. `mermaid` and `text` blocks show something and run
//! nothing. Any other block is an error, unless the line above it is `<!-- not run: reason -->`.
//!
//! [`Report::written`] is the document with what was printed in place of what stood there: the generator of every output in
//! the documents. What is right stays as it is, letter for letter.
//!
//! What differs from run to run:
//!
//! - A number of 20 to 40 digits is a fence. The fences of the document and those of the run are paired in the order in
//!   which they first appear, and compare equal as pairs, a padded one with a padded one. Where the document types the
//!   fence that it was given, the run types the one that it was given. So it is with permits.
//! - The folder is called `/home/me/app`.
//! - `etcd-1:2379`, `etcd-2:2379` and `etcd-3:2379` are a cluster. A document that names them has one of its own, and the
//!   library that can use it at `dist/`.
//! - A shell that reads from a pipe says `near line 7` in its errors; one that talks to a person does not, and so does
//!   not the document.

mod fences;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::fences::Fences;
use crate::etcd::Cluster;
use crate::{Session, Shell, extension, host};

/// The languages that are shown and not run.
const SHOWN: [&str; 2] = ["mermaid", "text"];
/// What stands before what is typed.
const PROMPTS: [&str; 3] = ["$ ", "sqlite> ", "fence> "];
/// What stands before a statement's further lines; the program's prompt is one shorter.
const CONTINUED: [&str; 2] = ["   ...> ", "  ...> "];
/// What a document calls the members of its cluster.
const MEMBERS: [&str; 3] = ["etcd-1:2379", "etcd-2:2379", "etcd-3:2379"];
/// The folder of installed programs, in the reader's.
const INSTALLED: &str = ".installed";

/// A fenced block of a document.
#[derive(Debug)]
struct Block<'a> {
    /// The number of its first line.
    line: usize,
    language: &'a str,
    /// Why it is not run, if the line above says so.
    not_run: Option<&'a str>,
    lines: Vec<&'a str>,
}

/// What was found in a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many blocks were run.
    pub run: usize,
    /// The reasons of the blocks that are marked as not run.
    pub not_run: Vec<String>,
    /// Where the document and the run differ, each as a message. None is what one wants.
    pub wrong: Vec<String>,
    /// The document with what the run printed.
    pub written: String,
}

/// Lines of the document, by number, and what is to stand in their place.
type Edit = (Range<usize>, Vec<String>);

/// What a reader has before the first example.
#[derive(Debug, Default)]
pub struct Ready {
    /// What stands at `dist/`, in place of the library alone.
    pub dist: Option<PathBuf>,
    /// The folders in front of all others in which programs are looked for.
    pub path: Vec<PathBuf>,
    /// Variables of the environment.
    pub env: Vec<(&'static str, OsString)>,
}

/// Runs every example of the document.
pub fn run(text: &str) -> Report {
    run_where(text, Ready::default())
}

/// Runs every example of the document, where the reader has this.
pub fn run_where(text: &str, ready: Ready) -> Report {
    let mut report = Report::default();
    let mut reader = Reader::new(ready);
    if text.contains(MEMBERS[0]) {
        reader.cluster = Some(Cluster::start());
        reader.has_built(extension::cluster_library(), "fence-etcd");
    }
    for block in blocks(text) {
        if let Some(reason) = block.not_run {
            report.not_run.push(reason.to_string());
        } else if !SHOWN.contains(&block.language) {
            report.run += 1;
            let wrong = match block.language {
                "console" => reader.console(&block),
                "sh" => reader.sh(&block),
                "sql" => reader.sql(&block),
                file if file.contains(' ') => reader.file(&block),
                other => vec![format!("line {}: no rule runs a block of '{other}'", block.line)],
            };
            report.wrong.extend(wrong);
        }
    }
    report.written = written(text, reader.edits);
    report
}

/// The document with the edits made.
fn written(text: &str, edits: Vec<Edit>) -> String {
    let mut lines: Vec<_> = text.split('\n').map(String::from).collect();
    for (place, new) in edits.into_iter().rev() {
        lines.splice(place.start - 1..place.end - 1, new);
    }
    lines.join("\n")
}

/// The fenced blocks of the document, in order.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    let mut above = "";
    for (number, line) in (1..).zip(text.lines()) {
        match line.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                let not_run = above
                    .strip_prefix("<!-- not run: ")
                    .and_then(|rest| rest.strip_suffix(" -->"));
                blocks.push(Block {
                    line: number + 1,
                    language,
                    not_run,
                    lines: Vec::new(),
                });
            }
            None if open => blocks.last_mut().expect("an open block").lines.push(line),
            None => {}
        }
        above = line;
    }
    blocks
}

/// One who follows a document: has a folder, perhaps an open shell, and has seen fences.
struct Reader {
    folder: tempfile::TempDir,
    shell: Option<Session>,
    cluster: Option<Cluster>,
    ready: Ready,
    /// What was exported.
    exports: Vec<String>,
    fences: Fences,
    /// What is to be written into the document, from top to bottom.
    edits: Vec<Edit>,
}

impl Reader {
    fn new(ready: Ready) -> Self {
        let folder = crate::folder();
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, folder.path().join(name)).expect("a new name");
        };
        link(&crate::root().join("sql"), "sql");
        std::fs::create_dir(folder.path().join(INSTALLED)).expect("a new folder");
        link(crate::program(), &format!("{INSTALLED}/fence"));
        match &ready.dist {
            Some(dist) => link(dist, "dist"),
            None => std::fs::create_dir(folder.path().join("dist")).expect("a new folder"),
        }
        let reader = Self {
            folder,
            shell: None,
            cluster: None,
            exports: Vec::new(),
            ready,
            fences: Fences::default(),
            edits: Vec::new(),
        };
        if reader.ready.dist.is_none() {
            reader.has_built(extension::library(), "fence");
        }
        reader
    }

    /// Puts a library into the folder's dist/ under this name.
    fn has_built(&self, library: &Path, name: &str) {
        let suffix = library.extension().expect("a library's name");
        let there = self.folder.path().join("dist").join(name).with_extension(suffix);
        std::fs::copy(library, there).expect("the built library");
    }

    /// The names of the cluster's members in the document, with where they are.
    fn members(&self) -> Vec<(&'static str, String)> {
        let all = |cluster: &Cluster| {
            let endpoints = (0..).map(|member| cluster.endpoint(member));
            MEMBERS.into_iter().zip(endpoints).collect()
        };
        self.cluster.as_ref().map(all).unwrap_or_default()
    }

    /// What is typed where that stands in the document.
    fn typed(&mut self, text: &str) -> String {
        let typed = self.fences.typed(text);
        self.members()
            .iter()
            .fold(typed, |typed, (name, place)| typed.replace(name, place))
    }

    fn console(&mut self, block: &Block) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut lines = (block.line..).zip(block.lines.iter().copied()).peekable();
        while let Some((number, line)) = lines.next() {
            let Some(typed) = PROMPTS.iter().find_map(|prompt| line.strip_prefix(prompt)) else {
                wrong.push(format!("line {number}: nothing was typed that could print '{line}'"));
                continue;
            };
            let mut typed = typed.to_string();
            let continued = |line: &'_ str| CONTINUED.iter().find(|prompt| line.starts_with(**prompt)).copied();
            while let Some((_, more)) = lines.next_if(|(_, line)| continued(line).is_some()) {
                typed.extend(["\n", &more[continued(more).map_or(0, str::len)..]]);
            }
            let mut documented = Vec::new();
            let mut end = number + 1 + typed.matches('\n').count();
            let begin = end;
            while let Some((_, line)) =
                lines.next_if(|(_, line)| !PROMPTS.iter().any(|prompt| line.starts_with(prompt)))
            {
                documented.push(line);
                end += 1;
            }
            let typed = self.typed(&typed);
            let printed = if line.starts_with('$') {
                self.command(&typed)
            } else {
                self.statement(&typed)
            };
            match self.compare(number, &typed, &documented.join("\n"), printed) {
                Ok(()) => {}
                Err((message, printed)) => {
                    wrong.push(message);
                    let new = printed.map(|printed| (begin..end, printed.lines().map(String::from).collect()));
                    self.edits.extend(new);
                }
            }
        }
        wrong
    }

    fn sh(&mut self, block: &Block) -> Vec<String> {
        let lines = (block.line..)
            .zip(&block.lines)
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        lines
            .filter_map(|(number, line)| {
                let typed = self.typed(line);
                self.command(&typed).err().map(|e| format!("line {number}: {e}"))
            })
            .collect()
    }

    fn file(&mut self, block: &Block) -> Vec<String> {
        let (_, name) = block.language.split_once(' ').expect("a language and a name");
        let path = self.folder.path().join(name);
        std::fs::write(&path, block.lines.join("\n") + "\n").expect("a new file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a file of ours");
        Vec::new()
    }

    fn sql(&mut self, block: &Block) -> Vec<String> {
        let rows = (block.line..)
            .zip(&block.lines)
            .filter_map(|(number, line)| Some((number, line.strip_prefix("--> ")?)));
        let (places, documented): (Vec<_>, Vec<_>) = rows.unzip();
        let typed = self.typed(&block.lines.join("\n"));
        let printed = if self.shell.is_some() {
            self.statement(&typed)
        } else {
            self.shell = Some(Shell::new().within(&self.folder).start());
            let printed = self.statement(&typed);
            self.shell = None;
            printed
        };
        let Err((message, printed)) = self.compare(block.line, &typed, &documented.join("\n"), printed) else {
            return Vec::new();
        };
        if let Some(printed) = printed {
            // A row for each row that stood there; what is more comes last, and what is less is taken away.
            let mut rows = printed.lines().map(|row| format!("--> {row}"));
            for place in places {
                self.edits.push((place..place + 1, rows.next().into_iter().collect()));
            }
            let end = block.line + block.lines.len();
            self.edits.push((end..end, rows.collect()));
        }
        vec![message]
    }

    /// Runs a command in the folder; gives its standard output, or why it failed.
    fn command(&mut self, command: &str) -> Result<String, String> {
        if let Some(shell) = self.shell.take() {
            shell.finish();
        }
        if let Some(database) = command.strip_prefix("sqlite3 ").filter(|rest| !rest.contains(' ')) {
            self.shell = Some(Shell::plain().on(database).within(&self.folder).start());
            return Ok(String::new());
        }
        if let Some(database) = command.strip_prefix("fence sql ").filter(|rest| !rest.contains(' ')) {
            self.shell = Some(Session::of_program(database, &self.folder));
            return Ok(String::new());
        }
        if command.starts_with("make") {
            extension::make();
        }
        if command.starts_with("export ") {
            self.exports.push(command.to_owned());
            return Ok(String::new());
        }
        let mut bash = host::command("bash");
        bash.arg("-c").arg(format!(
            "make() {{ command make --no-print-directory -C \"$0\" \"$@\"; }}\n{}\n{command}",
            self.exports.join("\n")
        ));
        bash.arg(crate::root()).current_dir(&self.folder);
        extension::forget_the_outer_build(&mut bash);
        let installed = self.folder.path().join(INSTALLED);
        with_first(
            &mut bash,
            self.ready.path.iter().map(PathBuf::as_path).chain([&*installed]),
        );
        bash.envs(self.ready.env.iter().map(|(name, value)| (name, value)));
        let answer = host::run(bash, "");
        if answer.status.success() {
            Ok(answer.out)
        } else {
            Err(format!("{command}: {answer}"))
        }
    }

    /// Types a statement into the open shell; gives all that it printed.
    fn statement(&mut self, statement: &str) -> Result<String, String> {
        match &mut self.shell {
            Some(shell) => Ok(shell
                .ask(statement)
                .lines()
                .map(as_to_a_person)
                .collect::<Vec<_>>()
                .join("\n")),
            None => Err(format!("no shell is open for: {statement}")),
        }
    }

    /// If the run printed something else than the document says: a message, and what is to stand there.
    fn compare(
        &mut self,
        line: usize,
        typed: &str,
        documented: &str,
        printed: Result<String, String>,
    ) -> Result<(), (String, Option<String>)> {
        let printed = printed.map_err(|failure| (format!("line {line}: {failure}"), None))?;
        let folder = self.folder.path();
        let real = folder.canonicalize().unwrap_or_else(|_| folder.into());
        let printed = [real.as_path(), folder].iter().fold(printed, |text, path: &&Path| {
            path.to_str()
                .map_or(text.clone(), |path| text.replace(path, "/home/me/app"))
        });
        let printed = self
            .members()
            .iter()
            .fold(printed, |text, (name, place)| text.replace(place, name));
        let to_stand = self.fences.printed(documented, &printed);
        if documented.trim_end() == to_stand.trim_end() {
            return Ok(());
        }
        let message = format!("line {line}: {typed}\n  stands there: {documented}\n  was printed: {printed}");
        Err((message, Some(to_stand)))
    }
}

/// Puts what is installed, and the shell that the tests use, in front of any other on the command's PATH.
fn with_first<'a>(command: &mut Command, first: impl Iterator<Item = &'a Path>) {
    let own = first.chain(Shell::path().parent()).map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).expect("a PATH");
    command.env("PATH", path);
}

/// An error as the shell says it to a person.
fn as_to_a_person(line: &str) -> String {
    for (piped, spoken) in [
        ("Runtime error near line ", "Runtime error: "),
        ("Parse error near line ", "Parse error: "),
        ("Error: near line ", "Error: "),
    ] {
        if let Some((_, message)) = line.strip_prefix(piped).and_then(|rest| rest.split_once(": ")) {
            return format!("{spoken}{message}");
        }
    }
    // The program, of a script.
    if let Some((_, message)) = line.strip_prefix("fence: line ").and_then(|rest| rest.split_once(": ")) {
        return format!("fence: {message}");
    }
    line.to_string()
}
