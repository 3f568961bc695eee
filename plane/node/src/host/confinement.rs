//! Confinement of the daemon's threads: status and events.

use std::sync::Arc;

use suimon_contract::{ConfinementMode, ConfinementStatus, EventKind};

use crate::events::EventDraft;

/// Function that returns the confinement in effect.
pub type ConfinementReader = Arc<dyn Fn() -> ConfinementStatus + Send + Sync>;

/// Denied system calls of the daemon's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    /// Name of the last denied system call.
    pub call: String,
    /// Kind of the calling thread, such as `worker`.
    pub thread_kind: String,
    /// Thread id of the calling thread; 0 if unknown.
    pub thread_id: u32,
    /// Number of denied calls since the daemon started.
    pub count: u64,
}

/// Returns the event of the daemon's start about its confinement.
pub(crate) fn start_event(status: &ConfinementStatus) -> EventDraft {
    let (kind, text) = match status.mode {
        ConfinementMode::Full => (
            EventKind::ConfinementInEffect,
            "The daemon is confined: its threads dropped the capabilities, system calls and file \
             access that they do not need."
                .to_owned(),
        ),
        ConfinementMode::Partial => (
            EventKind::ConfinementIncomplete,
            format!(
                "The daemon is confined only in part; missing: {}. Use a kernel with seccomp and \
                 Landlock.",
                status.missing.join("; ")
            ),
        ),
        ConfinementMode::Off => (
            EventKind::ConfinementIncomplete,
            "The daemon is not confined. Start it without --no-confine, except for debugging."
                .to_owned(),
        ),
    };
    let mut draft = EventDraft::new(kind, "host", text).with("mode", status.mode.as_str());
    for layer in &status.thread_confinements {
        draft = draft.with(&layer.thread_kind, layer.summary());
    }
    draft
}

/// Returns the event of a denied system call.
pub(crate) fn denied_event(denied: &DeniedCall) -> EventDraft {
    let DeniedCall { call, thread_kind: thread_group, thread_id: thread, count } = denied;
    let text = format!(
        "A {thread_group} thread called {call}, which is not in its allow list, and the kernel \
         denied it; {count} such calls since the start. The daemon has a defect or was \
         compromised: save its log, restart it, and report the defect."
    );
    EventDraft::new(EventKind::SystemCallRefused, "host", text)
        .with("call", call)
        .with("by", thread_group)
        .with("thread", thread)
        .with("count", count)
}
