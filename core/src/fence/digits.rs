//! Decimal digits, eight at a time.
//!
//! A padded fence is five groups of eight digits, and eight ASCII digits are one 64-bit word: to check a group, to read
//! it and to write it takes a few operations on that word, with no branch for each digit. This is the hot path of every
//! guarded write.
//!
//! Words are little-endian throughout: the first digit stands in the lowest byte.

use super::Padded;

/// The 40 digits of a padded fence. The order of groups is the order of the text.
pub(super) type Groups = [[u8; 8]; Padded::LEN / 8];

/// Eight times the byte `'0'`.
const ZEROS: u64 = 0x3030_3030_3030_3030;
/// The high half of each byte.
const HIGH_NIBBLES: u64 = 0xF0F0_F0F0_F0F0_F0F0;

/// The digits at the right end of a field of 40, zeros before them. None if there are none or too many.
/// Whether they *are* digits is not looked at here.
#[inline]
pub(super) fn right_aligned(text: &[u8]) -> Option<Groups> {
    let start = Padded::LEN.checked_sub(text.len())?;
    let mut field = [[b'0'; 8]; Padded::LEN / 8];
    field.as_flattened_mut().get_mut(start..)?.copy_from_slice(text);
    (!text.is_empty()).then_some(field)
}

/// Whether all eight bytes are ASCII digits.
pub(super) const fn are_digits(group: [u8; 8]) -> bool {
    let word = u64::from_le_bytes(group);
    // A digit is 0x30 to 0x39: its high half is 3, and still is after adding 6. No byte overflows into the next: the
    // first test leaves none above 0x3F.
    word & HIGH_NIBBLES == ZEROS && (word + 0x0606_0606_0606_0606) & HIGH_NIBBLES == ZEROS
}

/// The number that eight ASCII digits spell.
pub(super) const fn read(group: [u8; 8]) -> u32 {
    let ones = u64::from_le_bytes(group) & 0x0F0F_0F0F_0F0F_0F0F;
    // Neighbours join: digits to pairs, pairs to fours, fours to the whole. The left one weighs 10, 100, 10,000.
    let pairs = (ones * 10 + (ones >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours * 10_000 + (fours >> 32)) as u32
}

/// The eight ASCII digits of a number below 100,000,000.
pub(super) const fn write(number: u32) -> [u8; 8] {
    let number = number as u64;
    // The whole parts into fours, fours into pairs, pairs into digits; each step divides all of its parts at once, by
    // multiplying with the reciprocal. The reciprocals are exact for what can stand there: below 10,000 and below 100.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007F_0000_007F;
    let pairs = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    let digits = tens | ((pairs - tens * 10) << 8);
    (digits | ZEROS).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eight_digits_of_every_kind_of_number_are_read_back() {
        // Every pair of fours would be 10^8 cases; each four against a few others covers both lanes.
        for four in 0..10_000_u32 {
            for other in [0, 1, 9, 10, 99, 100, 999, 1000, 4321, 9999, four] {
                for number in [four * 10_000 + other, other * 10_000 + four] {
                    let text = write(number);
                    assert_eq!(std::str::from_utf8(&text), Ok(format!("{number:08}").as_str()));
                    assert_eq!(read(text), number);
                    assert!(are_digits(text));
                }
            }
        }
    }

    #[test]
    fn any_byte_but_a_digit_is_seen_at_each_of_the_eight_places() {
        for place in 0..8 {
            for byte in 0..=u8::MAX {
                for around in [b'0', b'9'] {
                    let mut group = [around; 8];
                    group[place] = byte;
                    assert_eq!(are_digits(group), byte.is_ascii_digit(), "byte {byte:#x} at {place}");
                }
            }
        }
    }
}
