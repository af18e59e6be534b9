//! What the machine lends: a small disk, libfaketime, a look at processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The size of the store's own file system.
const DISK: &str = "size=24m";

/// Whether there is such a process, and it has not ended.
pub fn is_running(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

/// `T` of a process that stands still, `Z` of one that has ended and was not waited for; nothing of none.
pub fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// A file system of a fixed size in a mount namespace of our own: it goes with us.
pub fn mount(at: &Path) -> Result<(), Failure> {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    // SAFETY: this process has one thread, and no file descriptor depends on the old namespace.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let options = std::ffi::CString::new(DISK)?;
    mount("tmpfs", at, "tmpfs", MountFlags::empty(), options.as_c_str())?;
    Ok(())
}

/// Fills the disk with a file.
pub fn fill(ballast: &Path) {
    use std::io::Write;
    let Ok(mut file) = fs::File::create(ballast) else {
        return;
    };
    for size in [1 << 16, 1 << 10] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// Where libfaketime is, if it is here.
pub fn faketime() -> Result<Option<PathBuf>, Failure> {
    let found = Command::new(fence_tests::root().join("tests/hosts"))
        .args(["path", "libfaketime"])
        .output()?;
    let path = String::from_utf8(found.stdout)?.trim().to_owned();
    Ok((!path.is_empty()).then(|| path.into()))
}

/// libfaketime keeps something in shared memory for each process, and a killed process leaves it.
pub fn clean_shared_memory() {
    let Ok(entries) = fs::read_dir("/dev/shm") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.contains("faketime")
            && let Some(pid) = name.rsplit('_').next().and_then(|pid| pid.parse().ok())
            && !is_running(pid)
        {
            drop(remove(&entry.path()));
        }
    }
}

/// The path with something behind its name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes a file that may be gone already.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
