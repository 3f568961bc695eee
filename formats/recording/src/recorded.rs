//! Wrapper that records a policy.

use core::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use suimon_quantity::Time;

use crate::policy::{put_text, text};
use crate::{Policy, RecordBuffer, Sink};

/// Policy with optional recording. Read access goes to the policy through `Deref`; functions that
/// change it have the policy's names here.
#[derive(Clone, Debug)]
pub struct Recorded<P> {
    pub(crate) policy: P,
    pub(crate) tape: Option<Box<RecordBuffer>>,
}

impl<P> Deref for Recorded<P> {
    type Target = P;

    #[inline]
    fn deref(&self) -> &P {
        &self.policy
    }
}

impl<P> Recorded<P> {
    /// Passes buffered records to the sink. To be called periodically, for example where decisions
    /// are carried out.
    pub fn flush(&mut self) {
        if let Some(tape) = &mut self.tape {
            tape.flush();
        }
    }

    /// Returns true if the policy is recorded.
    pub const fn is_recorded(&self) -> bool {
        self.tape.is_some()
    }
}

impl<P: Policy> Recorded<P> {
    /// Wraps a new policy; with a sink, starts a stream called `name`.
    pub(crate) fn start(
        policy: P,
        sink: Option<&Arc<dyn Sink>>,
        (at, name): (Time, &str),
        birth: impl FnOnce() -> P::InitialState,
    ) -> Self {
        let tape = sink
            .map(|sink| Box::new(RecordBuffer::begin(sink, at, P::KIND, name, &text(&birth()))));
        Self { policy, tape }
    }

    /// Records an input with its decision.
    pub(crate) fn record<D: Serialize>(&mut self, at: Time, step: impl FnOnce() -> (P::Input, D)) {
        let Some(tape) = &mut self.tape else { return };
        let (told, decided) = step();
        tape.step(at, |input, decision| {
            put_text(input, &told);
            put_text(decision, &decided);
        });
    }
}
