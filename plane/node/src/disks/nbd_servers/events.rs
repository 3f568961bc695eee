//! Events of NBD servers.

use suimon_contract::EventKind;
use suimon_ports::NbdNotice;

use crate::events::EventDraft;

/// Converts a notice of an NBD server to an event.
pub(crate) fn nbd_event(notice: NbdNotice) -> EventDraft {
    match notice {
        NbdNotice::Refused { peer, reason } => {
            let text = format!(
                "NBD client {peer} was rejected: {reason}. If it is permitted to connect, check \
                 the access rules in `[disk.nbd]`."
            );
            EventDraft::new(EventKind::NbdClientRefused, "host", text)
                .with("peer", peer)
                .with("reason", reason)
        }
        NbdNotice::LimitReached { peer, reason } => {
            let text = format!(
                "NBD client {peer} was rejected because of a limit: {reason}, or close clients."
            );
            EventDraft::new(EventKind::NbdLimitReached, "host", text)
                .with("peer", peer)
                .with("reason", reason)
        }
        NbdNotice::ExportFailed { disk, reason } => {
            let text = format!(
                "The disk cannot be exported over NBD and the daemon retries; a VM of the disk is \
                 not affected: {reason}."
            );
            let draft = EventDraft::new(EventKind::DiskNotOffered, format!("disk/{disk}"), text);
            draft.with("reason", reason)
        }
    }
}
