//! End of a VM's driver: errors of requests and operations that it does not complete.

use suimon_contract::{ApiError, ErrorCode};

use super::VmEntry;
use super::driver::Driver;
use super::inbox::{DriverEnd, Message};
use super::stopping::PendingStop;

impl VmEntry {
    /// Sends a request to the VM's driver. If the driver has ended, the request fails with the
    /// reason.
    pub(crate) fn submit(&self, message: Message) {
        if let Some(rejected) = self.inbox.put(message) {
            self.fail_request(rejected);
        }
    }

    /// Fails a request that the driver does not execute, because it has ended.
    pub(super) fn fail_request(&self, message: Message) {
        let error = self.driver_end_error();
        match message {
            Message::Action(_, Some(operation))
            | Message::Migrate(_, operation)
            | Message::StartIncomingMigration(_, operation) => operation.end(&Err(error)),
            Message::Kill(kill) => kill.operation().end(&Err(error)),
            Message::IncomingRequest((_, sender)) => {
                // The caller may have stopped waiting.
                let _ = sender.try_send(Err(error));
            }
            Message::Action(_, None)
            | Message::Vf(_)
            | Message::ReleaseDevices(_)
            | Message::Reconcile
            | Message::Detach
            | Message::Delete => {}
        }
    }

    /// Returns the error of a request that is queued after the driver has begun to end.
    fn driver_end_error(&self) -> ApiError {
        let text = match self.inbox.end_reason() {
            Some(DriverEnd::Deleted) => {
                "the VM was deleted before the request was executed; `suimon vm list` shows the VMs"
            }
            Some(DriverEnd::Detached) | None => {
                "the daemon ends, and the request was not executed; repeat it when the daemon runs \
                 again"
            }
        };
        ApiError::new(ErrorCode::Conflict, text).with_resource(self.label())
    }
}

impl Driver {
    /// Ends the operations in progress when the driver ends. The guest or the next daemon continues
    /// what they have begun.
    pub(super) fn end_operations(&mut self) {
        let name = &self.entry.name;
        let stop = self.pending_stop.take().and_then(PendingStop::into_operation);
        let migration = self.outgoing.take().and_then(|outgoing| outgoing.operation);
        let operations = [
            (stop, "while the guest shuts down"),
            (migration, "during the migration; the next daemon ends or continues it"),
        ];
        for (operation, phase) in operations {
            let Some(operation) = operation else { continue };
            let text = format!(
                "the daemon ends {phase}; `suimon vm show {name}` shows the result when the daemon \
                 runs again"
            );
            operation.end(&Err(self.error(ErrorCode::Conflict, &text)));
        }
    }
}
