//! Status of other nodes, queried on demand. A node that does not answer delays only the requests
//! for its status.

mod queries;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{Condition, Health, HostStatus, Name, NodeConfig};

use crate::{PeerError, PeerNodes};

/// Maximum time for which a request waits for all queried nodes together. Longer than the timeout
/// of one node, so that the result contains the node's error.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent queries; each query has a thread.
const QUERIES_MAX: usize = 64;

/// Queries in progress. Concurrent requests for one node share one query, so that there is at most
/// one thread per node.
#[derive(Default)]
pub(crate) struct Queries(Arc<Inner>);

#[derive(Default)]
struct Inner {
    in_progress: Mutex<BTreeMap<Name, Arc<Query>>>,
    answered: Condvar,
}

struct Query {
    config: NodeConfig,
    answer: OnceLock<Answer>,
}

type Answer = Result<HostStatus, Condition>;

impl Queries {
    /// Starts a query, or returns the query in progress for the same configuration. Blocks while
    /// [`QUERIES_MAX`] queries are in progress; returns `None` if this lasts until `deadline`.
    fn start(
        &self,
        nodes: &Arc<dyn PeerNodes>,
        config: &NodeConfig,
        deadline: Instant,
    ) -> Option<Arc<Query>> {
        let mut under_way = self.0.in_progress();
        loop {
            if let Some(question) = under_way.get(&config.name).filter(|q| q.config == *config) {
                return Some(question.clone());
            }
            if under_way.len() < QUERIES_MAX && !under_way.contains_key(&config.name) {
                break;
            }
            under_way = self.0.wait(under_way, deadline)?;
        }
        let question = Arc::new(Query { config: config.clone(), answer: OnceLock::new() });
        under_way.insert(config.name.clone(), question.clone());
        drop(under_way);
        let (inner, nodes, query) = (self.0.clone(), nodes.clone(), question.clone());
        let thread = std::thread::Builder::new().name("suimon-far-node".to_owned());
        let started = thread.spawn(move || {
            // Dropping the guard ends the query even if the call panics.
            let telling = QueryGuard { inner, queried: query };
            telling.report(answer_of(nodes.as_ref(), &telling.queried.config));
        });
        if let Err(error) = started {
            let guard = QueryGuard { inner: self.0.clone(), queried: question.clone() };
            guard.report(Err(failed_condition(format!(
                "cannot start a thread to query the node: {error}"
            ))));
        }
        Some(question)
    }

    fn wait(&self, question: &Query, deadline: Instant) -> Answer {
        let mut under_way = self.0.in_progress();
        loop {
            if let Some(answer) = question.answer.get() {
                return answer.clone();
            }
            match self.0.wait(under_way, deadline) {
                Some(locked) => under_way = locked,
                None => {
                    let text =
                        format!("the node did not respond within {} s", QUERY_TIMEOUT.as_secs());
                    return Err(down(text));
                }
            }
        }
    }
}

impl Inner {
    fn in_progress(&self) -> MutexGuard<'_, BTreeMap<Name, Arc<Query>>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until any query has ended. Returns `None` if `deadline` has passed before.
    fn wait<'g>(
        &self,
        locked: MutexGuard<'g, BTreeMap<Name, Arc<Query>>>,
        deadline: Instant,
    ) -> Option<MutexGuard<'g, BTreeMap<Name, Arc<Query>>>> {
        let remaining = deadline.checked_duration_since(Instant::now())?;
        let wait_result = self.answered.wait_timeout(locked, remaining);
        Some(wait_result.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Guard of a query's thread. Dropping it removes the query and wakes the waiting requests.
struct QueryGuard {
    inner: Arc<Inner>,
    queried: Arc<Query>,
}

impl QueryGuard {
    fn report(&self, answer: Answer) {
        // Fails if the result is already set; the first result remains.
        let _ = self.queried.answer.set(answer);
    }
}

impl Drop for QueryGuard {
    fn drop(&mut self) {
        self.report(Err(failed_condition(
            "the query of the node failed because of a defect in the daemon; see its log"
                .to_owned(),
        )));
        self.inner.in_progress().remove(&self.queried.config.name);
        self.inner.answered.notify_all();
    }
}

fn answer_of(nodes: &dyn PeerNodes, config: &NodeConfig) -> Answer {
    let node = nodes.node(config).map_err(|error| failed_condition(error.to_string()))?;
    node.host().map_err(|error| match error {
        PeerError::Rejected(errors) => {
            failed_condition(crate::errors::summarize(errors).to_string())
        }
        PeerError::Unreachable(reason) => down(reason),
    })
}

fn down(reason: String) -> Condition {
    Condition { health: Health::Down, reason: Some(reason) }
}

fn failed_condition(reason: String) -> Condition {
    Condition { health: Health::Failed, reason: Some(reason) }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
