//! Comparison of a command's output with the output in a page.
//!
//! Runs of white space are equal, and empty lines do not count. Numbers with their unit prefixes,
//! durations, points in time, MAC addresses and UUIDs each equal all others of their kind. Digits
//! that are part of a word (`eth0`, `node-2`) and IPv4 addresses are compared as they are. `...`
//! stands for any number of lines, or for any text within a line.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

const WILDCARD: &str = "...";

/// Tokens that vary between runs, and similar tokens that do not, which come first.
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        (?P<time> \d{4}-\d\d-\d\d [T\x20] \d\d:\d\d:\d\d (\.\d+)? (Z | \x20?[+-]\d\d:?\d\d)? )
        | (?P<uuid> \b [0-9a-f]{8} (-[0-9a-f]{4}){3} -[0-9a-f]{12} \b )
        | (?P<mac> \b [0-9A-Fa-f]{2} (:[0-9A-Fa-f]{2}){5} \b )
        | (?P<ipv4> \b \d{1,3} (\.\d{1,3}){3} \b )
        | (?P<word> [A-Za-z_] [0-9A-Za-z_-]* )
        | (?P<duration> [0-9] [0-9.,]* \x20? ( ns | us | µs | ms | s | min | h | d ) \b
            ( \x20? [0-9] [0-9.,]* \x20? ( ns | us | µs | ms | s | min | h | d ) \b )* )
        | (?P<number> [0-9] ( [0-9.,]* [0-9] )? )
          ( \x20? ([kKMGTP] i?)? (?P<unit> B | b | [Bb]its? | [Bb]ytes? | fps | pps | Hz | IOPS ) \b
          | \x20? [kKMGTP] i? \b )?
        ",
    )
    .unwrap_or_else(|error| panic!("{error}"))
});

/// Returns true if the output matches the one in the page.
pub(crate) fn matches(expected: &[String], actual: &[String]) -> bool {
    let expected: Vec<String> = lines(expected);
    let actual: Vec<String> = lines(actual);
    lines_match(&expected, &actual)
}

fn lines(text: &[String]) -> Vec<String> {
    text.iter().map(|line| normalize(line)).filter(|line| !line.is_empty()).collect()
}

/// Returns the line with each run of white space replaced by one space, and each varying token by
/// the name of its kind.
fn normalize(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let replaced = TOKENS.replace_all(&line, |captures: &Captures<'_>| {
        let is_token = |name| captures.name(name).is_some();
        if is_token("time") {
            "<time>".to_owned()
        } else if is_token("uuid") {
            "<uuid>".to_owned()
        } else if is_token("mac") {
            "<mac>".to_owned()
        } else if is_token("duration") {
            "<duration>".to_owned()
        } else if is_token("number") {
            let unit = captures.name("unit").map_or("", |unit| unit.as_str());
            // A unit with a prefix, `3 kB`, has the same token as without, `3 B`.
            if unit.is_empty() { "<number>".to_owned() } else { format!("<number> {unit}") }
        } else {
            captures[0].to_owned()
        }
    });
    replaced.into_owned()
}

fn lines_match(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if first == WILDCARD => {
            (0..=actual.len()).any(|skipped| lines_match(rest, &actual[skipped..]))
        }
        Some((first, rest)) => actual
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && lines_match(rest, others)),
    }
}

/// Returns true if the parts between the wildcards occur in the line in order, the last one at its
/// end.
fn line_matches(expected: &str, actual: &str) -> bool {
    let mut parts = expected.split(WILDCARD);
    let Some(mut rest) = parts.next().and_then(|first| actual.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(position) = rest.find(part) else { return false };
        rest = &rest[position + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(expected: &str, actual: &str) -> bool {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        matches(&lines(expected), &lines(actual))
    }

    #[test]
    fn white_space_and_numbers_vary() {
        for (expected, actual) in [
            ("a  b", " a b "),
            ("a\n\nb\n", "a\nb"),
            ("3.4 k x", "120 x"),
            ("RX 16.3 kfps", "RX 0 fps"),
            ("8.33 Gbit/s", "5.92 Mbit/s"),
            ("1.10 GBytes  9.41 Gbits/sec", "943 MBytes 8 Gbits/sec"),
            ("120 MB/s", "0.05 B/s"),
            ("64 KiB", "1 GiB"),
            ("3B", "7 kB"),
            ("took 3 ms", "took 1 min 5 s"),
            ("took 3ms", "took 0.5 s"),
            ("time=0.192 ms", "time=1.2 ms"),
            ("20 %", "3.5 %"),
            ("2026-11-22T01:57:06.631Z 14", "2027-01-02T03:04:05.1Z 9"),
            ("mac 52:54:00:12:34:56", "mac de:ad:be:ef:00:01"),
            ("id 6ba7b810-9dad-11d1-80b4-00c04fd430c8", "id 00000000-9dad-11d1-80b4-000000000000"),
        ] {
            assert!(is_match(expected, actual), "{expected:?} {actual:?}");
        }
    }

    #[test]
    fn words_and_addresses_do_not_vary() {
        for (expected, actual) in [
            ("eth0 up", "eth1 up"),
            ("node-1", "node-2"),
            ("10.0.0.1/24", "10.0.0.2/24"),
            ("3 IOPS", "3 B"),
            ("3 of 4", "3 in 4"),
            ("a b", "a"),
            ("a", "a\nb"),
            ("5 up", "none up"),
        ] {
            assert!(!is_match(expected, actual), "{expected:?} {actual:?}");
        }
    }

    #[test]
    fn wildcards_match_lines_and_parts_of_lines() {
        for (expected, actual, is_expected_match) in [
            ("a\n...\nz", "a\nz", true),
            ("a\n...\nz", "a\nb\nc\nz", true),
            ("a\n...", "a\nb", true),
            ("...\nz", "a\nb", false),
            ("disk ... ready", "disk web 3 ready", true),
            ("disk ... ready", "disk web 3 failed", false),
            ("disk ...", "disk", false),
            ("... 5 of ... 6", "x 9 of y 7", true),
            ("aba...aba", "aba", false),
        ] {
            assert_eq!(is_match(expected, actual), is_expected_match, "{expected:?} {actual:?}");
        }
    }
}
