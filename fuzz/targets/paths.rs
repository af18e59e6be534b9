//! What is read as a path is an absolute one, and is found again by it.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fence_core::Store;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(path) = Store::locate(OsStr::from_bytes(bytes)) {
        assert!(path.is_absolute());
        assert_eq!(Store::locate(&path).ok(), Some(path));
    }
});
