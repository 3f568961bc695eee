//! Deliberate violations of the standard.

/// The one violation of a virtual device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Conforms to the standard.
    None,
    /// Sends LACPDUs to a different destination address.
    Destination,
    /// Sends nonzero reserved octets.
    Reserved,
    /// Uses the same number for both ports.
    OnePortNumber,
    /// Reports the partner's state back incorrectly.
    Echo,
    /// Transmits each two seconds where each second is required.
    SlowPace,
    /// Transmits each second to a partner with the long timeout.
    AlwaysFast,
    /// Does not limit its transmission rate.
    Unlimited,
    /// Passive, but transmits before it has received an LACPDU.
    PassiveSpeaks,
    /// Passive, but transmits to a passive partner.
    PassiveToPassive,
    /// Passive, and never transmits.
    Dumb,
    /// Does not transmit when the partner has a wrong view.
    NoNtt,
    /// Considers the partner in sync even if its view of the device is wrong.
    BelievesAll,
    /// Expires the partner after two seconds.
    ShortMemory,
    /// Never expires the partner.
    LongMemory,
    /// Continues collecting and distributing in the EXPIRED state.
    FlowsWhileExpired,
    /// Keeps the partner's information in the DEFAULTED state.
    KeepsPartner,
    /// Repeats the aggregation wait for a partner that resumes transmission.
    WaitsAgain,
    /// Does not wait for other ports to attach.
    NoWait,
    /// Continues collecting and distributing when the partner is out of sync.
    IgnoresSync,
    /// Sets Synchronization only after the partner has.
    WaitsForPartner,
    /// Keeps the port selected when the partner's port changes.
    StaysSelected,
    /// Aggregates all links, regardless of their partners.
    OneForAll,
    /// Never aggregates two links.
    NeverTwo,
    /// Accepts version 1 only.
    VersionOneOnly,
    /// Accepts only LACPDUs whose reserved octets are zero.
    ZerosOnly,
    /// Reads beyond the end of a frame into the bytes of the previous frame.
    ReadsBeyond,
    /// Processes every subtype as LACP.
    AnySubtype,
    /// For a wrong TLV length, accepts the actor information but not its state.
    HalfTaken,
    /// Does not respond to Marker PDUs.
    NoMarker,
    /// Responds to Marker PDUs with a different transaction ID.
    WrongMarker,
    /// Responds to Marker Response PDUs.
    AnswersResponses,
    /// Aggregates with itself.
    Loops,
    /// Does not recover after the loss of its carrier.
    DeadAfterFlap,
    /// Does not recover after LACPDUs of more than a hundred other partners.
    DeadAfterFlood,
    /// Forwards frames in every state.
    AlwaysPasses,
    /// Never forwards frames.
    NeverPasses,
}
