//! Disk that could not be added, with the error.

use suimon_image_files::LayerStack;

/// Disk that could not be added.
pub struct RejectedDisk {
    /// Error that prevented the operation.
    pub error: std::io::Error,
    /// Disk that was not added, unchanged.
    pub spec: LayerStack,
}

impl std::fmt::Debug for RejectedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}
