//! Which member a frame leaves by.

use core::time::Duration;

use serde::{Serialize, Serializer};
use suimon_frame::{FlowFields, FlowKey, Frame, MacAddr};
use suimon_quantity::{PortId, Time};

use crate::flowlet::FlowletRules;
use crate::lookup::Lookup;
use crate::slots::{PerSlot, SlotSet};
use crate::{Bucket, FlowletState, MemberId, MemberSlot, TeamId};

/// Flows are spread over members in this many buckets, so that with 32 members and
/// equal flows no member has more than 3 % above its share (1 + 31 / 1024), and with
/// two members 0.1 %.
pub const BUCKETS: usize = 1 << BUCKET_BITS;
pub(crate) const BUCKET_BITS: u32 = 10;

/// How outgoing frames are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Spread {
    /// Each port has its member.
    Homes,
    /// Each bucket of flows has its member.
    Buckets(FlowFields),
    /// Each bucket of flows has a wanted member and changes to it in pauses.
    Flowlets(FlowFields),
}

/// Which members take what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Receives {
    /// All that collect.
    All,
    /// The primary.
    Primary,
    /// For each port its member.
    Homes,
}

/// Where a team's frames leave and which of those that arrive are taken. Made by
/// [`Team`](crate::Team); never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Distribution {
    pub(crate) team: TeamId,
    pub(crate) is_up: bool,
    pub(crate) spread: Spread,
    pub(crate) receives: Receives,
    /// Whether members show addresses of their own for ports that live elsewhere.
    pub(crate) replaces_source: bool,
    pub(crate) primary: Option<MemberSlot>,
    pub(crate) collecting: SlotSet,
    /// The standby that is not used.
    pub(crate) idle_standby: Option<MemberSlot>,
    pub(crate) ids: PerSlot<Option<MemberId>>,
    /// What members show in place of addresses that live elsewhere.
    pub(crate) shown: PerSlot<MacAddr>,
    /// Where ports live; empty if that does not matter.
    pub(crate) homes: Lookup,
    /// Addresses that only this host sends from.
    pub(crate) own: Lookup,
    #[serde(serialize_with = "digits")]
    pub(crate) buckets: [MemberSlot; BUCKETS],
    pub(crate) flowlets: FlowletRules,
}

/// The bucket's places, each as a digit to the base of 32.
fn digits<S: Serializer>(buckets: &[MemberSlot; BUCKETS], into: S) -> Result<S::Ok, S::Error> {
    let digit = |slot: &MemberSlot| char::from_digit(u32::from(slot.number()), 32).unwrap_or('?');
    into.serialize_str(&buckets.iter().map(digit).collect::<String>())
}

/// What the choice of a member depends on, of the port of the switch that frames came in
/// by. It is the same for all frames of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The one member that may show the source addresses of what lives there.
    anchor: Option<MemberSlot>,
}

/// What the choice of a member depends on, of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingKey {
    hash: u32,
    /// The one member that may show the frame's source address.
    anchor: Option<MemberSlot>,
    /// Whether the frame has to leave there.
    is_bound: bool,
}

/// Where a frame leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// By this member.
    pub member: MemberSlot,
    /// With this address in place of its source
    /// ([`Frame::set_source`](suimon_frame::Frame::set_source)); `None` leaves it. Who
    /// floods a frame to other ports too gives it its own source back for them.
    pub source: Option<MacAddr>,
}

impl Distribution {
    /// Which team's.
    pub const fn team(&self) -> TeamId {
        self.team
    }

    /// Whether the team carries frames.
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// The member at a place; `None` only for a place of another distribution.
    pub fn member(&self, slot: MemberSlot) -> Option<MemberId> {
        *self.ids.at(slot)
    }

    /// The member that flows of a bucket go to, where the algorithm has buckets; `None` for one that
    /// there is not.
    pub fn member_of_bucket(&self, bucket: usize) -> Option<MemberId> {
        if self.spread == Spread::Homes {
            return None;
        }
        self.member(*self.buckets.get(bucket)?)
    }

    /// The place of a member; `None` if it is not in the team.
    pub fn slot(&self, member: MemberId) -> Option<MemberSlot> {
        self.ids.iter().find(|(_, id)| **id == Some(member)).map(|(slot, _)| slot)
    }

    /// The pause after which a flow may take another member. [`Duration::ZERO`]
    /// unless the algorithm is `Dynamic`.
    pub fn flowlet_gap(&self) -> Duration {
        match self.spread {
            Spread::Flowlets(_) => self.flowlets.gap(),
            _ => Duration::ZERO,
        }
    }

    /// What the choice depends on, of this port of the switch.
    #[inline]
    pub fn origin(&self, ingress: PortId) -> Origin {
        Origin { anchor: self.anchor(ingress) }
    }

    /// What the choice depends on, of a frame from there. A large frame is asked for as a
    /// whole, so that its segments leave together.
    #[inline]
    pub fn key(&self, frame: &Frame, Origin { anchor }: Origin) -> OutgoingKey {
        let (Spread::Buckets(fields) | Spread::Flowlets(fields)) = self.spread else {
            return OutgoingKey { hash: 0, anchor, is_bound: false };
        };
        let flow = FlowKey::of(frame, fields);
        let is_bound = self.replaces_source && flow.binds_source;
        OutgoingKey { hash: flow.hash, anchor, is_bound }
    }

    /// The bucket whose [`FlowletState`] decides about this frame; `None` if none
    /// does, then [`Distribution::choose`] is to be asked.
    #[inline]
    pub fn bucket(&self, key: &OutgoingKey) -> Option<Bucket> {
        let is_flowlet = matches!(self.spread, Spread::Flowlets(_)) && !key.is_bound;
        is_flowlet.then_some(bucket(key.hash))
    }

    /// Where the frame leaves; `None` if the team is down. Of a frame that has a
    /// [`Distribution::bucket`], where it would leave after a pause.
    #[inline]
    pub fn choose(&self, key: &OutgoingKey) -> Option<Choice> {
        if !self.is_up {
            return None;
        }
        match self.spread {
            _ if key.is_bound => self.at(key.anchor?, key),
            Spread::Homes => self.at(key.anchor?, key),
            _ => self.at(self.wanted(bucket(key.hash))?, key),
        }
    }

    /// Where a frame of `bytes` that has this bucket leaves at `now`, and the bucket's
    /// new state; `None` if the team is down.
    ///
    /// As long as frames of the bucket follow each other within
    /// [`Distribution::flowlet_gap`], they take the same member while that carries
    /// frames, so that none overtakes another. After a pause they take the bucket's
    /// wanted member. A plane with several processors keeps the state in an atomic,
    /// and exchanges it for the new one if it is unchanged, else asks again; if the
    /// new one is the same, which it mostly is within a batch, nothing is to be done.
    #[inline]
    pub fn choose_flowlet(
        &self,
        key: &OutgoingKey,
        state: FlowletState,
        now: Time,
        bytes: u32,
    ) -> Option<(Choice, FlowletState)> {
        if !self.is_up {
            return None;
        }
        let wanted = self.wanted(bucket(key.hash))?;
        let (slot, state) = self.flowlets.step(state, wanted, now, bytes);
        Some((self.at(slot, key)?, state))
    }

    /// The member that a bucket has, or is to have after a pause.
    #[inline]
    pub(crate) fn wanted(&self, bucket: Bucket) -> Option<MemberSlot> {
        self.buckets.get(bucket.index()).copied()
    }

    /// The one member that may show the addresses of a port: its home, where ports
    /// have one, else the primary. Ports that the team was not told of live on the
    /// primary.
    #[inline]
    pub(crate) fn anchor(&self, port: PortId) -> Option<MemberSlot> {
        self.homes.find(u64::from(port.0)).or(self.primary)
    }

    #[inline]
    fn at(&self, member: MemberSlot, key: &OutgoingKey) -> Option<Choice> {
        let is_elsewhere = self.replaces_source && key.anchor != Some(member);
        let source = is_elsewhere.then(|| *self.shown.at(member));
        Some(Choice { member, source })
    }
}

/// The high bits: queues of a port are chosen by the low ones, and a member whose
/// flows had some of these in common would leave queues empty.
#[inline]
fn bucket(hash: u32) -> Bucket {
    Bucket((hash >> (u32::BITS - BUCKET_BITS)) as u16)
}
