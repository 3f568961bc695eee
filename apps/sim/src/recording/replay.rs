//! Replay of a recording: each decision of the policies must equal the recorded one, byte for byte.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;

use anyhow::Result;
use serde::Serialize;
use suimon_quantity::Time;
use suimon_recording::{
    Difference, LossReason, ObjectNames, PolicyKind, PolicyReplay, Record, RecordError,
    RecordingSource, StreamId, begin_replay, decode_json,
};

use crate::recording::names::{add_names, store_name};
use crate::recording::read::Recording;

/// Largest number of characters of an input that is shown.
const SHOWN_MAX: usize = 400;

/// Decision that differs from the recorded one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DifferingDecision {
    /// Offset of the decision's record in the file.
    pub(crate) offset: u64,
    /// Time of the decision in ns, on the clock of the workers.
    pub(crate) at_ns: u64,
    /// Number of the decision in its stream, from 1.
    pub(crate) step: u64,
    /// Input of the policy as text.
    #[serde(rename = "told")]
    pub(crate) input: String,
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
    #[serde(rename = "differs")]
    pub(crate) first_difference: Option<DifferingDecision>,
    /// Reason why records of the policy are missing; `None` if the recording is complete.
    #[serde(rename = "lost")]
    pub(crate) loss_reason: Option<LossReason>,
}

/// Result of the replay of a recording.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Replay {
    #[serde(rename = "about")]
    pub(crate) source: RecordingSource,
    pub(crate) streams: Vec<StreamReport>,
    /// Offset in the file of an incomplete block at its end; `None` if there is none.
    #[serde(rename = "cut")]
    pub(crate) truncated_at: Option<u64>,
    #[serde(skip)]
    pub(crate) names: ObjectNames,
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
        let at_offset = |fault: RecordError| fault.at_offset(offset);
        match record {
            Record::Origin(text) => replay.source = decode_json(text).map_err(at_offset)?,
            Record::Names(text) => {
                add_names(&mut replay.names, decode_json(text).map_err(at_offset)?);
            }
            Record::Begin { stream, at: time, kind, name, initial_state } => {
                if streams.contains_key(&stream) {
                    return Err(at_offset(RecordError::DuplicateBegin(stream.0)).into());
                }
                let machine = begin_replay(kind, time, initial_state).map_err(at_offset)?;
                let report = new_report(stream, kind, name, time);
                streams.insert(stream, Stream { machine, report });
            }
            Record::Step { stream, at: time, input, decision } => {
                let stream_state = streams.get_mut(&stream);
                let stream_state =
                    stream_state.ok_or_else(|| at_offset(RecordError::MissingBegin(stream.0)))?;
                stream_state.step(offset, time, (input, decision), &mut now).map_err(at_offset)?;
            }
            Record::EndedEarly { stream, reason: loss } => {
                if let Some(stream_state) = streams.get_mut(&stream) {
                    stream_state.report.loss_reason = Some(loss);
                } else if stream == StreamId(0) {
                    for stream_state in streams.values_mut() {
                        stream_state.report.loss_reason.get_or_insert(loss);
                    }
                }
            }
        }
        Ok(())
    })?;
    replay.truncated_at = recording.truncated_at;
    replay.streams = streams.into_values().map(|stream| stream.report).collect();
    for report in replay.streams.iter_mut().filter(|report| report.policy == PolicyKind::StorageQos)
    {
        report.name = store_name(&replay.names, &report.name);
    }
    Ok(replay)
}

fn new_report(stream: StreamId, policy: PolicyKind, name: &str, time: Time) -> StreamReport {
    let start_ns = time.as_ns();
    let name = name.to_owned();
    let (differs, lost) = (None, None);
    StreamReport {
        stream,
        policy,
        name,
        began_ns: start_ns,
        last_ns: start_ns,
        steps: 0,
        first_difference: differs,
        loss_reason: lost,
    }
}

impl Stream {
    fn step(
        &mut self,
        offset: u64,
        time: Time,
        (input, recorded): (&[u8], &[u8]),
        now: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let report = &mut self.report;
        // Later decisions depend on the differing one and are not compared.
        if report.first_difference.is_some() {
            return Ok(());
        }
        report.steps += 1;
        report.last_ns = time.as_ns();
        now.clear();
        self.machine.step(time, input, now)?;
        if now != recorded {
            report.first_difference = Some(DifferingDecision {
                offset,
                at_ns: time.as_ns(),
                step: report.steps,
                input: self.machine.describe_input(input).chars().take(SHOWN_MAX).collect(),
                difference: self.machine.difference(recorded, now),
            });
        }
        Ok(())
    }
}

impl Replay {
    /// Returns true if all decisions equal the recorded ones.
    pub(crate) fn matches_recording(&self) -> bool {
        self.streams.iter().all(|report| report.first_difference.is_none())
    }

    /// Returns the result as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let RecordingSource { version, host, .. } = &self.source;
        let _ = writeln!(text, "recorded on {host} by suimond {version}");
        for report in &self.streams {
            let seconds = (report.last_ns.saturating_sub(report.began_ns)) as f64 / 1e9;
            let StreamReport { policy, name, steps, .. } = report;
            let result = if report.first_difference.is_some() { "DIFFERS" } else { "identical" };
            let _ = write!(text, "{policy} {name}: {steps} steps in {seconds:.3} s, {result}");
            if let Some(loss) = report.loss_reason {
                let _ = write!(text, "; the rest was not recorded: {loss}");
            }
            text.push('\n');
        }
        if let Some(offset) = self.truncated_at {
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
        for report in &self.streams {
            let Some(differs) = &report.first_difference else { continue };
            let StreamReport { policy, name, .. } = report;
            let DifferingDecision { offset, at_ns, step, input, difference } = differs;
            let seconds = *at_ns as f64 / 1e9;
            let _ = writeln!(
                text,
                "{policy} {name}: step {step}, recorded at {seconds:.6} s and at byte {offset} of \
                 the file: {difference}\n  input: {input}"
            );
        }
        text
    }
}
