//! Recipes: programs in the languages of the hosts that tell what they saw, and the documents that hold it.
//!
//! A recipe prints `SQLite 3.40.1`, then lines `KIND: what: said`, and at last `ok`. Parts of its text stand between
//! `# [name]` and `# [end]` (or `//`). A document holds both between `<!-- begin NAME -->` and `<!-- end -->`. When it
//! is out of date the test says where, and with `FENCE_WRITE_DOCS=1` it writes it anew.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Answer, folder, host, library, root};

/// What a recipe told.
#[derive(Debug)]
pub struct Told {
    /// The host's version of SQLite.
    pub sqlite: String,
    /// The further lines, in order.
    pub lines: Vec<Line>,
}

/// One line that a recipe told.
#[derive(Debug)]
pub struct Line {
    /// Which kind of thing this is.
    pub kind: String,
    /// What was tried.
    pub what: String,
    /// What came of it.
    pub said: String,
}

/// Runs the command that this gives for an empty folder and a library, in that folder.
///
/// # Panics
///
/// When it fails, or does not tell what it saw in these words.
pub fn run(name: &str, command: impl FnOnce(&Path, &Path) -> Command) -> Told {
    let folder = folder();
    let real = folder.path().canonicalize().expect("a folder");
    let copy = real
        .join("lib")
        .join("fence")
        .with_extension(library().extension().expect("a library's name"));
    std::fs::create_dir(real.join("lib")).expect("a new folder");
    std::fs::copy(library(), &copy).expect("a copy");
    let mut command = command(&real, &copy);
    command.current_dir(&real);
    let answer = host::run(command, "");
    assert!(answer.status.success(), "{name}: {answer}");
    told(name, &answer, &real)
}

fn told(name: &str, answer: &Answer, folder: &Path) -> Told {
    let out = answer.out.replace(&*folder.to_string_lossy(), "/path/to");
    let mut lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.pop(), Some("ok"), "{name}: {answer}");
    let sqlite = lines
        .first()
        .and_then(|line| line.strip_prefix("SQLite "))
        .unwrap_or_else(|| panic!("{name}: {answer}"));
    let line = |line: &&str| {
        let (kind, rest) = line.split_once(": ")?;
        let (what, said) = rest.split_once(": ")?;
        Some(Line {
            kind: kind.to_string(),
            what: what.to_string(),
            said: said.to_string(),
        })
    };
    Told {
        sqlite: sqlite.to_string(),
        lines: lines[1..]
            .iter()
            .map(|text| line(text).unwrap_or_else(|| panic!("{name}: '{text}' in {answer}")))
            .collect(),
    }
}

/// The names of the parts of this file, in order.
pub fn parts(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("a recipe");
    text.lines()
        .filter_map(opens)
        .filter(|name| *name != "end")
        .map(str::to_string)
        .collect()
}

/// A part of the file, as a block of a document that is not run by `document`, for `reason`.
///
/// # Panics
///
/// When the file has no such part.
pub fn part(file: &Path, name: &str, language: &str, reason: &str) -> String {
    let text = std::fs::read_to_string(file).expect("a recipe");
    let lines = text.lines().skip_while(|line| opens(line) != Some(name)).skip(1);
    let lines: Vec<_> = lines.take_while(|line| opens(line) != Some("end")).collect();
    let indent = lines
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| line.get(indent.unwrap_or(0)..).unwrap_or(""))
        .collect();
    assert!(!lines.is_empty(), "{} has no [{name}]", file.display());
    format!(
        "<!-- not run: {reason} -->\n```{language}\n{}\n```\n",
        lines.join("\n").trim()
    )
}

/// The name in a comment such as `# [name]`.
fn opens(line: &str) -> Option<&str> {
    let comment = ["# ", "// "].iter().find_map(|mark| line.trim().strip_prefix(mark))?;
    comment.strip_prefix('[')?.strip_suffix(']')
}

/// A document, and what it should say.
#[derive(Debug)]
pub struct Document {
    file: PathBuf,
    stands: String,
    written: String,
}

impl Document {
    /// The document at this path of the repository.
    pub fn open(path: &str) -> Self {
        let file = root().join(path);
        let stands = std::fs::read_to_string(&file).expect("the document");
        Self {
            written: stands.clone(),
            file,
            stands,
        }
    }

    /// Puts the text between the two comments.
    ///
    /// # Panics
    ///
    /// When the document has no place for it.
    pub fn put(&mut self, name: &str, text: &str) {
        let begin = format!("<!-- begin {name} -->\n");
        let start = self
            .written
            .find(&begin)
            .unwrap_or_else(|| panic!("{} has no {begin}", self.file.display()))
            + begin.len();
        let length = self.written[start..].find("<!-- end -->").expect("its end");
        self.written.replace_range(start..start + length, text);
    }

    /// Compares what stands there with what was put; or writes it, if `FENCE_WRITE_DOCS` is set.
    ///
    /// # Panics
    ///
    /// When they differ, with the first line that does.
    pub fn check(self) {
        if std::env::var_os("FENCE_WRITE_DOCS").is_some() {
            std::fs::write(&self.file, &self.written).expect("the document");
            return;
        }
        let mut lines = self.stands.lines().zip(self.written.lines());
        let differ = lines.find(|(now, then)| now != then);
        assert!(
            differ.is_none() && self.stands == self.written,
            "{} is out of date: {differ:?}",
            self.file.display()
        );
    }
}

/// A Markdown table.
pub fn table(head: &[&str], rows: impl Iterator<Item = String>) -> String {
    let rows: String = rows.map(|row| format!("| {row} |\n")).collect();
    format!("| {} |\n|{}\n{rows}", head.join(" | "), "---|".repeat(head.len()))
}
