//! Text output of offloads.

use suimon_contract::OffloadStatus;

use crate::columns;
use crate::table::{Table, or_dash};

/// Returns a table with the offloads of one port.
pub(crate) fn offload_table(offloads: &[OffloadStatus]) -> Table {
    let mut table = Table::new(&columns::OFFLOADS);
    for offload in offloads {
        table.row(cells(offload));
    }
    table
}

pub(crate) fn cells(offload: &OffloadStatus) -> [String; 6] {
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    [
        offload.name.clone(),
        or_dash(offload.supported.map(yes)),
        yes(offload.enabled).to_owned(),
        yes(offload.effective).to_owned(),
        offload.by.to_string(),
        offload.reason.clone(),
    ]
}
