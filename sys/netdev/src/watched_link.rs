//! Monitored link of a device, and the state last reported to its observer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_netif::netlink::{LinkEvent, LinkState};
use suimon_ports::{DeviceErrorKind, DeviceNotice, LinkProperties, LinkSpeed, PortObserver};
use suimon_quantity::PortId;

use crate::device_query::DeviceQuery;
use crate::namespace::{Namespace, NamespaceId};

/// Device whose link is to be monitored.
#[derive(Clone, Copy)]
pub(crate) struct WatchSubject<'a> {
    pub(crate) index: u32,
    pub(crate) device: &'a str,
    /// State of the device when monitoring starts.
    pub(crate) initial_state: LinkState,
    /// True if the observer receives carrier and speed as [`DeviceNotice::LinkChanged`]. Only for
    /// devices of this process's namespace.
    pub(crate) reports_speed: bool,
    /// True if a renamed device counts as lost, because the configuration names it. False for a
    /// TAP, which the daemon keeps under any name.
    pub(crate) is_lost_on_rename: bool,
}

pub(crate) struct WatchedLink {
    /// Token of the netlink socket that receives the messages about the device.
    pub(crate) token: u64,
    namespace: NamespaceId,
    /// Name by which the namespace was opened; `None` for this process's namespace.
    netns: Option<Arc<str>>,
    pub(crate) index: u32,
    device: String,
    has_speed: bool,
    is_lost_on_rename: bool,
    port: PortId,
    observer: Arc<dyn PortObserver>,
    reported: Mutex<Reported>,
}

#[derive(Clone, Copy)]
struct Reported {
    state: LinkState,
    /// Whether the device was usable, as last reported to the observer.
    reported_usability: Option<bool>,
    /// Carrier and speed last reported, if the device has a speed.
    reported_properties: Option<LinkProperties>,
    /// True if the observer was notified that the device, or the name of its namespace, no longer
    /// exists.
    is_namespace_lost: bool,
}

impl WatchedLink {
    pub(crate) fn new(
        token: u64,
        namespace: &Namespace,
        subject: WatchSubject<'_>,
        port: PortId,
        observer: Arc<dyn PortObserver>,
    ) -> Self {
        let WatchSubject {
            index,
            device,
            initial_state: present,
            reports_speed: has_speed,
            is_lost_on_rename,
        } = subject;
        Self {
            token,
            namespace: namespace.id(),
            netns: namespace.name().cloned(),
            index,
            device: device.to_owned(),
            has_speed,
            is_lost_on_rename,
            port,
            observer,
            reported: Mutex::new(Reported {
                state: present,
                reported_usability: None,
                reported_properties: None,
                is_namespace_lost: false,
            }),
        }
    }

    /// Returns the last state received.
    pub(crate) fn state(&self) -> LinkState {
        lock(&self.reported).state
    }

    /// Returns the last speed reported.
    pub(crate) fn speed(&self) -> LinkSpeed {
        lock(&self.reported).reported_properties.unwrap_or_default().speed
    }

    /// Notifies the observer, once, if the name no longer refers to the device's namespace.
    pub(crate) fn check_name(&self) {
        let Some(netns) = &self.netns else { return };
        if Namespace::is_named(self.namespace, netns) {
            return;
        }
        let reason =
            format!("network namespace {netns} was deleted, and device {} with it", self.device);
        self.report_lost(reason);
    }

    /// Notifies the observer, once, if `name` is not that of the device and the configuration names
    /// the device.
    pub(crate) fn check_device_name(&self, name: Option<&str>) {
        let Some(name) = name.filter(|name| self.is_lost_on_rename && *name != self.device) else {
            return;
        };
        self.report_lost(format!("device {} was renamed to {name}", self.device));
    }

    fn report_lost(&self, reason: String) {
        if !std::mem::replace(&mut lock(&self.reported).is_namespace_lost, true) {
            self.observer.handle_notice(self.port, DeviceNotice::DeviceLost { reason });
        }
    }

    /// Records an event of the device, and notifies the observer if the reported state changes.
    pub(crate) fn handle_event(&self, event: &LinkEvent) {
        let (up, reason) = {
            let mut reported = lock(&self.reported);
            let (state, reason) = match event {
                LinkEvent::StateReported(state) if !state.is_up => {
                    (*state, "was set down (`ip link set DEVICE up`)")
                }
                LinkEvent::StateReported(state) => (*state, "has no carrier"),
                LinkEvent::DeviceRemoved | LinkEvent::DeviceMoved => (
                    LinkState { is_up: false, has_carrier: false, ..reported.state },
                    "was deleted or moved",
                ),
            };
            reported.state = state;
            let up = state.is_usable();
            if reported.reported_usability == Some(up)
                && matches!(event, LinkEvent::StateReported(_))
            {
                return;
            }
            reported.reported_usability = Some(up);
            (up, reason)
        };
        let notice = if up {
            DeviceNotice::LinkUp
        } else {
            DeviceNotice::LinkDown { reason: format!("device {} {reason}", self.device) }
        };
        self.observer.handle_notice(self.port, notice);
        // The descriptors of a moved TAP still work.
        if *event == LinkEvent::DeviceRemoved
            || (*event == LinkEvent::DeviceMoved && self.is_lost_on_rename)
        {
            // A packet socket reports an error when its device is set down, and none when the
            // device is deleted after that.
            self.report_lost(format!("device {} was deleted or moved", self.device));
        }
    }

    /// Queries the speed, and notifies the observer of carrier and speed if they changed. The speed
    /// of a link that is down is not queried, because the query may block.
    pub(crate) fn notify_link(&self, query: &DeviceQuery) {
        if !self.has_speed {
            return;
        }
        let up = lock(&self.reported).state.is_usable();
        let speed = match up.then(|| query.speed(self.index, &self.device)) {
            Some(Ok(speed)) => speed,
            // The device is removed already, and the message about it is pending.
            Some(Err(error)) if error.kind == DeviceErrorKind::Missing => return,
            Some(Err(_)) | None => LinkSpeed::default(),
        };
        let facts = LinkProperties { is_up: up, speed };
        if lock(&self.reported).reported_properties.replace(facts) != Some(facts) {
            self.observer.handle_notice(self.port, DeviceNotice::LinkChanged(facts));
        }
    }
}

/// Locks a mutex. Ignores poisoning: the protected values are replaced as a whole, so that they are
/// valid after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Notices(Mutex<Vec<DeviceNotice>>);

    impl PortObserver for Notices {
        fn handle_notice(&self, _port: PortId, notice: DeviceNotice) {
            lock(&self.0).push(notice);
        }
    }

    fn subject(present: LinkState, is_lost_on_rename: bool) -> WatchSubject<'static> {
        WatchSubject {
            index: 7,
            device: "eth0",
            initial_state: present,
            reports_speed: false,
            is_lost_on_rename,
        }
    }

    #[test]
    fn the_speed_of_a_removed_device_is_not_reported_as_unknown() {
        let notices = Arc::new(Notices::default());
        let namespace = Namespace::open(None).unwrap();
        let present = LinkState { is_up: true, has_carrier: true, ..LinkState::default() };
        // No device has this index and name.
        let device = "smt-removed";
        let index = u32::MAX >> 1;
        let subject = WatchSubject {
            index,
            device,
            initial_state: present,
            reports_speed: true,
            is_lost_on_rename: true,
        };
        let link = WatchedLink::new(0, &namespace, subject, PortId(1), notices.clone());
        link.notify_link(&DeviceQuery::default());
        assert_eq!(*lock(&notices.0), []);
        link.handle_event(&LinkEvent::DeviceRemoved);
        link.notify_link(&DeviceQuery::default());
        let down = DeviceNotice::LinkChanged(LinkProperties::default());
        assert_eq!(lock(&notices.0).iter().filter(|notice| **notice == down).count(), 1);
    }

    #[test]
    fn a_renamed_device_is_lost_once_if_the_configuration_names_it() {
        for (is_lost_on_rename, count) in [(true, 1), (false, 0)] {
            let notices = Arc::new(Notices::default());
            let namespace = Namespace::open(None).unwrap();
            let subject = subject(LinkState::default(), is_lost_on_rename);
            let link = WatchedLink::new(0, &namespace, subject, PortId(1), notices.clone());
            for name in [Some("eth0"), None, Some("old"), Some("older")] {
                link.check_device_name(name);
            }
            let reason = "device eth0 was renamed to old".to_owned();
            assert_eq!(*lock(&notices.0), vec![DeviceNotice::DeviceLost { reason }; count]);
        }
    }

    #[test]
    fn a_device_that_moves_is_lost_only_if_the_configuration_names_it() {
        for (is_lost_on_rename, count) in [(true, 1), (false, 0)] {
            let notices = Arc::new(Notices::default());
            let namespace = Namespace::open(None).unwrap();
            let subject = subject(LinkState::default(), is_lost_on_rename);
            let link = WatchedLink::new(0, &namespace, subject, PortId(1), notices.clone());
            link.handle_event(&LinkEvent::DeviceMoved);
            let reported = lock(&notices.0);
            let is_namespace_lost =
                |notice: &&DeviceNotice| matches!(notice, DeviceNotice::DeviceLost { .. });
            assert_eq!(reported.iter().filter(is_namespace_lost).count(), count, "{reported:?}");
            assert!(matches!(reported[0], DeviceNotice::LinkDown { .. }));
        }
    }

    #[test]
    fn a_deleted_device_is_lost_once_however_it_was_before() {
        let present = LinkState { is_up: true, has_carrier: true, ..LinkState::default() };
        let down = LinkState { is_up: false, ..present };
        for before in [present, down] {
            let notices = Arc::new(Notices::default());
            let subject = subject(present, true);
            let namespace = Namespace::open(None).unwrap();
            let link = WatchedLink::new(0, &namespace, subject, PortId(1), notices.clone());
            link.handle_event(&LinkEvent::StateReported(before));
            link.handle_event(&LinkEvent::DeviceRemoved);
            link.handle_event(&LinkEvent::DeviceRemoved);
            let reported = lock(&notices.0);
            let lost =
                DeviceNotice::DeviceLost { reason: "device eth0 was deleted or moved".to_owned() };
            assert_eq!(
                reported.iter().filter(|notice| **notice == lost).count(),
                1,
                "{reported:?}"
            );
        }
    }
}
