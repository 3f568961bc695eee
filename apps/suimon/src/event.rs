//! Commands of `event`: the event log.

use clap::{Args, Subcommand, ValueEnum};
use suimon_client::EventQuery;
use suimon_contract::{Event, EventFilter, Severity};

use crate::exit::Failure;
use crate::output::Context;
use crate::units;

/// Verbs of `event`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum EventVerb {
    /// List events, oldest first.
    List(ListFlags),
    /// Print events as they occur, until interrupted.
    Follow(FollowFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ListFlags {
    /// Only events after this sequence number; the latest ones if absent.
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Largest number of events; 100 if absent.
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    #[command(flatten)]
    filter: FilterFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FollowFlags {
    /// Begin after this sequence number; with the next event if absent.
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    #[command(flatten)]
    filter: FilterFlags,
}

/// Flags that select events by severity, subject and kind.
#[derive(Clone, Debug, Args)]
struct FilterFlags {
    /// Only events of at least this severity.
    #[arg(long)]
    severity: Option<SeverityFlag>,
    /// Only events about this subject, such as `disk/web`, or about this kind of subject, such as
    /// `disk`.
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Only events of the kind with this number, such as 6108; `docs/reference/events.md` lists the
    /// kinds.
    #[arg(long, value_name = "NUMBER")]
    id: Option<u32>,
}

impl From<FilterFlags> for EventFilter {
    fn from(flags: FilterFlags) -> Self {
        let severity = flags.severity.map_or(Severity::Info, Severity::from);
        Self { severity, subject: flags.subject, id: flags.id }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SeverityFlag {
    Info,
    Warning,
    Error,
}

impl From<SeverityFlag> for Severity {
    fn from(flag: SeverityFlag) -> Self {
        match flag {
            SeverityFlag::Info => Self::Info,
            SeverityFlag::Warning => Self::Warning,
            SeverityFlag::Error => Self::Error,
        }
    }
}

impl EventVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(flags) => {
                let query = EventQuery {
                    after: flags.after,
                    limit: flags.limit,
                    filter: flags.filter.into(),
                };
                let events = context.client.events(query).await?;
                Ok(context.show(&events, |events| {
                    events.iter().map(|event| format!("{}\n", line(event))).collect()
                })?)
            }
            Self::Follow(flags) => follow(context, flags).await,
        }
    }
}

async fn follow(context: &Context, flags: FollowFlags) -> Result<(), Failure> {
    let filter = flags.filter.into();
    let mut events = context.client.follow_events(flags.after, &filter).await?;
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            interrupt = tokio::signal::ctrl_c() => return Ok(interrupt?),
        };
        match event {
            Some(event) => context.show_line(&event, line)?,
            None => {
                let ended = "the daemon ended the stream of events".to_owned();
                return Err(suimon_client::ClientError::Broken(ended).into());
            }
        }
    }
}

/// Formats an event as one line: `2026-03-01T12:30:05.123Z  4711  3004 info     nic/web: connected
/// (features=0x1)`.
fn line(event: &Event) -> String {
    let mut line = format!(
        "{}  {:>6}  {} {:7}  {}: {}",
        units::timestamp(event.time_unix_ms),
        event.sequence,
        event.id,
        event.severity.as_str(),
        event.subject,
        event.text
    );
    let fields = event.fields.iter().filter(|(_, value)| !states(&event.text, value));
    let fields: Vec<_> = fields.map(|(key, value)| format!("{key}={value}")).collect();
    if !fields.is_empty() {
        line.push_str(&format!(" ({})", fields.join(", ")));
    }
    line
}

/// Returns true if the text contains the value as one or more whole words.
fn states(text: &str, value: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(value).any(|(at, found)| {
        let (before, rest) = text.split_at(at);
        let after = rest.strip_prefix(found).unwrap_or_default();
        is_end(before.chars().next_back()) && is_end(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = Event {
            sequence: 47,
            time_unix_ms: 1_700_000_000_123,
            id: 3004,
            severity: Severity::Info,
            subject: "nic/web".to_owned(),
            text: "a VM connected".to_owned(),
            fields: [("socket".to_owned(), "/run/web.sock".to_owned())].into(),
        };
        // A field repeated in the text is omitted; `--json` contains it.
        let repeated = Event {
            text: "The file a.vhdx was made, 10 MiB.".to_owned(),
            fields: [("file", "a.vhdx"), ("disks", "1"), ("size", "10"), ("made", "")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..event.clone()
        };
        insta::assert_snapshot!(line(&repeated), @"2023-11-14T22:13:20.123Z      47  3004 info     nic/web: The file a.vhdx was made, 10 MiB. (disks=1)");
        insta::assert_snapshot!(line(&event), @"2023-11-14T22:13:20.123Z      47  3004 info     nic/web: a VM connected (socket=/run/web.sock)");
    }
}
