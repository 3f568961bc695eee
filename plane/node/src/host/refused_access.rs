//! Events about requests with wrong credentials.

use suimon_contract::EventKind;

use crate::events::EventDraft;

/// Requests of one peer that a listener refused because of wrong credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAccess {
    /// Section of the listener in the host file: `api` or `console`.
    pub listener: &'static str,
    /// Address of the peer, or its network if the peers of a network are counted together. `None`
    /// for peers that are too many to be counted separately.
    pub peer: Option<String>,
    /// Refused requests since the previous event about this peer.
    pub count: u64,
    /// Time from the first to the last of them in seconds, rounded up.
    pub period_s: u64,
}

/// Returns the event about refused requests. Peers cause it at will, from many addresses.
pub(crate) fn refused_access_event(refused: &RefusedAccess) -> EventDraft {
    let RefusedAccess { listener, peer, count, period_s: seconds } = refused;
    let source = peer.as_deref().unwrap_or("other peers");
    let text = format!(
        "[{listener}] refused {count} requests with a wrong token or login code from {source} \
         within {seconds} s. Check whether a client of {source} has an outdated token; if not, \
         block {source} in the firewall."
    );
    EventDraft::new(EventKind::AccessRefused, "host", text)
        .with("listener", listener)
        .with("peer", source)
        .with("count", count)
        .with("seconds", seconds)
        .rate_limited()
}
