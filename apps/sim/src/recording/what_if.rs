//! What-if calculation: policies receive the recorded inputs with changed settings, and their
//! results are compared with the recorded ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::Read;

use anyhow::{Result, bail};
use serde::Serialize;
use suimon_quantity::Time;
use suimon_recording::{
    LossReason, ObjectNames, PolicyKind, Record, RecordError, RecordingSource, StreamId,
    decode_json,
};
use suimon_sim_kernel::align_columns;

use crate::recording::calculation::{Row, WhatIf};
use crate::recording::disks::DisksWhatIf;
use crate::recording::names::{add_names, store_name};
use crate::recording::read::Recording;
use crate::recording::settings::{Setting, SettingSubject};
use crate::recording::team::TeamWhatIf;
use crate::recording::vmq::VmqWhatIf;

/// Result of the calculation for one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WhatIfResult {
    pub(crate) policy: PolicyKind,
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
    /// Assumptions and limits of the figures.
    pub(crate) notes: Vec<String>,
}

/// Result of the calculation for a recording.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WhatIfReport {
    #[serde(rename = "about")]
    pub(crate) source: RecordingSource,
    pub(crate) settings: Vec<String>,
    pub(crate) policies: Vec<WhatIfResult>,
    #[serde(rename = "cut")]
    pub(crate) truncated_at: Option<u64>,
}

struct Stream {
    kind: PolicyKind,
    name: String,
    lost: Option<LossReason>,
    machine: Box<dyn WhatIf>,
}

/// Calculates the results for a recording.
pub(crate) fn what_if<R: Read>(
    mut recording: Recording<R>,
    settings: &[Setting],
) -> Result<WhatIfReport> {
    let mut streams = BTreeMap::<StreamId, Stream>::new();
    let mut recorded_objects = BTreeSet::new();
    let (mut source, mut names) = (RecordingSource::default(), ObjectNames::default());
    recording.for_each(|offset, record| {
        let at_offset = |fault: RecordError| fault.at_offset(offset);
        match record {
            Record::Origin(text) => source = decode_json(text).map_err(at_offset)?,
            Record::Names(text) => add_names(&mut names, decode_json(text).map_err(at_offset)?),
            Record::Begin { stream, at: time, kind, name, initial_state } => {
                recorded_objects.insert(format!("{kind} {name}"));
                if let Some(machine) = begin(kind, time, (name, initial_state), settings)? {
                    let name = name.to_owned();
                    streams.insert(stream, Stream { kind, name, lost: None, machine });
                }
            }
            Record::Step { stream, at: time, input, .. } => {
                if let Some(stream) = streams.get_mut(&stream) {
                    stream.machine.step(time, input).map_err(at_offset)?;
                }
            }
            Record::EndedEarly { stream, reason: loss } => {
                if let Some(stream) = streams.get_mut(&stream) {
                    stream.lost = Some(loss);
                } else if stream == StreamId(0) {
                    for stream in streams.values_mut() {
                        stream.lost.get_or_insert(loss);
                    }
                }
            }
        }
        Ok(())
    })?;
    let results: Result<Vec<WhatIfResult>> =
        streams.into_values().map(|stream| stream.calculate(&names)).collect();
    let policies: Vec<WhatIfResult> =
        results?.into_iter().filter(|result| !result.rows.is_empty()).collect();
    if policies.is_empty() {
        recorded_objects.extend(names.disks.values().map(|name| format!("disk {name}")));
        let recorded_objects = recorded_objects.into_iter().collect::<Vec<_>>().join(", ");
        let setting_texts = settings.iter().map(Setting::text).collect::<Vec<_>>().join(", ");
        bail!(
            "no recorded object has {setting_texts}; the recorded objects are: {recorded_objects}"
        );
    }
    let settings = settings.iter().map(Setting::text).collect();
    Ok(WhatIfReport { source, settings, policies, truncated_at: recording.truncated_at })
}

fn begin(
    kind: PolicyKind,
    time: Time,
    (name, initial_state): (&str, &[u8]),
    settings: &[Setting],
) -> Result<Option<Box<dyn WhatIf>>> {
    let settings_of = |subject: SettingSubject| -> Vec<Setting> {
        settings.iter().filter(|setting| setting.applies_to(subject, name)).cloned().collect()
    };
    Ok(match kind {
        PolicyKind::Team => match settings_of(SettingSubject::Team) {
            own_settings if own_settings.is_empty() => None,
            own_settings => Some(Box::new(TeamWhatIf::begin(initial_state, own_settings)?)),
        },
        PolicyKind::Vmq => match settings_of(SettingSubject::Vmq) {
            own_settings if own_settings.is_empty() => None,
            own_settings => Some(Box::new(VmqWhatIf::begin(time, initial_state, own_settings)?)),
        },
        PolicyKind::StorageQos => {
            let disks = settings.iter().filter(|setting| setting.subject == SettingSubject::Disk);
            match disks.cloned().collect::<Vec<_>>() {
                own_settings if own_settings.is_empty() => None,
                own_settings => Some(Box::new(DisksWhatIf::begin(initial_state, own_settings)?)),
            }
        }
        PolicyKind::ClusterMember | PolicyKind::ClusterLeader | PolicyKind::Lacp => None,
    })
}

impl Stream {
    fn calculate(self, names: &ObjectNames) -> Result<WhatIfResult> {
        let (rows, mut notes) = self.machine.calculate(names)?;
        if let Some(loss) = self.lost {
            notes.push(format!("the recording is incomplete: {loss}"));
        }
        let name = match self.kind {
            PolicyKind::StorageQos => store_name(names, &self.name),
            _ => self.name,
        };
        Ok(WhatIfResult { policy: self.kind, name, rows, notes })
    }
}

impl WhatIfReport {
    /// Returns the results as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let RecordingSource { version, host, .. } = &self.source;
        let _ = writeln!(text, "recorded on {host} by suimond {version}");
        let _ = writeln!(text, "what if {}", self.settings.join(", "));
        for WhatIfResult { policy, name, rows, notes } in &self.policies {
            let head = [format!("{policy} {name}"), "RECORDED".to_owned(), "WHAT IF".to_owned()];
            let mut table = vec![head.to_vec()];
            let row =
                |row: &Row| vec![row.figure.clone(), row.recorded.clone(), row.what_if.clone()];
            table.extend(rows.iter().map(row));
            let _ = write!(text, "\n{}", align_columns(&table));
            for note in notes {
                let _ = writeln!(text, "({note})");
            }
        }
        text
    }
}
