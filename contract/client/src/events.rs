//! Requests about events.

use suimon_contract::{Event, EventFilter, Severity};

use crate::client::Client;
use crate::query::with_query;
use crate::transport::ApiRequest;
use crate::{ClientError, JsonLineStream, transport};

/// Selection of events from the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Sequence number after which events are returned; `None` for the most recent events.
    pub after_sequence: Option<u64>,
    /// Maximum number of events to return.
    pub limit: Option<usize>,
    /// Filter by severity, subject and id.
    pub filter: EventFilter,
}

/// Encodes an event filter as query parameters.
fn filter_query(filter: &EventFilter) -> [(&'static str, Option<String>); 3] {
    let severity = Some(filter.severity_min).filter(|severity| *severity > Severity::Info);
    [
        ("severity", severity.map(|severity| severity.as_str().to_owned())),
        ("subject", filter.subject.clone()),
        ("id", filter.kind_number.map(|id| id.to_string())),
    ]
}

impl Client {
    /// Returns events of the log, oldest first.
    pub async fn events(&self, query: EventQuery) -> Result<Vec<Event>, ClientError> {
        let [severity, subject, id] = filter_query(&query.filter);
        let after = ("after", query.after_sequence.map(|n| n.to_string()));
        let limit = ("limit", query.limit.map(|n| n.to_string()));
        self.get_json(with_query("/1.0/events", &[after, limit, severity, subject, id])).await
    }

    /// Streams matching events as they occur. Starts with the events after the sequence number
    /// `after`, or with the next event if it is `None`.
    pub async fn follow_events(
        &self,
        after: Option<u64>,
        filter: &EventFilter,
    ) -> Result<JsonLineStream<Event>, ClientError> {
        let [severity, subject, id] = filter_query(filter);
        let after = ("after", after.map(|n| n.to_string()));
        let path = with_query("/1.0/events/follow", &[after, severity, subject, id]);
        let answer = transport::send(self, ApiRequest::get(path.clone())).await?;
        Ok(JsonLineStream::new(path, answer))
    }
}
