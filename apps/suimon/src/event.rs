//! Commands of `event`: the event log.

use clap::{Args, Subcommand, ValueEnum};
use suimon_client::EventQuery;
use suimon_contract::{EventFilter, Severity};
use suimon_tables::event_line::line;

use crate::exit::Failure;
use crate::output::Context;

/// Verbs of `event`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum EventVerb {
    /// List events of the log, oldest first.
    List(ListFlags),
    /// Print events when they occur, until interrupted.
    Follow(FollowFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ListFlags {
    /// Only events after this sequence number; the latest events if absent.
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Largest number of events, 1 to 10 000; 100 if absent.
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    #[command(flatten)]
    filter: FilterFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FollowFlags {
    /// Begin after this sequence number, with stored events; with the next new event if absent.
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    #[command(flatten)]
    filter: FilterFlags,
}

/// Flags that select events by severity, subject and kind.
#[derive(Clone, Debug, Args)]
struct FilterFlags {
    /// Only events of at least this severity; `info` (all events) if absent.
    #[arg(long)]
    severity: Option<SeverityFlag>,
    /// Only events about this subject, such as `disk/web`, or about this kind of subject, such as
    /// `disk`.
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Only events with this event id, such as 6108; docs/reference/events.md lists the ids.
    #[arg(long, value_name = "NUMBER")]
    id: Option<u32>,
}

impl From<FilterFlags> for EventFilter {
    fn from(flags: FilterFlags) -> Self {
        let severity = flags.severity.map_or(Severity::Info, Severity::from);
        Self { severity_min: severity, subject: flags.subject, kind_number: flags.id }
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
                    after_sequence: flags.after,
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
                let message =
                    "the daemon ended the event stream; run `suimon event follow` again".to_owned();
                return Err(suimon_client::ClientError::ConnectionLost(message).into());
            }
        }
    }
}
