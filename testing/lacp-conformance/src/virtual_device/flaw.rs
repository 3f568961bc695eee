//! Ways to break a rule.

/// The one rule that a device breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It keeps all.
    None,
    /// LACPDUs go to another address.
    Destination,
    /// Reserved octets are not zero.
    Reserved,
    /// Both ports have one number.
    OnePortNumber,
    /// The partner's state is told back wrongly.
    Echo,
    /// Speaks each two seconds where it should each second.
    SlowPace,
    /// Speaks each second to a partner with the long timeout.
    AlwaysFast,
    /// Answers without limit.
    Unlimited,
    /// A passive device that speaks without being spoken to.
    PassiveSpeaks,
    /// A passive device that speaks to a passive partner.
    PassiveToPassive,
    /// A passive device that never speaks.
    Dumb,
    /// Does not speak when the partner has a wrong view.
    NoNtt,
    /// The partner is in sync whatever it thinks of the device.
    BelievesAll,
    /// Forgets the partner after two seconds.
    ShortMemory,
    /// Never forgets the partner.
    LongMemory,
    /// Goes on collecting and distributing when the partner expired.
    FlowsWhileExpired,
    /// Keeps what it knew of the partner when that should be replaced.
    KeepsPartner,
    /// Waits anew for a partner that comes back.
    WaitsAgain,
    /// Does not wait for other ports.
    NoWait,
    /// Goes on when the partner is out of sync.
    IgnoresSync,
    /// Comes into sync only after the partner.
    WaitsForPartner,
    /// Stays selected when another port of the partner is at the other end.
    StaysSelected,
    /// All links share one aggregator.
    OneForAll,
    /// Never aggregates two links.
    NeverTwo,
    /// Takes version 1 only.
    VersionOneOnly,
    /// Takes LACPDUs with zeros in what is reserved only.
    ZerosOnly,
    /// Reads beyond the end of what it got, from what it got before.
    ReadsBeyond,
    /// Takes every subtype for LACP.
    AnySubtype,
    /// With a wrong length, takes the actor's but not its state.
    HalfTaken,
    /// Does not answer markers.
    NoMarker,
    /// Answers markers with another transaction.
    WrongMarker,
    /// Answers responses.
    AnswersResponses,
    /// Comes into use with itself.
    Loops,
    /// After its carrier was gone it does not come back.
    DeadAfterFlap,
    /// After a hundred other partners in a second it does not come back.
    DeadAfterFlood,
    /// Passes frames whatever it says.
    AlwaysPasses,
    /// Passes no frames.
    NeverPasses,
}
