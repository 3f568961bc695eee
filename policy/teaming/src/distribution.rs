//! Selection of the member by which a frame leaves.

use core::time::Duration;

use serde::{Serialize, Serializer};
use suimon_frame::{FlowFields, FlowKey, Frame, MacAddr};
use suimon_quantity::{PortId, Time};

use crate::flowlet::FlowletRules;
use crate::slot_map::SlotMap;
use crate::slots::{PerSlot, SlotSet};
use crate::{Bucket, FlowletState, MemberId, MemberSlot, TeamId};

/// Number of buckets into which flows are hashed. With 32 members and equal load of all buckets no
/// member is more than 3 % above its share (1 + 31 / 1024), with two members 0.1 %.
pub const BUCKETS: usize = 1 << BUCKET_BITS;
pub(crate) const BUCKET_BITS: u32 = 10;

/// Method by which outgoing frames are distributed over members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum DistributionMethod {
    /// Each switch port is assigned to a member, by which all its frames leave.
    #[serde(rename = "Homes")]
    PerPort,
    /// Each bucket of flows is assigned to a member.
    Buckets(FlowFields),
    /// Each bucket of flows has a target member. A flow changes to it only after a pause, that is,
    /// between flowlets.
    Flowlets(FlowFields),
}

/// Members on which the team accepts received frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum IngressMode {
    /// Every member that collects frames.
    All,
    /// Only the team's primary member.
    Primary,
    /// For each switch port, the member assigned to it.
    #[serde(rename = "Homes")]
    PerPort,
}

/// Immutable snapshot of a team's forwarding decisions: by which member frames leave and which
/// received frames are accepted. Created by [`Team`](crate::Team).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Distribution {
    pub(crate) team: TeamId,
    pub(crate) is_up: bool,
    #[serde(rename = "spread")]
    pub(crate) method: DistributionMethod,
    #[serde(rename = "receives")]
    pub(crate) ingress_mode: IngressMode,
    /// True if a member replaces the source address of frames whose port is assigned to another
    /// member.
    pub(crate) replaces_source: bool,
    pub(crate) primary: Option<MemberSlot>,
    pub(crate) collecting: SlotSet,
    /// Standby that is not in use; `None` if there is none or it is in use.
    pub(crate) idle_standby: Option<MemberSlot>,
    pub(crate) ids: PerSlot<Option<MemberId>>,
    /// Replacement source address of each member.
    #[serde(rename = "shown")]
    pub(crate) replacement_sources: PerSlot<MacAddr>,
    /// Member assigned to each switch port; empty if ports are not assigned to members.
    #[serde(rename = "homes")]
    pub(crate) port_members: SlotMap,
    /// Set of addresses that only this host sends from.
    #[serde(rename = "own")]
    pub(crate) own_addresses: SlotMap,
    #[serde(serialize_with = "digits")]
    pub(crate) buckets: [MemberSlot; BUCKETS],
    pub(crate) flowlets: FlowletRules,
}

/// Serializes the members of the buckets as a string with one base-32 digit (slot number) per
/// bucket.
fn digits<S: Serializer>(
    buckets: &[MemberSlot; BUCKETS],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let digit = |slot: &MemberSlot| char::from_digit(u32::from(slot.number()), 32).unwrap_or('?');
    serializer.serialize_str(&buckets.iter().map(digit).collect::<String>())
}

/// Input of the member selection that depends on the switch port from which frames come. It is the
/// same for all frames of a batch from one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressContext {
    /// Only member by which frames may leave with their own source address: that assigned to the
    /// port, or the primary.
    anchor: Option<MemberSlot>,
}

/// Input of the member selection that depends on the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingKey {
    hash: u32,
    /// Only member by which the frame may leave with its own source address.
    anchor: Option<MemberSlot>,
    /// True if the frame must keep its source address, so that it leaves by `anchor`.
    is_bound: bool,
}

/// Member selected for an outgoing frame, and the source address to send it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberChoice {
    /// Member by which the frame leaves.
    pub member: MemberSlot,
    /// Replacement source address, to be set with
    /// [`Frame::set_source`](suimon_frame::Frame::set_source); `None` leaves the source unchanged.
    /// A caller that also floods the frame to other ports restores the original source for them.
    pub source: Option<MacAddr>,
}

impl Distribution {
    /// Returns the identifier of the team.
    pub const fn team(&self) -> TeamId {
        self.team
    }

    /// Returns true if the team carries frames.
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Returns the member in a slot; `None` if the slot is free in this distribution.
    pub fn member(&self, slot: MemberSlot) -> Option<MemberId> {
        *self.ids.at(slot)
    }

    /// Returns the member that the flows of a bucket are assigned to. `None` if the algorithm has
    /// no buckets or the bucket is not below [`BUCKETS`].
    pub fn member_of_bucket(&self, bucket: usize) -> Option<MemberId> {
        if self.method == DistributionMethod::PerPort {
            return None;
        }
        self.member(*self.buckets.get(bucket)?)
    }

    /// Returns the slot of a member; `None` if it is not in the team.
    pub fn slot(&self, member: MemberId) -> Option<MemberSlot> {
        self.ids.iter().find(|(_, id)| **id == Some(member)).map(|(slot, _)| slot)
    }

    /// Returns the idle time after which a flow may change to another member. [`Duration::ZERO`]
    /// unless the algorithm is `Dynamic`.
    pub fn flowlet_gap(&self) -> Duration {
        match self.method {
            DistributionMethod::Flowlets(_) => self.flowlets.gap(),
            _ => Duration::ZERO,
        }
    }

    /// Returns the part of the member selection that depends on `ingress`, the switch port from
    /// which frames come.
    #[inline]
    pub fn ingress_context(&self, ingress: PortId) -> IngressContext {
        IngressContext { anchor: self.source_member(ingress) }
    }

    /// Returns the selection key of a frame from this switch port. The key of a frame that will be
    /// segmented is that of all its segments, so that they leave by the same member.
    #[inline]
    pub fn key(&self, frame: &Frame, IngressContext { anchor }: IngressContext) -> OutgoingKey {
        let (DistributionMethod::Buckets(fields) | DistributionMethod::Flowlets(fields)) =
            self.method
        else {
            return OutgoingKey { hash: 0, anchor, is_bound: false };
        };
        let flow = FlowKey::new(frame, fields);
        let is_bound = self.replaces_source && flow.requires_source_mac;
        OutgoingKey { hash: flow.hash, anchor, is_bound }
    }

    /// Returns the bucket whose [`FlowletState`] determines the member of this frame. `None` if the
    /// member does not depend on a flowlet state; the caller then uses [`Distribution::choose`].
    #[inline]
    pub fn bucket(&self, key: &OutgoingKey) -> Option<Bucket> {
        let is_flowlet = matches!(self.method, DistributionMethod::Flowlets(_)) && !key.is_bound;
        is_flowlet.then_some(bucket(key.hash))
    }

    /// Returns the member by which the frame leaves, independent of flowlets; `None` if the team is
    /// down. For a frame with a [`Distribution::bucket`] this is the member by which it would leave
    /// after a pause.
    #[inline]
    pub fn choose(&self, key: &OutgoingKey) -> Option<MemberChoice> {
        if !self.is_up {
            return None;
        }
        match self.method {
            _ if key.is_bound => self.choice_of(key.anchor?, key),
            DistributionMethod::PerPort => self.choice_of(key.anchor?, key),
            _ => self.choice_of(self.bucket_target(bucket(key.hash))?, key),
        }
    }

    /// Returns the member by which a frame of `bytes` bytes leaves at `now`, and the new state of
    /// its bucket; `None` if the team is down.
    ///
    /// While frames of the bucket follow each other within [`Distribution::flowlet_gap`], they
    /// leave by the same member as long as it carries frames, which preserves their order. After a
    /// longer pause they leave by the bucket's target member. A data plane with several workers
    /// keeps the state in an atomic and replaces it by compare-and-exchange, retrying this call on
    /// failure. If the new state equals the old one, as it mostly does within a batch, no store is
    /// needed.
    #[inline]
    pub fn choose_flowlet(
        &self,
        key: &OutgoingKey,
        state: FlowletState,
        now: Time,
        bytes: u32,
    ) -> Option<(MemberChoice, FlowletState)> {
        if !self.is_up {
            return None;
        }
        let assigned = self.bucket_target(bucket(key.hash))?;
        let (slot, state) = self.flowlets.choose_member(state, assigned, now, bytes);
        Some((self.choice_of(slot, key)?, state))
    }

    /// Returns the target member of a bucket; `None` only for a bucket out of range.
    #[inline]
    pub(crate) fn bucket_target(&self, bucket: Bucket) -> Option<MemberSlot> {
        self.buckets.get(bucket.index()).copied()
    }

    /// Returns the only member by which frames of a port may leave with their own source address:
    /// the one assigned to the port, otherwise the primary. `None` if there is no primary either.
    #[inline]
    pub(crate) fn source_member(&self, port: PortId) -> Option<MemberSlot> {
        self.port_members.find(u64::from(port.0)).or(self.primary)
    }

    #[inline]
    fn choice_of(&self, member: MemberSlot, key: &OutgoingKey) -> Option<MemberChoice> {
        let is_elsewhere = self.replaces_source && key.anchor != Some(member);
        let source = is_elsewhere.then(|| *self.replacement_sources.at(member));
        Some(MemberChoice { member, source })
    }
}

/// Returns the bucket of a flow hash: its high bits. The low bits select the queues of a port; a
/// member whose flows shared low bits would leave queues unused.
#[inline]
fn bucket(hash: u32) -> Bucket {
    Bucket((hash >> (u32::BITS - BUCKET_BITS)) as u16)
}
