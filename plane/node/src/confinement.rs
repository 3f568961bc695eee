//! What the daemon's threads have given up, as the node shows and tells it.

use std::sync::Arc;

use suimon_contract::{ConfinementMode, ConfinementStatus, EventKind};

use crate::events::Draft;

/// Tells what is in effect now.
pub type ConfinementReader = Arc<dyn Fn() -> ConfinementStatus + Send + Sync>;

/// System calls that threads of the daemon were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCall {
    /// Name of the last.
    pub call: String,
    /// Kind of thread that tried it, like `processor`.
    pub by: String,
    /// The thread's number in the system; 0 if it is not known.
    pub thread: u32,
    /// How many since the daemon started.
    pub count: u64,
}

/// The event at the start.
pub(crate) fn in_effect(status: &ConfinementStatus) -> Draft {
    let (kind, text) = match status.mode {
        ConfinementMode::Full => (
            EventKind::ConfinementInEffect,
            "The daemon is confined: its threads dropped the capabilities, system calls and file \
             access that they do not need."
                .to_owned(),
        ),
        ConfinementMode::Partial => (
            EventKind::ConfinementIncomplete,
            format!("The daemon is confined only in part; missing: {}.", status.lacking.join("; ")),
        ),
        ConfinementMode::Off => (
            EventKind::ConfinementIncomplete,
            "The daemon is not confined. Start it without --no-confine, except for debugging."
                .to_owned(),
        ),
    };
    let mut draft = Draft::new(kind, "host", text).with("mode", status.mode.as_str());
    for layer in &status.layers {
        draft = draft.with(&layer.threads, layer.in_words());
    }
    draft
}

/// The event of a call that was refused.
pub(crate) fn refused(refused: &RefusedCall) -> Draft {
    let RefusedCall { call, by, thread, count } = refused;
    let text = format!(
        "A {by} thread called {call}, which is not in its allow list, and the kernel denied it; \
         {count} such calls since the start. The daemon has a defect or was compromised: save its \
         log and restart it."
    );
    Draft::new(EventKind::SystemCallRefused, "host", text)
        .with("call", call)
        .with("by", by)
        .with("thread", thread)
        .with("count", count)
}
