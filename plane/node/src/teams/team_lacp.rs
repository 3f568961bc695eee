//! LACP of one team (IEEE 802.1AX-2020): parameters of the local system, and reported changes of
//! partners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use suimon_contract::{LacpSettings, LacpTimer};
use suimon_frame::MacAddr;
use suimon_quantity::{PortId, Time};
use suimon_recording::{RecordSink, Recorded};
use suimon_teaming::lacp::{
    Activity, Lacp, LacpPortSpec, LacpSpec, LacpSpecError, Link, PortInfo, Timer,
};
use suimon_teaming::{MEMBERS_MAX, MemberId};

use super::member::{Member, placeholder_mac};

/// Minimum interval between events about changed partners of one member.
const PARTNER_NEWS_EVERY: Duration = Duration::from_secs(10);
/// LACP priority of all ports: the middle of the range. Among equal priorities the lower port
/// number is preferred.
const PORT_PRIORITY: u16 = 0x8000;
/// Number of different administrative keys of LACP. The key of a team derives from the number of
/// its switch port, so that the keys of two teams are equal only if their ports' numbers differ by
/// a multiple of this.
const KEYS: u32 = 2047;

/// LACP of one team: the protocol's state machines and the node's state of each member.
#[derive(Clone, Debug)]
pub(crate) struct TeamLacp {
    pub(crate) lacp: Recorded<Lacp>,
    ports: BTreeMap<MemberId, LacpPort>,
}

/// LACP state of a member that the node keeps.
#[derive(Clone, Copy, Debug)]
struct LacpPort {
    /// Port number in the local system.
    number: u16,
    mac: MacAddr,
    /// Link state last passed to LACP.
    link: Option<Link>,
    /// Value of the partner's change counter at the last event.
    changes_reported: u64,
    reported_at: Option<Time>,
    /// Partner at the last event; without an event since the last change, the present partner.
    partner: PortInfo,
}

/// Change of a member's partner: another system, or another key, port or priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartnerChange {
    pub(crate) member: MemberId,
    pub(crate) from: PortInfo,
    pub(crate) to: PortInfo,
    /// Number of changes since the last event.
    pub(crate) change_count: u64,
}

impl TeamLacp {
    /// Creates LACP without members. `sink`: recorder of its inputs and decisions, if any.
    pub(crate) fn new(
        sink: Option<&Arc<dyn RecordSink>>,
        origin: (Time, &str),
        (team, settings): (PortId, LacpSettings),
        members: &[Member],
    ) -> Result<Self, LacpSpecError> {
        let spec = spec(team, settings, system(None, team, members));
        Ok(Self { lacp: Recorded::record_lacp(sink, origin, spec)?, ports: BTreeMap::new() })
    }

    /// Applies settings and members of the configuration.
    pub(crate) fn update(
        &mut self,
        team: PortId,
        settings: LacpSettings,
        members: &[Member],
        now: Time,
    ) -> Result<(), LacpSpecError> {
        let spec = spec(team, settings, system(Some(self.lacp.spec().system), team, members));
        if spec != *self.lacp.spec() {
            self.lacp.set_spec(now, spec)?;
        }
        let removed: Vec<MemberId> = self
            .lacp
            .members()
            .filter(|id| members.iter().all(|member| member.id() != *id))
            .collect();
        for member in removed {
            self.lacp.remove_member(now, member)?;
            self.ports.remove(&member);
        }
        for member in members {
            self.follow_member(member, now)?;
        }
        Ok(())
    }

    fn follow_member(&mut self, member: &Member, now: Time) -> Result<(), LacpSpecError> {
        let (id, mac) = (member.id(), member.mac);
        if let Some(port) = self.ports.get_mut(&id) {
            if port.mac != mac {
                let spec = LacpPortSpec { port: port.number, priority: PORT_PRIORITY, mac };
                self.lacp.set_member(now, id, spec)?;
                port.mac = mac;
            }
            return Ok(());
        }
        let is_free = |number: &u16| self.ports.values().all(|port| port.number != *number);
        let number = (1..=u16::MAX).find(is_free).unwrap_or(u16::MAX);
        self.lacp.add_member(
            now,
            id,
            LacpPortSpec { port: number, priority: PORT_PRIORITY, mac },
        )?;
        let port = LacpPort {
            number,
            mac,
            link: None,
            changes_reported: 0,
            reported_at: None,
            partner: PortInfo::default(),
        };
        self.ports.insert(id, port);
        Ok(())
    }

    /// Passes a member's link state to LACP if it has changed.
    pub(crate) fn set_member_link(&mut self, member: MemberId, link: Option<Link>, now: Time) {
        let Some(port) = self.ports.get_mut(&member).filter(|port| port.link != link) else {
            return;
        };
        port.link = link;
        if let Err(error) = self.lacp.handle_link(now, member, link) {
            tracing::error!(%error, "LACP rejected the link state of a member");
        }
    }

    /// Returns changes of partners since their last events, limited to one per member and
    /// [`PARTNER_NEWS_EVERY`].
    pub(crate) fn take_partner_changes(&mut self, now: Time) -> Vec<PartnerChange> {
        let mut partner_changes = Vec::new();
        for (member, port) in &mut self.ports {
            let Some(state) = self.lacp.member_state(*member) else { continue };
            let (changes, partner) = (state.counters.partner_changes, state.partner);
            if changes == port.changes_reported {
                if partner.system.is_station() {
                    port.partner = partner;
                }
                continue;
            }
            let is_soon = port
                .reported_at
                .is_some_and(|reported_at| now.since(reported_at) < PARTNER_NEWS_EVERY);
            if is_soon || !partner.system.is_station() {
                continue;
            }
            partner_changes.push(PartnerChange {
                member: *member,
                from: std::mem::replace(&mut port.partner, partner),
                to: partner,
                change_count: changes.saturating_sub(port.changes_reported),
            });
            port.changes_reported = changes;
            port.reported_at = Some(now);
        }
        partner_changes
    }

    /// Removes all members. The next [`TeamEntry::poll`](super::team_entry::TeamEntry::poll) sends
    /// their last LACPDUs.
    pub(crate) fn remove_all_members(&mut self, now: Time) {
        for member in self.lacp.members().collect::<Vec<_>>() {
            if let Err(error) = self.lacp.remove_member(now, member) {
                tracing::error!(%error, "cannot remove a member from LACP");
            }
        }
        self.ports.clear();
    }
}

fn spec(team: PortId, settings: LacpSettings, system: MacAddr) -> LacpSpec {
    LacpSpec {
        system,
        system_priority: settings.system_priority,
        admin_key: u16::try_from(team.0 % KEYS + 1).unwrap_or(1),
        activity: if settings.active { Activity::Active } else { Activity::Passive },
        timer: match settings.timer {
            LacpTimer::Slow => Timer::Slow,
            LacpTimer::Fast => Timer::Fast,
        },
        individual_allowed: false,
        max_active: u8::try_from(MEMBERS_MAX).unwrap_or(u8::MAX),
        mixed_speeds_allowed: false,
    }
}

/// Returns the MAC address of the local system: that of a member, like in Linux bonds, so that it
/// is the same after a restart. It is kept while that member remains, because a change makes all
/// links leave their group.
fn system(now: Option<MacAddr>, team: PortId, members: &[Member]) -> MacAddr {
    let known_members =
        || members.iter().filter(|member| member.properties.mac == Some(member.mac));
    let current = now.filter(|system| members.iter().any(|member| member.mac == *system));
    let is_placeholder =
        |mac: &MacAddr| members.iter().any(|m| placeholder_mac(m.properties.port) == *mac);
    current
        .filter(|mac| !is_placeholder(mac))
        .or_else(|| known_members().next().map(|member| member.mac))
        .or_else(|| members.first().map(|member| member.mac))
        .unwrap_or_else(|| placeholder_mac(team))
}
