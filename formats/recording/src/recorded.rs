//! Wrapper that records the calls of a policy.

use core::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use suimon_quantity::Time;

use crate::policy::{encode_json, put_json};
use crate::{Policy, RecordBuffer, RecordSink};

/// Policy whose calls are optionally recorded. Functions that only read are those of the policy, by
/// `Deref`; functions that change it are defined here under the policy's names.
#[derive(Clone, Debug)]
pub struct Recorded<P> {
    pub(crate) policy: P,
    pub(crate) buffer: Option<Box<RecordBuffer>>,
}

impl<P> Deref for Recorded<P> {
    type Target = P;

    #[inline]
    fn deref(&self) -> &P {
        &self.policy
    }
}

impl<P> Recorded<P> {
    /// Passes buffered records to the sink. Must be called periodically, for example where
    /// decisions are carried out.
    pub fn flush(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.flush();
        }
    }

    /// Returns true if the policy is recorded.
    pub const fn is_recorded(&self) -> bool {
        self.buffer.is_some()
    }
}

impl<P: Policy> Recorded<P> {
    /// Wraps a new policy. If there is a sink, starts a stream with this name.
    pub(crate) fn start(
        policy: P,
        sink: Option<&Arc<dyn RecordSink>>,
        (now, name): (Time, &str),
        birth: impl FnOnce() -> P::InitialState,
    ) -> Self {
        let buffer = sink.map(|sink| {
            Box::new(RecordBuffer::begin(sink, now, P::KIND, name, &encode_json(&birth())))
        });
        Self { policy, buffer }
    }

    /// Records a call if the policy is recorded; `step` returns its input and decision.
    pub(crate) fn record<D: Serialize>(&mut self, now: Time, step: impl FnOnce() -> (P::Input, D)) {
        let Some(buffer) = &mut self.buffer else { return };
        let (policy_input, decided) = step();
        buffer.step(now, |input, decision| {
            put_json(input, &policy_input);
            put_json(decision, &decided);
        });
    }
}
