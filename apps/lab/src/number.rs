//! Formatting of numbers.

/// Returns the number of decimal places that results in three or four significant digits.
pub(crate) fn decimal_places(value: f64) -> Option<usize> {
    let size = value.abs();
    Some(match size {
        _ if size == 0.0 || size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ => 3,
    })
}

/// Formats a number with `digits_wanted` decimal places, or if `None` with as many as result in
/// three or four significant digits. Thousands are separated by narrow spaces; trailing zeros of a
/// fraction are omitted.
pub(crate) fn format_number(value: f64, digits_wanted: Option<usize>) -> String {
    let digits = digits_wanted.or_else(|| decimal_places(value)).unwrap_or(0);
    let text = format!("{value:.digits$}");
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("−", rest.to_owned()),
        None => ("", text),
    };
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (index, digit) in integer.chars().enumerate() {
        let remaining_digits = integer.len() - index;
        if index > 0 && remaining_digits % 3 == 0 && integer.len() > 4 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    let is_zero = grouped.chars().all(|character| character == '0') && fraction.is_empty();
    let sign = if is_zero { "" } else { sign };
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::format_number;

    #[test]
    fn numbers_have_as_many_digits_as_are_of_use() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0001, "0"),
            (0.12345, "0.123"),
            (1.5, "1.5"),
            (12.34, "12.3"),
            (-123.4, "−123"),
            (1234.5, "1234"),
            (12345.6, "12\u{202f}346"),
            (1_234_567.0, "1\u{202f}234\u{202f}567"),
        ] {
            assert_eq!(format_number(value, None), text);
        }
        assert_eq!(format_number(2.345, Some(1)), "2.3");
    }
}
