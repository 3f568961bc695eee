//! Events of NBD servers.

use suimon_contract::EventKind;
use suimon_ports::NbdNotice;

use crate::events::Draft;

/// Converts a notice of an NBD server to an event.
pub(crate) fn nbd_event(notice: NbdNotice) -> Draft {
    match notice {
        NbdNotice::Refused { peer, reason } => {
            let text = format!("NBD client {peer} was rejected: {reason}.");
            Draft::new(EventKind::NbdClientRefused, "host", text)
                .with("peer", peer)
                .with("reason", reason)
        }
        NbdNotice::Limited { peer, reason } => {
            let text = format!("An NBD client ({peer}) was turned away: {reason}.");
            Draft::new(EventKind::NbdLimitReached, "host", text)
                .with("peer", peer)
                .with("reason", reason)
        }
        NbdNotice::ExportFailed { disk, reason } => {
            let text = format!(
                "The disk cannot be exported over NBD and the daemon retries; a VM of the disk is \
                 not affected: {reason}."
            );
            let draft = Draft::new(EventKind::DiskNotOffered, format!("disk/{disk}"), text);
            draft.with("reason", reason)
        }
    }
}
