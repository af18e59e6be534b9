//! What is read as a key is text of 1 to 1,024 bytes without NUL, and all of it.
#![no_main]

use fence_core::Key;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(key) = Key::from_bytes(bytes) {
        assert_eq!(key.as_str().as_bytes(), bytes);
        assert!((1..=1_024).contains(&bytes.len()) && !bytes.contains(&0));
    }
});
