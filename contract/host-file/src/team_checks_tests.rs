use crate::{
    ErrorCode, LacpSettings, LacpTimer, Name, TEAM_MEMBERS_MAX, TeamAlgorithm, TeamConfig,
    TeamMode, parse_toml, validate,
};

/// Three uplinks, a team of two of them and a switch with the team as uplink.
const TEAMED: &str = r#"
[[uplink]]
name = "left"
device = "eth0"
[[uplink]]
name = "right"
device = "eth1"
[[uplink]]
name = "third"
device = "eth2"
[[team]]
name = "both"
members = ["left", "right"]
mode = "switch-independent"
[[switch]]
name = "lan"
kind = "external"
uplink = "both"
"#;

/// Returns `TEAMED` with pairs of texts replaced.
fn config_with(replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(TEAMED.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    })
}

/// Returns the faults as `LINE RESOURCE FIELD CODE: MESSAGE`.
fn errors_of(text: &str) -> Vec<String> {
    let errors = match parse_toml(text, None) {
        Ok(config) => panic!("accepted: {config:?}"),
        Err(errors) => errors,
    };
    errors
        .iter()
        .map(|error| {
            format!(
                "{} {} {} {:?}: {}",
                error.line.unwrap_or_default(),
                error.resource.as_deref().unwrap_or("-"),
                error.field.as_deref().unwrap_or("-"),
                error.code,
                error.message
            )
        })
        .collect()
}

fn team(text: &str) -> TeamConfig {
    parse_toml(text, None).unwrap().teams.remove(0)
}

#[test]
fn a_team_is_read_with_defaults() {
    let both = team(TEAMED);
    assert_eq!(both.members.iter().map(Name::as_str).collect::<Vec<_>>(), ["left", "right"]);
    assert_eq!(both.mode, TeamMode::SwitchIndependent);
    assert_eq!(both.algorithm, TeamAlgorithm::Dynamic);
    assert_eq!((both.min_links, both.lacp()), (1, None));
    assert_eq!(both.vmq.max_workers, 4);
    let nobody_uses_it =
        config_with(&[("kind = \"external\"\nuplink = \"both\"", "kind = \"private\"")]);
    assert_eq!(team(&nobody_uses_it), both);
}

#[test]
fn lacp_has_settings_in_its_mode_only() {
    let lacp = team(&config_with(&[("switch-independent", "lacp")])).lacp();
    let unwritten = LacpSettings { timer: LacpTimer::Slow, active: true, system_priority: 32_768 };
    assert_eq!(lacp, Some(unwritten));
    let explicit =
        "\"lacp\"\nlacp_timer = \"fast\"\nlacp_active = false\nlacp_system_priority = 0\n";
    let lacp = team(&config_with(&[("\"switch-independent\"", explicit)])).lacp();
    let settings = LacpSettings { timer: LacpTimer::Fast, active: false, system_priority: 0 };
    assert_eq!(lacp, Some(settings));
    let errors = errors_of(&config_with(&[(
        "\"switch-independent\"",
        &explicit.replace("lacp\"", "static\""),
    )]));
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(
        errors[0],
        "15 team/both lacp_timer KeyNotApplicable: applies only to teams in LACP mode; remove \
         this key or set mode = \"lacp\""
    );
}

#[test]
fn every_mode_takes_every_algorithm() {
    for mode in ["static", "lacp", "switch-independent"] {
        for algorithm in
            ["hyper-v-port", "transport-ports", "ip-addresses", "mac-addresses", "dynamic"]
        {
            let keys = format!("\"{mode}\"\nalgorithm = \"{algorithm}\"");
            let team = team(&config_with(&[("\"switch-independent\"", &keys)]));
            assert_eq!(serde_json::to_value(team.mode).unwrap(), mode);
            assert_eq!(serde_json::to_value(team.algorithm).unwrap(), algorithm);
        }
    }
}

#[test]
fn members_are_uplinks_that_are_there_each_once() {
    let members = "[\"left\", \"right\"]";
    let cases = [
        (
            "[\"left\", \"rigth\"]",
            "13 team/both members UnknownReference: there is no uplink `rigth`; did you mean \
             `right`?",
        ),
        (
            "[\"left\", \"elsewhere\"]",
            "13 team/both members UnknownReference: there is no uplink `elsewhere`; add a \
             [[uplink]] of that name, or correct the name",
        ),
        (
            "[\"left\", \"both\"]",
            "13 team/both members UnknownReference: `both` is a team; name only uplinks as \
             members",
        ),
        (
            "[\"left\", \"right\", \"left\", \"left\"]",
            "13 team/both members InvalidValue: `left` is named more than once; name each member \
             once",
        ),
        (
            "[]",
            "13 team/both members InvalidValue: must be a list of 1 to 32 names, like [\"left\", \
             \"right\"], not []",
        ),
        (
            "\"left\"",
            "13 team/both members Malformed: must be a list of 1 to 32 names, like [\"left\", \
             \"right\"], not \"left\"",
        ),
    ];
    for (replacement, expected) in cases {
        assert_eq!(errors_of(&config_with(&[(members, replacement)])), [expected]);
    }
}

#[test]
fn a_team_has_at_most_32_members() {
    let config_of = |count: usize| {
        let names: Vec<_> = (0..count).map(|index| format!("\"u{index}\"")).collect();
        let uplinks: String = (0..count)
            .map(|index| format!("[[uplink]]\nname = \"u{index}\"\ndevice = \"en{index}\"\n"))
            .collect();
        let members = format!("[{}]", names.join(", "));
        format!("{uplinks}{}", config_with(&[("[\"left\", \"right\"]", &members)]))
    };
    assert_eq!(team(&config_of(TEAM_MEMBERS_MAX)).members.len(), TEAM_MEMBERS_MAX);
    let errors = errors_of(&config_of(TEAM_MEMBERS_MAX + 1));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("members InvalidValue: must be a list of 1 to 32 names"));
}

#[test]
fn an_uplink_is_in_one_team_or_on_one_switch() {
    let second_team = "[[team]]\nname = \"more\"\nmembers = [\"third\", \"right\"]\n\
                       mode = \"static\"\n[[switch]]";
    assert_eq!(
        errors_of(&config_with(&[("[[switch]]", second_team)])),
        ["17 team/more members Conflict: uplink `right` is already used by team/both (its \
          `members`); an uplink can serve only one switch or team; use another uplink"]
    );
    let other_switch = "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = ";
    assert_eq!(
        errors_of(&format!("{TEAMED}{other_switch}\"left\"")),
        ["22 switch/wan uplink Conflict: uplink `left` is already used by team/both (its \
          `members`); use the team, or remove the uplink from it"]
    );
    assert_eq!(
        errors_of(&format!("{TEAMED}{other_switch}\"both\"")),
        ["22 switch/wan uplink Conflict: team `both` is already used by switch/lan (its \
          `uplink`); a team can serve only one switch; use another team"]
    );
    assert!(parse_toml(&format!("{TEAMED}{other_switch}\"third\""), None).is_ok());
}

#[test]
fn uplinks_and_teams_share_their_names() {
    assert_eq!(
        errors_of(&config_with(&[
            ("name = \"both\"", "name = \"third\""),
            ("\"both\"", "\"third\"")
        ])),
        ["12 team/third name DuplicateName: `third` is also the name of the 3rd uplink; rename \
          one of them"]
    );
    assert_eq!(
        errors_of(&config_with(&[("uplink = \"both\"", "uplink = \"elsewhere\"")])),
        ["18 switch/lan uplink UnknownReference: there is no uplink or team `elsewhere`; add a \
          [[uplink]] or [[team]] of that name, or correct the name"]
    );
    assert_eq!(
        errors_of(&config_with(&[("uplink = \"both\"", "uplink = \"bot\"")])),
        ["18 switch/lan uplink UnknownReference: there is no uplink or team `bot`; did you mean \
             `both`?"]
    );
}

#[test]
fn roles_require_a_member_and_a_suitable_mode() {
    let mode = "mode = \"switch-independent\"";
    let cases = [
        (
            "standby = \"third\"",
            "15 team/both standby UnknownReference: `third` is not a member of the team; set one \
             of `left`, `right`",
        ),
        (
            "primary = \"third\"",
            "15 team/both primary UnknownReference: `third` is not a member of the team; set one \
             of `left`, `right`",
        ),
        (
            "standby = \"left\"\nprimary = \"left\"",
            "15 team/both standby InvalidValue: `left` is also the primary; set another member \
             for one of the two keys",
        ),
        (
            "standby = \"left\"\nmin_links = 2",
            "16 team/both min_links InvalidValue: 2 exceeds 1, the number of members \
             without the standby; lower it",
        ),
        (
            "min_links = 3",
            "15 team/both min_links InvalidValue: 3 exceeds 2, the number of members; \
             lower it",
        ),
        (
            "min_links = 33",
            "15 team/both min_links InvalidValue: must be a whole number from 1 to 32, not 33",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(errors_of(&config_with(&[(mode, &format!("{mode}\n{keys}"))])), [expected]);
    }
    assert_eq!(
        errors_of(&config_with(&[
            ("[\"left\", \"right\"]", "[\"left\"]"),
            (mode, &format!("{mode}\nstandby = \"left\"")),
        ])),
        ["15 team/both standby InvalidValue: `left` is the only member; add another member or \
          remove this key"]
    );
    for other in ["static", "lacp"] {
        for role in ["standby", "primary"] {
            let keys = format!("mode = \"{other}\"\n{role} = \"left\"\nmin_links = 2");
            assert_eq!(
                errors_of(&config_with(&[(mode, &keys)])),
                [format!(
                    "15 team/both {role} KeyNotApplicable: in this mode the switch on the other \
                     side selects members, so {role} does not apply; remove this key or set mode \
                     = \"switch-independent\""
                )]
            );
        }
    }
    let keys = "standby = \"left\"\nprimary = \"right\"\nmin_links = 1";
    assert!(parse_toml(&config_with(&[(mode, &format!("{mode}\n{keys}"))]), None).is_ok());
}

#[test]
fn members_that_name_an_mtu_name_one() {
    let mtus = |remaining: &str, right: &str| {
        config_with(&[
            ("\"eth0\"", &format!("\"eth0\"{remaining}")),
            ("\"eth1\"", &format!("\"eth1\"{right}")),
        ])
    };
    assert_eq!(
        errors_of(&mtus("\nmtu = 9000", "\nmtu = 1500")),
        ["15 team/both members InvalidValue: the `mtu` of `left` is 9000 and that of `right` is \
          1500, but any member may send a frame; set the same MTU for all members"]
    );
    assert!(parse_toml(&mtus("\nmtu = 9000", "\nmtu = 9000"), None).is_ok());
    // The other member's device may have that MTU already, which only the host can check.
    assert!(parse_toml(&mtus("\nmtu = 9000", ""), None).is_ok());
}

/// Verifies that a change of one resource results in the same errors as a file, without lines.
#[test]
fn desired_state_is_checked_as_a_file_is() {
    let mut config = parse_toml(TEAMED, None).unwrap();
    assert_eq!(validate(&config), Ok(()));
    config.teams[0].members.push("left".parse().unwrap());
    config.teams[0].min_links = 40;
    config.uplinks.remove(1);
    let errors = validate(&config).unwrap_err();
    let actual: Vec<_> =
        errors.iter().map(|e| (e.field.as_deref().unwrap_or("-"), e.code)).collect();
    assert_eq!(
        actual,
        [
            ("min_links", ErrorCode::InvalidValue),
            ("members", ErrorCode::InvalidValue),
            ("min_links", ErrorCode::InvalidValue),
            ("members", ErrorCode::UnknownReference),
        ]
    );
    assert!(errors.iter().all(|error| error.resource.as_deref() == Some("team/both")));
}

#[test]
fn a_tap_is_no_member_where_lacpdus_have_to_pass() {
    let tap = ("device = \"eth1\"", "device = \"eth1\"\ndriver = \"tap\"");
    for mode in ["static", "switch-independent"] {
        team(&config_with(&[("switch-independent", mode), tap]));
    }
    let actual = errors_of(&config_with(&[("switch-independent", "lacp"), tap]));
    assert_eq!(actual.len(), 1, "{actual:?}");
    let expected = "team/both members InvalidValue: `right` is a TAP";
    assert!(actual[0].contains(expected) && actual[0].contains("\"af_xdp\""), "{actual:?}");
    let xdp = ("device = \"eth1\"", "device = \"eth1\"\ndriver = \"af_xdp\"");
    team(&config_with(&[("switch-independent", "lacp"), xdp]));
}
