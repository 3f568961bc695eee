//! Comparison of large buffers in tests. Compares slices, because iterating over single bytes is
//! slow without optimization.

/// Returns the offset of the first difference within the common length.
#[must_use]
pub fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    let common = left.len().min(right.len());
    if left.get(..common) == right.get(..common) {
        return None;
    }
    left.iter().zip(right).position(|(left, right)| left != right)
}

/// Returns true if every byte has this value; also true for an empty slice.
#[must_use]
pub fn is_filled(bytes: &[u8], byte: u8) -> bool {
    let (Some((first, but_first)), Some((_, but_last))) = (bytes.split_first(), bytes.split_last())
    else {
        return true;
    };
    // True if each byte equals its predecessor.
    *first == byte && but_first == but_last
}

#[cfg(test)]
mod tests {
    use super::{first_difference, is_filled};

    #[test]
    fn the_first_difference_is_found() {
        assert_eq!(first_difference(b"", b""), None);
        assert_eq!(first_difference(b"abc", b"abc"), None);
        assert_eq!(first_difference(b"abc", b"axx"), Some(1));
        assert_eq!(first_difference(b"abc", b"ab"), None);
        assert_eq!(first_difference(b"", b"a"), None);
    }

    #[test]
    fn any_byte_of_another_value_is_noticed() {
        assert!(is_filled(&[], 7) && is_filled(&[7], 7) && is_filled(&[7; 100], 7));
        assert!(!is_filled(&[7; 100], 8) && !is_filled(&[8], 7));
        for index in 0..9 {
            let mut bytes = [7; 9];
            bytes[index] = 8;
            assert!(!is_filled(&bytes, 7), "{index}");
        }
    }
}
