//! Messages of other threads to the team thread.

use std::collections::BTreeMap;

use suimon_ports::{ControlSocket, DeviceError, LinkProperties};
use suimon_quantity::PortId;

/// Messages that the team thread has not read.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Last link state of each device, by its port. The size is bounded by the number of devices.
    pub(crate) links: BTreeMap<PortId, LinkReport>,
    /// Results of [`Job::Open`](super::job::Job::Open), one per job.
    pub(crate) sockets: Vec<OpenedSocket>,
    /// True if the thread must end.
    pub(crate) is_stop_requested: bool,
}

/// Link state that a device has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkReport {
    /// Number of the attempt to open the device that reported.
    pub(crate) generation: u64,
    /// True if the link was down since the team thread last read the inbox, even if it is up again.
    pub(crate) was_down: bool,
    pub(crate) link: LinkProperties,
}

/// Control socket, or the reason why it could not be opened.
pub(crate) struct OpenedSocket {
    pub(crate) port: PortId,
    pub(crate) generation: u64,
    pub(crate) result: Result<Box<dyn ControlSocket>, DeviceError>,
}

impl Inbox {
    pub(crate) fn handle_link(&mut self, port: PortId, generation: u64, link: LinkProperties) {
        let before = self.links.get(&port).filter(|report| report.generation == generation);
        let was_down = !link.is_up || before.is_some_and(|report| report.was_down);
        self.links.insert(port, LinkReport { generation, was_down, link });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_link_state_of_each_device_is_kept_until_the_thread_reads_it() {
        let mut inbox = Inbox::default();
        for number in 0..10_000 {
            let link = LinkProperties { is_up: number % 2 == 1, ..LinkProperties::default() };
            inbox.handle_link(PortId(number % 3), 1, link);
        }
        assert_eq!(inbox.links.len(), 3);
        assert!(inbox.links.values().all(|link| link.was_down));
    }
}
