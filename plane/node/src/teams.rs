//! Teams: what drives them, and how they stand.
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
//! The control thread makes the table follow desired state and publishes the tables with
//! the teams' distributions while it holds the table, so that an older distribution never
//! overtakes a newer one. One thread, `suimon-team`, does all the rest: it hears of links
//! and LACPDUs, and does nothing that waits for the disk or for the kernel's lock of
//! network devices. What does so, events and opening and closing sockets, is left to
//! another, `suimon-team-wrk`.

mod announcing;
mod driver;
mod effects;
mod inbox;
mod lacp_side;
mod lacp_status;
mod member;
mod plan;
mod rates;
mod sockets;
mod status;
mod table;
mod team_entry;
mod texts;
mod threads;
mod wake;
mod work;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_contract::{ApiError, ErrorCode, HostConfig};
use suimon_ports::LinkFacts;
use suimon_quantity::PortId;

use self::inbox::Inbox;
use self::table::TeamTable;
pub(crate) use self::threads::TeamThreads;
pub(crate) use self::wake::Wake;
use crate::shared::Shared;
use crate::topology::topology;

/// The teams of a host.
pub(crate) struct Teams {
    table: Mutex<TeamTable>,
    /// What others have told the thread, which must not wait for the table.
    inbox: Mutex<Inbox>,
    wake: Wake,
}

impl Teams {
    /// # Errors
    /// The process is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { table: Mutex::default(), inbox: Mutex::default(), wake: Wake::new()? })
    }

    fn table(&self) -> MutexGuard<'_, TeamTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears of the link of the device that is open under `port` for the `generation`th
    /// time. Waits for nobody.
    pub(crate) fn hear_link(&self, port: PortId, generation: u64, link: LinkFacts) {
        self.inbox().hear_link(port, generation, link);
        self.wake.wake();
    }
}

impl Shared {
    /// Makes the teams be as configured, and publishes the tables with them. If that is
    /// refused, both are as before.
    pub(crate) fn publish_tables(&self, config: &HostConfig) -> Result<(), ApiError> {
        let internal = |text: String| ApiError::new(ErrorCode::Internal, text);
        let away = self.nics_away(config);
        let ids = self.ids();
        let mut table = self.teams.table();
        let mut next = table.clone();
        next.follow(self.team_plans(config, &ids), self.plane.now(), self.recording.as_ref())
            .map_err(|error| internal(format!("cannot configure a team: {error}")))?;
        let mut tables = topology(
            config,
            &ids,
            &|key| self.device_mtu(key),
            &next.distributions(),
            &self.bound_addresses.in_effect(config),
        );
        self.lead(&mut tables, config, &ids, &away);
        self.plane.publish(tables).map_err(|error| {
            internal(format!("the switch rejected its forwarding tables: {error}"))
        })?;
        next.note_published();
        *table = next;
        drop(table);
        self.teams.wake.wake();
        Ok(())
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
