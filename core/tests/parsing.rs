//! Everything that reads what a stranger wrote takes what it should and refuses the rest, whatever the bytes. The targets
//! in fuzz/ say the same things to a fuzzer, for as long as one likes.

use fence_core::{Fence, Key, PermitId, Store};
use proptest::prelude::*;

/// Text that is nearly a fence, and text that is not.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{0,42}",
        "0{0,20}[0-9]{1,39}",
        "[-+ 0-9a-f.ex]{0,12}",
        any::<String>(),
        "permit-[0-9a-fA-F]{30,34}"
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_is_a_fence_if_it_has_1_to_40_digits_of_a_128_bit_number(text in text()) {
        let digits = (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse::<u128>().ok()).flatten();
        prop_assert_eq!(Fence::from_text(text.as_bytes()).ok().map(Fence::get), number);
        if let Ok(fence) = text.parse::<Fence>() {
            prop_assert_eq!(fence.wire().to_string().parse::<Fence>(), Ok(fence));
            prop_assert_eq!(fence.padded().to_string().parse::<Fence>(), Ok(fence));
            prop_assert_eq!(Fence::from_be_bytes(fence.to_be_bytes()), fence);
        }
    }

    #[test]
    fn a_blob_is_a_fence_if_it_has_16_bytes(bytes in bytes()) {
        let number = <[u8; 16]>::try_from(bytes.as_slice()).ok().map(u128::from_be_bytes);
        prop_assert_eq!(Fence::from_blob(&bytes).ok().map(Fence::get), number);
    }

    #[test]
    fn the_order_of_padded_texts_is_that_of_the_numbers(a in any::<u128>(), b in any::<u128>()) {
        let (a, b) = (Fence::from(a), Fence::from(b));
        prop_assert_eq!(a.cmp(&b), a.padded().to_string().cmp(&b.padded().to_string()));
        prop_assert_eq!(a.cmp(&b), a.to_be_bytes().cmp(&b.to_be_bytes()));
    }

    #[test]
    fn bytes_are_a_key_if_they_are_1_to_1024_bytes_of_text_without_nul(bytes in bytes(), times in 1..60_usize) {
        let bytes = bytes.repeat(times);
        let fits = (1..=1_024).contains(&bytes.len()) && !bytes.contains(&0);
        let text = std::str::from_utf8(&bytes).ok().filter(|_| fits);
        prop_assert_eq!(Key::from_bytes(&bytes).ok().map(Key::as_str), text);
    }

    #[test]
    fn a_text_is_a_permit_if_it_prints_back_as_it_was_and_then_it_is_no_fence(text in text()) {
        if let Ok(permit) = text.parse::<PermitId>() {
            prop_assert_eq!(permit.to_string(), text.clone());
            prop_assert!(text.parse::<Fence>().is_err());
        }
    }

    #[test]
    fn a_path_is_an_absolute_one_or_an_error(text in prop_oneof![any::<String>(), "(file:)?(//)?[a-z%./?#0-9]{0,20}"]) {
        if let Ok(path) = Store::locate(&text) {
            prop_assert!(path.is_absolute());
            prop_assert!(path.file_name().is_some());
            // What was found once is found again.
            prop_assert_eq!(Store::locate(&path).ok(), Some(path));
        }
    }
}
