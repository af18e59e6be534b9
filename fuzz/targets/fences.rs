//! What is read as a fence prints back as the same fence, in every spelling.
#![no_main]

use fence_core::Fence;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = [Fence::from_text(bytes), Fence::from_blob(bytes)];
    for fence in read.into_iter().flatten() {
        assert_eq!(fence.wire().to_string().parse(), Ok(fence));
        assert_eq!(fence.padded().to_string().parse(), Ok(fence));
        assert_eq!(fence.padded().to_string().len(), 40);
        assert_eq!(Fence::from_be_bytes(fence.to_be_bytes()), fence);
    }
});
