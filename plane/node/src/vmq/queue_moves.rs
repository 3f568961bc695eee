//! Moves of queues that an operator requests.

use suimon_contract::{ApiError, ErrorCode};
use suimon_quantity::{QueueId, WorkerId};
use suimon_switch::MoveError;

use super::texts::operator_move_event;
use crate::control::Controller;

impl Controller {
    /// Moves a queue to a worker.
    ///
    /// # Errors
    /// The queue or the worker does not exist, or a worker does not respond.
    pub(crate) fn move_queue(&mut self, queue: QueueId, to: WorkerId) -> Result<(), ApiError> {
        let owner = |queues: Vec<suimon_switch::QueueView>| {
            queues.into_iter().find(|view| view.id == queue).map(|view| view.worker)
        };
        let from = owner(self.shared.plane.queues());
        let moved = self.shared.plane.move_queue(queue, to);
        // On a timeout of a worker, the queue is reassigned nevertheless.
        if from != Some(to) && owner(self.shared.plane.queues()) == Some(to) {
            self.drafts.extend(operator_move_event(&self.shared, queue, from, to));
        }
        moved.map_err(|error| {
            let error = match error {
                MoveError::Timeout => ApiError::new(ErrorCode::HostError, error.to_string()),
                _ => {
                    let text = format!("the queue could not be moved: {error}");
                    ApiError::new(ErrorCode::NotFound, text)
                }
            };
            error.with_resource("queue")
        })
    }
}
