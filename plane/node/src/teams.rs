//! NIC teams: driving threads and status.
//!
//! ```text
//!  desired state ──publish──┐
//!                           ▼
//!  link facts ──inbox──► table of teams ──distributions──► plane
//!  LACPDUs ──sockets──►     │   ▲
//!                           ▼   └── deadlines, loads
//!           LACPDUs, announcements, events
//! ```
//!
//! The control thread updates the table to the desired state. It holds the table's lock while it
//! publishes the forwarding tables with the distributions of the teams, so that an outdated
//! distribution never replaces a newer one. The thread `suimon-team` processes link changes,
//! LACPDUs, deadlines and loads. It performs no operation that waits for the disk or for the
//! kernel's lock of network devices (RTNL). The thread `suimon-team-wrk` performs those: writing
//! events, opening and closing sockets.

mod announcing;
mod driver;
mod effects;
mod inbox;
mod job;
mod lacp_status;
mod member;
mod publishing;
mod rates;
mod required_team;
mod sockets;
mod status;
mod table;
mod team_entry;
mod team_lacp;
mod texts;
mod threads;
mod wake;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_ports::LinkProperties;
use suimon_quantity::PortId;

use self::inbox::Inbox;
use self::table::TeamTable;
pub(crate) use self::threads::TeamThreads;
pub(crate) use self::wake::WakeEvent;

/// NIC teams of a host and the means to wake their thread.
pub(crate) struct Teams {
    table: Mutex<TeamTable>,
    /// Messages of other threads, which must not block on the table.
    inbox: Mutex<Inbox>,
    wake: WakeEvent,
}

impl Teams {
    /// Creates an empty table.
    ///
    /// # Errors
    /// The process has no free file descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { table: Mutex::default(), inbox: Mutex::default(), wake: WakeEvent::new()? })
    }

    fn table(&self) -> MutexGuard<'_, TeamTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the link state of the device that was opened under `port` with this generation. Does
    /// not block.
    pub(crate) fn handle_link(&self, port: PortId, generation: u64, link: LinkProperties) {
        self.inbox().handle_link(port, generation, link);
        self.wake.wake();
    }
}

#[cfg(test)]
mod lacp_tests;
#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod test_bench;
#[cfg(test)]
mod tests;
