//! Which file is meant: one store has one path, whatever the spelling.
//!
//! A process finds its connection by this path and SQLite finds a database's WAL by the file's name, so all spellings
//! of one file (relative, through a symbolic link, as a `file:` URI, after a `chdir`) must become one path. A second
//! *hard* link cannot: both names are real, and SQLite would keep a WAL for each. Such a file is refused at its opening.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// How many links are followed before it must be a ring.
const MOST_LINKS: usize = 40;

/// The absolute path without symbolic links, `.` or `..`. The file need not exist yet; its folder must.
pub(super) fn resolve(path: &Path) -> Result<PathBuf> {
    let mut path = match path.as_os_str().as_bytes().strip_prefix(b"file:") {
        Some(uri) => from_uri(path, uri)?,
        None => path.to_owned(),
    };
    if path.as_os_str().is_empty() {
        return Err(refuse(&path, "it is empty: name a file"));
    }
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(refuse(&path, "it holds a NUL: name a file"));
    }
    for _ in 0..MOST_LINKS {
        if let Ok(real) = path.canonicalize() {
            if real.is_dir() {
                return Err(refuse(&real, "it is a folder: name a file in it"));
            }
            return Ok(real);
        }
        // It does not exist; or it is a link to what does not exist yet.
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => return Err(refuse(&path, "it is a folder: name a file in it")),
        };
        let Some(name) = path.file_name() else {
            return Err(refuse(&path, "it names no file: name one"));
        };
        let real_folder = folder.canonicalize().map_err(|source| Error::Io {
            path: path.clone(),
            doing: "looking for its folder",
            source,
        })?;
        match std::fs::read_link(&path) {
            Ok(target) => path = real_folder.join(target),
            Err(_) => return Ok(real_folder.join(name)),
        }
    }
    Err(refuse(&path, "its symbolic links form a ring: mend them"))
}

/// The path with something appended to the file's name, as SQLite does for the WAL.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The path that a `file:` URI names (<https://www.sqlite.org/uri.html>).
fn from_uri(given: &Path, uri: &[u8]) -> Result<PathBuf> {
    let uri = uri.split(|&byte| byte == b'#').next().unwrap_or(uri);
    if uri.contains(&b'?') {
        let reason = "it is a URI with parameters: a store takes none, give the path alone";
        return Err(refuse(given, reason));
    }
    let path = match uri.strip_prefix(b"//") {
        None => uri,
        Some(rest) => {
            let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(slash);
            if !authority.is_empty() && authority != b"localhost" {
                return Err(refuse(
                    given,
                    "it names another machine: a store serves the processes of one",
                ));
            }
            path
        }
    };
    let bytes: Cow<'_, [u8]> = percent_encoding::percent_decode(path).into();
    Ok(PathBuf::from(OsStr::from_bytes(&bytes)))
}

fn refuse(path: &Path, reason: &'static str) -> Error {
    Error::Path {
        path: path.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_file_is_one_path() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let real = folder.path().canonicalize()?.join("kv é.db");
        let spelled = real.display().to_string();
        let linked = folder.path().join("link.db");
        std::os::unix::fs::symlink("kv é.db", &linked)?;
        let escaped = spelled.replace(' ', "%20").replace('é', "%C3%A9");
        for exists in [false, true] {
            for spelling in [
                spelled.clone(),
                format!("{}/./kv é.db", folder.path().display()),
                format!(
                    "{}/../{}/kv é.db",
                    folder.path().display(),
                    folder.path().file_name().ok_or("name")?.display()
                ),
                linked.display().to_string(),
                format!("file:{escaped}"),
                format!("file://{escaped}"),
                format!("file://localhost{escaped}#here"),
            ] {
                assert_eq!(resolve(Path::new(&spelling))?, real, "{spelling} (exists: {exists})");
            }
            std::fs::write(&real, "")?;
        }
        Ok(())
    }

    #[test]
    fn what_names_no_file_is_refused_with_its_reason() {
        for (spelling, reason) in [
            ("", "empty"),
            ("/", "folder"),
            ("/tmp", "folder"),
            ("a\0b", "NUL"),
            ("file:kv.db?mode=ro", "parameters"),
            ("file://elsewhere/kv.db", "another machine"),
            ("/no/such/folder/kv.db", "looking for its folder"),
        ] {
            let message = resolve(Path::new(spelling)).map_err(|error| error.to_string());
            assert!(
                matches!(&message, Err(text) if text.contains(reason)),
                "{spelling:?}: {message:?}"
            );
        }
    }
}
