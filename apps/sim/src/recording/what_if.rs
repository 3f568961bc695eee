//! What-if calculation: policies receive the recorded inputs with changed settings, and their
//! results are compared with the recorded ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::Read;

use anyhow::{Result, bail};
use serde::Serialize;
use suimon_quantity::Time;
use suimon_recording::{
    Loss, Names, PolicyKind, Record, RecordError, RecordingSource, StreamId, decode,
};
use suimon_sim_kernel::columns;

use crate::recording::calculation::{Row, WhatIf};
use crate::recording::disks::DisksWhatIf;
use crate::recording::names::{learn, store_name};
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
    pub(crate) about: RecordingSource,
    pub(crate) settings: Vec<String>,
    pub(crate) policies: Vec<WhatIfResult>,
    pub(crate) cut: Option<u64>,
}

struct Stream {
    kind: PolicyKind,
    name: String,
    lost: Option<Loss>,
    of: Box<dyn WhatIf>,
}

/// Calculates the results for a recording.
pub(crate) fn what_if<R: Read>(
    mut recording: Recording<R>,
    settings: &[Setting],
) -> Result<WhatIfReport> {
    let mut streams = BTreeMap::<StreamId, Stream>::new();
    let mut seen = BTreeSet::new();
    let (mut about, mut names) = (RecordingSource::default(), Names::default());
    recording.for_each(|offset, record| {
        let wrong = |fault: RecordError| fault.at_offset(offset);
        match record {
            Record::Origin(text) => about = decode(text).map_err(wrong)?,
            Record::Names(text) => learn(&mut names, decode(text).map_err(wrong)?),
            Record::Begin { stream, at, kind, name, initial_state: birth } => {
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
    let told: Result<Vec<WhatIfResult>> =
        streams.into_values().map(|of| of.calculate(&names)).collect();
    let policies: Vec<WhatIfResult> =
        told?.into_iter().filter(|told| !told.rows.is_empty()).collect();
    if policies.is_empty() {
        seen.extend(names.disks.values().map(|name| format!("disk {name}")));
        let seen = seen.into_iter().collect::<Vec<_>>().join(", ");
        let wanted = settings.iter().map(Setting::text).collect::<Vec<_>>().join(", ");
        bail!("no recorded object has {wanted}; the recorded objects are: {seen}");
    }
    let settings = settings.iter().map(Setting::text).collect();
    Ok(WhatIfReport { about, settings, policies, cut: recording.cut })
}

fn begin(
    kind: PolicyKind,
    at: Time,
    (name, birth): (&str, &[u8]),
    settings: &[Setting],
) -> Result<Option<Box<dyn WhatIf>>> {
    let of = |of: SettingSubject| -> Vec<Setting> {
        settings.iter().filter(|setting| setting.applies_to(of, name)).cloned().collect()
    };
    Ok(match kind {
        PolicyKind::Team => match of(SettingSubject::Team) {
            mine if mine.is_empty() => None,
            mine => Some(Box::new(TeamWhatIf::begin(birth, mine)?)),
        },
        PolicyKind::Vmq => match of(SettingSubject::Vmq) {
            mine if mine.is_empty() => None,
            mine => Some(Box::new(VmqWhatIf::begin(at, birth, mine)?)),
        },
        PolicyKind::StorageQos => {
            let disks = settings.iter().filter(|setting| setting.of == SettingSubject::Disk);
            match disks.cloned().collect::<Vec<_>>() {
                mine if mine.is_empty() => None,
                mine => Some(Box::new(DisksWhatIf::begin(birth, mine)?)),
            }
        }
        PolicyKind::ClusterMember | PolicyKind::ClusterLeader | PolicyKind::Lacp => None,
    })
}

impl Stream {
    fn calculate(self, names: &Names) -> Result<WhatIfResult> {
        let (rows, mut notes) = self.of.calculate(names)?;
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
        let RecordingSource { version, host, .. } = &self.about;
        let _ = writeln!(text, "recorded on {host} by suimond {version}");
        let _ = writeln!(text, "what if {}", self.settings.join(", "));
        for WhatIfResult { policy, name, rows, notes } in &self.policies {
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
