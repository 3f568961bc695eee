//! Migrations: phases, and data that is sent instead of the memory.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use suimon_ports::{MigrationTransferPhase, VmNotice, VmRunState};

use super::{FakeVms, Guest};

/// Data sent instead of the memory.
const MEMORY: &[u8] = b"memory";

impl FakeVms {
    /// Simulates a QEMU that has sent all memory and has stopped the CPUs for the switchover,
    /// without a notice.
    pub(crate) fn stop_for_switchover(&self, name: &str) {
        if let Some(guest) = self.world().running.get_mut(name) {
            (guest.sent, guest.state) =
                (MigrationTransferPhase::WaitingForFinish, VmRunState::Paused);
        }
    }

    /// Sets whether outgoing migrations stay in the copying phase.
    pub(crate) fn hold_memory(&self, holds: bool) {
        self.world().holds_memory = holds;
    }

    /// Returns the number of outgoing migrations started.
    pub(crate) fn sends(&self) -> u32 {
        self.world().sends
    }

    /// Closes the connections of all migrations.
    pub(crate) fn cut_lines(&self) {
        self.world().running.values_mut().for_each(|guest| guest.line = None);
    }
}

impl Guest {
    /// Advances a migration at a status query. The source stops the VM unless `holds`; the
    /// destination reads the connection, and ends if the connection is closed.
    pub(super) fn go_on_sending(&mut self, holds: bool) -> Option<VmNotice> {
        if self.sent != MigrationTransferPhase::Copying {
            return None;
        }
        if self.spec.migration_requirements.is_none() || self.has_come() {
            if holds {
                return None;
            }
            self.sent = MigrationTransferPhase::WaitingForFinish;
            self.state = VmRunState::Paused;
            return Some(VmNotice::StateChanged(VmRunState::Paused));
        }
        let line = self.line.as_mut()?;
        let mut received = [0; MEMORY.len()];
        line.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        match line.read_exact(&mut received) {
            Ok(()) if received == MEMORY => {
                self.sent = MigrationTransferPhase::Done;
                None
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let reason = "the line has ended".to_owned();
                Some(VmNotice::Ended { is_orderly: false, reason })
            }
            _ => None,
        }
    }

    /// Returns true if the VM of an incoming migration was activated and runs, so that a further
    /// migration is outgoing.
    fn has_come(&self) -> bool {
        self.state == VmRunState::Running
    }

    pub(super) fn finish_sending(&mut self) {
        let result = self.line.as_mut().map(|line| line.write_all(MEMORY));
        self.sent = match result {
            Some(Ok(())) => MigrationTransferPhase::Done,
            _ => MigrationTransferPhase::Failed("nobody reads it".to_owned()),
        };
        let goes_on = self.sent != MigrationTransferPhase::Done && !self.was_paused;
        self.state = if goes_on { VmRunState::Running } else { self.state };
    }
}
