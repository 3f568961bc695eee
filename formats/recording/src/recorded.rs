//! A policy as a plane has it.

use core::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use suimon_quantity::Time;

use crate::policy::{put_text, text};
use crate::{Policy, Sink, Tape};

/// A policy, and where its records go, if they go anywhere. What only reads it is asked of the policy
/// itself; what changes it has the policy's own names here.
#[derive(Clone, Debug)]
pub struct Recorded<P> {
    pub(crate) policy: P,
    pub(crate) tape: Option<Box<Tape>>,
}

impl<P> Deref for Recorded<P> {
    type Target = P;

    #[inline]
    fn deref(&self) -> &P {
        &self.policy
    }
}

impl<P> Recorded<P> {
    /// Hands on what was recorded, which is to be done once in a while, as where what was decided is
    /// carried out.
    pub fn flush(&mut self) {
        if let Some(tape) = &mut self.tape {
            tape.flush();
        }
    }

    /// Whether anything is recorded.
    pub const fn is_recorded(&self) -> bool {
        self.tape.is_some()
    }
}

impl<P: Policy> Recorded<P> {
    /// A policy that begins now; recorded under `name` where there is a sink.
    pub(crate) fn begun(
        policy: P,
        sink: Option<&Arc<dyn Sink>>,
        (at, name): (Time, &str),
        birth: impl FnOnce() -> P::Birth,
    ) -> Self {
        let tape = sink.map(|sink| Box::new(Tape::begin(sink, at, P::KIND, name, &text(&birth()))));
        Self { policy, tape }
    }

    /// Records a step.
    pub(crate) fn note<D: Serialize>(&mut self, at: Time, step: impl FnOnce() -> (P::Input, D)) {
        let Some(tape) = &mut self.tape else { return };
        let (told, decided) = step();
        tape.step(at, |input, decision| {
            put_text(input, &told);
            put_text(decision, &decided);
        });
    }
}
