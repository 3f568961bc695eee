//! Worker thread of the cluster: the only one that blocks on etcd.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use suimon_contract::{ErrorCode, Name, QosPolicyConfig};

use super::session::{Session, SessionContext};
use crate::cluster::messages::{Task, TaskResult};

/// Queue of tasks for the worker thread.
#[derive(Default)]
pub(super) struct Tasks {
    queue: Mutex<Queue>,
    grown: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<(u64, Task)>,
    stops: bool,
}

impl Tasks {
    /// Appends a task. A report replaces a queued one of the same store. Other tasks that are
    /// repeated while etcd does not respond are queued once. The begin or end of a session removes
    /// the tasks of earlier ones, except the one that leaves the cluster.
    pub(super) fn push(&self, session: u64, task: Task) {
        let mut queue = self.queue();
        if matches!(task, Task::BeginSession(_) | Task::EndSession) {
            let is_retained = |task_session: u64, task: &Task| {
                task_session == session || matches!(task, Task::Leave { .. })
            };
            queue.tasks.retain(|(task_session, task)| is_retained(*task_session, task));
        }
        if let Task::Report { store, report: value } = &task {
            let waiting = queue.tasks.iter_mut().find_map(|(task_session, task)| match task {
                Task::Report { store: other, report: value }
                    if *task_session == session && other == store =>
                {
                    Some(value)
                }
                _ => None,
            });
            if let Some(waiting) = waiting {
                waiting.clone_from(value);
                return;
            }
        }
        if queue
            .tasks
            .iter()
            .any(|(task_session, queued)| *task_session == session && queued.supersedes(&task))
        {
            return;
        }
        queue.tasks.push_back((session, task));
        self.grown.notify_all();
    }

    pub(super) fn stop(&self) {
        self.queue().stops = true;
        self.grown.notify_all();
    }

    fn next(&self) -> Option<(u64, Task)> {
        let is_empty = |queue: &mut Queue| queue.tasks.is_empty() && !queue.stops;
        let queue = self.grown.wait_while(self.queue(), is_empty);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        if queue.stops { None } else { queue.tasks.pop_front() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Executes tasks until it is stopped.
pub(super) fn run(context: &SessionContext, tasks: &Tasks) {
    let mut current: Option<(u64, Session)> = None;
    while let Some((number, task)) = tasks.next() {
        let answer = match task {
            Task::BeginSession(config) => {
                end(&mut current);
                match Session::begin(context, number, &config) {
                    Ok((session, policies)) => {
                        let (store, member) = (Arc::clone(&session.store), session.member.clone());
                        current = Some((number, session));
                        Some(TaskResult::SessionBegun { store, member, policies })
                    }
                    Err(error) => Some(TaskResult::SessionFailed {
                        is_refused: error.is_refused,
                        detail: error.detail,
                    }),
                }
            }
            Task::EndSession => {
                end(&mut current);
                None
            }
            task => match &mut current {
                Some((session_number, session)) if *session_number == number => {
                    execute(session, task)
                }
                _ => None,
            },
        };
        if let Some(answer) = answer {
            context.inbox.push_result(number, answer);
        }
    }
    end(&mut current);
}

fn end(current: &mut Option<(u64, Session)>) {
    if let Some((_, mut session)) = current.take() {
        session.end();
    }
}

fn execute(session: &mut Session, task: Task) -> Option<TaskResult> {
    match task {
        Task::Report { store, report: value } => match session.report(&store, value) {
            Ok(true) => None,
            Ok(false) => Some(TaskResult::NodeRemoved),
            Err(error) => {
                tracing::debug!(
                    %store,
                    %error,
                    "cannot write a report to etcd; the next one may succeed"
                );
                None
            }
        },
        Task::Elect { store } => Some(elect(session, store)),
        Task::WriteGrants { store, term, grants, forgotten: forgotten_nodes } => {
            let written = session.write(&store, term, &grants, &forgotten_nodes);
            if let Err(error) = &written {
                tracing::debug!(
                    %store,
                    %error,
                    "grants were not written to etcd, or the result is unknown"
                );
            }
            let is_written = written.unwrap_or(false);
            Some(TaskResult::GrantsWritten { store, term, is_written })
        }
        Task::Resign { store, term } => {
            if let Err(error) = session.resign(&store, term) {
                tracing::debug!(
                    %store,
                    %error,
                    "the election's key stays in etcd until the lease expires"
                );
            }
            None
        }
        Task::Withdraw { store } => match session.withdraw(&store) {
            Ok(true) => Some(TaskResult::StoreWithdrawn { store, is_done: true }),
            Ok(false) => Some(TaskResult::NodeRemoved),
            Err(error) => {
                tracing::debug!(%store, %error, "cannot remove records from etcd yet");
                Some(TaskResult::StoreWithdrawn { store, is_done: false })
            }
        },
        Task::AddPolicy(policy) => add_policy(session, &policy),
        Task::RenewLease => match session.renew() {
            Ok(true) => None,
            Ok(false) => Some(TaskResult::NodeRemoved),
            Err(error) => {
                tracing::debug!(%error, "cannot renew the lease in etcd");
                None
            }
        },
        Task::ReadMembers => {
            let read = session.read_members();
            if let Err(error) = &read {
                tracing::debug!(%error, "cannot read the members from etcd");
            }
            Some(TaskResult::MembersRead(read.ok()))
        }
        Task::Leave { stores } => {
            let failure = session.leave(&stores).err().map(|error| error.to_string());
            Some(TaskResult::SessionEnded { failure })
        }
        Task::BeginSession(_) | Task::EndSession => None,
    }
}

fn add_policy(session: &Session, policy: &QosPolicyConfig) -> Option<TaskResult> {
    let error = session.add_policy(policy).err()?;
    tracing::warn!(policy = %policy.name, %error, "cannot write a policy to etcd");
    // Other errors end when etcd responds.
    let is_refused = error.code == ErrorCode::Conflict;
    is_refused
        .then(|| TaskResult::PolicyRefused { policy: policy.name.clone(), reason: error.message })
}

fn elect(session: &mut Session, store: Name) -> TaskResult {
    match session.elect(&store) {
        Ok(Some(leader_state)) => TaskResult::Elected { store, leader_state },
        Ok(None) => TaskResult::NotElected { store },
        Err(error) => {
            tracing::debug!(%store, %error, "cannot read the leader from etcd");
            TaskResult::NotElected { store }
        }
    }
}

#[cfg(test)]
mod tests {
    use suimon_cluster_qos::Term;
    use suimon_contract::ClusterConfig;

    use super::*;

    #[test]
    fn tasks_that_are_repeated_while_etcd_does_not_respond_are_queued_once() {
        let tasks = Tasks::default();
        let store = || "san".parse::<Name>().unwrap();
        for _ in 0..100 {
            tasks.push(1, Task::Resign { store: store(), term: Term(7) });
            tasks.push(1, Task::Withdraw { store: store() });
            tasks.push(1, Task::RenewLease);
            tasks.push(1, Task::ReadMembers);
        }
        assert_eq!(tasks.queue().tasks.len(), 4);
        tasks.push(1, Task::Resign { store: store(), term: Term(8) });
        tasks.push(2, Task::RenewLease);
        assert_eq!(tasks.queue().tasks.len(), 6);
    }

    /// The worker waits for etcd while the configuration of the cluster changes repeatedly.
    #[test]
    fn tasks_of_former_sessions_are_dropped_when_another_one_begins() {
        let tasks = Tasks::default();
        let config: ClusterConfig = serde_json::from_value(serde_json::json!({
            "name": "lab", "node": "n1", "endpoints": ["http://etcd:2379"],
        }))
        .unwrap();
        let store: Name = "san".parse().unwrap();
        for session in 1..=100 {
            tasks.push(session, Task::EndSession);
            tasks.push(session, Task::BeginSession(Box::new(config.clone())));
            tasks.push(session, Task::Elect { store: store.clone() });
            tasks.push(session, Task::Resign { store: store.clone(), term: Term(session) });
        }
        assert_eq!(tasks.queue().tasks.len(), 4);
        // Only this task removes the node from the cluster.
        tasks.push(100, Task::Leave { stores: Vec::new() });
        tasks.push(101, Task::EndSession);
        let queued: Vec<u64> = std::iter::from_fn(|| tasks.queue().tasks.pop_front())
            .map(|(session, _)| session)
            .collect();
        assert_eq!(queued, [100, 101]);
    }
}
