//! The packages of the hosts, built as `make packages` builds them.

use std::ffi::OsStr;
use std::path::Path;

use crate::{extension, host, root};

/// Builds the package of this name; gives the path of its file in dist/, which ends like this.
///
/// # Panics
///
/// When it does not build, with what was said.
pub fn build(name: &str, suffix: &str) -> String {
    let library = extension::library();
    let dist = root().join("dist");
    std::fs::create_dir_all(&dist).expect("a folder");
    // As `make` does: moved into place and never written over, for a program may have the old one loaded.
    let there = dist
        .join("fence")
        .with_extension(library.extension().expect("a library's name"));
    let new = tempfile::Builder::new()
        .prefix(".new.")
        .tempfile_in(&dist)
        .expect("a new file");
    let new = new.into_temp_path();
    std::fs::copy(library, &new).expect("a copy");
    new.persist(there).expect("a file of ours");
    run(&[name.as_ref()]);
    only(&dist, suffix)
}

/// The same into this folder, with the library inside that can use a cluster: as `make packages ETCD=1` builds it.
///
/// # Panics
///
/// When it does not build, with what was said.
pub fn build_for_clusters(name: &str, suffix: &str, folder: &Path) -> String {
    let library = extension::cluster_library();
    run(&[
        "--library".as_ref(),
        library.as_ref(),
        "--to".as_ref(),
        folder.as_ref(),
        name.as_ref(),
    ]);
    only(folder, suffix)
}

fn run(arguments: &[&OsStr]) {
    let mut package = host::command(root().join("extension/hosts/package"));
    package.args(arguments);
    extension::forget_the_outer_build(&mut package);
    host::run(package, "").ok();
}

/// The path of the one file in this folder that ends like this.
fn only(folder: &Path, suffix: &str) -> String {
    let built = folder
        .read_dir()
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.path()));
    let mut built: Vec<_> = built.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
    assert_eq!(built.len(), 1, "{built:?}");
    built.remove(0).to_string_lossy().into_owned()
}
