use super::*;

const MAX: &str = "340282366920938463463374607431768211455";

/// Numbers at every edge that the arithmetic has: of digits, of groups of digits, of halves, of both ends.
fn numbers() -> Vec<u128> {
    let mut numbers = vec![0, 1, 7, u128::MAX, u128::MAX - 1];
    for power in 0..39 {
        let ten = 10_u128.pow(power);
        numbers.extend([ten - 1, ten, ten + 1, 3 * ten, ten.wrapping_mul(9)]);
    }
    for bit in 0..128 {
        numbers.extend([(1_u128 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    }
    // A few thousand more, from a fixed linear congruence.
    let mut seed = 0x9E37_79B9_7F4A_7C15_u128;
    for _ in 0..5000 {
        seed = seed
            .wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645)
            .wrapping_add(0x5851_F42D_4C95_7F2D);
        numbers.extend([seed, seed >> 64, seed >> 37]);
    }
    numbers
}

#[test]
fn every_spelling_of_a_fence_is_read_back_as_the_same_number() {
    for number in numbers() {
        let fence = Fence::from(number);
        assert_eq!(u128::from(fence), number);
        assert_eq!(&*fence.padded(), format!("{number:040}"));
        assert_eq!(&*fence.wire(), format!("{number}"));
        assert_eq!(fence.to_string(), format!("{number}"));
        assert_eq!(fence.padded().parse::<Fence>(), Ok(fence));
        assert_eq!(fence.wire().parse::<Fence>(), Ok(fence));
        assert_eq!(format!("{number:039}").parse(), Ok(fence));
        assert_eq!(Fence::from_blob(&fence.to_be_bytes()), Ok(fence));
        assert_eq!(Fence::new(fence.epoch(), fence.count()), fence);
        if let Ok(integer) = i64::try_from(number) {
            assert_eq!(Fence::try_from(integer), Ok(fence));
        }
    }
}

#[test]
fn the_order_of_padded_texts_and_of_blobs_is_the_order_of_numbers() {
    let mut numbers = numbers();
    numbers.sort_unstable();
    for pair in numbers.windows(2) {
        let (low, high) = (Fence::from(pair[0]), Fence::from(pair[1]));
        assert_eq!(low.cmp(&high), low.padded().cmp(&high.padded()));
        assert_eq!(low.cmp(&high), low.padded().as_str().cmp(high.padded().as_str()));
        assert_eq!(low.cmp(&high), low.to_be_bytes().cmp(&high.to_be_bytes()));
    }
}

#[test]
fn what_is_no_fence_is_refused_with_its_reason() {
    use NotAFence::*;
    let forty_one = "0".repeat(41);
    let cases: &[(&str, NotAFence)] = &[
        ("", Empty),
        ("+10", Sign { found: '+', at: 1 }),
        ("-1", Sign { found: '-', at: 1 }),
        ("1-", Sign { found: '-', at: 2 }),
        (" 10", Space { at: 1 }),
        ("10 ", Space { at: 3 }),
        ("1\t0", Space { at: 2 }),
        ("10\n", Space { at: 3 }),
        ("1\u{a0}", Space { at: 2 }),
        ("1e3", Character { found: 'e', at: 2 }),
        ("1.0", Character { found: '.', at: 2 }),
        ("0x10", Character { found: 'x', at: 2 }),
        ("1_000", Character { found: '_', at: 2 }),
        ("1,000", Character { found: ',', at: 2 }),
        ("１０", Character { found: '１', at: 1 }),
        ("1٣", Character { found: '٣', at: 2 }),
        ("10\0", Character { found: '\0', at: 3 }),
        ("abc", Character { found: 'a', at: 1 }),
        ("12345678:", Character { found: ':', at: 9 }),
        ("1234567/", Character { found: '/', at: 8 }),
        (&forty_one, TooManyDigits { digits: 41 }),
        ("340282366920938463463374607431768211456", OutOfRange),
        ("0340282366920938463463374607431768211456", OutOfRange),
        ("9999999999999999999999999999999999999999", OutOfRange),
    ];
    for (text, kind) in cases {
        let error = text.parse::<Fence>().expect_err(text);
        assert_eq!(error.kind(), *kind, "{text:?}");
        assert!(Padded::from_bytes(text.as_bytes()).is_none(), "{text:?}");
    }
    assert_eq!(
        Fence::from_text(b"1\xff").map_err(|e| e.kind()),
        Err(Character {
            found: '\u{fffd}',
            at: 2
        })
    );
    assert_eq!(Fence::try_from(i64::MIN).map_err(|e| e.kind()), Err(Negative));
    for bytes in [0, 1, 8, 15, 17, 40] {
        assert_eq!(
            Fence::from_blob(&vec![0; bytes]).map_err(|e| e.kind()),
            Err(BlobLength { bytes })
        );
    }
}

#[test]
fn the_largest_fence_and_forty_digits_are_still_fences() {
    assert_eq!(MAX.parse(), Ok(Fence::from(u128::MAX)));
    assert_eq!(format!("0{MAX}").parse(), Ok(Fence::from(u128::MAX)));
    assert_eq!("0".repeat(40).parse(), Ok(Fence::from(0)));
    assert_eq!("0009".parse(), Ok(Fence::from(9)));
}

#[test]
fn display_takes_a_width() {
    assert_eq!(
        format!("{:>5}|{:<3}|{:05}", Fence::from(7), Fence::from(7), Fence::from(7)),
        "    7|7  |00007"
    );
}
