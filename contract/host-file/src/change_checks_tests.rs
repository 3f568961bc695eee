use super::*;
use crate::parse_toml;

fn host(keys: &str) -> HostConfig {
    let text = format!(
        "[[store]]\nname = \"s\"\npath = \"/s\"\n[[disk]]\nname = \"d\"\nstore = \"s\"\n\
         format = \"raw\"\n{keys}\n"
    );
    parse_toml(&text, None).unwrap()
}

#[test]
fn disks_grow_and_never_shrink() {
    let before = host("size_bytes = \"2 GiB\"");
    for valid in [
        "size_bytes = \"2 GiB\"",
        "size_bytes = \"3 GiB\"",
        "",
        "size_bytes = \"1 GiB\"\nfile = \"other.raw\"",
    ] {
        assert_eq!(validate_change(&before, &host(valid)), Ok(()), "{valid}");
    }
    assert_eq!(validate_change(&host(""), &host("size_bytes = 512")), Ok(()));
    // Naming the default file explicitly is not a different file.
    for smaller in ["size_bytes = \"1536 MiB\"", "size_bytes = \"1536 MiB\"\nfile = \"d.raw\""] {
        let errors = validate_change(&before, &host(smaller)).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(
            errors[0].to_string(),
            "disk/d: size_bytes: 1536 MiB is less than the present size 2 GiB, and disks cannot \
             shrink; set 2 GiB or more"
        );
        assert_eq!(errors[0].code, ErrorCode::InvalidValue);
    }
}
