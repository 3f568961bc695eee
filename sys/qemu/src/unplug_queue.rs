//! Removal of the QEMU objects of a device after the guest has released the device.

use std::collections::VecDeque;

use suimon_ports::VmDevice;
use suimon_qmp::Command;

use crate::devices::device_of;

/// Maximum number of attempts to remove an object that is in use. A device releases it shortly
/// after its deletion was reported.
const TRIES: u32 = 50;

/// Unplugged device, and the commands that remove its remaining objects.
#[derive(Debug)]
struct Rest {
    device: VmDevice,
    commands: VecDeque<Command>,
    tries: u32,
}

/// Unplugged devices with objects to remove. They are processed one after another.
#[derive(Debug, Default)]
pub(crate) struct UnplugQueue {
    rests: VecDeque<Rest>,
    /// Id of the command in flight; `None` if there is none.
    sent: Option<u64>,
    /// True if the last command failed, so that it must be repeated later.
    is_waiting: bool,
}

/// Maximum number of devices with objects to remove: the number of root ports.
const RESTS_MAX: usize = crate::spec_check::HOT_PLUG_PORTS_MAX;

impl UnplugQueue {
    /// Returns true if a command must be repeated later.
    pub(crate) const fn has_retry_pending(&self) -> bool {
        self.is_waiting
    }

    /// Records that QEMU has deleted the device with this id.
    pub(crate) fn handle_deleted(&mut self, device: &str) {
        let id = || device.to_owned();
        let Some(device) = device_of(device) else { return };
        let chardev = Command::ChardevRemove { id: id() };
        let commands = match device {
            VmDevice::Nic(_) => VecDeque::from([Command::NetdevDel { id: id() }, chardev]),
            VmDevice::Disk(_) => VecDeque::from([chardev]),
            // A VF has no backend and is not passed here.
            VmDevice::Vf(_) => return,
        };
        if self.rests.len() < RESTS_MAX {
            self.rests.push_back(Rest { device, commands, tries: 0 });
        }
    }

    /// Returns the next command to send; `None` if one is in flight or none remains.
    pub(crate) fn poll_command(&mut self) -> Option<Command> {
        if self.sent.is_some() {
            return None;
        }
        self.is_waiting = false;
        self.rests.front()?.commands.front().cloned()
    }

    /// Records the id of the command that was sent.
    pub(crate) fn handle_sent(&mut self, id: u64) {
        self.sent = Some(id);
    }

    /// Processes the reply to command `id`: an error's text, or `None` for success. Returns the
    /// device if all its objects are removed now.
    pub(crate) fn handle_reply(&mut self, id: u64, error: Option<&str>) -> Option<VmDevice> {
        if self.sent != Some(id) {
            return None;
        }
        self.sent = None;
        let removal = self.rests.front_mut()?;
        let is_in_use = |text: &str| text.contains("busy") || text.contains("in use");
        if error.is_some_and(is_in_use) && removal.tries < TRIES {
            removal.tries += 1;
            self.is_waiting = true;
            return None;
        }
        // Any other error means that the object does not exist: an emulated NIC has no chardev.
        removal.commands.pop_front();
        if !removal.commands.is_empty() {
            return None;
        }
        self.rests.pop_front().map(|removal| removal.device)
    }
}

#[cfg(test)]
mod tests {
    use super::{RESTS_MAX, TRIES, UnplugQueue, VmDevice};

    #[test]
    fn the_backends_of_a_device_are_removed_in_order() {
        let mut unplugging = UnplugQueue::default();
        unplugging.handle_deleted("nic-web");
        unplugging.handle_deleted("port3");
        let netdev = unplugging.poll_command().unwrap();
        assert_eq!(netdev.name(), "netdev_del");
        unplugging.handle_sent(1);
        assert_eq!(unplugging.poll_command(), None, "one at a time");
        assert_eq!(unplugging.handle_reply(1, None), None);
        assert_eq!(unplugging.poll_command().unwrap().name(), "chardev-remove");
        unplugging.handle_sent(2);
        assert_eq!(unplugging.handle_reply(2, Some("Chardev 'nic-web' is busy")), None);
        assert!(unplugging.has_retry_pending());
        assert_eq!(unplugging.poll_command().unwrap().name(), "chardev-remove");
        unplugging.handle_sent(3);
        let removed = unplugging.handle_reply(3, Some("Chardev 'nic-web' not found"));
        assert_eq!(removed, Some(VmDevice::Nic("web".to_owned())));
        assert_eq!(unplugging.poll_command(), None);
    }

    #[test]
    fn removal_of_backends_that_stay_in_use_is_abandoned() {
        let mut unplugging = UnplugQueue::default();
        unplugging.handle_deleted("disk-a");
        let mut removed = None;
        for number in 0..=u64::from(TRIES) {
            assert_eq!(removed, None);
            assert!(unplugging.poll_command().is_some());
            unplugging.handle_sent(number);
            removed = unplugging.handle_reply(number, Some("Chardev 'disk-a' is busy"));
        }
        assert_eq!(removed, Some(VmDevice::Disk("a".to_owned())));
    }

    #[test]
    fn devices_that_were_never_there_are_not_kept_in_mind_without_end() {
        let mut unplugging = UnplugQueue::default();
        for number in 0..10 * RESTS_MAX {
            unplugging.handle_deleted(&format!("disk-{number}"));
        }
        assert_eq!(unplugging.rests.len(), RESTS_MAX);
    }
}
