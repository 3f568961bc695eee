//! What another setting would have done: the policies are told what was recorded, with the setting in
//! place of theirs, and what they decide is counted beside what they decided.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::Read;

use anyhow::{Result, bail};
use serde::Serialize;
use suimon_quantity::Time;
use suimon_recording::{About, Fault, Kind, Loss, Names, Record, StreamId, decode};

use crate::outcome::columns;
use crate::recording::disks::DisksWhatIf;
use crate::recording::read::Recording;
use crate::recording::settings::{Of, Setting};
use crate::recording::team::TeamWhatIf;
use crate::recording::vmq::VmqWhatIf;

/// A figure as it was, and as it would have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) recorded: String,
    pub(crate) what_if: String,
}

impl Row {
    #[allow(clippy::needless_pass_by_value, reason = "numbers and texts, as they come")]
    pub(crate) fn new(
        what: impl Into<String>,
        recorded: impl ToString,
        what_if: impl ToString,
    ) -> Self {
        let (recorded, what_if) = (recorded.to_string(), what_if.to_string());
        Self { what: what.into(), recorded, what_if }
    }
}

/// The answer for one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Told {
    pub(crate) policy: Kind,
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
    /// On what the figures rest, and what they do not say.
    pub(crate) notes: Vec<String>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Answer {
    pub(crate) about: About,
    pub(crate) settings: Vec<String>,
    pub(crate) policies: Vec<Told>,
    pub(crate) cut: Option<u64>,
}

/// A policy that is told what was recorded, twice: with its own settings and with others.
pub(crate) trait WhatIf {
    /// The policy was told something.
    fn step(&mut self, at: Time, input: &[u8]) -> Result<(), Fault>;

    /// What came of it; nothing, if there is nothing that the settings are of.
    ///
    /// # Errors
    /// The settings cannot be.
    fn tell(&self, names: &Names) -> Result<(Vec<Row>, Vec<String>)>;
}

struct Stream {
    kind: Kind,
    name: String,
    lost: Option<Loss>,
    of: Box<dyn WhatIf>,
}

/// Asks a recording.
pub(crate) fn what_if<R: Read>(
    mut recording: Recording<R>,
    settings: &[Setting],
) -> Result<Answer> {
    let mut streams = BTreeMap::<StreamId, Stream>::new();
    let mut seen = BTreeSet::new();
    let (mut about, mut names) = (About::default(), Names::default());
    recording.for_each(|offset, record| {
        let wrong = |fault: Fault| fault.at(offset);
        match record {
            Record::About(text) => about = decode(text).map_err(wrong)?,
            Record::Names(text) => learn(&mut names, decode(text).map_err(wrong)?),
            Record::Begin { stream, at, kind, name, birth } => {
                seen.insert(format!("{kind} {name}"));
                if let Some(of) = begin(kind, at, (name, birth), settings)? {
                    let name = name.to_owned();
                    streams.insert(stream, Stream { kind, name, lost: None, of });
                }
            }
            Record::Step { stream, at, input, .. } => {
                if let Some(of) = streams.get_mut(&stream) {
                    of.of.step(at, input).map_err(wrong)?;
                }
            }
            Record::Lost { stream, loss } => {
                if let Some(of) = streams.get_mut(&stream) {
                    of.lost = Some(loss);
                }
            }
        }
        Ok(())
    })?;
    let told: Result<Vec<Told>> = streams.into_values().map(|of| of.tell(&names)).collect();
    let policies: Vec<Told> = told?.into_iter().filter(|told| !told.rows.is_empty()).collect();
    if policies.is_empty() {
        seen.extend(names.disks.values().map(|name| format!("disk {name}")));
        let seen = seen.into_iter().collect::<Vec<_>>().join(", ");
        let wanted = settings.iter().map(Setting::text).collect::<Vec<_>>().join(", ");
        bail!("nothing that was recorded has {wanted}; there are: {seen}");
    }
    let settings = settings.iter().map(Setting::text).collect();
    Ok(Answer { about, settings, policies, cut: recording.cut })
}

fn begin(
    kind: Kind,
    at: Time,
    (name, birth): (&str, &[u8]),
    settings: &[Setting],
) -> Result<Option<Box<dyn WhatIf>>> {
    let of = |of: Of| -> Vec<Setting> {
        settings.iter().filter(|setting| setting.is_of(of, name)).cloned().collect()
    };
    Ok(match kind {
        Kind::Team => match of(Of::Team) {
            mine if mine.is_empty() => None,
            mine => Some(Box::new(TeamWhatIf::begin(birth, mine)?)),
        },
        Kind::Vmq => match of(Of::Vmq) {
            mine if mine.is_empty() => None,
            mine => Some(Box::new(VmqWhatIf::begin(at, birth, mine)?)),
        },
        Kind::StorageQos => {
            let disks = settings.iter().filter(|setting| setting.of == Of::Disk);
            match disks.cloned().collect::<Vec<_>>() {
                mine if mine.is_empty() => None,
                mine => Some(Box::new(DisksWhatIf::begin(birth, mine)?)),
            }
        }
        Kind::ClusterMember | Kind::ClusterLeader | Kind::Lacp => None,
    })
}

/// Numbers are not used again, so what was known stays.
pub(crate) fn learn(names: &mut Names, more: Names) {
    names.disks.extend(more.disks);
    names.ports.extend(more.ports);
    names.stores.extend(more.stores);
}

/// What a store is called whose stream has its number.
pub(crate) fn store_name(names: &Names, number: &str) -> String {
    let name = number.parse().ok().and_then(|number: u32| names.stores.get(&number));
    name.cloned().unwrap_or_else(|| number.to_owned())
}

impl Stream {
    fn tell(self, names: &Names) -> Result<Told> {
        let (rows, mut notes) = self.of.tell(names)?;
        if let Some(loss) = self.lost {
            notes.push(format!("not all of it was recorded: {loss}"));
        }
        let name = match self.kind {
            Kind::StorageQos => store_name(names, &self.name),
            _ => self.name,
        };
        Ok(Told { policy: self.kind, name, rows, notes })
    }
}

impl Answer {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let About { version, host, .. } = &self.about;
        let _ = writeln!(text, "recorded on {host} by suimond {version}");
        let _ = writeln!(text, "what if {}", self.settings.join(", "));
        for Told { policy, name, rows, notes } in &self.policies {
            let head = [format!("{policy} {name}"), "RECORDED".to_owned(), "WHAT IF".to_owned()];
            let mut table = vec![head.to_vec()];
            let row = |row: &Row| vec![row.what.clone(), row.recorded.clone(), row.what_if.clone()];
            table.extend(rows.iter().map(row));
            let _ = write!(text, "\n{}", columns(&table));
            for note in notes {
                let _ = writeln!(text, "({note})");
            }
        }
        text
    }
}
