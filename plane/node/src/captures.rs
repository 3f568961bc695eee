//! Frame captures. A capture is an operation that ends when its [`Capture`] is dropped.

mod requests;

use std::sync::{Mutex, PoisonError};

use suimon_contract::{ApiError, ErrorCode};

pub use self::requests::Capture;
use crate::PortKey;

/// Maximum number of concurrent captures. Each capture has its own buffer.
pub const CAPTURES_MAX: usize = 8;

/// Captures in progress: captured port, and id of the operation. A port has at most one.
#[derive(Default)]
pub(crate) struct Captures {
    running: Mutex<Vec<(PortKey, u64)>>,
}

impl Captures {
    fn enter(&self, key: &PortKey, operation: u64) -> Result<(), ApiError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, other)) = running.iter().find(|(port, _)| port == key) {
            let text = format!(
                "operation {other} already captures frames of this port; cancel it first (`suimon \
                 operation cancel {other}`)"
            );
            return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(key.to_string()));
        }
        if running.len() >= CAPTURES_MAX {
            let text = format!(
                "{CAPTURES_MAX} captures are running, the most possible; cancel one first (`suimon \
                 operation list` lists them)"
            );
            return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(key.to_string()));
        }
        running.push((key.clone(), operation));
        Ok(())
    }

    pub(crate) fn is_captured(&self, key: &PortKey) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().any(|(port, _)| port == key)
    }

    fn leave(&self, operation: u64) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|(_, id)| *id != operation);
    }
}
