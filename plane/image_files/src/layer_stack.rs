//! Images that form a disk.

use std::sync::Arc;

use suimon_image::Image;
use suimon_ports::DiskFile;

/// One image of a disk, with its file.
pub struct DiskLayer {
    /// Translation of disk ranges to file ranges.
    pub image: Box<dyn Image>,
    /// File that contains the image.
    pub file: Arc<dyn DiskFile>,
}

/// Images that form a disk.
pub struct LayerStack {
    /// The disk's own image, followed by its parent, the parent's parent and so on. Parents are
    /// only read. Empty for a suspended disk only.
    pub layers: Vec<DiskLayer>,
}

/// Operations of a disk that can free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardSupport {
    /// True if a discard can free space, in the image or in the store.
    pub can_discard: bool,
    /// True if ranges can be zeroed without writing zeros.
    pub can_zero_fast: bool,
}

impl LayerStack {
    /// Returns the operations that can free space. A disk without images has none.
    #[must_use]
    pub fn discard_support(&self) -> DiscardSupport {
        let top_layer = self.layers.first();
        let can_zero_fast =
            top_layer.is_some_and(|top_layer| top_layer.file.properties().can_punch_holes);
        let has_blocks =
            top_layer.is_some_and(|top_layer| top_layer.image.linear_offset().is_none());
        DiscardSupport { can_discard: can_zero_fast || has_blocks, can_zero_fast }
    }
}
