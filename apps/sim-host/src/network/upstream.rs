//! Physical switch at the other end of the team, and the team of the host.

use std::collections::BTreeMap;

use anyhow::Result;
use suimon_frame::{Frame, MacAddr};
use suimon_quantity::PortId;
use suimon_teaming::{
    Acceptance, IncomingFrame, MemberId, MemberLink, MemberSpec, Team, TeamChange, TeamId,
    TeamMode, TeamPort, TeamSpec,
};

use crate::network::spec::Combination;

/// Team and physical switch. In static and LACP mode the switch selects an active member by a hash
/// of VM and session. In switch-independent mode it uses the member on which it learned a VM's
/// address: from announcements of the team, and from source addresses of transmitted frames.
pub(crate) struct Upstream {
    team: Team,
    mode: TeamMode,
    gbit_s: u64,
    is_up: Vec<bool>,
    learned: BTreeMap<u32, u32>,
}

impl Upstream {
    /// Returns the state with all links up.
    pub(crate) fn new(
        combination: Combination,
        members: u32,
        gbit_s: u64,
        vms: u32,
    ) -> Result<Self> {
        let Combination(mode, algorithm) = combination;
        let member = |id: u32| MemberSpec {
            id: MemberId(id),
            mac: MacAddr::new([0x00, 0x1b, 0x21, 0, 0, id as u8]),
        };
        let members: Vec<MemberSpec> = (0..members).map(member).collect();
        let team = Team::new(TeamSpec::new(TeamId(1), mode, algorithm, &members))?;
        let is_up = vec![false; members.len()];
        let mut upstream = Self { team, mode, gbit_s, is_up, learned: BTreeMap::new() };
        let port = |vm| TeamPort { id: PortId(vm), mac: Some(address(vm)) };
        let ports: Vec<TeamPort> = (0..vms).map(port).collect();
        let change = upstream.team.set_ports(&ports);
        upstream.observe(&change);
        for member in 0..upstream.is_up.len() as u32 {
            upstream.set_link(member, true)?;
        }
        Ok(upstream)
    }

    /// Changes the state of a member's link at both ends.
    pub(crate) fn set_link(&mut self, member: u32, is_up: bool) -> Result<()> {
        self.is_up[member as usize] = is_up;
        let speed_mbps = if is_up { (self.gbit_s * 1000) as u32 } else { 0 };
        let link = MemberLink { up: is_up, speed_mbps, distributing: is_up, collecting: is_up };
        let change = self.team.handle_member_link(MemberId(member), link)?;
        self.observe(&change);
        Ok(())
    }

    /// Returns true if a member's link is up.
    pub(crate) fn is_up(&self, member: u32) -> bool {
        self.is_up.get(member as usize).copied().unwrap_or_default()
    }

    fn observe(&mut self, change: &TeamChange) {
        for announced in &change.announcements {
            self.learned.insert(announced.port.0, announced.member.0);
        }
    }

    /// Returns the member on which the physical switch sends data of a session to a VM; `None` if
    /// it uses no member.
    pub(crate) fn member_to(&self, vm: u32, session: u32) -> Option<u32> {
        if self.mode == TeamMode::SwitchIndependent {
            return self.learned.get(&vm).copied();
        }
        let up: Vec<u32> =
            (0..).zip(&self.is_up).filter(|(_, up)| **up).map(|(id, _)| id).collect();
        let hash = (u64::from(vm) << 32 | u64::from(session)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        up.get((hash >> 33) as usize % up.len().max(1)).copied()
    }

    /// Returns true if the host's team accepts frames for the VM on a member.
    pub(crate) fn accepts(&self, member: u32, vm: u32) -> bool {
        let distribution = self.team.distribution();
        let Some(slot) = distribution.slot(MemberId(member)) else { return false };
        let source = MacAddr::new([0x00, 0x50, 0x56, 0, 0, 1]);
        let incoming = IncomingFrame { source, is_source_seen_locally: false };
        distribution.check_incoming(slot, &incoming) == Acceptance::Accept
            && distribution.forwards_to_port(slot, PortId(vm))
    }

    /// Transmits an acknowledgement of a VM through the team. The physical switch learns the VM's
    /// address from it.
    pub(crate) fn send_acknowledgement(&mut self, vm: u32, frame: &Frame) {
        let distribution = self.team.distribution();
        let key = distribution.key(frame, distribution.ingress_context(PortId(vm)));
        let Some(choice) = distribution.choose(&key) else { return };
        let Some(member) = distribution.member(choice.member) else { return };
        if choice.source.is_none() {
            self.learned.insert(vm, member.0);
        }
    }
}

fn address(vm: u32) -> MacAddr {
    let [_, _, c, d] = vm.to_be_bytes();
    MacAddr::new([0x52, 0x54, 0, 0x12, c, d])
}

/// Returns an acknowledgement of a session: TCP over IPv4 from the VM.
pub(crate) fn acknowledgement(vm: u32, session: u32) -> Frame {
    let mut bytes = [0; 60];
    bytes[0..6].copy_from_slice(&[0x00, 0x50, 0x56, 0, 0, 1]);
    bytes[6..12].copy_from_slice(&address(vm).octets());
    bytes[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    bytes[16..18].copy_from_slice(&40u16.to_be_bytes());
    bytes[22] = 64;
    bytes[23] = 6;
    bytes[26..30].copy_from_slice(&(0x0a00_0000 + vm).to_be_bytes());
    // Eight sessions have the same sender.
    bytes[30..34].copy_from_slice(&(0x0a01_0000 + session / 8).to_be_bytes());
    bytes[34..36].copy_from_slice(&5001u16.to_be_bytes());
    bytes[36..38].copy_from_slice(&(20_000 + session as u16).to_be_bytes());
    bytes[46] = 0x50;
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame
}
