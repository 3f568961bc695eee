//! Status of other nodes, queried on demand. A node that does not answer delays only the requests
//! for its status.

mod queries;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{Condition, Health, HostStatus, Name, NodeConfig};

use crate::{FarError, FarNodes};

/// Maximum time for which a request waits for all queried nodes together. Longer than the timeout
/// of one node, so that the result contains the node's error.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Maximum number of concurrent queries; each query has a thread.
const ASKED_MAX: usize = 64;

/// Queries in progress. Concurrent requests for one node share one query, so that there is at most
/// one thread per node.
#[derive(Default)]
pub(crate) struct Questions(Arc<Inner>);

#[derive(Default)]
struct Inner {
    under_way: Mutex<BTreeMap<Name, Arc<Question>>>,
    answered: Condvar,
}

struct Question {
    config: NodeConfig,
    answer: OnceLock<Answer>,
}

type Answer = Result<HostStatus, Condition>;

impl Questions {
    /// Starts a query, or returns the query in progress for the same configuration. Blocks while
    /// [`ASKED_MAX`] queries are in progress; returns `None` if this lasts until `deadline`.
    fn ask(
        &self,
        nodes: &Arc<dyn FarNodes>,
        config: &NodeConfig,
        deadline: Instant,
    ) -> Option<Arc<Question>> {
        let mut under_way = self.0.under_way();
        loop {
            if let Some(question) = under_way.get(&config.name).filter(|q| q.config == *config) {
                return Some(question.clone());
            }
            if under_way.len() < ASKED_MAX && !under_way.contains_key(&config.name) {
                break;
            }
            under_way = self.0.wait(under_way, deadline)?;
        }
        let question = Arc::new(Question { config: config.clone(), answer: OnceLock::new() });
        under_way.insert(config.name.clone(), question.clone());
        drop(under_way);
        let (inner, nodes, asked) = (self.0.clone(), nodes.clone(), question.clone());
        let thread = std::thread::Builder::new().name("suimon-far-node".to_owned());
        let started = thread.spawn(move || {
            // Dropping the guard ends the query even if the call panics.
            let telling = Telling { inner, asked };
            telling.tell(answer_of(nodes.as_ref(), &telling.asked.config));
        });
        if let Err(error) = started {
            let told = Telling { inner: self.0.clone(), asked: question.clone() };
            told.tell(Err(failed(format!("cannot start a thread to query the node: {error}"))));
        }
        Some(question)
    }

    fn wait(&self, question: &Question, deadline: Instant) -> Answer {
        let mut under_way = self.0.under_way();
        loop {
            if let Some(answer) = question.answer.get() {
                return answer.clone();
            }
            match self.0.wait(under_way, deadline) {
                Some(locked) => under_way = locked,
                None => {
                    let text =
                        format!("the node did not respond within {} s", ANSWER_TIME.as_secs());
                    return Err(down(text));
                }
            }
        }
    }
}

impl Inner {
    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Name, Arc<Question>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of any query; `None` at the deadline.
    fn wait<'g>(
        &self,
        locked: MutexGuard<'g, BTreeMap<Name, Arc<Question>>>,
        deadline: Instant,
    ) -> Option<MutexGuard<'g, BTreeMap<Name, Arc<Question>>>> {
        let left = deadline.checked_duration_since(Instant::now())?;
        let waited = self.answered.wait_timeout(locked, left);
        Some(waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Guard of a query's thread. Dropping it removes the query and wakes the waiting requests.
struct Telling {
    inner: Arc<Inner>,
    asked: Arc<Question>,
}

impl Telling {
    fn tell(&self, answer: Answer) {
        // Fails if the result is already set; the first result remains.
        let _ = self.asked.answer.set(answer);
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.tell(Err(failed(
            "the query of the node failed because of a defect in the daemon; see its log"
                .to_owned(),
        )));
        self.inner.under_way().remove(&self.asked.config.name);
        self.inner.answered.notify_all();
    }
}

fn answer_of(nodes: &dyn FarNodes, config: &NodeConfig) -> Answer {
    let node = nodes.node(config).map_err(|error| failed(error.to_string()))?;
    node.host().map_err(|error| match error {
        FarError::Refused(errors) => failed(crate::errors::first_of(errors).to_string()),
        FarError::Unreachable(reason) => down(reason),
    })
}

fn down(reason: String) -> Condition {
    Condition { health: Health::Down, reason: Some(reason) }
}

fn failed(reason: String) -> Condition {
    Condition { health: Health::Failed, reason: Some(reason) }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
