//! Start and end of the cluster threads.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::command::Command;
use crate::shared::Shared;

impl Shared {
    /// Starts the threads of the cluster.
    pub(crate) fn start_cluster(
        self: &Arc<Self>,
        commands: SyncSender<Command>,
    ) -> std::io::Result<()> {
        let (driver, worker) = super::driver::start(self, commands)?;
        self.cluster.threads().extend([driver, worker]);
        Ok(())
    }

    /// Notifies the driver that the desired state has changed.
    pub(crate) fn notify_cluster_driver(&self) {
        self.cluster.inbox.wake();
    }

    /// Stops and joins the threads of the cluster. Leases of this host expire.
    pub(crate) fn stop_cluster(&self) {
        self.cluster.inbox.request_stop();
        for thread in std::mem::take(&mut *self.cluster.threads()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the cluster panicked");
            }
        }
    }
}
