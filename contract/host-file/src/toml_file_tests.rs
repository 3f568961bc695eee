use proptest::prelude::*;

use crate::{ApiError, ErrorCode, NicBackend, TOML_BYTES_MAX, locate_errors, parse_toml};

const WHOLE: &str = r#"
[host]
name = "h1"
worker_cpus = [0, 1]

[[uplink]]
name = "wan"
device = "eth0"

[[switch]]
name = "lan"
kind = "external"
uplink = "wan"

[[switch]]
name = "inside"
kind = "internal"

[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
socket = "/run/web.sock"
mac = "52:54:00:12:34:56"
vlan = 10
trunk = [20, "30-39"]
queues = 2

[nic.offload]
segmentation = false

[[nic]]
name = "light"
switch = "inside"
backend = "tap"
netns = "blue"
"#;

/// Returns the faults as `LINE RESOURCE FIELD CODE` with `-` for unknown parts.
fn errors_of(text: &str) -> Vec<String> {
    let errors = match parse_toml(text, Some("host.toml")) {
        Ok(config) => panic!("accepted: {config:?}"),
        Err(errors) => errors,
    };
    assert!(!errors.is_empty());
    errors
        .iter()
        .map(|error| {
            assert_eq!(error.file.as_deref(), Some("host.toml"));
            let line = error.line.map_or_else(|| "-".to_owned(), |line| line.to_string());
            format!(
                "{line} {} {} {:?}",
                error.resource.as_deref().unwrap_or("-"),
                error.field.as_deref().unwrap_or("-"),
                error.code
            )
        })
        .collect()
}

fn first_message(text: &str) -> String {
    parse_toml(text, None).unwrap_err().remove(0).to_string()
}

/// Returns `WHOLE` with one line replaced.
fn config_with(line: &str, replacement: &str) -> String {
    assert_eq!(WHOLE.matches(line).count(), 1, "{line}");
    WHOLE.replace(line, replacement)
}

#[test]
fn a_whole_file_is_read() {
    let config = parse_toml(WHOLE, None).unwrap();
    assert_eq!(config.host.worker_cpus.as_deref(), Some(&[0, 1][..]));
    assert_eq!(config.nics.len(), 2);
    assert_eq!(config.nics[0].queues, 2);
    assert!(!config.nics[0].offload.segmentation);
    assert!(config.nics[0].offload.tx_checksum);
    assert_eq!(config.nics[1].backend, NicBackend::Tap);
    assert_eq!(config.nics[1].device_name(), Some("light"));
    assert_eq!(config.switches[1].host_device_name(), Some("inside"));
}

#[test]
fn the_empty_file_is_a_host_with_nothing_on_it() {
    assert_eq!(parse_toml("", None).unwrap(), crate::HostConfig::default());
}

#[test]
fn an_unknown_key_names_its_line_and_a_similar_key() {
    let text = config_with("queues = 2", "queue = 2");
    assert_eq!(errors_of(&text), ["27 nic/web queue UnknownKey"]);
    assert_eq!(
        first_message(&text),
        "line 27: nic/web: queue: the key does not exist; did you mean `queues`?"
    );
    assert_eq!(errors_of("[[nik]]\nname = \"a\""), ["1 - nik UnknownKey"]);
    let text = config_with("segmentation = false", "segmentatoin = false");
    assert_eq!(errors_of(&text), ["30 nic/web offload.segmentatoin UnknownKey"]);
}

#[test]
fn every_wrong_key_of_every_table_is_reported() {
    let text = config_with("queues = 2", "queues = 0\nmtu = \"big\"\nfoo = 1")
        .replace("netns = \"blue\"", "mac = \"00:00:00:00:00:00\"\nnetns = \"a/b\"");
    assert_eq!(
        errors_of(&text),
        [
            "27 nic/web queues InvalidValue",
            "28 nic/web mtu Malformed",
            "29 nic/web foo UnknownKey",
            "38 nic/light mac InvalidValue",
            "39 nic/light netns InvalidValue",
        ]
    );
}

#[test]
fn a_nameless_table_is_named_by_position() {
    let text = format!("{WHOLE}\n[[nic]]\nswitch = \"lan\"\nbackend = \"tap\"\n");
    assert_eq!(errors_of(&text), ["38 nic[2] name MissingKey"]);
}

#[test]
fn single_values_out_of_range_are_refused() {
    let cases = [
        ("name = \"h1\"", "name = \"h_1\"", "3 host name InvalidValue"),
        ("worker_cpus = [0, 1]", "worker_cpus = []", "4 host worker_cpus InvalidValue"),
        ("worker_cpus = [0, 1]", "worker_cpus = [1, 1]", "4 host worker_cpus InvalidValue"),
        ("worker_cpus = [0, 1]", "worker_cpus = [-1]", "4 host worker_cpus InvalidValue"),
        ("device = \"eth0\"", "device = \"eth%d\"", "8 uplink/wan device InvalidValue"),
        ("device = \"eth0\"", "device = \"sixteen-bytes-xx\"", "8 uplink/wan device InvalidValue"),
        ("kind = \"internal\"", "kind = \"secret\"", "17 switch/inside kind InvalidValue"),
        ("\"/run/web.sock\"", "\"web.sock\"", "23 nic/web socket InvalidValue"),
        ("\"52:54:00:12:34:56\"", "\"01:54:00:12:34:56\"", "24 nic/web mac InvalidValue"),
        ("\"52:54:00:12:34:56\"", "\"52:54:00\"", "24 nic/web mac InvalidValue"),
        ("vlan = 10", "vlan = 4095", "25 nic/web vlan InvalidValue"),
        ("vlan = 10", "vlan = 1.5", "25 nic/web vlan Malformed"),
        ("vlan = 10", "vlan = 99999999999999999999", "25 nic/web vlan InvalidValue"),
        ("vlan = 10", "vlan = 2026-01-01", "25 nic/web vlan Malformed"),
        ("trunk = [20, \"30-39\"]", "trunk = [\"39-30\"]", "26 nic/web trunk InvalidValue"),
        ("trunk = [20, \"30-39\"]", "trunk = []", "26 nic/web trunk InvalidValue"),
        ("queues = 2", "mtu = 67", "27 nic/web mtu InvalidValue"),
        ("queues = 2", "bandwidth_max_bps = 7999", "27 nic/web bandwidth_max_bps InvalidValue"),
        ("queues = 2", "storm_limit_fps = 0", "27 nic/web storm_limit_fps InvalidValue"),
        ("queues = 2", "learned_max = 65537", "27 nic/web learned_max InvalidValue"),
    ];
    for (line, replacement, expected) in cases {
        assert_eq!(errors_of(&config_with(line, replacement)), [expected], "{replacement}");
    }
}

#[test]
fn keys_that_do_not_fit_each_other_are_refused() {
    let cases = [
        ("uplink = \"wan\"", "", "10 switch/lan uplink MissingKey"),
        ("kind = \"internal\"", "kind = \"private\"\nuplink = \"wan\"", ""),
        (
            "kind = \"internal\"",
            "kind = \"private\"\nhost_device = \"h0\"",
            "18 switch/inside host_device KeyNotApplicable",
        ),
        (
            "kind = \"internal\"",
            "kind = \"private\"\nhost_offload.segmentation = false",
            "18 switch/inside host_offload KeyNotApplicable",
        ),
        ("queues = 2", "netns = \"blue\"", "27 nic/web netns KeyNotApplicable"),
        ("queues = 2", "device = \"t0\"", "27 nic/web device KeyNotApplicable"),
        ("queues = 2", "kernel_path = true", "27 nic/web kernel_path KeyNotApplicable"),
        ("netns = \"blue\"", "kernel_path = true", "36 nic/light kernel_path KeyNotApplicable"),
        ("netns = \"blue\"", "socket = \"/s\"", "36 nic/light socket KeyNotApplicable"),
        ("netns = \"blue\"", "mode = \"client\"", "36 nic/light mode KeyNotApplicable"),
        ("vlan = 10", "vlan = 35", "26 nic/web trunk OverlappingVlans"),
        ("[20, \"30-39\"]", "[30, \"30-39\"]", "26 nic/web trunk OverlappingVlans"),
        ("[20, \"30-39\"]", "[\"20-50\", 22, \"30-39\"]", "two"),
        (
            "name = \"light\"",
            "name = \"lighter-than-air-nic\"",
            "32 nic/lighter-than-air-nic device MissingKey",
        ),
    ];
    for (line, replacement, expected) in cases {
        let actual = errors_of(&config_with(line, replacement));
        match expected {
            "two" => assert_eq!(actual, ["26 nic/web trunk OverlappingVlans"; 2]),
            "" => assert_eq!(
                actual,
                ["18 switch/inside uplink KeyNotApplicable", "18 switch/inside uplink Conflict"]
            ),
            _ => assert_eq!(actual, [expected], "{replacement}"),
        }
    }
    // A NIC without a socket is valid: a VM may use it later.
    parse_toml(&config_with("socket = \"/run/web.sock\"", ""), None).unwrap();
}

#[test]
fn conflicting_resources_are_refused() {
    let nic = |extra: &str| format!("{WHOLE}\n[[nic]]\nname = \"x\"\nswitch = \"lan\"\n{extra}\n");
    let cases = [
        (nic("backend = \"vhost-user\"\nsocket = \"/run//web.sock\""), "42 nic/x socket Conflict"),
        (nic("backend = \"tap\"\ndevice = \"eth0\""), "42 nic/x device Conflict"),
        (nic("backend = \"tap\"\ndevice = \"inside\""), "42 nic/x device Conflict"),
        (
            nic("backend = \"tap\"\ndevice = \"light\"\nnetns = \"blue\""),
            "42 nic/x device Conflict",
        ),
        (nic("backend = \"tap\"\nmac = \"52-54-00-12-34-56\""), "42 nic/x mac Conflict"),
        (
            config_with("name = \"light\"", "name = \"web\"\ndevice = \"l\""),
            "33 nic/web name DuplicateName",
        ),
        (
            config_with("switch = \"inside\"", "switch = \"insid\""),
            "34 nic/light switch UnknownReference",
        ),
        (
            config_with("uplink = \"wan\"", "uplink = \"lan\""),
            "13 switch/lan uplink UnknownReference",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(errors_of(&text), [expected]);
    }
    let free = nic("backend = \"tap\"\ndevice = \"light\"\nnetns = \"red\"");
    assert!(parse_toml(&free, None).is_ok());
    assert_eq!(
        first_message(&config_with("switch = \"inside\"", "switch = \"insid\"")),
        "line 34: nic/light: switch: there is no switch `insid`; did you mean `inside`?"
    );
}

#[test]
fn a_tcp_listener_needs_tls_and_a_token() {
    assert_eq!(
        errors_of("[api]\nlisten = \"0.0.0.0:8443\"\n"),
        [
            "1 api tls_certificate MissingKey",
            "1 api tls_key MissingKey",
            "1 api token_file MissingKey"
        ]
    );
    let complete = "[api]\ntls_certificate = \"/c\"\ntls_key = \"/k\"\ntoken_file = \"/t\"\n";
    assert!(parse_toml(&format!("{complete}listen = \"[::1]:8443\""), None).is_ok());
    assert_eq!(
        errors_of(&format!("{complete}listen = \"localhost\"")),
        ["5 api listen InvalidValue"]
    );
}

#[test]
fn invalid_toml_is_refused_with_its_line() {
    assert_eq!(errors_of("[host]\nname = \n"), ["2 - - Malformed"]);
    assert_eq!(errors_of("[host]\nname = \"a\"\nname = \"b\"\n"), ["3 - - Malformed"]);
    assert_eq!(errors_of("nic = 3"), ["1 - nic Malformed"]);
    assert_eq!(errors_of("[nic]\nname = \"a\""), ["1 - nic Malformed"]);
    assert_eq!(errors_of("host = 3"), ["1 - host Malformed"]);
    assert_eq!(errors_of(&" ".repeat(TOML_BYTES_MAX + 1)), ["- - - Malformed"]);
}

#[test]
fn errors_found_later_are_given_their_lines() {
    let error = |resource: &str, field: Option<&str>| {
        let mut error = ApiError::new(ErrorCode::DeviceMissing, "m").with_resource(resource);
        error.field = field.map(str::to_owned);
        error
    };
    let mut errors = [
        error("uplink/wan", Some("device")),
        error("nic/light", Some("netns")),
        error("nic/light", None),
        error("host", Some("worker_cpus")),
        error("switch/elsewhere", None),
        ApiError::new(ErrorCode::HostError, "about nothing"),
    ];
    locate_errors(WHOLE, Some("h.toml"), &mut errors);
    let displayed: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        displayed,
        [
            "h.toml:8: uplink/wan: device: m",
            "h.toml:36: nic/light: netns: m",
            "h.toml:32: nic/light: m",
            "h.toml:4: host: worker_cpus: m",
            "switch/elsewhere: m",
            "about nothing",
        ]
    );
    locate_errors("this is = not toml [[", None, &mut errors);
}

#[test]
fn a_flood_of_errors_is_bounded() {
    let text = "[[nic]]\nx = 1\n".repeat(10_000);
    assert_eq!(parse_toml(&text, None).unwrap_err().len(), 256);
    let members = (0..32).map(|index| format!("\"u{index}\"")).collect::<Vec<_>>().join(",");
    let team =
        |index: usize| format!("[[team]]\nname=\"t{index}\"\nmode=\"lacp\"\nmembers=[{members}]\n");
    let teams: String = (0..3000).map(team).collect();
    assert_eq!(parse_toml(&teams, None).unwrap_err().len(), 256);
    let uplinks: String = (0..32)
        .map(|index| format!("[[uplink]]\nname=\"u{index}\"\ndevice=\"e{index}\"\n"))
        .collect();
    assert_eq!(parse_toml(&format!("{uplinks}{teams}"), None).unwrap_err().len(), 256);
    let trunk = "7,".repeat(300_000);
    let text = format!(
        "[[switch]]\nname=\"l\"\nkind=\"private\"\n[[nic]]\nname=\"a\"\nswitch=\"l\"\nbackend=\"tap\"\ntrunk=[{trunk}]"
    );
    assert_eq!(parse_toml(&text, None).unwrap_err().len(), 8);
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(parse_toml(&deep, None).unwrap_err()[0].code, ErrorCode::Malformed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_panics(text in "[\\[\\]a-z0-9=\"\\.\n#{},'\\\\ \u{0}é-]{0,200}") {
        let _ = parse_toml(&text, None);
    }

    #[test]
    fn no_damage_to_a_good_file_panics(start in 0..WHOLE.len(), config_with in "\\PC{0,4}", cut in 0usize..40) {
        let mut text = WHOLE.to_owned();
        let end = (start + cut).min(text.len());
        text.replace_range(start..end, &config_with);
        if let Err(errors) = parse_toml(&text, None) {
            prop_assert!(!errors.is_empty());
        }
    }
}
