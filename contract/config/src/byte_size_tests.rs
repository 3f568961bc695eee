use proptest::prelude::*;

use super::*;

#[test]
fn sizes_are_read_as_people_write_them() {
    for (text, bytes) in [
        ("0", 0),
        ("512", 512),
        ("512B", 512),
        ("8 KiB", 8192),
        ("10GiB", 10 << 30),
        (" 10  GiB ", 10 << 30),
        ("2 TiB", 2 << 40),
        ("16777215 TiB", 16_777_215 << 40),
    ] {
        assert_eq!(text.parse::<ByteSize>(), Ok(ByteSize::new(bytes)), "{text}");
    }
    for invalid in [
        "",
        " ",
        "GiB",
        "-1",
        "1.5 GiB",
        "1 GB",
        "1 gib",
        "1 G",
        "1 GiB x",
        "0x10",
        "010 GiB",
        "1_000",
        "١",
        "16777216 TiB",
        "99999999999999999999",
        "1 Gi\u{1b}",
    ] {
        assert!(invalid.parse::<ByteSize>().is_err(), "{invalid}");
    }
    assert_eq!(
        "1 GB".parse::<ByteSize>().unwrap_err().to_string(),
        "`1 GB` is not a size; write a number of bytes, or a number with a unit like \"10 GiB\" \
         (B, KiB, MiB, GiB, TiB)"
    );
}

#[test]
fn sizes_are_shown_in_the_largest_unit_that_is_exact() {
    for (bytes, text) in [
        (0, "0 B"),
        (1000, "1000 B"),
        (1024, "1 KiB"),
        (1536 << 20, "1536 MiB"),
        (64 << 40, "64 TiB"),
        (u64::MAX, "18446744073709551615 B"),
    ] {
        assert_eq!(ByteSize::new(bytes).to_string(), text);
    }
}

#[test]
fn json_has_the_number_and_takes_either() {
    let size = ByteSize::new(10 << 30);
    assert_eq!(serde_json::to_string(&size).unwrap(), "10737418240");
    for text in ["10737418240", "\"10 GiB\""] {
        assert_eq!(serde_json::from_str::<ByteSize>(text).unwrap(), size, "{text}");
    }
    for invalid in ["-1", "1.5", "\"ten\"", "true", "null", "[]"] {
        assert!(serde_json::from_str::<ByteSize>(invalid).is_err(), "{invalid}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn displayed_sizes_parse_to_the_same_size(bytes in any::<u64>(), shift in 0u32..50) {
        let size = ByteSize::new(bytes << shift);
        prop_assert_eq!(size.to_string().parse::<ByteSize>(), Ok(size));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}") {
        let _ = text.parse::<ByteSize>();
    }
}
