//! Handles for queues that are being detached from their worker.

use std::time::Duration;

/// A queue being detached after [`DiskQueueHost::begin_detach`](crate::DiskQueueHost::begin_detach)
/// or [`QueueHost::begin_detach`](crate::QueueHost::begin_detach). Dropping this value does not
/// cancel the detachment.
pub trait DetachingQueue: Send {
    /// Blocks for at most `at_most`. Returns true if the host has dropped the queue with every
    /// received request completed, or if the host cannot drop it because the disk is being removed
    /// while its store stalls.
    fn wait(&mut self, at_most: Duration) -> bool;
}

/// Handle of a detachment that has already completed: its wait returns true at once.
#[derive(Clone, Copy, Debug)]
pub struct CompletedDetachment;

impl DetachingQueue for CompletedDetachment {
    fn wait(&mut self, _at_most: Duration) -> bool {
        true
    }
}
