//! Replay of a recording: each decision of the policies must equal the recorded one, byte for byte.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;

use anyhow::Result;
use serde::Serialize;
use suimon_quantity::Time;
use suimon_recording::{
    Difference, Loss, Names, PolicyKind, PolicyReplay, Record, RecordError, RecordingSource,
    StreamId, begin, decode,
};

use crate::recording::names::{learn, store_name};
use crate::recording::read::Recording;

/// Largest number of characters of an input that is shown.
const SHOWN_MAX: usize = 400;

/// Decision that differs from the recorded one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Differs {
    /// Offset of its record in the file.
    pub(crate) offset: u64,
    /// Time on the workers' clock.
    pub(crate) at_ns: u64,
    /// Number of the step in its stream, from 1.
    pub(crate) step: u64,
    /// Input of the policy as text.
    pub(crate) told: String,
    /// Difference between recorded and replayed decision.
    #[serde(flatten)]
    pub(crate) difference: Difference,
}

/// Result of the replay for one policy.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StreamReport {
    pub(crate) stream: StreamId,
    pub(crate) policy: PolicyKind,
    pub(crate) name: String,
    pub(crate) began_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) steps: u64,
    /// First decision that differs, if any.
    pub(crate) differs: Option<Differs>,
    /// Reason why the recording of the policy is incomplete.
    pub(crate) lost: Option<Loss>,
}

/// Result of the replay of a recording.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Replay {
    pub(crate) about: RecordingSource,
    pub(crate) streams: Vec<StreamReport>,
    /// Offset of an incomplete block at the end of the file.
    pub(crate) cut: Option<u64>,
    #[serde(skip)]
    pub(crate) names: Names,
}

struct Stream {
    machine: Box<dyn PolicyReplay>,
    report: StreamReport,
}

/// Replays all policies of a recording.
pub(crate) fn replay<R: Read>(mut recording: Recording<R>) -> Result<Replay> {
    let mut streams = BTreeMap::<StreamId, Stream>::new();
    let mut replay = Replay::default();
    let mut now = Vec::new();
    recording.for_each(|offset, record| {
        let wrong = |fault: RecordError| fault.at_offset(offset);
        match record {
            Record::Origin(text) => replay.about = decode(text).map_err(wrong)?,
            Record::Names(text) => learn(&mut replay.names, decode(text).map_err(wrong)?),
            Record::Begin { stream, at, kind, name, initial_state: birth } => {
                if streams.contains_key(&stream) {
                    return Err(wrong(RecordError::DuplicateBegin(stream.0)).into());
                }
                let machine = begin(kind, at, birth).map_err(wrong)?;
                let report = new_report(stream, kind, name, at);
                streams.insert(stream, Stream { machine, report });
            }
            Record::Step { stream, at, input, decision } => {
                let of = streams.get_mut(&stream);
                let of = of.ok_or_else(|| wrong(RecordError::MissingBegin(stream.0)))?;
                of.step(offset, at, (input, decision), &mut now).map_err(wrong)?;
            }
            Record::Lost { stream, loss } => {
                if let Some(of) = streams.get_mut(&stream) {
                    of.report.lost = Some(loss);
                }
            }
        }
        Ok(())
    })?;
    replay.cut = recording.cut;
    replay.streams = streams.into_values().map(|of| of.report).collect();
    for of in replay.streams.iter_mut().filter(|of| of.policy == PolicyKind::StorageQos) {
        of.name = store_name(&replay.names, &of.name);
    }
    Ok(replay)
}

fn new_report(stream: StreamId, policy: PolicyKind, name: &str, at: Time) -> StreamReport {
    let at = at.as_ns();
    let name = name.to_owned();
    let (differs, lost) = (None, None);
    StreamReport { stream, policy, name, began_ns: at, last_ns: at, steps: 0, differs, lost }
}

impl Stream {
    fn step(
        &mut self,
        offset: u64,
        at: Time,
        (input, recorded): (&[u8], &[u8]),
        now: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let report = &mut self.report;
        // Later decisions depend on the differing one and are not compared.
        if report.differs.is_some() {
            return Ok(());
        }
        report.steps += 1;
        report.last_ns = at.as_ns();
        now.clear();
        self.machine.step(at, input, now)?;
        if now != recorded {
            report.differs = Some(Differs {
                offset,
                at_ns: at.as_ns(),
                step: report.steps,
                told: self.machine.describe_input(input).chars().take(SHOWN_MAX).collect(),
                difference: self.machine.difference(recorded, now),
            });
        }
        Ok(())
    }
}

impl Replay {
    /// Returns true if all decisions equal the recorded ones.
    pub(crate) fn is_same(&self) -> bool {
        self.streams.iter().all(|of| of.differs.is_none())
    }

    /// Returns the result as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let RecordingSource { version, host, .. } = &self.about;
        let _ = writeln!(text, "recorded on {host} by suimond {version}");
        for of in &self.streams {
            let seconds = (of.last_ns.saturating_sub(of.began_ns)) as f64 / 1e9;
            let StreamReport { policy, name, steps, .. } = of;
            let same = if of.differs.is_some() { "DIFFERS" } else { "identical" };
            let _ = write!(text, "{policy} {name}: {steps} steps in {seconds:.3} s, {same}");
            if let Some(loss) = of.lost {
                let _ = write!(text, "; the rest was not recorded: {loss}");
            }
            text.push('\n');
        }
        if let Some(offset) = self.cut {
            let _ = writeln!(
                text,
                "the file ends within its block at {offset}; the blocks before it were read"
            );
        }
        text
    }

    /// Returns the differences as text.
    pub(crate) fn differences(&self) -> String {
        let mut text = String::new();
        for of in &self.streams {
            let Some(differs) = &of.differs else { continue };
            let StreamReport { policy, name, .. } = of;
            let Differs { offset, at_ns, step, told, difference } = differs;
            let at = *at_ns as f64 / 1e9;
            let _ = writeln!(
                text,
                "{policy} {name}: step {step}, recorded at {at:.6} s and at byte {offset} of the \
                 file: {difference}\n  input: {told}"
            );
        }
        text
    }
}
