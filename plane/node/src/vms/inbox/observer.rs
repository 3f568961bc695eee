//! Observer that passes notices of a VM to its driver.

use std::sync::Arc;

use suimon_ports::{VmNotice, VmObserver};

/// Observer of one run of a VM; writes to the inbox of its driver.
pub(crate) struct NoticeObserver {
    pub(crate) entry: Arc<crate::vms::VmEntry>,
    pub(crate) run_number: u64,
}

impl VmObserver for NoticeObserver {
    fn handle_notice(&self, notice: VmNotice) {
        self.entry.inbox.merge(self.run_number, notice);
    }
}
