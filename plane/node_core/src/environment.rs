//! Interfaces of the node to its environment: clock, random numbers, and notifications.

use std::sync::Arc;

/// Function that returns the wall-clock time in milliseconds since 1970-01-01 UTC.
pub type UnixClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Function that returns 128 random bits for unique identifiers.
pub type RandomSource = Arc<dyn Fn() -> [u8; 16] + Send + Sync>;

/// Callback interface for new events and operation changes, to wake waiting API requests. Called
/// from several threads. Implementations must not block and must not call the node.
pub trait NodeListener: Send + Sync {
    /// Called after the event log has grown. `sequence` is that of the newest event.
    fn handle_events(&self, sequence: u64);
    /// Called after operation `id` was added or has changed.
    fn handle_operation(&self, id: u64);
    /// Called when the control thread has ended, by request or because of a panic, or when a team
    /// thread has panicked. Changes are rejected from then on.
    fn handle_end(&self);
}

/// Listener that ignores all calls.
pub struct NoListener;

impl NodeListener for NoListener {
    fn handle_events(&self, _sequence: u64) {}
    fn handle_operation(&self, _id: u64) {}
    fn handle_end(&self) {}
}
