//! One link that is watched, and what its observer was told of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{DeviceNotice, LinkFacts, LinkSpeed, PortObserver};
use suimon_quantity::PortId;

use crate::device_query::DeviceQuery;
use crate::namespace::{Namespace, NamespaceId};
use crate::netlink::{LinkEvent, LinkState};

/// What is watched.
#[derive(Clone, Copy)]
pub(crate) struct WatchSubject<'a> {
    pub(crate) index: u32,
    pub(crate) device: &'a str,
    /// How it looks now.
    pub(crate) present: LinkState,
    /// Its observer hears [`DeviceNotice::LinkChanged`]. For devices of this process'
    /// own namespace.
    pub(crate) has_speed: bool,
}

pub(crate) struct WatchedLink {
    /// The socket that hears of it.
    pub(crate) token: u64,
    namespace: NamespaceId,
    /// The name of the namespace, if it was opened by name.
    netns: Option<Arc<str>>,
    pub(crate) index: u32,
    device: String,
    has_speed: bool,
    port: PortId,
    observer: Arc<dyn PortObserver>,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy)]
struct Seen {
    state: LinkState,
    /// What the observer was told last.
    told: Option<bool>,
    /// The same, of a device that has a speed.
    told_facts: Option<LinkFacts>,
    /// The observer was told that the namespace has lost its name.
    is_lost: bool,
}

impl WatchedLink {
    pub(crate) fn new(
        token: u64,
        namespace: &Namespace,
        subject: WatchSubject<'_>,
        port: PortId,
        observer: Arc<dyn PortObserver>,
    ) -> Self {
        let WatchSubject { index, device, present, has_speed } = subject;
        Self {
            token,
            namespace: namespace.id(),
            netns: namespace.name().cloned(),
            index,
            device: device.to_owned(),
            has_speed,
            port,
            observer,
            seen: Mutex::new(Seen { state: present, told: None, told_facts: None, is_lost: false }),
        }
    }

    /// The last state heard.
    pub(crate) fn state(&self) -> LinkState {
        lock(&self.seen).state
    }

    /// The speed told last.
    pub(crate) fn speed(&self) -> LinkSpeed {
        lock(&self.seen).told_facts.unwrap_or_default().speed
    }

    /// Tells the observer, once, if the name stands for this namespace no more.
    pub(crate) fn check_name(&self) {
        let Some(netns) = &self.netns else { return };
        if Namespace::is_named(self.namespace, netns) {
            return;
        }
        if std::mem::replace(&mut lock(&self.seen).is_lost, true) {
            return;
        }
        let reason =
            format!("network namespace {netns} was deleted, and device {} with it", self.device);
        self.observer.handle_notice(self.port, DeviceNotice::Lost { reason });
    }

    /// Takes note of what became of it, and tells the observer if that is news.
    pub(crate) fn handle(&self, event: &LinkEvent) {
        let (up, reason) = {
            let mut seen = lock(&self.seen);
            let (state, reason) = match event {
                LinkEvent::Is(state) if !state.up => (*state, "was set down"),
                LinkEvent::Is(state) => (*state, "has no carrier"),
                LinkEvent::Gone => {
                    (LinkState { up: false, carrier: false, ..seen.state }, "was deleted or moved")
                }
            };
            seen.state = state;
            let up = state.is_usable();
            if seen.told == Some(up) && *event != LinkEvent::Gone {
                return;
            }
            seen.told = Some(up);
            (up, reason)
        };
        let notice = if up {
            DeviceNotice::LinkUp
        } else {
            DeviceNotice::LinkDown { reason: format!("device {} {reason}", self.device) }
        };
        self.observer.handle_notice(self.port, notice);
    }
    /// Tells the observer of carrier and speed if they are others than it was told. A
    /// link that is down is told of without asking for its speed: that may wait.
    pub(crate) fn tell_facts(&self, query: &DeviceQuery) {
        if !self.has_speed {
            return;
        }
        let up = lock(&self.seen).state.is_usable();
        let speed =
            if up { query.speed(self.index, &self.device) } else { Ok(LinkSpeed::default()) };
        // It may be gone already; the message that says so is under way.
        let facts = LinkFacts { up, speed: speed.unwrap_or_default() };
        if lock(&self.seen).told_facts.replace(facts) != Some(facts) {
            self.observer.handle_notice(self.port, DeviceNotice::LinkChanged(facts));
        }
    }
}

/// What the locks protect is valid after any panic: it is replaced as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
