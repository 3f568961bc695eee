//! Text output of offloads.

use suimon_contract::{OffloadPerformer, OffloadStatus};

use crate::columns;
use crate::table::{Table, or_dash};

/// Returns a table with the offloads of one port.
pub(crate) fn offload_table(offloads: &[OffloadStatus]) -> Table {
    let mut table = Table::new(&columns::OFFLOADS);
    for offload in offloads {
        table.add_row(cells(offload));
    }
    table
}

/// Returns a table with the offloads of several ports, given with their labels.
pub fn port_offload_table<'a>(
    ports: impl IntoIterator<Item = (&'a str, &'a [OffloadStatus])>,
) -> Table {
    let mut table = Table::new(&columns::PORT_OFFLOADS);
    for (label, offloads) in ports {
        for offload in offloads {
            let [name, supported, enabled, used, performer, reason] = cells(offload);
            table.add_row([label.to_owned(), name, supported, enabled, used, performer, reason]);
        }
    }
    table
}

fn cells(offload: &OffloadStatus) -> [String; 6] {
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    [
        offload.name.clone(),
        or_dash(offload.supported.map(yes)),
        yes(offload.enabled).to_owned(),
        yes(offload.effective).to_owned(),
        performer_name(offload.performer).to_owned(),
        offload.reason.clone(),
    ]
}

/// Returns the component that performs an offload, in the words of tables.
const fn performer_name(performer: OffloadPerformer) -> &'static str {
    match performer {
        OffloadPerformer::Guest => "guest",
        OffloadPerformer::Nic => "device",
        OffloadPerformer::Kernel => "kernel",
        OffloadPerformer::Software => "software",
        OffloadPerformer::Egress => "egress port",
        OffloadPerformer::None => "not done",
    }
}
