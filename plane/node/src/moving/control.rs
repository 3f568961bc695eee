//! What the control thread does for VMs that move.

use std::sync::Arc;

use suimon_contract::{ApiError, ArrivalRequest, ErrorCode, Name};

use crate::checks::first_of;
use crate::control::Controller;
use crate::operations::OperationHandle;
use crate::vms::Message;
use crate::{ChangeOptions, Edit};

impl Controller {
    /// Makes what a VM needs that comes; its driver starts it then.
    pub(crate) fn arrive(&mut self, operation: OperationHandle, request: &Arc<ArrivalRequest>) {
        self.write_drafts();
        if !operation.begin() {
            return;
        }
        let made = self.make_arrival(&operation, request);
        self.write_drafts();
        let entry = self.shared.vms.find(&request.vm.name);
        match (made, entry) {
            (Ok(()), Some(entry)) => {
                operation.step_aside();
                entry.inbox.put(Message::Arrive(request.clone(), operation));
            }
            (Ok(()), None) => {
                let text = "the VM was created but not found";
                operation.end(&Err(ApiError::new(ErrorCode::Internal, text)));
            }
            (Err(error), _) => operation.end(&Err(error)),
        }
    }

    fn make_arrival(
        &mut self,
        operation: &OperationHandle,
        request: &Arc<ArrivalRequest>,
    ) -> Result<(), ApiError> {
        // Again: changes were made meanwhile.
        self.shared.check_arrival(request).map_err(first_of)?;
        self.arriving = Some(request.clone());
        let edit = Edit::Arrive(request.clone());
        let made = self.apply(operation, &edit, ChangeOptions::default());
        self.arriving = None;
        made
    }

    /// Deletes a VM that is not this node's, and all that is its own.
    pub(crate) fn depart(&mut self, operation: &OperationHandle, vm: Name, with_file: bool) {
        self.write_drafts();
        if !operation.begin() {
            return;
        }
        let options = ChangeOptions { force: true, with_file, ..ChangeOptions::default() };
        let gone = self.apply(operation, &Edit::Depart(vm), options);
        self.write_drafts();
        operation.end(&gone);
    }
}
