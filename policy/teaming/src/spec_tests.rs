use suimon_frame::MacAddr;

use super::*;
use crate::test_teams::members;

fn spec(mode: TeamMode, count: u32) -> TeamSpec {
    TeamSpec::new(TeamId(1), mode, Algorithm::Dynamic, &members(count))
}

#[test]
fn a_plain_team_of_any_size_is_accepted() {
    for mode in [TeamMode::Static, TeamMode::Lacp, TeamMode::SwitchIndependent] {
        for count in [1, 2, 32] {
            let mut spec = spec(mode, count);
            spec.min_links = count;
            assert_eq!(spec.check(), Ok(()));
        }
    }
}

/// Row: modification of a valid team, expected error and message.
type Row = (fn(&mut TeamSpec), TeamSpecError, &'static str);

const GOOD: TeamMode = TeamMode::SwitchIndependent;

fn member_rows() -> Vec<Row> {
    vec![
        (|spec| spec.members.clear(), TeamSpecError::NoMembers, "set 1 to 32"),
        (
            |spec| spec.members = members(33),
            TeamSpecError::TooManyMembers { count: 33 },
            "33 members, at most 32",
        ),
        (
            |spec| spec.members[2].id = MemberId(0),
            TeamSpecError::DuplicateMember(MemberId(0)),
            "member 0 is listed twice",
        ),
        (
            |spec| spec.members[2].mac = spec.members[1].mac,
            TeamSpecError::DuplicateAddress {
                member: MemberId(2),
                other: MemberId(1),
                mac: members(3)[1].mac,
            },
            "members 2 and 1 both have",
        ),
        (
            |spec| spec.members[0].mac = MacAddr::BROADCAST,
            TeamSpecError::NotAStationAddress { member: MemberId(0), mac: MacAddr::BROADCAST },
            "set a unicast address",
        ),
    ]
}

fn role_rows() -> Vec<Row> {
    let three = vec![MemberId(0), MemberId(1), MemberId(2)];
    vec![
        (
            |spec| spec.primary = Some(MemberId(9)),
            TeamSpecError::NotAMember {
                role: "primary",
                member: MemberId(9),
                members: three.clone(),
            },
            "the primary 9 is not a member of the team; set one of 0, 1, 2",
        ),
        (
            |spec| spec.standby = Some(MemberId(9)),
            TeamSpecError::NotAMember { role: "standby", member: MemberId(9), members: three },
            "the standby 9",
        ),
        (
            |spec| {
                spec.mode = TeamMode::Static;
                spec.standby = Some(MemberId(1));
            },
            TeamSpecError::RoleNotAllowedInMode { role: "standby", mode: TeamMode::Static },
            "standby does not apply in static mode",
        ),
        (
            |spec| {
                spec.mode = TeamMode::Lacp;
                spec.primary = Some(MemberId(1));
            },
            TeamSpecError::RoleNotAllowedInMode { role: "primary", mode: TeamMode::Lacp },
            "remove it, or set switch-independent mode",
        ),
        (
            |spec| {
                spec.members.truncate(1);
                spec.standby = Some(MemberId(0));
            },
            TeamSpecError::OnlyStandby(MemberId(0)),
            "add another member",
        ),
        (
            |spec| {
                spec.primary = Some(MemberId(2));
                spec.standby = Some(MemberId(2));
            },
            TeamSpecError::PrimaryIsStandby(MemberId(2)),
            "cannot be both",
        ),
        (|spec| spec.min_links = 0, TeamSpecError::MinLinks { min_links: 0, max: 3 }, "of 1 to 3"),
        (|spec| spec.min_links = 4, TeamSpecError::MinLinks { min_links: 4, max: 3 }, "of 1 to 3"),
        (
            |spec| {
                spec.standby = Some(MemberId(2));
                spec.min_links = 3;
            },
            TeamSpecError::MinLinks { min_links: 3, max: 2 },
            "min_links 3 is outside of 1 to 2",
        ),
    ]
}

#[test]
fn every_contradiction_is_reported_with_accepted_values() {
    for (change, error, text) in member_rows().into_iter().chain(role_rows()) {
        let mut spec = spec(GOOD, 3);
        change(&mut spec);
        assert_eq!(spec.check(), Err(error.clone()));
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn names_are_those_of_the_host_file() {
    let spec = spec(GOOD, 1);
    let json = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<TeamSpec>(&json).unwrap(), spec);
    for mode in [TeamMode::Static, TeamMode::Lacp, TeamMode::SwitchIndependent] {
        assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
    }
    for algorithm in crate::test_teams::ALGORITHMS {
        assert_eq!(serde_json::to_string(&algorithm).unwrap(), format!("\"{algorithm}\""));
    }
}
