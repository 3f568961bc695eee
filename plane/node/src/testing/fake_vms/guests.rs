//! State of guests, their notices, and writes that find no space.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use suimon_ports::{VmNotice, VmRunState, VmSpec};

use super::FakeVms;

impl FakeVms {
    /// Has guest agents run in all guests.
    pub(crate) fn have_agents(&self) {
        self.world().has_agent = true;
    }

    /// Sets the uptime reported for each VM.
    pub(crate) fn set_uptime(&self, uptime: Duration) {
        self.world().uptime = uptime;
    }

    /// Returns the run state of a VM; `None` if it is not running on this host.
    pub(crate) fn state(&self, name: &str) -> Option<VmRunState> {
        self.world().running.get(name).map(|guest| guest.state)
    }

    pub(crate) fn running(&self) -> Vec<String> {
        self.world().running.keys().cloned().collect()
    }

    pub(crate) fn folders(&self) -> BTreeSet<PathBuf> {
        self.world().folders.clone()
    }

    /// Returns the commands to all VMs, in order.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.world().told.clone()
    }

    pub(crate) fn spec(&self, name: &str) -> VmSpec {
        self.world().running[name].spec.clone()
    }

    /// Reports a notice of a VM.
    pub(crate) fn guest(&self, name: &str, notice: VmNotice) {
        let mut world = self.world();
        let observer = world.running[name].observer.clone();
        if matches!(notice, VmNotice::Ended { .. }) {
            world.running.remove(name);
        }
        drop(world);
        if let Some(observer) = observer {
            observer.handle_notice(notice);
        }
    }

    /// Simulates a write to an emulated disk that finds no space.
    pub(crate) fn find_no_space(&self, name: &str) {
        let mut world = self.world();
        if let Some(guest) = world.running.get_mut(name) {
            guest.state = VmRunState::Paused;
            guest.waits_for_space = true;
        }
        drop(world);
        self.guest(name, VmNotice::StateChanged(VmRunState::Paused));
    }

    /// Sets whether writes of a VM find no space after each resume.
    pub(crate) fn keep_out_of_space(&self, name: &str, is_out_of_space: bool) {
        if let Some(guest) = self.world().running.get_mut(name) {
            guest.is_out_of_space = is_out_of_space;
        }
    }

    /// Has a write of a VM find no space immediately before the next pause.
    pub(crate) fn find_no_space_at_pause(&self, name: &str) {
        if let Some(guest) = self.world().running.get_mut(name) {
            guest.finds_no_space_at_pause = true;
        }
    }

    /// Simulates the end of the daemon: notices of VMs have no receiver.
    pub(crate) fn forget_observers(&self) {
        self.world().running.values_mut().for_each(|guest| guest.observer = None);
    }
}
