//! What is read as a permit prints back as it was, and is no fence.
#![no_main]

use fence_core::{Fence, PermitId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(permit) = text.parse::<PermitId>() {
        assert_eq!(permit.to_string(), text);
        assert!(text.parse::<Fence>().is_err());
    }
});
