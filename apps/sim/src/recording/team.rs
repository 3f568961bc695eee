//! Distribution of a team's traffic under other settings.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use suimon_quantity::Time;
use suimon_recording::{ObjectNames, Policy, RecordError, TeamDecision, TeamInput, decode_json};
use suimon_teaming::{Algorithm, BucketLoad, MemberId, Team, TeamSpec};

use crate::recording::calculation::{Row, WhatIf};
use crate::recording::settings::Setting;

/// Totals of a team with one set of settings.
#[derive(Clone, Debug, Default)]
struct Sum {
    distributions: u64,
    announcements: u64,
    events: u64,
    /// Bytes carried by each member, without those of unknown members.
    carried: BTreeMap<MemberId, u64>,
    /// Largest share of one member in the team's bytes of a second, over all seconds, in
    /// thousandths.
    worst: u64,
}

/// What-if calculation for a team under other settings.
pub(crate) struct TeamWhatIf {
    settings: Vec<Setting>,
    recorded: Team,
    other: Team,
    was: Sum,
    would: Sum,
    seconds: u64,
    /// True if the recorded loads of flows cannot be assigned to members under the other settings.
    unknown: bool,
    refused: Option<String>,
}

/// Applies those settings to a specification that concern teams.
///
/// # Errors
/// A setting is unknown or invalid.
fn set(settings: &[Setting], mut spec: TeamSpec) -> Result<TeamSpec> {
    for setting in settings {
        match setting.field.as_str() {
            "algorithm" => spec.algorithm = setting.value()?,
            "mode" => spec.mode = setting.value()?,
            "min_links" => spec.min_links = setting.value()?,
            _ => return setting.unknown_setting_error("algorithm, mode and min_links"),
        }
    }
    Ok(spec)
}

impl TeamWhatIf {
    pub(crate) fn begin(initial_state: &[u8], settings: Vec<Setting>) -> Result<Self> {
        let spec: TeamSpec = decode_json(initial_state)?;
        let other =
            Team::new(set(&settings, spec.clone())?).context("the team with this setting")?;
        Ok(Self {
            settings,
            recorded: Team::new(spec)?,
            other,
            was: Sum::default(),
            would: Sum::default(),
            seconds: 0,
            unknown: false,
            refused: None,
        })
    }

    fn count_loads(&mut self, loads: &[(u16, BucketLoad)]) {
        self.seconds += 1;
        // The recorded loads are those of hash buckets, which both algorithms must define in the
        // same way.
        let knows = |team: &Team| {
            matches!(team.spec().algorithm, Algorithm::Dynamic | Algorithm::TransportPorts)
        };
        if !knows(&self.other) || !knows(&self.recorded) {
            self.unknown = true;
            return;
        }
        self.was.carry(&self.recorded, loads);
        self.would.carry(&self.other, loads);
    }
}

impl WhatIf for TeamWhatIf {
    fn step(&mut self, time: Time, input: &[u8]) -> Result<(), RecordError> {
        let input: TeamInput = decode_json(input)?;
        if let TeamInput::Loads(loads) = &input {
            self.count_loads(loads);
        }
        let decision = self.recorded.step(time, &input);
        self.was.count(&decision);
        let input = match input {
            TeamInput::Spec(spec) => {
                let spec = set(&self.settings, spec);
                TeamInput::Spec(spec.map_err(|error| RecordError::InvalidBody(error.to_string()))?)
            }
            // The recorded member of a flow is removed, so that the policy's own selection applies.
            TeamInput::Loads(mut loads) => {
                loads.iter_mut().for_each(|(_, load)| load.member = None);
                TeamInput::Loads(loads)
            }
            other => other,
        };
        let decision = self.other.step(time, &input);
        self.refused = self.refused.take().or_else(|| decision.refusal_reason.clone());
        self.would.count(&decision);
        Ok(())
    }

    fn calculate(&self, names: &ObjectNames) -> Result<(Vec<Row>, Vec<String>)> {
        let Self { was: recorded, would: what_if, .. } = self;
        let spec = |team: &Team| format!("{}/{}", team.spec().mode, team.spec().algorithm);
        let mut rows = vec![
            Row::new("team", spec(&self.recorded), spec(&self.other)),
            Row::new("recomputed distributions", recorded.distributions, what_if.distributions),
            Row::new("announced addresses", recorded.announcements, what_if.announcements),
            Row::new("events", recorded.events, what_if.events),
        ];
        let mut notes = Vec::new();
        for member in recorded
            .carried
            .keys()
            .chain(what_if.carried.keys())
            .collect::<std::collections::BTreeSet<_>>()
        {
            let name = names.ports.get(&member.0).cloned();
            let name = name.unwrap_or_else(|| format!("member {member}"));
            let row = |sum: &Sum| sum.part(*member);
            rows.push(Row::new(format!("bytes by {name}"), row(recorded), row(what_if)));
        }
        if !recorded.carried.is_empty() {
            let percent = |sum: &Sum| format!("{}.{} %", sum.worst / 10, sum.worst % 10);
            rows.push(Row::new(
                "busiest member, highest second",
                percent(recorded),
                percent(what_if),
            ));
            notes.push(format!(
                "loads of {} s; each flow is assumed to be on the member that the team assigns",
                self.seconds
            ));
        }
        if self.unknown {
            notes.push(
                "traffic per member is unknown: flows were recorded with other fields".to_owned(),
            );
        } else if self.seconds == 0 {
            notes.push(
                "traffic per member is unknown: loads are recorded only with the algorithm dynamic"
                    .to_owned(),
            );
        }
        if let Some(rejection) = &self.refused {
            notes.push(format!("the settings were rejected once: {rejection}"));
        }
        Ok((rows, notes))
    }
}

impl Sum {
    fn count(&mut self, decision: &TeamDecision) {
        self.distributions += u64::from(decision.distribution.is_some());
        self.announcements += decision.announcements.len() as u64;
        self.events += decision.events.len() as u64;
    }

    fn carry(&mut self, team: &Team, loads: &[(u16, BucketLoad)]) {
        let distribution = team.distribution();
        let mut second = BTreeMap::<MemberId, u64>::new();
        for (bucket, load) in loads {
            let member = distribution.member_of_bucket(usize::from(*bucket));
            if let Some(member) = member.filter(|_| distribution.is_up()) {
                *second.entry(member).or_default() += load.bytes;
            }
        }
        let total: u64 = second.values().sum();
        let largest = second.values().max().copied().unwrap_or_default();
        // Shares in seconds with little traffic are not representative and are ignored.
        if total > 1 << 20 {
            self.worst = self.worst.max(largest.saturating_mul(1000) / total);
        }
        for (member, bytes) in second {
            *self.carried.entry(member).or_default() += bytes;
        }
    }

    fn part(&self, member: MemberId) -> String {
        let total: u64 = self.carried.values().sum();
        let bytes = self.carried.get(&member).copied().unwrap_or_default();
        let part = (u128::from(bytes) * 1000).checked_div(u128::from(total)).unwrap_or_default();
        format!("{}.{} %", part / 10, part % 10)
    }
}
