//! Formatting of numbers with units.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

/// Formats bits per second: `1.2 Gbit/s`.
pub(crate) fn bit_rate(bits_per_s: u64) -> String {
    scaled(bits_per_s, "bit/s")
}

/// Formats frames per second: `1.2 Mfps`.
pub(crate) fn frame_rate(frames_per_s: u64) -> String {
    scaled(frames_per_s, "fps")
}

/// Formats bytes with decimal prefixes, as usual for traffic: `1.2 MB`.
pub fn decimal_bytes(bytes: u64) -> String {
    scaled(bytes, "B")
}

/// Formats bytes with binary prefixes, as usual for disks: `1.20 GiB`.
pub(crate) fn binary_bytes(bytes: u64) -> String {
    scaled_by(bytes, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// Formats nanoseconds: `85.0 µs`.
pub(crate) fn latency(ns: u64) -> String {
    scaled_by(ns, 1000, &["ns", "µs", "ms", "s"])
}

/// Formats operations per second: `12.3 k UNIT_IOPS`.
pub(crate) fn iops(per_s: u64) -> String {
    format!("{} IOPS", count(per_s))
}

/// Formats a count: `1.2 M`; exact below 10 000.
pub(crate) fn count(number: u64) -> String {
    if number < 10_000 { number.to_string() } else { scaled(number, "").trim_end().to_owned() }
}

/// Formats parts per million: `12.3 %`.
pub(crate) fn percent(ppm: u32) -> String {
    let tenths = (u64::from(ppm) + 500) / 1000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Formats milliwatts: `42.3 W`.
pub(crate) fn watts(milliwatts: u64) -> String {
    let tenths = milliwatts.saturating_add(50) / 100;
    format!("{}.{} W", tenths / 10, tenths % 10)
}

/// Formats megabits per second: `10.0 Gbit/s`.
pub(crate) fn speed(mbps: u64) -> String {
    bit_rate(mbps.saturating_mul(1_000_000))
}

/// Formats seconds: `2 h 05 min`.
pub(crate) fn age(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {:02} s", seconds % 60),
        3600..86_400 => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{} d {:02} h", hours / 24, hours % 24),
    }
}

/// Formats milliseconds since 1970-01-01 UTC: `2026-03-01T12:30:05.123Z`.
pub fn timestamp(unix_ms: u64) -> String {
    // End of the year 9999, the last that RFC 3339 can express.
    const LAST_MS: u64 = 253_402_300_799_999;
    let time: SystemTime = UNIX_EPOCH + Duration::from_millis(unix_ms.min(LAST_MS));
    humantime::format_rfc3339_millis(time).to_string()
}

/// Formats three significant digits with a decimal prefix.
fn scaled(value: u64, unit: &str) -> String {
    let units = ["", "k", "M", "G", "T", "P", "E"].map(|prefix| format!("{prefix}{unit}"));
    scaled_by(value, 1000, &units.each_ref().map(String::as_str))
}

/// Formats three significant digits with a unit. Each unit is `step` times the previous one.
fn scaled_by(value: u64, step: u64, units: &[&str]) -> String {
    let mut divisor = 1u64;
    let mut units = units.iter();
    let mut unit = units.next();
    // Rounded to three digits, 999 500 is one million.
    while value >= divisor.saturating_mul(2 * step - 1) / 2 && value >= step {
        match (divisor.checked_mul(step), units.next()) {
            (Some(larger), Some(next)) => {
                divisor = larger;
                unit = Some(next);
            }
            _ => break,
        }
    }
    let unit = unit.unwrap_or(&"");
    if divisor == 1 {
        return format!("{value} {unit}");
    }
    let value = u128::from(value);
    let divisor = u128::from(divisor);
    // Hundredths, rounded to the number of digits shown.
    let (digits, scale) = match value * 100 / divisor {
        0..=999 => (2, 100),
        1000..=9999 => (1, 10),
        _ => (0, 1),
    };
    let rounded = (value * scale + divisor / 2) / divisor;
    match digits {
        0 => format!("{rounded} {unit}"),
        1 => format!("{}.{} {unit}", rounded / 10, rounded % 10),
        _ => format!("{}.{:02} {unit}", rounded / 100, rounded % 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_a_prefix() {
        let rates = [0, 999, 1000, 1234, 12_345, 123_456, 999_499, 999_500, 15_800_000_000];
        let texts: Vec<_> = rates.into_iter().map(bit_rate).collect();
        assert_eq!(
            texts,
            [
                "0 bit/s",
                "999 bit/s",
                "1.00 kbit/s",
                "1.23 kbit/s",
                "12.3 kbit/s",
                "123 kbit/s",
                "999 kbit/s",
                "1.00 Mbit/s",
                "15.8 Gbit/s",
            ]
        );
        assert_eq!(decimal_bytes(u64::MAX), "18.4 EB");
        assert_eq!(count(9999), "9999");
        assert_eq!(count(10_000), "10.0 k");
    }

    #[test]
    fn shares_and_speeds_are_written_for_people() {
        let texts: Vec<_> = [0, 499, 500, 123_456, 999_950, 1_000_000].map(percent).into();
        assert_eq!(texts, ["0.0 %", "0.0 %", "0.1 %", "12.3 %", "100.0 %", "100.0 %"]);
        assert_eq!((speed(10), speed(25_000)), ("10.0 Mbit/s".into(), "25.0 Gbit/s".into()));
        assert_eq!(speed(u64::MAX), "18.4 Ebit/s");
    }

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(age(59), "59 s");
        assert_eq!(age(61), "1 min 01 s");
        assert_eq!(age(7500), "2 h 05 min");
        assert_eq!(age(90_000), "1 d 01 h");
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(timestamp(u64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn sizes_are_binary_and_latencies_have_their_unit() {
        let texts: Vec<_> = [0, 1023, 1024, 1536, 10 << 30, 1047 << 20, u64::MAX]
            .into_iter()
            .map(binary_bytes)
            .collect();
        assert_eq!(
            texts,
            ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "10.0 GiB", "1.02 GiB", "16.0 EiB"]
        );
        let texts: Vec<_> = [0, 999, 85_000, 1_500_000, 60_000_000_000, u64::MAX]
            .into_iter()
            .map(latency)
            .collect();
        assert_eq!(texts, ["0 ns", "999 ns", "85.0 µs", "1.50 ms", "60.0 s", "18446744074 s"]);
        assert_eq!(iops(50_000), "50.0 k IOPS");
    }
}
