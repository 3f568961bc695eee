use crate::{HostConfig, parse_toml, to_toml};

/// Returns a host with an uplink that has this driver and these host addresses, in a team of this
/// mode if given.
fn host(driver: &str, addresses: &str, mode: Option<&str>) -> String {
    let team = mode.map_or_else(String::new, |mode| {
        format!("[[team]]\nname = \"both\"\nmembers = [\"wan\"]\nmode = \"{mode}\"\n")
    });
    format!(
        "[[uplink]]\nname = \"wan\"\ndevice = \"eth1\"\ndriver = \"{driver}\"\n\
         host_addresses = {addresses}\n{team}"
    )
}

fn read(text: &str) -> Result<HostConfig, String> {
    parse_toml(text, None).map_err(|errors| {
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].to_string()
    })
}

const TWO: &str = r#"["192.0.2.7", "2001:db8::7"]"#;

#[test]
fn the_host_has_addresses_on_an_af_xdp_device() {
    for mode in [None, Some("switch-independent")] {
        let config = read(&host("af_xdp", TWO, mode)).unwrap();
        let addresses: Vec<String> =
            config.uplinks[0].host_addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.0.2.7", "2001:db8::7"]);
        assert_eq!(read(&to_toml(&config)).unwrap(), config);
    }
}

#[test]
fn unusable_keys_are_refused_with_a_remedy() {
    for (driver, addresses, mode, part) in [
        ("af_packet", TWO, None, "other drivers leave the host its frames. Remove this key"),
        ("tap", TWO, None, "applies only to driver = \"af_xdp\""),
        ("af_xdp", TWO, Some("lacp"), "is a member of team `both`"),
        ("af_xdp", TWO, Some("static"), "set mode = \"switch-independent\""),
        ("af_xdp", "[]", None, "must be a list of 1 to 16 different unicast IP addresses"),
        ("af_xdp", r#"["192.0.2.7/24"]"#, None, "like [\"192.0.2.7\", \"2001:db8::7\"]"),
        ("af_xdp", r#"["192.0.2.7", "192.0.2.7"]"#, None, "different unicast IP addresses"),
    ] {
        let refused = read(&host(driver, addresses, mode)).unwrap_err();
        assert!(refused.contains(part) && refused.contains("host_addresses"), "{refused}");
    }
}
